//! The project's tasks: `cargo xtask` lists them. One module per task.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task's output is for the terminal"
)]

mod bench;
mod bpf_provenance;
mod bpf_toolchain;
mod ci;
mod ebpf;
mod house;
mod llvm_plugin;
mod vm;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

/// Everything about building, checking and measuring cohtrace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Rebuild the BPF objects in tracer-ebpf/prebuilt/ from tracer-ebpf/src/.
    ///
    /// Needs a nightly-like compiler with its library sources, and bpf-linker; says which to install.
    /// Everyone else builds with stable Rust: the objects are committed.
    Ebpf(ebpf::Options),
    /// Build the plugin by which clang and rustc place load hints, into target/llvm-plugin/, and say which compilers it is for.
    ///
    /// Needs a C++ compiler and headers of an LLVM of the compiler's major version; says which to install. Use:
    /// docs/hints.md.
    LlvmPlugin(llvm_plugin::Options),
    /// Everything that must hold before a change is taken: formatting, lints, BPF objects,
    /// documentation, release build, tests.
    ///
    /// Runs all of them even when one fails. As root, the tests sample real programs.
    Ci(ci::Options),
    /// Measure what cohtrace costs and how often it is right, beside perf; figures, no verdicts.
    ///
    /// Builds the release binary first. Wants a quiet machine and root. `--list` explains the benchmarks.
    Bench(bench::Options),
    /// Run the tool on Debian's kernels from 5.10 on, in machines that QEMU emulates, and judge what it answers there.
    ///
    /// Builds the release binary, fetches kernels by apt into target/vm/, and as root installs the emulator if it is
    /// missing. Each guest takes about a minute; `--kernel` and `--machine` choose, `--list` explains.
    Vm(vm::Options),
    /// Figures of the source itself: lines of each crate, arrows between the modules of the tool, long files, `pub` functions
    /// that nothing uses, unsafe blocks, and with `--build` how long builds take.
    House(house::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Some(Task::Ebpf(options)) => ebpf::run(&options),
        Some(Task::LlvmPlugin(options)) => llvm_plugin::run(&options),
        Some(Task::Ci(options)) => ci::run(&options),
        Some(Task::Bench(options)) => bench::run(&options),
        Some(Task::Vm(options)) => vm::run(&options),
        Some(Task::House(options)) => house::run(&options),
        None => Arguments::command().print_long_help().map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that `RUST_BACKTRACE` would add: it hides what to do.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root: the directory that holds `xtask/`.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}
