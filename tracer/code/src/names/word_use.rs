//! What instructions do with the words that they access, by the code of their modules.

use super::{Resolver, WordUse};
use crate::{
    access::SpaceId,
    decode::{CallConvention, word_use},
};

/// Bytes of code that are looked at where no function has bounds: as many as the section still has.
const WITHOUT_BOUNDS: [u64; 3] = [256, 64, 16];

impl Resolver<'_> {
    /// What the instruction does. Of the kernel, the code is that which was read while it was sampled; a program's code that no
    /// file holds is not read: its process may be gone.
    pub(super) fn use_of_word(&self, space: SpaceId, ip: u64, kernel: bool) -> Option<WordUse> {
        if kernel && self.modules.vmlinux().is_none() {
            let (start, code) = self.spaces.kernel_memory(ip)?;
            return word_use(start, code, ip, CallConvention::SystemV);
        }
        let (module, svma) = self.code_module(space, ip, kernel)?;
        let elf = &module.elf;
        if !elf.is_x86_64() {
            return None;
        }
        let (start, code) = if let Some(function) = elf.function(svma) {
            (function.start, elf.code(function.start, function.end)?)
        } else {
            let ends = WITHOUT_BOUNDS.iter();
            let mut ends = ends.filter_map(|bytes| svma.checked_add(*bytes));
            (svma, ends.find_map(|end| elf.code(svma, end))?)
        };
        let convention = match elf.language(svma) {
            Some(symbolizer::Language::Go) => CallConvention::PointersOnly,
            _ => CallConvention::SystemV,
        };
        word_use(start, code, svma, convention)
    }
}
