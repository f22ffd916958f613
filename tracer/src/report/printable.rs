//! Makes text from elsewhere safe to print, and says how many columns it takes.
//!
//! Names come from binaries and from the kernel's thread names, so anyone can put escape sequences
//! into them. Nothing reaches a terminal that could move the cursor, change colours or hide letters.

use std::borrow::Cow;

use crate::event::path_text::escaped_byte;

/// The text with every character that a terminal could act on written out as an escape (`\x1b`,
/// `\u{202e}`); with `ascii`, every character beyond ASCII too.
pub fn printable(text: &str, ascii: bool) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c, ascii)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_plain(c, ascii) {
            out.push(c);
        } else if let Some(byte) = escaped_byte(c) {
            out.push_str(&format!("\\x{byte:02x}"));
        } else if u32::from(c) < 0x100 {
            out.push_str(&format!("\\x{:02x}", u32::from(c)));
        } else {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        }
    }
    Cow::Owned(out)
}

/// Whether the character is one that a terminal, or a reader's eye, takes as something else than a letter:
/// C0 and C1 controls, separators of lines, bidirectional overrides (CVE-2021-42574), characters without width,
/// and what stands for a byte that is no letter at all.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || escaped_byte(c).is_some()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn is_plain(c: char, ascii: bool) -> bool {
    !is_hostile(c) && (!ascii || c.is_ascii())
}

/// Columns the text takes on a terminal. Characters of East Asian scripts and emoji take two;
/// combining marks are counted as one, so the answer is never too small.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Columns of one character.
pub fn char_columns(c: char) -> usize {
    // The wide blocks of Unicode Standard Annex 11, rounded outwards.
    match u32::from(c) {
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe10..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f000..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_lose_their_power() {
        assert_eq!(printable("\x1b[31mred\x07", false), "\\x1b[31mred\\x07");
        assert_eq!(printable("a\u{9b}2J", false), "a\\x9b2J");
        assert_eq!(printable("x\u{202e}y\nz", false), "x\\u{202e}y\\x0az");
        let odd = crate::event::path_text::text(b"/tmp/\xffx");
        assert_eq!(printable(&odd, false), "/tmp/\\xffx");
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert!(matches!(
            printable("ns::größe<int>", false),
            Cow::Borrowed("ns::größe<int>")
        ));
        assert_eq!(printable("größe", true), "gr\\xf6\\xdfe");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(columns("abc"), 3);
        assert_eq!(columns("漢字"), 4);
    }
}
