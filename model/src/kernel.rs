//! The kernel's code, from a library: what the checker calls of it. `code` loads it.

/// Where the code is that has called the checker.
#[repr(C)]
pub struct Site { pub file: *const i8, pub func: *const i8, pub line: i32 }

pub struct Kernel {
    pub x86: bool,
    /// Of linux 7.3, or of 6.12, whose patches are the same.
    pub v7_3: bool,
    /// Of 6.12.
    pub v6_12: bool,
    /// With the RFC in patches/v7.3/rfc-hw-dirty.
    pub rfc: bool,
    /// A milestone before the patches that count: only some arms are known to be reached.
    pub no_counts: bool,
    /// arm64, a milestone before entries are locked: what is not valid may have other bits.
    pub invalid_keeps_bits: bool,
    pub arena: usize,
    /// Pages at its beginning that hold struct kvm and what belongs to it.
    pub reserved: usize,
    pub site: *const *const Site,
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
    pub protect: Option<extern "C-unwind" fn(u64)>,
    pub join: Option<extern "C-unwind" fn()>,
    pub use_tlb_range: Option<extern "C-unwind" fn(i32)>,
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

impl Kernel {
    pub fn arch(&self) -> &'static str { if self.x86 { "x86" } else if self.rfc { "arm64-v7.3-rfc" } else if self.v6_12 { "arm64-v6.12" } else if self.v7_3 { "arm64-v7.3" } else { "arm64" } }
    pub fn site(&self) -> *const Site { unsafe { std::ptr::read_volatile(self.site) } }
}

static mut KERNEL: *const Kernel = std::ptr::null();
pub fn kernel() -> &'static Kernel { unsafe { &*KERNEL } }
pub fn init(kernel: Kernel) { unsafe { KERNEL = Box::into_raw(Box::new(kernel)) } }
