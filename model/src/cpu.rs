//! CPUs that run the guest: TLBs, walk caches, the table walker, DSB and TLBI.
//!
//! A translation stays in a TLB until somebody invalidates it. A TLBI takes effect at the DSB that
//! waits for it, as late as it may. A walk that began before it does not count: it begins again.

use crate::engine::{lock, step, unlock};
use crate::kernel::kernel;
use crate::memory;
use crate::state::{st, Engine, PageState, IRQ, THREADS, WORLD};
use crate::trace;
use std::sync::atomic::Ordering::Relaxed;

/// arm64's stage 2.
const VALID: u64 = 1;
const TYPE: u64 = 2;
pub const R: u64 = 1 << 6;
pub const W: u64 = 1 << 7;
pub const AF: u64 = 1 << 10;
pub const ADDR: u64 = 0xffff_ffff_f000;
/// x86: NPT, and EPT, of which RWX are the lowest three bits.
const X86_RWX: u64 = 7;
const X86_R: u64 = 1;
pub const X86_W: u64 = 1 << 1;
pub const X86_A: u64 = 1 << 5;
pub const X86_D: u64 = 1 << 6;
const X86_BLOCK: u64 = 1 << 7;
/// arm64, the RFC in patches/v7.3/rfc-hw-dirty: at the first write the CPU sets W.
pub const DBM: u64 = 1 << 51;

fn x86() -> bool { kernel().x86 }
/// Whether an entry leads anywhere.
pub fn valid(pte: u64) -> bool { if x86() { pte & X86_RWX != 0 } else { pte & VALID != 0 } }
/// Whether a valid entry maps memory. Levels are counted as arm64 does: 3 is that of pages, on both.
pub fn leaf(pte: u64, level: u32) -> bool { level == 3 || if x86() { pte & X86_BLOCK != 0 } else { pte & TYPE == 0 } }
fn allows(pte: u64, write: bool) -> bool {
    let bit = match (x86(), write) { (true, true) => X86_W, (true, false) => X86_R, (false, true) => W, (false, false) => R };
    pte & bit != 0
}
/// What the CPU sets in a leaf when it uses it, where it sets something.
fn used_bits(write: bool) -> u64 { match (x86(), write) { (false, _) => AF, (true, true) => X86_A | X86_D, (true, false) => X86_A } }
/// The table that a CPU's walk begins in, and its level.
fn first_table(cpu: usize) -> (usize, u32) {
    let kernel = kernel();
    if let Some(root) = kernel.root { (root(cpu as i32), 0) } else { ((kernel.pgd)(), 1) }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Stage 2 alone: IPA to PA.
    Stage2,
    /// Both stages: what an access finds first, and a TLBI of stage 2 leaves alone.
    Combined,
    /// An entry that leads to a table.
    Table,
}

#[derive(Clone, Copy)]
struct Entry { kind: Kind, ipa: u64, level: u32, pte: u64 }

impl Entry {
    fn is_for(&self, ipa: u64) -> bool { ipa & !(granule(self.level) - 1) == self.ipa }
}

/// An access by a thread: what it stored, or which value it has seen.
struct Log { at: usize, value: u64, thread: usize, store: bool }

/// A DSB: walks that begin after it find what `thread` had stored (and seen) when the log was `end` long.
#[derive(Clone, Copy)]
struct Floor { thread: usize, end: usize, loads: bool }

/// By range, `level` is the number of pages.
#[derive(Clone, Copy)]
struct Tlbi { op: i32, ipa: u64, level: u32 }

const RANGE: i32 = 8;

impl Tlbi {
    fn meets(&self, start: u64, size: u64) -> bool { start < self.ipa + self.level as u64 * 4096 && self.ipa < start + size }
    fn is_local(&self) -> bool { [1, 3, 5, 7].contains(&self.op) }
}

#[derive(Default)]
pub struct Cpus {
    entries: [Vec<Entry>; THREADS],
    floors: [Vec<Floor>; THREADS],
    pending: [Vec<Tlbi>; THREADS + 1],
    /// The invalidations of stage 2 that a CPU has seen, one after the other.
    forgotten: [Vec<Tlbi>; THREADS],
    guest_vmid: [bool; THREADS + 1],
    /// arm64: the first table when the threads began; a CPU that has switched to the guest's VMID has it in VTTBR_EL2.
    root: usize,
    log: Vec<Log>,
    /// Whether the CPU sets the access flag by itself; on x86 also the Dirty bit.
    pub ha: bool,
    /// The CPU sets W by an entry with DBM in its TLB, although DBM is gone from memory.
    pub stale_dbm: bool,
    /// TLBIs that the threads have executed.
    pub tlbis: u64,
}

