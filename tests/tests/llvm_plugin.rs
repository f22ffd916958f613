//! Load hints by the LLVM plugin: clang and rustc build with them, binutils show what was built, and the tool reads it back.

#[path = "llvm_plugin/bench.rs"]
mod bench;
#[path = "llvm_plugin/clang.rs"]
mod clang;
#[path = "llvm_plugin/loops.rs"]
mod loops;
#[path = "llvm_plugin/rust.rs"]
mod rust;
