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
    /// No address, but `offset` plus some multiple of `multiple`.
    Integer {
        multiple: u64,
        offset: i64,
    },
    Address(Address),
}

impl Value {
    pub(super) const COMPUTED: Value = Value::Unknown(Untraced::Computed);
    /// An integer of which nothing is known.
    pub(super) const INTEGER: Value = Value::Integer {
        multiple: 1,
        offset: 0,
    };

    /// `offset` plus some multiple of `multiple`.
    pub(super) fn integer(multiple: u64, offset: i64) -> Value {
        match multiple {
            0 => Value::Constant(offset as u64),
            multiple => Value::Integer { multiple, offset },
        }
    }

    /// Multiple and offset of an integer.
    pub(super) fn parts(self) -> Option<(u64, i64)> {
        match self {
            Value::Constant(value) => Some((0, value as i64)),
            Value::Integer { multiple, offset } => Some((multiple, offset)),
            Value::Unknown(_) | Value::Address(_) => None,
        }
    }

    pub(super) fn offset(self, by: i64) -> Value {
        match self {
            Value::Constant(value) => Value::Constant(value.wrapping_add_signed(by)),
            Value::Integer { multiple, offset } => Value::Integer {
                multiple,
                offset: offset.wrapping_add(by),
            },
            Value::Address(address) => Value::Address(address.moved(by)),
            unknown @ Value::Unknown(_) => unknown,
        }
    }

    /// The integer times a constant.
    pub(super) fn scaled(self, by: u64) -> Option<Value> {
        let (multiple, offset) = self.parts()?;
        Some(Value::integer(
            multiple.wrapping_mul(by),
            offset.wrapping_mul(by as i64),
        ))
    }

    /// What a multiplication by a constant gives: of what is not known, a multiple of the constant.
    pub(super) fn multiplied(self, by: u64) -> Value {
        match self.scaled(by) {
            Some(value) => value,
            None if by > 1 => Value::integer(by, 0),
            None => Value::COMPUTED,
        }
    }

    /// One of two integers; `None` where one of them is no integer.
    pub(super) fn either_integer(a: Value, b: Value) -> Option<Value> {
        let (a, b) = (a.parts()?, b.parts()?);
        let distance = a.1.abs_diff(b.1);
        Some(Value::integer(common(common(a.0, b.0), distance), a.1))
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
    /// The true offset also differs by a multiple of the pointer's type: it is one of several objects.
    pub(super) elements: bool,
}

impl Address {
    pub(super) fn new(root: Root, offset: i64) -> Address {
        Address {
            root,
            offset,
            stride: 0,
            elements: false,
        }
    }

    pub(super) fn moved(self, by: i64) -> Address {
        Address {
            offset: self.offset.wrapping_add(by),
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
    /// The compiler computes the pointer from another, of which nothing else is told: only what it points to itself is
    /// known, unless the function walks over elements of that type.
    pub(super) aside: bool,
}

/// The greatest common divisor; of 0 and `n`, `n`.
pub(super) fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