static mut CPUS: Option<Cpus> = None;
pub fn cpus() -> &'static mut Cpus { unsafe { CPUS.get_or_insert_with(Default::default) } }

/// A new execution.
pub fn reset() { *cpus() = Default::default() }

impl Cpus {
    /// The CPUs forget all, as they may at any time.
    pub fn forget(&mut self) { self.entries = Default::default() }

    fn logs(&self) -> bool { st().running && st().eng == Engine::Loom && st().guests }

    /// The last store of `value` to the word before `end`, as an index of the log.
    fn stored(&self, at: usize, value: u64, end: usize) -> i64 {
        self.log[..end].iter().rposition(|l| l.store && l.at == at && l.value == value).map_or(-1, |i| i as i64)
    }

    /// The oldest store to the word that a walk may find.
    fn oldest(&self, at: usize, floors: &[Floor]) -> i64 {
        floors.iter().filter_map(|f| {
            let i = self.log[..f.end].iter().rposition(|l| l.at == at && l.thread == f.thread && (l.store || f.loads))?;
            Some(if self.log[i].store { i as i64 } else { self.stored(at, self.log[i].value, i) })
        }).max().unwrap_or(-1)
    }
}

pub fn stored(at: usize, value: u64) {
    if cpus().logs() { cpus().log.push(Log { at, value, thread: st().cur, store: true }) }
}

pub fn loaded(at: usize, value: u64) {
    if cpus().logs() && memory::in_arena(at) { cpus().log.push(Log { at, value, thread: st().cur, store: false }) }
}

fn granule(level: u32) -> u64 { 1 << (12 + 9 * (3 - level)) }

fn world() { step(WORLD, Relaxed) }

pub extern "C-unwind" fn vmid(guest: i32) {
    let me = st().cur;
    let checked = guest != 0 && !x86() && st().running;
    let root = if checked { (kernel().pgd)() } else { 0 };
    cpus().guest_vmid[me] = guest != 0 && (!checked || root != 0);
    if root != 0 && st().page[(root - kernel().arena) / 4096] == PageState::Freed {
        trace::fail("freed-table", "a CPU loads a page table that is free into VTTBR_EL2")
    }
}

/// The threads begin.
pub fn begin() { if st().guests && !x86() { cpus().root = (kernel().pgd)() } }

/// A page is freed: no CPU has it in VTTBR_EL2.
pub fn freed(at: usize) {
    if at != cpus().root { return }
    world();
    if cpus().guest_vmid.iter().any(|v| *v) { trace::fail("freed-table", "the page table is freed while a CPU has it in VTTBR_EL2") }
}

const ISHST: i32 = 0;
const ISH: i32 = 1;
const NSHST: i32 = 3;

/// DSB NSH waits for what concerns this CPU. DSB ISH is a full barrier for other CPUs besides.
pub extern "C-unwind" fn dsb(kind: i32) {
    let site = trace::site();
    if !st().running { return }
    let me = st().cur;
    memory::flush();
    if kind == ISH { memory::fence(memory::FULL) }
    if !st().guests { return }
    if kind != ISHST && kind != NSHST {
        // In the order that is worse, if there are several.
        let mine: Vec<Tlbi> = std::mem::take(&mut cpus().pending[me]);
        for t in mine.into_iter().rev() {
            let local = t.is_local();
            if kind != ISH && !local { cpus().pending[me].insert(0, t); continue }
            world();
            let waits = cpus().stale_dbm;
            if waits { lock(IRQ) }
            for cpu in 0..THREADS { if !local || cpu == me { invalidate(cpu, t) } }
            if waits { unlock(IRQ) }
            trace::event(site, "TLBI done", 0, t.ipa, t.level as u64);
        }
    }
    if st().eng != Engine::Loom { return }
    let floor = Floor { thread: me, end: cpus().log.len(), loads: kind != ISHST && kind != NSHST };
    // What has been said, to all CPUs or to this one, is not said again.
    let told = if kind == ISHST || kind == ISH { (me + 1) % THREADS } else { me };
    let known = cpus().floors[told].iter().rfind(|f| f.thread == me).map_or(0, |f| if f.loads || !floor.loads { f.end } else { 0 });
    if !cpus().log[known..].iter().any(|l| l.thread == me && (l.store || floor.loads)) { return }
    world();
    for cpu in 0..THREADS {
        if kind == ISHST || kind == ISH || cpu == me { cpus().floors[cpu].push(floor) }
    }
}

