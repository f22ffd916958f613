//! From an offset with an unknown index to the part of an object.

use super::{
    types::{Kind, Type},
    value::Address,
};
use crate::{
    FieldKind, FieldPath, Untraced,
    dwarf::{Die, View},
    missing::Missing,
    types::{Shape, Side},
};

/// Deepest nesting of arrays in structures that is searched for the one that is indexed.
const DEEPEST: usize = 16;

/// What of an object is accessed.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// From the start of the object.
    pub(super) offset: u64,
    pub(super) field: FieldPath,
    /// Which of the objects that the pointer may walk over.
    pub(super) outer: Outer,
    /// That the pointer points to an array is concluded from nothing else being there to point to.
    pub(super) concluded: bool,
}

/// Whether what a pointer points to may be one of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'u> {
    /// It may: it is no reference, nor the object itself.
    pub(super) walks: bool,
    /// The function does go from one to the next.
    pub(super) walked: bool,
    /// The units that describe the function.
    pub(super) units: &'u [u32],
}

/// Which object of those that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outer {
    First,
    At(i64),
    Unknown,
}

/// The part at an address's offset.
pub(super) fn part_of(
    view: &View<'_>,
    ty: &Type,
    address: Address,
    size: u32,
    elements: Elements<'_>,
) -> Result<Part, Untraced> {
    if ty.kind == Kind::Undefined {
        return Err(Untraced::DeclarationOnly);
    }
    let whole = ty.size.filter(|&size| size > 0 && size < 1 << 48);
    let is_scalar = ty.kind == Kind::Scalar;
    // Whatever is copied or cleared in bulk is called bytes.
    if is_scalar && whole == Some(1) && size != 1 {
        return Err(Untraced::Untyped);
    }
    let mut outer = Outer::First;
    let mut concluded = false;
    let mut offset = address.offset;
    let stride = address.stride;
    if before_array(view, ty.die, address) {
        offset = offset.wrapping_add_unsigned(stride);
    }
    if let (Some(whole), true) = (whole, elements.walks) {
        let span = whole as i64;
        if address.elements {
            outer = Outer::Unknown;
            offset = offset.rem_euclid(span);
        } else if !(0..span).contains(&offset) {
            // A larger type that starts with this one looks like the next element.
            if !(is_scalar || elements.walked) {
                let side = match u64::try_from(offset) {
                    Ok(_) => Side::After,
                    Err(_) => Side::Before {
                        distance: offset.unsigned_abs(),
                        size: u64::from(size),
                    },
                };
                if !view.has_like_beside(ty.die, elements.units, side) {
                    return Err(Untraced::OutsideType);
                }
                concluded = true;
            }
            // From before the start of an array a register may lead anywhere.
            if stride != 0 && offset < 0 {
                return Err(Untraced::OutsideType);
            }
            outer = Outer::At(offset.div_euclid(span));
            offset = offset.rem_euclid(span);
        }
    }
    let offset = u64::try_from(offset).map_err(|_| Untraced::OutsideType)?;
    if whole.is_some_and(|whole| offset >= whole) {
        return Err(Untraced::OutsideType);
    }
    let flags = if stride == 0 {
        None
    } else {
        Some(indexed(view, ty.die, offset, stride, 0).ok_or(Untraced::Computed)?)
    };
    let mut field = view
        .field(ty.die, offset, u64::from(size))
        .map_err(untraced)?;
    if field.kind == FieldKind::Padding {
        return Err(Untraced::OutsideType);
    }
    // Of whole members nothing is left over: else something else may be meant.
    let is_whole = (field.member_offset, field.member_size) == (offset, u64::from(size));
    if concluded && (!is_whole || field.path.is_empty()) {
        return Err(Untraced::OutsideType);
    }
    if let Some(flags) = flags {
        let several = field.kind != FieldKind::Member || field.ty.is_none();
        field.path = without_indexes(&field.path, |group| {
            several || flags.get(group).copied().unwrap_or(false)
        });
    }
    Ok(Part {
        offset,
        field,
        outer,
        concluded,
    })
}

