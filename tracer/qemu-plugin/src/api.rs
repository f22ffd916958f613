//! The few functions of QEMU's plugin interface (version 1, QEMU 6.0 and later) that are needed, found by name at
//! load time: nothing of QEMU is needed to build or to test, and what is missing is said instead of crashing.

use std::ffi::{CStr, c_char, c_int, c_void};

/// A plugin's number.
pub(crate) type Id = u64;
/// A virtual CPU comes or goes.
pub(crate) type VcpuCallback = extern "C" fn(Id, u32);
/// A block of code was translated.
pub(crate) type TranslationCallback = extern "C" fn(Id, *mut c_void);
/// An instruction accessed memory: virtual CPU, what kind of access, address, and what was registered with it.
pub(crate) type MemoryCallback = extern "C" fn(u32, u32, u64, *mut c_void);
/// An instruction is about to be executed: virtual CPU, and what was registered with it.
pub(crate) type ExecutionCallback = extern "C" fn(u32, *mut c_void);
/// A system call begins: virtual CPU, its number, and its arguments.
pub(crate) type SyscallCallback =
    extern "C" fn(Id, u32, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// A system call returns: virtual CPU, its number, and its result.
pub(crate) type SyscallReturnCallback = extern "C" fn(Id, u32, i64, i64);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback looks at no register.
pub(crate) const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`: loads and stores.
pub(crate) const LOADS_AND_STORES: c_int = 3;

/// Pointers into QEMU.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    pub on_vcpu_init: unsafe extern "C" fn(Id, VcpuCallback),
    pub on_translation: unsafe extern "C" fn(Id, TranslationCallback),
    pub on_syscall: unsafe extern "C" fn(Id, SyscallCallback),
    pub on_syscall_return: unsafe extern "C" fn(Id, SyscallReturnCallback),
    pub on_memory: unsafe extern "C" fn(*mut c_void, MemoryCallback, c_int, c_int, *mut c_void),
    pub on_execution: unsafe extern "C" fn(*mut c_void, ExecutionCallback, c_int, *mut c_void),
    pub block_len: unsafe extern "C" fn(*const c_void) -> usize,
    pub block_instruction: unsafe extern "C" fn(*const c_void, usize) -> *mut c_void,
    pub instruction_data: unsafe extern "C" fn(*const c_void) -> *const u8,
    pub instruction_len: unsafe extern "C" fn(*const c_void) -> usize,
    pub instruction_address: unsafe extern "C" fn(*const c_void) -> u64,
    pub instruction_host_address: unsafe extern "C" fn(*const c_void) -> u64,
    pub size_log2: unsafe extern "C" fn(u32) -> u32,
    pub is_store: unsafe extern "C" fn(u32) -> bool,
}

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn find(name: &'static CStr) -> Result<*mut c_void, &'static CStr> {
    // SAFETY: a null library means all that are loaded, and the name ends with a zero byte.
    let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
    if found.is_null() {
        Err(name)
    } else {
        Ok(found)
    }
}

macro_rules! pointers {
    ($($field:ident: $name:literal as $kind:ty,)*) => {
        Api {
            $($field: {
                let found = find($name)?;
                // SAFETY: QEMU's function of this name has this type in every version of the interface
                // (include/qemu/qemu-plugin.h).
                unsafe { std::mem::transmute::<*mut c_void, $kind>(found) }
            },)*
        }
    };
}

impl Api {
    /// Finds all; the error is the first name that this QEMU does not have.
    pub(crate) fn find() -> Result<Api, &'static CStr> {
        Ok(pointers! {
            on_vcpu_init: c"qemu_plugin_register_vcpu_init_cb"
                as unsafe extern "C" fn(Id, VcpuCallback),
            on_translation: c"qemu_plugin_register_vcpu_tb_trans_cb"
                as unsafe extern "C" fn(Id, TranslationCallback),
            on_syscall: c"qemu_plugin_register_vcpu_syscall_cb"
                as unsafe extern "C" fn(Id, SyscallCallback),
            on_syscall_return: c"qemu_plugin_register_vcpu_syscall_ret_cb"
                as unsafe extern "C" fn(Id, SyscallReturnCallback),
            on_memory: c"qemu_plugin_register_vcpu_mem_cb"
                as unsafe extern "C" fn(*mut c_void, MemoryCallback, c_int, c_int, *mut c_void),
            on_execution: c"qemu_plugin_register_vcpu_insn_exec_cb"
                as unsafe extern "C" fn(*mut c_void, ExecutionCallback, c_int, *mut c_void),
            block_len: c"qemu_plugin_tb_n_insns" as unsafe extern "C" fn(*const c_void) -> usize,
            block_instruction: c"qemu_plugin_tb_get_insn"
                as unsafe extern "C" fn(*const c_void, usize) -> *mut c_void,
            instruction_data: c"qemu_plugin_insn_data"
                as unsafe extern "C" fn(*const c_void) -> *const u8,
            instruction_len: c"qemu_plugin_insn_size"
                as unsafe extern "C" fn(*const c_void) -> usize,
            instruction_address: c"qemu_plugin_insn_vaddr"
                as unsafe extern "C" fn(*const c_void) -> u64,
            instruction_host_address: c"qemu_plugin_insn_haddr"
                as unsafe extern "C" fn(*const c_void) -> u64,
            size_log2: c"qemu_plugin_mem_size_shift" as unsafe extern "C" fn(u32) -> u32,
            is_store: c"qemu_plugin_mem_is_store" as unsafe extern "C" fn(u32) -> bool,
        })
    }
}
