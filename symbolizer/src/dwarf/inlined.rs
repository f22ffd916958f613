//! The inlined calls of one function, read when the first address in the function is asked for.
//!
//! The file nests the calls and gives each its ranges. Here the function is cut where the innermost call changes:
//!
//! ```text
//! file:      a [0..30)  >  b [4..10) [20..24)  >  c [6..8)
//! segments:  0 a | 4 b | 6 c | 8 b | 10 a | 20 b | 24 a | 30 -
//! ```
//!
//! so that one search finds the innermost call, and each call knows the one around it.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, OnceLock},
};

use super::{Die, RawUnit, Value, View, attributes::CodeRange};
use crate::missing::Missing;

/// Inlined calls nested deeper than this are left out. Optimisers stop far earlier.
const DEEPEST: usize = 256;
const NONE: u32 = u32::MAX;

/// What was inlined into one function.
pub(crate) struct Inlined {
    calls: Box<[InlinedCall]>,
    /// Address that the offsets count from.
    base: u64,
    /// Where each segment starts.
    offsets: Box<[u32]>,
    /// The innermost call of each segment.
    innermost: Box<[u32]>,
}

/// One inlined call.
pub(crate) struct InlinedCall {
    /// The entry that has the name: the function that was inlined, or the call itself if that is not known.
    pub(crate) named: Die,
    pub(crate) name: OnceLock<Option<Arc<str>>>,
    /// File index in the unit's line table, as written.
    pub(crate) call_file: Option<u32>,
    /// 0 when not known, as the next two.
    pub(crate) call_line: u32,
    pub(crate) call_column: u32,
    pub(crate) call_discriminator: u32,
    /// The call that this one is inlined into.
    parent: u32,
}

/// A range of a call. Ordered by start, outer calls first, wide ranges first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    start: u64,
    level: usize,
    end: Reverse<u64>,
    call: u32,
}

