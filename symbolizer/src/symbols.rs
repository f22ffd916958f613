//! The ELF symbol tables of a module, sorted by address. Names stay in the file until they are asked for.

use std::collections::HashMap;

use object::{LittleEndian, elf, read::elf::Sym};

use crate::{
    image::{Image, Section},
    missing::Missing,
    spans::{Span, Spans},
};

const ENDIAN: LittleEndian = LittleEndian;
/// Longest symbol name that is read.
const LONGEST_NAME: usize = 1 << 16;
/// Bytes of a name that are compared when two symbols name one address.
const COMPARED: usize = 256;

/// Which file a symbol's name is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The module's own file.
    Own,
    /// Its separate debug file.
    Separate,
    /// The small file in `.gnu_debugdata`.
    Mini,
}

/// The files that may have symbol tables.
#[derive(Clone, Copy)]
pub(crate) struct SymbolFiles<'a> {
    pub(crate) own: &'a Image,
    pub(crate) separate: Option<&'a Image>,
    pub(crate) mini: Option<&'a Image>,
}

/// A symbol's name, by its place in a string table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolName {
    origin: Origin,
    /// Section index of the string table.
    strings: u32,
    offset: u32,
}

/// Bytes of a symbol once it is read, with the place for its demangled name.
const MOST_OF_A_SYMBOL: usize = 72;

/// All symbols of a module, by kind.
pub(crate) struct Symbols {
    /// Functions with a size.
    pub(crate) functions: Spans<SymbolName>,
    /// Code symbols without a size (written in assembly): up to the next symbol or the end of the section.
    pub(crate) labels: Spans<SymbolName>,
    /// Variables.
    pub(crate) objects: Spans<SymbolName>,
    /// Thread-local variables, by their offset in the thread-local segment.
    pub(crate) thread_locals: Spans<SymbolName>,
    /// Whether `.symtab` was there. Without it only the exported symbols are left.
    pub(crate) complete: bool,
    /// They were not read, for want of memory.
    left_out: bool,
}

/// A symbol among others for the same address.
#[derive(Clone, Copy)]
struct Candidate {
    span: Span<SymbolName>,
    /// Global before weak before local.
    binding: u8,
    /// Place in the table.
    index: u32,
}

impl Symbols {
    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let tables = [
            &self.functions,
            &self.labels,
            &self.objects,
            &self.thread_locals,
        ];
        tables.into_iter().map(Spans::bytes).sum()
    }

    /// None, where there is no room for them.
    pub(crate) fn left_out() -> Symbols {
        Symbols {
            functions: Spans::default(),
            labels: Spans::default(),
            objects: Spans::default(),
            thread_locals: Spans::default(),
            complete: false,
            left_out: true,
        }
    }

    /// Bytes that the tables of the files take at most once they are read.
    pub(crate) fn expected_bytes(files: &SymbolFiles<'_>) -> usize {
        let images = [Some(files.own), files.separate, files.mini];
        let tables = images
            .into_iter()
            .flatten()
            .flat_map(|image| &image.sections);
        let tables =
            tables.filter(|section| [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&section.kind));
        let symbols =
            tables.map(|section| section.size / size_of::<elf::Sym64<LittleEndian>>() as u64);
        let symbols = usize::try_from(symbols.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
        symbols.saturating_mul(MOST_OF_A_SYMBOL)
    }

    /// Reads the tables. `.symtab` of the file itself holds everything; where it was stripped, `.dynsym` and
    /// the debug file's `.symtab` together are all there is. `.gnu_debugdata` has the functions only.
    pub(crate) fn read(files: &SymbolFiles<'_>) -> Symbols {
        let mut kinds = Kinds::default();
        let mut complete = kinds.read_table(files.own, elf::SHT_SYMTAB, Origin::Own);
        if !complete {
            kinds.read_table(files.own, elf::SHT_DYNSYM, Origin::Own);
            if let Some(separate) = files.separate {
                complete = kinds.read_table(separate, elf::SHT_SYMTAB, Origin::Separate);
            }
            if let (false, Some(mini)) = (complete, files.mini) {
                kinds.read_table(mini, elf::SHT_SYMTAB, Origin::Mini);
            }
        }
        let names = |name: SymbolName| read_name(files, name);
        let functions = best_per_start(kinds.functions, names);
        let labels = best_per_start(kinds.labels, names);
        Symbols {
            labels: Spans::new(cut_at_next(labels, &functions)),
            functions: Spans::new(functions),
            objects: Spans::new(best_per_start(kinds.objects, names)),
            thread_locals: Spans::new(best_per_start(kinds.thread_locals, names)),
            complete,
            left_out: false,
        }
    }

    /// Why an address has no symbol.
    pub(crate) fn missing(&self) -> Missing {
        if self.left_out {
            Missing::NoMemory
        } else if self.complete {
            Missing::NotCovered
        } else {
            Missing::NoSymbols
        }
    }
}

