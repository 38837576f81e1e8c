//! Which arms of the code the executions of a scenario have reached, races lost among them.

use crate::kernel::{kernel, Site};
use crate::trace;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// More than the libraries count.
const MOST: usize = 24;
static COUNTS: Mutex<[u64; MOST]> = Mutex::new([0; MOST]);
static LOST: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

/// An execution is over.
pub fn add() {
    let mut now = [0u64; MOST];
    (kernel().arms)(now.as_mut_ptr());
    let mut all = COUNTS.lock().unwrap();
    for i in 0..MOST { all[i] += now[i] }
}

/// How often an arm was reached in this execution; None if this kernel does not count it.
pub fn now(name: &str) -> Option<u64> {
    let mut now = [0u64; MOST];
    (kernel().arms)(now.as_mut_ptr());
    Some(now[kernel().arm_names.iter().position(|n| *n == name)?])
}

/// A cmpxchg has failed.
pub fn lost(site: *const Site) {
    if crate::state::st().running { *LOST.lock().unwrap().entry(site as usize).or_insert(0) += 1 }
}

/// How often an arm was reached; None if this kernel does not count it: 7.3, or a milestone that lacks it.
pub fn count(name: &str) -> Option<u64> {
    let found = kernel().arm_names.iter().position(|n| *n == name);
    if found.is_none() && !kernel().v7_3 && !kernel().no_counts { panic!("no arm {name}") }
    let i = found?;
    Some(COUNTS.lock().unwrap()[i])
}

pub fn clear() {
    *COUNTS.lock().unwrap() = [0; MOST];
    LOST.lock().unwrap().clear();
}

/// What was reached, for the report.
pub fn reached() -> Vec<String> {
    let counts = COUNTS.lock().unwrap();
    let mut found: Vec<String> = kernel().arm_names.iter().enumerate().filter(|(i, _)| counts[*i] > 0).map(|(_, n)| n.clone()).collect();
    let places: std::collections::BTreeSet<String> = LOST.lock().unwrap().keys().map(|s| format!("lost cmpxchg: {}", trace::place(*s as *const Site))).collect();
    found.extend(places);
    found
}
