//! The compilation, partial and type units of all files: how they are numbered, how to open one.
//!
//! A unit has one number, whatever file its entries are in, and keeps it:
//!
//! ```text
//! 0.......   the program's own file
//! 100.....   the supplementary file that dwz made
//! 101.....   the type units of a package, by their row in its index
//! 11......   `.dwo` files: which of them, and the unit in it
//! ```

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{Arc, OnceLock},
};

use gimli::{
    Abbreviations, DebugAddrBase, DebugInfoOffset, DebugLineOffset, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, UnitHeader, UnitOffset,
};

use super::{
    Files, Functions, Lines, Raw, RawUnit, Scopes, Slice, abbreviations::Table, package::Package,
    sections::UnitSection, split::Split,
};
use crate::{
    kept::{Droppable, Kept},
    language::Language,
    missing::Missing,
    spans::Spans,
};

/// First number of the supplementary file's units.
pub(crate) const SUPPLEMENT: u32 = 0b100 << 29;
/// First number of a package's type units.
pub(crate) const PACKAGED: u32 = 0b101 << 29;
/// First number of the units in `.dwo` files.
const SPLIT: u32 = 0b11 << 30;

/// One debugging information entry, by unit and offset in the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Die {
    pub(crate) unit: u32,
    pub(crate) offset: u32,
}

impl Die {
    pub(crate) fn unit_offset(self) -> UnitOffset<usize> {
        UnitOffset(self.offset as usize)
    }
}

/// What is kept of a unit: enough to open it without reading its root entry again.
pub(crate) struct Unit {
    pub(super) section: UnitSection,
    /// Which of the sections of units of its file it is in.
    pub(super) piece: u32,
    /// Offset of the header in its section.
    pub(crate) offset: usize,
    /// Bytes of the unit, header included.
    pub(super) length: usize,
    pub(super) abbreviations: Arc<Table>,
    pub(super) low_pc: u64,
    pub(super) string_offsets_base: DebugStrOffsetsBase<usize>,
    pub(super) address_base: DebugAddrBase<usize>,
    pub(super) location_lists_base: DebugLocListsBase<usize>,
    pub(super) range_lists_base: DebugRngListsBase<usize>,
    pub(crate) language: Option<Language>,
    /// `DW_AT_comp_dir`.
    pub(crate) directory: Box<str>,
    pub(super) line_table: Option<Arc<LineTable>>,
    /// What a skeleton and its unit in the `.dwo` file have in common.
    pub(super) dwo_id: Option<u64>,
    /// Of a skeleton: the `.dwo` file with its entries, an index into [`Units::splits`].
    pub(super) split: Option<u32>,
    pub(crate) functions: Kept<Functions>,
    pub(crate) scopes: Kept<Scopes>,
}

impl Unit {
    /// The unit as the DWARF reader wants it. The line program is left out: see [`Lines`].
    pub(super) fn open<'a>(&self, raw: Rc<Raw<'a>>) -> Result<RawUnit<'a>, Missing> {
        let header = match self.section {
            UnitSection::Info => raw
                .debug_info
                .header_from_offset(DebugInfoOffset(self.offset))?,
            UnitSection::Types => type_unit_header(&raw, self.offset)?,
        };
        let abbreviations = self.abbreviations.all(&raw)?;
        Ok(self.with_header(raw, header, abbreviations))
    }

    pub(crate) fn line_table(&self) -> Option<&LineTable> {
        self.line_table.as_deref()
    }

    /// What [`Unit::open`] does once the header is read.
    pub(super) fn with_header<'a>(
        &self,
        raw: Rc<Raw<'a>>,
        header: UnitHeader<Slice<'a>>,
        abbreviations: Arc<Abbreviations>,
    ) -> RawUnit<'a> {
        let unit = gimli::Unit {
            header,
            abbreviations,
            name: None,
            comp_dir: None,
            low_pc: self.low_pc,
            str_offsets_base: self.string_offsets_base,
            addr_base: self.address_base,
            loclists_base: self.location_lists_base,
            rnglists_base: self.range_lists_base,
            line_program: None,
            dwo_id: None,
        };
        RawUnit { unit, raw }
    }
}

/// A header in `.debug_types`, which can only be read in sequence: the slice is made to start at it.
fn type_unit_header<'a>(raw: &Raw<'a>, offset: usize) -> Result<UnitHeader<Slice<'a>>, Missing> {
    let section = gimli::Section::reader(&raw.debug_types).slice();
    let rest = section.get(offset..).ok_or(Missing::Malformed)?;
    let mut headers = gimli::DebugTypes::new(rest, gimli::LittleEndian).units();
    headers.next()?.ok_or(Missing::Malformed)
}

/// A line table, its two parts decoded when first needed. Units may share one.
pub(crate) struct LineTable {
    /// The unit that names it, whose file it is in.
    pub(crate) unit: u32,
    pub(crate) offset: DebugLineOffset<usize>,
    pub(crate) files: Kept<Files>,
    pub(crate) lines: Kept<Lines>,
}

