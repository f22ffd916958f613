//! Paths as text, whatever bytes they are made of.
//!
//! Linux takes any bytes but `/` and 0 for a name, and text in sessions and reports is UTF-8. A byte that is in no
//! character stands as one of 256 characters for private use (of the last plane), and so do the bytes of these
//! characters themselves, so that each path has one text, and the text gives back the path.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

/// What stands for byte 0.
const FIRST: u32 = 0x10_fe00;

/// The byte that the character stands for, if it does for one.
pub fn escaped_byte(c: char) -> Option<u8> {
    u32::from(c)
        .checked_sub(FIRST)
        .and_then(|byte| u8::try_from(byte).ok())
}

/// The text of a path.
pub fn text(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let escape = |byte: &u8| char::from_u32(FIRST + u32::from(*byte));
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            if escaped_byte(c).is_some() {
                text.extend(
                    c.encode_utf8(&mut [0; 4])
                        .as_bytes()
                        .iter()
                        .filter_map(escape),
                );
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().filter_map(escape));
    }
    text
}

/// The text of a path of ours.
pub fn of(path: &Path) -> String {
    text(path.as_os_str().as_bytes())
}

/// The path of a text.
pub fn path(text: &str) -> PathBuf {
    if !text.chars().any(|c| escaped_byte(c).is_some()) {
        return PathBuf::from(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match escaped_byte(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_of_letters_is_its_own_text_and_other_bytes_are_no_letters() {
        assert_eq!(text("/opt/größe".as_bytes()), "/opt/größe");
        let odd = text(b"/opt/\xff");
        assert_eq!(odd.chars().last().and_then(escaped_byte), Some(0xff));
        assert_ne!(odd, text(b"/opt/\\xff"));
        assert_eq!(path(&odd).as_os_str(), OsStr::from_bytes(b"/opt/\xff"));
    }

    proptest! {
        #[test]
        fn each_path_has_one_text_which_gives_it_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let back = path(&text(&bytes));
            prop_assert_eq!(back.as_os_str().as_bytes(), &bytes[..]);
        }

        #[test]
        fn characters_that_stand_for_bytes_are_kept_too(byte in any::<u8>(), around in "\\PC{0,4}") {
            let c = char::from_u32(FIRST + u32::from(byte)).unwrap();
            let bytes = format!("{around}{c}{around}").into_bytes();
            let back = path(&text(&bytes));
            prop_assert_eq!(back.as_os_str().as_bytes(), &bytes[..]);
        }
    }
}
