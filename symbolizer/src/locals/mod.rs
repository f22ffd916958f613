//! The variables of a function and where each of them is, address by address.

mod expression;
mod reader;
#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    Module, Untraced,
    dwarf::{DebugInfo, Die},
    missing::Missing,
};

/// Bytes of variables that are kept between questions; some thousand functions.
const MOST_KEPT: usize = 32 << 20;

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
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "names and types are what is asked for")
)]
pub(crate) struct Local {
    pub(crate) die: Die,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) ty: Option<Die>,
    pub(crate) parameter: bool,
    /// A parameter of the function itself, not of a call inlined into it. They come in the order of the source.
    pub(crate) own: bool,
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

/// A part of a variable is in a place for `start..end`. The variable's own [`Home`] is [`Place::Complex`] there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceHome {
    /// Svma.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Index into [`Locals::variables`].
    pub(crate) variable: u32,
    /// First byte of the part in the variable.
    pub(crate) offset: u64,
    /// Bytes of the part.
    pub(crate) size: u64,
    pub(crate) place: Place,
}

/// The variables of one function, those of inlined calls included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locals {
    pub(crate) variables: Box<[Local]>,
    /// In the order of `start`.
    pub(crate) homes: Box<[Home]>,
    /// In the order of `start`.
    pub(crate) pieces: Box<[PieceHome]>,
    /// Types of pointers of inlined calls that the compiler computed away.
    pub(crate) dropped: Box<[Die]>,
}

impl Locals {
    /// About how many bytes this takes.
    fn size(&self) -> usize {
        let names = self
            .variables
            .iter()
            .filter_map(|local| local.name.as_ref());
        size_of_val(&*self.variables)
            + size_of_val(&*self.homes)
            + size_of_val(&*self.pieces)
            + size_of_val(&*self.dropped)
            + names.map(|name| name.len()).sum::<usize>()
    }
}

/// The variables of the functions asked for, by the entry of the function.
#[derive(Default)]
pub(crate) struct LocalsCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    functions: HashMap<Die, Arc<Locals>>,
    size: usize,
}

impl DebugInfo {
    /// The variables of the function that holds an address.
    fn locals(&self, svma: u64) -> Result<Arc<Locals>, Missing> {
        let view = self.view();
        let (function, _) = view.function_at(svma)?;
        let kept = || self.locals.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().functions.get(&function) {
            return Ok(Arc::clone(found));
        }
        let locals = Arc::new(reader::read(&view, function)?);
        let mut kept = kept();
        let size = locals.size() + size_of::<Locals>();
        if kept.size + size > MOST_KEPT {
            *kept = Kept::default();
        }
        kept.size += size;
        kept.functions.insert(function, Arc::clone(&locals));
        Ok(locals)
    }
}

impl Module {
    /// The variables of the function that holds an address.
    pub(crate) fn locals(&self, svma: u64) -> Result<Arc<Locals>, Untraced> {
        let locals = self.debug_info().and_then(|info| info.locals(svma));
        locals.map_err(|missing| match missing {
            Missing::Malformed | Missing::TooDeep => Untraced::Malformed,
            _ => Untraced::NoDebugInfo,
        })
    }

    /// The type of what the function that starts at an address returns; nothing for `void` and where no debug info
    /// tells.
    pub(crate) fn return_type(&self, function_svma: u64) -> Option<Die> {
        let view = self.debug_info().ok()?.view();
        let (function, start) = view.function_at(function_svma).ok()?;
        if start != function_svma {
            return None;
        }
        view.chain(function).iter().find_map(|(_, entry)| entry.ty)
    }
}
