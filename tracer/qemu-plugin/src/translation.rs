//! Code as QEMU translates it: each instruction gets a number, a description, and a callback for its accesses.

use std::{
    ffi::c_void,
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, Release, SeqCst},
        },
    },
};

use crate::{
    api::{Api, Id, LOADS_AND_STORES, NO_REGISTERS},
    lane::Tagged,
    layout::{INSTRUCTIONS, Instruction, pack_code},
    program, say,
};

/// Registers what observes.
pub(crate) fn register(id: Id, api: Api) {
    // SAFETY: QEMU's own function; the callback is of the type it asks for and lives as long as the process.
    unsafe { (api.on_vcpu_init)(id, new_vcpu) };
    // SAFETY: as above.
    unsafe { (api.on_translation)(id, translated) };
}

extern "C" fn new_vcpu(_id: Id, vcpu: u32) {
    program().new_thread(vcpu);
}

/// Called by QEMU after each access.
extern "C" fn accessed(vcpu: u32, word: u32, address: u64, instruction: *mut c_void) {
    crate::program::accessed(vcpu, word, address, Tagged(instruction.addr() as u32));
}

/// Called by QEMU before each execution of an instruction of the counted code.
extern "C" fn executed(_vcpu: u32, instruction: *mut c_void) {
    program().executed(instruction.addr() as u32);
}

/// The same as [`accessed`] for instructions beyond what can be described.
extern "C" fn accessed_undescribed(_vcpu: u32, _word: u32, _address: u64, _: *mut c_void) {
    program().accessed_unobserved();
}

/// Where instructions were put lately, so that code that is translated again is not described again.
struct Recent(Vec<u32>);

static RECENT: Mutex<Recent> = Mutex::new(Recent(Vec::new()));
const RECENT_SLOTS: usize = 1 << 16;

extern "C" fn translated(_id: Id, block: *mut c_void) {
    let program = program();
    if program.is_off() {
        return;
    }
    let api = program.api;
    // SAFETY: the block that QEMU just gave us.
    let len = unsafe { (api.block_len)(block) };
    let mut before: &[u8] = &[];
    for n in 0..len {
        // SAFETY: `n` is below the number of its instructions.
        let instruction = unsafe { (api.block_instruction)(block, n) };
        // SAFETY: an instruction of the block.
        let at = unsafe { (api.instruction_data)(instruction) };
        // SAFETY: as above.
        let bytes_len = unsafe { (api.instruction_len)(instruction) };
        // SAFETY: QEMU keeps that many bytes of the instruction until the block is translated.
        let bytes = unsafe { std::slice::from_raw_parts(at, bytes_len) };
        // SAFETY: an instruction of the block.
        let ip = unsafe { (api.instruction_address)(instruction) };
        if n == 0 && program.shared().header.translated.load(Relaxed) == 0 {
            // SAFETY: an instruction of the block.
            let host = unsafe { (api.instruction_host_address)(instruction) };
            begin(ip, host);
        }
        let after = if is_prefetchw(before) { before } else { &[] };
        let described = describe(ip, bytes, after);
        if let Some(id) = described.filter(|_| program.counted.contains(&ip)) {
            let with = std::ptr::without_provenance_mut(id as usize);
            // SAFETY: an instruction of the block; the callback lives as long as the process.
            unsafe { (api.on_execution)(instruction, executed, NO_REGISTERS, with) };
        }
        let (callback, tagged) = match described {
            Some(id) => (
                accessed as crate::api::MemoryCallback,
                Tagged::new(id, !after.is_empty()),
            ),
            None => (
                accessed_undescribed as crate::api::MemoryCallback,
                Tagged(0),
            ),
        };
        let with = std::ptr::without_provenance_mut(tagged.0 as usize);
        // One callback for both directions: QEMU stops at the first of several that does not fit an access.
        // SAFETY: an instruction of the block; the callback lives as long as the process.
        unsafe { (api.on_memory)(instruction, callback, NO_REGISTERS, LOADS_AND_STORES, with) };
        before = bytes;
    }
}

/// The program is loaded and about to run.
fn begin(ip: u64, host: u64) {
    let program = program();
    let base = host.wrapping_sub(ip);
    program.shared().header.guest_base.store(base, Relaxed);
    if program.shared().header.translated.swap(1, SeqCst) == 0 {
        if base != 0 {
            say("cohtrace: QEMU moved the program's memory\n");
        }
        program.tell_maps();
    }
}

