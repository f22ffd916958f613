//! The DWARF of one program, in all the files it is spread over. Sections are sliced from the images for each
//! question; what is kept between questions holds offsets only, never borrowed data, so that a module is one plain
//! owned value.

mod abbreviations;
mod attributes;
mod entry;
mod files;
mod functions;
mod inlined;
mod line_header;
mod lines;
mod names;
mod package;
mod scopes;
mod sections;
mod split;
mod supplement;
mod unit_reader;
mod units;
mod variables;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{HashMap, HashSet},
    ops::Deref,
    rc::Rc,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gimli::{EndianSlice, LittleEndian};

pub(crate) use attributes::CodeRange;
pub(crate) use entry::Entry;
pub(crate) use files::Files;
pub use files::SourceFile;
pub(crate) use functions::Functions;
pub(crate) use inlined::Inlined;
pub(crate) use lines::Lines;
pub(crate) use scopes::Scopes;
use sections::{Naming, Sections};
use split::Source;
pub(crate) use split::Split;
pub(crate) use units::{Die, Unit, Units};
use units::{Place, SUPPLEMENT};
pub(crate) use variables::{Variable, Variables};

use crate::{
    budget::Budget,
    debug_files::DebugFiles,
    image::Image,
    kept::{Held, Kept, Memory, Sizeable},
    locals::LocalsCache,
    missing::Missing,
    types::TypeCache,
};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Raw<'a> = gimli::Dwarf<Slice<'a>>;
pub(crate) type Value<'a> = gimli::AttributeValue<Slice<'a>>;

/// A unit with its header and bases, and the sections that its entries refer to: [`RawUnit::raw`] decodes what the
/// entries say, which another file's sections must not.
pub(crate) struct RawUnit<'a> {
    unit: gimli::Unit<Slice<'a>>,
    pub(crate) raw: Rc<Raw<'a>>,
}

impl<'a> Deref for RawUnit<'a> {
    type Target = gimli::Unit<Slice<'a>>;

    fn deref(&self) -> &Self::Target {
        &self.unit
    }
}

/// Where further files with debug info come from.
pub(crate) type Finder = Arc<dyn DebugFiles + Send + Sync>;

/// Everything known from DWARF: the units, read at once; `.dwo` files, functions, lines and variables, read when
/// needed.
pub(crate) struct DebugInfo {
    finder: Finder,
    /// The file that is really loaded: a separate debug file's own segments may be hollow.
    loaded: Arc<Image>,
    sections: Sections,
    /// The supplementary file, if the debug info refers to one.
    supplement: Option<Result<Sections, Missing>>,
    pub(crate) budget: Budget,
    memory: Arc<Memory>,
    /// Names of the `.dwo` files that added to the budget.
    allowed: Mutex<HashSet<Box<str>>>,
    pub(crate) units: Units,
    variables: OnceLock<Result<Variables, Missing>>,
    pub(crate) types: TypeCache,
    pub(crate) locals: LocalsCache,
}

impl DebugInfo {
    /// Reads the unit headers and their address ranges.
    pub(crate) fn read(
        image: Arc<Image>,
        loaded: Arc<Image>,
        finder: Finder,
        memory: Arc<Memory>,
    ) -> Result<DebugInfo, Missing> {
        let supplement = supplement::find(&image, &*finder);
        let sections = Sections::find(image, Naming::Plain);
        let budget = Budget::for_bytes(sections.bytes(), memory.all());
        if let Some(Ok(supplement)) = &supplement {
            budget.allow(supplement.bytes());
        }
        let mut info = DebugInfo {
            finder,
            loaded,
            sections,
            supplement,
            budget,
            memory,
            allowed: Mutex::default(),
            units: Units::default(),
            variables: OnceLock::new(),
            types: TypeCache::default(),
            locals: LocalsCache::default(),
        };
        info.units = info.view().read_units()?;
        Ok(info)
    }

