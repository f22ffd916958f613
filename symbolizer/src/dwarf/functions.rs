//! The functions of a unit, found when the first address in the unit is asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{Die, Inlined, RawUnit, Unit, View, attributes::CodeRange};
use crate::{
    kept::{Held, Share, Sizeable},
    missing::Missing,
    spans::{Span, Spans},
};

/// All functions of a unit that have code.
pub(crate) struct Functions {
    list: Box<[Function]>,
    /// Indexes into `list`.
    ranges: Spans<u32>,
    /// Names by the entry that was inlined: it has one, wherever it was inlined.
    names: Mutex<HashMap<Die, Option<Arc<str>>>>,
}

/// One function, not yet looked into.
pub(crate) struct Function {
    pub(crate) offset: u32,
    name: OnceLock<Option<Arc<str>>>,
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
        view.charge(steps / 4)?;
        Ok(Functions {
            list: list.into(),
            ranges: Spans::new(ranges),
            names: Mutex::default(),
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

impl Sizeable for Functions {
    /// Names and inlined calls are added when they are read.
    fn bytes(&self) -> usize {
        size_of_val(&*self.list) + self.ranges.bytes()
    }
}

impl View<'_> {
    /// The functions of a unit, read on first use.
    pub(crate) fn functions(
        &self,
        number: u32,
        unit: &Unit,
    ) -> Result<Arc<Held<Functions>>, Missing> {
        self.kept(&unit.functions, || {
            Functions::read(self, &self.unit(number)?)
        })
    }

    /// Units that hold code at an address, the innermost range first; those that do not state their code come last, and
    /// are looked into only if they are asked for.
    pub(crate) fn code_units(&self, address: u64) -> impl Iterator<Item = u32> {
        let units = &self.info.units;
        let silent = std::iter::once_with(move || {
            let read = || Spans::new(self.silent_code());
            units.silent_code.get_or_init(read).covering(address)
        });
        let stated = units.code.covering(address);
        stated.chain(silent.flatten()).map(|span| span.value)
    }

    /// The entry of the function that holds an address, and where the range that holds it starts.
    pub(crate) fn function_at(&self, address: u64) -> Result<(Die, u64), Missing> {
        let mut problem = self.info.not_covered();
        for number in self.code_units(address) {
            // What is not in a skeleton is in its `.dwo` file.
            let functions = self.full_unit(number).and_then(|full| {
                let unit = self.info.units.get(full).ok_or(Missing::Malformed)?;
                Ok((full, self.functions(full, unit)?))
            });
            match functions {
                Ok((unit, functions)) => {
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

    /// The ranges of the functions of the units that do not state their code.
    fn silent_code(&self) -> Vec<Span<u32>> {
        let mut spans = Vec::new();
        for &number in &self.info.units.silent {
            let Some(unit) = self.info.units.get(number) else {
                continue;
            };
            // What cannot be read covers nothing.
            if let Ok(functions) = self.functions(number, unit) {
                spans.extend(functions.ranges().map(|(start, end)| Span {
                    start,
                    end,
                    value: number,
                }));
            }
        }
        spans
    }

    /// The name of a function that was inlined, read once for a unit.
    pub(crate) fn inlined_name(&self, functions: &Held<Functions>, die: Die) -> Option<Arc<str>> {
        let names = || {
            functions
                .names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(name) = names().get(&die) {
            return name.clone();
        }
        let name = self.function_name(die).map(Arc::from);
        functions.share.add(name_bytes(name.as_ref()), 0);
        names().insert(die, name.clone());
        name
    }
}

/// Bytes of a name and of its place in the map.
fn name_bytes(name: Option<&Arc<str>>) -> usize {
    name.map_or(0, |name| name.len() + 16) + 2 * size_of::<(Die, Option<Arc<str>>)>()
}

impl Function {
    /// The name of the function, read on first use.
    pub(crate) fn name(&self, view: &View<'_>, share: &Share, unit: u32) -> Option<&Arc<str>> {
        let read = || {
            let die = Die {
                unit,
                offset: self.offset,
            };
            let name = view.function_name(die).map(Arc::from);
            share.add(name_bytes(name.as_ref()), 0);
            name
        };
        self.name.get_or_init(read).as_ref()
    }

    /// What was inlined into the function, read on first use.
    pub(crate) fn inlined(
        &self,
        view: &View<'_>,
        share: &Share,
        unit: u32,
    ) -> Result<&Inlined, Missing> {
        let read = || {
            let (inlined, work) = view.measured(|| Inlined::read(view, unit, self.offset));
            share.add(inlined.as_ref().map_or(0, Inlined::bytes), work);
            inlined
        };
        self.inlined
            .get_or_init(read)
            .as_ref()
            .map_err(|missing| *missing)
    }
}
