//! What the threads do, and what holds when they are done. Thread 0 is vCPU 0, and so on: a thread
//! that has no vCPU has a CPU all the same.

use crate::cpu::{self, AF, DBM, W};
use crate::host::{self, GFNS};
use crate::kernel::kernel;
use crate::memory;
use crate::state::{st, PageState, PAGES};
use crate::trace::fail;

pub struct Scenario {
    pub name: &'static str,
    /// On x86: how the VM is made (MODE_* of shim/x86.c). None: arm64.
    pub x86: Option<i32>,
    /// Of which kernel, on arm64.
    pub on: On,
    /// Whether the CPUs set the access flag; whether the primary MMU has a huge page.
    pub ha: bool,
    pub thp: bool,
    /// arm64, 7.3: whether the CPUs invalidate TLB entries by range.
    pub range: bool,
    pub setup: fn(),
    pub threads: &'static [fn()],
    pub check: fn(),
    /// Arms that must have been reached, or the scenario has shown nothing.
    pub must: &'static [&'static str],
    /// Rounds in a thread: for shuttle, too long for loom.
    pub long: bool,
    /// Loom's preemption bound; None if it is complete within seconds.
    pub bound: Option<usize>,
}

/// Whose code a scenario runs.
#[derive(Clone, Copy, PartialEq)]
pub enum On { Both, V5_10, V7_3, V7_3Alone, Rfc }

impl Scenario {
    /// The libraries that it runs on, as model/runner/source.py calls them.
    pub fn arches(&self) -> &'static [&'static str] {
        match (self.x86, self.on) {
            (Some(_), _) => &["x86"],
            (None, On::Both) => &["arm64", "arm64-v7.3", "arm64-v6.12"],
            (None, On::V5_10) => &["arm64"],
            (None, On::V7_3) => &["arm64-v7.3", "arm64-v6.12"],
            (None, On::V7_3Alone) => &["arm64-v7.3"],
            (None, On::Rfc) => &["arm64-v7.3-rfc"],
        }
    }
}

const VALID: u64 = 1;
const TYPE: u64 = 2;
/// Write-protected for the log, and for nothing else.
fn sw_writable() -> u64 { if kernel().v7_3 { 1 << 57 } else { 1 << 55 } }
fn locked() -> u64 { if kernel().v6_12 { 1 << 10 } else if kernel().v7_3 { 1 << 60 } else { 0xf << 55 } }
const ADDR: u64 = crate::cpu::ADDR;

static mut BITMAP: usize = 0;
pub fn bitmap() -> usize { unsafe { BITMAP } }

/* ---- setting up ---- */

pub fn vm_as(log: bool, manual: bool, writable: bool) {
    unsafe { BITMAP = memory::alloc(1) }
    (kernel().vm_init)(if log { bitmap() } else { 0 }, manual as i32);
    host::setup(writable);
}
pub fn vm(log: bool) {
    vm_as(log, false, true)
}

/// As vCPU `v`.
pub fn on(v: usize, f: impl FnOnce()) {
    let me = st().cur;
    st().cur = v;
    f();
    st().cur = me;
}
pub fn read(gfn: u64) { host::vcpu(gfn, false); }
pub fn write(gfn: u64) { host::vcpu(gfn, true); }

