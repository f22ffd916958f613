//! What lines have in common that belong together: the variable, the type, the allocation or the mapping that they are of.
//!
//! ```text
//!   ring.slot[16384]     one line after the other, eight slots each     all are `ring.slot[]`
//!   workers[64], 192 B   line 0, 1 and 2 of each element                `workers[]`, by which of the three
//!   struct node on the heap, wherever                                   `struct node`, by which of its lines
//!   struct account       line 0 the lock, line 1 the balance            two things
//! ```

use super::{AccessedBy, FieldName, ObjectKind, ObjectLayout, ObjectName};
use crate::access::{LineKey, LineSize};

/// What makes lines one thing. Equal owners are the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// What kind of memory.
    pub kind: ObjectKind,
    /// `ring.slot[]`, `struct node`, `malloc of 64 bytes at queue.c:31`.
    pub label: String,
    /// Where it begins, of a thing that is there once; 0 of one that is wherever its type or its allocation is.
    pub start: u64,
    /// Which line of what repeats, from 0.
    pub part: u64,
}

/// An owner, with what else is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// What makes lines one thing.
    pub owner: Owner,
    /// Lines of all of it, used or not; `None` where its size is not known.
    pub lines: Option<u64>,
    /// What repeats, as positions in the place's numbering; `None` where nothing does.
    pub unit: Option<Unit>,
}

/// Equal pieces of memory, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Where the first begins.
    pub start: u64,
    /// Bytes from one to the next, at least 1.
    pub stride: u64,
}

impl Unit {
    /// The number of the piece that holds a position; of one before the first, none.
    pub fn number(self, position: u64) -> Option<u64> {
        Some(position.checked_sub(self.start)? / self.stride.max(1))
    }
}

/// The owner of a line, by the objects on it and the names of their parts; `None` where nothing is known but that
/// somebody accesses it. `by` are the instructions known to access it.
pub(super) fn owner(
    key: LineKey,
    size: LineSize,
    by: &[AccessedBy],
    objects: &[ObjectName],
    field: impl Fn(u8, u16) -> Option<FieldName>,
) -> Option<Owned> {
    let line = key.0.position();
    let touched = by.iter().filter(|site| site.op.touches());
    let most = touched.max_by_key(|site| (site.count, std::cmp::Reverse(site.offset)))?;
    let part = field(most.offset, u16::from(most.size));
    let index = part.as_ref().map_or(0, |part| part.object);
    let object = objects.get(index)?;
    let path = part.and_then(|part| part.path).unwrap_or_default();
    let label = if is_nameless_number(object, &path) {
        // Only the way that the code comes to it tells what it is: `queue->slot[]`.
        String::new()
    } else {
        label(object)?
    };
    let lines = object.size.map(|bytes| bytes.div_ceil(size.bytes()));
    let is_once = object.kind != ObjectKind::Heap && object.name.is_some();
    let owned = |path: &str, part: u64, unit: Option<Unit>| {
        let label = format!("{label}{path}");
        let owner = Owner {
            kind: object.kind,
            start: object.start.filter(|_| is_once).unwrap_or(0),
            part,
            label,
        };
        (!owner.label.is_empty()).then_some(Owned {
            owner,
            lines: lines.filter(|_| is_once),
            unit,
        })
    };
    let element = object
        .layout
        .as_ref()
        .and_then(|layout| layout.element.as_ref());
    if let (Some(element), Some(start)) = (element.filter(|e| e.stride > 0), object.start) {
        let stride = element.stride;
        let into = line.wrapping_sub(start) % stride;
        let part = if stride.is_multiple_of(size.bytes()) {
            into / size.bytes()
        } else {
            0
        };
        return owned("[]", part, Some(Unit { start, stride }));
    }
    if let Some((before, number)) = indexed(&path) {
        let at = |offset: u8| {
            let part = field(offset, u16::from(most.size))?;
            let (other, number) = indexed(part.path.as_deref()?)?;
            (part.object == index && other == before).then_some(number?)
        };
        let unit = number.and_then(|_| repeats(line, most.size, size, at));
        return owned(&format!("{before}[]"), 0, unit);
    }
    let Some(start) = object.start else {
        // Somewhere in an array of such objects.
        return owned("", 0, None);
    };
    // An object that begins on the line has its first line here.
    let part = line.saturating_sub(start) / size.bytes();
    owned("", part, None)
}

/// Whether all that is known of a piece of memory is that code takes it for a number or a pointer: as good as anything on the
/// heap is one.
fn is_nameless_number(object: &ObjectName, path: &str) -> bool {
    let has_parts = object.layout.as_ref().is_some_and(ObjectLayout::has_parts);
    object.name.is_none()
        && object.allocation.is_none()
        && object.line.is_none()
        && !has_parts
        && !path.starts_with('.')
}

