//! The functions of a unit, found when the first address in the unit is asked for.

use std::sync::{Arc, OnceLock};

use super::{Die, Inlined, RawUnit, View, attributes::CodeRange};
use crate::{
    missing::Missing,
    spans::{Span, Spans},
};

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

impl View<'_> {
    /// The functions of a unit, read on first use.
    pub(crate) fn functions(&self, unit: u32) -> Result<&'_ Functions, Missing> {
        let info = self.info;
        let kept = info.units.get(unit).ok_or(Missing::Malformed)?;
        kept.functions
            .get_or_init(|| Functions::read(self, &self.unit(unit)?))
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// The entry of the function that holds an address, and where the range that holds it starts.
    pub(crate) fn function_at(&self, address: u64) -> Result<(Die, u64), Missing> {
        let mut problem = self.info.not_covered();
        for span in self.info.units.code.covering(address) {
            // What is not in a skeleton is in its `.dwo` file.
            let unit = match self.full_unit(span.value) {
                Ok(unit) => unit,
                Err(missing) => {
                    problem = missing;
                    continue;
                }
            };
            match self.functions(unit) {
                Ok(functions) => {
                    let Some(range) = functions.ranges.covering(address).next() else {
                        continue;
                    };
                    if let Some(function) = functions.list.get(range.value as usize) {
                        let die = Die {
                            unit,
                            offset: function.offset,
                        };
                        return Ok((die, range.start));
                    }
                }
                Err(missing) => problem = missing,
            }
        }
        Err(problem)
    }
}

impl Function {
    /// What was inlined into the function, read on first use.
    pub(crate) fn inlined(&self, view: &View<'_>, unit: u32) -> Result<&Inlined, Missing> {
        self.inlined
            .get_or_init(|| Inlined::read(view, unit, self.offset))
            .as_ref()
            .map_err(|missing| *missing)
    }
}
