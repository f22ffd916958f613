//! A line drawn byte by byte: one letter per group of bytes, so that neighbours are seen as such.
//!
//! ```text
//! 0       8       16      24      32      40      48      56
//! |AAAAAAAABBBBBBBB........cccc....................................|
//! ```
//!
//! Capital: somebody stores there. Small: only read.

use super::{
    model::{ByteRange, Finding, Group},
    style::TextOptions,
};
use crate::finding::Verdict;

/// Columns of one row of the map.
const ROW: usize = 64;

/// Whether there is anything to tell apart: what threads truly share may be all of it.
pub(super) fn has_parts(finding: &Finding) -> bool {
    finding.kind != Some(Verdict::TrueSharing) || finding.groups.len() > 1
}

/// Letters of the groups in their order, capital; groups beyond the alphabet share `+`.
pub(super) fn letters(groups: &[Group]) -> Vec<char> {
    let letter = |n: usize| u8::try_from(n).ok().filter(|n| *n < 26);
    (0..groups.len())
        .map(|n| letter(n).map_or('+', |n| char::from(b'A' + n)))
        .collect()
}

/// The letter of a group where somebody stores, and where bytes are only read.
pub(super) fn cased(letter: char, is_stored: bool) -> char {
    if is_stored {
        letter
    } else {
        letter.to_ascii_lowercase()
    }
}

/// Whether any of so many bytes from an offset on is in one of the ranges.
fn is_within(ranges: &[ByteRange], offset: u32, size: u32) -> bool {
    ranges.iter().any(|bytes| {
        let start = u32::from(bytes.offset);
        start < offset + size && offset < start + u32::from(bytes.size)
    })
}

/// The letters of the groups that some bytes belong to, in order.
pub(super) fn letters_of(groups: &[Group], letters: &[char], offset: u8, size: u16) -> String {
    let (offset, size) = (u32::from(offset), u32::from(size));
    let mut out = String::new();
    for (group, &letter) in groups.iter().zip(letters) {
        let letter = cased(letter, is_within(&group.stored, offset, size));
        if is_within(&group.bytes, offset, size) && !out.contains(letter) {
            out.push(letter);
        }
    }
    out
}

/// The scale and one row per 64 bytes.
pub(super) fn draw(groups: &[Group], line_bytes: u64, options: TextOptions) -> Vec<String> {
    let width = (line_bytes as usize).clamp(1, 128);
    let mut cells = vec![options.unused_byte(); width];
    for (group, letter) in groups.iter().zip(letters(groups)) {
        for bytes in &group.bytes {
            let start = usize::from(bytes.offset).min(width);
            let end = (start + usize::from(bytes.size)).min(width);
            for (at, cell) in cells.iter_mut().enumerate().take(end).skip(start) {
                *cell = cased(letter, is_within(&group.stored, at as u32, 1));
            }
        }
    }
    let frame = options.frame();
    let mut out = Vec::new();
    for (row, cells) in cells.chunks(ROW).enumerate() {
        let mut scale = String::new();
        for n in 0..cells.len().div_ceil(8) {
            scale.push_str(&format!("{:<8}", row * ROW + n * 8));
        }
        out.push(format!(" {}", scale.trim_end()));
        let row: String = cells.iter().collect();
        out.push(format!("{frame}{row}{frame}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(offset: u8, size: u16, writers: &[u32]) -> Group {
        let bytes = vec![ByteRange { offset, size }];
        Group {
            stored: if writers.is_empty() {
                Vec::new()
            } else {
                bytes.clone()
            },
            bytes,
            fields: Vec::new(),
            writers: writers.to_vec(),
            readers: vec![9],
        }
    }

    #[test]
    fn stored_bytes_are_capital_and_read_ones_small() {
        let groups = [group(0, 8, &[1]), group(8, 4, &[]), group(60, 100, &[2])];
        assert_eq!(
            draw(&groups, 64, TextOptions::default()),
            [
                " 0       8       16      24      32      40      48      56",
                "|AAAAAAAAbbbb................................................CCCC|"
            ]
        );
    }

    #[test]
    fn bytes_that_a_writer_only_reads_have_its_letter_small() {
        let mut mine = group(0, 16, &[1]);
        mine.stored[0].size = 8;
        let groups = [mine];
        let letters = letters(&groups);
        assert!(draw(&groups, 64, TextOptions::default())[1].starts_with("|AAAAAAAAaaaaaaaa...."));
        assert_eq!(letters_of(&groups, &letters, 8, 8), "a");
        assert_eq!(letters_of(&groups, &letters, 4, 8), "A");
    }

    #[test]
    fn pairs_of_lines_take_two_rows() {
        let rows = draw(&[group(64, 8, &[1])], 128, TextOptions::default());
        assert_eq!(rows.len(), 4);
        assert_eq!(
            rows[2],
            " 64      72      80      88      96      104     112     120"
        );
        assert!(rows[1].starts_with("|....") && rows[3].starts_with("|AAAAAAAA."));
    }

    #[test]
    fn groups_beyond_the_alphabet_share_one_letter() {
        let groups: Vec<Group> = (0..30).map(|n| group(n, 1, &[u32::from(n)])).collect();
        let letters = letters(&groups);
        assert_eq!((letters[25], letters[26], letters[29]), ('Z', '+', '+'));
        assert_eq!(letters_of(&groups, &letters, 24, 6), "YZ+");
        assert_eq!(letters_of(&groups, &letters, 40, 6), "");
    }
}
