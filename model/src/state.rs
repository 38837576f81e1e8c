//! All that the checker knows: of one execution, and what one execution learns for the next.

use crate::kernel::Site;

pub const PAGES: usize = 160;
pub const WORDS: usize = PAGES * 512;
pub const THREADS: usize = 4;
/// Of State::word: no atomic of loom's stands for this one.
pub const NONE: u32 = u32::MAX;

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

/// Words that no address has.
pub const WORLD: usize = 0;
pub const RCU: usize = 1;
pub const EXTRA: usize = RCU + THREADS;

/// Mutexes: a thread's own of mmu_lock (to write is to take all of them, so that readers are not
/// ordered among themselves), a thread's own that RCU's readers hold, the page-table lock.
pub const MMU: usize = 0;
pub const RCU_READ: usize = MMU + THREADS;
pub const PTL: usize = RCU_READ + THREADS;
pub const SLOTS: usize = PTL + 1;
/// A CPU that has its interrupts off: an IPI waits for it.
pub const IRQ: usize = SLOTS + 1;
/// That of kvm->mn_active_invalidate_count.
pub const MN: usize = IRQ + THREADS;
pub const MUTEXES: usize = MN + 1;

/// Something that has happened, for the trace.
pub struct Event { pub thread: usize, pub site: *const Site, pub what: &'static str, pub at: usize, pub old: u64, pub new: u64 }

/// What layers call of those above them: `code` says what it is.
pub struct Above {
    /// memory: the engine is told of a plain store, and what a plain load was shown is taken back.
    pub flush: fn(),
    /// cpu: a thread has stored, or loaded, a word; a page is freed.
    pub stored: fn(usize, u64),
    pub loaded: fn(usize, u64),
    pub freed: fn(usize),
    /// host: an access by a translation, in one step with finding it.
    pub guest_access: fn(usize, u64, u64, bool),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PageState { Fresh, Used, Freed }

pub struct State {
    pub eng: Engine,
    pub running: bool,
    pub cur: usize,
    pub ops: u64,
    /// How often threads have waited in a loop, in this execution.
    pub waits: u64,
    pub arena: usize,
    pub above: Above,
    /* Of the scenario. */
    pub threads: usize,
    pub guests: bool,

    /* Learnt, and kept from one execution to the next. */
    /// Which threads read and write a word of the arena (bits), and what loom's atomic for it is.
    pub readers: Vec<u8>,
    pub writers: Vec<u8>,
    pub word: Vec<u32>,
    pub word_address: Vec<usize>,
    /// Words that have led to a table: a load is an acquire load, for the address dependency.
    pub pointer: Vec<bool>,
    /// Words that a read-modify-write operation is done on: a store is an exchange.
    pub rmw: Vec<bool>,
    pub extra_used: Vec<bool>,
    pub mutex_used: Vec<bool>,
    /// Every access is a scheduling point of shuttle's: to learn which words threads share.
    pub discovering: bool,

    /* Of this execution. */
    pub words: Vec<Word>,
    pub extra: Vec<Option<Word>>,
    pub mutexes: Vec<Option<Mutex>>,
    pub guards: Vec<Option<Guard>>,
    pub switch: Option<shuttle::sync::atomic::AtomicU64>,
    pub trace: Vec<Event>,
    /// Not yet at what the scenario is about.
    pub setting_up: bool,
    pub plain_write: Option<(usize, usize)>,
    pub plain_read: Vec<(usize, u64)>,
    pub page: [PageState; PAGES],
    pub next_page: usize,
    pub next_of: [usize; THREADS],
    /// The first page that no one had when the threads began.
    pub first_page: usize,
    pub clean: bool,
    /// A callback of RCU's runs: in one step.
    pub in_callback: bool,
    /// Where the primary MMU's entries are.
    pub ptes: usize,
}

static mut STATE: *mut State = std::ptr::null_mut();

pub fn st() -> &'static mut State { unsafe { &mut *STATE } }

pub fn init(arena: usize, above: Above) {
    let s = State {
        eng: Engine::Raw, running: false, cur: 0, ops: 0, waits: 0, arena, above, threads: 0, guests: false,
        readers: vec![0; WORDS], writers: vec![0; WORDS], word: vec![NONE; WORDS], word_address: vec![],
        pointer: vec![false; WORDS], rmw: vec![false; WORDS], extra_used: vec![false; EXTRA],
        mutex_used: vec![false; MUTEXES], discovering: false,
        words: vec![], extra: vec![], mutexes: vec![], guards: (0..MUTEXES).map(|_| None).collect(), switch: None,
        trace: vec![], setting_up: false, plain_write: None, plain_read: vec![], page: [PageState::Fresh; PAGES], next_page: 0, next_of: [0; THREADS], first_page: 0, clean: false,
        in_callback: false, ptes: 0,
    };
    unsafe { STATE = Box::into_raw(Box::new(s)) }
}

pub fn raw(a: usize) -> u64 { unsafe { std::ptr::read_volatile(a as *const u64) } }
pub fn set_raw(a: usize, v: u64) { unsafe { std::ptr::write_volatile(a as *mut u64, v) } }
pub fn in_arena(a: usize) -> bool { a >= st().arena && a < st().arena + PAGES * 4096 }
/// The engine is told of plain accesses.
pub fn flush() { (st().above.flush)() }

/// The CPU that this thread runs on.
pub extern "C-unwind" fn cpu() -> i32 { st().cur as i32 }

/// A new execution: one thread.
pub fn reset(eng: Engine) {
    let s = st();
    s.eng = eng;
    s.running = false;
    s.cur = 0;
    s.waits = 0;
    // What an execution that failed has left is not to be dropped outside of it.
    std::mem::take(&mut s.words).into_iter().for_each(std::mem::forget);
    std::mem::take(&mut s.extra).into_iter().for_each(std::mem::forget);
    s.guards.iter_mut().for_each(|g| std::mem::forget(g.take()));
    std::mem::take(&mut s.mutexes).into_iter().for_each(std::mem::forget);
    std::mem::forget(s.switch.take());
    s.trace.clear();
    s.setting_up = true;
    s.plain_write = None;
    s.plain_read.clear();
    s.in_callback = false;
    s.ptes = 0;
}
