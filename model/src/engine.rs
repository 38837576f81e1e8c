//! The engines: what a scheduling point, an atomic word and a lock are in each.
//!
//! All threads are coroutines of one OS thread, and change over in an engine's operations only. So
//! there is nothing to protect here; but `cur` has to be put back behind each of them.

use crate::state::st;
use std::sync::atomic::Ordering::{self, Relaxed};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Engine {
    /// One thread: setting up, and looking at the result.
    Raw,
    /// Every interleaving and every value that C11's relaxed memory lets a load return.
    Loom,
    /// Interleavings, some of them, of sequentially consistent memory.
    Shuttle,
}

pub type Word = loom::sync::atomic::AtomicU64;

pub enum Mutex {
    Loom(Box<loom::sync::Mutex<()>>),
    Shuttle(Box<shuttle::sync::Mutex<()>>),
}

pub enum Guard {
    Loom(#[allow(dead_code)] loom::sync::MutexGuard<'static, ()>),
    Shuttle(#[allow(dead_code)] shuttle::sync::MutexGuard<'static, ()>),
}

/// Restart the search: something has been learnt that each of its executions has to begin with.
pub fn restart() { if st().eng == Engine::Loom { panic!("RESTART") } }

/// Words that no address has.
pub const WORLD: usize = 0;
pub const RCU: usize = 1;
pub const EXTRA: usize = RCU + crate::state::THREADS;

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
    crate::memory::flush();
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

/// Mutexes: a thread's own of mmu_lock (to write is to take all of them, so that readers are not
/// ordered among themselves), a thread's own that RCU's readers hold, the page-table lock.
pub const MMU: usize = 0;
pub const RCU_READ: usize = MMU + crate::state::THREADS;
pub const PTL: usize = RCU_READ + crate::state::THREADS;
pub const SLOTS: usize = PTL + 1;
/// A CPU that has its interrupts off: an IPI waits for it.
pub const IRQ: usize = SLOTS + 1;
/// That of kvm->mn_active_invalidate_count.
pub const MN: usize = IRQ + crate::state::THREADS;
pub const MUTEXES: usize = MN + 1;

pub fn lock(id: usize) {
    if !st().running { return }
    crate::memory::flush();
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
    crate::memory::flush();
    let me = st().cur;
    let guard = st().guards[id].take();
    drop(guard);
    st().cur = me;
}

/// The thread waits for another one in a loop.
pub extern "C-unwind" fn relax() {
    if !st().running { crate::trace::fail("warn", "one thread alone waits for another") }
    crate::memory::flush();
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
            s.words = s.word_address.iter().map(|a| Word::new(crate::memory::raw(*a))).collect();
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
    crate::cpu::begin();
}

/// There is one thread again, and it sees all that was done.
pub fn end() {
    crate::memory::flush();
    for i in 0..st().words.len() {
        let p: *const Word = &st().words[i];
        let v = on(unsafe { &*p }, |w| w.load(Relaxed));
        crate::memory::set_raw(st().word_address[i], v);
    }
    let s = st();
    s.running = false;
    s.words.clear();
    s.extra.clear();
    s.mutexes.clear();
    s.switch = None;
}