pub extern "C-unwind" fn tlbi(op: i32, ipa: u64, level: u32) {
    let site = trace::site();
    let me = st().cur;
    if !st().running {
        let t = Tlbi { op, ipa, level };
        for cpu in 0..THREADS { if !t.is_local() || cpu == me { invalidate(cpu, t) } }
        return;
    }
    cpus().tlbis += 1;
    trace::event(site, ["tlbi ipas2e1is", "tlbi ipas2e1", "tlbi vmalle1is", "tlbi vmalle1", "tlbi vmalls12e1is", "flush of this TLB", "tlbi vaale1is", "tlbi vaale1", "tlbi ripas2e1is"][op as usize], 0, ipa, level as u64);
    if x86() { return flush(Tlbi { op, ipa, level }) }
    if !cpus().guest_vmid[me] { return }
    cpus().pending[me].push(Tlbi { op, ipa, level });
}

/// x86: an IPI to each CPU that flushes its TLB, or this CPU does. All that this thread has done comes before.
fn flush(t: Tlbi) {
    let me = st().cur;
    memory::fence(memory::FULL);
    world();
    let floor = Floor { thread: me, end: cpus().log.len(), loads: true };
    for cpu in (0..THREADS).filter(|cpu| !t.is_local() || *cpu == me) {
        cpus().floors[cpu].push(floor);
        invalidate(cpu, t);
    }
}

