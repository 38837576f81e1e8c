//! mmu_lock and RCU.
//!
//! mmu_lock is a "big reader" lock: each thread has a mutex of its own, to read is to hold it, to
//! write is to hold all. So readers exclude writers and are not ordered among themselves.

use crate::engine::{lock, restart, step, unlock};
use crate::kernel::kernel;
use crate::state::{st, IRQ, MMU, RCU, RCU_READ, THREADS};
use crate::trace;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

type Func = extern "C-unwind" fn(usize);

struct Callback {
    /// The read sections that it waits for: thread, and which of its sections.
    waits: Vec<(usize, u64)>,
    head: usize,
    func: Func,
    /// The thread that has called call_rcu().
    caller: usize,
}

#[derive(Default)]
struct Sync {
    /* Learnt, and kept from one execution to the next. */
    calls_rcu: bool,
    synchronizes: bool,

    /// Of each thread: how deep it is in read sections, and how many it has begun.
    depth: [u32; THREADS + 1],
    sections: [u64; THREADS + 1],
    callbacks: Vec<Callback>,
    writer: Option<usize>,
    reader: [bool; THREADS + 1],
}

static mut SYNC: Option<Sync> = None;
fn sync() -> &'static mut Sync { unsafe { SYNC.get_or_insert_with(Default::default) } }

/// A new execution.
pub fn reset() {
    let s = sync();
    *s = Sync { calls_rcu: s.calls_rcu, synchronizes: s.synchronizes, ..Default::default() }
}

const READ: i32 = 0;
const READ_UNLOCK: i32 = 1;
const WRITE: i32 = 2;

pub extern "C-unwind" fn mmu_lock(what: i32) {
    // What a scope of C holds is given up while the execution that has failed is unwound.
    if std::thread::panicking() { return }
    let (site, me) = (trace::site(), st().cur);
    match what {
        READ => {
            if st().running { lock(MMU + me) }
            sync().reader[me] = true;
            trace::event(site, "read_lock(mmu_lock)", 0, 0, 0);
        }
        READ_UNLOCK => {
            sync().reader[me] = false;
            trace::event(site, "read_unlock(mmu_lock)", 0, 0, 0);
            if st().running { unlock(MMU + me) }
        }
        WRITE => {
            if st().running { for i in 0..writers() { lock(MMU + i) } }
            sync().writer = Some(me);
            trace::event(site, "write_lock(mmu_lock)", 0, 0, 0);
        }
        _ => {
            sync().writer = None;
            trace::event(site, "write_unlock(mmu_lock)", 0, 0, 0);
            if st().running { for i in (0..writers()).rev() { unlock(MMU + i) } }
        }
    }
}

/// How many mutexes a writer takes. A spinlock has no readers.
fn writers() -> usize { if kernel().x86 { 1 } else { st().threads } }

/// x86: local_irq_disable(), local_irq_enable(), an IPI to another CPU, which is waited for.
pub extern "C-unwind" fn irq(what: i32, cpu: i32) {
    let (me, cpu) = (st().cur, cpu as usize);
    trace::event(trace::site(), ["irqs off", "irqs on", "IPI"][what as usize], 0, cpu as u64, cpu as u64);
    if !st().running { return }
    match what {
        0 => lock(IRQ + me),
        1 => unlock(IRQ + me),
        _ if cpu != me => { lock(IRQ + cpu); unlock(IRQ + cpu) }
        _ => {}
    }
}

/// lockdep_assert_held_write(), rcu_read_lock_held(), lockdep_is_held()
pub extern "C-unwind" fn held(what: i32) -> i32 {
    let s = st();
    let write = sync().writer == Some(s.cur);
    (match what { 0 => write, 1 => sync().depth[s.cur] > 0, _ => write || sync().reader[s.cur] }) as i32
}

pub extern "C-unwind" fn rcu_read(enter: i32) {
    if std::thread::panicking() { return }
    let me = st().cur;
    if enter != 0 {
        sync().depth[me] += 1;
        if sync().depth[me] > 1 { return }
        if !st().running { return }
        // The mutex is for synchronize_rcu() to wait for, if there is one.
        if sync().synchronizes { lock(RCU_READ + me) }
        // Whoever enters behind a call_rcu() sees what was done before it.
        if sync().calls_rcu { step(RCU + me, Acquire) }
        sync().sections[me] += 1;
    } else {
        sync().depth[me] -= 1;
        if sync().depth[me] > 0 || !st().running { return }
        if sync().calls_rcu {
            step(RCU + me, Relaxed);
            for c in &mut sync().callbacks { c.waits.retain(|w| w.0 != me) }
            run_callbacks();
        }
        if sync().synchronizes { unlock(RCU_READ + me) }
    }
}

/// The callback runs as soon as it may, after the read sections that it finds: one thread after another.
pub extern "C-unwind" fn call_rcu(head: usize, func: Func) {
    let mut waits = vec![];
    if st().running {
        if !sync().calls_rcu { sync().calls_rcu = true; restart() }
        for i in 0..st().threads {
            step(RCU + i, Release);
            if sync().depth[i] > 0 { waits.push((i, sync().sections[i])) }
        }
        // Some of them may have ended since they were looked at.
        waits.retain(|(i, n)| sync().depth[*i] > 0 && sync().sections[*i] == *n);
    }
    let caller = st().cur;
    sync().callbacks.push(Callback { waits, head, func, caller });
    run_callbacks();
}

/// Those whose grace period is over. What they do comes after all that was done, by any thread.
pub fn run_callbacks() {
    if st().in_callback { return }
    crate::memory::flush();
    while let Some(i) = sync().callbacks.iter().position(|c| c.waits.is_empty()) {
        let c = sync().callbacks.remove(i);
        let me = std::mem::replace(&mut st().cur, c.caller);
        st().in_callback = true;
        (c.func)(c.head);
        st().in_callback = false;
        st().cur = me;
    }
}

/// All threads are done.
pub fn finish() {
    for c in &mut sync().callbacks { c.waits.clear() }
    run_callbacks();
    if let Some(i) = sync().depth.iter().position(|d| *d != 0) { trace::fail("rcu", &format!("thread {i} ends in a read section")) }
}

pub extern "C-unwind" fn synchronize_rcu() {
    if !st().running { return }
    if !sync().synchronizes { sync().synchronizes = true; restart() }
    trace::event(trace::site(), "synchronize_rcu()", 0, 0, 0);
    for i in 0..st().threads {
        lock(RCU_READ + i);
        unlock(RCU_READ + i);
    }
}