impl Inlined {
    /// The calls that hold an address, innermost first.
    pub(crate) fn at(&self, address: u64) -> impl Iterator<Item = &InlinedCall> {
        let innermost = || {
            let offset = u32::try_from(address.checked_sub(self.base)?).ok()?;
            let upto = self.offsets.partition_point(|&start| start <= offset);
            self.innermost.get(upto.checked_sub(1)?).copied()
        };
        let mut next = innermost().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let call = self.calls.get(next as usize)?;
            next = call.parent;
            Some(call)
        })
        .take(DEEPEST)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let segments = size_of_val(&*self.offsets) + size_of_val(&*self.innermost);
        size_of_val(&*self.calls) + segments
    }

    pub(crate) fn read(view: &View<'_>, unit: u32, function: u32) -> Result<Inlined, Missing> {
        let opened = view.unit(unit)?;
        let start = Die {
            unit,
            offset: function,
        };
        let mut entries = opened.entries_raw(Some(start.unit_offset()))?;
        let base = entries.next_depth();
        let mut reader = Reader {
            view,
            unit: &opened,
            calls: Vec::new(),
            ranges: Vec::new(),
        };
        // Tree depths of the inlined calls around the current entry, and of a nested function to skip.
        let mut around: Vec<(isize, u32)> = Vec::new();
        let mut nested: Option<isize> = None;
        let mut steps = 0;
        let mut first = true;
        while first || (!entries.is_empty() && entries.next_depth() > base) {
            steps += 1;
            let depth = entries.next_depth();
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while around.last().is_some_and(|&(call, _)| call >= depth) {
                around.pop();
            }
            if nested.is_some_and(|function| function >= depth) {
                nested = None;
            }
            let tag = abbreviation.tag();
            if tag == gimli::DW_TAG_inlined_subroutine && nested.is_none() && around.len() < DEEPEST
            {
                let mut call = CallReader::default();
                for &specification in abbreviation.attributes() {
                    let attribute = entries.read_attribute(specification)?;
                    call.observe(attribute.name(), attribute.value());
                }
                let parent = around.last().map_or(NONE, |&(_, call)| call);
                let itself = Die {
                    unit,
                    offset: offset.0 as u32,
                };
                let origin = call.origin.filter(|_| !call.has_name);
                let named = origin.and_then(|origin| view.target(unit, origin));
                let named = named.unwrap_or(itself);
                let index = reader.add(&call, named, around.len(), parent)?;
                if abbreviation.has_children() {
                    around.push((depth, index));
                }
            } else {
                if tag == gimli::DW_TAG_subprogram && !first && nested.is_none() {
                    nested = abbreviation.has_children().then_some(depth);
                }
                entries.skip_attributes(abbreviation.attributes())?;
            }
            if first && !abbreviation.has_children() {
                break;
            }
            first = false;
        }
        view.charge(steps / 4)?;
        Ok(Inlined::cut(reader.calls, reader.ranges))
    }

    /// Cuts the function into segments. A call counts where the call around it does.
    fn cut(calls: Vec<InlinedCall>, ranges: Vec<Range>) -> Inlined {
        // A range that leaves the one around it goes on where that ends, in case another one follows there.
        // Real files hardly need this; a hostile one must not make it quadratic.
        let mut continuations = ranges.len() + 64;
        let mut pending: BinaryHeap<Reverse<Range>> = ranges.into_iter().map(Reverse).collect();
        let mut open: Vec<(u64, u32)> = Vec::new();
        let mut segments: Vec<(u64, u32)> = Vec::new();
        let mut starts = |start: u64, call: u32| match segments.last_mut() {
            Some(last) if last.0 == start => last.1 = call,
            Some(last) if last.1 == call => {}
            _ => segments.push((start, call)),
        };
        let innermost = |open: &[(u64, u32)]| open.last().map_or(NONE, |&(_, call)| call);
        while let Some(Reverse(range)) = pending.pop() {
            while let Some(&(end, _)) = open.last()
                && end <= range.start
            {
                open.pop();
                starts(end, innermost(&open));
            }
            let parent = calls
                .get(range.call as usize)
                .map_or(NONE, |call| call.parent);
            // Where the call around it is not, this one is not either: the file contradicts itself there.
            if innermost(&open) != parent {
                continue;
            }
            let around = open.last().map_or(u64::MAX, |&(end, _)| end);
            let end = range.end.0.min(around);
            if end < range.end.0 && continuations > 0 {
                continuations -= 1;
                pending.push(Reverse(Range {
                    start: end,
                    ..range
                }));
            }
            open.push((end, range.call));
            starts(range.start, range.call);
        }
        while let Some((end, _)) = open.pop() {
            starts(end, innermost(&open));
        }
        let base = segments.first().map_or(0, |segment| segment.0);
        // Parts of a function further apart than this are not in one file.
        segments.retain(|segment| u32::try_from(segment.0 - base).is_ok());
        Inlined {
            calls: calls.into(),
            base,
            offsets: segments
                .iter()
                .map(|segment| (segment.0 - base) as u32)
                .collect(),
            innermost: segments.iter().map(|segment| segment.1).collect(),
        }
    }
}

/// The pass over the entries of one function.
struct Reader<'v, 'a> {
    view: &'v View<'a>,
    unit: &'v RawUnit<'a>,
    calls: Vec<InlinedCall>,
    ranges: Vec<Range>,
}

/// The attributes of one call.
#[derive(Default)]
struct CallReader<'a> {
    range: CodeRange<'a>,
    file: Option<u32>,
    line: u32,
    column: u32,
    discriminator: u32,
    /// `DW_AT_abstract_origin`, unless the entry has a name of its own.
    origin: Option<Value<'a>>,
    has_name: bool,
}

impl<'a> CallReader<'a> {
    /// Takes the attribute if it is one of ours.
    fn observe(&mut self, name: gimli::DwAt, value: Value<'a>) {
        let narrow = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        let number = || narrow(value.udata_value()).unwrap_or(0);
        match name {
            gimli::DW_AT_call_file => {
                self.file = narrow(match value {
                    gimli::AttributeValue::FileIndex(index) => Some(index),
                    other => other.udata_value(),
                });
            }
            gimli::DW_AT_call_line => self.line = number(),
            gimli::DW_AT_call_column => self.column = number(),
            gimli::DW_AT_GNU_discriminator => self.discriminator = number(),
            gimli::DW_AT_abstract_origin => self.origin = Some(value),
            gimli::DW_AT_name | gimli::DW_AT_linkage_name => self.has_name = true,
            _ => self.range.observe(name, value),
        }
    }
}