/// `ring`, `struct node`; `None` for memory of which nothing tells what it is.
fn label(object: &ObjectName) -> Option<String> {
    let of_allocation = object.allocation.is_some();
    // Without a variable, memory that a file is behind is called by its place in it.
    let (file, place) = object
        .name
        .as_deref()
        .and_then(|name| name.rsplit_once("+0x"))
        .unzip();
    let is_place = place.is_some_and(|at| at.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let name = match (object.kind, &object.name) {
        (ObjectKind::Mapping, _) if is_place => file,
        // Some variable of the module.
        (ObjectKind::Global, _) if is_place && object.start.is_none() => None,
        (_, name) => name.as_deref(),
    };
    match (name, &object.type_name) {
        (Some(name), Some(type_name)) if of_allocation => Some(format!("{type_name} from {name}")),
        (Some(name), _) => Some(name.to_owned()),
        // Of a row that a variable leads to, all of it.
        (None, _) if object.is_reached => object.called.as_deref().map(without_number),
        (None, type_name) => type_name.clone(),
    }
}

/// `item_locks[]` for `item_locks[3]`, `*nodes[]` for `*nodes[12]`: all that a variable's pointers lead to is one thing.
fn without_number(called: &str) -> String {
    let mut out = String::new();
    let mut rest = called;
    while let Some((before, behind)) = rest.split_once('[') {
        out.push_str(before);
        out.push('[');
        rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

/// `.slot` and 12 of `.slot[12].next`: all that is indexed is one thing. No number where the code computes it.
fn indexed(path: &str) -> Option<(&str, Option<u64>)> {
    let open = path.find('[')?;
    let close = path[open..].find(']')? + open;
    let inside = &path[open + 1..close];
    if inside.is_empty() {
        return Some((&path[..open], None));
    }
    Some((&path[..open], Some(inside.parse().ok()?)))
}

/// The elements of which a line holds two or more whole ones, by asking for each: where one begins and where the next.
fn repeats(line: u64, step: u8, size: LineSize, at: impl Fn(u8) -> Option<u64>) -> Option<Unit> {
    let offsets = (0..size.bytes() as u8).step_by(usize::from(step.max(1)));
    let numbers: Vec<(u8, u64)> = offsets
        .filter_map(|offset| Some((offset, at(offset)?)))
        .collect();
    let mut begins = numbers.chunk_by(|a, b| a.1 == b.1).map(|one| one[0]);
    // Bytes of the first one may lie before the line.
    let (_, (from, number)) = (begins.next()?, begins.next()?);
    let (to, _) = begins.next().filter(|(_, next)| *next == number + 1)?;
    let stride = u64::from(to - from);
    let start = line
        .checked_add(u64::from(from))?
        .checked_sub(number.checked_mul(stride)?)?;
    Some(Unit { start, stride })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Op, Place, SpaceId},
        names::{Author, ElementLayout},
    };

    fn key(addr: u64) -> LineKey {
        LineKey(Place::Private {
            space: SpaceId(1),
            addr,
        })
    }

    fn accessed(offset: u8) -> AccessedBy {
        AccessedBy {
            space: SpaceId(1),
            ip: 0x40_1000,
            kernel: false,
            op: Op::Store,
            offset,
            size: 8,
            count: 1,
        }
    }

    fn variable(name: &str, start: u64, size: u64) -> ObjectName {
        ObjectName {
            kind: ObjectKind::Global,
            name: Some(name.to_owned()),
            start: Some(start),
            size: Some(size),
            ..ObjectName::default()
        }
    }

    fn array(start: u64, stride: u64, count: u64) -> ObjectName {
        ObjectName {
            layout: Some(ObjectLayout {
                author: Author::Program,
                size: stride * count,
                element: Some(ElementLayout {
                    type_name: None,
                    stride,
                    count,
                }),
                members: Vec::new(),
            }),
            ..variable("workers", start, stride * count)
        }
    }

    fn of(addr: u64, object: &ObjectName, path: &str) -> Owned {
        let field = |_, _| {
            Some(FieldName {
                object: 0,
                path: (!path.is_empty()).then(|| path.to_owned()),
            })
        };
        let objects = std::slice::from_ref(object);
        owner(key(addr), LineSize::B64, &[accessed(0)], objects, field).expect("known")
    }

    #[test]
    fn all_lines_of_an_array_are_one_thing_and_so_are_all_of_an_array_within() {
        let small = array(0x1000, 8, 1000);
        let [first, later] = [0x1000, 0x1f00].map(|addr| of(addr, &small, "[3]"));
        assert_eq!(first.owner, later.owner);
        assert_eq!(
            (first.owner.label.as_str(), first.lines),
            ("workers[]", Some(125))
        );
        let ring = variable("ring", 0x1000, 8192);
        let [first, later] =
            [(0x1000, ".slot[0]"), (0x2000, ".slot[512]")].map(|(a, p)| of(a, &ring, p));
        assert_eq!(first.owner, later.owner);
        assert_eq!(first.owner.label, "ring.slot[]");
    }

    #[test]
    fn elements_of_an_array_within_are_found_by_their_numbers() {
        let at = |offset: u8| Some(100 + u64::from(offset) / 16);
        let unit = repeats(0x2000, 8, LineSize::B64, at).expect("four elements");
        assert_eq!((unit.stride, unit.start), (16, 0x2000 - 1600));
        assert_eq!(
            (unit.number(0x2000), unit.number(0x2038)),
            (Some(100), Some(103))
        );
        // The first one began before the line.
        let shifted = |offset: u8| Some((u64::from(offset) + 8) / 16);
        assert_eq!(
            repeats(0x2008, 8, LineSize::B64, shifted).map(|u| u.start),
            Some(0x2000)
        );
        assert_eq!(repeats(0x2000, 8, LineSize::B64, |_| Some(7)), None);
    }

    #[test]
    fn lines_of_one_struct_are_things_of_their_own_and_so_are_those_of_a_large_element() {
        let account = variable("account", 0x1000, 128);
        assert_ne!(
            of(0x1000, &account, ".lock").owner,
            of(0x1040, &account, ".balance").owner
        );
        let large = array(0x1000, 128, 10);
        assert_eq!(
            of(0x1040, &large, "[0].x").owner,
            of(0x10c0, &large, "[1].x").owner
        );
        assert_ne!(
            of(0x1040, &large, "[0].x").owner,
            of(0x1080, &large, "[1].y").owner
        );
        // Elements that are no whole lines share them in every way.
        let odd = array(0x1000, 96, 10);
        assert_eq!(
            of(0x1040, &odd, "[0].x").owner,
            of(0x1080, &odd, "[1].y").owner
        );
    }

    #[test]
    fn lines_of_a_file_without_variables_are_one_thing_and_those_of_a_stripped_module_are_not() {
        let place = |kind, name: &str| ObjectName {
            kind,
            name: Some(name.to_owned()),
            ..ObjectName::default()
        };
        let shared = |at: u64| place(ObjectKind::Mapping, &format!("/dev/shm/ring+{at:#x}"));
        let [one, other] = [0x1240, 0x8a00].map(|at| of(at, &shared(at), ""));
        assert_eq!(one, other);
        assert_eq!(one.owner.label, "/dev/shm/ring");
        let stripped = place(ObjectKind::Global, "server+0x4040");
        let none = |_, _| None;
        let found = owner(
            key(0x4040),
            LineSize::B64,
            &[accessed(0)],
            &[stripped],
            none,
        );
        assert_eq!(found, None);
    }

    #[test]
    fn objects_of_one_type_are_one_thing_wherever_they_are() {
        let node = |start| ObjectName {
            kind: ObjectKind::Heap,
            type_name: Some("struct node".to_owned()),
            start: Some(start),
            size: Some(16),
            ..ObjectName::default()
        };
        let [one, other] = [0x5010, 0x9020].map(|start| of(start & !63, &node(start), ".next"));
        assert_eq!(one, other);
        assert_eq!((one.owner.label.as_str(), one.lines), ("struct node", None));
        let unknown = ObjectName {
            kind: ObjectKind::Heap,
            ..ObjectName::default()
        };
        let none = |_, _| None;
        assert_eq!(
            owner(key(0x5000), LineSize::B64, &[accessed(0)], &[unknown], none),
            None
        );
    }

    #[test]
    fn objects_that_the_pointers_of_one_variable_lead_to_are_one_thing() {
        let node = |called: &str| ObjectName {
            kind: ObjectKind::Heap,
            called: Some(called.to_owned()),
            is_reached: true,
            type_name: Some("struct node".to_owned()),
            start: Some(0x5000),
            size: Some(16),
            ..ObjectName::default()
        };
        let label = |called: &str| of(0x5000, &node(called), ".next").owner.label;
        assert_eq!(label("*nodes[12]"), "*nodes[]");
        assert_eq!(label("locks[3]"), "locks[]");
        assert_eq!(label("table[1].items[2]"), "table[].items[]");
        // The twin: other variables.
        assert_ne!(label("*first"), label("*second"));
    }

    #[test]
    fn numbers_on_the_heap_are_one_thing_only_where_code_comes_to_them_the_same_way() {
        let number = ObjectName {
            kind: ObjectKind::Heap,
            type_name: Some("long".to_owned()),
            ..ObjectName::default()
        };
        let at = |path: Option<&str>| {
            let field = |_, _| {
                Some(FieldName {
                    object: 0,
                    path: path.map(str::to_owned),
                })
            };
            let objects = std::slice::from_ref(&number);
            owner(key(0x5000), LineSize::B64, &[accessed(0)], objects, field)
        };
        assert_eq!(at(None), None);
        let slots = at(Some("queue->slot[3]")).expect("known");
        assert_eq!(slots.owner.label, "queue->slot[]");
    }
}
