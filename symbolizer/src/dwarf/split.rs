//! Split DWARF: the units in `.dwo` files, or in the package (`.dwp`) that holds all of them.

use std::{
    rc::Rc,
    sync::{Arc, OnceLock},
};

use super::{
    View,
    sections::{Naming, Sections, UnitSection},
    unit_reader::{self, Contents, Found, Role, SplitName},
    units::{Unit, UnitList},
};
use crate::{debug_files::DebugRequest, image::Image, missing::Missing};

/// The file with the entries of one skeleton, loaded when a question first needs it.
pub(crate) struct Split {
    pub(super) name: SplitName,
    file: OnceLock<Result<SplitFile, Missing>>,
}

/// A loaded file.
pub(crate) struct SplitFile {
    pub(super) source: Source,
    pub(super) units: UnitList,
    /// Number of the unit that the skeleton stands for.
    full: u32,
}

/// Where the sections are.
pub(crate) enum Source {
    File(Box<Sections>),
    /// A row of the package's index of compilation units.
    Package(u32),
}

impl Split {
    pub(super) fn new(name: SplitName) -> Split {
        Split {
            name,
            file: OnceLock::new(),
        }
    }

    /// The file, if it was loaded.
    pub(super) fn loaded(&self) -> Option<&SplitFile> {
        self.file.get()?.as_ref().ok()
    }

    /// Why the file could not be loaded, if that was tried.
    pub(super) fn problem(&self) -> Option<Missing> {
        self.file.get()?.as_ref().err().copied()
    }
}

impl<'a> View<'a> {
    /// The unit with the entries: of a skeleton, the one in its `.dwo` file.
    pub(crate) fn full_unit(&self, number: u32) -> Result<u32, Missing> {
        let unit = self.info.units.get(number).ok_or(Missing::Malformed)?;
        match unit.split {
            None => Ok(number),
            Some(split) => Ok(self.split(split as usize)?.full),
        }
    }

    /// The `.dwo` file of a skeleton, loaded on first use.
    pub(super) fn split(&self, index: usize) -> Result<&'a SplitFile, Missing> {
        let info = self.info;
        let split = info.units.splits.get(index).ok_or(Missing::Malformed)?;
        split
            .file
            .get_or_init(|| self.load(index, &split.name))
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// Looks into the package, then for the file itself.
    fn load(&self, index: usize, name: &SplitName) -> Result<SplitFile, Missing> {
        let info = self.info;
        let skeleton = info.units.get(name.skeleton).ok_or(Missing::Malformed)?;
        let mut refused = Missing::DwoNotFound;
        match self.package() {
            Ok(package) => {
                if let Some(row) = package.compilation(name.id) {
                    let raw = Rc::new(self.raw_of_row(package, row, false)?);
                    let mut found = Vec::new();
                    unit_reader::headers(&raw, UnitSection::Info, 0, &mut found);
                    let contents = self.read_split(index, found, skeleton)?;
                    return choose(Source::Package(row), contents, name.id);
                }
                refused = Missing::DwoMismatch;
            }
            Err(problem) => refused = problem.unwrap_or(refused),
        }
        let request = DebugRequest::Dwo {
            directory: &skeleton.directory,
            file_name: &name.name,
            dwo_id: name.id,
        };
        for bytes in info.finder.candidates(&request) {
            let Ok(image) = Image::parse(bytes) else {
                refused = Missing::Malformed;
                continue;
            };
            let image = image.within(&info.memory);
            if !info.memory.all().has_room(image.compressed_bytes()) {
                refused = Missing::NoMemory;
                continue;
            }
            let sections = Sections::find(Arc::new(image), Naming::Split);
            // The same file may be named by any number of skeletons: it is paid for once.
            info.allow(&name.name, sections.bytes());
            let mut found = Vec::new();
            for (piece, &(kind, _)) in sections.pieces().iter().enumerate() {
                let raw = self.split_raw(sections.raw_of_piece(piece as u32));
                unit_reader::headers(&Rc::new(raw), kind, piece as u32, &mut found);
            }
            let contents = self.read_split(index, found, skeleton);
            match contents
                .and_then(|contents| choose(Source::File(Box::new(sections)), contents, name.id))
            {
                Ok(file) => return Ok(file),
                Err(missing) => refused = missing,
            }
        }
        Err(refused)
    }

    fn read_split(
        &self,
        index: usize,
        found: Vec<Found<'_>>,
        skeleton: &Unit,
    ) -> Result<Contents, Missing> {
        let units = &self.info.units;
        if found.is_empty() {
            return Err(Missing::Malformed);
        }
        self.info.budget.charge(64 + found.len() as u64)?;
        let most = 1 << units.local_bits;
        unit_reader::read(
            self,
            units.first_of_split(index),
            most,
            found,
            Role::Split(skeleton),
        )
    }
}

/// The file, if one of its units is the one looked for.
fn choose(source: Source, contents: Contents, id: u64) -> Result<SplitFile, Missing> {
    let units = contents.units;
    let full = units.list.iter().position(|unit| unit.dwo_id == Some(id));
    let full = units.first | full.ok_or(Missing::DwoMismatch)? as u32;
    Ok(SplitFile {
        source,
        units,
        full,
    })
}