impl<'a> Reader<'_, 'a> {
    /// Keeps a call and its ranges; returns its number.
    fn add(
        &mut self,
        call: &CallReader<'a>,
        named: Die,
        level: usize,
        parent: u32,
    ) -> Result<u32, Missing> {
        let index = self.calls.len() as u32;
        let ranges = &mut self.ranges;
        call.range.for_each(self.view, self.unit, |start, end| {
            ranges.push(Range {
                start,
                level,
                end: Reverse(end),
                call: index,
            });
        })?;
        self.calls.push(InlinedCall {
            named,
            name: OnceLock::new(),
            call_file: call.file,
            call_line: call.line,
            call_column: call.column,
            call_discriminator: call.discriminator,
            parent,
        });
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use std::{cmp::Reverse, sync::OnceLock};

    use super::{Die, Inlined, InlinedCall, NONE, Range};

    /// Calls by number with their parent and ranges.
    fn cut(calls: &[(u32, &[(u64, u64)])]) -> Inlined {
        let level = |mut call: u32| {
            let mut level = 0;
            while calls[call as usize].0 != NONE {
                call = calls[call as usize].0;
                level += 1;
            }
            level
        };
        let call = |&(parent, _): &(u32, &[(u64, u64)])| InlinedCall {
            named: Die { unit: 0, offset: 0 },
            name: OnceLock::new(),
            call_file: None,
            call_line: 0,
            call_column: 0,
            call_discriminator: 0,
            parent,
        };
        let mut ranges = Vec::new();
        for (index, (_, list)) in calls.iter().enumerate() {
            let (call, level) = (index as u32, level(index as u32));
            for &(start, end) in *list {
                ranges.push(Range {
                    start,
                    level,
                    end: Reverse(end),
                    call,
                });
            }
        }
        let list = calls.iter().enumerate().map(|(index, made)| InlinedCall {
            named: Die {
                unit: 0,
                offset: index as u32,
            },
            ..call(made)
        });
        Inlined::cut(list.collect(), ranges)
    }

    fn at(inlined: &Inlined, address: u64) -> Vec<u32> {
        inlined.at(address).map(|call| call.named.offset).collect()
    }

    #[test]
    fn the_innermost_call_is_found_with_those_around_it() {
        let inlined = cut(&[
            (NONE, &[(100, 130)]),
            (0, &[(104, 110), (120, 124)]),
            (1, &[(106, 108)]),
        ]);
        assert_eq!(at(&inlined, 99), []);
        assert_eq!(at(&inlined, 100), [0]);
        assert_eq!(at(&inlined, 104), [1, 0]);
        assert_eq!(at(&inlined, 107), [2, 1, 0]);
        assert_eq!(at(&inlined, 108), [1, 0]);
        assert_eq!(at(&inlined, 110), [0]);
        assert_eq!(at(&inlined, 123), [1, 0]);
        assert_eq!(at(&inlined, 129), [0]);
        assert_eq!(at(&inlined, 130), []);
    }

    #[test]
    fn a_call_counts_only_where_the_call_around_it_does() {
        // The inner range goes over a seam of the outer one, and beyond its end.
        let inlined = cut(&[(NONE, &[(0, 8), (8, 16)]), (0, &[(4, 20)])]);
        assert_eq!(at(&inlined, 3), [0]);
        assert_eq!(at(&inlined, 5), [1, 0]);
        assert_eq!(at(&inlined, 12), [1, 0]);
        assert_eq!(at(&inlined, 18), []);
    }

    #[test]
    fn siblings_that_touch_are_told_apart() {
        let inlined = cut(&[(NONE, &[(0, 4)]), (NONE, &[(4, 8)]), (NONE, &[])]);
        assert_eq!(at(&inlined, 3), [0]);
        assert_eq!(at(&inlined, 4), [1]);
        assert_eq!(at(&cut(&[]), 4), []);
    }
}
