//! The host around KVM: the primary MMU, the owner of each page, what userspace copies of the guest's
//! memory, and the vCPU's loop of access, fault, access.

use crate::cpu::{self, Fault};
use crate::engine::{self, step};
use crate::kernel::kernel;
use crate::memory;
use crate::state::{st, Engine, MN, PTL, SLOTS, THREADS, WORLD};
use crate::trace;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The guest's memory, in pages, and what the pages of the host are called: one block's worth, and others.
pub const GFNS: usize = 8;
pub const FIRST_PFN: u64 = 0x80000;
const BLOCK: u64 = 512;
pub const PFNS: usize = 512 + 16;
const PTE_VALID: u64 = 1;
const PTE_WRITE: u64 = 1 << 51;

pub struct Host {
    /* Of the scenario: kept from one execution to the next. */
    pub thp: bool,
    /// The level that the syndrome of a permission fault has, 0 for that of the entry. 2: as where one huge page of the host takes
    /// several entries, the fault maps, although the entry is there. 7.3 trusts the level, so there only the first
    /// fault of an access says so, as if the entry was another one when the guest exited. 3: it was, on both.
    pub other_level: u32,
    /// Whether others may do something between a guest's exit and the fault handler's first look.
    pub late: bool,
    /// A huge page is split without a notifier of all of it, which would unmap 512 pages.
    pub quiet: bool,
    /// x86: the caches are not topped up before the threads begin.
    pub cold: bool,

    /// The word that each page holds, and whether it has been given back.
    word: Vec<u64>,
    freed: Vec<bool>,
    next_pfn: u64,
    /// What the guest has last written to each of its pages; what userspace has copied of it.
    written: [u64; GFNS],
    copied: [u64; GFNS],
    writes: u64,
    /// The primary MMU has promised that nobody writes to the page.
    stable: [bool; GFNS],
    /// Faults that are being handled, of each page and thread.
    handling: [[bool; GFNS]; THREADS + 1],
    /// In the kernel, or in the middle of something: others may wait for it.
    pub busy: [bool; THREADS + 1],
    /// How often a vCPU did something else after TRIES faults.
    pub gave_up: u64,
    /// How often a thread has come to rest.
    rests: u64,
    /// The guest's accesses so far; the last one to each page; how many there were when it was aged, with a flush.
    accesses: u64,
    accessed: [u64; GFNS],
    aged: [u64; GFNS],
    /// Of each page of the host's: the guest has written to it; has accessed it; it was marked dirty, accessed.
    wrote: Vec<bool>,
    used: Vec<bool>,
    marked: Vec<bool>,
    pub young: Vec<bool>,
    /// x86, where the guest has page tables: which page the guest's mapping leads to.
    pub alias: [u64; GFNS],
}

const ITSELF: [u64; GFNS] = [0, 1, 2, 3, 4, 5, 6, 7];

impl Default for Host {
    fn default() -> Self {
        Host { thp: false, other_level: 0, late: false, quiet: false, cold: false, word: vec![], freed: vec![],
            next_pfn: 0, written: [0; GFNS], copied: [0; GFNS], writes: 0, stable: [false; GFNS], handling: [[false; GFNS]; THREADS + 1],
            busy: [false; THREADS + 1], gave_up: 0, rests: 0,
            accesses: 0, accessed: [0; GFNS], aged: [0; GFNS], wrote: vec![], used: vec![], marked: vec![], young: vec![], alias: ITSELF }
    }
}

static mut HOST: Option<Host> = None;
pub fn host() -> &'static mut Host { unsafe { HOST.get_or_insert_with(Default::default) } }

/// A new execution.
pub fn reset() { host().reset() }

