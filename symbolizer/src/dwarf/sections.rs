//! The DWARF sections of one file: the program's own, a `.dwo` file's, a package's, a supplementary file's.

use std::sync::Arc;

use gimli::{EndianSlice, LittleEndian, SectionId};

use super::{Raw, Slice};
use crate::image::{Image, Section};

/// The sections that are read.
const SECTIONS: [SectionId; 14] = [
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
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
];

/// Which names the sections have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `.debug_info`
    Plain,
    /// `.debug_info.dwo`
    Split,
}

/// Which section a unit lies in; DWARF 4 keeps type units apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitSection {
    Info,
    Types,
}

/// Where the sections are in a file.
pub(crate) struct Sections {
    image: Arc<Image>,
    places: [Option<usize>; SECTIONS.len()],
    /// All sections with units: gcc puts each type unit of a `.dwo` file into a section of its own, of one name.
    pieces: Vec<(UnitSection, usize)>,
}

impl Sections {
    pub(crate) fn find(image: Arc<Image>, naming: Naming) -> Sections {
        let places = SECTIONS.map(|id| {
            let name = match naming {
                Naming::Plain => Some(id.name()),
                Naming::Split => id.dwo_name(),
            };
            find_section(&image, name?)
        });
        let mut pieces = Vec::new();
        if naming == Naming::Split {
            for (kind, id) in [
                (UnitSection::Info, SectionId::DebugInfo),
                (UnitSection::Types, SectionId::DebugTypes),
            ] {
                let all = image.sections.iter().enumerate();
                let named = all.filter(|(_, section)| {
                    has_content(section) && Some(&*section.name) == id.dwo_name()
                });
                pieces.extend(named.map(|(index, _)| (kind, index)));
            }
        }
        Sections {
            image,
            places,
            pieces,
        }
    }

    /// Bytes in all sections that are read.
    pub(crate) fn bytes(&self) -> usize {
        let first = SECTIONS.iter().map(|&id| self.content(id).len());
        let pieces = self.pieces.iter().map(|&(_, index)| self.at(index).len());
        first.chain(pieces).fold(0, usize::saturating_add)
    }

    /// The sections with units of a `.dwo` file.
    pub(crate) fn pieces(&self) -> &[(UnitSection, usize)] {
        &self.pieces
    }

    pub(crate) fn content(&self, id: SectionId) -> &[u8] {
        let place = SECTIONS.iter().position(|&known| known == id);
        let index = place.and_then(|place| self.places[place]);
        index.map_or(&[], |index| self.at(index))
    }

    fn at(&self, index: usize) -> &[u8] {
        let section = self.image.sections.get(index);
        section.map_or(&[], |section| self.image.content(section))
    }

    pub(crate) fn slice(&self, id: SectionId) -> Slice<'_> {
        EndianSlice::new(self.content(id), LittleEndian)
    }

    /// The sections as the DWARF reader wants them. Cheap: slices only.
    pub(crate) fn raw(&self) -> Raw<'_> {
        let load =
            |id: SectionId| -> Result<Slice<'_>, std::convert::Infallible> { Ok(self.slice(id)) };
        let Ok(raw) = gimli::Dwarf::load(load);
        raw
    }

    /// As [`Sections::raw`] with one of the several sections of units in its place.
    pub(crate) fn raw_of_piece(&self, piece: u32) -> Raw<'_> {
        let mut raw = self.raw();
        if let Some(&(kind, index)) = self.pieces.get(piece as usize) {
            let units = EndianSlice::new(self.at(index), LittleEndian);
            match kind {
                UnitSection::Info => raw.debug_info = units.into(),
                UnitSection::Types => raw.debug_types = units.into(),
            }
        }
        raw
    }
}

fn find_section(image: &Image, name: &str) -> Option<usize> {
    let position = |name: &str| {
        let mut sections = image.sections.iter();
        sections.position(|section| &*section.name == name && has_content(section))
    };
    position(name).or_else(|| position(&format!(".z{}", name.trim_start_matches('.'))))
}

fn has_content(section: &Section) -> bool {
    section.kind != object::elf::SHT_NOBITS
}
