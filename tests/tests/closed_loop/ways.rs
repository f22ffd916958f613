//! How hints get into a program: by the assembler, or by the plugin of a compiler or linker.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace::hint::file::HintedCode;
use cohtrace_tests::{
    evaluation::Kernel,
    llvm_plugin::{for_clang, for_rustc},
    workload::{self, target_directory},
};

/// The program of `tests/workloads/ledgers`, in C++ and in Rust. It is no counterpart of anything.
pub(super) const LEDGER: Kernel = Kernel {
    name: "ledger",
    counterpart: "none",
    published_reduction: 0.0,
};

pub(super) enum Way {
    /// gcc with the assembler of `-B`.
    Assembler,
    /// A compiler with the LLVM plugin.
    Plugin(Plugin),
}

pub(super) struct Plugin {
    /// Source file in `tests/workloads/ledgers`.
    source: &'static str,
    /// The compiler and its arguments.
    command: &'static [&'static str],
    /// How it is told of the plugin.
    load: String,
}

impl Way {
    pub(super) fn clang() -> Option<Way> {
        let plugin = for_clang("the loop")?;
        Some(Way::Plugin(Plugin {
            source: "ledger.cpp",
            command: &["clang++", "-O2", "-g", "-pthread"],
            load: format!("-fpass-plugin={}", plugin.display()),
        }))
    }

    pub(super) fn rust() -> Option<Way> {
        let plugin = for_rustc("the loop")?;
        Some(Way::Plugin(Plugin {
            source: "ledger.rs",
            command: &["rustc", "-O", "-g", "-Clinker-plugin-lto"],
            load: format!("-Clink-arg=-Wl,--load-pass-plugin={}", plugin.display()),
        }))
    }

    pub(super) fn plugin(&self) -> Option<&Plugin> {
        match self {
            Way::Assembler => None,
            Way::Plugin(plugin) => Some(plugin),
        }
    }

    /// Whether a load is compiled with the program: it has a line, and for a plugin, which knows the calls that were inlined,
    /// the program's source is among those. The standard library of Rust is linked as it is.
    pub(super) fn reaches(&self, load: &HintedCode) -> bool {
        let Way::Plugin(plugin) = self else {
            return load.file.is_some();
        };
        let calls = load.inlined_at.iter().map(|call| &call.file);
        let mut files = std::iter::once(&load.file).chain(calls).flatten();
        load.line.is_some() && files.any(|file| file.ends_with(plugin.source))
    }
}

impl Plugin {
    /// Builds the program; without hints, without the plugin too.
    pub(super) fn build(&self, name: &str, hints: Option<&Path>) -> PathBuf {
        let directory = target_directory().expect("a target directory");
        let directory = directory.join("ledgers").join(self.source).join(name);
        fs::create_dir_all(&directory).expect("it is writable");
        let program = directory.join(LEDGER.name);
        let mut command = Command::new(self.command[0]);
        command
            .args(&self.command[1..])
            .arg(workload::directory().join("ledgers").join(self.source))
            .arg("-o")
            .arg(&program)
            .env_remove("COHTRACE_HINTS_LOG");
        if let Some(hints) = hints {
            command.arg(&self.load).env("COHTRACE_HINTS", hints);
        }
        let output = command.output().expect("the compiler starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}\n{said}");
        program
    }
}
