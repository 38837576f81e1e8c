//! The memory that the kernel's code works on. A word that threads share is an atomic of loom's;
//! which ones are shared is learnt, and begins the search again.

use crate::engine::{on, restart, switch};
use crate::kernel::kernel;
use crate::state::{st, Engine, PageState, Word, NONE, PAGES, WORDS};
pub use crate::state::{in_arena, raw, set_raw};
use crate::trace;
use std::sync::atomic::Ordering::{self, Relaxed};

/// What memory holds before it is allocated: a thread that reads it came too early.
const POISON: u64 = 0xdead_dead_dead_0000;
pub const RELAXED: i32 = 0;
pub const ACQUIRE: i32 = 1;
pub const RELEASE: i32 = 2;
pub const FULL: i32 = 3;

pub fn reset() {
    let s = st();
    let reserved = kernel().reserved;
    for i in 0..reserved * 512 { set_raw(s.arena + i * 8, 0) }
    for page in reserved..PAGES {
        if s.clean && s.page[page] == PageState::Fresh { continue }
        for i in page * 512..(page + 1) * 512 { set_raw(s.arena + i * 8, POISON) }
    }
    s.clean = true;
    s.next_of = [0; crate::state::THREADS];
    s.first_page = reserved;
    s.page = [PageState::Fresh; PAGES];
    for i in 0..reserved { s.page[i] = PageState::Used }
    s.next_page = reserved;
}

fn order(o: i32) -> Ordering {
    match o { RELAXED => Relaxed, ACQUIRE => Ordering::Acquire, RELEASE => Ordering::Release, _ => unreachable!() }
}

fn index(a: usize) -> usize { (a - st().arena) / 8 }

/// Whether an entry of a page table leads to a table (or is a pointer into the arena).
pub fn is_table(v: u64) -> bool { v & 3 == 3 && v & 0xffff_ffff_f000 != 0 && v & 0xffff_ffff_f000 < (PAGES * 4096) as u64 }

fn check_alive(a: usize) {
    if st().page[(a - st().arena) / 4096] == PageState::Freed { trace::fail("freed-table", "access of a page that is free") }
}

/// A thread accesses a word: with the access of another, one of them writing, it is shared.
pub fn note(a: usize, write: bool) { note_all(std::iter::once(a), write) }

/// The same of several words: they are learnt at the price of one restart.
fn note_all(words: impl Iterator<Item = usize>, write: bool) {
    let (s, mut new) = (st(), false);
    for a in words {
        let (w, bit) = (index(a), 1 << s.cur);
        if write { s.writers[w] |= bit } else { s.readers[w] |= bit }
        if s.word[w] == NONE && s.writers[w] != 0 && (s.readers[w] | s.writers[w]).count_ones() > 1 {
            s.word[w] = s.word_address.len() as u32;
            s.word_address.push(s.arena + w * 8);
            new = true;
        }
    }
    if new { restart() }
}

fn learn(a: usize, is: fn(&mut crate::state::State) -> &mut Vec<bool>) {
    let w = index(a);
    if !is(st())[w] { is(st())[w] = true; if st().word[w] != NONE { restart() } }
}

/// Do `l` on loom's atomic for the address, or `r` on memory. Both return what they found, and
/// what the word has become.
fn access(a: usize, write: bool, walker: bool, l: impl FnOnce(&Word) -> (u64, Option<u64>), r: impl FnOnce(u64) -> (u64, Option<u64>)) -> u64 {
    if !st().running || st().in_callback {
        let (found, new) = r(raw(a));
        if let Some(v) = new { set_raw(a, v) }
        return found;
    }
    if !in_arena(a) || a & 7 != 0 { trace::fail("wild-pointer", "access through a wild pointer") }
    flush();
    // What the CPU's walker finds is looked at when it is known that no TLBI has waited for it.
    if !walker { check_alive(a) }
    note(a, write);
    if write && walker { learn(a, |s| &mut s.rmw) }
    st().ops += 1;
    let (eng, w) = (st().eng, st().word[index(a)]);
    let (found, new) = if eng == Engine::Loom && w != NONE {
        let p: *const Word = &st().words[w as usize];
        on(unsafe { &*p }, l)
    } else {
        if eng == Engine::Shuttle && (w != NONE || st().discovering) { switch() }
        r(raw(a))
    };
    if !walker { check_alive(a) }
    if let Some(v) = new {
        if is_table(v) { learn(a, |s| &mut s.pointer) }
        set_raw(a, v);
        (st().above.stored)(a, v);
    } else {
        (st().above.loaded)(a, found);
    }
    found
}