/// A page that was written to and harvested: mapped, write-protected for the log alone. vCPU 0 remembers it so.
fn logged_page() {
    vm(true);
    on(0, || write(0));
    host::get_log();
    on(0, || read(0));
    let pte = entry(0).0;
    assert!(pte & W == 0 && dirty() == 0);
}
fn logged_manual() {
    vm_as(true, true, true);
    on(0, || write(0));
    host::get_and_clear_log();
    on(0, || read(0));
    assert!(entry(0).0 & W == 0 && dirty() == 0);
}
/// All of the log is set, a block is mapped that may be written to (KVM_DIRTY_LOG_INITIALLY_SET).
fn initially_set() {
    vm_as(false, true, true);
    host::host().thp = true;
    on(0, || write(1));
    memory::set_raw(bitmap(), (1 << GFNS) - 1);
    (kernel().log)(bitmap());
    assert_eq!(entry(0).1, 2);
}
fn empty() { vm(false); for v in 0..2 { (kernel().topup)(v) } }
fn empty_logged() { vm(true); for v in 0..2 { (kernel().topup)(v) } }
/// A page that the guest has read, of memory that may be written to: KVM maps it writable at once.
pub fn page() { vm(false); on(0, || read(0)); assert_eq!(entry(0).1, 3) }
/// A page that userspace write-protects: the entry is read-only.
fn page_read_only() { vm_as(false, false, false); on(0, || read(0)); on(1, || read(0)); assert!(entry(0).0 & (W | sw_writable()) == 0) }
fn relaxable() {
    page_read_only();
    host::setup_writable(0);
}
fn relaxable_by_map() { relaxable(); host::host().other_level = 2 }
/// The same, of a page that another vCPU has mapped: this one has no table in its cache. It may be gone when the fault is handled.
fn relaxable_by_map_cold() {
    vm_as(false, false, false);
    on(1, || read(0));
    host::setup_writable(0);
    host::host().other_level = 2;
    host::host().late = true
}
/// What faulted was a page. Now it is a block that is logged.
fn block_was_page() { block_logged(); host::host().other_level = 3 }
pub fn block() { vm(false); host::host().thp = true; on(0, || read(0)); assert_eq!(entry(0).1, 2) }
/// A block, when logging begins: write-protected, faults split it.
fn block_logged() {
    block();
    on(1, || read(1));
    (kernel().log)(bitmap());
    (kernel().wp_memslot)();
    on(0, || read(0));
    on(1, || read(1));
    for v in 0..2 { (kernel().topup)(v) }
    assert!(entry(0).0 & W == 0 && entry(0).1 == 2);
}
/// The same for a host that KVM need not rely on: in a slot that logs faults map pages.
fn block_logged_quiet() { block_logged(); host::host().quiet = true }
/// Pages where a block could be: logging is over, the next fault collapses them.
fn collapsible() {
    vm(true);
    host::host().thp = true;
    on(0, || read(0));
    on(1, || { read(0); read(1) });
    (kernel().log)(0);
    for v in 0..2 { (kernel().topup)(v) }
    assert!(entry(0).1 == 3);
}
/// The same with dirty rings.
fn ring_empty() { vm(true); (kernel().use_rings.unwrap())(); for v in 0..2 { (kernel().topup)(v) } }
fn ring_page() {
    ring_empty();
    on(0, || write(0));
    assert!(host::get_log() == 1);
    on(0, || read(0));
    assert!(entry(0).0 & W == 0 && dirty() == 0);
}
fn ring_remembered() { ring_page(); on(0, || write(0)) }
fn ring_pages() { ring_empty(); for g in 0..3 { on(0, || write(g)) } host::get_log(); }
/// Blocks are split ahead of faults: when the log is turned on; when it is cleared.
/// A block that the log has split, when logging is over.
fn split_before() {
    block_logged();
    on(0, || write(0));
    (kernel().log)(0);
    for v in 0..2 { (kernel().topup)(v) }
    assert!(entry(0).1 == 3);
}
/// The same, and vCPU 1 remembers a page of it.
fn split_remembered() { split_before(); on(1, || read(1)) }
/// The same, and KSM has merged a page of it.
fn split_merged() { split_before(); host::ksm(1, true, true); on(0, || read(1)); assert!(entry(1).1 == 3) }
fn check_pages() { if entry(0).1 != 3 { fail("wrong-page", "a block maps what is not the host's block") } }
fn two_logged() { vm(true); for g in 0..2 { on(0, || write(g)) } }
fn join() { host::join() }
fn unmap_nested() { host::unmap_nested() }
fn block_eager() { block(); (kernel().eager_split.unwrap())() }
fn initially_set_eager() { initially_set(); (kernel().eager_split.unwrap())() }
/// A page that was aged, and whose entry no CPU remembers.
fn two_pages_old() { two_pages(); assert!(host::age(0, true)); cpu::cpus().forget() }
/// Two pages that the log has write-protected; the same where a block could be, when logging is over.
fn logged_two() {
    vm(true);
    for g in 0..2 { on(0, || write(g)) }
    host::get_log();
    for g in 0..2 { on(0, || read(g)) }
}
fn logged_off() {
    logged_two();
    host::host().thp = true;
    (kernel().log)(0);
    for v in 0..2 { (kernel().topup)(v) }
    assert!(entry(0).1 == 3 && entry(0).0 & W == 0);
}
fn collapsible_old() { collapsible(); host::age(0, true); host::age(1, true); cpu::cpus().forget() }
fn page_old() { page(); assert!(host::age(0, true)); cpu::cpus().forget() }
fn merged() { vm(false); host::ksm(0, true, true); on(0, || read(0)); on(1, || read(0)); assert!(entry(0).0 & (W | sw_writable()) == 0) }

/// A page of a slot that logs is write-protected, and not only for the log.
fn protected() { logged_page(); host::protect(0) }
/// vCPU 0 remembers the page as writable, and the log has it.
fn remembered() { logged_page(); on(0, || write(0)) }
fn remembered_manual() { logged_manual(); on(0, || write(0)) }
fn empty_cold() { vm(false) }
pub fn two_pages() { vm(false); on(0, || { read(0); read(1) }); on(1, || { read(0); read(1) }) }
fn two_pages_forgotten() { two_pages(); cpu::cpus().forget() }
fn page_forgotten() { page_young(); cpu::cpus().forget() }
fn block_forgotten() { block_logged(); cpu::cpus().forget() }
fn collapsible_forgotten() { collapsible(); cpu::cpus().forget() }
fn remembered_forgotten() { remembered(); cpu::cpus().forget() }
/// In the log and writable, and not accessed since it was aged.
fn old_and_dirty() { remembered(); assert!(host::age(0, true)); cpu::cpus().forget() }
fn merged_logged() { logged_page(); host::ksm(0, true, true); on(0, || read(0)); on(1, || read(0)) }

/// The RFC: pages that the CPU marks dirty by itself, in a unit that is open. vCPU 0 has read the first.
fn armed_pages(n: u64) {
    vm(true);
    for g in 0..n { on(0, || write(g)) }
    host::get_log();
    on(0, || read(0));
    for g in 0..n { assert!(entry(g).0 & (DBM | W) == DBM && dirty() == 0) }
}
fn armed() { armed_pages(2) }
/// The first and the last of three were written to again.
fn armed_around() { armed_pages(3); for g in [0, 2] { on(0, || write(g)) } assert!(entry(0).0 & W != 0 && entry(1).0 & W == 0 && dirty() == 0) }
/// The next read that finds nothing closes the unit. That CPU may set W by what it remembers.
fn armed_idle() { armed(); host::get_log(); assert!(entry(0).0 & DBM != 0) }
fn armed_idle_stale() { armed_idle(); cpu::cpus().stale_dbm = true }
/// A unit that was closed. A harvest will find four pages dirty, and arm the fifth.
fn arming() {
    armed_pages(5);
    for _ in 0..2 { host::get_log(); }
    assert!(entry(0).0 & DBM == 0);
    for g in 0..4 { on(0, || write(g)) }
    assert!(dirty() == 0xf)
}
fn write_4() { host::vcpu(4, true); }
fn check_armed() { if entry(4).0 & DBM == 0 { fail("progress", "the rest of a unit is not armed") } check_log_all() }
fn migrate() { host::migrate(0..1, 1) }
/// A range that holds all of the table.
fn migrate_table() { host::migrate(0..2, 512) }
/// The guest writes where no fault is handled: memslots that change are not modelled.
fn store_0() { let _ = cpu::access(host::ipa(0), true); }
/// The log ends, and begins again.
fn log_off_on() { host::log_off(); log_on() }

/* ---- looking at it ---- */

pub fn dirty() -> u64 { memory::raw(bitmap()) }

