//! Code and data of a module whose file is gone, or is another by now: the place in the module still says which it is.

use super::{Resolver, missed::Unnamed};
use crate::{
    access::SpaceId,
    event::{DELETED, Mapping},
    module::{Unavailable, code_of},
};

/// Programs that are not position-independent are in the lowest 2 GiB (x86-64 psABI, small code model), where no loader
/// puts anything else.
const FIXED_BELOW: u64 = 2 << 30;

impl Resolver<'_> {
    /// The name of data at an address: the module's file and the data's own address in it. `None` where the module's file can
    /// be read, or it is no module.
    pub(super) fn data_of_lost_module(&self, space: SpaceId, addr: u64) -> Option<String> {
        let own = self.spaces.mapping(space, addr)?;
        let code = code_of(self.spaces.mappings(space), addr)?;
        // A file without code is no module, and a heap may lie behind one.
        if !code.executable || !(own.is_file() || self.follows_its_file(space, own, code)) {
            return None;
        }
        let reason = self
            .modules
            .open_to_name(self.spaces.pid(space)?, code)
            .err()?;
        if matches!(reason, Unavailable::Anonymous | Unavailable::Malformed(_)) {
            return None;
        }
        self.miss(&code.name, &reason, Unnamed::Data(addr));
        let svma = self.lost_module_address(space, code, addr)?;
        let path = code.name.trim_end_matches(DELETED);
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(format!("{name}+{svma:#x}"))
    }

    /// The module's own address (svma) of a run-time address: from where its first mapping is, which its headers would say
    /// better. `None` of what is no file.
    pub(super) fn lost_module_address(
        &self,
        space: SpaceId,
        module: &Mapping,
        addr: u64,
    ) -> Option<u64> {
        let first = (self.spaces.mappings(space)).find(|mapping| is_of(mapping, module))?;
        Some(if first.start < FIXED_BELOW {
            addr
        } else {
            addr.wrapping_sub(first.start)
                .wrapping_add(first.file_offset)
        })
    }

    /// Whether anonymous memory begins where a mapping of the module's file ends: its zero-initialised data.
    fn follows_its_file(&self, space: SpaceId, own: &Mapping, code: &Mapping) -> bool {
        let mut mappings = self.spaces.mappings(space);
        own.name.is_empty()
            && own.inode == 0
            && mappings.any(|before| before.end() == own.start && is_of(before, code))
    }
}

fn is_of(mapping: &Mapping, module: &Mapping) -> bool {
    (mapping.dev, mapping.inode) == (module.dev, module.inode) && mapping.is_file()
}
