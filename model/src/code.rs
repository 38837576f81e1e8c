//! Loads the library, one for each tree and each mutant, and binds what it and the lower layers call of the checker.

use crate::kernel::Kernel;
use crate::state::Above;
use std::ffi::CString;

extern "C" {
    fn dlopen(name: *const i8, flags: i32) -> usize;
    fn dlsym(lib: usize, name: *const i8) -> usize;
}

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
    let kernel = Kernel {
        x86: sym("s2_x86").is_ok(), v7_3: sym("s2_v7_3").is_ok(), v6_12: sym("s2_v6_12").is_ok(), rfc: sym("s2_rfc").is_ok(), use_rings: of_one!("s2_use_rings"), eager_split: of_one!("s2_eager_split"), join: of_one!("s2_join"), use_tlb_range: of_one!("s2_use_tlb_range"), protect: of_one!("s2_protect"), no_counts: sym("s2_no_counts").is_ok(), invalid_keeps_bits: sym("s2_invalid_keeps_bits").is_ok(), arm_names, test_young: f!("s2_test_young"), slot_flags: f!("s2_slot_flags"), mode: of_one!("s2_mode"), root: of_one!("s2_root"),
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
    unsafe { std::ptr::copy_nonoverlapping(ops.as_ptr(), table as *mut usize, ops.len()) }
    crate::kernel::init(kernel);
    crate::state::init(arena, above());
    Ok(())
}

/// What layers call of those above them.
fn above() -> Above {
    use crate::{cpu, host, memory};
    Above { flush: memory::flush, stored: cpu::stored, loaded: cpu::loaded, freed: cpu::freed, guest_access: host::guest_access }
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
