//! A mapped ELF file and everything that can be asked about it.

use std::sync::{Arc, OnceLock};

use crate::{
    Code, Language,
    debug_files::{Bytes, DebugFiles, DebugRequest, crc32},
    demangle,
    dwarf::DebugInfo,
    image::Image,
    missing::{Missing, ModuleError},
    spans::{Span, Spans},
    symbols::{SymbolName, Symbols, functions_named, read_name},
    unwind,
};

/// A parsed ELF file. All addresses are svmas: the addresses the linker stated in the file.
///
/// Only the headers are read by [`Module::parse`]; symbol tables, call frame information and debug info are
/// read when a question first needs them, and kept. Any thread may ask; nothing is locked
/// but the first reading of each part.
pub struct Module {
    image: Arc<Image>,
    finder: Box<dyn DebugFiles + Send + Sync>,
    separate: OnceLock<Result<Arc<Image>, Missing>>,
    symbols: OnceLock<Symbols>,
    /// Demangled names of the functions, then of the labels, in the order of the tables.
    names: OnceLock<Box<[OnceLock<Arc<str>>]>>,
    unwind: OnceLock<Spans<()>>,
    /// Where the call frame information of each address is.
    frames: OnceLock<unwind::Entries>,
    debug_info: OnceLock<Result<DebugInfo, Missing>>,
}

/// A piece of code that is entered at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Name in the symbol table, not demangled. Absent when the bounds come from call frame information.
    pub symbol: Option<String>,
    /// Where the bounds are from.
    pub bounds: Bounds,
}

/// Where the bounds of a [`Function`] are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// A symbol with a size.
    Symbol,
    /// An entry of `.eh_frame`: a function, or one part of a split function.
    UnwindEntry,
    /// A symbol without a size: the end is where the next symbol starts.
    Label,
}

impl Module {
    /// Reads the headers of an ELF file. `debug` is asked for a separate debug file when one is needed.
    pub fn parse(
        bytes: Bytes,
        debug: Box<dyn DebugFiles + Send + Sync>,
    ) -> Result<Module, ModuleError> {
        Ok(Module {
            image: Arc::new(Image::parse(bytes)?),
            finder: debug,
            separate: OnceLock::new(),
            symbols: OnceLock::new(),
            names: OnceLock::new(),
            unwind: OnceLock::new(),
            frames: OnceLock::new(),
            debug_info: OnceLock::new(),
        })
    }