/// Whether an address is `object.items[i - 1]`: less than an element before an object that starts with an array of
/// elements as far apart as the index goes. (Further before it there may be another object, of which this is a member.)
fn before_array(view: &View<'_>, die: Die, address: Address) -> bool {
    let before = address.offset.wrapping_neg();
    if address.elements || before <= 0 || before as u64 > address.stride {
        return false;
    }
    let mut at = die;
    for _ in 0..DEEPEST {
        let Ok((peeled, entry)) = view.peel(at) else {
            return false;
        };
        match view.shape(peeled, &entry) {
            Ok(Shape::Array(array)) => {
                // Of one element, or of none that is known, no element but the first has a place.
                return array.stride == address.stride
                    && array.dimensions.len() == 1
                    && array.count().is_some_and(|count| count > 1);
            }
            Ok(Shape::Structure) => {
                let Ok(members) = view.members(peeled) else {
                    return false;
                };
                let mut first = members.fields.iter().filter(|member| member.offset() == 0);
                match (first.next(), first.next()) {
                    (Some(only), None) if members.variants.is_empty() => at = only.ty,
                    _ => return false,
                }
            }
            _ => return false,
        }
    }
    false
}

fn untraced(missing: Missing) -> Untraced {
    match missing {
        Missing::OutOfBounds | Missing::VirtualBase => Untraced::OutsideType,
        Missing::DeclarationOnly => Untraced::DeclarationOnly,
        Missing::NoType => Untraced::Untyped,
        _ => Untraced::Malformed,
    }
}

/// Empties the brackets that are chosen by their number in the path.
fn without_indexes(path: &str, chosen: impl Fn(usize) -> bool) -> String {
    let mut text = String::with_capacity(path.len());
    let mut group = 0;
    let mut skipping = false;
    for letter in path.chars() {
        match letter {
            '[' => {
                skipping = chosen(group);
                group += 1;
                text.push('[');
            }
            ']' => {
                skipping = false;
                text.push(']');
            }
            _ if skipping => {}
            other => text.push(other),
        }
    }
    text
}

/// For each bracket of the path to an offset, whether its index is unknown; nothing if no array on the path has
/// elements that lie `stride` apart.
fn indexed(view: &View<'_>, die: Die, offset: u64, stride: u64, depth: usize) -> Option<Vec<bool>> {
    if depth > DEEPEST {
        return None;
    }
    let (die, entry) = view.peel(die).ok()?;
    match view.shape(die, &entry).ok()? {
        Shape::Array(array) => {
            if array.stride == 0
                || array
                    .count()
                    .is_some_and(|count| offset / array.stride >= count)
            {
                return None;
            }
            // Bytes from one element to the next, of each dimension.
            let mut step = array.stride;
            let mut steps: Vec<u64> = Vec::new();
            for dimension in array.dimensions.iter().rev() {
                steps.push(step);
                step = step.checked_mul(dimension.unwrap_or(1))?;
            }
            steps.reverse();
            let mut flags: Vec<bool> = steps
                .iter()
                .map(|step| {
                    step.is_multiple_of(stride) || stride.is_multiple_of(*step) && *step >= stride
                })
                .collect();
            if steps.iter().any(|step| stride.is_multiple_of(*step)) {
                if !flags.contains(&true) {
                    // A stride of several elements: the index goes up in steps.
                    let last = steps.iter().position(|step| stride.is_multiple_of(*step))?;
                    flags[last] = true;
                }
                return Some(flags);
            }
            if !array.stride.is_multiple_of(stride) {
                return None;
            }
            flags.extend(indexed(
                view,
                array.element,
                offset % array.stride,
                stride,
                depth + 1,
            )?);
            Some(flags)
        }
        Shape::Structure | Shape::Union => {
            let members = view.members(die).ok()?;
            let fields = members
                .fields
                .iter()
                .chain(members.variants.iter().flatten());
            let is_array = |ty: Die| {
                view.peel(ty).is_ok_and(|(die, entry)| {
                    matches!(view.shape(die, &entry), Ok(Shape::Array(_)))
                })
            };
            for member in fields {
                if member.is_bit_field || !(member.offset()..member.end()).contains(&offset) {
                    continue;
                }
                let within = offset - member.offset();
                // `[p + i * 8 + 24]` with two arrays side by side may be an element of the second before its
                // start, `b[i - 1]`.
                let mut nexts = members.fields.iter();
                if within >= stride
                    && is_array(member.ty)
                    && nexts.any(|next| next.offset() == member.end() && is_array(next.ty))
                {
                    return None;
                }
                if let Some(flags) = indexed(view, member.ty, within, stride, depth + 1) {
                    return Some(flags);
                }
            }
            None
        }
        Shape::Scalar => None,
    }
}
