//! Instruction addresses to functions, inlined calls and source lines; data addresses to variables, types and
//! fields.
//!
//! For a process, live or recorded, there is [`Process`]: it takes mappings and run-time addresses. Below it is the
//! single file: **you give** the bytes of an ELF file ([`Module::parse`]), a way to find its separate debug file
//! ([`DebugFiles`]) and addresses. **You get** code ([`Module::frames`], [`Module::function`]), data
//! ([`Module::object`], [`Module::field`], [`Module::layout`]; by name [`Module::variable`]), or the reason why there is none ([`Missing`]).
//!
//! Code that no file holds is named by what its compiler writes: [`PerfMap`], [`JitDump`].
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (address, mapping_start, mapping_offset) = (0, 0, 0);
//! use std::sync::Arc;
//! use symbolizer::{Module, NoDebugFiles};
//!
//! let module = Module::parse(Arc::new(std::fs::read("/bin/true")?), Box::new(NoDebugFiles))?;
//! let svma = module.svma_of_offset(address - mapping_start + mapping_offset).ok_or("not mapped")?;
//! for frame in module.frames(svma).frames {
//!     println!("{:?} {:?}:{:?}", frame.function, frame.file, frame.line);
//! }
//! match module.object(svma) {
//!     Ok(object) => println!("{} at offset {}", object.name, svma - object.address),
//!     Err(missing) => println!("{missing}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The crate opens no file and reads no process: the caller maps files and turns run-time addresses into
//! the file's own ([`Module::svma_of_offset`]). Files may be hostile: no input makes it panic, recurse without
//! bound, run forever or take memory out of proportion to the file.

#![deny(unsafe_code)]

mod access;
mod allowance;
mod budget;
mod code;
mod debug_files;
mod demangle;
mod dwarf;
mod image;
mod jit;
mod kept;
mod language;
mod locals;
mod lookup;
mod machine_code;
mod minidebug;
mod missing;
mod module;
mod object;
mod process;
mod separate;
mod spans;
mod symbols;
mod thread_local;
mod types;
mod unwind;
pub mod walk;

pub use access::{Accessed, Coverage, Operand, Prototyped, Prototypes, Reached, Storage, Untraced};
pub use allowance::Allowance;
pub use code::{Code, Frame};
pub use debug_files::{Bytes, DebugFiles, DebugRequest, NoDebugFiles};
pub use demangle::demangle;
pub use dwarf::SourceFile;
pub use jit::{JitDump, JitDumpError, JitFunction, JitLine, PerfMap};
pub use language::Language;
pub use lookup::{Candidate, NamedVariable, VariableError, without_parameters};
pub use missing::{Missing, ModuleError};
pub use module::{Bounds, Function, Module};
pub use object::Object;
pub use process::{Data, Mapping, NoModule, OpenModule, Process, Region, module_mapping};
pub use thread_local::{ThreadLocalSlot, ThreadLocalSlotKind, ThreadLocalTemplate};
pub use types::{
    Element, FieldKind, FieldPath, Hole, Layout, Member, Part, Pointer, Role, TypeKind, TypeRef,
    TypeTree,
};
pub use unwind::{FrameRow, Saved};
