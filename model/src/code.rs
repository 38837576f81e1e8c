//! The kernel's code, from a library: one for each tree, and for each mistake.

use std::ffi::CString;

pub struct Code {
    pub x86: bool,
    /// Of linux 7.3.
    pub v7_3: bool,
    /// A milestone before the patches that count: only some arms are known to be reached.
    pub no_counts: bool,
    /// arm64, a milestone before entries are locked: what is not valid may have other bits.
    pub invalid_keeps_bits: bool,
    pub arena: usize,
    /// Pages at its beginning that hold struct kvm and what belongs to it.
    pub reserved: usize,
    site: *const *const crate::trace::Site,
    pub vm_init: extern "C-unwind" fn(usize, i32),
    pub log: extern "C-unwind" fn(usize),
    pub wp_memslot: extern "C-unwind" fn(),
    pub topup: extern "C-unwind" fn(i32),
    pub cache_free: extern "C-unwind" fn(i32),
    pub fault: extern "C-unwind" fn(i32, u64, i32, i32, i32) -> i32,
    pub get_log: extern "C-unwind" fn() -> u64,
    pub clear_log: extern "C-unwind" fn(u64),
    pub range_start: extern "C-unwind" fn(u64, u64, i32),
    pub range_end: extern "C-unwind" fn(u64, u64, i32),
    pub change_pte: Option<extern "C-unwind" fn(u64, u64)>,
    pub ksm_protect: Option<extern "C-unwind" fn(u64, usize, u64, i32, *mut u64) -> i32>,
    pub ksm_replace: Option<extern "C-unwind" fn(u64, usize, u64, u64, i32, u64) -> i32>,
    pub clear_flush_young: extern "C-unwind" fn(u64, u64) -> i32,
    pub clear_young: extern "C-unwind" fn(u64, u64) -> i32,
    pub free_pgd: extern "C-unwind" fn(),
    pub pgd: extern "C-unwind" fn() -> usize,
    pub pgt: Option<extern "C-unwind" fn() -> usize>,
    pub ioremap: Option<extern "C-unwind" fn(u64, u64) -> i32>,
    pub notifier_count: extern "C-unwind" fn() -> i64,
    pub page_count: extern "C-unwind" fn(u64) -> u64,
    pub page_init: extern "C-unwind" fn(u64),
    pub arms: extern "C-unwind" fn(*mut u64),
    pub name: extern "C-unwind" fn(usize) -> *const i8,
    pub slot_flags: extern "C-unwind" fn(u32),
    pub test_young: extern "C-unwind" fn(u64) -> i32,
    /// The arms that `arms` counts.
    pub arm_names: Vec<String>,
    /* Of one architecture or kernel: None in the library of another. */
    pub use_rings: Option<extern "C-unwind" fn()>,
    pub eager_split: Option<extern "C-unwind" fn()>,
    pub mode: Option<extern "C-unwind" fn(i32, i32)>,
    pub root: Option<extern "C-unwind" fn(i32) -> usize>,
    pub enter: Option<extern "C-unwind" fn(i32)>,
    pub unload: Option<extern "C-unwind" fn(i32)>,
    pub zap_all: Option<extern "C-unwind" fn()>,
    pub zap_all_fast: Option<extern "C-unwind" fn()>,
    pub zap_range: Option<extern "C-unwind" fn(u64, u64)>,
    pub set_gpte: Option<extern "C-unwind" fn(u64, u64)>,
    pub invlpg: Option<extern "C-unwind" fn(i32, u64)>,
    pub sync: Option<extern "C-unwind" fn(i32)>,
    pub unsync: Option<extern "C-unwind" fn()>,
    pub check: Option<extern "C-unwind" fn() -> *const i8>,
}

impl Code {
    pub fn arch(&self) -> &'static str { if self.x86 { "x86" } else if self.v7_3 { "arm64-v7.3" } else { "arm64" } }
    pub fn site(&self) -> *const crate::trace::Site { unsafe { std::ptr::read_volatile(self.site) } }
}

extern "C" {
    fn dlopen(name: *const i8, flags: i32) -> usize;
    fn dlsym(lib: usize, name: *const i8) -> usize;
}

static mut CODE: *const Code = std::ptr::null();
pub fn code() -> &'static Code { unsafe { &*CODE } }

