//! Names of code that no file holds.

use super::{CodeName, Resolver, missed::Unnamed, resolver::source_path};
use crate::{
    access::{Pid, SpaceId},
    event::Mapping,
    module::{JitMissing, Unavailable},
};

/// What code of a just-in-time compiler is shown as part of.
const JIT: &str = "[jit]";

impl Resolver<'_> {
    /// The instruction at an address whose mapping no module is behind, and why there is none.
    pub(super) fn compiled_code(
        &self,
        space: SpaceId,
        pid: Pid,
        mapping: &Mapping,
        ip: u64,
        unavailable: &Unavailable,
    ) -> CodeName {
        let mappings = self.spaces.mappings(space);
        let code = self.modules.jit().find(pid, ip, mappings);
        let named = Some(&*mapping.name).filter(|name| !name.is_empty() && !name.starts_with("//"));
        match code {
            Ok(code) => CodeName {
                module: Some(JIT.to_owned()),
                ip,
                symbol: Some(code.symbol),
                file: code.file.as_deref().map(source_path),
                line: code.line,
                ..CodeName::default()
            },
            Err(missing) => {
                // Compilers map their code from shared memory too; for other files the file is what is wrong.
                let of_file =
                    *unavailable != Unavailable::Anonymous && missing == JitMissing::NoMap;
                if of_file {
                    self.miss(named.unwrap_or(JIT), unavailable, Unnamed::Code(ip));
                } else {
                    self.miss(named.unwrap_or(JIT), &missing, Unnamed::Code(ip));
                }
                CodeName {
                    module: named.map(str::to_owned),
                    ip,
                    ..CodeName::default()
                }
            }
        }
    }
}
