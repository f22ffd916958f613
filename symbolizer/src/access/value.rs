//! What a register or a stack slot may hold.

use crate::Untraced;

/// A type that something points to, by its place in [`super::types::Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TypeId(pub(super) u32);

/// How the source calls a pointer, by its place in [`super::types::Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameId(pub(super) u32);

/// What is known of a value. The order of knowledge: an unknown value is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Unknown(Untraced),
    Constant(u64),
    /// No address, but a multiple of this.
    Integer(u64),
    Address(Address),
}

impl Value {
    pub(super) const COMPUTED: Value = Value::Unknown(Untraced::Computed);
    /// An integer of which nothing is known.
    pub(super) const INTEGER: Value = Value::Integer(1);

    /// What every value of this kind is a multiple of, of an integer.
    pub(super) fn multiple(self) -> Option<u64> {
        match self {
            Value::Constant(value) => Some(value),
            Value::Integer(multiple) => Some(multiple),
            Value::Unknown(_) | Value::Address(_) => None,
        }
    }

    pub(super) fn offset(self, by: i64) -> Value {
        match self {
            Value::Constant(value) => Value::Constant(value.wrapping_add_signed(by)),
            Value::Integer(multiple) => Value::Integer(common(multiple, by.unsigned_abs())),
            Value::Address(address) => Value::Address(address.moved(by)),
            unknown @ Value::Unknown(_) => unknown,
        }
    }
}

/// A place: an object and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) root: Root,
    /// Bytes from the root; of a global, the svma.
    pub(super) offset: i64,
    /// The true offset differs by a multiple of this; 0 if it does not.
    pub(super) stride: u64,
}

impl Address {
    pub(super) fn new(root: Root, offset: i64) -> Address {
        Address {
            root,
            offset,
            stride: 0,
        }
    }

    pub(super) fn moved(self, by: i64) -> Address {
        Address {
            offset: self.offset.wrapping_add(by),
            ..self
        }
    }

    /// Some multiple of `stride` away.
    pub(super) fn walking(self, stride: u64) -> Address {
        Address {
            stride: common(self.stride, stride),
            ..self
        }
    }
}

/// What an offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// What a pointer of the source points to.
    Pointer(Target),
    /// The canonical frame address.
    Frame,
    /// The start of the file's address space.
    Global,
    /// The thread pointer.
    Thread,
}

/// What a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) ty: TypeId,
    pub(super) name: NameId,
    /// A reference, or the object itself: written without a star.
    pub(super) reference: bool,
}

/// The greatest common divisor; of 0 and `n`, `n`.
pub(super) fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
