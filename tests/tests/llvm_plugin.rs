//! Load hints by the LLVM plugin: clang and rustc build with them, binutils show what was built, and the tool reads it back.

mod bench;
mod clang;
mod loops;
mod rust;