/// Load the library and bind what it calls; an error is one line.
pub fn open(path: &str) -> Result<(), String> {
    let full = std::fs::canonicalize(path).map_err(|e| format!("{path}: {e}"))?;
    let lib = unsafe { dlopen(CString::new(full.to_str().unwrap()).unwrap().as_ptr(), 2) };
    if lib == 0 { return Err(format!("{path}: cannot be loaded")) }
    let sym = |n: &str| {
        let p = unsafe { dlsym(lib, CString::new(n).unwrap().as_ptr()) };
        if p == 0 { Err(format!("{path} has no {n}: it was made with other shims")) } else { Ok(p) }
    };
    macro_rules! f { ($n:literal) => { unsafe { std::mem::transmute(sym($n)?) } } }
    macro_rules! of_one { ($n:literal) => { match sym($n) { Ok(p) => Some(unsafe { std::mem::transmute(p) }), Err(_) => None } } }
    let arena = sym("s2_arena")?;
    let ops = ops();
    let table = sym("s2")?;
    let reserved = unsafe { *(sym("s2_reserved")? as *const usize) };
    let mut arm_names = vec![];
    let mut name = sym("s2_arm_names")? as *const *const i8;
    unsafe { while !(*name).is_null() { arm_names.push(crate::trace::string(*name)); name = name.add(1) } }
    let code = Code {
        x86: sym("s2_x86").is_ok(), v7_3: sym("s2_v7_3").is_ok(), use_rings: of_one!("s2_use_rings"), eager_split: of_one!("s2_eager_split"), no_counts: sym("s2_no_counts").is_ok(), invalid_keeps_bits: sym("s2_invalid_keeps_bits").is_ok(), arm_names, test_young: f!("s2_test_young"), slot_flags: f!("s2_slot_flags"), mode: of_one!("s2_mode"), root: of_one!("s2_root"),
        enter: of_one!("s2_enter"), unload: of_one!("s2_unload"), zap_all: of_one!("s2_zap_all"), zap_all_fast: of_one!("s2_zap_all_fast"),
        zap_range: of_one!("s2_zap_range"), set_gpte: of_one!("s2_set_gpte"), invlpg: of_one!("s2_invlpg"), sync: of_one!("s2_sync"),
        unsync: of_one!("s2_unsync"), check: of_one!("s2_check"),
        arena, reserved, site: (table + ops.len() * 8) as *const _,
        vm_init: f!("s2_vm_init"), log: f!("s2_log"), wp_memslot: f!("s2_wp_memslot"), topup: f!("s2_topup"),
        cache_free: f!("s2_cache_free"), fault: f!("s2_fault"), get_log: f!("s2_get_log"), clear_log: f!("s2_clear_log"),
        range_start: f!("s2_range_start"), range_end: f!("s2_range_end"), change_pte: of_one!("s2_change_pte"),
        ksm_protect: of_one!("s2_ksm_protect"), ksm_replace: of_one!("s2_ksm_replace"),
        clear_flush_young: f!("s2_clear_flush_young"), clear_young: f!("s2_clear_young"), free_pgd: f!("s2_free_pgd"),
        pgd: f!("s2_pgd"), pgt: of_one!("s2_pgt"), ioremap: of_one!("s2_ioremap"), notifier_count: f!("s2_notifier_count"), page_count: f!("s2_page_count"), page_init: f!("s2_page_init"),
        arms: f!("s2_arms"), name: f!("s2_name"),
    };
    unsafe {
        std::ptr::copy_nonoverlapping(ops.as_ptr(), table as *mut usize, ops.len());
        CODE = Box::into_raw(Box::new(code));
    }
    crate::state::init(arena);
    Ok(())
}

/// As struct s2_ops in shim/kernel.h.
fn ops() -> [usize; 24] {
    use crate::{cpu, engine, host, memory, state, sync, trace};
    [memory::load as usize, memory::store as usize, memory::cas as usize, memory::rmw as usize, memory::fence as usize, memory::plain as usize,
     cpu::dsb as usize, cpu::tlbi as usize, cpu::vmid as usize,
     sync::rcu_read as usize, sync::call_rcu as usize, sync::synchronize_rcu as usize, sync::mmu_lock as usize, sync::held as usize,
     memory::alloc as usize, memory::free as usize, host::gup as usize, host::thp as usize, host::call as usize,
     sync::irq as usize, engine::relax as usize, host::page_live as usize, trace::fail_c as usize, state::cpu as usize]
}