/// The instruction's number; `None` when there is no room.
fn describe(ip: u64, bytes: &[u8], before: &[u8]) -> Option<u32> {
    let shared = program().shared();
    let (code, before) = (pack_code(bytes), pack_code(before));
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if recent.0.is_empty() {
        recent.0.resize(RECENT_SLOTS, u32::MAX);
    }
    let slot = &mut recent.0[(ip ^ ip >> 16) as usize % RECENT_SLOTS];
    let known = shared.instructions.get(*slot as usize);
    if known.is_some_and(|known| is(known, ip, code, before)) {
        return Some(*slot);
    }
    let id = shared.header.instructions.load(Relaxed);
    let place: &Instruction = shared.instructions.get(id as usize)?;
    place.ip.store(ip, Relaxed);
    store_pair(&place.code, code);
    store_pair(&place.before, before);
    debug_assert!((id as usize) < INSTRUCTIONS);
    shared.header.instructions.store(id + 1, Release);
    *slot = id as u32;
    Some(id as u32)
}

fn store_pair(to: &[AtomicU64; 2], words: [u64; 2]) {
    for (to, word) in to.iter().zip(words) {
        to.store(word, Relaxed);
    }
}

fn is(known: &Instruction, ip: u64, code: [u64; 2], before: [u64; 2]) -> bool {
    let pair = |words: &[AtomicU64; 2]| [words[0].load(Relaxed), words[1].load(Relaxed)];
    known.ip.load(Relaxed) == ip && pair(&known.code) == code && pair(&known.before) == before
}

/// `prefetchw` (0F 0D /1), behind any prefixes.
fn is_prefetchw(bytes: &[u8]) -> bool {
    let prefix = |byte: &&u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3);
    let prefixes = bytes.iter().take_while(prefix).count();
    matches!(&bytes[prefixes..], [0x0f, 0x0d, modrm, ..] if modrm >> 3 & 7 == 1)
}

/// Registers a callback that does nothing, to measure what QEMU itself takes.
pub(crate) fn count_nothing(id: Id, api: Api) -> Result<(), String> {
    if EMPTY.set(api).is_err() {
        return Err("it is loaded twice".to_owned());
    }
    // SAFETY: QEMU's own function; the callback lives as long as the process.
    unsafe { (api.on_translation)(id, translated_for_nothing) };
    Ok(())
}

static EMPTY: std::sync::OnceLock<Api> = std::sync::OnceLock::new();

extern "C" fn nothing(_vcpu: u32, _word: u32, _address: u64, _: *mut c_void) {}

extern "C" fn translated_for_nothing(_id: Id, block: *mut c_void) {
    let Some(api) = EMPTY.get() else { return };
    // SAFETY: the block that QEMU just gave us.
    let len = unsafe { (api.block_len)(block) };
    for n in 0..len {
        // SAFETY: `n` is below the number of its instructions.
        let instruction = unsafe { (api.block_instruction)(block, n) };
        let with = std::ptr::null_mut();
        // SAFETY: an instruction of the block; the callback lives as long as the process.
        unsafe { (api.on_memory)(instruction, nothing, NO_REGISTERS, LOADS_AND_STORES, with) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetchw_is_known_behind_prefixes_and_others_are_not() {
        // Bytes as GNU as writes them: prefetchw 8(%rdi), (%r8,%r9,4), %fs:(%rax).
        for bytes in [
            &[0x0f, 0x0d, 0x4f, 0x08][..],
            &[0x43, 0x0f, 0x0d, 0x0c, 0x88],
            &[0x64, 0x0f, 0x0d, 0x08],
        ] {
            assert!(is_prefetchw(bytes), "{bytes:x?}");
        }
        // prefetch (%rdi), prefetcht0 (%rdi), mov (%rdi),%rax, nothing.
        for bytes in [
            &[0x0f, 0x0d, 0x07][..],
            &[0x0f, 0x18, 0x0f],
            &[0x48, 0x8b, 0x07],
            &[],
            &[0x0f],
        ] {
            assert!(!is_prefetchw(bytes), "{bytes:x?}");
        }
    }
}