/// The units of one file. Those of `.debug_info` come first, in the order of section and offset.
#[derive(Default)]
pub(crate) struct UnitList {
    /// Number of the first.
    pub(super) first: u32,
    pub(super) list: Vec<Unit>,
    /// How many of `list` are in `.debug_info`.
    pub(super) info_count: usize,
    /// The type that each type unit defines, by its signature.
    pub(super) signatures: HashMap<u64, Die>,
}

impl UnitList {
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.first;
        (0..self.list.len() as u32).map(move |index| first | index)
    }

    /// The entry at an offset of one of the sections with units.
    pub(super) fn at_offset(&self, piece: u32, offset: usize) -> Option<Die> {
        let units = &self.list[..self.info_count];
        let index = units
            .partition_point(|unit| (unit.piece, unit.offset) <= (piece, offset))
            .checked_sub(1)?;
        let unit = &units[index];
        let within = offset.checked_sub(unit.offset)?;
        (unit.piece == piece && within < unit.length).then_some(Die {
            unit: self.first | index as u32,
            offset: within as u32,
        })
    }
}

/// All units.
#[derive(Default)]
pub(crate) struct Units {
    pub(super) own: UnitList,
    /// Which of the own units state to hold code at an address.
    pub(crate) code: Spans<u32>,
    /// Of the supplementary file.
    /// Units that do not state what code they hold: some assemblers and older compilers leave it out, and so does
    /// every compiler for a unit without any.
    pub(super) silent: Vec<u32>,
    /// Their code by their functions, read when no other unit knows an address.
    pub(super) silent_code: OnceLock<Spans<u32>>,
    pub(super) supplement: UnitList,
    /// One for each skeleton.
    pub(super) splits: Box<[Split]>,
    /// Bits of a number that say which unit of a `.dwo` file it is.
    pub(super) local_bits: u32,
    /// The package of the module. The error says why there is none of use, if there is a file at all.
    pub(super) package: OnceLock<Result<Package, Option<Missing>>>,
}

/// What a number says.
pub(super) enum Place {
    Own(usize),
    Supplement(usize),
    Packaged(usize),
    Split { file: usize, unit: usize },
}

impl Units {
    /// A unit by its number. Those of `.dwo` files have one once the file was loaded.
    pub(crate) fn get(&self, number: u32) -> Option<&Unit> {
        match self.place(number) {
            Place::Own(unit) => self.own.list.get(unit),
            Place::Supplement(unit) => self.supplement.list.get(unit),
            Place::Packaged(row) => self.package.get()?.as_ref().ok()?.type_unit(row),
            Place::Split { file, unit } => {
                let file = self.splits.get(file)?.loaded()?;
                file.units.list.get(unit)
            }
        }
    }

    pub(super) fn place(&self, number: u32) -> Place {
        let low = |bits: u32| (number & ((1 << bits) - 1)) as usize;
        if number < SUPPLEMENT {
            Place::Own(number as usize)
        } else if number < PACKAGED {
            Place::Supplement(low(29))
        } else if number < SPLIT {
            Place::Packaged(low(29))
        } else {
            Place::Split {
                file: low(30) >> self.local_bits,
                unit: low(self.local_bits),
            }
        }
    }

    /// Number of the first unit in a `.dwo` file.
    pub(super) fn first_of_split(&self, file: usize) -> u32 {
        SPLIT | ((file as u32) << self.local_bits)
    }

    /// Everything decoded that can be decoded again.
    pub(crate) fn droppable(&self) -> Vec<&dyn Droppable> {
        let loaded = self.splits.iter().filter_map(Split::loaded);
        let lists = [&self.own, &self.supplement].into_iter();
        let lists = lists.chain(loaded.map(|file| &file.units));
        let mut tables: Vec<&dyn Droppable> = Vec::new();
        for unit in lists.flat_map(|list| &list.list) {
            tables.extend([&unit.functions as &dyn Droppable, &unit.scopes]);
            if let Some(table) = &unit.line_table {
                tables.extend([&table.files as &dyn Droppable, &table.lines]);
            }
        }
        tables
    }

    /// The entry at an offset of the section of a unit (`DW_FORM_ref_addr`).
    pub(crate) fn at_info_offset(&self, from: u32, offset: usize) -> Option<Die> {
        let piece = || Some(self.get(from)?.piece);
        match self.place(from) {
            Place::Own(_) => self.own.at_offset(0, offset),
            Place::Supplement(_) => self.supplement.at_offset(0, offset),
            Place::Packaged(_) => None,
            Place::Split { file, .. } => {
                let file = self.splits.get(file)?.loaded()?;
                file.units.at_offset(piece()?, offset)
            }
        }
    }

    /// The entry at an offset of the supplementary file. Without the file, one that cannot be opened, for the reason.
    pub(crate) fn at_supplement_offset(&self, offset: usize) -> Option<Die> {
        if self.supplement.list.is_empty() {
            return Some(Die {
                unit: SUPPLEMENT,
                offset: 0,
            });
        }
        self.supplement.at_offset(0, offset)
    }

    /// Why some entries are not known: the first `.dwo` file that was looked for in vain.
    pub(crate) fn split_problem(&self) -> Option<Missing> {
        self.splits.iter().find_map(Split::problem)
    }
}
