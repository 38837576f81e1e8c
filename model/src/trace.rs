//! What happened in an execution, one line an event, and how it failed.

use crate::kernel::{kernel, Site};
use crate::state::{in_arena, st, Event};
use std::sync::Mutex;

pub static FAILED: Mutex<Option<(String, String)>> = Mutex::new(None);

/// Where the code is that has called the checker.
pub fn site() -> *const Site { kernel().site() }

pub fn event(site: *const Site, what: &'static str, at: usize, old: u64, new: u64) {
    let s = st();
    if !s.running && !s.setting_up { return }
    if s.trace.len() < 20_000 { s.trace.push(Event { thread: s.cur, site, what, at, old, new }) }
}

/// The execution breaks the invariant of that name.
pub fn fail(invariant: &str, text: &str) -> ! {
    let mut failed = FAILED.lock().unwrap();
    if failed.is_none() { *failed = Some((invariant.to_string(), text.to_string())) }
    drop(failed);
    panic!("{invariant}: {text}")
}

pub extern "C-unwind" fn fail_c(what: *const i8, file: *const i8, line: i32) {
    fail("warn", &format!("{}:{line}: {}", base(&string(file)), string(what)))
}

pub fn string(p: *const i8) -> String { unsafe { std::ffi::CStr::from_ptr(p) }.to_string_lossy().into_owned() }

fn base(path: &str) -> &str { path.rsplit('/').next().unwrap() }

pub fn place(site: *const Site) -> String {
    if site.is_null() { return String::new() }
    let s = unsafe { &*site };
    format!("{}() {}:{}", string(s.func), base(&string(s.file)), s.line)
}

fn name(at: usize) -> String {
    if at == 0 { return String::new() }
    let p = (kernel().name)(at);
    if !p.is_null() { return string(p) }
    let s = st();
    let (page, entry) = ((at - s.arena) / 4096, (at - s.arena) % 4096 / 8);
    if s.ptes != 0 && (s.ptes - s.arena) / 4096 == page { return format!("primary PTE {entry}") }
    if at & 0xfff == 0 && entry == 0 { return format!("page {page}[0]") }
    format!("page {page}[{entry}]")
}

/// A value: pointers as what they lead to, since the arena is not at the same address each time.
fn hex(v: u64) -> String {
    if in_arena(v as usize) { format!("&{}", name(v as usize)) } else { format!("{v:#x}") }
}

pub fn print() {
    let last = st().trace.len().saturating_sub(400);
    for e in &st().trace[last..] {
        let value = if e.old == e.new { hex(e.old) } else { format!("{} -> {}", hex(e.old), hex(e.new)) };
        println!("  thread {}  {:24} {:22} {value:32} {}", e.thread, e.what, name(e.at), place(e.site));
    }
}
