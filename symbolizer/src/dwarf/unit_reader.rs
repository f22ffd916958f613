//! The pass over the headers and root entries of all units of a file.

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugLineOffset,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, Reader as _, UnitHeader, UnitOffset,
    UnitType,
};

use super::{
    Die, Raw, Slice, Value, View,
    abbreviations::Table,
    attributes::CodeRange,
    sections::UnitSection,
    units::{LineTable, Unit, UnitList},
};
use crate::{kept::Kept, language::Language, missing::Missing, spans::Span};

/// `DW_AT_language_name` of DWARF 6, which gcc 15 writes already.
const LANGUAGE_NAME: gimli::DwAt = gimli::DwAt(0x90);

/// Longest directory name that is kept (Linux: PATH_MAX).
const LONGEST_PATH: usize = 4096;

/// A unit header, and where it was found.
pub(super) struct Found<'a> {
    pub(super) section: UnitSection,
    pub(super) piece: u32,
    pub(super) raw: Rc<Raw<'a>>,
    pub(super) header: UnitHeader<Slice<'a>>,
}

/// The headers of one section of units. What follows a damaged header cannot be found.
pub(super) fn headers<'a>(
    raw: &Rc<Raw<'a>>,
    section: UnitSection,
    piece: u32,
    found: &mut Vec<Found<'a>>,
) {
    let mut add = |header| {
        found.push(Found {
            section,
            piece,
            raw: Rc::clone(raw),
            header,
        });
    };
    match section {
        UnitSection::Info => {
            let mut units = raw.units();
            while let Ok(Some(header)) = units.next() {
                add(header);
            }
        }
        UnitSection::Types => {
            let mut units = raw.type_units();
            while let Ok(Some(header)) = units.next() {
                add(header);
            }
        }
    }
}

/// The `.dwo` file that a skeleton names.
pub(super) struct SplitName {
    /// Number of the skeleton.
    pub(super) skeleton: u32,
    /// `DW_AT_dwo_name`.
    pub(super) name: Box<str>,
    pub(super) id: u64,
}

/// What was found in a file beside its units.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) units: UnitList,
    /// Which units state to hold code.
    pub(super) spans: Vec<Span<u32>>,
    /// Units that do not say whether they hold code.
    pub(super) silent: Vec<u32>,
    pub(super) splits: Vec<SplitName>,
    /// By which unit which place is imported (`DW_TAG_imported_unit`).
    pub(super) imports: Vec<(u32, Import)>,
}

/// What a `DW_TAG_imported_unit` points to: an offset of its own file, or of the supplementary file.
#[derive(Clone, Copy)]
pub(super) enum Import {
    Own(usize),
    Supplement(usize),
}

/// Abbreviation tables by their address, for units that are read one by one.
pub(super) type Tables = Mutex<HashMap<usize, Arc<Abbreviations>>>;

