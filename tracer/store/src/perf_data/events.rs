//! Which event a record is of. Without that, nobody knows what its bytes mean.

use std::collections::HashMap;

use super::{PerfDataError, attr::Attr, features::EventName, header::Event};
use crate::perf_format::{fields::Fields, read_format, sample_type as sample};

/// Events that come as records, and their ids, at most.
const MOST_EVENTS: usize = 1 << 14;
const MOST_IDS: usize = 1 << 20;

/// The events of a file.
#[derive(Debug, Default)]
pub(super) struct Events {
    list: Vec<Event>,
    by_id: HashMap<u64, usize>,
    layout: Option<Layout>,
    /// Those that any event records: a set of [`sample`].
    fields: u64,
}

/// Where records have the event's id, the same for all events.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Words before it in a sample.
    in_sample: Option<u64>,
    /// Words after it in another record.
    from_end: Option<usize>,
    /// All samples have the same fields.
    alike: bool,
}

impl Events {
    pub(super) fn new(list: Vec<Event>) -> Events {
        let mut events = Events::default();
        for event in list {
            events.add(event);
        }
        events
    }

    /// Adds an event; `false` when there are too many.
    pub(super) fn add(&mut self, event: Event) -> bool {
        if self.list.len() >= MOST_EVENTS || self.by_id.len() + event.ids.len() > MOST_IDS {
            return false;
        }
        let index = self.list.len();
        self.fields |= event.attr.sample_type;
        self.by_id.extend(event.ids.iter().map(|id| (*id, index)));
        self.list.push(event);
        self.layout = None;
        true
    }

    pub(super) fn list(&self) -> &[Event] {
        &self.list
    }

    /// Gives events the names that a section has for them: by their ids, or by their attributes.
    pub(super) fn name_by(&mut self, names: &[EventName]) {
        for name in names {
            let by_id = name.ids.first().and_then(|id| self.by_id.get(id)).copied();
            let same = |event: &Event| event.name.is_none() && event.attr == name.attr;
            let index = by_id.or_else(|| self.list.iter().position(same));
            if let Some(event) = index.and_then(|index| self.list.get_mut(index)) {
                event.name = Some(name.name.clone());
            }
        }
    }

    /// Names the event of that id.
    pub(super) fn name(&mut self, id: u64, name: String) {
        let index = self.by_id.get(&id).copied();
        if let Some(event) = index.and_then(|index| self.list.get_mut(index)) {
            event.name = Some(name);
        }
    }

    /// Whether an event counts its lost samples itself.
    pub(super) fn count_losses(&self) -> bool {
        let counts = |event: &Event| event.attr.read_format & read_format::LOST != 0;
        self.list.iter().any(counts)
    }

    pub(super) fn any_has(&self, fields: u64) -> bool {
        self.fields & fields != 0
    }

    fn layout(&mut self) -> Result<Layout, PerfDataError> {
        if let Some(layout) = self.layout {
            return Ok(layout);
        }
        let (first, others) = self.list.split_first().ok_or(PerfDataError::NoEvents)?;
        let first = &first.attr;
        let all = |same: &dyn Fn(&Attr) -> bool| others.iter().all(|other| same(&other.attr));
        let alike = all(&|other| sample_shape(other) == sample_shape(first));
        let in_sample =
            id_in_sample(first).filter(|_| all(&|o| id_in_sample(o) == id_in_sample(first)));
        let from_end =
            id_from_end(first).filter(|_| all(&|o| id_from_end(o) == id_from_end(first)));
        let trailers = all(&|other| trailer_shape(other) == trailer_shape(first));
        if (!alike && in_sample.is_none()) || (!trailers && from_end.is_none()) {
            return Err(PerfDataError::NoIds);
        }
        let layout = Layout {
            in_sample,
            from_end,
            alike,
        };
        self.layout = Some(layout);
        Ok(layout)
    }

    /// The event of a sample; `None` when the file does not describe it and it cannot be read without.
    pub(super) fn of_sample(
        &mut self,
        body: Fields<'_>,
    ) -> Result<Option<(usize, Attr)>, PerfDataError> {
        let layout = self.layout()?;
        let mut ahead = body;
        let id = layout
            .in_sample
            .and_then(|words| ahead.skip_words(words).and_then(|()| ahead.u64()));
        let index = id.and_then(|id| self.by_id.get(&id)).copied();
        let index = index.or_else(|| (layout.alike || self.list.len() == 1).then_some(0));
        Ok(index.and_then(|index| Some((index, self.list.get(index)?.attr))))
    }

    /// The event of another record. Those that perf made up at the start have the id 0 and are as the first
    /// event's.
    pub(super) fn of_record(&mut self, body: Fields<'_>) -> Result<Option<Attr>, PerfDataError> {
        let layout = self.layout()?;
        let id = layout.from_end.and_then(|words| body.word_from_end(words));
        let index = id.and_then(|id| self.by_id.get(&id)).copied();
        Ok(self.list.get(index.unwrap_or(0)).map(|event| event.attr))
    }
}

/// What decides the fields of a sample.
fn sample_shape(attr: &Attr) -> [u64; 5] {
    let known = attr.sample_type;
    let if_has = |field, value| if known & field != 0 { value } else { 0 };
    [
        known,
        if_has(sample::READ, attr.read_format),
        if_has(sample::BRANCH_STACK, attr.branches),
        if_has(sample::REGS_USER, attr.user_registers),
        if_has(sample::REGS_INTR, attr.interrupt_registers),
    ]
}

/// What decides the fields of the trailer.
fn trailer_shape(attr: &Attr) -> Option<u64> {
    let fields = sample::TID
        | sample::TIME
        | sample::ID
        | sample::STREAM_ID
        | sample::CPU
        | sample::IDENTIFIER;
    attr.sample_id_all.then_some(attr.sample_type & fields)
}

/// Words before the event's id in a sample of the event, where it has one.
fn id_in_sample(attr: &Attr) -> Option<u64> {
    if attr.has(sample::IDENTIFIER) {
        return Some(0);
    }
    let before = [sample::IP, sample::TID, sample::TIME, sample::ADDR];
    let words = before.iter().filter(|field| attr.has(**field)).count();
    attr.has(sample::ID).then_some(words as u64)
}

/// Words after the event's id in the trailer of its other records, where they have one.
fn id_from_end(attr: &Attr) -> Option<usize> {
    if !attr.sample_id_all {
        return None;
    }
    if attr.has(sample::IDENTIFIER) {
        return Some(0);
    }
    let after = [sample::STREAM_ID, sample::CPU];
    let words = after.iter().filter(|field| attr.has(**field)).count();
    attr.has(sample::ID).then_some(words)
}
