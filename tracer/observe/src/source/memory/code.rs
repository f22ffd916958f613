//! The sampled instruction, for what the PMU does not tell: the size of its access.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{
    access::{Op, Pid},
    decode::{LONGEST_INSTRUCTION, SingleAccess, single_access},
    module::{ModuleId, ModuleStore},
    source::sampled_code::ReadKernel,
    space::{AddressSpaces, KERNEL_START},
    sys::process_memory,
};

/// Instructions kept, at about 40 bytes each; beyond this all are let go.
const MOST_INSTRUCTIONS: usize = 1 << 16;

/// Where an instruction is, whose text does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Kernel(u64),
    Module(ModuleId, u64),
}

/// Instructions looked up so far.
pub(super) struct Instructions {
    modules: Arc<ModuleStore>,
    known: FxHashMap<(Place, Op), Option<SingleAccess>>,
}

impl Instructions {
    /// A cache in which no instruction is decoded yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> Instructions {
        Instructions {
            modules,
            known: FxHashMap::default(),
        }
    }

    /// The access of the instruction at `ip` that was seen as `op`; see [`single_access`]. `None` too where the
    /// code cannot be read.
    pub(super) fn access(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        ip: u64,
        op: Op,
        read_kernel: ReadKernel<'_>,
    ) -> Option<SingleAccess> {
        if self.known.len() >= MOST_INSTRUCTIONS {
            self.known.clear();
        }
        if ip >= KERNEL_START {
            let access = || single_access(&read_kernel(ip, LONGEST_INSTRUCTION)?, op);
            return *(self.known)
                .entry((Place::Kernel(ip), op))
                .or_insert_with(access);
        }
        let space = spaces.space(pid);
        let module = spaces.mapping(space, ip).and_then(|mapping| {
            let module = self.modules.open(pid, mapping).ok()?;
            let svma = module.svma(mapping, ip)?;
            Some((module, svma))
        });
        if let Some((module, svma)) = module {
            let place = (Place::Module(module.id, svma), op);
            if let Some(known) = self.known.get(&place) {
                return *known;
            }
            // The end of a function may be nearer than the longest instruction's.
            let end = module.elf.function(svma).map_or(svma, |found| found.end);
            let end = end.min(svma.saturating_add(LONGEST_INSTRUCTION as u64));
            if let Some(bytes) = module.code(svma..end) {
                let access = single_access(&bytes, op);
                self.known.insert(place, access);
                return access;
            }
        }
        // Written by a compiler at run time, or in no symbol.
        let mut bytes = [0; LONGEST_INSTRUCTION];
        let got = process_memory::read(pid, ip, &mut bytes).ok()?;
        single_access(bytes.get(..got)?, op)
    }
}
