//! What the dynamic linker puts into the global offset table.

use std::collections::HashMap;

use object::{LittleEndian, elf, read::elf::Sym};

use crate::image::Image;

const ENDIAN: LittleEndian = LittleEndian;
/// Entries that are kept.
const MOST_ENTRIES: usize = 1 << 20;

/// Words of the table that are known before the program runs, by svma.
pub(super) struct Linked(HashMap<u64, Word>);

/// What a word will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// An svma.
    Address(u64),
    /// A distance from the thread pointer.
    ThreadOffset(i64),
}

impl Linked {
    /// Reads the relocations (System V psABI x86-64, table 4.9) that lie in the table.
    pub(super) fn read(image: &Image) -> Linked {
        let mut words = HashMap::new();
        let tables: Vec<(u64, u64)> = image
            .sections
            .iter()
            .filter(|section| section.name.starts_with(".got"))
            .map(|section| (section.address, section.size))
            .collect();
        for section in &image.sections {
            if section.kind != elf::SHT_RELA {
                continue;
            }
            let symbols = image.sections.get(section.link);
            let symbols: &[elf::Sym64<LittleEndian>] = symbols
                .and_then(|symbols| object::pod::slice_from_all_bytes(image.content(symbols)).ok())
                .unwrap_or(&[]);
            let entries: &[elf::Rela64<LittleEndian>] =
                object::pod::slice_from_all_bytes(image.content(section)).unwrap_or(&[]);
            for entry in entries {
                let at = entry.r_offset.get(ENDIAN);
                let inside = |&(start, size): &(u64, u64)| at.wrapping_sub(start) < size;
                if words.len() >= MOST_ENTRIES || !tables.iter().any(inside) {
                    continue;
                }
                let info = entry.r_info.get(ENDIAN);
                let addend = entry.r_addend.get(ENDIAN);
                let symbol = symbols.get((info >> 32) as usize);
                let defined = symbol
                    .filter(|symbol| symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF && info >> 32 != 0);
                let value =
                    defined.map(|symbol| symbol.st_value(ENDIAN).wrapping_add_signed(addend));
                let word = match (info as u32, value) {
                    // R_X86_64_RELATIVE.
                    (8, _) => Some(Word::Address(addend as u64)),
                    // R_X86_64_64 and R_X86_64_GLOB_DAT.
                    (1 | 6, Some(value)) => Some(Word::Address(value)),
                    // R_X86_64_TPOFF64: without a symbol the addend is the offset in the segment.
                    (18, value) if value.is_some() || info >> 32 == 0 => {
                        let offset = value.unwrap_or(addend as u64) as i64;
                        segment_size(image)
                            .map(|size| Word::ThreadOffset(offset.wrapping_sub(size)))
                    }
                    _ => None,
                };
                words.extend(word.map(|word| (at, word)));
            }
        }
        Linked(words)
    }

    pub(super) fn word(&self, svma: u64) -> Option<Word> {
        self.0.get(&svma).copied()
    }
}

/// How far below the thread pointer the executable's thread-local segment starts (variant II of "ELF Handling For
/// Thread-Local Storage", section 3).
pub(super) fn segment_size(image: &Image) -> Option<i64> {
    let segment = image.thread_local?;
    let alignment = segment.alignment.max(1);
    // The segment's own misalignment is kept.
    let size = segment
        .memory_size
        .checked_add(segment.address % alignment)?
        .checked_next_multiple_of(alignment)?;
    i64::try_from(size - segment.address % alignment).ok()
}