    /// One question's look. Cheap: the sections are sliced when an entry is read.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            info: self,
            own: OnceCell::new(),
            others: RefCell::default(),
            entries_read: Cell::new(0),
            charged: Cell::new(0),
        }
    }

    /// Allows for the work that a further file may cause, once for each name.
    fn allow(&self, name: &str, bytes: usize) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if allowed.insert(name.into()) {
            self.budget.allow(bytes);
        }
    }

    /// The file that holds the debug info.
    pub(crate) fn image(&self) -> &Image {
        self.sections.image()
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

    /// The offset in the thread-local segment that a location means. gcc's `.debug_addr` (12, split DWARF) has the
    /// address of the variable's initial value in its place: no offset is that large.
    pub(crate) fn thread_local_offset(&self, stated: u64) -> u64 {
        match self.loaded.thread_local {
            Some(segment) if stated >= segment.memory_size && segment.covers(stated) => {
                stated - segment.address
            }
            _ => stated,
        }
    }

    /// Why an address that no unit describes is not described.
    pub(crate) fn not_covered(&self) -> Missing {
        self.units.split_problem().unwrap_or(Missing::NotCovered)
    }

    /// Keeps what is decoded below the limit.
    pub(crate) fn trim(&self) {
        self.memory.trim(|| self.units.droppable());
    }

    /// The variables, found by the first question for one.
    pub(crate) fn variables(&self) -> Result<&Variables, Missing> {
        self.variables
            .get_or_init(|| Variables::read(&self.view()))
            .as_ref()
            .map_err(|missing| *missing)
    }
}

/// Entries read one by one for one question; a third of a second. The largest classes need some ten thousand.
const MOST_ENTRIES: u32 = 1 << 21;

/// Sets of sections kept sliced for one question.
const MOST_RAWS: usize = 256;

/// One question's look at the debug info.
pub(crate) struct View<'a> {
    pub(crate) info: &'a DebugInfo,
    own: OnceCell<Rc<Raw<'a>>>,
    /// Sections of other files, by the first number of their units and the section of units.
    others: RefCell<HashMap<(u32, u32), Rc<Raw<'a>>>>,
    entries_read: Cell<u32>,
    /// Work that this question paid for.
    charged: Cell<u64>,
}

impl<'a> View<'a> {
    /// Counts the entries read: what nests or repeats without end must end somewhere.
    pub(crate) fn step(&self) -> Result<(), Missing> {
        let read = self.entries_read.get().saturating_add(1);
        self.entries_read.set(read);
        if read > MOST_ENTRIES {
            return Err(Missing::TooDeep);
        }
        self.info.budget.time()
    }

    /// Pays for decoding.
    pub(crate) fn charge(&self, amount: u64) -> Result<(), Missing> {
        self.info.budget.charge(amount)?;
        self.charged.set(self.charged.get() + amount);
        Ok(())
    }

    /// What `read` gives, and the work it was.
    pub(crate) fn measured<T>(&self, read: impl FnOnce() -> T) -> (T, u64) {
        let before = self.charged.get();
        let made = read();
        (made, self.charged.get() - before)
    }

    /// A table, decoded unless it is there.
    pub(crate) fn kept<T: Sizeable>(
        &self,
        kept: &Kept<T>,
        read: impl FnOnce() -> Result<T, Missing>,
    ) -> Result<Arc<Held<T>>, Missing> {
        let info = self.info;
        kept.get_or_read(&info.memory, &info.budget, || self.measured(read))
    }