fn invalidate(cpu: usize, t: Tlbi) {
    let c = cpus();
    c.entries[cpu].retain(|e| !match t.op {
        // By IPA, of stage 2. A hint says that it is a leaf, and of which level.
        0 | 1 => match e.kind {
            Kind::Combined => false,
            Kind::Table => t.level == 0 && e.is_for(t.ipa),
            Kind::Stage2 => (t.level == 0 || t.level == e.level) && e.is_for(t.ipa),
        },
        2 | 3 => e.kind == Kind::Combined,
        RANGE => match e.kind { Kind::Combined => false, _ => t.meets(e.ipa, granule(e.level)) },
        // By VA, for all ASIDs: the guest's addresses are its IPAs here.
        6 | 7 => e.kind == Kind::Combined && e.is_for(t.ipa),
        _ => true,
    });
    if ![2, 3, 6, 7].contains(&t.op) { c.forgotten[cpu].push(t) }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fault { Translation(u32), Access(u32), Permission(u32) }

/// The guest on this thread's CPU reads or writes the word of the page at `ipa`.
pub fn access(ipa: u64, write: bool) -> Result<(), Fault> {
    let cpu = st().cur;
    for _ in 0..8 {
        world();
        if x86() {
            // What does not do for the access is forgotten, and read again.
            let needs = if cpus().ha { used_bits(write) } else { 0 };
            cpus().entries[cpu].retain(|e| e.kind == Kind::Table || !e.is_for(ipa) || allows(e.pte, write) && e.pte & needs == needs);
        }
        // Writable and clean: the CPU looks at memory again.
        let clean = |e: &Entry| !x86() && write && cpus().ha && e.kind != Kind::Table && e.is_for(ipa) && e.pte & (DBM | W) == DBM;
        let stale = cpus().stale_dbm && cpus().entries[cpu].iter().any(clean);
        cpus().entries[cpu].retain(|e| !clean(e));
        let found = |k| cpus().entries[cpu].iter().find(|e| e.kind == k && e.is_for(ipa)).copied();
        if let Some(e) = found(Kind::Combined) { return use_entry(cpu, e, ipa, write) }
        if let Some(e) = found(Kind::Stage2) {
            cpus().entries[cpu].push(Entry { kind: Kind::Combined, ..e });
            return use_entry(cpu, e, ipa, write);
        }
        match walk(cpu, ipa, write, stale) {
            Walk::Again => continue,
            Walk::Fault(f) => { trace::event(std::ptr::null(), "guest faults", 0, ipa, write as u64); return Err(f) }
            Walk::Leaf(e, tables) => {
                if !x86() { check_break_before_make(cpu, &e) }
                cpus().entries[cpu].extend(tables);
                cpus().entries[cpu].push(e);
                cpus().entries[cpu].push(Entry { kind: Kind::Combined, ..e });
                return use_entry(cpu, e, ipa, write);
            }
        }
    }
    // So much happens to this address: the guest tries again later.
    Err(Fault::Translation(0))
}

enum Walk { Leaf(Entry, Vec<Entry>), Fault(Fault), Again }

fn walk(cpu: usize, ipa: u64, write: bool, stale_dbm: bool) -> Walk {
    let begun = cpus().forgotten[cpu].len();
    let floors = cpus().floors[cpu].clone();
    // Whether a TLBI has waited for this walk, which has come to an entry of that level. Without a hint it waits for
    // all that came by a table's entry which translates its IPA; with one, for leaves of that level.
    let over = |level| cpus().forgotten[cpu][begun..].iter().any(|t| {
        let of = if t.level == 0 { level - 1 } else { level };
        if t.op == RANGE { return t.meets(ipa & !(granule(level - 1) - 1), granule(level - 1)) }
        t.op >= 4 || (t.level == 0 || t.level == level) && (t.ipa ^ ipa) & !(granule(of) - 1) == 0
    });
    let (mut table, mut level) = first_table(cpu);
    if table == 0 { return Walk::Fault(Fault::Translation(0)) }
    let mut tables = vec![];
    if let Some(e) = cpus().entries[cpu].iter().filter(|e| e.kind == Kind::Table && e.is_for(ipa)).max_by_key(|e| e.level) {
        (table, level) = (st().arena + (e.pte & ADDR) as usize, e.level + 1);
    }
    let (at, mut pte) = loop {
        let at = table + ((ipa / granule(level)) as usize % 512) * 8;
        let pte = load(at, &floors);
        if over(level) { return Walk::Again }
        memory::walker_check(at, pte);
        if !valid(pte) {
            // This answer counts at this moment, or not.
            world();
            return if over(level) { Walk::Again } else { Walk::Fault(Fault::Translation(level)) };
        }
        if leaf(pte, level) { break (at, pte) }
        tables.push(Entry { kind: Kind::Table, ipa: ipa & !(granule(level) - 1), level, pte });
        table = st().arena + (pte & ADDR) as usize;
        level += 1;
    };
    let sets_w = !x86() && write && cpus().ha && level == 3 && (pte & DBM != 0 || stale_dbm) && pte & W == 0;
    let bits = used_bits(write) | if sets_w { W } else { 0 };
    if pte & bits != bits && (!x86() || cpus().ha && allows(pte, write)) {
        if !cpus().ha {
            world();
            return if over(level) { Walk::Again } else { Walk::Fault(Fault::Access(level)) };
        }
        // A TLBI waits for an update by what is in the TLB.
        if stale_dbm { lock(IRQ) }
        let done = !(stale_dbm && over(level)) && memory::walker_cas(at, pte, pte | bits);
        if stale_dbm { unlock(IRQ) }
        if !done { return Walk::Again }
        pte |= bits;
        trace::event(std::ptr::null(), if sets_w { "CPU sets W and AF" } else if bits & X86_D != 0 { "CPU sets A and D" } else { "CPU sets AF" }, at, pte, pte);
    }
    world();
    if over(level) { return Walk::Again }
    Walk::Leaf(Entry { kind: Kind::Stage2, ipa: ipa & !(granule(level) - 1), level, pte }, tables)
}

fn load(at: usize, floors: &[Floor]) -> u64 {
    let v = memory::walker_load(at, false);
    let c = cpus();
    if st().eng == Engine::Loom && c.stored(at, v, c.log.len()) < c.oldest(at, floors) { return memory::walker_load(at, true) }
    v
}

/// No CPU remembers other memory for this address, or in another size.
fn check_break_before_make(cpu: usize, new: &Entry) {
    for (other, entries) in cpus().entries.iter().enumerate() {
        for old in entries.iter().filter(|e| e.kind != Kind::Table) {
            let overlap = old.is_for(new.ipa) || new.is_for(old.ipa);
            if overlap && (old.level != new.level || (old.pte ^ new.pte) & ADDR != 0) {
                trace::fail("break-before-make", &format!("CPU {other} has {:#x} of level {} for {:#x}, and CPU {cpu} reads {:#x} of level {}",
                    old.pte, old.level, old.ipa, new.pte, new.level))
            }
        }
    }
}

/// One step with the lookup: whoever invalidates waits for an access that uses the old translation.
fn use_entry(cpu: usize, e: Entry, ipa: u64, write: bool) -> Result<(), Fault> {
    if !allows(e.pte, write) {
        trace::event(std::ptr::null(), "guest faults", 0, ipa, write as u64);
        return Err(Fault::Permission(e.level));
    }
    let pfn = ((e.pte & ADDR) + (ipa & (granule(e.level) - 1))) >> 12;
    trace::event(std::ptr::null(), if write { "guest writes" } else { "guest reads" }, 0, ipa, pfn);
    (st().above.guest_access)(cpu, ipa >> 12, pfn, write);
    Ok(())
}
