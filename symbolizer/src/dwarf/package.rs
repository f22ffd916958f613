//! Packages: all `.dwo` files of a program in one (DWARF 5, section 7.3.5; before, GCC's wiki page DebugFissionDWP).

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{Arc, OnceLock},
};

use gimli::{SectionId, UnitType};

use super::{
    Die, Raw, View,
    sections::{Naming, Sections, UnitSection},
    unit_reader::{self, Role, Tables},
    units::{PACKAGED, Unit},
};
use crate::{debug_files::DebugRequest, image::Image, missing::Missing};

/// A package and its two indexes.
pub(crate) struct Package {
    sections: Sections,
    /// Row of each compilation unit, by `dwo_id`.
    compilations: HashMap<u64, u32>,
    /// Row of each type unit, by signature.
    types: HashMap<u64, u32>,
    /// The type units by row, read when they are first referred to.
    type_units: Box<[OnceLock<Option<Box<Unit>>>]>,
    /// Tables by their address in the section: the type units of one `.dwo` file share theirs.
    abbreviations: Tables,
}

impl Package {
    fn read(sections: Sections) -> Result<Package, Missing> {
        let compilations = rows(sections.content(SectionId::DebugCuIndex))?;
        let types = rows(sections.content(SectionId::DebugTuIndex))?;
        let count = types.values().max().map_or(0, |&row| row as usize);
        if compilations.is_empty() {
            return Err(Missing::Malformed);
        }
        Ok(Package {
            sections,
            compilations,
            types,
            type_units: std::iter::repeat_with(OnceLock::new).take(count).collect(),
            abbreviations: Tables::default(),
        })
    }

    /// Row of the compilation unit with this `dwo_id`.
    pub(super) fn compilation(&self, id: u64) -> Option<u32> {
        self.compilations.get(&id).copied()
    }

    /// A type unit by row less one, if it was read.
    pub(super) fn type_unit(&self, index: usize) -> Option<&Unit> {
        self.type_units.get(index)?.get()?.as_deref()
    }
}

/// The hash table of an index, as a map of rows (counted from 1). Reading the file's own table slot by slot for each
/// question would take long in a hostile one.
fn rows(index: &[u8]) -> Result<HashMap<u64, u32>, Missing> {
    let parsed = gimli::DebugCuIndex::new(index, gimli::LittleEndian).index()?;
    let slots = parsed.slot_count() as usize;
    // The header takes 16 bytes in both versions; the reader checked that the tables are there.
    let ids = index.get(16..).unwrap_or(&[]).chunks_exact(8).take(slots);
    let rows = index.get(16 + slots * 8..).unwrap_or(&[]).chunks_exact(4);
    let number = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    let pairs = ids
        .zip(rows)
        .map(|(id, row)| (number(id), number(row) as u32));
    let in_table = |&(_, row): &(u64, u32)| row > 0 && row <= parsed.unit_count().min(slots as u32);
    Ok(pairs.filter(in_table).collect())
}

impl<'a> View<'a> {
    /// The package of the module, found on first use.
    pub(super) fn package(&self) -> Result<&'a Package, Option<Missing>> {
        let info = self.info;
        let find = || {
            let request = DebugRequest::Dwp {
                build_id: info.loaded.build_id(),
            };
            let mut refused = None;
            for bytes in info.finder.candidates(&request) {
                let package = Image::parse(bytes)
                    .map_err(|_| Missing::Malformed)
                    .and_then(|image| {
                        let image = image.within(&info.memory);
                        if !info.memory.all().has_room(image.compressed_bytes()) {
                            return Err(Missing::NoMemory);
                        }
                        Package::read(Sections::find(Arc::new(image), Naming::Split))
                    });
                match package {
                    Ok(package) => {
                        info.budget.allow(package.sections.bytes());
                        return Ok(package);
                    }
                    Err(missing) => refused = Some(missing),
                }
            }
            Err(refused)
        };
        let found = info.units.package.get_or_init(find);
        found.as_ref().map_err(|missing| *missing)
    }

    /// The parts of the package that belong to one row of an index.
    pub(super) fn raw_of_row(
        &self,
        package: &'a Package,
        row: u32,
        of_types: bool,
    ) -> Result<Raw<'a>, Missing> {
        let load = |id: SectionId| -> Result<_, gimli::Error> { Ok(package.sections.slice(id)) };
        let empty = super::Slice::new(&[], gimli::LittleEndian);
        let all = gimli::DwarfPackage::load(load, empty)?;
        Ok(if of_types {
            all.tu_sections(row, self.own_raw())?
        } else {
            all.cu_sections(row, self.own_raw())?
        })
    }

    /// The type unit of a signature in the package, read on first use.
    pub(super) fn packaged_type(&self, signature: u64) -> Option<Die> {
        let package = self.info.units.package.get()?.as_ref().ok()?;
        let row = *package.types.get(&signature)?;
        let number = PACKAGED | (row - 1);
        let offset = self.packaged_unit(package, row)?;
        Some(Die {
            unit: number,
            offset,
        })
    }

    /// Reads the type unit of a row unless that was done before; returns where in it the type is.
    fn packaged_unit(&self, package: &'a Package, row: u32) -> Option<u32> {
        let cell = package.type_units.get(row as usize - 1)?;
        let read = || self.read_packaged(package, row).map(Box::new);
        let unit = cell.get_or_init(read).as_deref()?;
        let raw = self.raw_of(PACKAGED | (row - 1), unit).ok()?;
        match unit.open(raw).ok()?.header.type_() {
            UnitType::Type { type_offset, .. } | UnitType::SplitType { type_offset, .. } => {
                u32::try_from(type_offset.0).ok()
            }
            _ => None,
        }
    }

    fn read_packaged(&self, package: &'a Package, row: u32) -> Option<Unit> {
        let raw = Rc::new(self.raw_of_row(package, row, true).ok()?);
        let mut found = Vec::new();
        for section in [UnitSection::Info, UnitSection::Types] {
            if found.is_empty() {
                unit_reader::headers(&raw, section, 0, &mut found);
            }
        }
        found.truncate(1);
        self.info.budget.charge(16).ok()?;
        let role = Role::Packaged(&package.abbreviations);
        let contents = unit_reader::read(self, PACKAGED | (row - 1), 1, found, role);
        contents.ok()?.units.list.pop()
    }

    /// Reads all type units of the package; returns their numbers.
    pub(super) fn packaged_units(&self) -> Vec<u32> {
        let Some(Ok(package)) = self.info.units.package.get() else {
            return Vec::new();
        };
        let rows = 1..=package.type_units.len() as u32;
        rows.filter(|&row| self.packaged_unit(package, row).is_some())
            .map(|row| PACKAGED | (row - 1))
            .collect()
    }
}
