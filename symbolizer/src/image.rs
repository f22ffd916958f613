//! One ELF file: its segments, sections and build-id. Knows nothing of symbols and DWARF.
//!
//! Only the headers are read at first; compressed sections are inflated when first asked for.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use object::{
    LittleEndian, elf,
    read::{
        CompressedData, CompressionFormat,
        elf::{CompressionHeader, FileHeader, NoteIterator, ProgramHeader, SectionHeader},
    },
};

use crate::{Bytes, kept::Memory, missing::ModuleError};

type Header = elf::FileHeader64<LittleEndian>;
const ENDIAN: LittleEndian = LittleEndian;

/// Section names longer than this are of no interest.
const LONGEST_NAME: usize = 64;
/// Page sizes of the supported machines; mappings are cut at the smallest of them.
const PAGE: u64 = 4096;
/// Debug sections shrink to a third or a fifth when compressed. A file that claims more than this is
/// refused instead of given memory.
const MOST_INFLATION: u64 = 64;

/// Loadable segments looked at. Linkers make about five, and every address is compared with all of them.
const MOST_SEGMENTS: usize = 256;

/// A loadable piece of the file (`PT_LOAD`), or the template of thread-local storage (`PT_TLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    pub(crate) address: u64,
    pub(crate) memory_size: u64,
    pub(crate) alignment: u64,
    pub(crate) executable: bool,
    pub(crate) writable: bool,
}

impl Segment {
    pub(crate) fn covers(&self, svma: u64) -> bool {
        // Not beyond the end of all addresses, where a hostile segment would go on at 0.
        let within = svma.checked_sub(self.address);
        within.is_some_and(|within| within < self.memory_size)
    }
}

pub(crate) struct Section {
    pub(crate) name: Box<str>,
    pub(crate) kind: elf::SectionType,
    pub(crate) flags: elf::SectionFlags,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) link: usize,
    stored: Range<usize>,
    inflated: OnceLock<Option<Inflated>>,
}

/// The content of a section that was decompressed.
struct Inflated {
    bytes: Box<[u8]>,
    memory: Arc<Memory>,
}

impl Drop for Inflated {
    fn drop(&mut self) {
        self.memory.release_fixed(self.bytes.len());
    }
}

impl Section {
    /// Whether the section has addresses in every process: thread-local ones have only offsets.
    pub(crate) fn is_allocated(&self) -> bool {
        self.flags.contains(elf::SHF_ALLOC) && !self.flags.contains(elf::SHF_TLS)
    }

    pub(crate) fn covers(&self, svma: u64) -> bool {
        let within = svma.checked_sub(self.address);
        self.is_allocated() && within.is_some_and(|within| within < self.size)
    }
}

/// A parsed ELF file.
pub(crate) struct Image {
    bytes: Bytes,
    pub(crate) segments: Vec<Segment>,
    pub(crate) thread_local: Option<Segment>,
    /// The search table for call frame information (`PT_GNU_EH_FRAME`), which the run-time unwinder uses.
    pub(crate) unwind_table: Option<Segment>,
    pub(crate) sections: Vec<Section>,
    build_id: Option<Range<usize>>,
    /// Where what is decompressed is accounted for.
    memory: Arc<Memory>,
}

