//! All that the checker knows: of one execution, and what one execution learns for the next.

use crate::engine::{Engine, Guard, Mutex, Word, EXTRA, MUTEXES};
use crate::trace::Event;

pub const PAGES: usize = 160;
pub const WORDS: usize = PAGES * 512;
pub const THREADS: usize = 4;
/// Of State::word: no atomic of loom's stands for this one.
pub const NONE: u32 = u32::MAX;

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
    pub sync: crate::sync::Sync,
    pub cpu: crate::cpu::Cpus,
    pub host: crate::host::Host,
}

static mut STATE: *mut State = std::ptr::null_mut();

pub fn st() -> &'static mut State { unsafe { &mut *STATE } }

pub fn init(arena: usize) {
    let s = State {
        eng: Engine::Raw, running: false, cur: 0, ops: 0, waits: 0, arena,
        readers: vec![0; WORDS], writers: vec![0; WORDS], word: vec![NONE; WORDS], word_address: vec![],
        pointer: vec![false; WORDS], rmw: vec![false; WORDS], extra_used: vec![false; EXTRA],
        mutex_used: vec![false; MUTEXES], discovering: false,
        words: vec![], extra: vec![], mutexes: vec![], guards: (0..MUTEXES).map(|_| None).collect(), switch: None,
        trace: vec![], setting_up: false, plain_write: None, plain_read: vec![], page: [PageState::Fresh; PAGES], next_page: 0, next_of: [0; THREADS], first_page: 0, clean: false,
        sync: Default::default(), cpu: Default::default(), host: Default::default(),
    };
    unsafe { STATE = Box::into_raw(Box::new(s)) }
}

/// The CPU that this thread runs on.
pub extern "C-unwind" fn cpu() -> i32 { st().cur as i32 }

/// A new execution: one thread, memory as it is at boot.
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
    crate::memory::reset();
    s.sync = Default::default();
    s.cpu.reset();
    s.host.reset();
}