impl Host {
    fn reset(&mut self) {
        self.word = vec![0; PFNS];
        self.freed = vec![false; PFNS];
        self.alias = ITSELF;
        self.wrote = vec![false; PFNS];
        self.used = vec![false; PFNS];
        self.marked = vec![false; PFNS];
        self.young = vec![false; PFNS];
        self.next_pfn = FIRST_PFN + BLOCK;
        self.written = [0; GFNS];
        self.copied = [0; GFNS];
        self.writes = 0;
        self.stable = [false; GFNS];
        self.accesses = 0;
        self.accessed = [0; GFNS];
        self.aged = [0; GFNS];
        self.handling = Default::default();
        self.busy = Default::default();
        self.gave_up = 0;
    }
}

fn pte(pfn: u64, writable: bool) -> u64 { pfn << 12 | PTE_VALID | if writable { PTE_WRITE } else { 0 } }
/// Where the memslot is, for the guest and for the host's process: as S2_BASE_GFN, S2_HVA in shim/kernel.h.
pub const BASE: u64 = 2 << 20;
const HVA: u64 = 1 << 30;
/// The guest's pages are the first six of the memslot, the last one that the first word of the log has, and the last one of
/// all: the guest's address of page `n`, the process's, and which page an address of one of them belongs to.
fn offset(n: u64) -> u64 { (match n { 6 => 63, 7 => BLOCK - 1, _ => n }) << 12 }
pub fn ipa(n: u64) -> u64 { BASE + offset(n) }
fn hva(n: u64) -> u64 { HVA + offset(n) }
fn page_at(address: u64) -> u64 { match (address >> 12) % BLOCK { 63 => 6, 511 => 7, n => n } }
fn pfn_of(pte: u64) -> u64 { (pte & cpu::ADDR) >> 12 }
fn at(gfn: u64) -> usize { st().ptes + gfn as usize * 8 }
/// Not 0 if the primary MMU no longer maps its block as one huge page. Behind its PTEs, so that a CPU may find it late, too.
fn split() -> usize { at(GFNS as u64) }
fn page(pfn: u64) -> usize { (pfn - FIRST_PFN) as usize }

/// The primary MMU maps all of the guest's memory, writable or not.
pub fn setup(writable: bool) {
    st().ptes = memory::alloc(1);
    for g in 0..GFNS as u64 { memory::set_raw(at(g), pte(FIRST_PFN + (offset(g) >> 12), writable)) }
    memory::set_raw(split(), 0);
}

/* ---- guest ---- */

/// An access by a translation, in one step with finding it.
pub fn guest_access(cpu: usize, gfn: u64, pfn: u64, write: bool) {
    let h = host();
    if pfn < FIRST_PFN || page(pfn) >= PFNS { trace::fail("wrong-page", &format!("CPU {cpu} uses page {pfn:#x}, which is not the guest's")) }
    if h.freed[page(pfn)] { trace::fail("no-access-after-unmap", &format!("CPU {cpu} uses page {pfn:#x}, which has been given back")) }
    let g = h.alias[page_at(gfn << 12) as usize] as usize;
    h.accesses += 1;
    h.accessed[g] = h.accesses;
    h.used[page(pfn)] = true;
    if h.word[page(pfn)] != h.written[g] {
        trace::fail("guest-word", &format!("CPU {cpu} finds {} in page {pfn:#x} at gfn {g}, where the guest has written {}", h.word[page(pfn)], h.written[g]))
    }
    if write {
        if h.stable[g] { trace::fail("no-write-after-protect", &format!("CPU {cpu} writes to gfn {g}, which the primary MMU has write-protected")) }
        h.writes += 1;
        h.written[g] = h.writes;
        h.word[page(pfn)] = h.writes;
        h.wrote[page(pfn)] = true;
    }
}

/// The thread is at rest: whoever begins now may know all that it has done.
fn done() {
    step(WORLD, Release);
    let me = st().cur;
    host().busy[me] = false;
    host().rests += 1;
}

fn others_busy() -> bool { (0..st().threads).any(|i| i != st().cur && host().busy[i]) }

