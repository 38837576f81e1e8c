//! What the engine sees of relaxed memory, and what not: known tests on a few words.

use crate::engine;
use crate::memory::{self, ACQUIRE, FULL, RELAXED, RELEASE};
use crate::scenarios::Scenario;
use crate::state::PTL;

static mut X: [usize; 5] = [0; 5];
fn x(i: usize) -> usize { unsafe { X[i] } }
fn setup() { unsafe { let a = memory::alloc(1); for i in 0..5 { X[i] = a + i * 8 } } }
fn get(i: usize) -> u64 { memory::load(x(i), RELAXED) }
fn put(i: usize, v: u64) { memory::store(x(i), v, RELAXED) }
fn locked(f: impl FnOnce()) { engine::lock(PTL); f(); engine::unlock(PTL) }
fn mb() { memory::fence(FULL) }

macro_rules! litmus { ($name:literal, $cond:expr, $($t:expr),*) => {
    Scenario { name: $name, x86: None, on: crate::scenarios::On::Both, ha: false, thp: false, range: false, setup, threads: &[$($t),*], must: &[], long: false, bound: None, check: || {
        let f: fn([u64; 5]) -> bool = $cond;
        if f([0, 1, 2, 3, 4].map(|i| memory::raw(x(i)))) { crate::trace::fail("seen", "the condition is met") }
    } }
} }

impl Scenario { pub fn is_litmus(&self) -> bool { LITMUS.iter().any(|s| std::ptr::eq(s, self)) } }

/* Words 3, 4 are where results go. */
pub static LITMUS: &[Scenario] = &[
    litmus!("SB", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); let r = get(1); put(3, r ^ 1) }, || { put(1, 1); let r = get(0); put(4, r ^ 1) }),
    litmus!("SB+mbs", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); mb(); let r = get(1); put(3, r ^ 1) }, || { put(1, 1); mb(); let r = get(0); put(4, r ^ 1) }),
    litmus!("MP", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); put(1, 1) }, || { let r = get(1); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("MP+rel", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); memory::store(x(1), 1, RELEASE) }, || { let r = get(1); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("MP+rel+rmb", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); memory::store(x(1), 1, RELEASE) },
        || { let r = get(1); memory::fence(ACQUIRE); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("MP+wmb+rmb", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); memory::fence(RELEASE); put(1, 1) },
        || { let r = get(1); memory::fence(ACQUIRE); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("LB", |w| w[3] == 1 && w[4] == 1, || { let r = get(0); put(1, 1); put(3, r) }, || { let r = get(1); put(0, 1); put(4, r) }),
    litmus!("S", |w| w[0] == 2 && w[3] == 1, || { put(0, 2); put(1, 1) }, || { let r = get(1); put(0, 1); put(3, r) }),
    litmus!("2+2W", |w| w[0] == 1 && w[1] == 1, || { put(0, 1); put(1, 2) }, || { put(1, 1); put(0, 2) }),
    litmus!("2+2W+mbs", |w| w[0] == 1 && w[1] == 1, || { put(0, 1); mb(); put(1, 2) }, || { put(1, 1); mb(); put(0, 2) }),
    litmus!("R+mbs", |w| w[1] == 2 && w[4] == 1, || { put(0, 1); mb(); put(1, 1) }, || { put(1, 2); mb(); let r = get(0); put(4, r ^ 1) }),
    litmus!("RWC+mbs", |w| w[3] == 1 && w[4] == 1, || put(0, 1), || { let r = get(0); mb(); let s = get(1); put(3, r & (s ^ 1)) },
        || { put(1, 1); mb(); let r = get(0); put(4, r ^ 1) }),
    litmus!("WRC+rel", |w| w[3] == 1 && w[4] == 1, || put(0, 1), || if get(0) == 1 { memory::store(x(1), 1, RELEASE) },
        || { let r = get(1); memory::fence(ACQUIRE); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("CoRR", |w| w[3] == 1 && w[4] == 1, || put(0, 1), || { let r = get(0); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("RMW-RMW", |w| w[3] == 1 && w[4] == 1, || { memory::rmw(x(0), 0, 1, RELAXED); memory::rmw(x(1), 0, 1, RELAXED); },
        || { let r = memory::rmw(x(1), 0, 2, RELAXED); let s = get(0); put(3, r); put(4, s ^ 1) }),
    litmus!("xchg-xchg", |w| w[3] == 1 && w[4] == 1, || { memory::rmw(x(0), 0, 1, FULL); let r = get(1); put(3, r ^ 1) },
        || { memory::rmw(x(1), 0, 1, FULL); let r = get(0); put(4, r ^ 1) }),
    litmus!("RMW-atomicity", |w| w[0] == 1, || put(0, 2), || { memory::rmw(x(0), 1, 1, RELAXED); }),
    litmus!("CAS-atomicity", |w| w[0] == 1, || put(0, 2), || { memory::cas(x(0), 0, 1, RELAXED); }),
    litmus!("failed-CAS-stale", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); put(1, 1) },
        || { let r = get(1); let s = memory::cas(x(0), 7, 8, RELAXED); put(3, r); put(4, s ^ 1) }),
    litmus!("readers-not-ordered", |w| w[3] == 1 && w[4] == 1, || { crate::sync::mmu_lock(0); put(0, 1); crate::sync::mmu_lock(1); crate::sync::mmu_lock(0); put(1, 1); crate::sync::mmu_lock(1) },
        || { crate::sync::mmu_lock(0); let r = get(1); crate::sync::mmu_lock(1); crate::sync::mmu_lock(0); let s = get(0); crate::sync::mmu_lock(1); put(3, r); put(4, s ^ 1) }),
    litmus!("writer-orders", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); crate::sync::mmu_lock(2); put(1, 1); crate::sync::mmu_lock(3) },
        || { crate::sync::mmu_lock(0); let r = get(1); crate::sync::mmu_lock(1); let s = get(0); put(3, r); put(4, s ^ 1) }),
    /* With one preemption: thread 0 is stopped between its sections. When 1 has ended, 2 goes on, and not 0. */
    litmus!("free-switch", |w| w[3] == 1 && w[4] == 1, || { let mut r = 0; locked(|| r = get(0)); let mut s = 0; locked(|| s = get(1)); put(3, r ^ 1); put(4, s) },
        || locked(|| put(0, 1)), || locked(|| if get(0) == 1 { put(1, 1) })),
    /* Shows nothing. */
    litmus!("no-thread", |_| false,),
    litmus!("RCU-MP", |w| w[3] == 1 && w[4] == 1, || { put(0, 1); crate::sync::synchronize_rcu(); put(1, 1) },
        || { crate::sync::rcu_read(1); let r = get(1); let s = get(0); crate::sync::rcu_read(0); put(3, r); put(4, s ^ 1) }),
];
