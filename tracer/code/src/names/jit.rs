//! Names of code that no file holds.

use symbolizer::Missing;

use super::{CodeName, Language, Resolver, missed::Unnamed, source::source_path};
use crate::{
    access::{Pid, SpaceId},
    event::Mapping,
    module::{Compiled, JitMissing, Unavailable},
};

/// What code of a just-in-time compiler is shown as part of.
const JIT: &str = "[jit]";

/// Runtimes by the file that each process of theirs maps, or how its name begins, and the language of what they compile.
const RUNTIMES: [(&str, Language); 12] = [
    ("libjvm.so", Language::Java),
    ("libcoreclr.so", Language::Other("C#")),
    ("libmonosgen-", Language::Other("C#")),
    ("libnode.so", Language::Other("JavaScript")),
    ("node", Language::Other("JavaScript")),
    ("libjulia-internal.so", Language::Other("Julia")),
    ("libluajit", Language::Other("Lua")),
    ("luajit", Language::Other("Lua")),
    ("beam.smp", Language::Other("Erlang")),
    ("libpython3", Language::Other("Python")),
    ("python3", Language::Other("Python")),
    ("libpypy3", Language::Other("Python")),
];

/// The language of code that a runtime compiles in a process that maps these files.
fn runtime_language<'m>(files: impl Iterator<Item = &'m str>) -> Option<Language> {
    let names: Vec<&str> = files
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .collect();
    let is_of = |name: &str, runtime: &str| {
        // `node` is a whole name, and neither `nodeagent` nor `nodes.db`; versions follow: `python3.11`.
        name.strip_prefix(runtime).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(['.', '-']) || runtime.ends_with('-')
        })
    };
    let of_all = |&&(runtime, _): &&(&str, Language)| names.iter().any(|name| is_of(name, runtime));
    RUNTIMES.iter().find(of_all).map(|(_, language)| *language)
}

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
        let compiled = Compiled::of(self.spaces, pid, space);
        let code = if self.modules.is_out_of_time() {
            Err(JitMissing::NoTime(Missing::NoTime))
        } else {
            self.modules.jit().find(compiled, ip, mappings)
        };
        let files = (self.spaces.mappings(space)).filter(|mapping| mapping.is_file());
        let language = runtime_language(files.map(|mapping| &*mapping.name));
        let named = Some(&*mapping.name).filter(|name| !name.is_empty() && !name.starts_with("//"));
        match code {
            Ok(code) => CodeName {
                module: Some(JIT.to_owned()),
                ip,
                symbol: Some(code.symbol),
                file: code.file.as_deref().map(source_path),
                line: code.line,
                language,
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
                let own = self.lost_module_address(space, mapping, ip);
                CodeName {
                    module: named.map(str::to_owned),
                    ip: own.unwrap_or(ip),
                    language,
                    ..CodeName::default()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_compiled_code_is_that_of_the_runtime_in_the_process() {
        let of = |files: &[&str]| runtime_language(files.iter().copied());
        let jvm = [
            "/usr/bin/java",
            "/usr/lib/jvm/x/lib/server/libjvm.so",
            "/lib/libc.so.6",
        ];
        assert_eq!(of(&jvm), Some(Language::Java));
        assert_eq!(of(&jvm[2..]), None);
        assert_eq!(
            of(&["/usr/bin/python3.11"]),
            Some(Language::Other("Python"))
        );
        assert_eq!(of(&["/usr/bin/node"]), Some(Language::Other("JavaScript")));
        assert_eq!(of(&["/usr/bin/nodeagent", "/srv/python3tools"]), None);
        // A JVM that embeds Python compiles Java.
        assert_eq!(
            of(&["/opt/libpython3.12.so.1.0", "/opt/libjvm.so"]),
            Some(Language::Java)
        );
    }
}