/// Where functions of these names start, by `.dynsym` and `.symtab`; a global definition before a local one.
pub(crate) fn functions_named(image: &Image, names: &[&str]) -> Vec<Option<u64>> {
    let mut found: Vec<Option<(bool, u64)>> = vec![None; names.len()];
    let asked = || names.iter().map(|name| name.as_bytes());
    let places: HashMap<&[u8], usize> = asked().zip(0..).collect();
    let kinds = [elf::SHT_DYNSYM, elf::SHT_SYMTAB];
    for table in image.sections.iter().filter(|s| kinds.contains(&s.kind)) {
        let symbols: &[elf::Sym64<LittleEndian>] =
            object::pod::slice_from_all_bytes(image.content(table)).unwrap_or(&[]);
        for symbol in symbols {
            let defined = symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF;
            if symbol.st_type() != elf::STT_FUNC || !defined {
                continue;
            }
            let name = SymbolName {
                origin: Origin::Own,
                strings: table.link as u32,
                offset: symbol.st_name(ENDIAN),
            };
            let text = name_in(image, name);
            let Some(&at) = places.get(text) else {
                continue;
            };
            let global = symbol.st_bind() != elf::STB_LOCAL;
            if found[at].is_none_or(|(known, _)| global && !known) {
                found[at] = Some((global, symbol.st_value(ENDIAN)));
            }
        }
    }
    let start = |found: Option<(bool, u64)>| found.map(|(_, start)| start);
    found.into_iter().map(start).collect()
}

/// The bytes of a name; empty when the file does not hold it.
pub(crate) fn read_name<'a>(files: &SymbolFiles<'a>, name: SymbolName) -> &'a [u8] {
    let image = match name.origin {
        Origin::Own => Some(files.own),
        Origin::Separate => files.separate,
        Origin::Mini => files.mini,
    };
    image.map_or(&[], |image| name_in(image, name))
}

/// As [`read_name`], in the file that has it.
fn name_in(image: &Image, name: SymbolName) -> &[u8] {
    let text = Some(image)
        .and_then(|image| Some(image.content(image.sections.get(name.strings as usize)?)))
        .and_then(|strings| strings.get(name.offset as usize..))
        .unwrap_or(&[]);
    let text = &text[..text.len().min(LONGEST_NAME)];
    text.split(|&byte| byte == 0).next().unwrap_or(&[])
}

/// The symbols of the tables read so far, by kind.
#[derive(Default)]
struct Kinds {
    functions: Vec<Candidate>,
    labels: Vec<Candidate>,
    objects: Vec<Candidate>,
    thread_locals: Vec<Candidate>,
}

impl Kinds {
    /// Whether there is such a table.
    fn read_table(&mut self, image: &Image, kind: elf::SectionType, origin: Origin) -> bool {
        let Some(table) = image.sections.iter().find(|section| section.kind == kind) else {
            return false;
        };
        let symbols: &[elf::Sym64<LittleEndian>] =
            object::pod::slice_from_all_bytes(image.content(table)).unwrap_or(&[]);
        let allocated = |(index, section): (usize, &Section)| {
            section.is_allocated().then(|| Span {
                start: section.address,
                end: section.address.saturating_add(section.size),
                value: index as u32,
            })
        };
        let sections = image.sections.iter().enumerate().filter_map(allocated);
        let sections = Spans::new(sections.collect());
        // Most symbols are functions; what is not used of this is never touched.
        self.functions.reserve(symbols.len());
        for (index, symbol) in (0..).zip(symbols) {
            let name = SymbolName {
                origin,
                strings: table.link as u32,
                offset: symbol.st_name(ENDIAN),
            };
            self.sort_in(image, &sections, (index, symbol), name);
        }
        !symbols.is_empty()
    }