/// The guest's page table maps nothing there.
const GUESTS_OWN: i32 = -1;
/// How often a vCPU tries before it does something else.
const TRIES: u32 = 6;

/// The vCPU of this thread accesses a page of the guest: faults are handled, as often as it takes.
/// Whether it came to that: false if others kept it from it.
pub fn vcpu(gfn: u64, write: bool) -> bool {
    let me = st().cur;
    let mut alone = 0;
    // From one try to the next: what another thread begins and ends between two tries counts, too.
    let mut rests = host().rests;
    for tries in 0..TRIES {
        host().busy[me] = true;
        // What the others have done, if they are done, is not overlooked for ever.
        if alone > 0 { step(WORLD, Acquire) }
        let others = others_busy();
        if let Some(enter) = kernel().enter { enter(me as i32); memory::flush() }
        match cpu::access(ipa(gfn), write) {
            Ok(()) => { done(); return true }
            Err(f) => {
                let (kind, level) = match f { Fault::Translation(l) => (4, l), Fault::Access(l) => (8, l), Fault::Permission(l) => (12, l) };
                let other = host().other_level;
                let level = if kind == 12 && other != 0 && (tries == 0 || other == 2 && !kernel().v7_3) { other } else { level };
                if host().late { step(WORLD, Acquire) }
                host().handling[me][gfn as usize] = true;
                let ret = (kernel().fault)(me as i32, ipa(gfn), kind, write as i32, level as i32);
                memory::flush();
                host().handling[me][gfn as usize] = false;
                if ret == GUESTS_OWN { break }
                if ret != 0 { trace::fail("fault-error", &format!("a fault returns {ret} to userspace")) }
            }
        }
        alone = if others || others_busy() || rests != host().rests { 0 } else { alone + 1 };
        rests = host().rests;
        // With nobody else there, one fault for each of mapping, access flag and permission is enough.
        if alone > 3 { trace::fail("livelock", &format!("vCPU {me} faults again and again on gfn {gfn}, and nobody keeps it from it")) }
    }
    done();
    host().gave_up += 1;
    false
}

/* ---- primary MMU ---- */

/// What get_user_pages_fast() and its slow path do: the pfn, and whether it may be written to.
pub extern "C-unwind" fn gup(gfn: u64, write: i32, writable: *mut i32) -> u64 {
    let gfn = page_at(gfn << 12);
    let v = memory::load(at(gfn), 0);
    // The fault has asked: see protect().
    if write != 0 && kernel().v7_3 { host().stable[gfn as usize] = false }
    let fast = v & PTE_VALID != 0 && (write == 0 || v & PTE_WRITE != 0);
    if write == WITHOUT_SLEEPING && !fast { return u64::MAX }
    let found = if fast { v } else { slow(gfn, write != 0) };
    unsafe { *writable = (found & PTE_WRITE != 0) as i32 }
    pfn_of(found)
}

const WITHOUT_SLEEPING: i32 = 2;

/// page_count() of a page of the guest's: 0 if it has been given back.
pub extern "C-unwind" fn page_live(pfn: u64) -> i64 {
    if pfn < FIRST_PFN { return (kernel().page_count)(pfn) as i64 }
    !host().freed[page(pfn)] as i64
}

/// handle_mm_fault(): a new page where there is none, a copy where it is read-only.
fn slow(gfn: u64, write: bool) -> u64 {
    engine::lock(PTL);
    let v = memory::load(at(gfn), 0);
    let found = if v & PTE_VALID == 0 {
        let new = pte(new_page(0), true);
        memory::store(at(gfn), new, memory::RELEASE);
        new
    } else if write && v & PTE_WRITE == 0 {
        engine::unlock(PTL);
        return copy_on_write(gfn);
    } else { v };
    engine::unlock(PTL);
    found
}

