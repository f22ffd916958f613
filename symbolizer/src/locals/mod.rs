//! The variables of a function and where each of them is, address by address.

use std::sync::Arc;

use crate::dwarf::Die;

/// A general register by its DWARF number (System V psABI x86-64, figure 3.36; AArch64: DWARF for the Arm 64-bit
/// architecture, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Register(pub(crate) u8);

/// What an offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Register(Register),
    /// The canonical frame address of the function: on x86-64 the address above the return address.
    Cfa,
}

/// Where a variable is at some addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its value is in the register.
    Register(Register),
    /// It lies in memory at `base + offset`.
    Memory { base: Base, offset: i64 },
    /// Its value is `base + offset` (`DW_OP_stack_value`): the compiler keeps something else.
    Value { base: Base, offset: i64 },
    /// It lies at an address of the file.
    Fixed(u64),
    /// It lies at an offset of the thread-local segment.
    ThreadLocal(u64),
    /// Its value is a constant, maybe the address of something.
    Constant(u64),
    /// The compiler says only what it was when the function was entered (`DW_OP_entry_value`).
    EntryValue,
    /// An expression that is not followed, or a variable in pieces.
    Complex,
}

/// One variable or parameter, of the function or of a call inlined into it.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) die: Die,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) ty: Option<Die>,
    pub(crate) parameter: bool,
}

/// A variable is in a place for `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Svma.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Index into [`Locals::variables`].
    pub(crate) variable: u32,
    pub(crate) place: Place,
}

/// The variables of one function, those of inlined calls included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locals {
    pub(crate) variables: Box<[Local]>,
    /// In the order of `start`.
    pub(crate) homes: Box<[Home]>,
}
