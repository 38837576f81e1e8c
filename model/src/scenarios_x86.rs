//! What the threads do on x86. A scenario's `x86` says how the VM is made.

use crate::cpu::{self, ADDR, X86_A, X86_W};
use crate::host::{self, GFNS};
use crate::kernel::kernel;
use crate::memory;
use crate::scenarios::*;
use crate::state::{st, PageState};
use crate::trace::fail;

/* As MODE_* in shim/x86.c. The shadow MMU's code with direct pages, if no bit is set. */
const SHADOW: Option<i32> = Some(0);
const TDP: Option<i32> = Some(1);
/// The guest's own page tables are shadowed.
const GUEST: Option<i32> = Some(2);
/// The CPU has no A/D bits.
const SHADOW_NO_AD: Option<i32> = Some(4);
const TDP_NO_AD: Option<i32> = Some(1 | 4);
/// The dirty log clears D, as with PML.
const SHADOW_CLEAR: Option<i32> = Some(8);
const TDP_CLEAR: Option<i32> = Some(1 | 8);
/// Faults map neighbours, too.
const SHADOW_PREFETCH: Option<i32> = Some(16);

const HOST_WRITEABLE: u64 = 1 << 10;
const MMU_WRITEABLE: u64 = 1 << 11;
const GPTE: u64 = host::BASE | 0x67;

/* ---- setting up ---- */

/// A VM is made.
pub fn begin() { unsafe { REPORTED = false; TREE = 0 } }
fn me() -> i32 { st().cur as i32 }
fn w(pte: u64) -> bool { pte & X86_W != 0 }

fn empty() { vm(false) }
/// The caches are empty: tables are allocated by the thread that needs them. The memory is read-only: for memory that may be
/// written to, mmu_need_write_protect() has a barrier.
fn empty_cold() {
    vm(false);
    for g in 0..GFNS as u64 { host::setup_read_only(g) }
    host::host().cold = true;
    for v in 0..2 { (kernel().cache_free)(v) }
}
fn last_page() { vm(false); on(0, || { write(7); read(0) }); cpu::cpus().forget() }
fn forgotten() { page(); cpu::cpus().forget() }
fn logged_page() {
    vm(true);
    on(0, || write(0));
    host::get_log();
    on(0, || read(0));
    let pte = entry(0).0;
    assert!(!w(pte) && pte & MMU_WRITEABLE != 0 && dirty() == 0, "{pte:#x} {}", dirty());
}
fn remembered() { logged_page(); on(0, || write(0)) }
/// With PML: the page is mapped for write, and D is clear since the harvest. It was marked dirty.
fn clean() {
    vm(true);
    on(0, || write(0));
    host::get_log();
    host::written_back();
    memory::set_raw(bitmap(), 1);
    cpu::cpus().forget();
    assert!(w(entry(0).0) && entry(0).0 & cpu::X86_D == 0);
}
/// Without A/D bits: marked as not accessed, by the permissions that were taken away.
fn tracked() { page(); assert!(host::age(0, true)); assert_eq!(entry(0).0 & 7, 0) }
fn tracked_logged() { logged_page(); assert!(host::age(0, true)); assert_eq!(entry(0).0 & 7, 0) }
fn block_logged() {
    block();
    on(1, || read(1));
    (kernel().log)(bitmap());
    (kernel().wp_memslot)();
    on(0, || read(0));
    assert!(!w(entry(0).0) && entry(0).1 == 2);
}
fn merged() { vm(false); host::ksm(0, true, true); on(0, || read(0)); on(1, || read(0)); assert!(!w(entry(0).0)) }
fn merged_logged() { logged_page(); host::ksm(0, true, true); on(0, || read(0)); on(1, || read(0)) }