impl Image {
    pub(crate) fn parse(bytes: Bytes) -> Result<Image, ModuleError> {
        let data: &[u8] = (*bytes).as_ref();
        check_ident(data)?;
        let header = Header::parse(data).map_err(malformed)?;
        let machine = header.e_machine(ENDIAN);
        if machine != elf::EM_X86_64 && machine != elf::EM_AARCH64 {
            return Err(ModuleError::Unsupported(format!("machine {}", machine.0)));
        }
        let mut segments = Vec::new();
        let mut thread_local = None;
        let mut unwind_table = None;
        let mut build_id = None;
        for program in header.program_headers(ENDIAN, data).map_err(malformed)? {
            let (offset, file_size) = program.file_range(ENDIAN);
            let segment = Segment {
                offset,
                file_size,
                address: program.p_vaddr(ENDIAN),
                memory_size: program.p_memsz(ENDIAN),
                alignment: program.p_align(ENDIAN),
                executable: program.p_flags(ENDIAN).contains(elf::PF_X),
                writable: program.p_flags(ENDIAN).contains(elf::PF_W),
            };
            match program.p_type(ENDIAN) {
                elf::PT_LOAD if segments.len() < MOST_SEGMENTS => segments.push(segment),
                elf::PT_TLS => thread_local = Some(segment),
                elf::PT_GNU_EH_FRAME => unwind_table = Some(segment),
                elf::PT_NOTE if build_id.is_none() => {
                    build_id = find_build_id(data, offset, file_size, program.p_align(ENDIAN));
                }
                _ => {}
            }
        }
        // A file whose section headers were cut off still has segments; a debug file's segments may be
        // hollow, but its sections are there.
        let sections = sections(header, data);
        if build_id.is_none() {
            build_id = sections
                .iter()
                .filter(|section| section.kind == elf::SHT_NOTE)
                .find_map(|section| {
                    let (offset, size) = (section.stored.start as u64, section.stored.len() as u64);
                    find_build_id(data, offset, size, 4)
                });
        }
        Ok(Image {
            bytes,
            segments,
            thread_local,
            unwind_table,
            sections,
            build_id,
            memory: Arc::default(),
        })
    }

    /// The same, which accounts for what it decompresses there.
    pub(crate) fn within(self, memory: &Arc<Memory>) -> Image {
        let memory = Arc::clone(memory);
        Image { memory, ..self }
    }

    /// Where it accounts for what it decompresses.
    pub(crate) fn account(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The bytes themselves.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes that all compressed sections of debug info and the like would take, as far as they are not in memory yet.
    pub(crate) fn compressed_bytes(&self) -> usize {
        let left = self.sections.iter().filter_map(|section| {
            let is_left = section.inflated.get().is_none();
            is_left.then(|| self.compressed(section))?
        });
        let sizes = left.filter_map(|data| usize::try_from(data.uncompressed_size).ok());
        sizes.fold(0, usize::saturating_add)
    }

    /// The whole file.
    pub(crate) fn data(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// The identity the linker gave to the build.
    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.data().get(self.build_id.clone()?)
    }

    /// The first section of this name that has content, inflated. Empty when absent or damaged.
    pub(crate) fn section_data(&self, name: &str) -> &[u8] {
        self.section_named(name)
            .map_or(&[], |section| self.content(section))
    }

    pub(crate) fn section_named(&self, name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| &*section.name == name && section.kind != elf::SHT_NOBITS)
    }

    /// The bytes of a section, inflated.
    pub(crate) fn content<'a>(&'a self, section: &'a Section) -> &'a [u8] {
        if !is_compressed(section) {
            return self.stored(section);
        }
        let inflated = section.inflated.get_or_init(|| {
            let compressed = self.compressed(section)?;
            let size = usize::try_from(compressed.uncompressed_size).ok()?;
            if !self.memory.all().has_room(size) {
                return None;
            }
            let bytes = compressed
                .decompress()
                .ok()?
                .into_owned()
                .into_boxed_slice();
            self.memory.hold_fixed(bytes.len());
            let memory = Arc::clone(&self.memory);
            Some(Inflated { bytes, memory })
        });
        inflated.as_ref().map_or(&[], |inflated| &inflated.bytes)
    }

