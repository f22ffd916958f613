//! From the names of fields and the indices of elements to a place in an object: the way that [`super::field`]
//! goes, backwards.

use std::fmt::Write as _;

use super::{
    Array, DEEPEST, Shape,
    members::{FieldMember, Members},
};
use crate::{
    dwarf::{Die, View},
    lookup::{Step, VariableError},
    missing::Missing,
};

/// Members looked at for one question. Types may share members, so that their tree is far larger than the file.
const MOST_STEPS: usize = 1 << 16;
/// Fields named in a message.
const MOST_FIELDS: usize = 24;

/// A part of an object.
pub(crate) struct Part {
    /// As the source writes it, the variable's name in front.
    pub(crate) name: String,
    /// First byte from the start of the object.
    pub(crate) offset: u64,
    /// Bytes, those touched by a bit-field; `None` for an array without a bound.
    pub(crate) size: Option<u64>,
    ty: Die,
    /// An array of which only the outer dimensions were indexed, and how many of them.
    rest: Option<(Array, usize)>,
}

impl View<'_> {
    /// Follows the steps from an object of a type. `total` is the object's size, which bounds arrays
    /// without a bound of their own.
    pub(crate) fn descend(
        &self,
        object: &str,
        ty: Die,
        total: Option<u64>,
        steps: &[Step<'_>],
    ) -> Result<Part, VariableError> {
        let mut search = Search {
            view: self,
            steps: 0,
        };
        let mut part = Part {
            name: object.to_owned(),
            offset: 0,
            size: total,
            ty,
            rest: None,
        };
        for step in steps {
            let followed = match step {
                Step::Field(field) => search.field(&mut part, field),
                Step::Index(index) => search.element(&mut part, *index, total),
            };
            followed.map_err(|stop| match stop {
                Stop::Taught(error) => error,
                Stop::Missing(reason) => VariableError::Followed {
                    place: part.name.clone(),
                    reason,
                },
            })?;
        }
        if part.size.is_none() {
            // Nothing comes after an array without a bound.
            part.size = total.and_then(|total| total.checked_sub(part.offset));
        }
        Ok(part)
    }

    /// The type of a part.
    pub(crate) fn part_type(&self, part: &Part) -> String {
        match &part.rest {
            Some((array, indexed)) => {
                let bound = |count: &Option<u64>| count.map_or_else(String::new, |n| n.to_string());
                let bounds = array.dimensions[*indexed..].iter();
                let bounds: Vec<String> = bounds.map(bound).collect();
                let element = self.type_name(Some(array.element));
                format!("{element} [{}]", bounds.join("]["))
            }
            None => self.type_name(Some(part.ty)),
        }
    }
}

/// Why a step cannot be made.
enum Stop {
    Taught(VariableError),
    Missing(Missing),
}

impl From<Missing> for Stop {
    fn from(missing: Missing) -> Stop {
        Stop::Missing(missing)
    }
}

struct Search<'v, 'a> {
    view: &'v View<'a>,
    steps: usize,
}

impl Search<'_, '_> {
    /// Counts a type looked at.
    fn step(&mut self, depth: usize) -> Result<(), Missing> {
        self.steps += 1;
        if depth > DEEPEST || self.steps > MOST_STEPS {
            return Err(Missing::TooDeep);
        }
        Ok(())
    }

    fn field(&mut self, part: &mut Part, field: &str) -> Result<(), Stop> {
        let found = match part.rest {
            None => self.find(part.ty, &format!(".{field}"), 0)?,
            Some(_) => None,
        };
        let Some((offset, member)) = found else {
            if part.rest.is_none() && self.view.has_virtual_base(part.ty, 0)? {
                return Err(Missing::VirtualBase.into());
            }
            return Err(Stop::Taught(VariableError::NoField {
                place: part.name.clone(),
                type_name: self.view.part_type(part),
                field: field.to_owned(),
                fields: self.fields_of(part),
            }));
        };
        part.offset = part
            .offset
            .checked_add(offset)
            .ok_or(Missing::OutOfBounds)?;
        part.size = if member.is_bit_field {
            Some(member.end() - member.offset())
        } else {
            member.bit_size.map(|bits| bits / 8)
        };
        part.ty = member.ty;
        part.name.push('.');
        part.name.push_str(field);
        Ok(())
    }

    /// The member of a label: of the type itself, of its bases and anonymous members, or of what it wraps; and where
    /// it lies in the type.
    fn find(
        &mut self,
        ty: Die,
        label: &str,
        depth: usize,
    ) -> Result<Option<(u64, FieldMember)>, Missing> {
        self.step(depth)?;
        let Some((die, members)) = self.members(ty)? else {
            return Ok(None);
        };
        let named = members
            .fields
            .iter()
            .chain(members.variants.iter().flatten());
        if let Some(member) = named.clone().find(|member| member.label == label) {
            return Ok(Some((member.offset(), member.clone())));
        }
        for inner in self.looked_through(die, &members)? {
            if let Some((offset, member)) = self.find(inner.ty, label, depth + 1)? {
                let offset = inner.offset().checked_add(offset);
                return Ok(Some((offset.ok_or(Missing::OutOfBounds)?, member)));
            }
        }
        Ok(None)
    }

