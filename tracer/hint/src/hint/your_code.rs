//! Code that you build: where a rebuild with hints can place them.
//!
//! A load is in it when its module is one of yours and has a source line for it. [`cohtrace as`](super::assembly) finds
//! loads by their lines, so that it places nothing in PLT stubs, in code that was compiled without `-g`, and in code that no
//! module holds. Whose a module is, debug info does not tell: distributions have it for their libraries too. So modules in
//! the system's directories of libraries, and a C library or dynamic linker anywhere, are not yours, unless you name them.
//! Nor does it place a prefetch in a loop that would repeat it for one line.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::{HintedCode, LoadHint, Prefetch};

/// Where systems have their libraries (Filesystem Hierarchy Standard 3.0, sections 3.9, 3.10, 4.6 and 4.7). `/usr/local`
/// and `/opt` are left out: there people put what they build.
const LIBRARIES: [&str; 9] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/libx32/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libx32/",
    "/usr/libexec/",
];

/// First words of the file names of glibc, musl and the compiler's runtime, wherever they are: `libc.so.6`, `libc-2.31.so`.
const RUNTIME: [&str; 11] = [
    "ld",
    "libc",
    "libdl",
    "libgcc_s",
    "libgomp",
    "libm",
    "libpthread",
    "libresolv",
    "librt",
    "libstdc++",
    "libutil",
];

/// Which modules are yours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YourCode {
    /// File names; with none, those that are not the system's.
    modules: Vec<String>,
    /// Prefetches that would be repeated for one line count too.
    everywhere: bool,
}

/// Hints in code that you build, and what they change without the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct YourHints {
    /// Hints.
    pub hints: u64,
    /// Messages that all accesses take with these hints alone, counted on the same order.
    pub transactions: u64,
    /// Of those, messages that serve loads.
    pub load_transactions: u64,
}

/// Loads that are left since they ask for a line a few times only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneOffLoads {
    /// Loads left out.
    pub loads: u64,
    /// Messages that a hint for each alone would save, net, in sum.
    pub saved: u64,
}

impl YourCode {
    /// The modules with these file names; with none, all that are not the system's.
    pub fn new(modules: &[String]) -> YourCode {
        YourCode {
            modules: modules.to_vec(),
            everywhere: false,
        }
    }

    /// The same, with prefetches that are left out because they would be repeated for one line.
    #[must_use]
    pub fn everywhere(self, everywhere: bool) -> YourCode {
        YourCode { everywhere, ..self }
    }

    /// Whether a rebuild has the prefetch of a hint.
    pub fn has_hint(&self, hint: &LoadHint) -> bool {
        self.has(&hint.load) && (self.everywhere || hint.prefetch != Prefetch::LeftOut)
    }

    /// Whether a load is in it.
    pub fn has(&self, load: &HintedCode) -> bool {
        let has_line = load.file.is_some() && load.line.is_some_and(|line| line > 0);
        let module = load.module.as_deref();
        has_line && module.is_some_and(|module| self.has_module(module))
    }

    /// Whether the module of a load is one of those that were named; any is where none was.
    pub fn is_named(&self, load: &HintedCode) -> bool {
        self.modules.is_empty()
            || load
                .module
                .as_deref()
                .is_some_and(|module| self.names(module))
    }

    fn has_module(&self, path: &str) -> bool {
        if self.modules.is_empty() {
            !is_of_the_system(path)
        } else {
            self.names(path)
        }
    }

    fn names(&self, path: &str) -> bool {
        let name = Path::new(path).file_name();
        name.is_some_and(|name| self.modules.iter().any(|module| name == module.as_str()))
    }
}

fn is_of_the_system(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let word = name.split(['.', '-']).next().unwrap_or(name);
    let is_library = name.contains(".so");
    LIBRARIES
        .iter()
        .any(|directory| path.starts_with(directory))
        || (is_library && RUNTIME.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(module: &str, line: Option<u32>) -> HintedCode {
        HintedCode {
            module: Some(module.to_owned()),
            file: line.map(|_| "a.c".to_owned()),
            line,
            ..HintedCode::default()
        }
    }

    #[test]
    fn a_program_and_its_own_libraries_are_yours_and_those_of_the_system_are_not() {
        let yours = |path| YourCode::default().has(&load(path, Some(7)));
        for path in [
            "/home/a/build/server",
            "/usr/bin/server",
            "/home/a/build/libqueue.so.1",
            "/usr/local/lib/libqueue.so",
            "/opt/server/lib/libqueue.so",
            "/home/a/libcounters.so",
            "/home/a/ld-bench",
            "server",
        ] {
            assert!(yours(path), "{path}");
        }
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
            "/usr/lib/x86_64-linux-gnu/libssl.so.3",
            "/nix/store/abc-glibc-2.38/lib/libc.so.6",
            "/opt/old/libc-2.31.so",
            "/opt/musl/lib/ld-musl-x86_64.so.1",
            "/opt/gcc/lib64/libstdc++.so.6.0.32",
        ] {
            assert!(!yours(path), "{path}");
        }
    }

    #[test]
    fn code_without_a_source_line_is_not_reached_whose_ever_it_is() {
        let all = YourCode::default();
        assert!(all.has(&load("/home/a/server", Some(1))));
        assert!(!all.has(&load("/home/a/server", None)));
        assert!(!all.has(&load("/home/a/server", Some(0))));
        let nowhere = HintedCode {
            module: None,
            ..load("", Some(1))
        };
        assert!(!all.has(&nowhere) && all.is_named(&nowhere));
    }

    #[test]
    fn modules_that_are_named_are_yours_and_no_others() {
        let named = YourCode::new(&["libc.so.6".to_owned(), "server".to_owned()]);
        assert!(named.has(&load("/usr/lib/x86_64-linux-gnu/libc.so.6", Some(7))));
        assert!(named.has(&load("/home/a/server", Some(7))));
        assert!(!named.has(&load("/home/a/server", None)));
        assert!(named.is_named(&load("/home/a/server", None)));
        let other = load("/home/a/other", Some(7));
        assert!(!named.has(&other) && !named.is_named(&other));
    }
}