/// The entry for a page at the lowest level there is, and its level.
pub fn entry(gfn: u64) -> (u64, u32) {
    let mut table = (kernel().pgd)();
    for level in if kernel().x86 { 0 } else { 1 }..4 {
        let pte = memory::raw(table + ((host::ipa(gfn) >> (12 + 9 * (3 - level))) as usize % 512) * 8);
        if !cpu::valid(pte) || cpu::leaf(pte, level) { return (pte, level) }
        table = kernel().arena + (pte & ADDR) as usize;
    }
    unreachable!()
}

/// Every table has a reference for each valid entry; no entry is locked, or invalid and not zero.
fn check_table(table: usize, level: u32) {
    let mut valid = 0;
    let number = (table - kernel().arena) / 4096;
    if st().page[number] != PageState::Used { fail("freed-table", "a table that is in use is free") }
    for i in 0..512 {
        let pte = memory::raw(table + i * 8);
        if pte & !AF == locked() { fail("locked-is-released", "an entry is left locked") }
        if pte & VALID == 0 { if pte & !AF != 0 && !kernel().invalid_keeps_bits { fail("locked-is-released", &format!("an invalid entry is {pte:#x}")) } continue }
        valid += 1;
        if level < 3 && pte & TYPE != 0 { check_table(kernel().arena + (pte & ADDR) as usize, level + 1) }
    }
    let count = (kernel().page_count)(number as u64);
    if count != 1 + valid { fail("references", &format!("a table with {valid} valid entries has {count} references")) }
}

/// What holds after all executions, on arm64.
pub fn check_always() {
    let pgt = kernel().pgt.unwrap()();
    if pgt != 0 && st().page[(pgt - kernel().arena) / 4096] == PageState::Freed { fail("freed-table", "mmu->pgt leads to a page table that is free") }
    let gone = pgt == 0;
    if !gone {
        check_table((kernel().pgd)(), 1);
        if (kernel().notifier_count)() != 0 { fail("notifier-count", "mmu_notifier_count is not back to 0") }
        for g in 0..GFNS as u64 { check_entry(g) }
        host::check_words();
    }
    check_leaks(|| (kernel().free_pgd)());
}

/// The entry for a page maps what the primary MMU maps, and lets write to it only what that does.
fn check_entry(gfn: u64) {
    let (pte, level) = entry(gfn);
    if pte & VALID == 0 { return }
    let pfn = ((pte & ADDR) >> 12) + if level == 2 { (host::ipa(gfn) - host::BASE) >> 12 } else { 0 };
    if pfn != host::mapped(gfn) { fail("maps-what-the-primary-maps", &format!("gfn {gfn} is mapped to {pfn:#x}, the primary MMU has {:#x}", host::mapped(gfn))) }
    if pte & (W | sw_writable()) != 0 && !host::writable(gfn) { fail("maps-what-the-primary-maps", &format!("gfn {gfn} may be written to, but not for the primary MMU")) }
}

/// Take everything down: no page is left.
/// `free` frees the page tables.
pub fn check_leaks(free: impl FnOnce()) {
    let freed = |i: usize| st().page[i] == PageState::Freed;
    let before: Vec<bool> = (0..PAGES).map(freed).collect();
    for v in 0..4 { (kernel().cache_free)(v) }
    for i in (0..PAGES).filter(|&i| !before[i] && freed(i)) {
        if !(0..512).all(|e| memory::raw(kernel().arena + i * 4096 + e * 8) == 0) { fail("cache-is-clean", "a table in a cache is not empty") }
        if (kernel().page_count)(i as u64) != 1 { fail("cache-is-clean", "a table in a cache has references") }
    }
    free();
    crate::sync::run_callbacks();
    let left = (kernel().reserved..PAGES).filter(|&i| st().page[i] == PageState::Used).count();
    if left != 2 { fail("leak", &format!("{} pages are left", left as i64 - 2)) }
}

fn check_log() {
    let (pte, _) = entry(0);
    if pte & (W | DBM) == W && dirty() & 1 == 0 { fail("no-write-missing", "gfn 0 is writable and not in the log") }
    host::last_log(false)
}
pub fn check_manual_log() { host::last_log(true) }
/// The harvest splits the block that it has write-protected.
fn check_eager() {
    if entry(0).1 != 3 { fail("progress", "the block is not split") }
    check_manual_log()
}
pub fn nothing_more() {}
/// A vCPU that is not in the guest.
pub fn idle() {}
/// Of 7.3 a vCPU faults again as long as another one is installing a table: it may have given up.
fn check_mapped() { if entry(0).0 & VALID == 0 && host::host().gave_up == 0 { fail("progress", "not mapped") } }
/// No CPU remembers an entry that was not valid: there is nothing to invalidate.
fn check_mapped_no_tlbi() { check_mapped(); if !kernel().v7_3 && cpu::cpus().tlbis > 0 { fail("needless-tlbi", "a fault that found nothing mapped has invalidated") } }
pub fn check_split() {
    if entry(0).1 != 3 { fail("progress", "not split") }
    // None is counted for a fault that is replayed because of an ager.
    if let Some(n) = crate::arms::now("blocks_split") { if n > 1 { fail("progress", &format!("one block was split, and {n} are counted")) } }
    check_log_all()
}
pub fn check_log_all() { host::last_log(false) }
fn check_collapsed() { if entry(0).1 != 2 { fail("progress", "not collapsed") } }

/* ---- threads ---- */

pub fn write_0() { host::vcpu(0, true); }
pub fn write_1() { host::vcpu(1, true); }
pub fn read_0() { host::vcpu(0, false); }
pub fn read_1() { host::vcpu(1, false); }
pub fn read_twice() { read_0(); read_0() }