    /// Adds a symbol to the kind it belongs to; most belong to none.
    fn sort_in(
        &mut self,
        image: &Image,
        sections: &Spans<u32>,
        (index, symbol): (u32, &elf::Sym64<LittleEndian>),
        name: SymbolName,
    ) {
        let section = symbol.st_shndx(ENDIAN);
        if section == elf::SHN_UNDEF || section == elf::SHN_ABS || name.offset == 0 {
            return;
        }
        let start = symbol.st_value(ENDIAN);
        let size = symbol.st_size(ENDIAN);
        let binding = match symbol.st_bind() {
            elf::STB_WEAK => 1,
            elf::STB_LOCAL => 2,
            _ => 0,
        };
        let candidate = |end| Candidate {
            span: Span {
                start,
                end,
                value: name,
            },
            binding,
            index,
        };
        let sized = candidate(start.saturating_add(size));
        match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE => {
                let holder = sections.covering(start).next();
                let holder = holder.and_then(|section| image.sections.get(section.value as usize));
                let Some(holder) = holder else { return };
                if !holder.flags.contains(elf::SHF_EXECINSTR) {
                    // Linker-made marks such as `__bss_start` name no object; a sized one written in
                    // assembly does.
                    if size > 0 {
                        self.objects.push(sized);
                    }
                } else if size > 0 {
                    self.functions.push(sized);
                } else if !is_mark(image, name) {
                    self.labels
                        .push(candidate(holder.address.saturating_add(holder.size)));
                }
            }
            elf::STT_OBJECT | elf::STT_COMMON => self.objects.push(sized),
            elf::STT_TLS => self.thread_locals.push(sized),
            _ => {}
        }
    }
}

/// `$x` and `$d` of the Arm ELF ABI separate code from data; `.L` names are the assembler's own.
fn is_mark(image: &Image, name: SymbolName) -> bool {
    let text = name_in(image, name);
    text.starts_with(b"$") || text.starts_with(b".L")
}

/// Keeps one symbol per start address and end: the name a reader would expect.
fn best_per_start<'a>(
    mut candidates: Vec<Candidate>,
    name: impl Fn(SymbolName) -> &'a [u8],
) -> Vec<Span<SymbolName>> {
    candidates.sort_unstable_by_key(|candidate| {
        (candidate.span.start, candidate.span.end, candidate.index)
    });
    let mut best: Vec<Span<SymbolName>> = Vec::with_capacity(candidates.len());
    for group in
        candidates.chunk_by(|a, b| (a.span.start, a.span.end) == (b.span.start, b.span.end))
    {
        if let [only] = group {
            best.push(only.span);
            continue;
        }
        // Lower is the better name: by binding, then plain before `__internal`, then short, then first in the table.
        let rank = |candidate: &&Candidate| {
            let text = name(candidate.span.value);
            let text = &text[..text.len().min(COMPARED)];
            let underscores = text.iter().take_while(|&&byte| byte == b'_').count();
            (candidate.binding, underscores, text.len())
        };
        best.extend(group.iter().min_by_key(rank).map(|found| found.span));
    }
    best
}

/// Ends each label where the next label or function starts.
fn cut_at_next(
    mut labels: Vec<Span<SymbolName>>,
    functions: &[Span<SymbolName>],
) -> Vec<Span<SymbolName>> {
    labels.dedup_by_key(|label| label.start);
    for index in 0..labels.len() {
        let start = labels[index].start;
        let function = functions.partition_point(|function| function.start <= start);
        let next = [labels.get(index + 1), functions.get(function)];
        let next = next.into_iter().flatten().map(|next| next.start).min();
        let label = &mut labels[index];
        label.end = label.end.min(next.unwrap_or(u64::MAX));
    }
    labels
}
