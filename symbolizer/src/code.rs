//! Instruction addresses to function, inlined calls and source lines.

use std::sync::Arc;

use crate::{
    dwarf::{DebugInfo, Die, Files, Lines, Unit, View},
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
        let view = self.view();
        let mut line_only = None;
        let mut problem = self.not_covered();
        for span in self.units.code.covering(address) {
            match view.frames_in_unit(span.value, address) {
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
        let unit = self.units.code.covering(address).next()?.value;
        // What is not in the skeleton is in its `.dwo` file.
        let full = self.view().full_unit(unit).unwrap_or(unit);
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
        let place = lines.and_then(|lines| {
            let row = lines.row(address)?;
            let known = |number: u32| (number != 0).then_some(number);
            Some(Frame {
                function: None,
                file: files.and_then(|files| files.path(u64::from(row.file))),
                line: known(row.line),
                column: known(row.column),
                discriminator: known(row.discriminator),
            })
        });
        let functions = unit
            .functions
            .get_or_init(|| crate::dwarf::Functions::read(self, &self.unit(index)?))
            .as_ref()
            .map_err(|missing| *missing)?;
        let Some(function) = functions.at(address) else {
            return match (place, absent) {
                (Some(place), absent) => Ok(Found::Line(place, absent)),
                (None, Some(absent)) => Err(absent),
                (None, None) => Ok(Found::Nothing),
            };
        };
        let mut frames = Vec::new();
        let mut place = place.unwrap_or_default();
        let name = |offset| {
            self.function_name(Die {
                unit: index,
                offset,
            })
            .map(Arc::from)
        };
        for call in function.inlined(self, index)?.at(address) {
            place
                .function
                .clone_from(call.name.get_or_init(|| name(call.offset)));
            let file = call.call_file.and_then(|file| files?.path(file));
            let caller = Frame {
                function: None,
                file,
                line: call.call_line,
                column: call.call_column,
                discriminator: call.call_discriminator,
            };
            frames.push(std::mem::replace(&mut place, caller));
        }
        place
            .function
            .clone_from(function.name.get_or_init(|| name(function.offset)));
        frames.push(place);
        Ok(Found::Function(frames))
    }

    /// The unit's line table, decoded on first use.
    pub(crate) fn lines<'u>(&self, unit: &'u Unit) -> Result<&'u Lines, Missing>
    where
        Self: 'u,
    {
        let table = self
            .info
            .units
            .line_table(unit)
            .ok_or(Missing::NotCovered)?;
        table
            .lines
            .get_or_init(|| Lines::read(self, &self.unit(table.unit)?, table.offset))
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// The file names of the unit's line table.
    pub(crate) fn files<'u>(&self, unit: &'u Unit) -> Result<&'u Files, Missing>
    where
        Self: 'u,
    {
        let table = self
            .info
            .units
            .line_table(unit)
            .ok_or(Missing::NotCovered)?;
        table
            .files
            .get_or_init(|| Files::read(self, &self.unit(table.unit)?, unit, table.offset))
            .as_ref()
            .map_err(|missing| *missing)
    }
}