    fn stored<'a>(&'a self, section: &Section) -> &'a [u8] {
        self.data().get(section.stored.clone()).unwrap_or(&[])
    }

    /// A compressed section that does not claim more than compression gives.
    fn compressed<'a>(&'a self, section: &Section) -> Option<CompressedData<'a>> {
        let stored = self.stored(section);
        let compressed = if section.flags.contains(elf::SHF_COMPRESSED) {
            standard_compression(stored)?
        } else if is_compressed(section) {
            old_compression(stored)?
        } else {
            return None;
        };
        let most = (compressed.data.len() as u64).saturating_mul(MOST_INFLATION) + (1 << 16);
        (compressed.uncompressed_size <= most).then_some(compressed)
    }

    /// The address the linker gave to the byte at this file offset.
    ///
    /// Mappings are whole pages: the bytes around a segment in its first and last page are mapped
    /// with it, and the start of `.bss` lies there. A segment that really contains the offset wins.
    pub(crate) fn svma_of_offset(&self, offset: u64) -> Option<u64> {
        // `.data` and the read-only data before it often share a page of the file, mapped twice.
        let exact = |segment: &&Segment| offset.wrapping_sub(segment.offset) < segment.file_size;
        let in_its_last_page = |segment: &&Segment| {
            let past = offset.wrapping_sub(segment.offset);
            let mapped = segment
                .offset
                .checked_add(segment.file_size)
                .and_then(|end| end.checked_next_multiple_of(PAGE));
            segment.file_size > 0
                && mapped.is_some_and(|end| (segment.offset..end).contains(&offset))
                && past < segment.memory_size
        };
        let in_its_first_page = |segment: &&Segment| {
            segment.file_size > 0
                && (segment.offset & !(PAGE - 1)..segment.offset).contains(&offset)
        };
        let segment = self
            .segments
            .iter()
            .find(exact)
            .or_else(|| self.segments.iter().find(in_its_last_page))
            .or_else(|| self.segments.iter().find(in_its_first_page))?;
        Some(
            segment
                .address
                .wrapping_add(offset.wrapping_sub(segment.offset)),
        )
    }

    /// The file offset of the byte at an address, if the file holds it.
    pub(crate) fn offset_of_svma(&self, svma: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.covers(svma))?;
        let within = svma - segment.address;
        (within < segment.file_size).then(|| segment.offset.checked_add(within))?
    }

    /// Run-time address minus svma (wrapping), from a mapping that starts with any page of a segment.
    ///
    /// Segments share pages of the file where one ends and the next one starts. The kernel maps a
    /// segment from its first page, so that a page some segment starts with is most likely that one's.
    pub(crate) fn load_bias(&self, mapping_start: u64, file_offset: u64) -> Option<u64> {
        let first_page = |segment: &&Segment| segment.offset & !(PAGE - 1);
        let starts = |segment: &&Segment| first_page(segment) == file_offset;
        let holds = |segment: &&Segment| {
            let end = segment.offset.saturating_add(segment.file_size);
            (first_page(segment)..end).contains(&file_offset)
        };
        let code = || self.segments.iter().filter(|segment| segment.executable);
        let segment = code()
            .find(starts)
            .or_else(|| self.segments.iter().find(starts))
            .or_else(|| code().find(holds))
            .or_else(|| self.segments.iter().find(holds))?;
        let within = file_offset.wrapping_sub(segment.offset);
        Some(mapping_start.wrapping_sub(segment.address.wrapping_add(within)))
    }

    /// From the first to the last loaded byte.
    pub(crate) fn memory(&self) -> Range<u64> {
        let ends = |segment: &Segment| segment.address.saturating_add(segment.memory_size);
        let start = self
            .segments
            .iter()
            .map(|segment| segment.address)
            .min()
            .unwrap_or(0);
        start..self.segments.iter().map(ends).max().unwrap_or(0)
    }

    /// The loaded pieces that a program may write to.
    pub(crate) fn writable(&self) -> impl Iterator<Item = Range<u64>> {
        let writable = self.segments.iter().filter(|segment| segment.writable);
        writable.map(|segment| segment.address..segment.address.saturating_add(segment.memory_size))
    }

    /// Bytes of the file for the addresses `start..end`, if one segment holds them all.
    pub(crate) fn bytes_at(&self, start: u64, end: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|segment| segment.covers(start))?;
        let size = end.checked_sub(start)?;
        let within = start - segment.address;
        if within.checked_add(size)? > segment.file_size {
            return None;
        }
        let from = usize::try_from(segment.offset.checked_add(within)?).ok()?;
        self.data()
            .get(from..from.checked_add(usize::try_from(size).ok()?)?)
    }

    /// Bytes of the file from an address to the end of its segment.
    pub(crate) fn bytes_from(&self, start: u64) -> Option<&[u8]> {
        let segment = self.segments.iter().find(|segment| segment.covers(start))?;
        self.bytes_at(start, segment.address.checked_add(segment.file_size)?)
    }

    /// Whether code can be at this address.
    pub(crate) fn is_executable(&self, svma: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.executable && segment.covers(svma))
    }
}

