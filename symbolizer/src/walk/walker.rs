//! The walk from a type down to the members at some bytes of it.

use super::{Array, Found, Hole, Leaf, Member, Members, Parts, Types, path_of};
use crate::missing::Missing;

/// Deepest nesting of types in types that is followed.
const DEEPEST: usize = 64;
/// Members told apart in one access or one union; more are summed up as "from the first to the last".
const MOST_LEAVES: usize = 64;
/// Types and members looked at for one question.
const MOST_STEPS: usize = 1 << 17;
/// Names given for one place in a union.
const MOST_ALTERNATIVES: usize = 3;

/// The accessed bytes, relative to the type at hand.
#[derive(Clone, Copy)]
struct Window {
    start: u64,
    end: u64,
}

/// The members at `offset..offset + size` of an object of a type, which is looked into, if `opened`, even where paths
/// end at it.
pub fn members_at<T: Types>(
    types: &T,
    ty: T::Type,
    offset: u64,
    size: u64,
    opened: bool,
) -> Result<Found<T::Type>, Missing> {
    let end = offset.checked_add(size.max(1));
    let window = Window {
        start: offset,
        end: end.ok_or(Missing::OutOfBounds)?,
    };
    let place = Place {
        ty,
        named: None,
        base: 0,
        path: String::new(),
        depth: 0,
    };
    let mut walker = Walker {
        types,
        steps: 0,
        opened,
    };
    walker.walk(&place, window)
}

/// Where the walk is: the type, its offset in the whole object, the path to it.
struct Place<T> {
    ty: T,
    /// What to call the type, if a wrapper around it is what the source names.
    named: Option<T>,
    base: u64,
    path: String,
    depth: usize,
}

impl<T: Copy> Place<T> {
    fn name(&self) -> T {
        self.named.unwrap_or(self.ty)
    }

    /// One member without parts, which is so many bytes from here.
    fn leaf(&self, path: String, offset: u64, end: u64, ty: T) -> Found<T> {
        Found::Leaves(vec![Leaf {
            path,
            offset: self.base.saturating_add(offset),
            end: self.base.saturating_add(end),
            ty: Some(ty),
        }])
    }
}

/// One question's walk. Types may share members, so that their tree is far larger than the file: steps are counted.
struct Walker<'t, T> {
    types: &'t T,
    steps: usize,
    opened: bool,
}