/// wp_page_copy()
fn copy_on_write(gfn: u64) -> u64 {
    let (start, end) = (hva(gfn), hva(gfn) + 4096);
    (kernel().range_start)(start, end, RANGE_BLOCKABLE | RANGE_CHANGE_PTE);
    engine::lock(PTL);
    let old = memory::load(at(gfn), 0);
    let ret = if old & PTE_VALID != 0 && old & PTE_WRITE == 0 { change(gfn, old, None, true, true) } else { old };
    engine::unlock(PTL);
    (kernel().range_end)(start, end, RANGE_BLOCKABLE | RANGE_CHANGE_PTE);
    ret
}

fn new_page(word: u64) -> u64 {
    let h = host();
    let pfn = if page(h.next_pfn) < PFNS { h.next_pfn } else {
        FIRST_PFN + BLOCK + h.freed[BLOCK as usize..].iter().position(|f| *f).expect("out of the host's pages") as u64
    };
    h.next_pfn = (h.next_pfn + 1).min(FIRST_PFN + PFNS as u64);
    h.freed[page(pfn)] = false;
    h.word[page(pfn)] = word;
    pfn
}

/// A page is given back: to another owner, which must not find the guest in it.
fn give_back(pfn: u64) {
    step(WORLD, Relaxed);
    if (kernel().x86 || kernel().v7_3) && host().wrote[page(pfn)] && !host().marked[page(pfn)] {
        trace::fail("page-dirty", &format!("page {pfn:#x} is given back, and a write to it has not marked it dirty"))
    }
    host().freed[page(pfn)] = true;
    trace::event(std::ptr::null(), "page given back", 0, pfn, 0);
}

const RANGE_BLOCKABLE: i32 = 1;
const RANGE_CHANGE_PTE: i32 = 2;

/// With the PTL: the PTE is taken out, flushed unless it is PROT_NONE, and set by set_pte_at_notify().
/// `to`: the page that it maps then, None for a copy. Returns the new PTE.
fn change(gfn: u64, old: u64, to: Option<u64>, writable: bool, flush: bool) -> u64 {
    memory::store(at(gfn), 0, memory::RELAXED);
    if flush { memory::fence(memory::FULL) }
    let pfn = to.unwrap_or_else(|| { step(WORLD, Relaxed); new_page(host().word[page(pfn_of(old))]) });
    let new = pte(pfn, writable);
    (kernel().change_pte.unwrap())(hva(gfn), new);
    if writable { host().stable[gfn as usize] = false }
    memory::store(at(gfn), new, memory::RELEASE);
    if pfn_of(old) != pfn { give_back(pfn_of(old)) }
    new
}

/// madvise(MADV_DONTNEED), reclaim: the page goes, what the guest wrote there is forgotten.
/// The log is off: tables become blocks.
pub fn join() {
    host().busy[st().cur] = true;
    (kernel().join.unwrap())();
    memory::flush();
    done();
}
pub fn unmap(gfn: u64) { unmap_range(gfn, 1) }

/// migrate_pages(): what is in these pages moves to others. The range holds more pages, if any.
pub fn migrate(gfns: std::ops::Range<u64>, end: u64) {
    host().busy[st().cur] = true;
    (kernel().range_start)(hva(gfns.start), HVA + end * 4096, RANGE_BLOCKABLE);
    for gfn in gfns.clone() {
        engine::lock(PTL);
        let old = memory::load(at(gfn), 0);
        memory::store(at(gfn), 0, memory::RELAXED);
        memory::fence(memory::FULL);
        step(WORLD, Relaxed);
        memory::store(at(gfn), pte(new_page(host().word[page(pfn_of(old))]), true), memory::RELEASE);
        give_back(pfn_of(old));
        engine::unlock(PTL);
    }
    (kernel().range_end)(hva(gfns.start), HVA + end * 4096, RANGE_BLOCKABLE);
    done();
}