    /// Members whose own members are the type's: bases, anonymous ones, and the one that a wrapper wraps.
    fn looked_through(&self, die: Die, members: &Members) -> Result<Vec<FieldMember>, Missing> {
        let wrapped = self.view.wrapped(&self.view.entry(die)?, members)?;
        let unnamed = members.fields.iter().filter(|m| m.label.is_empty());
        let wrapped = wrapped.filter(|only| !only.label.is_empty());
        Ok(unnamed.chain(wrapped).cloned().collect())
    }

    /// The members of a structure or union.
    fn members(&self, ty: Die) -> Result<Option<(Die, std::sync::Arc<Members>)>, Missing> {
        let (die, entry) = self.view.peel(ty)?;
        match self.view.shape(die, &entry)? {
            Shape::Structure | Shape::Union => Ok(Some((die, self.view.members(die)?))),
            Shape::Scalar | Shape::Array(_) => Ok(None),
        }
    }

    fn element(&mut self, part: &mut Part, index: u64, total: Option<u64>) -> Result<(), Stop> {
        let (array, indexed, inside) = match part.rest.take() {
            Some((array, indexed)) => (array, indexed, 0),
            None => match self.array(part.ty, 0)? {
                Some((array, inside)) => (array, 0, inside),
                None => {
                    return Err(Stop::Taught(VariableError::NotAnArray {
                        place: part.name.clone(),
                        type_name: self.view.part_type(part),
                        fields: self.fields_of(part),
                    }));
                }
            },
        };
        let mut inner = array.dimensions[indexed + 1..].iter();
        let stride = inner
            .try_fold(array.stride, |bytes, count| bytes.checked_mul((*count)?))
            .filter(|bytes| *bytes > 0)
            .ok_or(Missing::NoType)?;
        let start = part
            .offset
            .checked_add(inside)
            .ok_or(Missing::OutOfBounds)?;
        // The last member of an object may go on to its end.
        let room = || Some(total?.checked_sub(start)? / stride);
        let count = array.dimensions[indexed].or_else(room);
        if let Some(count) = count.filter(|count| index >= *count) {
            return Err(Stop::Taught(VariableError::OutOfRange {
                place: part.name.clone(),
                index,
                count,
            }));
        }
        let offset = index.checked_mul(stride).and_then(|n| n.checked_add(start));
        part.offset = offset.ok_or(Missing::OutOfBounds)?;
        part.size = Some(stride);
        part.ty = array.element;
        let _ = write!(part.name, "[{index}]");
        if indexed + 1 < array.dimensions.len() {
            part.rest = Some((array, indexed + 1));
        }
        Ok(())
    }

    /// The array that a type is or wraps, and where it lies in the type.
    fn array(&mut self, ty: Die, depth: usize) -> Result<Option<(Array, u64)>, Missing> {
        self.step(depth)?;
        let (die, entry) = self.view.peel(ty)?;
        match self.view.shape(die, &entry)? {
            Shape::Array(array) => Ok(Some((array, 0))),
            Shape::Scalar => Ok(None),
            Shape::Structure | Shape::Union => {
                let members = self.view.members(die)?;
                let Some(only) = self.view.wrapped(&entry, &members)? else {
                    return Ok(None);
                };
                let Some((array, offset)) = self.array(only.ty, depth + 1)? else {
                    return Ok(None);
                };
                let offset = offset.checked_add(only.offset());
                Ok(Some((array, offset.ok_or(Missing::OutOfBounds)?)))
            }
        }
    }

    /// Names of the fields of a part; of an array its range.
    fn fields_of(&mut self, part: &Part) -> Vec<String> {
        let mut names = Vec::new();
        let array = match &part.rest {
            Some((array, indexed)) => Some((array.clone(), *indexed)),
            None => self
                .array(part.ty, 0)
                .ok()
                .flatten()
                .map(|(array, _)| (array, 0)),
        };
        if let Some((array, indexed)) = array {
            names.push(match array.dimensions.get(indexed).copied().flatten() {
                Some(0) => return names,
                Some(1) => "[0]".to_owned(),
                Some(count) => format!("[0] to [{}]", count - 1),
                None => "[0], [1], ..".to_owned(),
            });
        } else {
            // What could be read of them is better than nothing.
            let _ = self.list(part.ty, 0, &mut names);
        }
        names
    }

    fn list(&mut self, ty: Die, depth: usize, names: &mut Vec<String>) -> Result<(), Missing> {
        self.step(depth)?;
        let Some((die, members)) = self.members(ty)? else {
            return Ok(());
        };
        let wrapped = self
            .view
            .wrapped(&self.view.entry(die)?, &members)?
            .cloned();
        if let Some(only) = wrapped {
            // The name of what a wrapper wraps is private to the library.
            return self.list(only.ty, depth + 1, names);
        }
        for member in members
            .fields
            .iter()
            .chain(members.variants.iter().flatten())
        {
            if names.len() == MOST_FIELDS {
                names.push("..".to_owned());
            }
            if names.len() > MOST_FIELDS {
                break;
            }
            match member.label.strip_prefix('.') {
                Some(name) => names.push(name.to_owned()),
                None => self.list(member.ty, depth + 1, names)?,
            }
        }
        Ok(())
    }
}
