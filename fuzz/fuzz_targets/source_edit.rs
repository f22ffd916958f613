//! Any bytes as C or C++ source into which prefetches are written.
#![no_main]

use cohtrace::hint::edit::{self, Wanted};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let source = String::from_utf8_lossy(bytes);
    let bit_fields = edit::bit_fields(&source);
    let _ = edit::includes(&source);
    for line in 0..8 {
        for column in [None, Some(1), Some(9), Some(u32::MAX)] {
            for (object, field) in [
                (Some("counter"), None),
                (Some("p"), Some("a")),
                (None, None),
            ] {
                let wanted = Wanted {
                    line,
                    column,
                    object,
                    field,
                };
                if let Ok(made) = edit::insertion(&source, wanted, &bit_fields) {
                    // A place in the text, between two characters of it.
                    assert!(source.is_char_boundary(made.offset as usize));
                }
            }
        }
    }
});