pub fn harvest() { host::get_log(); }
pub fn harvest_manual() { host::get_and_clear_log(); }
pub fn clear_all() { host::clear_log((1 << GFNS) - 1) }
pub fn age() { host::age(0, false); }
pub fn age_flush() { host::age(0, true); }
pub fn unmap() { host::unmap(0) }
/// Not the first page, which two memslots have: a range that holds it holds all gfns between them, and so the whole block.
fn unmap_1() { host::unmap(1) }
fn unmap_7() { host::unmap(7) }
pub fn ksm_protect() { host::ksm(0, false, true) }
pub fn ksm_merge() { host::ksm(0, true, true) }
pub fn ksm_no_flush() { host::ksm(0, true, false) }
fn teardown() { (kernel().free_pgd)() }
pub fn write_twice() { write_0(); write_0() }
fn write_2() { host::vcpu(2, true); }
pub fn read_write() { read_0(); write_0() }
/// kvm_phys_addr_ioremap(): maps with mmu_lock held for write.
fn ioremap() { assert_eq!((kernel().ioremap.unwrap())(host::ipa(0), host::FIRST_PFN << 12), 0) }
/// The guest accesses what may not be mapped yet; its faults go to nobody.
fn glance_twice() { for _ in 0..2 { let _ = crate::cpu::access(host::ipa(0), false); } }
pub fn read_1_twice() { read_1(); read_1() }
pub fn test_young() { if !host::test_young(0) { fail("young", "test_young does not find the access") } }
fn page_set() { if entry(0).0 & AF == 0 { fail("young", "test_young has taken the flag") } }
fn age_invalid() {
    if !host::age(0, false) || entry(0).0 & AF == 0 { fail("young", "a memslot that is going away was aged") }
}
/// Logging begins: what was written before is copied by userspace.
pub fn log_on() {
    (kernel().log)(bitmap());
    (kernel().wp_memslot)();
    host::copy_all();
    host::get_log();
}
pub fn write_6() { host::vcpu(6, true); }
fn chunk_end() { vm(false); on(0, || { write(5); write(6) }) }
fn write_7() { host::vcpu(7, true); }
fn last_page() { vm(false); on(0, || write(7)) }
fn last_logged_as(manual: bool) {
    vm_as(true, manual, true);
    on(0, || write(7));
    if manual { host::get_and_clear_log(); } else { host::get_log(); }
    on(0, || { read(7); write(7) });
    if !manual { assert!(memory::raw(bitmap() + 56) >> 63 == 1) }
}
fn last_logged() { last_logged_as(false) }
fn last_logged_manual() { last_logged_as(true) }
pub fn invalid_slot() { page(); (kernel().slot_flags)(1 << 16) }
pub fn one_old() { two_pages(); assert!(host::age(0, true)) }
/// Both vCPUs remember the page as the log has write-protected it.
fn logged_page_both() { logged_page(); on(1, || read(0)) }
fn ksm_then() { host::ksm(0, false, true) }
pub fn unmap_two() { host::unmap_range(0, 2) }
pub fn age_two() { if !host::age_two(0) { fail("young", "the second page of a range is young, and is not reported") } }
/// The first and the last page of the memslot are mapped, and one of them was aged.
fn two_ends() { last_page(); on(0, || read(0)) }
fn last_is_old() { two_ends(); assert!(host::age(7, true)) }
fn first_is_old() { two_ends(); assert!(host::age(0, true)) }
fn age_slot() { if !host::age_slot() { fail("young", "a page of the range is young, and is not reported") } }
fn unmap_slot() { host::unmap_slot() }
pub fn unmap_both() { host::unmap(0); host::unmap(1) }
pub fn uprobe() { host::uprobe(0) }
fn check_accessed() {
    let (pte, _) = entry(0);
    if pte & VALID != 0 && pte & AF == 0 && host::accessed_since_aged(0) {
        fail("young", "an access that began after clear_flush_young has left no access flag")
    }
}
/// Nobody but this one ages, and the page is young all the time.
pub fn age_must_be_young() { if !host::age(0, false) { fail("young", "a page whose access flag was set is reported as idle") } }
/// The same of a page that nobody writes to.
fn age_other_must_be_young() { if !host::age(1, false) { fail("young", "a page of a block that is split is reported as idle") } }
/// A write to one page of a block leaves the others mapped.
fn check_kept() {
    for g in 0..GFNS as u64 { if entry(g).0 & VALID == 0 { fail("progress", &format!("gfn {g} is not mapped any more")) } }
    check_split()
}
fn block_told() { unsafe { REPORTED = false } block_logged() }
/// Aged once, by one: if the flag is gone somebody was told.
fn check_young() {
    let (pte, _) = entry(0);
    if pte & VALID != 0 && pte & AF == 0 && !reported() { fail("young", "the access flag is gone, and nobody was told") }
}
pub static mut REPORTED: bool = false;
pub fn reported() -> bool { unsafe { REPORTED } }
pub fn age_told() { if host::age(0, false) { unsafe { REPORTED = true } } }
fn page_young() { unsafe { REPORTED = false } page() }
pub fn ages() { for _ in 0..10 { host::age(0, false); } }
pub fn writes() { for i in 0..20 { host::vcpu(i % 3, true); } }
pub fn reads_and_writes() { for i in 0..20 { host::vcpu(i % 3, i % 2 == 0); } }
pub fn harvests() { for _ in 0..10 { host::get_log(); } }
pub fn unmaps() { for i in 0..8 { host::unmap(i % 3) } }
pub fn ksms() { for i in 0..6 { host::ksm(i % 3, i % 2 == 0, true) } }
pub fn logged_pages() { vm(true); for g in 0..3 { on(0, || write(g)) } host::get_log(); }

pub const SHORT: Scenario = Scenario { name: "", x86: None, on: On::Both, ha: true, thp: false, range: false, setup: empty, threads: &[], check: nothing_more, must: &[], long: false, bound: Some(2) };