fn put(w: &Word, a: usize, v: u64, o: Ordering) {
    // Loom lets a store come between the read and the write of somebody's read-modify-write.
    if st().rmw[index(a)] { w.swap(v, o); } else { w.store(v, o) }
}

fn check(v: u64) -> u64 {
    if v == POISON { trace::fail("uninitialised", "read of memory that is not initialised yet") }
    v
}

fn load_order(a: usize, o: i32) -> Ordering {
    if o == ACQUIRE || st().running && in_arena(a) && st().pointer[index(a)] { Ordering::Acquire } else { Relaxed }
}

pub extern "C-unwind" fn load(a: usize, o: i32) -> u64 {
    let site = trace::site();
    let v = access(a, false, false, |w| (w.load(load_order(a, o)), None), |v| (v, None));
    trace::event(site, "load", a, v, v);
    check(v)
}

/// As the CPU's table walker: `latest` if a TLBI has told it not to find an older value.
pub fn walker_load(a: usize, latest: bool) -> u64 {
    if latest {
        if st().running { learn(a, |s| &mut s.rmw) }
        return access(a, false, true, |w| (w.fetch_or(0, load_order(a, 0)), None), |v| (v, None));
    }
    access(a, false, true, |w| (w.load(load_order(a, 0)), None), |v| (v, None))
}

/// The walker checks what it has read when it is sure that the walk counts.
pub fn walker_check(a: usize, v: u64) { check_alive(a); check(v); }

/// The walker sets the access flag: whether the entry was as it had read it.
pub fn walker_cas(a: usize, old: u64, new: u64) -> bool {
    let l = |w: &Word| match w.compare_exchange(old, new, Relaxed, Relaxed) { Ok(v) => (v, Some(new)), Err(v) => (v, None) };
    access(a, true, true, l, |v| (v, (v == old).then_some(new))) == old
}

pub extern "C-unwind" fn store(a: usize, v: u64, o: i32) {
    let site = trace::site();
    access(a, true, false, |w| { put(w, a, v, order(o)); (0, Some(v)) }, |_| (0, Some(v)));
    trace::event(site, if o == RELEASE { "store-release" } else { "store" }, a, v, v)
}

pub extern "C-unwind" fn cas(a: usize, old: u64, new: u64, o: i32) -> u64 {
    let site = trace::site();
    if st().running { learn(a, |s| &mut s.rmw) }
    if o == FULL { fence(FULL) }
    let ord = if o == FULL { Relaxed } else { order(o) };
    let l = |w: &Word| {
        // Loom's compare_exchange() fails on the latest value only. The CPU's may on what a load may see.
        let v = w.load(load_order(a, 0));
        if v != old { return (v, None) }
        match w.compare_exchange(old, new, ord, Relaxed) { Ok(v) => (v, Some(new)), Err(v) => (v, None) }
    };
    let v = access(a, true, false, l, |v| (v, (v == old).then_some(new)));
    if o == FULL { fence(FULL) }
    trace::event(site, if v == old { "cmpxchg" } else { "cmpxchg lost" }, a, v, new);
    if v != old { crate::arms::lost(site) }
    v
}

pub extern "C-unwind" fn rmw(a: usize, what: i32, x: u64, o: i32) -> u64 {
    let site = trace::site();
    let f = move |v: u64| match what { 0 => x, 1 => v | x, 2 => v & !x, _ => v.wrapping_add(x) };
    if st().running { learn(a, |s| &mut s.rmw) }
    if o == FULL { fence(FULL) }
    let ord = if o == FULL { Relaxed } else { order(o) };
    let l = |w: &Word| {
        let v = match what { 0 => w.swap(x, ord), 1 => w.fetch_or(x, ord), 2 => w.fetch_and(!x, ord), _ => w.fetch_add(x, ord) };
        (v, Some(f(v)))
    };
    let v = access(a, true, false, l, |v| (v, Some(f(v))));
    if o == FULL { fence(FULL) }
    trace::event(site, ["xchg", "set bits", "clear bits", "add"][what as usize], a, v, f(v));
    v
}

pub extern "C-unwind" fn fence(o: i32) {
    if !st().running || st().in_callback { return }
    flush();
    if st().eng != Engine::Loom { return }
    let me = st().cur;
    loom::sync::atomic::fence(match o { ACQUIRE => Ordering::Acquire, RELEASE => Ordering::Release, _ => Ordering::SeqCst });
    st().cur = me;
}

