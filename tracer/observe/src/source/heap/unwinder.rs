//! The call stack of an allocation, from the caller's registers and a copy of its stack.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use symbolizer::FrameRow;
use tracer_ebpf::{HeapRecord, SAMPLE_32BIT};

use crate::{
    access::Pid,
    module::{ModuleId, ModuleStore},
    space::AddressSpaces,
};

/// Frames that are kept.
const MOST_FRAMES: usize = 24;
/// Rows of call frame information, and stacks, that are remembered.
const MOST_KNOWN: usize = 1 << 16;

/// DWARF number of each register of a record, in the record's order ("System V ABI AMD64", figure 3.36).
#[cfg(target_arch = "x86_64")]
const DWARF: [usize; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
/// The stack pointer's.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u16 = 7;
/// Position of the stack pointer in a record.
#[cfg(target_arch = "x86_64")]
const RECORD_SP: usize = 4;

/// DWARF number of each register of a record, in the record's order ("DWARF for the Arm 64-bit Architecture").
#[cfg(not(target_arch = "x86_64"))]
const DWARF: [usize; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31,
];
/// The stack pointer's.
#[cfg(not(target_arch = "x86_64"))]
const STACK_POINTER: u16 = 31;
/// Position of the stack pointer in a record.
#[cfg(not(target_arch = "x86_64"))]
const RECORD_SP: usize = 31;

/// Unwinds stacks, and keeps each distinct one once.
pub(super) struct Unwinder {
    modules: Arc<ModuleStore>,
    rows: FxHashMap<(ModuleId, u64), Option<Arc<FrameRow>>>,
    stacks: FxHashSet<Arc<[u64]>>,
}

impl Unwinder {
    /// Knows nothing yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> Unwinder {
        Unwinder {
            modules,
            rows: FxHashMap::default(),
            stacks: FxHashSet::default(),
        }
    }

    /// The stack of an allocation, as the stream has it: at least the function and its caller.
    pub(super) fn stack(&mut self, record: &HeapRecord, spaces: &AddressSpaces) -> Arc<[u64]> {
        let mut stack = Vec::with_capacity(MOST_FRAMES);
        stack.push(record.function);
        stack.push(record.caller.ip);
        if record.caller.flags & SAMPLE_32BIT == 0 {
            self.callers(record, spaces, &mut stack);
        }
        if let Some(known) = self.stacks.get(stack.as_slice()) {
            return known.clone();
        }
        if self.stacks.len() >= MOST_KNOWN {
            self.stacks.clear();
        }
        let stack: Arc<[u64]> = stack.into();
        self.stacks.insert(stack.clone());
        stack
    }

    fn callers(&mut self, record: &HeapRecord, spaces: &AddressSpaces, stack: &mut Vec<u64>) {
        let mut registers = [None; 33];
        for (number, value) in DWARF.iter().zip(record.caller.regs) {
            registers[*number] = Some(value);
        }
        let sp = record.caller.regs[RECORD_SP];
        let copied = (record.stack_bytes as usize).min(record.stack.len());
        let mut read = |addr: u64| {
            let at = usize::try_from(addr.checked_sub(sp)?).ok()?;
            let bytes = record.stack[..copied].get(at..at.checked_add(8)?)?;
            bytes.try_into().ok().map(u64::from_le_bytes)
        };
        let pid = Pid(record.caller.pid);
        let mut ip = record.caller.ip;
        while stack.len() < MOST_FRAMES {
            let Some(row) = self.row(pid, ip, spaces) else {
                return;
            };
            let Some(caller) = row.step(&mut registers, STACK_POINTER, &mut read) else {
                return;
            };
            ip = caller;
            stack.push(ip);
        }
    }

    fn row(&mut self, pid: Pid, ip: u64, spaces: &AddressSpaces) -> Option<Arc<FrameRow>> {
        // The call before the return address.
        let call = ip.checked_sub(1)?;
        let mapping = spaces.mapping(spaces.current(pid)?, call)?;
        if !mapping.executable {
            return None;
        }
        let module = self.modules.open(pid, mapping).ok()?;
        let svma = module.svma(mapping, call)?;
        if self.rows.len() >= MOST_KNOWN {
            self.rows.clear();
        }
        let row = (self.rows.entry((module.id, svma)))
            .or_insert_with(|| module.elf.frame_row(svma).map(Arc::new));
        row.clone()
    }
}