pub static SCENARIOS: &[Scenario] = &[
    /* the dirty log */
    Scenario { name: "write-harvest", setup: logged_page, threads: &[write_0, harvest], check: check_log, must: &["faults_lockless"], bound: Some(3), ..SHORT },
    Scenario { name: "write-write-harvest", setup: logged_page, threads: &[write_0, write_0, harvest], check: check_log, must: &["faults_lockless"], ..SHORT },
    Scenario { name: "write-harvest-age", setup: logged_page, threads: &[write_0, harvest, age], check: check_log, must: &["faults_lockless", "age_done"], ..SHORT },
    Scenario { name: "write-clear", setup: logged_manual, threads: &[write_0, harvest_manual], check: check_manual_log, must: &["faults_lockless"], bound: Some(3), ..SHORT },
    Scenario { name: "first-write-harvest", setup: empty_logged, threads: &[write_0, harvest], check: check_log, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "initially-set", thp: true, range: true, setup: initially_set, threads: &[write_0, clear_all], check: check_manual_log, must: &["blocks_split"], bound: None, ..SHORT },
    Scenario { name: "write-harvest-remembered", setup: remembered, threads: &[write_twice, harvest], check: check_log_all, must: &[], bound: Some(3), ..SHORT },
    Scenario { name: "write-clear-remembered", setup: remembered_manual, threads: &[write_twice, harvest_manual], check: check_manual_log, must: &[], bound: Some(3), ..SHORT },
    Scenario { name: "read-then-write", setup: empty_logged, threads: &[read_write, harvest], check: check_log_all, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "log-on", setup: page, threads: &[write_0, log_on], check: check_log_all, must: &[], ..SHORT },
    Scenario { name: "log-on-last", setup: last_page, threads: &[write_7, log_on], check: check_log_all, must: &[], ..SHORT },
    Scenario { name: "log-on-chunk", setup: chunk_end, threads: &[write_6, log_on], check: check_log_all, must: &[], ..SHORT },
    Scenario { name: "write-harvest-last", setup: last_logged, threads: &[write_7, harvest], check: check_log_all, must: &[], ..SHORT },
    Scenario { name: "write-clear-last", setup: last_logged_manual, threads: &[write_7, harvest_manual], check: check_manual_log, must: &[], ..SHORT },
    Scenario { name: "write-write", setup: logged_page_both, threads: &[write_0, write_0], check: check_log_all, must: &["faults_lockless"], bound: Some(3), ..SHORT },
    /* the RFC of a log without exits (patches/v7.3/rfc-hw-dirty) */
    Scenario { name: "dbm-write-harvest", on: On::Rfc, setup: armed, threads: &[write_0, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "dbm-write-write-harvest", on: On::Rfc, setup: armed, threads: &[write_twice, write_0, harvest], check: check_log_all, ..SHORT },
    Scenario { name: "dbm-write-harvest-age", on: On::Rfc, setup: armed, threads: &[write_0, harvest, age], check: check_log_all, must: &["age_done"], ..SHORT },
    Scenario { name: "dbm-write-harvest-no-hd", on: On::Rfc, ha: false, setup: armed, threads: &[write_0, harvest], check: check_log_all, must: &["faults_lockless"], bound: Some(3), ..SHORT },
    Scenario { name: "dbm-write-between", on: On::Rfc, setup: armed_around, threads: &[write_1, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "dbm-write-arm", on: On::Rfc, setup: arming, threads: &[write_4, harvest], check: check_armed, must: &["faults_lockless"], ..SHORT },
    Scenario { name: "dbm-write-close", on: On::Rfc, setup: armed_idle, threads: &[write_0, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "dbm-write-close-stale", on: On::Rfc, setup: armed_idle_stale, threads: &[write_0, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "dbm-write-migrate", on: On::Rfc, setup: armed, threads: &[write_0, migrate], check: check_log_all, ..SHORT },
    Scenario { name: "dbm-write-migrate-harvest", on: On::Rfc, setup: armed, threads: &[write_0, migrate, harvest], check: check_log_all, bound: Some(1), ..SHORT },
    Scenario { name: "dbm-write-migrate-close", on: On::Rfc, setup: armed_idle, threads: &[write_0, migrate, harvest], check: check_log_all, bound: Some(1), ..SHORT },
    Scenario { name: "dbm-write-migrate-table", on: On::Rfc, range: true, setup: armed, threads: &[write_0, migrate_table], check: check_log_all, ..SHORT },
    Scenario { name: "dbm-log-off", on: On::Rfc, setup: armed, threads: &[store_0, log_off_on], check: check_log_all, ..SHORT },
    /* faults */
    Scenario { name: "map-map", setup: empty, threads: &[write_0, write_0], check: check_mapped_no_tlbi, must: &["races_lost"], ..SHORT },
    Scenario { name: "map-near", setup: empty, threads: &[write_0, write_1], check: check_mapped, must: &["races_lost"], ..SHORT },
    Scenario { name: "map-read", setup: empty, threads: &[write_0, read_twice], check: check_mapped, must: &["races_lost"], ..SHORT },
    Scenario { name: "map-later", setup: empty_cold, threads: &[write_0, write_1], check: check_mapped, must: &["races_lost"], ..SHORT },
    Scenario { name: "device-read", on: On::V5_10, setup: empty_cold, threads: &[ioremap, glance_twice], check: nothing_more, must: &[], bound: None, ..SHORT },
    Scenario { name: "relax-relax", setup: relaxable, threads: &[write_0, write_0], check: check_mapped, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "map-same-map", setup: relaxable_by_map, threads: &[write_0, write_0], check: check_mapped, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "relax-age", setup: relaxable, threads: &[write_0, age], check: check_mapped, must: &["faults_parallel", "age_done"], bound: None, ..SHORT },
    Scenario { name: "split-split", thp: true, range: true, setup: block_logged, threads: &[write_0, write_1], check: check_split, must: &["blocks_split", "races_lost"], ..SHORT },
    Scenario { name: "split-read", thp: true, range: true, setup: block_logged, threads: &[write_0, read_1], check: check_split, must: &["blocks_split"], ..SHORT },
    Scenario { name: "split-write-other", thp: true, range: true, setup: block_logged, threads: &[write_0, write_2, harvest], check: check_log_all, must: &["blocks_split"], ..SHORT },
    Scenario { name: "split-late", thp: true, setup: block_was_page, threads: &[write_0, write_1], check: check_split, must: &["blocks_split"], ..SHORT },
    Scenario { name: "split-age", on: On::V5_10, thp: true, setup: block_logged, threads: &[write_0, age_must_be_young], check: check_split, must: &["blocks_split", "age_replaced"], bound: Some(3), ..SHORT },
    Scenario { name: "collapse-read", thp: true, setup: collapsible, threads: &[write_0, read_0], check: check_collapsed, must: &["tables_collapsed"], ..SHORT },
    Scenario { name: "collapse-read-other", thp: true, setup: collapsible, threads: &[write_0, read_1], check: check_collapsed, must: &["tables_collapsed"], ..SHORT },
    Scenario { name: "collapse-age", thp: true, setup: collapsible, threads: &[write_0, age], check: check_collapsed, must: &["tables_collapsed"], bound: Some(3), ..SHORT },
    Scenario { name: "collapse-relax", thp: true, setup: collapsible, threads: &[write_0, write_0], check: check_collapsed, must: &["tables_collapsed"], ..SHORT },
    Scenario { name: "join-write", on: On::V5_10, thp: true, setup: split_before, threads: &[write_1, join], check: check_collapsed, must: &["tables_collapsed"], ..SHORT },
    Scenario { name: "join-read", on: On::V5_10, thp: true, setup: split_before, threads: &[read_twice, join], check: check_collapsed, must: &[], ..SHORT },
    Scenario { name: "join-read-other", on: On::V5_10, thp: true, setup: split_remembered, threads: &[read_1, join], check: check_collapsed, must: &[], ..SHORT },
    Scenario { name: "join-other", on: On::V5_10, thp: true, setup: split_merged, threads: &[read_twice, join], check: check_pages, must: &[], ..SHORT },
    Scenario { name: "join-age", on: On::V5_10, thp: true, setup: split_before, threads: &[age_must_be_young, join], check: check_collapsed, must: &[], ..SHORT },
    Scenario { name: "join-unmap", on: On::V5_10, thp: true, setup: split_before, threads: &[read_1, unmap, join], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "join-protect", on: On::V5_10, thp: true, setup: split_before, threads: &[ksm_protect, join], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "join-merge", on: On::V5_10, thp: true, setup: split_before, threads: &[read_0, ksm_merge, join], check: nothing_more, must: &[], ..SHORT },
    /* aging */
    Scenario { name: "age-read", setup: page_young, threads: &[read_twice, age_told], check: check_young, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "age-flush-read", setup: page_young, threads: &[read_twice, age_flush], check: check_accessed, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "age-read-forgotten", setup: page_forgotten, threads: &[read_twice, age_told], check: check_young, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "age-harvest", setup: old_and_dirty, threads: &[read_0, harvest], check: check_accessed, must: &[], ..SHORT },
    Scenario { name: "age-no-ha", ha: false, setup: page_young, threads: &[read_twice, age_flush], check: check_accessed, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "write-age", setup: logged_page, threads: &[write_0, age_must_be_young], check: check_log, must: &["faults_lockless", "age_done"], bound: Some(3), ..SHORT },
    Scenario { name: "age-slot-first", setup: last_is_old, threads: &[age_slot, idle], check: nothing_more, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "age-slot-last", setup: first_is_old, threads: &[age_slot, idle], check: nothing_more, must: &["age_done"], bound: None, ..SHORT },
    /* MMU notifiers */
    Scenario { name: "unmap-read", setup: page, threads: &[read_twice, unmap], check: nothing_more, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "unmap-map", setup: empty, threads: &[write_0, unmap], check: nothing_more, must: &["faults_parallel", "seq_retries"], bound: Some(3), ..SHORT },
    Scenario { name: "unmap-map-second", setup: empty, threads: &[write_1, unmap_1], check: nothing_more, must: &["seq_retries"], ..SHORT },
    Scenario { name: "unmap-block-map", on: On::V7_3, thp: true, setup: empty, threads: &[write_0, unmap_7], check: nothing_more, must: &["blocks_beside", "seq_retries"], ..SHORT },
    Scenario { name: "unmap-block-map-before", on: On::V7_3, thp: true, setup: empty, threads: &[write_2, unmap_1], check: nothing_more, must: &["blocks_beside", "seq_retries"], ..SHORT },
    Scenario { name: "unmap-logged", setup: logged_page, threads: &[write_0, unmap], check: nothing_more, must: &["faults_lockless"], ..SHORT },
    Scenario { name: "unmap-one-of-two", setup: two_pages, threads: &[read_1, unmap], check: nothing_more, must: &[], bound: None, ..SHORT },
    Scenario { name: "unmap-one-then-other", setup: two_pages, threads: &[idle, read_1_twice, unmap_both], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "unmap-unmap", setup: two_pages, threads: &[read_twice, unmap, unmap], check: nothing_more, must: &["faults_parallel"], ..SHORT },
    Scenario { name: "unmap-two-ranges", on: On::V5_10, setup: two_logged, threads: &[read_1, unmap_nested], check: nothing_more, must: &["faults_parallel"], ..SHORT },
    Scenario { name: "unmap-part-of-block", on: On::V5_10, thp: true, setup: empty, threads: &[write_0, unmap_7], check: nothing_more, must: &["seq_retries"], ..SHORT },
    Scenario { name: "unmap-age", setup: page, threads: &[age, unmap], check: nothing_more, must: &["age_done"], bound: Some(3), ..SHORT },
    Scenario { name: "unmap-relax", setup: relaxable, threads: &[write_0, unmap], check: nothing_more, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "unmap-relax-cold", on: On::V5_10, setup: relaxable_by_map_cold, threads: &[write_0, unmap], check: nothing_more, must: &["faults_parallel"], ..SHORT },
    Scenario { name: "unmap-split", thp: true, setup: block_logged_quiet, threads: &[write_0, unmap], check: nothing_more, must: &["blocks_split"], ..SHORT },
    Scenario { name: "unmap-two", setup: two_pages, threads: &[read_1, unmap_two], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "age-two", setup: one_old, threads: &[age_two, idle], check: nothing_more, must: &["age_done"], bound: None, ..SHORT },
    Scenario { name: "test-young", setup: page, threads: &[test_young, test_young], check: page_set, must: &[], bound: None, ..SHORT },
    Scenario { name: "age-invalid", setup: invalid_slot, threads: &[age_invalid], check: nothing_more, must: &[], bound: None, ..SHORT },
    /* change_pte */
    Scenario { name: "ksm-write", setup: page, threads: &[write_0, ksm_protect], check: nothing_more, must: &["change_protected"], bound: None, on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-logged", setup: logged_page, threads: &[write_0, ksm_protect], check: check_log_all, must: &["change_protected", "faults_lockless"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-write-merge", setup: page, threads: &[write_0, ksm_merge], check: nothing_more, must: &["change_replaced", "change_protected"], on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-merge-logged", setup: logged_page, threads: &[write_0, ksm_merge], check: check_log_all, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-merge-logged-read", setup: logged_page, threads: &[write_0, ksm_merge, read_0], check: check_log_all, must: &["change_replaced"], bound: Some(1), on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-merge-read", setup: page, threads: &[read_twice, ksm_merge], check: nothing_more, must: &["change_replaced"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-map", setup: empty, threads: &[read_0, ksm_no_flush], check: nothing_more, must: &["seq_retries"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-harvest", setup: remembered, threads: &[write_0, ksm_protect, harvest], check: check_log_all, must: &["change_protected"], on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-block", thp: true, setup: block, threads: &[read_twice, ksm_merge], check: nothing_more, must: &["change_unmapped"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-unmap", setup: page, threads: &[read_0, ksm_merge, unmap], check: nothing_more, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    Scenario { name: "ksm-age", setup: page, threads: &[read_0, ksm_merge, age], check: nothing_more, must: &["change_replaced", "age_done"], on: On::V5_10, ..SHORT },
    Scenario { name: "uprobe-read", setup: page, threads: &[read_twice, uprobe], check: nothing_more, must: &["change_unmapped"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "unmap-change", setup: two_pages, threads: &[ksm_merge, unmap], check: nothing_more, must: &["change_replaced"], bound: Some(3), on: On::V5_10, ..SHORT },
    Scenario { name: "cow-logged", setup: merged_logged, threads: &[write_0, read_twice], check: check_log_all, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    Scenario { name: "cow-read", setup: merged, threads: &[write_0, read_twice], check: nothing_more, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    Scenario { name: "cow-cow", setup: merged, threads: &[write_0, write_0], check: nothing_more, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    /* linux 7.3: dirty rings, eager splits, access faults and agers in tables that are freed */
    Scenario { name: "ring-write-harvest", on: On::V7_3, setup: ring_page, threads: &[write_0, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "ring-write-write-harvest", on: On::V7_3, setup: ring_page, threads: &[write_0, write_0, harvest], check: check_log_all, ..SHORT },
    Scenario { name: "ring-write-harvest-remembered", on: On::V7_3, setup: ring_remembered, threads: &[write_twice, harvest], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "ring-first-write-harvest", on: On::V7_3, setup: ring_empty, threads: &[read_write, harvest], check: check_log_all, ..SHORT },
    Scenario { name: "ring-write-harvest-age", on: On::V7_3, setup: ring_remembered, threads: &[write_0, harvest, age], check: check_log_all, ..SHORT },
    Scenario { name: "harvest-age", on: On::V7_3, setup: remembered, threads: &[harvest, age], check: check_log, bound: None, ..SHORT },
    Scenario { name: "harvest-age-read", on: On::V7_3, setup: remembered_forgotten, threads: &[read_0, harvest, age], check: check_log, ..SHORT },
    Scenario { name: "log-on-age", on: On::V7_3, setup: page, threads: &[log_on, age], check: check_log, bound: None, ..SHORT },
    Scenario { name: "age-log-on", on: On::V7_3, setup: page_old, threads: &[read_0, log_on], check: check_accessed, ..SHORT },
    Scenario { name: "split-age-told", on: On::V7_3, thp: true, range: true, setup: block_told, threads: &[write_0, age_told], check: check_young, must: &["age_done"], bound: Some(3), ..SHORT },
    Scenario { name: "split-age-other", on: On::V7_3, thp: true, range: true, setup: block_logged, threads: &[write_0, age_other_must_be_young], check: check_split, bound: Some(3), ..SHORT },
    Scenario { name: "split-keeps", on: On::V7_3, thp: true, range: true, setup: block_logged, threads: &[write_0, read_1], check: check_kept, ..SHORT },
    Scenario { name: "split-read-empty", on: On::V7_3, thp: true, setup: block_logged, threads: &[write_0, read_1], check: check_split, ..SHORT },
    Scenario { name: "unmap-split-kept", on: On::V7_3, thp: true, range: true, setup: block_logged_quiet, threads: &[write_0, unmap_slot], check: nothing_more, ..SHORT },
    Scenario { name: "unmap-table-read", on: On::V7_3, range: true, setup: two_pages, threads: &[read_1, unmap_slot], check: nothing_more, ..SHORT },
    Scenario { name: "unmap-table-write", on: On::V7_3, range: true, setup: logged_two, threads: &[write_0, unmap_slot], check: check_log_all, ..SHORT },
    Scenario { name: "unmap-table-age", on: On::V7_3, range: true, setup: two_pages, threads: &[age, unmap_slot], check: nothing_more, bound: Some(3), ..SHORT },
    Scenario { name: "unmap-table-walk", on: On::V7_3, range: true, setup: two_pages_forgotten, threads: &[read_twice, unmap_slot], check: nothing_more, ..SHORT },
    Scenario { name: "unmap-two-by-range", on: On::V7_3, range: true, setup: two_pages, threads: &[read_1, unmap_two], check: nothing_more, ..SHORT },
    Scenario { name: "eager-split-write", on: On::V7_3, thp: true, setup: block_eager, threads: &[write_0, log_on], check: check_split, ..SHORT },
    Scenario { name: "eager-split-clear", on: On::V7_3, thp: true, setup: initially_set_eager, threads: &[write_0, clear_all], check: check_eager, ..SHORT },
    Scenario { name: "logged-read-write-unmap", on: On::V7_3, setup: empty_logged, threads: &[read_write, unmap], check: nothing_more, ..SHORT },
    Scenario { name: "protect-write", on: On::V7_3Alone, setup: protected, threads: &[write_0, harvest], check: check_log_all, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "access-unmap", on: On::V7_3, ha: false, setup: page_old, threads: &[read_0, unmap], check: nothing_more, bound: Some(3), ..SHORT },
    Scenario { name: "access-unmap-kept", on: On::V7_3, ha: false, setup: two_pages_old, threads: &[read_0, unmap], check: nothing_more, ..SHORT },
    Scenario { name: "unmap-logged-kept", on: On::V7_3, setup: logged_two, threads: &[write_0, unmap], check: check_log_all, bound: Some(3), ..SHORT },
    Scenario { name: "collapse-after-log", on: On::V7_3, thp: true, setup: logged_off, threads: &[write_0, read_1], check: check_collapsed, ..SHORT },
    Scenario { name: "unmap-age-kept", on: On::V7_3, setup: two_pages, threads: &[age, unmap], check: nothing_more, bound: Some(3), ..SHORT },
    Scenario { name: "access-age", on: On::V7_3, ha: false, setup: page_old, threads: &[read_0, age_flush], check: check_accessed, bound: None, ..SHORT },
    Scenario { name: "access-harvest", on: On::V7_3, ha: false, setup: old_and_dirty, threads: &[write_0, harvest], check: check_log, ..SHORT },
    Scenario { name: "access-collapse", on: On::V7_3, ha: false, thp: true, setup: collapsible_old, threads: &[write_0, read_1], check: check_collapsed, ..SHORT },
    Scenario { name: "teardown-teardown", on: On::V7_3, setup: page, threads: &[teardown, teardown], check: nothing_more, ..SHORT },
    Scenario { name: "teardown-teardown-age", on: On::V7_3, setup: page, threads: &[age_flush, teardown, teardown], check: nothing_more, bound: Some(1), ..SHORT },
    Scenario { name: "device-read-bounded", on: On::V7_3, setup: empty_cold, threads: &[ioremap, glance_twice], check: nothing_more, bound: Some(3), ..SHORT },
    /* teardown */
    Scenario { name: "teardown-age", on: On::V5_10, setup: page, threads: &[age_flush, teardown], check: nothing_more, must: &["age_done", "age_late"], bound: None, ..SHORT },
    Scenario { name: "teardown-age-bounded", on: On::V7_3, setup: page, threads: &[age_flush, teardown], check: nothing_more, must: &["age_done", "age_late"], bound: Some(3), ..SHORT },
    Scenario { name: "teardown-unmap", setup: page, threads: &[unmap, teardown], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "teardown-unmap-slot", setup: two_ends, threads: &[unmap_slot, teardown], check: nothing_more, must: &[], ..SHORT },
    Scenario { name: "teardown-change", setup: page, threads: &[ksm_then, teardown], check: nothing_more, must: &[], on: On::V5_10, ..SHORT },
    /* CPUs in the middle of a walk, and more of them */
    Scenario { name: "harvest-walk", setup: remembered_forgotten, threads: &[write_twice, harvest], check: check_log_all, must: &[], bound: Some(3), ..SHORT },
    Scenario { name: "split-walk", thp: true, range: true, setup: block_forgotten, threads: &[write_0, read_1], check: check_split, must: &["blocks_split"], ..SHORT },
    Scenario { name: "collapse-walk", thp: true, setup: collapsible_forgotten, threads: &[write_0, read_1], check: check_collapsed, must: &["tables_collapsed"], ..SHORT },
    Scenario { name: "unmap-walk", setup: page_forgotten, threads: &[read_twice, unmap], check: nothing_more, must: &["faults_parallel"], bound: Some(3), ..SHORT },
    Scenario { name: "ksm-walk", setup: page_forgotten, threads: &[write_0, ksm_merge], check: nothing_more, must: &["change_replaced"], on: On::V5_10, ..SHORT },
    Scenario { name: "unmap-harvest-write", setup: logged_page, threads: &[write_0, unmap, harvest], check: check_log_all, must: &["faults_lockless"], ..SHORT },
    Scenario { name: "collapse-unmap-read", thp: true, setup: collapsible, threads: &[write_0, read_0, unmap], check: nothing_more, must: &["tables_collapsed"], bound: Some(1), ..SHORT },
    Scenario { name: "write-clear-age", setup: logged_manual, threads: &[write_0, harvest_manual, age], check: check_manual_log, must: &["faults_lockless", "age_done"], ..SHORT },
    Scenario { name: "ksm-age-write", setup: logged_page, threads: &[write_0, ksm_protect, age], check: check_log_all, must: &["change_protected"], on: On::V5_10, ..SHORT },
    /* long ones, for shuttle */
    Scenario { name: "log-long", setup: logged_pages, threads: &[writes, writes, harvests, ages], check: check_log_all, long: true, must: &["faults_lockless", "age_done"], ..SHORT },
    Scenario { name: "mm-long", setup: logged_pages, threads: &[reads_and_writes, writes, unmaps, ages], check: check_log_all, long: true, must: &["faults_lockless", "age_done"], ..SHORT },
    Scenario { name: "ring-long", on: On::V7_3, setup: ring_pages, threads: &[writes, writes, harvests, ages], check: check_log_all, long: true, ..SHORT },
    Scenario { name: "ksm-long", setup: logged_pages, threads: &[reads_and_writes, writes, ksms, harvests], check: check_log_all, long: true, must: &["change_replaced"], on: On::V5_10, ..SHORT },
];