/// The guest maps its second page where the first is, too. `also`: KVM has mapped both.
fn alias(also: bool) {
    vm(false);
    // What is present would be prefetched.
    for n in 1..8 { set_gpte(n, 0) }
    on(0, || read(0));
    set_gpte(1, GPTE);
    host::host().alias[1] = 0;
    if also { on(0, || read(1)) }
}
/// The last page of the first word of the log is in the log, and mapped for write.
fn last_of_word() {
    vm(true);
    on(0, || write(6));
    host::get_log();
    on(0, || { read(6); write(6) });
    assert!(dirty() >> 63 == 1);
}
/// Nothing in the shadow pages has volatile bits: they are zapped by plain stores.
fn quiet() {
    vm(false);
    for g in 0..GFNS as u64 { host::setup_read_only(g) }
    on(0, || read(1));
}
/// A page that is read-only on the host, and was found idle.
fn quiet_old() {
    vm(false);
    for g in 0..GFNS as u64 { host::setup_read_only(g) }
    on(0, || read(0));
    assert!(host::age(0, true) && is_old(entry(0).0));
    cpu::cpus().forget();
    host::found_idle();
}
/// The guest maps its first page at all its addresses: a chain of three descriptors.
fn many_aliases() {
    vm(false);
    for n in 1..8 { set_gpte(host::ipa(n) / 4096 % 512, 0) }
    on(0, || read(0));
    for n in 1..8 {
        set_gpte(host::ipa(n) / 4096 % 512, GPTE);
        host::host().alias[n as usize] = 0;
        on(0, || read(n));
    }
    (kernel().unsync.unwrap())();
}
/// The guest maps its first page, and the second one read-only.
fn guest_pages() { for n in 1..8 { set_gpte(n, if n == 1 { GPTE & !2 | 1 << 12 } else { 0 }) } }
fn two_aliases_logged() {
    vm(true);
    for n in 1..8 { set_gpte(n, 0) }
    on(0, || write(0));
    set_gpte(1, GPTE);
    host::host().alias[1] = 0;
    on(0, || write(1));
    assert!(w(entry(0).0) && w(entry(1).0) && dirty() == 1);
}
fn one_alias() { alias(false) }
fn two_aliases() { alias(true) }
/// The guest may write to its page table: the shadow page is out of sync.
fn unsync() { vm(false); guest_pages(); on(0, || read(0)); on(1, || read(0)); (kernel().unsync.unwrap())() }
fn unsync_one() { vm(false); on(0, || read(0)); (kernel().unsync.unwrap())() }
fn set_gpte(n: u64, gpte: u64) { (kernel().set_gpte.unwrap())(n, gpte) }
/// Two pages that are young; where the second one's leaf is.
fn tree() {
    two_pages();
    let (mut table, mut at) = ((kernel().pgd)(), 0);
    for level in 0..4 {
        at = table + ((host::ipa(1) >> (12 + 9 * (3 - level))) % 512) as usize * 8;
        table = kernel().arena + (memory::raw(at) & ADDR) as usize;
    }
    unsafe { TREE = at }
}
static mut TREE: usize = 0;

/* ---- looking at it ---- */

/// Whether the leaf says that its page was not accessed.
fn is_old(pte: u64) -> bool { if cpu::cpus().ha { pte & X86_A == 0 } else { pte & 7 == 0 } }

/// What holds after all executions.
pub fn check_always() {
    let bad = (kernel().check.unwrap())();
    if !bad.is_null() { fail("rmap", &crate::trace::string(bad)) }
    if (kernel().notifier_count)() != 0 { fail("notifier-count", "mmu_notifier_count is not back to 0") }
    for g in 0..GFNS as u64 { check_entry(g) }
    host::check_words();
    check_leaks(free);
}

fn check_entry(gva: u64) {
    if (kernel().pgd)() == 0 { return }
    let ((pte, level), gfn) = (entry(gva), host::host().alias[gva as usize]);
    if pte == 0 { return }
    let pfn = ((pte & ADDR) >> 12) + if level == 2 { (host::ipa(gfn) - host::BASE) >> 12 } else { 0 };
    if level < 2 { return }
    if pfn != host::mapped(gfn) { fail("maps-what-the-primary-maps", &format!("gfn {gfn} is mapped to {pfn:#x}, the primary MMU has {:#x}", host::mapped(gfn))) }
    if pte & (X86_W | HOST_WRITEABLE) != 0 && !host::writable(gfn) { fail("maps-what-the-primary-maps", &format!("gfn {gfn} may be written to, but not for the primary MMU")) }
}

