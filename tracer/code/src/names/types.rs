//! The whole type of an object, member by member, and why there may be none.

pub use symbolizer::{Hole, Part, Role, TypeKind, TypeTree};

use super::ObjectKind;

/// Why the type of an object is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untyped {
    /// The bytes belong to no object with a name.
    #[error("no object with a name is there")]
    NoObject,
    /// Nothing tells the type of such memory.
    #[error("nothing says what type the {} has that it is in", words(*.0))]
    Memory(ObjectKind),
    /// It is a variable, but debug information has no type of it.
    #[error("{module} does not have it: {reason}")]
    NoType {
        /// File of the program or library.
        module: String,
        /// As the symbolizer says it.
        reason: String,
    },
}

impl Untyped {
    /// What its reader can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Untyped::NoObject | Untyped::Memory(ObjectKind::Unknown) => {
                "Where no mapping is known, record again from the start of the program."
            }
            Untyped::Memory(ObjectKind::Mapping) => {
                "A shared mapping has no type of its own: the code that the report lists says what is in it."
            }
            Untyped::Memory(ObjectKind::Kernel) => {
                "The layout of kernel types is not read: the functions that the report lists say whose memory it is."
            }
            Untyped::Memory(_) => {
                "Compile the code that the report lists with -g, so that its variables' types are known."
            }
            Untyped::NoType { .. } => {
                "Compile with -g, or install the file's debug information, and ask again: the session keeps."
            }
        }
    }
}

fn words(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Global => "variable",
        ObjectKind::Heap => "heap memory",
        ObjectKind::Stack => "stack memory",
        ObjectKind::Tls => "thread-local memory",
        ObjectKind::Mapping => "mapped memory",
        ObjectKind::Kernel => "kernel memory",
        ObjectKind::Unknown => "unknown memory",
    }
}
