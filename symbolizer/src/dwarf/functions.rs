//! The functions of a unit and what was inlined into each.
//!
//! Two steps, both kept: the ranges of all functions of a unit when the first address of it is asked for,
//! the inlined calls of a function when the first address of that function is.

use std::sync::{Arc, OnceLock};

use super::{Die, RawUnit, Value, View, attributes::CodeRange};
use crate::{
    missing::Missing,
    spans::{Span, Spans},
};

/// Inlined calls nested deeper than this are left out. Optimisers stop far earlier.
const DEEPEST: usize = 256;

/// All functions of a unit that have code.
pub(crate) struct Functions {
    list: Box<[Function]>,
    /// Indexes into `list`.
    ranges: Spans<u32>,
}

/// One function, not yet looked into.
pub(crate) struct Function {
    pub(crate) offset: u32,
    pub(crate) name: OnceLock<Option<Arc<str>>>,
    inlined: OnceLock<Result<Inlined, Missing>>,
}

/// What was inlined into one function.
struct Inlined {
    calls: Box<[InlinedCall]>,
    /// By depth of inlining, from the outside; indexes into `calls`.
    levels: Box<[Spans<u32>]>,
}

/// One inlined call.
pub(crate) struct InlinedCall {
    /// Offset of the entry that stands for the call.
    pub(crate) offset: u32,
    pub(crate) name: OnceLock<Option<Arc<str>>>,
    /// File index in the unit's line table, as written.
    pub(crate) call_file: Option<u64>,
    pub(crate) call_line: Option<u32>,
    pub(crate) call_column: Option<u32>,
}

impl Functions {
    /// Finds all functions of a unit.
    pub(crate) fn read(view: &View<'_>, unit: &RawUnit<'_>) -> Result<Functions, Missing> {
        let mut list = Vec::new();
        let mut ranges = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        let mut steps = 0;
        while !entries.is_empty() {
            steps += 1;
            let offset = entries.next_offset();
            // What was read before the damage is kept.
            let Ok(abbreviation) = entries.read_abbreviation() else {
                break;
            };
            let Some(abbreviation) = abbreviation else {
                continue;
            };
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                if entries.skip_attributes(abbreviation.attributes()).is_err() {
                    break;
                }
                continue;
            }
            let mut range = CodeRange::default();
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute(specification)?;
                range.observe(attribute.name(), attribute.value());
            }
            let index = list.len() as u32;
            let before = ranges.len();
            range.for_each(view, unit, |start, end| {
                ranges.push(Span {
                    start,
                    end,
                    value: index,
                });
            })?;
            if ranges.len() > before {
                list.push(Function {
                    offset: u32::try_from(offset.0).map_err(|_| Missing::Malformed)?,
                    name: OnceLock::new(),
                    inlined: OnceLock::new(),
                });
            }
        }
        view.info.budget.charge(steps / 4)?;
        Ok(Functions {
            list: list.into(),
            ranges: Spans::new(ranges),
        })
    }

    /// The function that holds an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Function> {
        let span = self.ranges.covering(address).next()?;
        self.list.get(span.value as usize)
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|span| (span.start, span.end))
    }
}

impl Function {
    /// The inlined calls that hold an address, outermost first.
    pub(crate) fn inlined_at<'f>(
        &'f self,
        view: &View<'_>,
        unit: u32,
        address: u64,
    ) -> Result<Vec<&'f InlinedCall>, Missing> {
        let inlined = self
            .inlined
            .get_or_init(|| Inlined::read(view, unit, self.offset))
            .as_ref()
            .map_err(|missing| *missing)?;
        let mut calls = Vec::new();
        for level in &inlined.levels {
            let Some(span) = level.covering(address).next() else {
                break;
            };
            calls.extend(inlined.calls.get(span.value as usize));
        }
        Ok(calls)
    }
}

impl Inlined {
    fn read(view: &View<'_>, unit: u32, function: u32) -> Result<Inlined, Missing> {
        let opened = view.unit(unit)?;
        let start = Die {
            unit,
            offset: function,
        }
        .unit_offset();
        let mut entries = opened.entries_raw(Some(start))?;
        let base = entries.next_depth();
        let mut reader = InlinedReader {
            view,
            unit: &opened,
            calls: Vec::new(),
            levels: Vec::new(),
        };
        // Tree depths of the inlined calls around the current entry, and of a nested function to skip.
        let mut around: Vec<isize> = Vec::new();
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
            while around.last().is_some_and(|&call| call >= depth) {
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
                reader.add(&call, offset.0 as u32, around.len())?;
                if abbreviation.has_children() {
                    around.push(depth);
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
        view.info.budget.charge(steps / 4)?;
        Ok(Inlined {
            calls: reader.calls.into(),
            levels: reader.levels.into_iter().map(Spans::new).collect(),
        })
    }
}

struct InlinedReader<'v, 'a> {
    view: &'v View<'a>,
    unit: &'v RawUnit<'a>,
    calls: Vec<InlinedCall>,
    levels: Vec<Vec<Span<u32>>>,
}

#[derive(Default)]
struct CallReader<'a> {
    range: CodeRange<'a>,
    file: Option<u64>,
    line: Option<u32>,
    column: Option<u32>,
}

impl<'a> CallReader<'a> {
    fn observe(&mut self, name: gimli::DwAt, value: Value<'a>) {
        let number = || {
            value
                .udata_value()
                .and_then(|number| u32::try_from(number).ok())
        };
        match name {
            gimli::DW_AT_call_file => {
                self.file = match value {
                    gimli::AttributeValue::FileIndex(index) => Some(index),
                    other => other.udata_value(),
                }
            }
            gimli::DW_AT_call_line => self.line = number().filter(|&line| line != 0),
            gimli::DW_AT_call_column => self.column = number().filter(|&column| column != 0),
            _ => self.range.observe(name, value),
        }
    }
}

impl<'a> InlinedReader<'_, 'a> {
    fn add(&mut self, call: &CallReader<'a>, offset: u32, level: usize) -> Result<(), Missing> {
        while self.levels.len() <= level {
            self.levels.push(Vec::new());
        }
        let index = self.calls.len() as u32;
        let ranges = &mut self.levels[level];
        call.range.for_each(self.view, self.unit, |start, end| {
            ranges.push(Span {
                start,
                end,
                value: index,
            });
        })?;
        self.calls.push(InlinedCall {
            offset,
            name: OnceLock::new(),
            call_file: call.file,
            call_line: call.line,
            call_column: call.column,
        });
        Ok(())
    }
}