    /// Whether some entries were not read because the question had read too many.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.entries_read.get() > MOST_ENTRIES
    }

    /// The unit with its header and bases, ready to read entries from.
    pub(crate) fn unit(&self, number: u32) -> Result<RawUnit<'a>, Missing> {
        let info = self.info;
        let Some(unit) = info.units.get(number) else {
            return Err(match &info.supplement {
                Some(Err(missing)) if number == SUPPLEMENT => *missing,
                _ => Missing::Malformed,
            });
        };
        unit.open(self.raw_of(number, unit)?)
    }

    /// The sections of the program's own file.
    fn own_raw(&self) -> &Rc<Raw<'a>> {
        self.own.get_or_init(|| {
            let mut raw = self.info.sections.raw();
            if let Some(Ok(supplement)) = &self.info.supplement {
                raw.set_sup(supplement.raw());
            }
            Rc::new(raw)
        })
    }

    /// The sections that the entries of a unit refer to.
    fn raw_of(&self, number: u32, unit: &Unit) -> Result<Rc<Raw<'a>>, Missing> {
        let units = &self.info.units;
        let place = units.place(number);
        let first = match place {
            Place::Own(_) => return Ok(Rc::clone(self.own_raw())),
            Place::Supplement(_) => SUPPLEMENT,
            Place::Packaged(_) => number,
            Place::Split { file, .. } => units.first_of_split(file),
        };
        let key = (first, unit.piece);
        if let Some(raw) = self.others.borrow().get(&key) {
            return Ok(Rc::clone(raw));
        }
        let raw = match place {
            Place::Own(_) | Place::Supplement(_) => self.supplement_raw()?,
            Place::Packaged(row) => {
                let package = self.package().map_err(|_| Missing::Malformed)?;
                self.raw_of_row(package, row as u32 + 1, true)?
            }
            Place::Split { file, .. } => match &self.split(file)?.source {
                Source::File(sections) => self.split_raw(sections.raw_of_piece(unit.piece)),
                Source::Package(row) => {
                    let package = self.package().map_err(|_| Missing::Malformed)?;
                    self.raw_of_row(package, *row, false)?
                }
            },
        };
        let raw = Rc::new(raw);
        let mut others = self.others.borrow_mut();
        if others.len() >= MOST_RAWS {
            others.clear();
        }
        others.insert(key, Rc::clone(&raw));
        Ok(raw)
    }

    /// The sections of a `.dwo` file with those that stay in the program.
    fn split_raw<'r>(&self, mut raw: Raw<'r>) -> Raw<'r>
    where
        'a: 'r,
    {
        raw.make_dwo(self.own_raw());
        raw
    }

    fn supplement_raw(&self) -> Result<Raw<'a>, Missing> {
        match &self.info.supplement {
            Some(Ok(sections)) => Ok(sections.raw()),
            Some(Err(missing)) => Err(*missing),
            None => Err(Missing::Malformed),
        }
    }

    /// The text of a string attribute, whatever its form.
    #[expect(
        clippy::unused_self,
        reason = "the opened unit has the sections; readers ask the view"
    )]
    pub(crate) fn text<'r>(&self, unit: &RawUnit<'r>, value: Value<'r>) -> Option<&'r [u8]> {
        let text = unit.raw.attr_string(unit, value).ok()?.slice();
        // No identifier is this long; a hostile string table has no ends.
        Some(&text[..text.len().min(1 << 16)])
    }

    /// Numbers of the units that have code and variables, in every file; skeletons are left out.
    pub(crate) fn described_units(&self) -> Vec<u32> {
        let units = &self.info.units;
        let mut numbers = Vec::new();
        for (number, unit) in units.own.numbers().zip(&units.own.list) {
            // What cannot be loaded is remembered, with the reason.
            match unit.split.map(|split| self.split(split as usize)) {
                Some(Ok(file)) => numbers.extend(file.units.numbers()),
                Some(Err(_)) | None => numbers.push(number),
            }
        }
        numbers.extend(units.supplement.numbers());
        numbers
    }

    /// As [`View::described_units`], with the type units of a package.
    pub(crate) fn all_units(&self) -> Vec<u32> {
        let mut numbers = self.described_units();
        numbers.extend(self.packaged_units());
        numbers
    }
}