/// What file the units are of.
#[derive(Clone, Copy)]
pub(super) enum Role<'v> {
    /// The program's own, or the supplementary one.
    Whole,
    /// A `.dwo` file, whose units get from the skeleton what they lack.
    Split(&'v Unit),
    /// A type unit of a package.
    Packaged(&'v Tables),
}

/// Reads the root entries. A damaged unit is left out.
pub(super) fn read(
    view: &View<'_>,
    first: u32,
    most: u32,
    found: Vec<Found<'_>>,
    role: Role<'_>,
) -> Result<Contents, Missing> {
    let mut reader = UnitReader::new(view, first, &found, role);
    for unit in found.into_iter().take(most as usize) {
        // An offset inside of a unit is kept in 32 bits.
        if u32::try_from(unit.header.length_including_self()).is_ok() {
            reader.read(unit)?;
        }
    }
    Ok(reader.contents)
}

/// The pass over all headers and root entries.
struct UnitReader<'v, 'i> {
    view: &'v View<'i>,
    role: Role<'v>,
    contents: Contents,
    /// Abbreviation tables by offset.
    tables: HashMap<usize, Arc<Table>>,
    line_tables: HashMap<usize, Arc<LineTable>>,
}

impl<'v, 'i> UnitReader<'v, 'i> {
    /// Notes where each abbreviation table ends: at the latest where the next one starts.
    fn new(view: &'v View<'i>, first: u32, found: &[Found<'_>], role: Role<'v>) -> Self {
        let mut offsets: Vec<usize> = found
            .iter()
            .map(|unit| unit.header.debug_abbrev_offset().0)
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        let nexts = offsets.iter().skip(1).copied().chain([usize::MAX]);
        let tables = offsets
            .iter()
            .copied()
            .zip(nexts)
            .map(|(at, next)| (at, Arc::new(Table::new(DebugAbbrevOffset(at), next))))
            .collect();
        UnitReader {
            view,
            role,
            contents: Contents {
                units: UnitList {
                    first,
                    ..UnitList::default()
                },
                ..Contents::default()
            },
            tables,
            line_tables: HashMap::new(),
        }
    }

    /// The abbreviations at an offset, parsed once. Tables lie side by side: reading one no further than the
    /// start of the next keeps the whole of it linear even if a hostile file lets them overlap.
    fn abbreviations(&mut self, raw: &Raw<'_>, at: DebugAbbrevOffset<usize>) -> Option<Arc<Table>> {
        let Role::Packaged(tables) = self.role else {
            return self.tables.get(&at.0).cloned();
        };
        let section = gimli::Section::reader(&raw.debug_abbrev).slice();
        let parsed = self.shared_abbreviations(tables, section, at)?;
        Some(Arc::new(Table::parsed(parsed)))
    }

    /// As [`UnitReader::abbreviations`], for one of many units that share tables.
    fn shared_abbreviations(
        &self,
        tables: &Tables,
        section: &[u8],
        at: DebugAbbrevOffset<usize>,
    ) -> Option<Arc<Abbreviations>> {
        let address = section.as_ptr().addr().checked_add(at.0)?;
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&address) {
            return Some(Arc::clone(table));
        }
        // Tables may overlap in a hostile file: each pays.
        self.view
            .info
            .budget
            .charge(section.len() as u64 / 8)
            .ok()?;
        let parsed = DebugAbbrev::new(section, gimli::LittleEndian).abbreviations(at);
        let table = Arc::new(parsed.ok()?);
        tables.insert(address, Arc::clone(&table));
        Some(table)
    }

    /// One unit. Fails only when the file causes more work than its size allows.
    fn read(&mut self, found: Found<'_>) -> Result<(), Missing> {
        let Found {
            section,
            piece,
            raw,
            header,
        } = found;
        let Some(abbreviations) = self.abbreviations(&raw, header.debug_abbrev_offset()) else {
            return Ok(());
        };
        let Some(of_root) = abbreviations_of_root(&abbreviations, &raw, &header) else {
            return Ok(());
        };
        let encoding = header.encoding();
        let file_type = raw.file_type;
        let kind = header.type_();
        let mut unit = Unit {
            section,
            piece,
            offset: header.offset().0,
            length: header.length_including_self(),
            abbreviations,
            low_pc: 0,
            string_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding, file_type,
            ),
            address_base: DebugAddrBase(0),
            location_lists_base: DebugLocListsBase::default_for_encoding_and_file(
                encoding, file_type,
            ),
            range_lists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, file_type),
            language: None,
            directory: Box::default(),
            line_table: None,
            dwo_id: match kind {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id.0),
                _ => None,
            },
            split: None,
            functions: Kept::default(),
            scopes: Kept::default(),
        };
        if let Role::Split(skeleton) = self.role {
            inherit(&mut unit, skeleton, kind, encoding.version);
        }
        let units = &self.contents.units;
        let index = units.first | units.list.len() as u32;
        // A root entry that cannot be read still leaves a unit that others may refer to.
        let covers = self.read_root(&mut unit, &raw, header, &of_root, index)?;
        if let UnitType::Type {
            type_signature,
            type_offset,
        }
        | UnitType::SplitType {
            type_signature,
            type_offset,
        } = kind
        {
            let die = Die {
                unit: index,
                offset: type_offset.0 as u32,
            };
            self.contents.units.signatures.insert(type_signature.0, die);
        }
        let units = &mut self.contents.units;
        units.list.push(unit);
        if section == UnitSection::Info {
            units.info_count = units.list.len();
        }
        if !covers && matches!((self.role, kind), (Role::Whole, UnitType::Compilation)) {
            self.contents.silent.push(index);
        }
        Ok(())
    }

    /// Takes what is needed from the root entry. Returns whether the unit states its code ranges, or has none.
    fn read_root<'a>(
        &mut self,
        unit: &mut Unit,
        raw: &Rc<Raw<'a>>,
        header: UnitHeader<Slice<'a>>,
        abbreviations: &Arc<Abbreviations>,
        index: u32,
    ) -> Result<bool, Missing> {
        let open =
            |unit: &Unit| unit.with_header(Rc::clone(raw), header, Arc::clone(abbreviations));
        let opened = open(unit);
        let Ok(mut entries) = opened.entries_raw(None) else {
            return Ok(true);
        };
        let Ok(Some(abbreviation)) = entries.read_abbreviation() else {
            return Ok(true);
        };
        let mut range = CodeRange::default();
        let mut root = Root::default();
        for &specification in abbreviation.attributes() {
            let Ok(attribute) = entries.read_attribute(specification) else {
                return Ok(true);
            };
            let value = attribute.value();
            match (attribute.name(), value) {
                (gimli::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    unit.string_offsets_base = base;
                }
                (
                    gimli::DW_AT_addr_base | gimli::DW_AT_GNU_addr_base,
                    AttributeValue::DebugAddrBase(base),
                ) => unit.address_base = base,
                (gimli::DW_AT_loclists_base, AttributeValue::DebugLocListsBase(base)) => {
                    unit.location_lists_base = base;
                }
                (
                    gimli::DW_AT_rnglists_base | gimli::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => unit.range_lists_base = base,
                (gimli::DW_AT_language, AttributeValue::Language(code)) => {
                    unit.language = Language::of_dwarf(code).or(unit.language);
                }
                (LANGUAGE_NAME, value) => {
                    let language = value.udata_value().and_then(Language::of_name);
                    unit.language = unit.language.or(language);
                }
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => {
                    unit.line_table = Some(self.line_table(offset, index));
                }
                (gimli::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => unit.dwo_id = Some(id.0),
                (gimli::DW_AT_comp_dir, value) => root.directory = Some(value),
                (gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name, value) => {
                    root.dwo_name = Some(value);
                }
                (gimli::DW_AT_low_pc, value) => root.low_pc = Some(value),
                _ => {}
            }
            range.observe(attribute.name(), value);
        }
        if abbreviation.has_children() && may_import(unit, &opened, entries.next_offset()) {
            let opened = unit.open(Rc::clone(raw));
            if let Ok(opened) = &opened
                && let Ok(mut entries) = opened.entries_raw(Some(entries.next_offset()))
            {
                self.read_imports(&mut entries, index)?;
            }
        }
        // Indexed forms need the bases, which may come later in the entry than their users.
        let opened = open(unit);
        if let Some(text) = root.directory.and_then(|value| self.path(&opened, value)) {
            self.view.info.budget.charge(text.len() as u64 / 8)?;
            unit.directory = text;
        }
        // Where the code of a `.dwo` file is, the skeleton says.
        if !matches!(self.role, Role::Whole) {
            return Ok(true);
        }
        if let Some(name) = root.dwo_name.and_then(|value| self.path(&opened, value))
            && let Some(id) = unit.dwo_id
        {
            self.view.info.budget.charge(name.len() as u64 / 8)?;
            unit.split = Some(self.contents.splits.len() as u32);
            self.contents.splits.push(SplitName {
                skeleton: index,
                name,
                id,
            });
        }
        if let Some(value) = root.low_pc {
            let address = raw.attr_address(&opened, value).ok().flatten();
            unit.low_pc = address.unwrap_or(0);
        }
        let opened = open(unit);
        let mut any = false;
        let spans = &mut self.contents.spans;
        let stated = range.for_each(self.view, &opened, |start, end| {
            any = true;
            spans.push(Span {
                start,
                end,
                value: index,
            });
        });
        match stated {
            Ok(stated) => Ok(any || stated),
            Err(Missing::Malformed) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn path<'a>(&self, opened: &super::RawUnit<'a>, value: Value<'a>) -> Option<Box<str>> {
        let text = self.view.text(opened, value)?;
        let text = &text[..text.len().min(LONGEST_PATH)];
        Some(String::from_utf8_lossy(text).into())
    }

    /// The units that are imported as a whole; dwz puts them before everything else in a unit.
    fn read_imports(
        &mut self,
        entries: &mut gimli::EntriesRaw<'_, Slice<'_>>,
        index: u32,
    ) -> Result<(), Missing> {
        while let Ok(Some(abbreviation)) = entries.read_abbreviation()
            && abbreviation.tag() == gimli::DW_TAG_imported_unit
        {
            self.view.info.budget.charge(1)?;
            for &specification in abbreviation.attributes() {
                let Ok(attribute) = entries.read_attribute(specification) else {
                    return Ok(());
                };
                let to = match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_import, AttributeValue::DebugInfoRef(offset)) => {
                        Import::Own(offset.0)
                    }
                    (gimli::DW_AT_import, AttributeValue::DebugInfoRefSup(offset)) => {
                        Import::Supplement(offset.0)
                    }
                    _ => continue,
                };
                self.contents.imports.push((index, to));
            }
        }
        Ok(())
    }

    /// The line table at an offset; units that name the same offset get the same one.
    fn line_table(&mut self, offset: DebugLineOffset<usize>, unit: u32) -> Arc<LineTable> {
        let table = self.line_tables.entry(offset.0).or_insert_with(|| {
            Arc::new(LineTable {
                unit,
                offset,
                files: Kept::default(),
                lines: Kept::default(),
            })
        });
        Arc::clone(table)
    }
}

