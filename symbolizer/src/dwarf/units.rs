//! The compilation, partial and type units: where they are, what they cover, how to open one again.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use gimli::{
    Abbreviations, AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugInfoOffset,
    DebugLineOffset, DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, UnitHeader,
    UnitOffset, UnitType,
};

use super::{Files, Functions, Lines, Raw, RawUnit, Scopes, Slice, View, attributes::CodeRange};
use crate::{
    language::Language,
    missing::Missing,
    spans::{Span, Spans},
};

/// Longest directory name that is kept (Linux: PATH_MAX).
const LONGEST_PATH: usize = 4096;

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

/// Which section a unit lies in; DWARF 4 keeps type units apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitSection {
    Info,
    Types,
}

/// What is kept of a unit: enough to open it without reading its root entry again.
pub(crate) struct Unit {
    section: UnitSection,
    /// Offset of the header in its section.
    pub(crate) offset: usize,
    /// Bytes of the unit, header included.
    length: usize,
    abbreviations: Arc<Abbreviations>,
    low_pc: u64,
    string_offsets_base: DebugStrOffsetsBase<usize>,
    address_base: DebugAddrBase<usize>,
    location_lists_base: DebugLocListsBase<usize>,
    range_lists_base: DebugRngListsBase<usize>,
    pub(crate) language: Option<Language>,
    /// `DW_AT_comp_dir`.
    pub(crate) directory: Box<str>,
    /// Index into [`Units::lines`].
    line_table: Option<u32>,
    pub(crate) functions: OnceLock<Result<Functions, Missing>>,
    pub(crate) scopes: OnceLock<Result<Scopes, Missing>>,
}

impl Unit {
    /// The unit as the DWARF reader wants it. The line program is left out: see [`Lines`].
    pub(crate) fn open<'a>(&self, raw: &Raw<'a>) -> Result<RawUnit<'a>, Missing> {
        let header = match self.section {
            UnitSection::Info => raw
                .debug_info
                .header_from_offset(DebugInfoOffset(self.offset))?,
            UnitSection::Types => type_unit_header(raw, self.offset)?,
        };
        Ok(self.with_header(header))
    }

    /// What [`Unit::open`] does once the header is read.
    fn with_header<'a>(&self, header: UnitHeader<Slice<'a>>) -> RawUnit<'a> {
        gimli::Unit {
            header,
            abbreviations: Arc::clone(&self.abbreviations),
            name: None,
            comp_dir: None,
            low_pc: self.low_pc,
            str_offsets_base: self.string_offsets_base,
            addr_base: self.address_base,
            loclists_base: self.location_lists_base,
            rnglists_base: self.range_lists_base,
            line_program: None,
            dwo_id: None,
        }
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
    pub(crate) offset: DebugLineOffset<usize>,
    pub(crate) files: OnceLock<Result<Files, Missing>>,
    pub(crate) lines: OnceLock<Result<Lines, Missing>>,
}

/// All units. Those of `.debug_info` come first, in the order of their offset.
#[derive(Default)]
pub(crate) struct Units {
    list: Vec<Unit>,
    /// How many of `list` are in `.debug_info`.
    info_count: usize,
    /// Which units state to hold code at an address.
    pub(crate) code: Spans<u32>,
    line_tables: Vec<LineTable>,
    /// The type that each type unit defines, by its signature.
    signatures: HashMap<u64, Die>,
    /// Some unit is only the skeleton of one in a `.dwo` file.
    pub(crate) split: bool,
}

impl Units {
    pub(crate) fn get(&self, index: u32) -> Option<&Unit> {
        self.list.get(index as usize)
    }

    pub(crate) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    pub(crate) fn line_table(&self, unit: &Unit) -> Option<&LineTable> {
        self.line_tables.get(unit.line_table? as usize)
    }

    /// The entry at an offset of `.debug_info` (`DW_FORM_ref_addr`).
    pub(crate) fn at_info_offset(&self, offset: usize) -> Option<Die> {
        let units = &self.list[..self.info_count];
        let index = units
            .partition_point(|unit| unit.offset <= offset)
            .checked_sub(1)?;
        let within = offset - units[index].offset;
        (within < units[index].length).then_some(Die {
            unit: index as u32,
            offset: within as u32,
        })
    }

    /// The type a signature stands for (`DW_FORM_ref_sig8`).
    pub(crate) fn of_signature(&self, signature: u64) -> Option<Die> {
        self.signatures.get(&signature).copied()
    }
}

/// Reads all unit headers and root entries. A damaged unit is left out; what follows a damaged header
/// cannot be found.
pub(crate) fn read(view: &View<'_>) -> Result<Units, Missing> {
    let raw = &view.raw;
    let mut headers = Vec::new();
    let mut info = raw.units();
    while let Ok(Some(header)) = info.next() {
        headers.push((UnitSection::Info, header));
    }
    let mut types = raw.type_units();
    while let Ok(Some(header)) = types.next() {
        headers.push((UnitSection::Types, header));
    }
    if headers.is_empty() {
        return Err(Missing::Malformed);
    }
    let mut reader = UnitReader::new(view, &headers);
    for (section, header) in headers {
        // An offset inside of a unit is kept in 32 bits.
        if u32::try_from(header.length_including_self()).is_ok() {
            reader.read(section, header)?;
        }
    }
    Ok(reader.finish())
}

/// The pass over all headers and root entries.
struct UnitReader<'v, 'a> {
    view: &'v View<'a>,
    units: Units,
    spans: Vec<Span<u32>>,
    /// Abbreviation tables by offset, with the offset of the next one.
    tables: HashMap<usize, (usize, Option<Arc<Abbreviations>>)>,
    line_tables: HashMap<usize, u32>,
}

