//! The machine code behind the instructions of a session.

use std::sync::Arc;

use crate::{
    access::SpaceId,
    decode::{LONGEST_INSTRUCTION, LoadedInto, loaded_into},
    hint::file::{HintedCode, LoadClass},
    module::{LoadedModule, ModuleStore},
    session::Meta,
    space::AddressSpaces,
};

use super::report::modules_of;

/// Code of a session.
pub(super) struct SessionCode {
    /// Its files.
    pub modules: ModuleStore,
    /// Whether it is of the instruction set that is decoded here.
    x86: bool,
}

/// An instruction in its file.
pub(super) struct InFile {
    /// The file.
    pub module: Arc<LoadedModule>,
    /// The file's own address of it.
    pub svma: u64,
    x86: bool,
}

impl SessionCode {
    /// The code of the session.
    pub(super) fn of(meta: &Meta) -> SessionCode {
        SessionCode {
            modules: modules_of(meta),
            x86: (meta.machine.arch.as_deref()).is_none_or(|arch| arch == "x86_64"),
        }
    }

    /// The instruction at a run-time address; `None` where no file holds it.
    pub(super) fn at(&self, spaces: &AddressSpaces, space: SpaceId, ip: u64) -> Option<InFile> {
        let mapping = spaces.mapping(space, ip)?;
        let module = self.modules.open(spaces.pid(space)?, mapping).ok()?;
        let svma = module.svma(mapping, ip)?;
        let x86 = self.x86;
        Some(InFile { module, svma, x86 })
    }
}

impl InFile {
    /// Build-id, or path of a file without one.
    pub(super) fn file(&self) -> String {
        let build_id = self.module.build_id();
        build_id.unwrap_or_else(|| self.module.path.clone())
    }

    /// Code from the instruction on, at most `most` bytes, within the function where one is known; `None` where it
    /// cannot be read, or is not of the instruction set that is decoded here.
    pub(super) fn text(&self, most: u64) -> Option<&[u8]> {
        if !self.x86 {
            return None;
        }
        let (elf, svma) = (&self.module.elf, self.svma);
        let end = svma.checked_add(most)?;
        if let Some(function) = elf.function(svma) {
            return elf.code(svma, function.end.min(end));
        }
        // Without bounds, what the section has.
        (1..=most)
            .rev()
            .find_map(|bytes| elf.code(svma, svma + bytes))
    }

    /// Its file and its place in the source: the innermost frame, library or not, as assembly has it.
    pub(super) fn source(&self) -> HintedCode {
        let here = self.module.elf.frames(self.svma);
        let frame = here.frames.first();
        HintedCode {
            module: Some(self.module.path.clone()),
            file: frame.and_then(|frame| Some(frame.file.as_ref()?.to_string())),
            line: frame.and_then(|frame| frame.line),
            ..HintedCode::default()
        }
    }

    /// What a load at it loads into.
    pub(super) fn load_class(&self) -> LoadClass {
        match self.text(LONGEST_INSTRUCTION as u64).and_then(loaded_into) {
            Some(LoadedInto::General) => LoadClass::Integer,
            Some(LoadedInto::FloatingPoint) => LoadClass::FloatingPoint,
            None => LoadClass::Unknown,
        }
    }
}
