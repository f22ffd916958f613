//! From bytes of an object to the members there, whatever describes the types: DWARF, or the kernel's BTF.

mod walker;

use std::{ops::Range, sync::Arc};

use crate::missing::Missing;
pub use walker::members_at;

/// What describes types.
pub trait Types {
    /// One of the types.
    type Type: Copy;

    /// Bytes of an object of the type, where they are known, and what it is made of: `opened`, also where paths end
    /// at members of the type.
    fn parts(
        &self,
        ty: Self::Type,
        opened: bool,
    ) -> Result<(Option<u64>, Parts<Self::Type>), Missing>;

    /// Whether a base class of the type has no fixed place. Then what looks like a hole may be its.
    fn has_virtual_base(&self, _: Self::Type) -> Result<bool, Missing> {
        Ok(false)
    }
}

/// What an object is made of.
pub enum Parts<T> {
    /// A number, a pointer, or what is not looked into.
    Nothing,
    /// Elements in a row.
    Elements(Array<T>),
    /// Members side by side.
    Structure(Arc<Members<T>>),
    /// Members in the same place.
    Union(Arc<Members<T>>),
    /// One member that the source does not name: it means the whole.
    Wrapped(Member<T>),
}

/// An array type; all its dimensions.
#[derive(Clone)]
pub struct Array<T> {
    /// The type of an element.
    pub element: T,
    /// Bytes from one element to the next; 0 where that is not known.
    pub stride: u64,
    /// Elements of each dimension, outermost first; `None` for `[]`.
    pub dimensions: Vec<Option<u64>>,
}

impl<T> Array<T> {
    /// Elements in all, if the type says.
    pub(crate) fn count(&self) -> Option<u64> {
        self.dimensions
            .iter()
            .try_fold(1u64, |count, dimension| count.checked_mul((*dimension)?))
    }

    /// `[1][2]` for the element at a position.
    pub(crate) fn subscripts(&self, index: u64) -> String {
        let mut parts = Vec::new();
        let mut rest = index;
        for dimension in self.dimensions.iter().skip(1).rev() {
            match dimension {
                Some(count) if *count > 0 => {
                    parts.push(format!("[{}]", rest % count));
                    rest /= count;
                }
                _ => {}
            }
        }
        parts.push(format!("[{rest}]"));
        parts.reverse();
        parts.concat()
    }
}

/// What a structure consists of.
pub struct Members<T> {
    /// In the order of their place.
    pub fields: Vec<Member<T>>,
    /// The payload of each variant of a Rust enumeration: only one of them is there at a time.
    pub variants: Vec<Vec<Member<T>>>,
    /// Some base class is virtual: where it lies is read from the object at run time.
    pub has_virtual_base: bool,
}

/// One member.
#[derive(Clone)]
pub struct Member<T> {
    /// What the member adds to a path: `.hits`, or nothing for a base class or an anonymous member.
    pub label: String,
    /// From the start of the enclosing structure, in bits.
    pub bit_offset: u64,
    /// Bits; `None` for a flexible array.
    pub bit_size: Option<u64>,
    /// It is a bit-field.
    pub is_bit_field: bool,
    /// It is a base class.
    pub is_base: bool,
    /// Its type.
    pub ty: T,
    /// Explicit alignment (`alignas` on the member), bytes.
    pub alignment: Option<u64>,
}

impl<T> Member<T> {
    /// First byte.
    pub(crate) fn offset(&self) -> u64 {
        self.bit_offset / 8
    }

    /// First byte after the member; without end for a flexible array.
    pub(crate) fn end(&self) -> u64 {
        self.bit_size
            .and_then(|size| self.bit_offset.checked_add(size))
            .map_or(u64::MAX, |end| end.div_ceil(8))
    }

    /// Whether the member has any byte in `start..end`.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        self.offset() < end && self.end() > start && self.bit_size != Some(0)
    }
}

/// A member without parts, or as far as its parts are known.
#[derive(Clone, Debug)]
pub struct Leaf<T> {
    /// As the source would write it behind the object.
    pub path: String,
    /// First byte in the whole object.
    pub offset: u64,
    /// First byte behind it.
    pub end: u64,
    /// Absent when several members are meant.
    pub ty: Option<T>,
}

/// What is at the accessed bytes.
pub enum Found<T> {
    /// Members side by side.
    Leaves(Vec<Leaf<T>>),
    /// No member.
    Hole(Hole),
}

/// Bytes between members.
pub struct Hole {
    /// The member before them.
    pub before: Option<String>,
    /// The member behind them.
    pub after: Option<String>,
    /// First byte in the whole object.
    pub start: u64,
    /// First byte that is no more of the hole.
    pub end: u64,
}

impl<T> Found<T> {
    /// `.hits`, `[3].hits`, `.a and .b`, `.a to .z`, `.i or .f` (a union), `between .misses and .total` (padding);
    /// empty for an object without parts.
    pub fn path(&self) -> String {
        let hole = match self {
            Found::Leaves(leaves) => return path_of(leaves),
            Found::Hole(hole) => hole,
        };
        match (&hole.before, &hole.after) {
            (Some(before), Some(after)) => format!("between {before} and {after}"),
            (Some(before), None) => format!("after {before}"),
            (None, Some(after)) => format!("before {after}"),
            (None, None) => "padding".to_owned(),
        }
    }

    /// The bytes of it in the whole object.
    pub fn bytes(&self) -> Range<u64> {
        match self {
            Found::Leaves(leaves) => {
                let start = leaves.iter().map(|leaf| leaf.offset).min();
                let end = leaves.iter().map(|leaf| leaf.end).max();
                start.unwrap_or(0)..end.unwrap_or(0)
            }
            Found::Hole(hole) => hole.start..hole.end,
        }
    }
}

/// Members side by side, in words.
fn path_of<T>(leaves: &[Leaf<T>]) -> String {
    match leaves {
        [] => String::new(),
        [leaf] => leaf.path.clone(),
        [first, second] => format!("{} and {}", first.path, second.path),
        [first, .., last] => format!("{} to {}", first.path, last.path),
    }
}