/// The same of `n` pages from `first` on, which follow each other, in one call.
pub fn unmap_range(first: u64, n: u64) {
    let (me, start, end) = (st().cur, hva(first), hva(first) + n * 4096);
    host().busy[me] = true;
    (kernel().range_start)(start, end, RANGE_BLOCKABLE);
    for gfn in first..first + n { take_out(gfn) }
    (kernel().range_end)(start, end, RANGE_BLOCKABLE);
    done();
}

/// The whole memslot goes, in one call.
/// The first two pages, by two calls of which the second one begins and ends while the first one is at work.
pub fn unmap_nested() {
    host().busy[st().cur] = true;
    for gfn in 0..2 { (kernel().range_start)(hva(gfn), hva(gfn) + 4096, RANGE_BLOCKABLE) }
    for gfn in [1, 0] {
        take_out(gfn);
        (kernel().range_end)(hva(gfn), hva(gfn) + 4096, RANGE_BLOCKABLE);
    }
    done();
}
pub fn unmap_slot() {
    let (me, end) = (st().cur, HVA + BLOCK * 4096);
    host().busy[me] = true;
    (kernel().range_start)(HVA, end, RANGE_BLOCKABLE);
    for gfn in 0..GFNS as u64 { take_out(gfn) }
    (kernel().range_end)(HVA, end, RANGE_BLOCKABLE);
    done();
}

/// __split_huge_pmd(), which tells of all of the huge page first.
fn split_huge() {
    (kernel().range_start)(HVA, HVA + BLOCK * 4096, RANGE_BLOCKABLE);
    engine::lock(PTL);
    memory::store(split(), 1, memory::RELAXED);
    memory::fence(memory::FULL);
    engine::unlock(PTL);
    (kernel().range_end)(HVA, HVA + BLOCK * 4096, RANGE_BLOCKABLE);
}

/// A huge page is split for it. Linux 5.10 does not rely on being told of that.
fn take_out(gfn: u64) {
    if kernel().v7_3 && host().thp && !host().quiet && memory::load(split(), memory::RELAXED) == 0 { split_huge() }
    engine::lock(PTL);
    let old = memory::load(at(gfn), 0);
    if host().thp { memory::store(split(), 1, memory::RELAXED) }
    memory::store(at(gfn), 0, memory::RELAXED);
    memory::fence(memory::FULL);
    engine::unlock(PTL);
    if old & PTE_VALID != 0 {
        give_back(pfn_of(old));
        host().written[gfn as usize] = 0;
        host().copied[gfn as usize] = 0;
    }
}

/// KVM write-protects a page, not for the log: the next write has to ask whether the page may be written to.
pub fn protect(gfn: u64) {
    (kernel().protect.unwrap())(ipa(gfn));
    host().stable[gfn as usize] = true;
}

/// KSM, by its own functions: the page is write-protected; then, if `merge`, replaced by another one with the same
/// contents. `flush`: its PTE is not PROT_NONE.
pub fn ksm(gfn: u64, merge: bool, flush: bool) {
    let (me, pfn) = (st().cur, mapped_now(gfn));
    host().busy[me] = true;
    let mut now = 0;
    if pfn != 0 && (kernel().ksm_protect.unwrap())(hva(gfn), at(gfn), pfn, flush as i32, &mut now) == 0 && merge {
        memory::flush();
        // KSM compares the pages now, and finds them the same.
        step(WORLD, Relaxed);
        let new = new_page(host().word[page(pfn)]);
        if (kernel().ksm_replace.unwrap())(hva(gfn), at(gfn), pfn, new, flush as i32, now) != 0 { host().freed[page(new)] = true }
    }
    memory::flush();
    done();
}

fn mapped_now(gfn: u64) -> u64 {
    engine::lock(PTL);
    let v = memory::load(at(gfn), 0);
    engine::unlock(PTL);
    if v & PTE_VALID != 0 { pfn_of(v) } else { 0 }
}

