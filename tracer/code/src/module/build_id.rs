//! Which build an ELF file is, read from its notes alone: its program headers and no more are looked at.

use std::fs::File;

use object::{
    Endianness, FileKind, ReadCache,
    elf::{FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PT_NOTE},
    read::elf::{FileHeader, ProgramHeader as _},
};

use super::hex;

/// Notes that are read of a file; compilers and linkers write some hundred bytes.
const MOST_NOTE_BYTES: u64 = 64 << 10;
/// Program headers that are looked at; programs have about a dozen.
const MOST_SEGMENTS: usize = 256;

/// The build-id of a file, in hexadecimal, where it has a note of one.
pub(super) fn of_file(file: &File) -> Option<String> {
    let data = ReadCache::new(file);
    match FileKind::parse(&data).ok()? {
        FileKind::Elf64 => of_elf::<FileHeader64<Endianness>>(&data),
        FileKind::Elf32 => of_elf::<FileHeader32<Endianness>>(&data),
        _ => None,
    }
}

fn of_elf<Elf: FileHeader<Endian = Endianness>>(data: &ReadCache<&File>) -> Option<String> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let notes = segments
        .iter()
        .take(MOST_SEGMENTS)
        .filter(|segment| segment.p_type(endian) == PT_NOTE);
    for segment in notes {
        // Before it is read: the file may say anything, and be as long as it likes without taking any space.
        if segment.p_filesz(endian).into() > MOST_NOTE_BYTES {
            continue;
        }
        let Ok(Some(mut notes)) = segment.notes(endian, data) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Some(hex(note.desc()));
            }
        }
    }
    None
}
