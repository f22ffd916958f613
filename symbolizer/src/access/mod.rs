//! Data by instruction: which variable, type and field a memory operand stands for.

mod coverage;
mod facts;
mod flow;
mod function;
mod globals;
mod meet;
mod objects;
mod parts;
mod prototyped;
mod state;
mod types;
mod value;
mod values;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::{FieldPath, Module, TypeRef};
pub use coverage::Coverage;
use function::Followed;
use globals::Linked;
pub use prototyped::{Prototyped, Prototypes, Reached};

/// Functions that are kept followed.
const MOST_KEPT: usize = 256;

/// What is kept between questions.
#[derive(Default)]
pub(crate) struct AccessCache {
    linked: OnceLock<Linked>,
    functions: Mutex<HashMap<u64, Kept>>,
}

type Kept = Result<Arc<Followed>, Untraced>;

impl Module {
    /// What the memory operand of the instruction at an address stands for.
    ///
    /// The function is followed by the first question for one of its instructions, which takes about as long as
    /// compiling a few lines; its other instructions are then looked up. A name is only told if it holds on every path
    /// to the instruction. x86-64 only.
    pub fn access(&self, svma: u64, operand: Operand) -> Result<Accessed, Untraced> {
        let followed = self.followed(svma)?;
        let view = self.debug_info().map_err(|_| Untraced::NoDebugInfo)?.view();
        followed.access(&view, svma, operand)
    }

    /// The function that holds an address, followed once.
    fn followed(&self, svma: u64) -> Kept {
        if self.debug_info().is_err() {
            return Err(Untraced::NoDebugInfo);
        }
        let function = self.function(svma).ok_or(Untraced::NoFunction)?;
        let cache = self.accesses();
        let kept = || {
            cache
                .functions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(known) = kept().get(&function.start) {
            return known.clone();
        }
        let linked = cache.linked.get_or_init(|| Linked::read(self.image()));
        let followed = Followed::new(self, linked, &function, svma).map(Arc::new);
        let mut kept = kept();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(function.start, followed.clone());
        followed
    }
}

/// Which memory operand of an instruction is meant: some have two (`movs`, `push (mem)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The one that is read, or read and written.
    Load,
    /// The one that is written, or read and written.
    Store,
}

/// What an instruction's memory operand stands for in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// As the source would write it: `n->count`, `queue->slots[].head`, `total`, `this->hits`.
    pub expression: String,
    /// The whole object, in the same way: `*n`, `queue->slots[]`, `recs[3]`.
    pub object: String,
    /// Every function of the program may call it so: the expression begins with a variable that has a fixed place.
    pub everywhere: bool,
    /// The type of the whole object: of what the pointer points to, or of the variable itself.
    pub ty: TypeRef,
    /// Its name.
    pub type_name: String,
    /// Bytes from the start of the object to the first accessed one; of an indexed operand, at index 0.
    pub offset: u64,
    /// Bytes that the operand reads or writes.
    pub size: u64,
    /// Bytes from one element to the next, if the operand is indexed by a register: the true offset is larger by a
    /// multiple of it that only the address tells.
    pub stride: Option<u64>,
    /// The part of the object; `[]` in the path where the index is not known.
    pub field: FieldPath,
    /// What kind of memory holds the object.
    pub storage: Storage,
    /// The constant offset is that of another object than the first that the pointer points to, and nothing says that it
    /// points to several: there is only nothing else in the debug info that could be meant.
    pub concluded: bool,
}

/// Where the object of an [`Accessed`] lies, as far as the code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Behind a pointer: anywhere.
    Pointed,
    /// In the frame of the function.
    Frame,
    /// At this svma.
    Global(u64),
    /// At this offset of the module's thread-local segment.
    ThreadLocal(u64),
}

/// Why an instruction's operand could not be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Untraced {
    /// There is no debug info for the function.
    NoDebugInfo,
    /// No function with known bounds holds the address.
    NoFunction,
    /// The address is not at an instruction of the function, or the function cannot be decoded.
    Undecodable,
    /// The instruction has no such memory operand.
    NoMemoryOperand,
    /// Part of the frame that is no variable: a saved register, a return address, a spilled value.
    Spill,
    /// The register was computed in a way that is not followed, and of a pointer to something large enough the compiler
    /// says only what it was when the function was entered (`DW_OP_entry_value`).
    EntryValue,
    /// The register was computed in a way that is not followed.
    Computed,
    /// The register is the result of a call to a function whose return type is not known.
    CallResult,
    /// The pointer has no type to point to (`void *`, an integer).
    Untyped,
    /// Different paths through the function lead here with different types.
    Conflict,
    /// The offset lies outside of the type: a cast, or an address before the object.
    OutsideType,
    /// The type is declared, but not defined in the module.
    DeclarationOnly,
    /// The function is too large to follow.
    TooLarge,
    /// The debug info contradicts itself or ends too early.
    Malformed,
}

impl Untraced {
    /// All reasons, in report order.
    pub const ALL: [Untraced; 14] = [
        Untraced::NoDebugInfo,
        Untraced::NoFunction,
        Untraced::Undecodable,
        Untraced::NoMemoryOperand,
        Untraced::Spill,
        Untraced::EntryValue,
        Untraced::Computed,
        Untraced::CallResult,
        Untraced::Untyped,
        Untraced::Conflict,
        Untraced::OutsideType,
        Untraced::DeclarationOnly,
        Untraced::TooLarge,
        Untraced::Malformed,
    ];

    /// Stable name for machines.
    pub fn name(self) -> &'static str {
        match self {
            Untraced::NoDebugInfo => "no_debug_info",
            Untraced::NoFunction => "no_function",
            Untraced::Undecodable => "undecodable",
            Untraced::NoMemoryOperand => "no_memory_operand",
            Untraced::Spill => "spill",
            Untraced::EntryValue => "entry_value",
            Untraced::Computed => "computed",
            Untraced::CallResult => "call_result",
            Untraced::Untyped => "untyped",
            Untraced::Conflict => "conflict",
            Untraced::OutsideType => "outside_type",
            Untraced::DeclarationOnly => "declaration_only",
            Untraced::TooLarge => "too_large",
            Untraced::Malformed => "malformed",
        }
    }
}

impl fmt::Display for Untraced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Untraced::NoDebugInfo => "no debug info for the function",
            Untraced::NoFunction => "no function is known at the instruction",
            Untraced::Undecodable => "the function could not be decoded",
            Untraced::NoMemoryOperand => "the instruction has no such memory operand",
            Untraced::Spill => "a part of the stack frame that is no variable",
            Untraced::EntryValue => "the variable is known only as it was at the function's entry",
            Untraced::Computed => "the address was computed in a way that is not followed",
            Untraced::CallResult => "the pointer is the result of a call of unknown type",
            Untraced::Untyped => "the pointer has no type",
            Untraced::Conflict => "several paths lead to the instruction with different types",
            Untraced::OutsideType => "the offset lies outside of the pointer's type",
            Untraced::DeclarationOnly => "the type is only declared in this module",
            Untraced::TooLarge => "the function is too large to follow",
            Untraced::Malformed => "the debug info is damaged",
        })
    }
}

impl std::error::Error for Untraced {}