    /// The identity the linker gave to the build.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.image.build_id()
    }

    /// The svma of the byte at an offset of the file: `svma_of_offset(addr - mapping.start + mapping.file_offset)`.
    ///
    /// Works for file mappings, the start of `.bss` in the last page included. The rest of `.bss` is mapped
    /// anonymously: see [`Module::load_bias`].
    pub fn svma_of_offset(&self, file_offset: u64) -> Option<u64> {
        self.image.svma_of_offset(file_offset)
    }

    /// What to subtract (wrapping) from a run-time address to get the svma, from one mapping of the file.
    ///
    /// Give an executable mapping: two data segments may share a page of the file, and then its offset
    /// does not tell them apart.
    pub fn load_bias(&self, mapping_start: u64, file_offset: u64) -> Option<u64> {
        self.image.load_bias(mapping_start, file_offset)
    }

    /// The offset in the file of the byte at an address; `None` where the file has none (`.bss`).
    pub fn offset_of_svma(&self, svma: u64) -> Option<u64> {
        self.image.offset_of_svma(svma)
    }

    /// Where functions of these names start, by the file's own symbol tables; `None` for a name that is not
    /// defined there. Names are compared as they are in the file, not demangled.
    pub fn functions_named(&self, names: &[&str]) -> Vec<Option<u64>> {
        functions_named(&self.image, names)
    }

    /// How to get from a function that is at this address to its caller; `None` without call frame information.
    /// Ask for a return address minus one: a call may be a function's last instruction.
    pub fn frame_row(&self, svma: u64) -> Option<unwind::FrameRow> {
        let entries = self.frames.get_or_init(|| unwind::entries(&self.image));
        unwind::frame_row(&self.image, entries, svma)
    }

    /// The svmas from the first to the last loaded byte, `.bss` included.
    pub fn memory(&self) -> std::ops::Range<u64> {
        self.image.memory()
    }

    /// Name of the section at an address and the offset in it: what is left to say of a stripped file.
    pub fn section(&self, svma: u64) -> Option<(&str, u64)> {
        let section = self
            .image
            .sections
            .iter()
            .find(|section| section.covers(svma))?;
        Some((&section.name, svma - section.address))
    }

    /// The function that holds an address: by symbol, else by call frame information, else by a label.
    pub fn function(&self, svma: u64) -> Option<Function> {
        let symbols = self.symbols();
        if let Some(span) = symbols.functions.covering(svma).next() {
            return Some(self.named(&span, Bounds::Symbol));
        }
        if let Some(span) = self.unwind_bounds().covering(svma).next() {
            return Some(Function {
                start: span.start,
                end: span.end,
                symbol: None,
                bounds: Bounds::UnwindEntry,
            });
        }
        symbols
            .labels
            .covering(svma)
            .next()
            .map(|span| self.named(&span, Bounds::Label))
    }

    /// The bytes of the file for `start..end`; absent unless all of them are in the file.
    pub fn code(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.image.bytes_at(start, end)
    }

    /// Function, inlined calls and lines of the instruction at an address. The address is taken as it is: for
    /// a return address ask for the byte before it.
    pub fn frames(&self, svma: u64) -> Code {
        let (symbol, offset_in_symbol) = match self.code_symbol(svma) {
            Ok((span, demangled)) => {
                let name =
                    demangled.get_or_init(|| Arc::from(demangle(&self.symbol_text(span.value))));
                (Ok(Arc::clone(name)), Some(svma - span.start))
            }
            Err(missing) => (Err(missing), None),
        };
        let (frames, missing) = match self.debug_info().and_then(|info| info.frames(svma)) {
            Ok(frames) => (frames, None),
            Err(missing) => (Vec::new(), Some(missing)),
        };
        Code {
            symbol,
            offset_in_symbol,
            frames,
            missing,
        }
    }

    /// The source language of the code at an address: from debug info, else from the symbol's mangling.
    pub fn language(&self, svma: u64) -> Option<Language> {
        if let Some(language) = self.debug_info().ok().and_then(|info| info.language(svma)) {
            return Some(language);
        }
        Language::of_symbol(&self.symbol_text(self.code_symbol(svma).ok()?.0.value))
    }

    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// The symbol of a piece of code, and where its demangled name is kept.
    fn code_symbol(&self, svma: u64) -> Result<(Span<SymbolName>, &OnceLock<Arc<str>>), Missing> {
        let symbols = self.symbols();
        let names = self.names.get_or_init(|| {
            let count = symbols.functions.len() + symbols.labels.len();
            std::iter::repeat_with(OnceLock::new).take(count).collect()
        });
        let tables = [
            (&symbols.functions, 0),
            (&symbols.labels, symbols.functions.len()),
        ];
        tables
            .into_iter()
            .find_map(|(spans, before)| {
                let index = spans.indexes_covering(svma).next()?;
                Some((spans.get(index)?, names.get(before + index)?))
            })
            .ok_or(symbols.missing())
    }

    /// A function or label by its symbol.
    fn named(&self, span: &Span<SymbolName>, bounds: Bounds) -> Function {
        let symbol = Some(self.symbol_text(span.value));
        Function {
            start: span.start,
            end: span.end,
            symbol,
            bounds,
        }
    }

    pub(crate) fn symbol_text(&self, name: SymbolName) -> String {
        let separate = self.separate.get().and_then(|found| found.as_ref().ok());
        let text = read_name(&self.image, separate.map(|image| &**image), name);
        String::from_utf8_lossy(text).into_owned()
    }

    /// The symbol tables, read on first use.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            // A file with its own table needs no other one.
            let own = self.image.section_named(".symtab").is_some();
            let separate = if own { None } else { self.separate().ok() };
            Symbols::read(&self.image, separate.map(|image| &**image))
        })
    }

    /// The call frame information, read on first use.
    fn unwind_bounds(&self) -> &Spans<()> {
        self.unwind.get_or_init(|| unwind::read_bounds(&self.image))
    }

    /// The debug info, found and its units read on first use.
    pub(crate) fn debug_info(&self) -> Result<&DebugInfo, Missing> {
        let read = || {
            let has_units = |image: &Image| {
                let names = [".debug_info", ".zdebug_info"];
                names
                    .iter()
                    .any(|name| !image.section_data(name).is_empty())
            };
            let holder = if has_units(&self.image) {
                Arc::clone(&self.image)
            } else {
                Arc::clone(self.separate()?)
            };
            if !has_units(&holder) {
                return Err(Missing::NoDebugInfo);
            }
            DebugInfo::read(holder, Arc::clone(&self.image))
        };
        self.debug_info
            .get_or_init(read)
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// The separate debug file, found as debuggers find it: by build-id, then by `.gnu_debuglink`.
    fn separate(&self) -> Result<&Arc<Image>, Missing> {
        self.separate
            .get_or_init(|| self.find_separate())
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// Asks for the file and checks that it is of this build.
    fn find_separate(&self) -> Result<Arc<Image>, Missing> {
        let mut refused = Missing::NoDebugInfo;
        if let Some(id) = self.build_id()
            && let Some(bytes) = self.finder.find(&DebugRequest::BuildId(id))
        {
            match Image::parse(bytes) {
                Ok(image) if image.build_id() == Some(id) => return Ok(Arc::new(image)),
                Ok(_) => refused = Missing::BuildIdMismatch,
                Err(_) => refused = Missing::Malformed,
            }
        }
        if let Some((file_name, expected)) = debug_link(self.image.section_data(".gnu_debuglink"))
            && let Some(bytes) = self.finder.find(&DebugRequest::DebugLink {
                file_name,
                crc32: expected,
            })
        {
            let actual = crc32((*bytes).as_ref());
            match Image::parse(bytes) {
                Ok(image) => {
                    // The build-id is the stronger proof when both files have one.
                    match (self.build_id(), image.build_id()) {
                        (Some(own), Some(other)) if own != other => {
                            refused = Missing::BuildIdMismatch;
                        }
                        _ if actual != expected => refused = Missing::ChecksumMismatch,
                        _ => return Ok(Arc::new(image)),
                    }
                }
                Err(_) => refused = Missing::Malformed,
            }
        }
        Err(refused)
    }
}

/// `.gnu_debuglink`: a file name, zero bytes up to the next multiple of four, a checksum.
fn debug_link(section: &[u8]) -> Option<(&str, u32)> {
    let name = section.split(|&byte| byte == 0).next()?;
    let at = (name.len() + 1).next_multiple_of(4);
    let checksum = section.get(at..)?.first_chunk::<4>()?;
    let name = std::str::from_utf8(name).ok()?;
    // A name is looked for in certain directories; one with directories of its own could lead elsewhere.
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    plain.then(|| (name, u32::from_le_bytes(*checksum)))
}

#[cfg(test)]
mod tests {
    use super::debug_link;

    #[test]
    fn a_debug_link_is_a_plain_file_name_and_a_checksum() {
        assert_eq!(
            debug_link(b"a.debug\0\x04\x03\x02\x01"),
            Some(("a.debug", 0x0102_0304))
        );
        assert_eq!(
            debug_link(b"ab.debug\0\0\0\0\x04\x03\x02\x01"),
            Some(("ab.debug", 0x0102_0304))
        );
        for bad in [
            &b""[..],
            b"a.debug",
            b"../a\0\0\0\0\0\0\0",
            b"..\0\0\0\0\0\0",
            b"\0\0\0\0\0\0\0\0",
        ] {
            assert_eq!(debug_link(bad), None, "{bad:?}");
        }
    }
}
