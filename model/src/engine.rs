//! The engines: what a scheduling point, an atomic word and a lock are in each.
//!
//! All threads are coroutines of one OS thread, and change over in an engine's operations only. So
//! there is nothing to protect here; but `cur` has to be put back behind each of them.

use crate::state::{flush, raw, set_raw, st, Engine, Guard, Mutex, Word, MUTEXES};
use std::sync::atomic::Ordering::{self, Relaxed};

/// Restart the search: something has been learnt that each of its executions has to begin with.
pub fn restart() { if st().eng == Engine::Loom { panic!("RESTART") } }

/// Do `f` on a word of loom's; the thread that goes on is the one that was here.
pub fn on<T>(word: &Word, f: impl FnOnce(&Word) -> T) -> T {
    let me = st().cur;
    // The vector of words does not change while threads run.
    let word: *const Word = word;
    let ret = f(unsafe { &*word });
    st().cur = me;
    ret
}

/// A scheduling point of shuttle's.
pub fn switch() {
    let me = st().cur;
    let p: *const shuttle::sync::atomic::AtomicU64 = st().switch.as_ref().unwrap();
    unsafe { &*p }.load(Ordering::SeqCst);
    st().cur = me;
}

/// A step on one of the words that no address has: what is done next, up to the next operation, is
/// done at this step, for all threads that take such steps. `order` is what it orders besides.
pub fn step(extra: usize, order: Ordering) {
    if !st().running { return }
    flush();
    st().ops += 1;
    match st().eng {
        Engine::Loom => {
            if !st().extra_used[extra] { st().extra_used[extra] = true; restart() }
            let p: *const Word = st().extra[extra].as_ref().unwrap();
            on(unsafe { &*p }, |w| w.fetch_add(1, order));
        }
        Engine::Shuttle => { switch(); }
        Engine::Raw => {}
    }
}

pub fn lock(id: usize) {
    if !st().running { return }
    flush();
    st().ops += 1;
    let me = st().cur;
    if !st().mutex_used[id] { st().mutex_used[id] = true; restart() }
    let m: &'static Mutex = unsafe { &*(st().mutexes[id].as_ref().unwrap() as *const _) };
    let guard = match m {
        Mutex::Loom(m) => Guard::Loom(m.lock().unwrap()),
        Mutex::Shuttle(m) => Guard::Shuttle(m.lock().unwrap()),
    };
    st().cur = me;
    st().guards[id] = Some(guard);
}

pub fn unlock(id: usize) {
    if !st().running { return }
    flush();
    let me = st().cur;
    let guard = st().guards[id].take();
    drop(guard);
    st().cur = me;
}

/// The thread waits for another one in a loop.
pub extern "C-unwind" fn relax() {
    if !st().running { crate::trace::fail("warn", "one thread alone waits for another") }
    flush();
    st().waits += 1;
    if st().waits > 500 { crate::trace::fail("livelock", "a thread waits for a lock that nobody releases") }
    let me = st().cur;
    if st().eng == Engine::Loom { loom::thread::yield_now() } else { shuttle::thread::yield_now() }
    st().cur = me;
}

/// From here on there is more than one thread.
pub fn begin() {
    let s = st();
    s.first_page = s.next_page;
    match s.eng {
        Engine::Loom => {
            s.words = s.word_address.iter().map(|a| Word::new(raw(*a))).collect();
            s.extra = s.extra_used.iter().map(|u| u.then(|| Word::new(0))).collect();
            s.mutexes = s.mutex_used.iter().map(|u| u.then(|| Mutex::Loom(Box::new(loom::sync::Mutex::new(()))))).collect();
        }
        Engine::Shuttle => {
            s.switch = Some(shuttle::sync::atomic::AtomicU64::new(0));
            s.mutexes = (0..MUTEXES).map(|_| Some(Mutex::Shuttle(Box::new(shuttle::sync::Mutex::new(()))))).collect();
        }
        Engine::Raw => unreachable!(),
    }
    s.running = true;
}

/// There is one thread again, and it sees all that was done.
pub fn end() {
    flush();
    for i in 0..st().words.len() {
        let p: *const Word = &st().words[i];
        let v = on(unsafe { &*p }, |w| w.load(Relaxed));
        set_raw(st().word_address[i], v);
    }
    let s = st();
    s.running = false;
    s.words.clear();
    s.extra.clear();
    s.mutexes.clear();
    s.switch = None;
}
