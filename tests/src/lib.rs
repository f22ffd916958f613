//! Harness of the tests that run the tool on programs whose answer is known.
//!
//! `workload` builds the programs of `tests/workloads`, `answer` reads the key in their source, `tool` runs
//! cohtrace, `report` reads its JSON, `compare` holds one against the other, and `live` does all of it for one
//! test; `turn` says which tests run beside each other, `times` what each took. `evaluation` builds and runs the kernels that load hints are
//! measured on. `disassembly` checks the keys themselves, without the tool. `breakpoint` and `debuggee` are for what else
//! may hold breakpoints, `rust_text` and `repository` for the tidy tests and the figures of the house. `llvm_plugin` builds
//! the plugin for compilers. `gains` are programs whose padding gains what is known; `usage`, `terminal` and `figures` are for what is measured instead of asserted.

pub mod answer;
pub mod breakpoint;
pub mod compare;
pub mod debuggee;
pub mod disassembly;
pub mod emulated;
pub mod evaluation;
pub mod figures;
pub mod gains;
pub mod kernel;
pub mod live;
pub mod llvm_plugin;
pub mod moments;
pub mod naming;
pub mod repeat;
pub mod report;
pub mod repository;
pub mod rooms;
pub mod rust_text;
pub mod terminal;
pub mod times;
pub mod tool;
pub mod turn;
pub mod usage;
pub mod workload;
