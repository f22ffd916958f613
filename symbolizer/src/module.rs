//! A mapped ELF file and everything that can be asked about it.

use std::sync::{Arc, OnceLock};

use crate::{
    Code, Language,
    access::AccessCache,
    allowance::Allowance,
    debug_files::{Bytes, DebugFiles},
    demangle,
    dwarf::{DebugInfo, Finder, SourceFile},
    image::Image,
    kept::Memory,
    missing::{Missing, ModuleError},
    spans::Span,
    symbols::{SymbolName, Symbols, functions_named, read_name},
    unwind::Unwind,
};

/// A parsed ELF file. All addresses are svmas: the addresses the linker stated in the file.
///
/// Only the headers are read by [`Module::parse`]; symbol tables, call frame information and debug info are
/// read when a question first needs them, and kept. Any thread may ask; nothing is locked
/// but the first reading of each part.
pub struct Module {
    image: Arc<Image>,
    pub(crate) finder: Finder,
    pub(crate) separate: OnceLock<Result<Arc<Image>, Missing>>,
    pub(crate) mini: OnceLock<Option<Arc<Image>>>,
    symbols: OnceLock<Symbols>,
    /// Demangled names of the functions, then of the labels, in the order of the tables.
    names: OnceLock<Box<[OnceLock<Arc<str>>]>>,
    unwind: Unwind,
    debug_info: OnceLock<Result<DebugInfo, Missing>>,
    accesses: AccessCache,
    memory: Arc<Memory>,
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
        Module::parse_within(bytes, debug, &Allowance::default())
    }

    /// The same, of many modules that share a bound on memory.
    pub fn parse_within(
        bytes: Bytes,
        debug: Box<dyn DebugFiles + Send + Sync>,
        budget: &Allowance,
    ) -> Result<Module, ModuleError> {
        Module::new(bytes, Arc::from(debug), budget)
    }

    /// The module with nothing read of it yet: as large as when it was parsed. Answers are the same.
    pub fn afresh(&self) -> Result<Module, ModuleError> {
        let bytes = Arc::clone(self.image.bytes());
        Module::new(bytes, Arc::clone(&self.finder), self.memory.all())
    }

    fn new(bytes: Bytes, finder: Finder, budget: &Allowance) -> Result<Module, ModuleError> {
        let memory = Arc::new(Memory::within(budget));
        Ok(Module {
            image: Arc::new(Image::parse(bytes)?.within(&memory)),
            finder,
            separate: OnceLock::new(),
            mini: OnceLock::new(),
            symbols: OnceLock::new(),
            names: OnceLock::new(),
            unwind: Unwind::default(),
            debug_info: OnceLock::new(),
            accesses: AccessCache::default(),
            memory,
        })
    }

    /// Bounds what is kept of the functions, lines and scopes that were decoded for questions about code, bytes. What
    /// was longest unused is dropped, and decoded again when asked for: answers stay the same, and take longer. The
    /// tables of one address are in memory whatever the limit. Without a call it is 512 MiB.
    pub fn set_memory_limit(&self, bytes: usize) {
        self.memory.set_limit(bytes);
    }

    /// Bytes held by what [`Module::set_memory_limit`] bounds.
    pub fn decoded_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Bytes held, as far as they are accounted for: that, names, symbols and sections that were decompressed.
    pub fn held_bytes(&self) -> usize {
        self.memory.held_bytes()
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

    /// The svmas from the first to the last loaded byte, `.bss` included.
    pub fn memory(&self) -> std::ops::Range<u64> {
        self.image.memory()
    }

    /// The svmas of the pieces that hold variables which change, `.bss` included.
    pub fn writable(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        self.image.writable()
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

    /// The svmas of a section that is loaded.
    pub fn section_range(&self, name: &str) -> Option<std::ops::Range<u64>> {
        let section = self.image.section_named(name)?;
        let end = section.address.checked_add(section.size)?;
        section.is_allocated().then_some(section.address..end)
    }

    /// The function that holds an address: by symbol, else by call frame information, else by a label.
    pub fn function(&self, svma: u64) -> Option<Function> {
        let symbols = self.symbols();
        if let Some(span) = symbols.functions.covering(svma).next() {
            return Some(self.named(&span, Bounds::Symbol));
        }
        if let Some(span) = self.unwind.bounds(&self.image).covering(svma).next() {
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

    /// Whether its code is of x86-64: `e_machine` of the ELF header (gABI, figure 4-3).
    pub fn is_x86_64(&self) -> bool {
        self.image.data().get(18..20) == Some(&object::elf::EM_X86_64.0.to_le_bytes()[..])
    }

    /// The bytes of the file for `start..end`; absent unless all of them are in the file.
    pub fn code(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.image.bytes_at(start, end)
    }

    /// Function, inlined calls and lines of the instruction at an address. The address is taken as it is: for
    /// a return address ask for the byte before it.
    pub fn frames(&self, svma: u64) -> Code {
        let (symbol, offset_in_symbol) = match self.code_symbol(svma) {
            Ok((span, kept)) => {
                let name = kept.get().cloned().unwrap_or_else(|| {
                    let name: Arc<str> = Arc::from(demangle(&self.symbol_text(span.value)));
                    if self.memory.takes_name(name.len() + 16) {
                        // Another thread may have been faster, with the same name.
                        let _ = kept.set(Arc::clone(&name));
                    }
                    name
                });
                (Ok(name), Some(svma - span.start))
            }
            Err(missing) => (Err(missing), None),
        };
        let (frames, missing) = match self.debug_info() {
            Ok(info) => info.frames(svma),
            Err(missing) => (Vec::new(), Some(missing)),
        };
        let missing = missing.map(|missing| match &symbol {
            Ok(_) => missing.of_symbol(),
            Err(_) => missing,
        });
        Code {
            symbol,
            offset_in_symbol,
            frames,
            missing,
        }
    }

    /// The source files of the module's line tables, each once; empty without debug info.
    pub fn source_files(&self) -> Vec<SourceFile> {
        (self.debug_info()).map_or_else(|_| Vec::new(), DebugInfo::source_files)
    }

    /// The source language of the code at an address: from debug info, else from the symbol's mangling.
    pub fn language(&self, svma: u64) -> Option<Language> {
        if let Some(language) = self.debug_info().ok().and_then(|info| info.language(svma)) {
            return Some(language);
        }
        Language::of_symbol(&self.symbol_text(self.code_symbol(svma).ok()?.0.value))
    }

    pub(crate) fn accesses(&self) -> &AccessCache {
        &self.accesses
    }

    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The symbol of a piece of code, and where its demangled name is kept.
    fn code_symbol(&self, svma: u64) -> Result<(Span<SymbolName>, &OnceLock<Arc<str>>), Missing> {
        let symbols = self.symbols();
        let names = self.names.get_or_init(|| {
            let count = symbols.functions.len() + symbols.labels.len();
            self.memory
                .hold_fixed(count * size_of::<OnceLock<Arc<str>>>());
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
        let text = read_name(&self.symbol_files(), name);
        String::from_utf8_lossy(text).into_owned()
    }

    /// The symbol tables, read on first use.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            // A file with its own table needs no other one; the separate file's is complete.
            let has_table = |image: &Image| image.section_named(".symtab").is_some();
            if !has_table(&self.image) && !self.separate().is_ok_and(|image| has_table(image)) {
                self.mini();
            }
            let files = self.symbol_files();
            let expected = Symbols::expected_bytes(&files);
            if !self.memory.all().has_room(expected) {
                return Symbols::left_out();
            }
            let symbols = Symbols::read(&files);
            self.memory.hold_fixed(symbols.bytes());
            symbols
        })
    }

    pub(crate) fn unwind(&self) -> &Unwind {
        &self.unwind
    }

    /// The debug info, found and its units read on first use.
    pub(crate) fn debug_info(&self) -> Result<&DebugInfo, Missing> {
        let read = || {
            let is_too_large =
                |image: &Image| !self.memory.all().has_room(image.compressed_bytes());
            if is_too_large(&self.image) {
                return Err(Missing::NoMemory);
            }
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
            if is_too_large(&holder) {
                return Err(Missing::NoMemory);
            }
            if !has_units(&holder) {
                return Err(Missing::NoDebugInfo);
            }
            DebugInfo::read(
                holder,
                Arc::clone(&self.image),
                Arc::clone(&self.finder),
                Arc::clone(&self.memory),
            )
        };
        self.debug_info
            .get_or_init(read)
            .as_ref()
            .map_err(|missing| *missing)
    }
}