/// The VM goes.
fn free() {
    (kernel().free_pgd)();
    for v in 0..4 { (kernel().cache_free)(v) }
}

fn check_log() {
    let (pte, _) = entry(0);
    if w(pte) && dirty() & 1 == 0 { fail("no-write-missing", "gfn 0 is writable and not in the log") }
    host::last_log(false)
}
/// Reclaim takes the page: what was written to it must have marked it dirty.
fn check_dirty() { host::unmap(0) }
fn check_marked_last() {
    if !host::host().young[(host::mapped(7) - host::FIRST_PFN) as usize] { fail("young", "a page that was accessed is zapped, and not marked") }
    host::unmap(7)
}
fn check_used() { host::check_used(host::FIRST_PFN) }
fn check_mapped() { if entry(0).0 & 7 == 0 { fail("progress", "not mapped") } }
fn check_young() {
    let (pte, level) = entry(0);
    if pte != 0 && level == 3 && is_old(pte) && !reported() { fail("young", "the flag is gone, and nobody was told") }
}
fn check_accessed() {
    let (pte, level) = entry(0);
    if pte != 0 && level == 3 && is_old(pte) && host::accessed_since_aged(0) { fail("young", "an access that began after clear_flush_young has left no sign") }
}
/// The guest's first page has another frame now, which nobody has aged.
fn check_other_young() {
    let (pte, level) = entry(0);
    if pte != 0 && level == 3 && (pte & ADDR) >> 12 == host::mapped(2) && is_old(pte) { fail("young", "a page that nobody aged has lost its flag") }
}

/* ---- threads ---- */

fn read_0_1() { read_0(); read_1() }
fn read_7() { read(7) }
/// The descriptor in the middle becomes empty.
fn gone_many() {
    for n in 3..6 { set_gpte(n, 0) }
    (kernel().sync.unwrap())(me());
}
fn zap_all_fast() { (kernel().zap_all_fast.unwrap())() }
fn zap_all() { (kernel().zap_all.unwrap())() }
fn zap_range() { let first = host::BASE >> 12;
    (kernel().zap_range.unwrap())(first, first + 512) }
fn invlpg() { (kernel().invlpg.unwrap())(me(), host::ipa(0)) }
fn invlpg_read() { invlpg(); read_0() }
/// The guest's first page is not mapped any more; then it flushes its TLB.
fn gone_sync() { set_gpte(0, 0); (kernel().sync.unwrap())(me()) }
fn gone_invlpg() { set_gpte(0, 0); invlpg() }
/// The first page gets another frame, and the guest uses it.
fn other_frame() { set_gpte(0, GPTE | 2 << 12); host::host().alias[0] = 2; invlpg(); read_0() }
fn age_0_or_1() {
    let young = host::age(1, false);
    let at = unsafe { TREE };
    if young || host::host().young[(host::mapped(1) - host::FIRST_PFN) as usize] { return }
    if st().page[(at - kernel().arena) / 4096] == PageState::Used && memory::raw(at) & X86_A != 0 {
        fail("young", "a page looks idle while its leaf still says that it was accessed")
    }
}
fn age_invalid() {
    if !host::age(0, false) || is_old(entry(0).0) { fail("young", "a memslot that is going away was aged") }
}

const X: Scenario = Scenario { x86: SHADOW, check: nothing_more, setup: page, ..SHORT };