/// What mm/'s functions ask for: see shim/ksm.c.
pub extern "C-unwind" fn call(what: i32, arg: u64) {
    match what {
        0 => engine::lock(PTL),
        1 => engine::unlock(PTL),
        2 => give_back(arg),
        6 => engine::lock(MN),
        7 => engine::unlock(MN),
        4 | 5 => {
            step(WORLD, Relaxed);
            let h = host();
            if arg < FIRST_PFN || page(arg) >= PFNS { trace::fail("wrong-page", &format!("page {arg:#x} is marked, which is not the guest's")) }
            if h.freed[page(arg)] { trace::fail("no-access-after-unmap", &format!("page {arg:#x} is marked, which has been given back")) }
            let folio = if h.thp && page(arg) < BLOCK as usize { 0..BLOCK as usize } else { page(arg)..page(arg) + 1 };
            if what == 4 { h.marked[folio].fill(true) } else { h.young[page(arg)] = true }
        }
        _ => {
            // A PTE is set. What is read-only stays as it is, for as long as it is read-only.
            step(WORLD, Relaxed);
            let n = page_at(arg << 12);
            if !writable(n) { host().stable[n as usize] = true }
        }
    }
}

/// uprobes: whatever is mapped is replaced by a copy that is read-only.
pub fn uprobe(gfn: u64) {
    let (me, start, end) = (st().cur, hva(gfn), hva(gfn) + 4096);
    host().busy[me] = true;
    (kernel().range_start)(start, end, RANGE_BLOCKABLE | RANGE_CHANGE_PTE);
    engine::lock(PTL);
    let old = memory::load(at(gfn), 0);
    if old & PTE_VALID != 0 { change(gfn, old, None, false, true); }
    engine::unlock(PTL);
    (kernel().range_end)(start, end, RANGE_BLOCKABLE | RANGE_CHANGE_PTE);
    done();
}

/* ---- aging ---- */

/// One page of the guest is aged, with the PTL as all callers do. Whether it was young.
pub fn age(gfn: u64, flush: bool) -> bool {
    let me = st().cur;
    host().busy[me] = true;
    engine::lock(PTL);
    let f = if flush { kernel().clear_flush_young } else { kernel().clear_young };
    let young = f(hva(gfn), hva(gfn) + 4096) != 0;
    if flush {
        step(WORLD, Relaxed);
        host().aged[gfn as usize] = host().accesses;
    }
    engine::unlock(PTL);
    done();
    young
}

/// Whether the page is young, without a change.
pub fn test_young(gfn: u64) -> bool {
    engine::lock(PTL);
    let young = (kernel().test_young)(hva(gfn)) != 0;
    engine::unlock(PTL);
    young
}

/// Two pages are aged in one call, as a PMD is. Whether one was young.
pub fn age_two(first: u64) -> bool {
    engine::lock(PTL);
    let young = (kernel().clear_young)(hva(first), hva(first) + 2 * 4096) != 0;
    engine::unlock(PTL);
    done();
    young
}

/// All pages of the memslot are aged in one call. Whether one was young.
pub fn age_slot() -> bool {
    engine::lock(PTL);
    let young = (kernel().clear_young)(HVA, HVA + BLOCK * 4096) != 0;
    engine::unlock(PTL);
    done();
    young
}

/// Whether the guest has accessed the page after it was aged with a flush.
pub fn accessed_since_aged(gfn: usize) -> bool { host().aged[gfn] != 0 && host().accessed[gfn] > host().aged[gfn] }

/* ---- dirty log ---- */

/// Userspace gets the log, and copies the pages that are in it.
pub fn get_log() -> u64 { harvest(|| (kernel().get_log)()) }

/// With manual protection: gets the log, clears all that is in it, then copies.
pub fn get_and_clear_log() -> u64 {
    harvest(|| { let bits = (kernel().get_log)(); (kernel().clear_log)(bits); bits })
}

pub fn log_off() {
    engine::lock(SLOTS);
    (kernel().log)(0);
    memory::flush();
    engine::unlock(SLOTS);
}