/// Enough abbreviations for the root entry.
fn abbreviations_of_root(
    table: &Table,
    raw: &Raw<'_>,
    header: &UnitHeader<Slice<'_>>,
) -> Option<Arc<Abbreviations>> {
    let code = code_at(header, header.root_offset())?;
    table.of_root(raw, code)
}

/// Whether the first entry below the root imports a unit.
fn may_import(unit: &Unit, opened: &super::RawUnit<'_>, first_child: UnitOffset<usize>) -> bool {
    let Some(code) = code_at(&opened.header, first_child) else {
        return false;
    };
    if code == 0 {
        return false;
    }
    let tag = unit.abbreviations.tag_of_child(&opened.raw, code);
    tag == Some(gimli::DW_TAG_imported_unit)
}

/// The abbreviation code of the entry at an offset.
fn code_at(header: &UnitHeader<Slice<'_>>, at: UnitOffset<usize>) -> Option<u64> {
    header.range_from(at..).ok()?.read_uleb128().ok()
}

/// Attributes of a root entry that can only be decoded once all were read.
#[derive(Default)]
struct Root<'a> {
    low_pc: Option<Value<'a>>,
    directory: Option<Value<'a>>,
    dwo_name: Option<Value<'a>>,
}

/// What a unit in a `.dwo` file has from its skeleton (DWARF 5, section 3.1.3; before, the same by GCC's wiki
/// page DebugFission).
fn inherit(unit: &mut Unit, skeleton: &Unit, kind: UnitType<usize>, version: u16) {
    unit.address_base = skeleton.address_base;
    unit.directory.clone_from(&skeleton.directory);
    if matches!(kind, UnitType::Type { .. } | UnitType::SplitType { .. }) {
        // Its files are in a table of the `.dwo` file.
        return;
    }
    unit.low_pc = skeleton.low_pc;
    unit.line_table.clone_from(&skeleton.line_table);
    if version < 5 {
        // `.debug_ranges` stays in the program.
        unit.range_lists_base = skeleton.range_lists_base;
    }
}
