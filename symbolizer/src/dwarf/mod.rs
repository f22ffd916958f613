//! The DWARF of one file. Sections are sliced from the image for each question; what is kept between
//! questions holds offsets only, never borrowed data, so that a module is one plain owned value.

mod attributes;
mod entry;
mod files;
mod functions;
mod inlined;
mod line_header;
mod lines;
mod names;
mod scopes;
mod units;
mod variables;

use std::{
    cell::Cell,
    sync::{Arc, OnceLock},
};

use gimli::{EndianSlice, LittleEndian, SectionId};

pub(crate) use attributes::CodeRange;
pub(crate) use entry::Entry;
pub(crate) use files::Files;
pub(crate) use functions::Functions;
pub(crate) use inlined::Inlined;
pub(crate) use lines::Lines;
pub(crate) use scopes::Scopes;
pub(crate) use units::{Die, Unit, Units};
pub(crate) use variables::{Variable, Variables};

use crate::{
    budget::Budget, image::Image, locals::LocalsCache, missing::Missing, types::TypeCache,
};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Raw<'a> = gimli::Dwarf<Slice<'a>>;
pub(crate) type RawUnit<'a> = gimli::Unit<Slice<'a>>;
pub(crate) type Value<'a> = gimli::AttributeValue<Slice<'a>>;

/// The sections that are read, and where [`DebugInfo::sections`] remembers them.
const SECTIONS: [SectionId; 12] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
];

/// Everything known from DWARF: the units, read at once; functions, lines and variables, read when needed.
pub(crate) struct DebugInfo {
    image: Arc<Image>,
    /// The file that is really loaded: a separate debug file's own segments may be hollow.
    loaded: Arc<Image>,
    sections: [Option<usize>; SECTIONS.len()],
    pub(crate) budget: Budget,
    pub(crate) units: Units,
    variables: OnceLock<Result<Variables, Missing>>,
    pub(crate) types: TypeCache,
    pub(crate) locals: LocalsCache,
}

impl DebugInfo {
    /// Reads the unit headers and their address ranges.
    pub(crate) fn read(image: Arc<Image>, loaded: Arc<Image>) -> Result<DebugInfo, Missing> {
        let sections = SECTIONS.map(|id| find_section(&image, id));
        let mut info = DebugInfo {
            budget: Budget::for_bytes(0),
            units: Units::default(),
            variables: OnceLock::new(),
            types: TypeCache::default(),
            locals: LocalsCache::default(),
            sections,
            image,
            loaded,
        };
        let bytes = (0..SECTIONS.len())
            .map(|place| info.section(place).len())
            .sum();
        info.budget = Budget::for_bytes(bytes);
        info.units = units::read(&info.view())?;
        Ok(info)
    }

    fn section(&self, place: usize) -> &[u8] {
        self.sections[place]
            .and_then(|index| self.image.sections.get(index))
            .map_or(&[], |section| self.image.content(section))
    }

    /// The sections as the DWARF reader wants them. Cheap: slices only.
    pub(crate) fn view(&self) -> View<'_> {
        let load = |id: SectionId| -> Result<Slice<'_>, std::convert::Infallible> {
            let place = SECTIONS.iter().position(|&known| known == id);
            Ok(EndianSlice::new(
                place.map_or(&[], |place| self.section(place)),
                LittleEndian,
            ))
        };
        let Ok(raw) = gimli::Dwarf::load(load);
        View {
            info: self,
            raw,
            entries_read: Cell::new(0),
        }
    }

    /// The file that holds the debug info.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// Whether a range that DWARF states can be code of the loaded file. Linkers leave functions they
    /// dropped at address 0 (or 1, or the highest addresses).
    pub(crate) fn is_code(&self, start: u64) -> bool {
        start > 1 && self.loaded.is_executable(start)
    }

    /// Whether a variable at this address is in the loaded file, not one the linker dropped.
    pub(crate) fn is_loaded(&self, address: u64) -> bool {
        address > 1
            && self
                .loaded
                .segments
                .iter()
                .any(|segment| segment.covers(address))
    }

    /// Why an address that no unit describes is not described.
    pub(crate) fn not_covered(&self) -> Missing {
        if self.units.split {
            Missing::SplitDebugInfo
        } else {
            Missing::NotCovered
        }
    }

    /// The variables, found by the first question for one.
    pub(crate) fn variables(&self) -> Result<&Variables, Missing> {
        self.variables
            .get_or_init(|| Variables::read(&self.view()))
            .as_ref()
            .map_err(|missing| *missing)
    }
}

fn find_section(image: &Image, id: SectionId) -> Option<usize> {
    let position = |name: &str| {
        image
            .sections
            .iter()
            .position(|section| &*section.name == name && section.kind != object::elf::SHT_NOBITS)
    };
    position(id.name()).or_else(|| position(&format!(".z{}", id.name().trim_start_matches('.'))))
}

/// Entries read one by one for one question; a third of a second. The largest classes need some ten thousand.
const MOST_ENTRIES: u32 = 1 << 21;

/// One question's look at the debug info.
pub(crate) struct View<'a> {
    pub(crate) info: &'a DebugInfo,
    pub(crate) raw: Raw<'a>,
    entries_read: Cell<u32>,
}

impl<'a> View<'a> {
    /// Counts the entries read: what nests or repeats without end must end somewhere.
    pub(crate) fn step(&self) -> Result<(), Missing> {
        let read = self.entries_read.get().saturating_add(1);
        self.entries_read.set(read);
        if read > MOST_ENTRIES {
            return Err(Missing::TooDeep);
        }
        Ok(())
    }

    /// Whether some entries were not read because the question had read too many.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.entries_read.get() > MOST_ENTRIES
    }

    /// The unit with its header and bases, ready to read entries from.
    pub(crate) fn unit(&self, index: u32) -> Result<RawUnit<'a>, Missing> {
        let unit = self.info.units.get(index).ok_or(Missing::Malformed)?;
        unit.open(&self.raw)
    }

    /// The text of a string attribute, whatever its form.
    pub(crate) fn text(&self, unit: &RawUnit<'a>, value: Value<'a>) -> Option<&'a [u8]> {
        let text = self.raw.attr_string(unit, value).ok()?.slice();
        // No identifier is this long; a hostile string table has no ends.
        Some(&text[..text.len().min(1 << 16)])
    }
}