fn is_compressed(section: &Section) -> bool {
    section.flags.contains(elf::SHF_COMPRESSED) || section.name.starts_with(".zdebug_")
}

/// The reader's own words say which header is wrong.
fn malformed(error: object::read::Error) -> ModuleError {
    ModuleError::Malformed(error.to_string())
}

/// Magic number, class and byte order, each refused with its own reason.
fn check_ident(data: &[u8]) -> Result<(), ModuleError> {
    let ident = data.get(..16).ok_or(ModuleError::NotElf)?;
    if ident[..4] != *b"\x7fELF" {
        return Err(ModuleError::NotElf);
    }
    if ident[4] != elf::ELFCLASS64.0 {
        return Err(ModuleError::Unsupported("not a 64-bit file".into()));
    }
    if ident[5] != elf::ELFDATA2LSB.0 {
        return Err(ModuleError::Unsupported("not little-endian".into()));
    }
    Ok(())
}

/// The section headers. A file without them, or with damaged ones, has no sections: its segments still serve.
fn sections(header: &Header, data: &[u8]) -> Vec<Section> {
    let Ok(headers) = header.section_headers(ENDIAN, data) else {
        return Vec::new();
    };
    let strings = header
        .section_strings(ENDIAN, data, headers)
        .unwrap_or_default();
    headers
        .iter()
        .map(|section| {
            let name = section.name(ENDIAN, strings).unwrap_or_default();
            let name = &name[..name.len().min(LONGEST_NAME)];
            let stored = section.file_range(ENDIAN).and_then(|(offset, size)| {
                let start = usize::try_from(offset).ok()?;
                Some(start..start.checked_add(usize::try_from(size).ok()?)?)
            });
            Section {
                name: String::from_utf8_lossy(name).into(),
                kind: section.sh_type(ENDIAN),
                flags: section.sh_flags(ENDIAN),
                address: section.sh_addr(ENDIAN),
                size: section.sh_size(ENDIAN),
                link: section.sh_link(ENDIAN) as usize,
                stored: stored.unwrap_or(0..0),
                inflated: OnceLock::new(),
            }
        })
        .collect()
}

/// The range of the descriptor of a `NT_GNU_BUILD_ID` note in some notes.
fn find_build_id(data: &[u8], offset: u64, size: u64, align: u64) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let notes = data.get(start..start.checked_add(usize::try_from(size).ok()?)?)?;
    let mut notes = NoteIterator::<Header>::new(ENDIAN, align, notes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(ENDIAN) == elf::NT_GNU_BUILD_ID {
            let id = note.desc();
            let start = id.as_ptr().addr() - data.as_ptr().addr();
            return (!id.is_empty()).then_some(start..start + id.len());
        }
    }
    None
}

/// `SHF_COMPRESSED`: a header says how (ELF gABI, "Section Compression").
fn standard_compression(stored: &[u8]) -> Option<CompressedData<'_>> {
    let (header, data) =
        object::pod::from_bytes::<elf::CompressionHeader64<LittleEndian>>(stored).ok()?;
    let format = match header.ch_type(ENDIAN) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    Some(CompressedData {
        format,
        data,
        uncompressed_size: header.ch_size(ENDIAN),
    })
}

/// `.zdebug_*` of older toolchains: "ZLIB", the size as eight big-endian bytes, a zlib stream.
fn old_compression(stored: &[u8]) -> Option<CompressedData<'_>> {
    let (size, data) = stored.strip_prefix(b"ZLIB")?.split_first_chunk::<8>()?;
    let uncompressed_size = u64::from_be_bytes(*size);
    Some(CompressedData {
        format: CompressionFormat::Zlib,
        data,
        uncompressed_size,
    })
}