pub static SCENARIOS: &[Scenario] = &[
    /* the dirty log */
    Scenario { name: "x86-write-harvest", setup: logged_page, threads: &[write_0, harvest], check: check_log, must: &["fast_fixed"], bound: Some(3), ..X },
    Scenario { name: "x86-write-harvest-remembered", setup: remembered, threads: &[write_twice, harvest], check: check_log_all, must: &["fast_fixed"], bound: None, ..X },
    Scenario { name: "x86-write-write-harvest", setup: logged_page, threads: &[write_0, write_0, harvest], check: check_log, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-write-harvest-age", setup: logged_page, threads: &[write_0, harvest, age], check: check_log, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-write-harvest-age-no-ad", x86: SHADOW_NO_AD, ha: false, setup: logged_page, threads: &[write_0, harvest, age], check: check_log, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-tdp-write-harvest", x86: TDP, setup: logged_page, threads: &[write_0, harvest], check: check_log, must: &[], bound: Some(3), ..X },
    Scenario { name: "x86-tdp-write-harvest-age", x86: TDP, setup: logged_page, threads: &[write_0, harvest, age], check: check_log, must: &[], ..X },
    Scenario { name: "x86-tdp-write-harvest-age-no-ad", x86: TDP_NO_AD, ha: false, setup: logged_page, threads: &[write_0, harvest, age], check: check_log, must: &[], ..X },
    Scenario { name: "x86-log-on", setup: page, threads: &[write_0, log_on], check: check_log_all, must: &[], ..X },
    Scenario { name: "x86-log-on-age-no-ad", x86: SHADOW_NO_AD, ha: false, setup: page, threads: &[write_twice, log_on, age], check: check_log_all, must: &[], ..X },
    Scenario { name: "x86-tdp-log-on-age-no-ad", x86: TDP_NO_AD, ha: false, setup: page, threads: &[write_twice, log_on, age], check: check_log_all, must: &[], ..X },
    Scenario { name: "x86-split", thp: true, setup: block_logged, threads: &[write_0, write_1, harvest], check: check_split, must: &[], bound: Some(1), ..X },
    Scenario { name: "x86-tdp-split", x86: TDP, thp: true, setup: block_logged, threads: &[write_0, write_1, harvest], check: check_split, must: &[], bound: Some(1), ..X },
    Scenario { name: "x86-write-harvest-last", setup: last_of_word, threads: &[write_6, harvest], check: check_log_all, must: &[], ..X },
    Scenario { name: "x86-tdp-write-harvest-last", x86: TDP, setup: last_of_word, threads: &[write_6, harvest], check: check_log_all, must: &[], ..X },
    Scenario { name: "x86-rmap-write-harvest", x86: GUEST, setup: two_aliases_logged, threads: &[write_1, harvest], check: check_log_all, must: &[], bound: None, ..X },
    /* fast page faults */
    Scenario { name: "x86-fast-fast", setup: logged_page, threads: &[write_0, write_0], check: check_mapped, must: &["fast_fixed", "fast_spurious"], ..X },
    Scenario { name: "x86-fast-zap", setup: logged_page, threads: &[write_0, zap_all_fast], must: &["fast_fixed", "shadow_zapped"], ..X },
    Scenario { name: "x86-fast-zap-quiet", x86: SHADOW_NO_AD, ha: false, setup: quiet, threads: &[read_0, zap_all_fast], must: &["shadow_zapped"], bound: Some(3), ..X },
    Scenario { name: "x86-fast-unmap", setup: logged_page, threads: &[write_0, unmap], must: &["fast_fixed"], ..X },
    Scenario { name: "x86-fast-ksm", setup: logged_page, threads: &[write_0, ksm_protect], check: check_log_all, must: &["fast_fixed", "change_protected"], ..X },
    Scenario { name: "x86-tracked-read-age", x86: SHADOW_NO_AD, ha: false, setup: tracked, threads: &[read_0, age_flush], check: check_accessed, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-tracked-write-harvest", x86: SHADOW_NO_AD, ha: false, setup: tracked_logged, threads: &[write_0, read_0, harvest], check: check_log, must: &["fast_fixed"], ..X },
    /* the Dirty bit */
    Scenario { name: "x86-dirty-age", x86: SHADOW_CLEAR, setup: clean, threads: &[write_0, age], check: check_dirty, must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-dirty-age", x86: TDP_CLEAR, setup: clean, threads: &[write_0, age], check: check_dirty, must: &[], bound: None, ..X },
    Scenario { name: "x86-dirty-unmap", x86: SHADOW_CLEAR, setup: clean, threads: &[write_0, unmap], check: check_dirty, must: &[], ..X },
    Scenario { name: "x86-tdp-dirty-unmap", x86: TDP_CLEAR, setup: clean, threads: &[write_0, unmap], check: check_dirty, must: &[], ..X },
    Scenario { name: "x86-dirty-harvest", x86: SHADOW_CLEAR, setup: clean, threads: &[write_0, harvest], check: check_dirty, must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-dirty-harvest", x86: TDP_CLEAR, setup: clean, threads: &[write_0, harvest], check: check_dirty, must: &[], bound: None, ..X },
    Scenario { name: "x86-dirty-age-no-ad", x86: SHADOW_NO_AD, ha: false, setup: page, threads: &[write_0, age, unmap], check: check_dirty, must: &[], ..X },
    /* MMU notifiers */
    Scenario { name: "x86-unmap-read", threads: &[read_twice, unmap], must: &["faults_fixed"], ..X },
    Scenario { name: "x86-unmap-map", setup: empty, threads: &[write_0, unmap], must: &["seq_retries"], ..X },
    Scenario { name: "x86-unmap-prefetch", x86: SHADOW_PREFETCH, setup: empty, threads: &[read_1, unmap], must: &["seq_retries"], ..X },
    Scenario { name: "x86-unmap-old", setup: quiet_old, threads: &[read_0, unmap], check: check_used, must: &[], bound: Some(3), ..X },
    Scenario { name: "x86-tdp-unmap-old", x86: TDP, setup: quiet_old, threads: &[read_0, unmap], check: check_used, must: &[], bound: Some(3), ..X },
    Scenario { name: "x86-unmap-walk", setup: forgotten, threads: &[read_twice, unmap], must: &["faults_fixed"], ..X },
    Scenario { name: "x86-tdp-unmap-read", x86: TDP, threads: &[read_twice, unmap], must: &["faults_fixed"], ..X },
    Scenario { name: "x86-tdp-unmap-map", x86: TDP, setup: empty, threads: &[write_0, unmap], must: &["seq_retries"], ..X },
    Scenario { name: "x86-tdp-unmap-one-then-other", x86: TDP, setup: two_pages, threads: &[idle, read_1_twice, unmap_both], must: &[], ..X },
    Scenario { name: "x86-unmap-unmap", setup: page, threads: &[read_0, unmap, unmap], must: &["faults_fixed"], ..X },
    Scenario { name: "x86-tdp-unmap-unmap", x86: TDP, setup: page, threads: &[read_0, unmap, unmap], must: &["faults_fixed"], ..X },
    Scenario { name: "x86-unmap-two", setup: two_pages, threads: &[read_1, unmap_two], must: &[], ..X },
    Scenario { name: "x86-tdp-unmap-two", x86: TDP, setup: two_pages, threads: &[read_1, unmap_two], must: &[], ..X },
    /* aging: rmap chains */
    Scenario { name: "x86-age-read", setup: forgotten, threads: &[read_twice, age_told], check: check_young, must: &[], bound: None, ..X },
    Scenario { name: "x86-age-flush-read", setup: page, threads: &[read_twice, age_flush], check: check_accessed, must: &[], bound: None, ..X },
    Scenario { name: "x86-age-write", setup: logged_page, threads: &[write_0, age_must_be_young], check: check_log, must: &["age_lost"], bound: None, ..X },
    Scenario { name: "x86-rmap-first-age", setup: empty_cold, threads: &[read_0, age_told], check: check_young, must: &["faults_fixed"], bound: None, ..X },
    Scenario { name: "x86-rmap-add-age", x86: GUEST, setup: one_alias, threads: &[read_1, age_must_be_young], must: &["age_waited"], bound: None, ..X },
    Scenario { name: "x86-rmap-remove-age", x86: GUEST, setup: two_aliases, threads: &[gone_sync_alias, age_told], check: check_young, must: &[], bound: None, ..X },
    Scenario { name: "x86-rmap-zap-age", x86: GUEST, setup: two_aliases, threads: &[unmap, age], must: &["age_waited"], ..X },
    Scenario { name: "x86-rmap-many-age", x86: GUEST, setup: many_aliases, threads: &[gone_many, age], must: &[], bound: Some(1), ..X },
    Scenario { name: "x86-rmap-page-age", threads: &[zap_all, age], must: &["shadow_zapped"], bound: None, ..X },
    Scenario { name: "x86-rmap-page-fast-age", threads: &[zap_all_fast, age], must: &["shadow_zapped"], ..X },
    Scenario { name: "x86-rmap-other-age", x86: GUEST, setup: unsync_one, threads: &[other_frame, age], check: check_other_young, must: &[], ..X },
    Scenario { name: "x86-test-young", threads: &[test_young, test_young], check: check_young, must: &[], bound: None, ..X },
    /* aging: the TDP MMU */
    Scenario { name: "x86-tdp-age-read", x86: TDP, setup: forgotten, threads: &[read_twice, age_told], check: check_young, must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-age-flush-read", x86: TDP, setup: page, threads: &[read_twice, age_flush], check: check_accessed, must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-age-write", x86: TDP, setup: logged_page, threads: &[write_0, age_must_be_young], check: check_log, must: &["age_lost"], bound: None, ..X },
    Scenario { name: "x86-tdp-map-age", x86: TDP, setup: empty_cold, threads: &[read_0, age_told], check: check_young, must: &["faults_fixed"], ..X },
    Scenario { name: "x86-tdp-unmap-age", x86: TDP, threads: &[unmap, age], must: &["age_lost"], bound: None, ..X },
    Scenario { name: "x86-tdp-zap-age", x86: TDP, setup: tree, threads: &[zap_range, age_0_or_1], must: &[], bound: Some(3), ..X },
    Scenario { name: "x86-tdp-zap-read", x86: TDP, setup: forgotten, threads: &[read_0_1, zap_range], must: &[], ..X },
    Scenario { name: "x86-tdp-zap-last", x86: TDP, setup: last_page, threads: &[zap_range, read_7], check: check_marked_last, must: &[], ..X },
    Scenario { name: "x86-zap-last", setup: last_page, threads: &[zap_range, read_7], check: check_marked_last, must: &[], ..X },
    Scenario { name: "x86-tdp-split-age", x86: TDP, thp: true, setup: block_logged, threads: &[write_0, age], check: check_split, must: &[], ..X },
    Scenario { name: "x86-tdp-root-age", x86: TDP, setup: tree, threads: &[unload_all, age_0_or_1], must: &[], ..X },
    Scenario { name: "x86-age-two", setup: one_old, threads: &[age_two, idle], must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-age-two", x86: TDP, setup: one_old, threads: &[age_two, idle], must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-test-young", x86: TDP, threads: &[test_young, test_young], check: check_young, must: &[], bound: None, ..X },
    Scenario { name: "x86-tdp-age-invalid", x86: TDP, setup: invalid_slot, threads: &[age_invalid], must: &[], bound: None, ..X },
    /* change_pte */
    Scenario { name: "x86-ksm-write", threads: &[write_0, ksm_protect], must: &["change_protected"], bound: None, ..X },
    Scenario { name: "x86-ksm-merge-read", threads: &[read_twice, ksm_merge], must: &["change_replaced"], ..X },
    Scenario { name: "x86-ksm-map", setup: empty, threads: &[read_0, ksm_no_flush], must: &["seq_retries"], ..X },
    Scenario { name: "x86-ksm-harvest", setup: remembered, threads: &[write_0, ksm_protect, harvest], check: check_log_all, must: &["change_protected"], ..X },
    Scenario { name: "x86-ksm-age", threads: &[read_0, ksm_merge, age], must: &["change_replaced"], ..X },
    Scenario { name: "x86-ksm-block", thp: true, setup: block, threads: &[read_twice, ksm_merge], must: &["change_unmapped"], ..X },
    Scenario { name: "x86-uprobe-read", threads: &[read_twice, uprobe], must: &["change_unmapped"], ..X },
    Scenario { name: "x86-unmap-change", setup: two_pages, threads: &[ksm_merge, unmap], must: &["change_replaced"], ..X },
    Scenario { name: "x86-cow-read", setup: merged, threads: &[write_0, read_twice], must: &["change_replaced"], ..X },
    Scenario { name: "x86-cow-logged", setup: merged_logged, threads: &[write_0, read_twice], check: check_log_all, must: &["change_replaced"], ..X },
    Scenario { name: "x86-tdp-ksm-write", x86: TDP, threads: &[write_0, ksm_protect], must: &["change_protected"], ..X },
    Scenario { name: "x86-tdp-ksm-merge-read", x86: TDP, threads: &[read_twice, ksm_merge], must: &["change_replaced"], ..X },
    Scenario { name: "x86-tdp-ksm-map", x86: TDP, setup: empty, threads: &[read_0, ksm_no_flush], must: &["seq_retries"], ..X },
    Scenario { name: "x86-tdp-ksm-harvest", x86: TDP, setup: remembered, threads: &[write_0, ksm_protect, harvest], check: check_log_all, must: &["change_protected"], ..X },
    Scenario { name: "x86-tdp-ksm-age", x86: TDP, threads: &[read_0, ksm_merge, age], must: &["change_replaced"], ..X },
    Scenario { name: "x86-tdp-cow-read", x86: TDP, setup: merged, threads: &[write_0, read_twice], must: &["change_replaced"], ..X },
    /* the guest's page tables */
    Scenario { name: "x86-invlpg-unmap", x86: GUEST, setup: unsync_one, threads: &[invlpg_read, unmap], must: &[], ..X },
    Scenario { name: "x86-invlpg-ksm", x86: GUEST, setup: unsync_one, threads: &[invlpg_read, ksm_merge], must: &[], ..X },
    Scenario { name: "x86-invlpg-gone", x86: GUEST, setup: unsync, threads: &[gone_invlpg, read_0, unmap], must: &[], ..X },
    Scenario { name: "x86-sync-unmap", x86: GUEST, setup: unsync, threads: &[gone_sync, read_0, unmap], must: &[], bound: Some(1), ..X },
    Scenario { name: "x86-guest-unmap-map", x86: GUEST, setup: empty, threads: &[read_0, unmap], must: &["seq_retries"], ..X },
    /* long ones, for shuttle */
    Scenario { name: "x86-log-long", setup: logged_pages, threads: &[writes, writes, harvests, ages], check: check_log_all, long: true, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-mm-long", setup: logged_pages, threads: &[reads_and_writes, writes, unmaps, ages], check: check_log_all, long: true, must: &["fast_fixed"], ..X },
    Scenario { name: "x86-ksm-long", setup: logged_pages, threads: &[reads_and_writes, writes, ksms, harvests], check: check_log_all, long: true, must: &["change_replaced"], ..X },
    Scenario { name: "x86-tdp-mm-long", x86: TDP, setup: logged_pages, threads: &[reads_and_writes, writes, unmaps, ages], check: check_log_all, long: true, must: &["faults_fixed"], ..X },
    Scenario { name: "x86-tdp-ksm-long", x86: TDP, setup: logged_pages, threads: &[reads_and_writes, writes, ksms, ages], check: check_log_all, long: true, must: &["change_replaced"], ..X },
];

fn gone_sync_alias() { set_gpte(1, 0); (kernel().sync.unwrap())(me()) }
/// All vCPUs leave the root, which is freed with the last one.
fn unload_all() { for v in 0..2 { (kernel().unload.unwrap())(v) } }