impl<T: Types> Walker<'_, T> {
    /// What is in the window, which is relative to the place.
    fn walk(&mut self, place: &Place<T::Type>, window: Window) -> Result<Found<T::Type>, Missing> {
        if place.depth > DEEPEST || self.steps > MOST_STEPS {
            return Err(Missing::TooDeep);
        }
        self.steps += 1;
        let opened = self.opened && place.depth == 0;
        let (size, parts) = self.types.parts(place.ty, opened)?;
        if let Parts::Structure(members) | Parts::Union(members) = &parts {
            // Before any of them is looked into: lists of members that are open at the same time are bounded too.
            self.steps += members.fields.len() + members.variants.iter().flatten().count();
        }
        let bound = size.unwrap_or(u64::MAX);
        let found = match parts {
            Parts::Nothing => {
                let size = size.ok_or(Missing::NoType)?;
                if window.start >= size {
                    return Err(Missing::OutOfBounds);
                }
                return Ok(place.leaf(place.path.clone(), 0, size, place.name()));
            }
            Parts::Elements(array) => return self.walk_array(place, &array, window),
            Parts::Wrapped(mut only) => {
                only.label.clear();
                self.walk_members(place, &[only], bound, window, Some(place.name()))?
            }
            Parts::Union(members) => self.choose(place, members.fields.chunks(1), window)?,
            Parts::Structure(members) if members.variants.is_empty() => {
                self.walk_members(place, &members.fields, bound, window, None)?
            }
            Parts::Structure(members) => self.walk_variants(place, &members, bound, window)?,
        };
        match found {
            Found::Hole(_) if window.start >= bound => Err(Missing::OutOfBounds),
            Found::Hole(_) if self.types.has_virtual_base(place.ty)? => Err(Missing::VirtualBase),
            found => Ok(found),
        }
    }

    /// The payload of one of the variants, and the discriminant. Where a value of the payload tells the variants
    /// apart (`Option<Box<T>>`) both are in one place, and what the source accesses is the payload.
    fn walk_variants(
        &mut self,
        place: &Place<T::Type>,
        members: &Members<T::Type>,
        size: u64,
        window: Window,
    ) -> Result<Found<T::Type>, Missing> {
        let payload = self.choose(place, members.variants.iter().map(Vec::as_slice), window)?;
        let fields = self.walk_members(place, &members.fields, size, window, None)?;
        Ok(match (payload, fields) {
            (Found::Leaves(mut leaves), Found::Leaves(fields)) => {
                let apart = |field: &Leaf<_>| {
                    leaves
                        .iter()
                        .all(|leaf| field.end <= leaf.offset || leaf.end <= field.offset)
                };
                let mut all: Vec<_> = fields.into_iter().filter(apart).collect();
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
        place: &Place<T::Type>,
        array: &Array<T::Type>,
        window: Window,
    ) -> Result<Found<T::Type>, Missing> {
        let count = array.count().unwrap_or(u64::MAX);
        let first = window.start.checked_div(array.stride);
        let first = first.filter(|first| *first < count);
        let first = first.ok_or(Missing::OutOfBounds)?;
        // The access may go beyond the array; what is behind it is another object's.
        let last = ((window.end - 1) / array.stride).min(count - 1);
        let subscripted = |index| format!("{}{}", place.path, array.subscripts(index));
        let mut leaves = Vec::new();
        let mut hole = None;
        let mut indexes = vec![first, (first + 1).min(last), last];
        indexes.dedup();
        for index in indexes {
            let start = index.checked_mul(array.stride);
            let start = start.ok_or(Missing::OutOfBounds)?;
            let inner = Place {
                ty: array.element,
                named: None,
                base: place.base.checked_add(start).ok_or(Missing::OutOfBounds)?,
                path: subscripted(index),
                depth: place.depth + 1,
            };
            let window = Window {
                start: window.start.saturating_sub(start),
                end: (window.end - start).min(array.stride),
            };
            match self.walk(&inner, window)? {
                Found::Leaves(found) => leaves.extend(found),
                Found::Hole(found) => hole = hole.or(Some(found)),
            }
        }
        leaves.truncate(MOST_LEAVES);
        Ok(match hole {
            Some(mut hole) if leaves.is_empty() => {
                // The padding behind an element is before the next one.
                if first + 1 < count {
                    hole.after = hole.after.or_else(|| Some(subscripted(first + 1)));
                }
                Found::Hole(hole)
            }
            _ => Found::Leaves(leaves),
        })
    }

    /// Members side by side: all that the window touches, or the hole it falls into. If `named`, it says what the
    /// types of the members are called.
    fn walk_members(
        &mut self,
        place: &Place<T::Type>,
        members: &[Member<T::Type>],
        size: u64,
        window: Window,
        named: Option<T::Type>,
    ) -> Result<Found<T::Type>, Missing> {
        let mut leaves = Vec::new();
        let mut hole = None;
        // The neighbours, in case the window turns out to be a hole.
        let (mut before, mut after): (Option<&Member<_>>, Option<&Member<_>>) = (None, None);
        for member in members {
            if !member.overlaps(window.start, window.end) {
                if member.label.is_empty() || member.bit_size == Some(0) {
                    continue;
                }
                if member.end() <= window.start {
                    if before.is_none_or(|known| member.end() >= known.end()) {
                        before = Some(member);
                    }
                } else {
                    after = after.or(Some(member));
                }
                continue;
            }
            match self.walk_member(place, member, window, named)? {
                Found::Leaves(found) if leaves.len() < MOST_LEAVES => leaves.extend(found),
                // Too many to keep: the last one is all that the description needs of the rest.
                Found::Leaves(found) => {
                    leaves.pop();
                    leaves.extend(found.into_iter().next_back());
                }
                Found::Hole(found) => hole = hole.or(Some(found)),
            }
        }
        if !leaves.is_empty() {
            return Ok(Found::Leaves(leaves));
        }
        let path = |member: &Member<_>| format!("{}{}", place.path, member.label);
        let start = before.map_or(0, Member::end);
        let end = after.map_or(size.max(window.end), Member::offset);
        let hole = hole.unwrap_or(Hole {
            before: None,
            after: None,
            start: place.base.saturating_add(start),
            end: place.base.saturating_add(end),
        });
        // A hole at the end of a nested structure reaches up to the next member of this one.
        Ok(Found::Hole(Hole {
            before: hole.before.or_else(|| before.map(path)),
            after: hole.after.or_else(|| after.map(path)),
            ..hole
        }))
    }

    /// One member, seen from its own start.
    fn walk_member(
        &mut self,
        place: &Place<T::Type>,
        member: &Member<T::Type>,
        window: Window,
        named: Option<T::Type>,
    ) -> Result<Found<T::Type>, Missing> {
        let (start, end) = (member.offset(), member.end());
        let inner = Place {
            ty: member.ty,
            named,
            base: place.base.checked_add(start).ok_or(Missing::OutOfBounds)?,
            path: format!("{}{}", place.path, member.label),
            depth: place.depth + 1,
        };
        let leaf = |path| Ok(place.leaf(path, start, end, member.ty));
        if member.is_bit_field {
            return leaf(inner.path);
        }
        let window = Window {
            start: window.start.saturating_sub(start),
            end: window.end.min(end) - start,
        };
        match self.walk(&inner, window) {
            // What the member is made of is not known: its own name still is.
            Err(Missing::DeclarationOnly | Missing::NoType) => leaf(inner.path),
            found => found,
        }
    }

    /// Members in the same place: the one that is exactly the accessed bytes, else all that could be meant.
    fn choose<'m>(
        &mut self,
        place: &Place<T::Type>,
        arms: impl Iterator<Item = &'m [Member<T::Type>]>,
        window: Window,
    ) -> Result<Found<T::Type>, Missing>
    where
        T::Type: 'm,
    {
        let mut hole = None;
        let mut candidates = Vec::new();
        for arm in arms {
            match self.walk_members(place, arm, 0, window, None)? {
                Found::Leaves(leaves) => candidates.push(leaves),
                Found::Hole(found) => hole = hole.or(Some(found)),
            }
        }
        let start = place.base.saturating_add(window.start);
        let end = place.base.saturating_add(window.end);
        // A 4-byte access to a union of a `long` and two `int`s is to one of the `int`s.
        let exact = |leaves: &Vec<Leaf<_>>| matches!(&leaves[..], [leaf] if leaf.offset == start && leaf.end == end);
        // Where no size fits, every name is as good as the other, and all are given.
        if candidates.iter().any(exact) {
            candidates.retain(exact);
        }
        match candidates.len() {
            0 => Ok(Found::Hole(hole.unwrap_or(Hole {
                before: None,
                after: None,
                start,
                end,
            }))),
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
