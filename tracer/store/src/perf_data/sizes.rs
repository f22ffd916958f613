//! Sizes of accesses, which perf does not record: of the instruction, where its file is here.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, Op},
    decode::single_access,
    event::Context,
    module::{ModuleId, ModuleStore},
    space::AddressSpaces,
};

/// Instructions kept; beyond that all are let go rather than the oldest sought.
const MOST_KEPT: usize = 1 << 16;
/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// Looks instructions up, in the order of time.
pub(super) struct Sizes {
    modules: Arc<ModuleStore>,
    spaces: AddressSpaces,
    known: FxHashMap<(ModuleId, u64, Op), u16>,
}

impl Sizes {
    pub(super) fn new(modules: Arc<ModuleStore>) -> Sizes {
        Sizes {
            modules,
            spaces: AddressSpaces::default(),
            known: FxHashMap::default(),
        }
    }

    pub(super) fn apply(&mut self, context: &Context) {
        self.spaces.apply(context);
    }

    /// Bytes touched, 0 where that is not known. The ip is to be that of the instruction itself.
    pub(super) fn size(&mut self, access: &Access) -> u16 {
        self.find(access).unwrap_or(0)
    }

    fn find(&mut self, access: &Access) -> Option<u16> {
        let space = self.spaces.current(access.pid)?;
        let mapping = self.spaces.mapping(space, access.ip)?;
        let module = self.modules.open(access.pid, mapping).ok()?;
        let svma = module.svma(mapping, access.ip)?;
        let key = (module.id, svma, access.op);
        if let Some(size) = self.known.get(&key) {
            return Some(*size);
        }
        // Where the section ends sooner, the instruction does too.
        let code = (1..=LONGEST)
            .rev()
            .find_map(|len| module.code(svma..svma.checked_add(len)?))?;
        let size = single_access(&code, access.op).map_or(0, |found| found.size);
        if self.known.len() >= MOST_KEPT {
            self.known.clear();
        }
        self.known.insert(key, size);
        Some(size)
    }
}