impl<'v, 'a> UnitReader<'v, 'a> {
    /// Notes where each abbreviation table ends: at the latest where the next one starts.
    fn new(view: &'v View<'a>, headers: &[(UnitSection, UnitHeader<Slice<'a>>)]) -> Self {
        let mut offsets: Vec<usize> = headers
            .iter()
            .map(|(_, header)| header.debug_abbrev_offset().0)
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        let nexts = offsets.iter().skip(1).copied().chain([usize::MAX]);
        let tables = offsets
            .iter()
            .copied()
            .zip(nexts.map(|next| (next, None)))
            .collect();
        UnitReader {
            view,
            units: Units::default(),
            spans: Vec::new(),
            tables,
            line_tables: HashMap::new(),
        }
    }

    /// The abbreviations at an offset, parsed once. Tables lie side by side: reading one no further than the
    /// start of the next keeps the whole of it linear even if a hostile file lets them overlap.
    fn abbreviations(&mut self, at: DebugAbbrevOffset<usize>) -> Option<Arc<Abbreviations>> {
        let section = gimli::Section::reader(&self.view.raw.debug_abbrev).slice();
        let (next, table) = self.tables.get_mut(&at.0)?;
        if table.is_none() {
            let slice = &section[..section.len().min(*next)];
            let parsed = DebugAbbrev::new(slice, gimli::LittleEndian)
                .abbreviations(at)
                .ok()?;
            *table = Some(Arc::new(parsed));
        }
        table.clone()
    }

    /// One unit. Fails only when the file causes more work than its size allows.
    fn read(&mut self, section: UnitSection, header: UnitHeader<Slice<'a>>) -> Result<(), Missing> {
        let Some(abbreviations) = self.abbreviations(header.debug_abbrev_offset()) else {
            return Ok(());
        };
        let encoding = header.encoding();
        let file_type = gimli::DwarfFileType::Main;
        let mut unit = Unit {
            section,
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
            functions: OnceLock::new(),
            scopes: OnceLock::new(),
        };
        let kind = header.type_();
        let index = self.units.list.len() as u32;
        // A root entry that cannot be read still leaves a unit that others may refer to.
        let covers = self.read_root(&mut unit, header, index)?;
        if let UnitType::Type {
            type_signature,
            type_offset,
        } = kind
        {
            self.units.signatures.insert(
                type_signature.0,
                Die {
                    unit: index,
                    offset: type_offset.0 as u32,
                },
            );
        }
        if section == UnitSection::Info {
            self.units.info_count = self.units.list.len() + 1;
        }
        self.units.list.push(unit);
        if !covers && matches!(kind, UnitType::Compilation) {
            self.cover_by_functions(index);
        }
        Ok(())
    }

    /// Takes what is needed from the root entry. Returns whether the unit states its code ranges, or has none.
    fn read_root(
        &mut self,
        unit: &mut Unit,
        header: UnitHeader<Slice<'a>>,
        index: u32,
    ) -> Result<bool, Missing> {
        let opened = unit.with_header(header);
        let Ok(mut entries) = opened.entries_raw(None) else {
            return Ok(true);
        };
        let Ok(Some(abbreviation)) = entries.read_abbreviation() else {
            return Ok(true);
        };
        let mut range = CodeRange::default();
        let mut low_pc = None;
        let mut directory = None;
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
                    unit.language = Some(Language::of_dwarf(code));
                }
                (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => {
                    unit.line_table = Some(self.line_table(offset));
                }
                (gimli::DW_AT_comp_dir, value) => directory = Some(value),
                (gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name, _) => self.units.split = true,
                _ => {}
            }
            if attribute.name() == gimli::DW_AT_low_pc {
                low_pc = Some(value);
            }
            range.observe(attribute.name(), value);
        }
        // Indexed forms need the bases, which may come later in the entry than their users.
        let header = opened.header;
        let opened = unit.with_header(header);
        if let Some(value) = low_pc {
            unit.low_pc = self
                .view
                .raw
                .attr_address(&opened, value)
                .ok()
                .flatten()
                .unwrap_or(0);
        }
        let opened = unit.with_header(header);
        if let Some(text) = directory.and_then(|value| self.view.text(&opened, value)) {
            let text = &text[..text.len().min(LONGEST_PATH)];
            self.view.info.budget.charge(text.len() as u64 / 8)?;
            unit.directory = String::from_utf8_lossy(text).into();
        }
        let mut any = false;
        let spans = &mut self.spans;
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

    /// The number of the line table at an offset; units that name the same offset get the same one.
    fn line_table(&mut self, offset: DebugLineOffset<usize>) -> u32 {
        let tables = &mut self.units.line_tables;
        *self.line_tables.entry(offset.0).or_insert_with(|| {
            tables.push(LineTable {
                offset,
                files: OnceLock::new(),
                lines: OnceLock::new(),
            });
            tables.len() as u32 - 1
        })
    }

    /// For a unit that does not say what it covers (some assemblers and older compilers): ask its functions.
    fn cover_by_functions(&mut self, index: u32) {
        let Some(unit) = self.units.list.get(index as usize) else {
            return;
        };
        let Ok(opened) = unit.open(&self.view.raw) else {
            return;
        };
        let functions = Functions::read(self.view, &opened);
        if let Ok(functions) = &functions {
            self.spans
                .extend(functions.ranges().map(|(start, end)| Span {
                    start,
                    end,
                    value: index,
                }));
        }
        // Already decoded: keep it. The cell is new, so that setting it cannot fail.
        let _ = unit.functions.set(functions);
    }

    /// Sorts what was found.
    fn finish(mut self) -> Units {
        self.units.code = Spans::new(self.spans);
        self.units
    }
}
