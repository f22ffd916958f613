//! The walk from a type down to the members at some bytes of it.

use super::{
    Array, DEEPEST, Shape,
    members::{FieldMember, Members},
};
use crate::{
    dwarf::{Die, View},
    missing::Missing,
};

/// Members told apart in one access or one union; more are summed up as "from the first to the last".
const MOST_LEAVES: usize = 64;
/// Members looked at for one question.
const MOST_STEPS: usize = 1 << 16;
/// Names given for one place in a union.
const MOST_ALTERNATIVES: usize = 3;
/// The accessed bytes, relative to the type at hand.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A member without parts, or as far as its parts are known.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) path: String,
    /// First byte in the whole object.
    pub(super) offset: u64,
    pub(super) end: u64,
    /// Absent when several members are meant.
    pub(super) ty: Option<Die>,
}

/// What is at the accessed bytes.
pub(super) enum Found {
    Leaves(Vec<Leaf>),
    /// No member: between these two, from byte to byte.
    Hole {
        before: Option<String>,
        after: Option<String>,
        start: u64,
        end: u64,
    },
}

/// Where the walk is: the type, its offset in the whole object, the path to it.
pub(super) struct Place {
    ty: Die,
    /// What to call the type, if a wrapper around it is what the source names.
    named: Option<Die>,
    base: u64,
    path: String,
}

impl Place {
    /// The start of the walk.
    pub(super) fn whole(ty: Die) -> Place {
        Place {
            ty,
            named: None,
            base: 0,
            path: String::new(),
        }
    }
}

/// Members side by side, in words.
pub(super) fn path_of(leaves: &[Leaf]) -> String {
    match leaves {
        [] => String::new(),
        [leaf] => leaf.path.clone(),
        [first, second] => format!("{} and {}", first.path, second.path),
        [first, .., last] => format!("{} to {}", first.path, last.path),
    }
}

/// One question's walk. Types may share members, so that their tree is far larger than the file: steps are counted.
pub(super) struct Walker<'v, 'a> {
    view: &'v View<'a>,
    steps: usize,
    /// Whether the type that the walk starts from is looked into even where paths end at it.
    opened: bool,
}

