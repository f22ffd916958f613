//! The contenders that are libraries, each asked as its documentation says.

use std::{hint::black_box, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use blazesym::symbolize::{
    Input, Symbolized, Symbolizer,
    source::{Elf, Source},
};

use crate::agreement::{Answer, Place};

/// Addresses given to blazesym in one call: it is made for many at once.
const AT_ONCE: usize = 1000;

/// A library with the file open, or not yet.
pub trait Library {
    /// Asks for the addresses and throws the answers away.
    fn ask(&mut self, addresses: &[u64]) -> Result<()>;
    /// The same answers, kept.
    fn answers(&mut self, addresses: &[u64]) -> Result<Vec<Answer>>;
}

/// Opens the file with the library of this name.
pub fn open(name: &str, file: &Path) -> Result<Box<dyn Library>> {
    Ok(match name {
        "symbolizer" => Box::new(Ours::open(file, None)?),
        "symbolizer-32M" => Box::new(Ours::open(file, Some(32 << 20))?),
        "addr2line" => Box::new(Addr2line::open(file, Names::Demangled)?),
        "addr2line-raw" => Box::new(Addr2line::open(file, Names::Raw)?),
        "blazesym" => Box::new(Blazesym::open(file)),
        other => bail!("no library is called {other}"),
    })
}

struct Mapped(memmap2::Mmap);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn map(file: &Path) -> Result<Mapped> {
    let file = std::fs::File::open(file).with_context(|| format!("opening {}", file.display()))?;
    // SAFETY: nobody writes the file while it is measured.
    Ok(Mapped(unsafe { memmap2::Mmap::map(&file) }?))
}

struct Ours(symbolizer::Module);

impl Ours {
    fn open(file: &Path, limit: Option<usize>) -> Result<Ours> {
        let bytes = Arc::new(map(file)?);
        let module = symbolizer::Module::parse(bytes, Box::new(symbolizer::NoDebugFiles))?;
        if let Some(limit) = limit {
            module.set_memory_limit(limit);
        }
        Ok(Ours(module))
    }
}

impl Library for Ours {
    fn ask(&mut self, addresses: &[u64]) -> Result<()> {
        for &address in addresses {
            black_box(self.0.frames(address));
        }
        Ok(())
    }

    fn answers(&mut self, addresses: &[u64]) -> Result<Vec<Answer>> {
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let place = |frame: &symbolizer::Frame| Place {
            function: text(&frame.function),
            file: text(&frame.file),
            line: frame.line.unwrap_or(0),
        };
        let answer = |&address| {
            let code = self.0.frames(address);
            // All others fall back to the symbol, too.
            if code.frames.is_empty() {
                let function = code.symbol.as_deref().unwrap_or_default().to_owned();
                return vec![Place {
                    function,
                    ..Place::default()
                }];
            }
            code.frames.iter().map(place).collect()
        };
        Ok(addresses.iter().map(answer).collect())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Names {
    /// As they are in the file: the least the crate can do.
    Raw,
    /// As all others give them.
    Demangled,
}

type Reader = gimli::EndianSlice<'static, gimli::LittleEndian>;

struct Addr2line {
    context: addr2line::Context<Reader>,
    names: Names,
}

impl Addr2line {
    fn open(file: &Path, names: Names) -> Result<Addr2line> {
        use object::{Object as _, ObjectSection as _};
        // The process does one thing and ends: what it reads may stay.
        let mapped: &'static Mapped = Box::leak(Box::new(map(file)?));
        let parsed = object::File::parse(&*mapped.0)?;
        let load = |id: gimli::SectionId| -> Result<Reader> {
            let data: &'static [u8] = match parsed.section_by_name(id.name()) {
                Some(section) => match section.uncompressed_data()? {
                    std::borrow::Cow::Borrowed(data) => data,
                    std::borrow::Cow::Owned(data) => Vec::leak(data),
                },
                None => &[],
            };
            Ok(Reader::new(data, gimli::LittleEndian))
        };
        let context = addr2line::Context::from_dwarf(gimli::Dwarf::load(load)?)?;
        Ok(Addr2line { context, names })
    }
}

impl Library for Addr2line {
    fn ask(&mut self, addresses: &[u64]) -> Result<()> {
        for &address in addresses {
            let mut frames = self.context.find_frames(address).skip_all_loads()?;
            while let Some(frame) = frames.next()? {
                if let Some(function) = &frame.function {
                    match self.names {
                        Names::Raw => {
                            black_box(function.raw_name()?);
                        }
                        Names::Demangled => {
                            black_box(function.demangle()?);
                        }
                    }
                }
                black_box(&frame.location);
            }
        }
        Ok(())
    }

    fn answers(&mut self, addresses: &[u64]) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for &address in addresses {
            let mut frames = self.context.find_frames(address).skip_all_loads()?;
            let mut answer = Vec::new();
            while let Some(frame) = frames.next()? {
                let location = frame.location.as_ref();
                let function = frame.function.as_ref();
                answer.push(Place {
                    function: function.map_or(Ok(String::new()), |function| {
                        function.demangle().map(Into::into)
                    })?,
                    file: location
                        .and_then(|location| location.file)
                        .unwrap_or_default()
                        .to_owned(),
                    line: location.and_then(|location| location.line).unwrap_or(0),
                });
            }
            answers.push(answer);
        }
        Ok(answers)
    }
}

struct Blazesym {
    symbolizer: Symbolizer,
    source: Source<'static>,
}

impl Blazesym {
    fn open(file: &Path) -> Blazesym {
        // Names, lines and inlined calls are on unless turned off; looking whether the file changed is not needed.
        Blazesym {
            symbolizer: Symbolizer::builder().enable_auto_reload(false).build(),
            source: Source::Elf(Elf::new(file)),
        }
    }
}

impl Library for Blazesym {
    fn ask(&mut self, addresses: &[u64]) -> Result<()> {
        for addresses in addresses.chunks(AT_ONCE) {
            black_box(
                self.symbolizer
                    .symbolize(&self.source, Input::VirtOffset(addresses))?,
            );
        }
        Ok(())
    }

    fn answers(&mut self, addresses: &[u64]) -> Result<Vec<Answer>> {
        let place = |name: &str, code: Option<&blazesym::symbolize::CodeInfo<'_>>| Place {
            function: name.to_owned(),
            file: code.map_or(String::new(), |code| {
                code.to_path().to_string_lossy().into_owned()
            }),
            line: code.and_then(|code| code.line).unwrap_or(0),
        };
        let found = self
            .symbolizer
            .symbolize(&self.source, Input::VirtOffset(addresses))?;
        let answer = |symbolized: &Symbolized<'_>| {
            let Symbolized::Sym(symbol) = symbolized else {
                return Vec::new();
            };
            let inlined = symbol.inlined.iter().rev();
            let mut answer: Answer = inlined
                .map(|call| place(&call.name, call.code_info.as_ref()))
                .collect();
            answer.push(place(&symbol.name, symbol.code_info.as_deref()));
            answer
        };
        Ok(found.iter().map(answer).collect())
    }
}
