//! ELF files made of the contents of their sections, so that a fuzzer changes contents and not offsets.
//!
//! An input is a table of 16-bit lengths, one for each of [`NAMES`], and then the contents end to end. Whatever the
//! input, it is some file: lengths are cut at what is there.

/// The sections, and where the first ones are loaded.
pub const NAMES: [&str; 16] = [
    ".text",
    ".data",
    ".eh_frame",
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_loc",
    ".debug_loclists",
    ".debug_addr",
    ".debug_str_offsets",
    ".debug_types",
    ".symtab",
];
/// Where `.text` is loaded; the seeds are linked for it.
pub const TEXT: u64 = 0x40_0000;
/// Where `.data` is loaded.
pub const DATA: u64 = 0x50_0000;
/// Where `.eh_frame` is loaded.
pub const UNWIND: u64 = 0x60_0000;

/// Bytes of code in [`stripped`].
pub const CODE: usize = 64;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;

/// The sections in an input.
pub fn split(input: &[u8]) -> [&[u8]; NAMES.len()] {
    let (lengths, mut rest) = input.split_at(input.len().min(2 * NAMES.len()));
    let mut parts = [&[][..]; NAMES.len()];
    for (part, length) in parts.iter_mut().zip(lengths.chunks_exact(2)) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let (this, others) = rest.split_at(length.min(rest.len()));
        (*part, rest) = (this, others);
    }
    parts
}

/// The input that [`split`] makes these sections of.
pub fn join(parts: &[&[u8]; NAMES.len()]) -> Vec<u8> {
    let length = |part: &&[u8]| (part.len().min(usize::from(u16::MAX)) as u16).to_le_bytes();
    let mut input: Vec<u8> = parts.iter().flat_map(length).collect();
    for part in parts {
        input.extend_from_slice(&part[..part.len().min(usize::from(u16::MAX))]);
    }
    input
}

/// An ELF file with these sections. `suffix` is put behind the names of the debug sections: `.dwo` or nothing.
/// Symbols get their names from `.debug_str`.
pub fn file(parts: &[&[u8]; NAMES.len()], suffix: &str) -> Vec<u8> {
    file_with(parts, suffix, &[])
}

/// A stripped ELF file with some code and this `.gnu_debugdata`.
pub fn stripped(debugdata: &[u8]) -> Vec<u8> {
    let mut parts = [&[][..]; NAMES.len()];
    parts[0] = &[0x90; CODE];
    file_with(&parts, "", &[(".gnu_debugdata", debugdata)])
}

/// As [`file`]; with other sections, by name and content, and then without those that are empty.
pub fn file_with(
    parts: &[&[u8]; NAMES.len()],
    suffix: &str,
    more: &[(&str, &[u8])],
) -> Vec<u8> {
    let mut names = vec![0];
    let mut content = vec![0; HEADER + 3 * PROGRAM_HEADER];
    let mut sections = vec![0; SECTION_HEADER];
    let mut segments = Vec::new();
    let strings = 1 + NAMES
        .iter()
        .position(|name| *name == ".debug_str")
        .unwrap_or(0);
    for (index, (name, part)) in NAMES.iter().zip(parts).enumerate() {
        if !more.is_empty() && part.is_empty() {
            continue;
        }
        let address = [TEXT, DATA, UNWIND].get(index).copied().unwrap_or(0);
        let at = content.len() as u64;
        let name_at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        if name.starts_with(".debug") {
            names.extend_from_slice(suffix.as_bytes());
        }
        names.push(0);
        content.extend_from_slice(part);
        let kind = if *name == ".symtab" { SYMTAB } else { 1 };
        let flags: u64 = match index {
            0 => 6,
            1 => 3,
            2 => 2,
            _ => 0,
        };
        let link = if kind == SYMTAB { strings as u32 } else { 0 };
        section(
            &mut sections,
            [name_at, kind, link],
            [flags, address, at, part.len() as u64],
        );
        if address != 0 {
            let executable = if index == 0 { 5u32 } else { 6 };
            segments.extend(1u32.to_le_bytes());
            segments.extend(executable.to_le_bytes());
            let size = part.len() as u64;
            for field in [at, address, address, size, size, 1] {
                segments.extend(field.to_le_bytes());
            }
        }
    }
    for (title, part) in more {
        let at = content.len() as u64;
        let kind = if title.starts_with(".note") { NOTE } else { 1 };
        section(
            &mut sections,
            [names.len() as u32, kind, 0],
            [0, 0, at, part.len() as u64],
        );
        names.extend_from_slice(title.as_bytes());
        names.push(0);
        content.extend_from_slice(part);
    }
    let (names_at, name) = (content.len() as u64, names.len() as u32);
    names.extend_from_slice(b".shstrtab\0");
    content.extend_from_slice(&names);
    section(
        &mut sections,
        [name, STRTAB, 0],
        [0, 0, names_at, names.len() as u64],
    );
    let sections_at = content.len() as u64;
    content.extend_from_slice(&sections);
    content[HEADER..HEADER + segments.len()].copy_from_slice(&segments);
    let count = (sections.len() / SECTION_HEADER) as u16;
    header(&mut content[..HEADER], sections_at, count);
    content
}

fn section(
    sections: &mut Vec<u8>,
    [name, kind, link]: [u32; 3],
    [flags, address, at, size]: [u64; 4],
) {
    sections.extend(name.to_le_bytes());
    sections.extend(kind.to_le_bytes());
    for field in [flags, address, at, size] {
        sections.extend(field.to_le_bytes());
    }
    sections.extend(link.to_le_bytes());
    sections.extend(0u32.to_le_bytes());
    let entry: u64 = if kind == SYMTAB { 24 } else { 0 };
    sections.extend(1u64.to_le_bytes());
    sections.extend(entry.to_le_bytes());
}

/// x86-64, executable, three segments, the section names last.
fn header(header: &mut [u8], sections_at: u64, count: u16) {
    let mut fields = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    fields.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    fields.extend(TEXT.to_le_bytes());
    fields.extend((HEADER as u64).to_le_bytes());
    fields.extend(sections_at.to_le_bytes());
    fields.extend([0; 4]);
    for half in [
        HEADER as u16,
        PROGRAM_HEADER as u16,
        3,
        SECTION_HEADER as u16,
        count,
        count - 1,
    ] {
        fields.extend(half.to_le_bytes());
    }
    header.copy_from_slice(&fields);
}
