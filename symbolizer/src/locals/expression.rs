//! Location expressions (DWARF 5, sections 2.5 and 2.6), followed without a running process: what they compute
//! stays a sum of a register and a number.

use gimli::{Expression, Operation};

use super::{Base, Place, Register};
use crate::dwarf::{RawUnit, Slice};

/// Operations of one expression that are followed. Compilers write one to five.
const MOST_OPERATIONS: usize = 64;
/// Values on the stack of an expression.
const MOST_VALUES: usize = 16;

/// A value on the stack of an expression.
#[derive(Clone, Copy)]
enum Term {
    Sum {
        base: Base,
        offset: i64,
    },
    Address(u64),
    Number(u64),
    ThreadLocal(u64),
    /// What something was when the function was entered.
    Entry,
    Unknown,
}

impl Term {
    fn plus(self, other: Term) -> Term {
        match (self, other) {
            (Term::Sum { base, offset }, Term::Number(more))
            | (Term::Number(more), Term::Sum { base, offset }) => Term::Sum {
                base,
                offset: offset.wrapping_add(more as i64),
            },
            (Term::Address(address), Term::Number(more))
            | (Term::Number(more), Term::Address(address)) => {
                Term::Address(address.wrapping_add(more))
            }
            (Term::ThreadLocal(offset), Term::Number(more)) => {
                Term::ThreadLocal(offset.wrapping_add(more))
            }
            (Term::Number(a), Term::Number(b)) => Term::Number(a.wrapping_add(b)),
            (Term::Entry, Term::Number(_)) => Term::Entry,
            _ => Term::Unknown,
        }
    }

    fn minus(self, other: Term) -> Term {
        match other {
            Term::Number(less) => self.plus(Term::Number(less.wrapping_neg())),
            _ => Term::Unknown,
        }
    }
}

/// Where an expression says that a variable is.
pub(super) enum Found {
    /// Nowhere: the expression is empty.
    Nowhere,
    Whole(Place),
    /// Each part, with its first byte in the variable and its bytes; parts that are nowhere left out.
    Pieces(Vec<(u64, u64, Place)>),
}

/// Follows an expression.
pub(super) fn find<'a>(
    unit: &RawUnit<'a>,
    expression: Expression<Slice<'a>>,
    frame_base: Option<(Base, i64)>,
) -> Found {
    if expression.0.is_empty() {
        return Found::Nowhere;
    }
    follow(unit, expression, frame_base).unwrap_or(Found::Whole(Place::Complex))
}

/// As [`find`]; nothing where the expression leads out of what [`Place`] can say.
fn follow<'a>(
    unit: &RawUnit<'a>,
    expression: Expression<Slice<'a>>,
    frame_base: Option<(Base, i64)>,
) -> Option<Found> {
    let mut pieces = Vec::new();
    let mut size = 0u64;
    let mut stack: Vec<Term> = Vec::new();
    // What is said to be the place, whatever the stack holds; only the end or a piece may follow.
    let mut said: Option<Place> = None;
    let mut operations = expression.operations(unit.encoding());
    let mut count = 0;
    while let Some(operation) = operations.next().ok()? {
        count += 1;
        if count > MOST_OPERATIONS || stack.len() > MOST_VALUES {
            return None;
        }
        if let Operation::Piece {
            size_in_bits,
            bit_offset: None | Some(0),
        } = operation
            && size_in_bits.is_multiple_of(8)
        {
            let part = size_in_bits / 8;
            let top = stack.pop();
            if let Some(place) = said.take().or_else(|| top.map(address)) {
                pieces.push((size, part, place));
            }
            size = size.checked_add(part)?;
            stack.clear();
            continue;
        }
        if said.is_some() {
            return None;
        }
        let term = match operation {
            Operation::Register { register } => {
                said = Some(Place::Register(register_of(register)?));
                continue;
            }
            Operation::ImplicitValue { data } => {
                said = Some(number(&data).map_or(Place::Complex, Place::Constant));
                continue;
            }
            Operation::StackValue => {
                said = Some(value(stack.pop()?));
                continue;
            }
            Operation::RegisterOffset {
                register,
                offset,
                base_type,
            } if base_type.0 == 0 => Term::Sum {
                base: Base::Register(register_of(register)?),
                offset,
            },
            Operation::FrameOffset { offset } => {
                frame_base.map_or(Term::Unknown, |(base, start)| Term::Sum {
                    base,
                    offset: start.wrapping_add(offset),
                })
            }
            Operation::CallFrameCFA => Term::Sum {
                base: Base::Cfa,
                offset: 0,
            },
            Operation::UnsignedConstant { value } => Term::Number(value),
            Operation::SignedConstant { value } => Term::Number(value as u64),
            Operation::ConstantIndex { index } => Term::Number(unit.raw.address(unit, index).ok()?),
            Operation::Address { address } => Term::Address(address),
            Operation::AddressIndex { index } => Term::Address(unit.raw.address(unit, index).ok()?),
            Operation::TLS => match stack.pop()? {
                Term::Number(offset) | Term::Address(offset) => Term::ThreadLocal(offset),
                _ => return None,
            },
            Operation::EntryValue { .. } => Term::Entry,
            Operation::PlusConstant { value } => stack.pop()?.plus(Term::Number(value)),
            Operation::Plus => {
                let top = stack.pop()?;
                stack.pop()?.plus(top)
            }
            Operation::Minus => {
                let top = stack.pop()?;
                stack.pop()?.minus(top)
            }
            Operation::Nop => continue,
            _ => return None,
        };
        stack.push(term);
    }
    if size > 0 {
        // Nothing may come after the last piece.
        return (said.is_none() && stack.is_empty()).then_some(Found::Pieces(pieces));
    }
    Some(Found::Whole(match said {
        Some(place) => place,
        None => address(stack.pop()?),
    }))
}

/// Where a variable at this address is.
fn address(term: Term) -> Place {
    match term {
        Term::Sum { base, offset } => Place::Memory { base, offset },
        Term::Address(address) => Place::Fixed(address),
        Term::ThreadLocal(offset) => Place::ThreadLocal(offset),
        Term::Entry => Place::EntryValue,
        Term::Number(_) | Term::Unknown => Place::Complex,
    }
}

/// What a variable with this value is said to be.
fn value(term: Term) -> Place {
    match term {
        Term::Sum { base, offset } => Place::Value { base, offset },
        Term::Address(value) | Term::Number(value) => Place::Constant(value),
        Term::Entry => Place::EntryValue,
        Term::ThreadLocal(_) | Term::Unknown => Place::Complex,
    }
}

/// The frame base of a function (`DW_AT_frame_base`): the register it names holds it (section 3.3.5).
pub(super) fn frame_base<'a>(
    unit: &RawUnit<'a>,
    expression: Expression<Slice<'a>>,
) -> Option<(Base, i64)> {
    match find(unit, expression, None) {
        Found::Whole(Place::Register(register)) => Some((Base::Register(register), 0)),
        Found::Whole(Place::Memory { base, offset }) => Some((base, offset)),
        _ => None,
    }
}

fn register_of(register: gimli::Register) -> Option<Register> {
    u8::try_from(register.0).ok().map(Register)
}

/// Little-endian bytes as a number, if it has at most eight.
pub(super) fn number(data: &[u8]) -> Option<u64> {
    if data.is_empty() || data.len() > 8 {
        return None;
    }
    let mut bytes = [0; 8];
    bytes[..data.len()].copy_from_slice(data);
    Some(u64::from_le_bytes(bytes))
}
