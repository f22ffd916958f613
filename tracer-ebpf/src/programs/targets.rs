//! Which thread groups are sampled: one byte per pid.
//!
//! A byte is only ever stored whole, by user space through its own mapping of the map and by
//! [`inherit`], so neither can undo the other's store to a neighbouring pid.

use aya_ebpf::{Global, bindings::BPF_F_MMAPABLE, macros::map, maps::Array};
use tracer_ebpf::TARGET_CHUNK;

/// The loader sizes it from `pid_max`; a later, larger pid has no byte and is not a target.
#[map]
static TARGETS: Array<[u8; TARGET_CHUNK]> = Array::with_max_entries(1, BPF_F_MMAPABLE);

#[unsafe(no_mangle)]
static ALL_PROCESSES: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
static OWN_PID: Global<u32> = Global::new(0);

/// Whether samples of this thread group are wanted.
#[inline(always)]
pub fn is_target(pid: u32) -> bool {
    if ALL_PROCESSES.load() != 0 {
        return pid != OWN_PID.load();
    }
    // SAFETY: `byte` is inside a live map value; array values are never freed while the program runs.
    byte(pid).is_some_and(|byte| unsafe { byte.read_volatile() } != 0)
}

/// Makes the new thread group a target exactly when the old one is. Done at every fork, so a reused
/// pid never keeps the byte of its former owner.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    // SAFETY: as in `is_target`.
    let value = byte(parent).map_or(0, |byte| unsafe { byte.read_volatile() });
    if let Some(byte) = byte(child) {
        // SAFETY: as in `is_target`; a byte store cannot tear.
        unsafe { byte.write_volatile(value) };
    }
}

#[inline(always)]
fn byte(pid: u32) -> Option<*mut u8> {
    let chunk = TARGETS.get_ptr_mut(pid / TARGET_CHUNK as u32)?;
    // The mask shows the verifier that the index stays inside the value.
    let index = pid as usize & (TARGET_CHUNK - 1);
    // SAFETY: `index < TARGET_CHUNK`, the length of the array that `chunk` points to.
    Some(unsafe { chunk.cast::<u8>().add(index) })
}