impl<'v, 'a> Walker<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>) -> Self {
        Walker {
            view,
            steps: 0,
            opened: false,
        }
    }

    /// A walk that starts inside of a type, whatever it is.
    pub(super) fn opening(view: &'v View<'a>) -> Self {
        Walker {
            opened: true,
            ..Walker::new(view)
        }
    }

    /// What is in the window, which is relative to the place.
    pub(super) fn walk(
        &mut self,
        place: Place,
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        if depth > DEEPEST || self.steps > MOST_STEPS {
            return Err(Missing::TooDeep);
        }
        self.steps += 1;
        let (die, entry) = self.view.peel(place.ty)?;
        let size = self.view.size(die)?;
        let opened = self.opened && depth == 0;
        let shape = if !opened && self.view.is_opaque(place.ty)? {
            Shape::Scalar
        } else {
            self.view.shape(die, &entry)?
        };
        match shape {
            Shape::Array(array) => self.walk_array(&place, &array, window, depth),
            Shape::Scalar => {
                let size = size.ok_or(Missing::NoType)?;
                if window.start >= size {
                    return Err(Missing::OutOfBounds);
                }
                Ok(Found::Leaves(vec![Leaf {
                    path: place.path,
                    offset: place.base,
                    end: place.base.saturating_add(size),
                    ty: Some(place.named.unwrap_or(place.ty)),
                }]))
            }
            shape => {
                let members = self.view.members(die)?;
                let inner: Vec<Inner<'_>> =
                    if let Some(only) = self.view.wrapped(&entry, &members)? {
                        let named = place.named.unwrap_or(place.ty);
                        vec![Inner {
                            member: only,
                            label: "",
                            named: Some(named),
                        }]
                    } else {
                        Inner::all(&members.fields)
                    };
                let size = size.unwrap_or(u64::MAX);
                let is_union = matches!(shape, Shape::Union);
                let found = if is_union {
                    let arms: Vec<Vec<Inner<'_>>> =
                        inner.into_iter().map(|one| vec![one]).collect();
                    self.choose(&place, &arms, window, depth)?
                } else if members.variants.is_empty() {
                    self.walk_members(&place, &inner, size, window, depth)?
                } else {
                    self.walk_variants(&place, &members, size, window, depth)?
                };
                match found {
                    Found::Hole { .. } if window.start >= size => Err(Missing::OutOfBounds),
                    Found::Hole { .. } if self.view.has_virtual_base(die, 0)? => {
                        Err(Missing::VirtualBase)
                    }
                    found => Ok(found),
                }
            }
        }
    }

    /// The payload of one of the variants, and the discriminant. Where a value of the payload tells the variants
    /// apart (`Option<Box<T>>`) both are in one place, and what the source accesses is the payload.
    fn walk_variants(
        &mut self,
        place: &Place,
        members: &Members,
        size: u64,
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        let arms: Vec<_> = members
            .variants
            .iter()
            .map(|payload| Inner::all(payload))
            .collect();
        let payload = self.choose(place, &arms, window, depth)?;
        let fields = self.walk_members(place, &Inner::all(&members.fields), size, window, depth)?;
        Ok(match (payload, fields) {
            (Found::Leaves(mut leaves), Found::Leaves(fields)) => {
                let apart = |field: &Leaf| {
                    leaves
                        .iter()
                        .all(|leaf| field.end <= leaf.offset || leaf.end <= field.offset)
                };
                let mut all: Vec<Leaf> = fields.into_iter().filter(apart).collect();
                all.append(&mut leaves);
                all.sort_by_key(|leaf| leaf.offset);
                Found::Leaves(all)
            }
            (payload @ Found::Leaves(_), _) => payload,
            (_, fields @ Found::Leaves(_)) => fields,
            (payload, _) => payload,
        })
    }

    /// An element and what is in it; of an access that spans several, the first, the second and the last of them.
    fn walk_array(
        &mut self,
        place: &Place,
        array: &Array,
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        if array.stride == 0 {
            return Err(Missing::OutOfBounds);
        }
        let count = array.count().unwrap_or(u64::MAX);
        let first = window.start / array.stride;
        if first >= count {
            return Err(Missing::OutOfBounds);
        }
        // The access may go beyond the array; what is behind it is another object's.
        let last = ((window.end - 1) / array.stride).min(count - 1);
        let mut element = |index: u64| {
            let start = index
                .checked_mul(array.stride)
                .ok_or(Missing::OutOfBounds)?;
            let inner = Place {
                ty: array.element,
                named: None,
                base: place.base.checked_add(start).ok_or(Missing::OutOfBounds)?,
                path: format!("{}{}", place.path, array.subscripts(index)),
            };
            let window = Window {
                start: window.start.saturating_sub(start),
                end: (window.end - start).min(array.stride),
            };
            self.walk(inner, window, depth + 1)
        };
        let found = element(first)?;
        if first == last {
            return Ok(match found {
                // The padding behind an element is before the next one.
                Found::Hole {
                    before,
                    after: None,
                    start,
                    end,
                } if first + 1 < count => {
                    let after = Some(format!("{}{}", place.path, array.subscripts(first + 1)));
                    Found::Hole {
                        before,
                        after,
                        start,
                        end,
                    }
                }
                found => found,
            });
        }
        let mut leaves = Vec::new();
        if let Found::Leaves(found) = found {
            leaves.extend(found);
        }
        if last - first > 1
            && let Found::Leaves(found) = element(first + 1)?
        {
            leaves.extend(found);
        }
        if let Found::Leaves(found) = element(last)? {
            leaves.extend(found);
        }
        leaves.truncate(MOST_LEAVES);
        Ok(Found::Leaves(leaves))
    }

    /// Members side by side: all that the window touches, or the hole it falls into.
    fn walk_members(
        &mut self,
        place: &Place,
        members: &[Inner<'_>],
        size: u64,
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut hole = None;
        // The neighbours, in case the window turns out to be a hole.
        let (mut before, mut after): (Option<&Inner<'_>>, Option<&Inner<'_>>) = (None, None);
        for inner in members {
            let member = inner.member;
            self.steps += 1;
            if !member.overlaps(window.start, window.end) {
                if member.end() <= window.start && member.bit_size != Some(0) {
                    if before.is_none_or(|known| member.end() >= known.member.end()) {
                        before = Some(inner);
                    }
                } else if member.offset() >= window.end && after.is_none() {
                    after = Some(inner);
                }
                continue;
            }
            match self.walk_member(place, inner, window, depth)? {
                Found::Leaves(found) if leaves.len() < MOST_LEAVES => leaves.extend(found),
                // Too many to keep: the last one is all that the description needs of the rest.
                Found::Leaves(found) => {
                    leaves.pop();
                    leaves.extend(found.into_iter().next_back());
                }
                Found::Hole {
                    before,
                    after,
                    start,
                    end,
                } => {
                    hole = hole.or(Some((before, after, start, end)));
                }
            }
        }
        if !leaves.is_empty() {
            return Ok(Found::Leaves(leaves));
        }
        let path = |inner: &Inner<'_>| format!("{}{}", place.path, inner.label);
        let named = |inner: &&Inner<'_>| !inner.label.is_empty();
        let (before, after) = (before.filter(named), after.filter(named));
        // A hole at the end of a nested structure reaches up to the next member of this one.
        if let Some((inner_before, inner_after, start, end)) = hole {
            return Ok(Found::Hole {
                before: inner_before.or_else(|| before.map(path)),
                after: inner_after.or_else(|| after.map(path)),
                start,
                end,
            });
        }
        let start = before.map_or(0, |inner| inner.member.end());
        let end = after.map_or(size.max(window.end), |inner| inner.member.offset());
        Ok(Found::Hole {
            before: before.map(path),
            after: after.map(path),
            start: place.base.saturating_add(start),
            end: place.base.saturating_add(end),
        })
    }

    /// One member, seen from its own start.
    fn walk_member(
        &mut self,
        place: &Place,
        inner: &Inner<'_>,
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        let member = inner.member;
        let base = place
            .base
            .checked_add(member.offset())
            .ok_or(Missing::OutOfBounds)?;
        let path = format!("{}{}", place.path, inner.label);
        if member.is_bit_field {
            let end = place.base.saturating_add(member.end());
            let leaf = Leaf {
                path,
                offset: base,
                end,
                ty: Some(member.ty),
            };
            return Ok(Found::Leaves(vec![leaf]));
        }
        let inner_window = Window {
            start: window.start.saturating_sub(member.offset()),
            end: window.end.min(member.end()) - member.offset(),
        };
        let inner_place = Place {
            ty: member.ty,
            named: inner.named,
            base,
            path: path.clone(),
        };
        match self.walk(inner_place, inner_window, depth + 1) {
            // What the member is made of is not known: its own name still is.
            Err(Missing::DeclarationOnly | Missing::NoType) => {
                let end = place.base.saturating_add(member.end());
                let leaf = Leaf {
                    path,
                    offset: base,
                    end,
                    ty: Some(member.ty),
                };
                Ok(Found::Leaves(vec![leaf]))
            }
            found => found,
        }
    }

    /// Members in the same place: the one that is exactly the accessed bytes, else all that could be meant.
    fn choose(
        &mut self,
        place: &Place,
        arms: &[Vec<Inner<'_>>],
        window: Window,
        depth: usize,
    ) -> Result<Found, Missing> {
        let mut hole = None;
        let mut candidates: Vec<Vec<Leaf>> = Vec::new();
        for arm in arms {
            match self.walk_members(place, arm, 0, window, depth)? {
                Found::Leaves(leaves) => candidates.push(leaves),
                found @ Found::Hole { .. } => hole = hole.or(Some(found)),
            }
        }
        let (start, end) = (
            place.base + window.start,
            place.base.saturating_add(window.end),
        );
        // A 4-byte access to a union of a `long` and two `int`s is to one of the `int`s.
        let exact = |leaves: &Vec<Leaf>| matches!(&leaves[..], [leaf] if leaf.offset == start && leaf.end == end);
        // Where no size fits, every name is as good as the other, and all are given.
        if candidates.iter().any(exact) {
            candidates.retain(exact);
        }
        match candidates.len() {
            0 => Ok(hole.unwrap_or(Found::Hole {
                before: None,
                after: None,
                start,
                end,
            })),
            1 => Ok(Found::Leaves(candidates.swap_remove(0))),
            count => {
                let all = || candidates.iter().flatten();
                let offset = all().map(|leaf| leaf.offset).min().unwrap_or(start);
                let last = all().map(|leaf| leaf.end).max().unwrap_or(end);
                let mut paths: Vec<String> = candidates.iter().map(|arm| path_of(arm)).collect();
                paths.dedup();
                // A long list says less than the name of the union.
                let path = if count > MOST_ALTERNATIVES && !place.path.is_empty() {
                    place.path.clone()
                } else {
                    paths.truncate(MOST_ALTERNATIVES);
                    paths.join(" or ")
                };
                Ok(Found::Leaves(vec![Leaf {
                    path,
                    offset,
                    end: last,
                    ty: None,
                }]))
            }
        }
    }
}

/// A member and what it adds to the path.
struct Inner<'m> {
    member: &'m FieldMember,
    label: &'m str,
    named: Option<Die>,
}

impl<'m> Inner<'m> {
    fn all(members: &'m [FieldMember]) -> Vec<Inner<'m>> {
        let inner = |member: &'m FieldMember| Inner {
            member,
            label: &member.label,
            named: None,
        };
        members.iter().map(inner).collect()
    }
}
