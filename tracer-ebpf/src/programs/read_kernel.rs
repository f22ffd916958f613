//! Copies kernel text for the decoder. `/proc/kcore` is not built into every kernel, and this needs
//! no privilege beyond what loading the sampler needs.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::generated::bpf_probe_read_kernel, macros::map, maps::Array,
    programs::RawTracePointContext,
};
use tracer_ebpf::KERNEL_TEXT_BYTES;

#[map]
static KERNEL_TEXT: Array<[u8; KERNEL_TEXT_BYTES]> = Array::with_max_entries(1, 0);

/// Arguments: address, length (at most [`KERNEL_TEXT_BYTES`]). Returns 0, or the helper's negative
/// errno. Never attached: the loader runs it with `BPF_PROG_TEST_RUN`.
///
/// Written without aya's macro, which would replace the return value by 0.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp")]
pub extern "C" fn read_kernel(context: *mut c_void) -> i32 {
    let context = RawTracePointContext::new(context);
    let address: u64 = context.arg(0);
    let length: u64 = context.arg(1);
    if length > KERNEL_TEXT_BYTES as u64 {
        return -E2BIG;
    }
    let Some(text) = KERNEL_TEXT.get_ptr_mut(0) else {
        return -E2BIG;
    };
    // SAFETY: `text` has room for `length` bytes, and the helper checks the source address itself.
    unsafe { bpf_probe_read_kernel(text.cast(), length as u32, address as *const c_void) as i32 }
}

/// The argument is longer than the buffer (include/uapi/asm-generic/errno-base.h).
const E2BIG: i32 = 7;
