//! Which arms of the code the executions of a scenario have reached, races lost among them.

use crate::trace::{self, Site};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// As s2_arms() in shim/vm.c.
pub const NAMES: [&str; 16] = ["faults_lockless", "faults_parallel", "seq_retries", "blocks_split", "tables_collapsed", "races_lost", "entries_locked",
    "change_replaced", "change_protected", "change_unmapped", "change_overlapped",
    "age_done", "age_lost", "age_unmapped", "age_replaced", "age_late"];

static COUNTS: Mutex<[u64; 16]> = Mutex::new([0; 16]);
static LOST: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

/// An execution is over.
pub fn add() {
    let mut now = [0u64; 16];
    (crate::code::code().arms)(now.as_mut_ptr());
    let mut all = COUNTS.lock().unwrap();
    for i in 0..16 { all[i] += now[i] }
}

/// A cmpxchg has failed.
pub fn lost(site: *const Site) {
    if crate::state::st().running { *LOST.lock().unwrap().entry(site as usize).or_insert(0) += 1 }
}

pub fn count(name: &str) -> u64 {
    let i = NAMES.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no arm {name}"));
    COUNTS.lock().unwrap()[i]
}

pub fn clear() {
    *COUNTS.lock().unwrap() = [0; 16];
    LOST.lock().unwrap().clear();
}

/// What was reached, for the report.
pub fn reached() -> Vec<String> {
    let counts = COUNTS.lock().unwrap();
    let mut found: Vec<String> = (0..16).filter(|i| counts[*i] > 0).map(|i| NAMES[i].to_string()).collect();
    let places: std::collections::BTreeSet<String> = LOST.lock().unwrap().keys().map(|s| format!("lost cmpxchg: {}", trace::place(*s as *const Site))).collect();
    found.extend(places);
    found
}