/// Before accesses that are not marked. A store is told to the engine when the next operation comes,
/// since it is known what it stored then. For a load, what it may see is put into memory, and is
/// put back when the next comes. No thread runs in between.
pub extern "C-unwind" fn plain(a: usize, n: u64, write: i32) {
    if !st().running || st().in_callback || !in_arena(a) { return }
    flush();
    check_alive(a);
    let words = (a & !7..a + n as usize).step_by(8);
    note_all(words.clone(), write != 0);
    if write != 0 {
        st().plain_write = Some((a & !7, a + n as usize));
        return;
    }
    for t in words {
        if st().word[index(t)] == NONE { continue }
        let seen = access(t, false, false, |w| (w.load(load_order(t, 0)), None), |v| (v, None));
        trace::event(std::ptr::null(), "read", t, seen, seen);
        let latest = raw(t);
        if seen != latest { set_raw(t, seen); st().plain_read.push((t, latest)) }
    }
}

/// Tell the engine of a plain store, take back what a plain load was shown.
pub fn flush() {
    while let Some((a, v)) = st().plain_read.pop() { set_raw(a, v) }
    let Some((a, end)) = st().plain_write.take() else { return };
    let words: Vec<(usize, u64)> = (a..end).step_by(8).filter(|t| st().word[index(*t)] != NONE).map(|t| (t, raw(t))).collect();
    for (t, v) in words {
        let w = st().word[index(t)];
        if st().eng == Engine::Loom {
            let p: *const Word = &st().words[w as usize];
            on(unsafe { &*p }, |w| put(w, t, v, Relaxed));
            set_raw(t, v);
        }
        if is_table(v) { learn(t, |s| &mut s.pointer) }
        (st().above.stored)(t, v);
        trace::event(std::ptr::null(), "write", t, v, v)
    }
}

/// Pages that hold zeros.
pub extern "C-unwind" fn alloc(pages: u64) -> usize {
    let (s, n) = (st(), pages as usize);
    // Each thread has a part of the arena: which page is whose does not depend on the schedule.
    let part = (PAGES - s.first_page) / s.threads.max(1);
    let (next, end) = if s.running { (s.next_of[s.cur].max(s.first_page + s.cur * part), s.first_page + (s.cur + 1) * part) } else { (s.next_page, PAGES) };
    let mut first = next;
    if next + n <= end {
        if s.running { s.next_of[s.cur] = next + n } else { s.next_page = next + n }
    } else {
        // Long runs use pages again.
        assert_eq!(n, 1);
        let free: Vec<usize> = (kernel().reserved..PAGES).filter(|i| s.page[*i] == PageState::Freed).collect();
        if free.is_empty() { trace::fail("out-of-pages", "the model has no page left: a leak, or a scenario that is too long") }
        first = free[s.ops as usize % free.len()];
    }
    for i in first..first + n {
        s.page[i] = PageState::Used;
        (kernel().page_init)(i as u64);
    }
    let a = s.arena + first * 4096;
    plain(a, pages * 4096, 1);
    unsafe { std::ptr::write_bytes(a as *mut u8, 0, n * 4096) }
    if st().running { flush() }
    a
}

pub extern "C-unwind" fn free(a: usize, pages: u64) {
    if !in_arena(a) { trace::fail("wild-pointer", "a page is freed that is none") }
    let site = trace::site();
    for i in 0..pages as usize {
        let page = (a - st().arena) / 4096 + i;
        if st().page[page] != PageState::Used { trace::fail("double-free", "a page is freed twice") }
        let start = st().arena + page * 4096;
        // Loom leaves out orders of operations that have no word in common: freeing has one with
        // every access of the page by others.
        if st().running {
            let others = !(1 << st().cur);
            let touched: Vec<usize> = (start..start + 4096).step_by(8)
                .filter(|t| (st().readers[index(*t)] | st().writers[index(*t)]) & others != 0 || st().word[index(*t)] != NONE).collect();
            for t in &touched { if st().word[index(*t)] == NONE { st().rmw[index(*t)] = true } }
            note_all(touched.iter().copied(), true);
            for t in touched {
                let w = st().word[index(t)];
                if st().eng == Engine::Loom && w != NONE {
                    let p: *const Word = &st().words[w as usize];
                    learn(t, |s| &mut s.rmw);
                    on(unsafe { &*p }, |w| w.fetch_or(0, Relaxed));
                }
            }
            trace::event(site, "free page", start, 0, 0);
            (st().above.freed)(start);
        }
        st().page[page] = PageState::Freed;
    }
}

pub fn assert_sane() { assert!(WORDS == PAGES * 512) }
