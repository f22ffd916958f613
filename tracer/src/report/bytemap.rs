//! A line drawn byte by byte: one letter per group of bytes, so that neighbours are seen as such.
//!
//! ```text
//! 0       8       16      24      32      40      48      56
//! |AAAAAAAABBBBBBBB........cccc....................................|
//! ```
//!
//! Capital: somebody stores there. Small: only read.

use super::{model::Group, style::TextOptions};

/// Columns of one row of the map.
const ROW: usize = 64;

/// Letters of the groups in their order; groups beyond the alphabet share `+`.
pub fn letters(groups: &[Group]) -> Vec<char> {
    let letter = |(n, group): (usize, &Group)| {
        let capital = u8::try_from(n)
            .ok()
            .filter(|n| *n < 26)
            .map(|n| char::from(b'A' + n));
        match capital {
            Some(c) if group.writers.is_empty() => c.to_ascii_lowercase(),
            Some(c) => c,
            None => '+',
        }
    };
    groups.iter().enumerate().map(letter).collect()
}

/// The letters of the groups that some bytes belong to, in order.
pub fn letters_of(groups: &[Group], letters: &[char], offset: u8, size: u16) -> String {
    let end = u32::from(offset) + u32::from(size);
    let mut out = String::new();
    for (group, &letter) in groups.iter().zip(letters) {
        let overlaps = group.bytes.iter().any(|bytes| {
            let group_end = u32::from(bytes.offset) + u32::from(bytes.size);
            u32::from(bytes.offset) < end && u32::from(offset) < group_end
        });
        if overlaps && !out.contains(letter) {
            out.push(letter);
        }
    }
    out
}

/// The scale and one row per 64 bytes.
pub fn draw(groups: &[Group], line_bytes: u64, options: TextOptions) -> Vec<String> {
    let width = (line_bytes as usize).clamp(1, 128);
    let mut cells = vec![options.unused_byte(); width];
    for (group, letter) in groups.iter().zip(letters(groups)) {
        for bytes in &group.bytes {
            let start = usize::from(bytes.offset).min(width);
            let end = (start + usize::from(bytes.size)).min(width);
            cells[start..end].fill(letter);
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
    use crate::report::model::ByteRange;

    fn group(offset: u8, size: u16, writers: &[u32]) -> Group {
        Group {
            bytes: vec![ByteRange { offset, size }],
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
