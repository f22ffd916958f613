//! All integration tests, in one program: it is linked once. `tests/tests/NAME.rs` is the module `NAME`, and
//! `cargo test -p cohtrace-tests --test it NAME::` runs its tests.
//!
//! `#[test]` is not the standard library's: tests run beside each other, and live ones alone (`cohtrace_tests::turn`).

#[macro_use(test)]
extern crate cohtrace_turns;

mod assembler;
mod bad_binaries;
mod bpf_log;
mod closed_loop;
mod debugger;
mod diff;
mod emulate;
mod emulated_answers;
mod emulated_children;
mod ending;
mod evaluation;
mod exit_codes;
mod full_disk;
mod gains;
mod heap;
mod hints;
mod hotplug;
mod import;
mod jit;
mod kernels;
mod killed;
mod latent;
mod layout;
mod line_sizes;
mod live;
mod llvm_plugin;
mod local_storage;
mod log;
mod measure;
mod measured_states;
mod names;
mod overrun;
mod perf_tables;
mod processes;
mod rebuilt;
mod rights;
mod roles;
mod session;
mod simulate;
mod soak;
mod sql;
mod statistics;
mod text_report;
mod tidy;
mod trapped;
mod validate;
mod watch;
mod words;
mod workloads;
