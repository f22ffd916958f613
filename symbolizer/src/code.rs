//! Instruction addresses to function, inlined calls and source lines.

use std::sync::Arc;

use crate::{
    dwarf::{DebugInfo, Files, Lines, Unit, View},
    kept::Held,
    language::Language,
    missing::Missing,
};

/// One frame of the source: a function, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    /// Demangled name with namespaces.
    pub function: Option<Arc<str>>,
    /// Path as the compiler recorded it, absolute if it recorded its directory.
    pub file: Option<Arc<str>>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// Which of several blocks of code of the line, from 1, where the compiler tells them apart (DWARF 5,
    /// section 6.2.2; of a call, `DW_AT_GNU_discriminator`).
    pub discriminator: Option<u32>,
}

/// What is known of an instruction address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Demangled name of the ELF symbol that covers the address: what is in the file, however much was
    /// inlined into it.
    pub symbol: Result<Arc<str>, Missing>,
    /// Bytes from the start of that symbol to the address.
    pub offset_in_symbol: Option<u64>,
    /// From the innermost inlined call to the real function. Each one's line is where it calls the one before.
    pub frames: Vec<Frame>,
    /// Why `frames` is empty, or has nothing but a line.
    pub missing: Option<Missing>,
}

impl DebugInfo {
    /// The frames of an address, innermost first.
    pub(crate) fn frames(&self, address: u64) -> (Vec<Frame>, Option<Missing>) {
        let found = self.find_frames(address);
        self.trim();
        found
    }

    fn find_frames(&self, address: u64) -> (Vec<Frame>, Option<Missing>) {
        let view = self.view();
        let mut line_only = None;
        let mut problem = self.not_covered();
        for unit in view.code_units(address) {
            match view.frames_in_unit(unit, address) {
                Ok(Found::Function(frames)) => return (frames, None),
                Ok(Found::Line(frame, missing)) => line_only = line_only.or(Some((frame, missing))),
                Ok(Found::Nothing) => {}
                Err(missing) => problem = missing,
            }
        }
        match line_only {
            Some((frame, missing)) => (vec![frame], missing),
            None => (Vec::new(), Some(problem)),
        }
    }

    /// The language of the unit that holds an address.
    pub(crate) fn language(&self, address: u64) -> Option<Language> {
        let view = self.view();
        let unit = view.code_units(address).next()?;
        // What is not in the skeleton is in its `.dwo` file.
        let full = view.full_unit(unit).unwrap_or(unit);
        self.units.get(full)?.language
    }
}

enum Found {
    Function(Vec<Frame>),
    /// No function, but a line: code written in assembly, or a `.dwo` file that is not there.
    Line(Frame, Option<Missing>),
    Nothing,
}

impl View<'_> {
    /// What one unit says of an address.
    fn frames_in_unit(&self, index: u32, address: u64) -> Result<Found, Missing> {
        let info = self.info;
        // A skeleton alone still has the lines.
        let (index, absent) = match self.full_unit(index) {
            Ok(full) => (full, None),
            Err(missing) => (index, Some(missing)),
        };
        let unit = info.units.get(index).ok_or(Missing::Malformed)?;
        // A damaged line table still leaves the functions.
        let lines = self.lines(unit).ok();
        let files = self.files(unit).ok();
        let path = |file| files.as_ref()?.path(u64::from(file));
        let known = |number: u32| (number != 0).then_some(number);
        let place = lines.and_then(|lines| {
            let row = lines.row(address)?;
            Some(Frame {
                function: None,
                file: path(row.file),
                line: known(row.line),
                column: known(row.column),
                discriminator: known(row.discriminator),
            })
        });
        let functions = self.functions(index, unit)?;
        let share = &functions.share;
        let Some(function) = functions.at(address) else {
            return match (place, absent) {
                (Some(place), absent) => Ok(Found::Line(place, absent)),
                (None, Some(absent)) => Err(absent),
                (None, None) => Ok(Found::Nothing),
            };
        };
        let mut frames = Vec::new();
        let mut place = place.unwrap_or_default();
        for call in function.inlined(self, share, index)?.at(address) {
            let name = call
                .name
                .get_or_init(|| self.inlined_name(&functions, call.named));
            place.function.clone_from(name);
            let caller = Frame {
                function: None,
                file: call.call_file.and_then(path),
                line: known(call.call_line),
                column: known(call.call_column),
                discriminator: known(call.call_discriminator),
            };
            frames.push(std::mem::replace(&mut place, caller));
        }
        place.function = function.name(self, share, index).cloned();
        frames.push(place);
        Ok(Found::Function(frames))
    }

    /// The unit's line table, decoded on first use.
    pub(crate) fn lines(&self, unit: &Unit) -> Result<Arc<Held<Lines>>, Missing> {
        let table = unit.line_table().ok_or(Missing::NotCovered)?;
        self.kept(&table.lines, || {
            Lines::read(self, &self.unit(table.unit)?, table.offset)
        })
    }

    /// The file names of the unit's line table.
    pub(crate) fn files(&self, unit: &Unit) -> Result<Arc<Held<Files>>, Missing> {
        let table = unit.line_table().ok_or(Missing::NotCovered)?;
        self.kept(&table.files, || {
            Files::read(self, &self.unit(table.unit)?, unit, table.offset)
        })
    }
}
