//! Builds the LLVM pass plugin that places load hints in what clang and rustc compile, for each LLVM that is here.

use std::path::PathBuf;

use anyhow::{Result, bail};
use cohtrace_tests::llvm_plugin::{Compiler, Llvm, clang, installed, rustc};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build for this LLVM only; by default for each whose headers are installed
    #[arg(long, value_name = "PATH")]
    llvm_config: Option<PathBuf>,
}

const INSTALL: &str = "\
no LLVM with headers is here. A plugin works in compilers of the same major version (`rustc -vV`, `clang --version`):
  on Debian 12:   apt-get install llvm-22-dev     for rustc 1.94 and 1.95
                  apt-get install llvm-14-dev     for Debian's clang";

/// The task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let llvms = match &options.llvm_config {
        Some(config) => vec![Llvm::of(config)?],
        None => installed(),
    };
    if llvms.is_empty() {
        bail!("{INSTALL}");
    }
    let compilers = compilers();
    for llvm in &llvms {
        let plugin = llvm.build()?;
        let of = |compiler: &&Compiler| compiler.llvm == llvm.major;
        let users: Vec<String> = compilers.iter().filter(of).map(named).collect();
        let users = match users.join(", ") {
            none if none.is_empty() => "no compiler that is here".to_owned(),
            some => some,
        };
        println!("{}: for {users}", plugin.display());
    }
    let has = |compiler: &&Compiler| llvms.iter().any(|llvm| llvm.major == compiler.llvm);
    for without in compilers.iter().filter(|compiler| !has(compiler)) {
        println!(
            "none for {}: its LLVM is {1}; on Debian: apt-get install llvm-{1}-dev",
            named(without),
            without.llvm
        );
    }
    Ok(())
}

/// Builds what can be built here; why nothing can, where that is so.
pub(crate) fn check() -> Result<Option<String>> {
    let llvms = installed();
    if llvms.is_empty() {
        return Ok(Some(INSTALL.to_owned()));
    }
    for llvm in llvms {
        llvm.build()?;
    }
    Ok(None)
}

fn named(compiler: &Compiler) -> String {
    format!("{} {}", compiler.command, compiler.version)
}

fn compilers() -> Vec<Compiler> {
    let newer = (14..=40).filter_map(|major| clang(&format!("clang-{major}")));
    let mut compilers: Vec<Compiler> = rustc().into_iter().chain(clang("clang")).collect();
    for one in newer {
        if !compilers.iter().any(|known| known.version == one.version) {
            compilers.push(one);
        }
    }
    compilers
}