/// Userspace says that it has seen all pages, as it must after KVM_DIRTY_LOG_INITIALLY_SET.
pub fn clear_log(mask: u64) { harvest(|| { (kernel().clear_log)(mask); mask }); }

fn harvest(get: impl FnOnce() -> u64) -> u64 {
    let me = st().cur;
    host().busy[me] = true;
    engine::lock(SLOTS);
    step(WORLD, Relaxed);
    // Written before this began, by vCPUs that have nothing left to do: it must be in the log. (Without a
    // common clock nobody could say "before".)
    let h = host();
    let due: Vec<usize> = (0..GFNS).filter(|&g| h.written[g] != h.copied[g] && !h.handling.iter().any(|t| t[g])).collect();
    let bits = get();
    memory::flush();
    step(WORLD, Relaxed);
    if st().eng != Engine::Loom {
        for g in due {
            if bits & 1 << g == 0 && host().written[g] != host().copied[g] {
                trace::fail("no-write-missing", &format!("gfn {g} was written to before the harvest that has just ended, and is not in it"))
            }
        }
    }
    copy(bits);
    engine::unlock(SLOTS);
    done();
    bits
}

/// All pages have been written to disk.
pub fn written_back() { host().wrote.fill(false); host().marked.fill(false) }

/// All pages were found idle.
pub fn found_idle() { host().used.fill(false); host().young.fill(false) }
/// x86: a page that the guest has accessed was marked when it was zapped.
pub fn check_used(pfn: u64) {
    let h = host();
    if h.used[page(pfn)] && !h.young[page(pfn)] { trace::fail("young", &format!("page {pfn:#x} was accessed and then zapped, and not marked")) }
}

/// Userspace has turned the log on, and copies all pages.
pub fn copy_all() {
    step(WORLD, Relaxed);
    copy(u64::MAX);
}

fn copy(bits: u64) {
    let h = host();
    for g in (0..GFNS).filter(|g| bits & 1 << g != 0) { h.copied[g] = h.written[g] }
}

/// All vCPUs have stopped: the last harvest, then userspace has all that the guest has written.
pub fn last_log(manual: bool) {
    if manual { get_and_clear_log() } else { get_log() };
    for g in 0..GFNS {
        let h = host();
        if h.written[g] != h.copied[g] {
            trace::fail("no-write-missing", &format!("gfn {g}: the guest has written {}, userspace's copy has {}", h.written[g], h.copied[g]))
        }
    }
    if get_log() != 0 { trace::fail("progress", "what was cleared is in the log again, and nobody has written") }
}

/// The guest would find what it has written.
pub fn check_words() {
    for g in 0..GFNS as u64 {
        let (pfn, h) = (mapped(g), host());
        if pfn != 0 && h.word[page(pfn)] != h.written[g as usize] {
            trace::fail("guest-word", &format!("gfn {g} holds {}, and the guest has written {}", h.word[page(pfn)], h.written[g as usize]))
        }
    }
}

/// The page that the primary MMU maps, 0 for none.
pub fn mapped(gfn: u64) -> u64 {
    let v = memory::raw(at(gfn));
    if v & PTE_VALID != 0 { pfn_of(v) } else { 0 }
}

pub fn writable(gfn: u64) -> bool { memory::raw(at(gfn)) & PTE_WRITE != 0 }

/// Whether `pfn` is of a huge page that the primary MMU maps as one.
pub extern "C-unwind" fn thp(pfn: u64) -> i32 {
    (host().thp && pfn < FIRST_PFN + BLOCK && memory::load(split(), memory::RELAXED) == 0) as i32
}

pub fn setup_read_only(gfn: u64) { memory::set_raw(at(gfn), memory::raw(at(gfn)) & !PTE_WRITE) }
/// The primary MMU lets a page be written to from now on.
pub fn setup_writable(gfn: u64) { memory::set_raw(at(gfn), memory::raw(at(gfn)) | PTE_WRITE) }
