//! Makes text from elsewhere safe to print, and says how many columns it takes.
//!
//! Names come from binaries and from the kernel's thread names, so anyone can put escape sequences
//! into them. Nothing reaches a terminal that could move the cursor, change colours or hide letters.

use std::{borrow::Cow, ffi::OsStr, fmt::Write as _};

use unicode_width::UnicodeWidthChar as _;

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
            write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
        } else if u32::from(c) < 0x100 {
            write!(out, "\\x{:02x}", u32::from(c)).expect("writing to a String cannot fail");
        } else {
            write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail");
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

/// A name that may be any bytes, as text that says which it had: bytes that are no UTF-8 stand as `\xff`.
pub fn words(name: &OsStr) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// JSON in which what a terminal could act on is written as `\u` escapes: the same document, with the same meaning.
///
/// Strings carry names from binaries, and JSON itself escapes only the controls below U+0020. Outside of strings it has
/// none of these characters but the newlines of the pretty form, so they may be replaced anywhere.
pub fn json(document: &str) -> String {
    if !document.chars().any(|c| c != '\n' && is_hostile(c)) {
        return document.to_owned();
    }
    let mut out = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if c == '\n' || !is_hostile(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// The longest beginning of the text that takes no more than `most` columns.
pub fn cut(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let over = text.char_indices().find(|(_, c)| {
        taken += char_columns(*c);
        taken > most
    });
    &text[..over.map_or(text.len(), |(at, _)| at)]
}

/// Columns the text takes on a terminal: two for characters of East Asian scripts and emoji, none for combining marks.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// Columns of one character, whatever stands beside it: terminals, too, ask for one at a time. A control has one, so that
/// what holds one is not taken for shorter than it is.
pub fn char_columns(c: char) -> usize {
    c.width().unwrap_or(1)
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
    fn characters_that_json_leaves_alone_are_escaped_without_changing_the_value() {
        let name = "a\u{9b}b\u{7f}c\u{202e}d\u{e0001}e\x1b\n";
        let json = json(&serde_json::to_string(name).unwrap());
        assert!(json.is_ascii() && !json.chars().any(is_hostile), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }

    #[test]
    fn bytes_that_are_no_text_are_written_out_and_text_stays() {
        use std::os::unix::ffi::OsStrExt as _;
        assert_eq!(words(OsStr::from_bytes(b"./p\xffq\xc3")), "./p\\xffq\\xc3");
        assert_eq!(words(OsStr::new("größe")), "größe");
    }

    #[test]
    fn a_cut_text_fits_whatever_its_letters_take() {
        assert_eq!(cut("abcdef", 4), "abcd");
        assert_eq!(cut("漢字x", 3), "漢");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(columns("abc"), 3);
        assert_eq!(columns("漢字"), 4);
        // A watch and a star: emoji outside the blocks of emoji, beside a letter and a sign that are narrow.
        assert_eq!(columns("\u{231a}\u{2b50}"), 4);
        assert_eq!(columns("\u{2318}\u{2b53}"), 2);
    }

    #[test]
    fn a_combining_mark_takes_no_column_and_goes_with_its_letter() {
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(columns("\u{e9}"), 1);
        assert_eq!(cut("e\u{301}x", 1), "e\u{301}");
    }

    #[test]
    fn a_control_is_not_taken_for_nothing() {
        assert_eq!(columns("a\u{1b}b"), 3);
    }
}
