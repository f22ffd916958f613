//! What one more thread would meet at the end of an array that is indexed by thread.

use serde::Serialize;

use super::{LINE, thing::Used};
use crate::{
    access::{Cost, Place},
    analysis::{OneMoreElement, There},
    finding::{self, Thresholds},
    names::{Names, ObjectName},
    report::subject::without_indices,
};

/// An element behind the last one, used as that is and at the same times by a thread of its own: what it would bring to the
/// lines there.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
pub struct OneMoreThread {
    /// Bytes from one element to the next.
    pub element_bytes: u64,
    /// Elements that threads use today.
    pub elements: u64,
    /// Bytes by which what lies behind the last one has to move, to make room; 0 where there is some.
    pub behind_moved_bytes: u64,
    /// Hand-offs from one CPU to another that it adds.
    pub hand_offs: u64,
    /// Of those, hand-offs of nothing that the taker used.
    pub falsely: u64,
    /// Of the others, hand-offs that took along bytes which the taker used and nobody had changed.
    pub dragged: u64,
    /// Messages of the directory protocol that it adds.
    pub messages: u64,
}

/// What it adds, where threads would fight that do not today.
pub(super) fn one_more_thread(
    element: &OneMoreElement,
    names: &dyn Names,
    whole: Cost,
    thresholds: &Thresholds,
) -> Option<OneMoreThread> {
    let (there, behind_moved_bytes) = placed(element, names);
    finding::one_more_fights(element, there, whole, thresholds).then(|| {
        let today = &element.today;
        let (now, then) = (&today.hand_offs, &there.hand_offs);
        OneMoreThread {
            element_bytes: element.array.stride,
            elements: element.array.elements,
            behind_moved_bytes,
            hand_offs: then.total().saturating_sub(now.total()),
            falsely: then.falsely.saturating_sub(now.falsely),
            dragged: then.dragged.saturating_sub(now.dragged),
            messages: there.messages.saturating_sub(today.messages),
        }
    })
}

/// What it costs there, and by how many bytes what is behind the array has moved.
fn placed<'a>(element: &'a OneMoreElement, names: &dyn Names) -> (&'a There, u64) {
    let array = &element.array;
    if !element.taken || has_room(element, names) {
        return (&element.beside, 0);
    }
    let next = array.next();
    let behind = names.objects(next.line(LINE), LINE, &[]);
    let behind = (behind.iter()).find(|object| holds(object, next.position()).is_some());
    let alignment = behind.and_then(ObjectName::kept_alignment);
    if alignment.is_none_or(|bytes| array.stride.is_multiple_of(bytes)) {
        (&element.behind, array.stride)
    } else {
        let moved = array.stride.next_multiple_of(LINE.bytes());
        (&element.lines_behind, moved)
    }
}

/// Whether the program's array has an element more than threads use: the same part of one object is there.
fn has_room(element: &OneMoreElement, names: &dyn Names) -> bool {
    let array = &element.array;
    let (last, next) = (array.last, array.next());
    let Some(used) = element.run.lines.first().map(Used::new) else {
        return false;
    };
    let on_line = used.objects(names);
    let end = (on_line.objects.iter()).find_map(|object| holds(object, last.position()));
    if end.is_none_or(|end| next.position().saturating_add(array.used) > end) {
        return false;
    }
    let first = last.offset_in_line(LINE);
    let Some(counts) = used.sites.iter().find(|counts| counts.site.offset == first) else {
        return true;
    };
    let part = |place: Place| {
        let (key, offset) = (place.line(LINE), place.offset_in_line(LINE));
        let field = names.field(key, LINE, offset, counts.site.size.into())?;
        Some(without_indices(&field.path?))
    };
    part(last) == part(next)
}

/// The end of an object that holds a byte.
fn holds(object: &ObjectName, position: u64) -> Option<u64> {
    let (start, end) = object.start.zip(object.end())?;
    (start..end).contains(&position).then_some(end)
}
