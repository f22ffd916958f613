//! Programs that name another file for their debug information, and that file, with what proves that it is theirs: the
//! checksum of `.gnu_debuglink`, the build-id of `.gnu_debugaltlink`. A fuzzer would never guess these.
//!
//! An input is a byte that says how the program names the file, the 16-bit lengths of the name and of the program's
//! sections, and then the name, the program and the file, as [`crate::parts`] takes them.

use crate::parts;

/// What an input stands for.
pub struct Linked {
    pub program: Vec<u8>,
    pub file: Vec<u8>,
    /// Whether the proof was spoilt, so that the file must be refused.
    pub spoilt: bool,
}

const BUILD_ID: [u8; 20] = [0x5a; 20];

impl Linked {
    pub fn of(input: &[u8]) -> Option<Linked> {
        let (&[way, name_low, name_high, low, high], rest) = input.split_first_chunk::<5>()?;
        let cut = |bytes: &[u8], low, high| {
            bytes.len().min(usize::from(u16::from_le_bytes([low, high])))
        };
        let (name, rest) = rest.split_at(cut(rest, name_low, name_high));
        let (program, file) = rest.split_at(cut(rest, low, high));
        let note = note(&BUILD_ID);
        let notes: &[(&str, &[u8])] = match way % 4 {
            2 | 3 => &[(".note.gnu.build-id", &note)],
            _ => &[],
        };
        let file = parts::file_with(&parts::split(file), "", notes);
        let (section, content) = match way % 4 {
            0 => (".gnu_debuglink", name.to_vec()),
            1 => (".gnu_debuglink", debug_link(name, crc32fast::hash(&file))),
            2 => (".gnu_debugaltlink", name.to_vec()),
            _ => (".gnu_debugaltlink", alt_link(name)),
        };
        let program = parts::file_with(&parts::split(program), "", &[(section, &content)]);
        let mut linked = Linked {
            program,
            file,
            spoilt: way % 4 == 1 && way & 4 != 0,
        };
        if linked.spoilt {
            // Behind all that is read of it.
            linked.file.push(0);
        }
        Some(linked)
    }
}

/// A program without debug information, and its own debug information in the other file.
pub fn seed(sections: &[u8]) -> Vec<u8> {
    let whole = parts::split(sections);
    let mut bare = [&[][..]; parts::NAMES.len()];
    bare[..3].copy_from_slice(&whole[..3]);
    let program = parts::join(&bare);
    let name = b"a.debug";
    let mut input = vec![1, name.len() as u8, 0];
    input.extend((program.len() as u16).to_le_bytes());
    input.extend([name, &program[..], sections].concat());
    input
}

/// A file name, zeros up to a multiple of four, the checksum of the whole file.
fn debug_link(name: &[u8], checksum: u32) -> Vec<u8> {
    let mut link = name.to_vec();
    link.push(0);
    link.resize(link.len().next_multiple_of(4), 0);
    link.extend(checksum.to_le_bytes());
    link
}

/// A file name, a zero, the build-id.
fn alt_link(name: &[u8]) -> Vec<u8> {
    [name, &[0], &BUILD_ID].concat()
}

/// The note that holds a build-id.
fn note(id: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for word in [4, id.len() as u32, 3] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"GNU\0");
    note.extend(id);
    note
}
