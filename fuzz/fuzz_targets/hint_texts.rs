//! Any bytes as hints.json, as compiler output and as source: up to the first two bytes of zero each.
#![no_main]

use std::collections::BTreeSet;

use cohtrace::hint::{
    assembly::{self, NoTree, Place},
    edit::{self, Wanted},
    file::HintFile,
};
use libfuzzer_sys::fuzz_target;

/// Hints for lines 1 to 3 of a.c, where the input has none that parse.
const STANDARD: &str = include_str!("hint_texts.json");

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let [hints, text, source] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let parsed = HintFile::parse(&String::from_utf8_lossy(hints));
    let hints = parsed.unwrap_or_else(|_| HintFile::parse(STANDARD).expect("ours"));
    let rewritten = assembly::rewrite(
        text,
        &hints,
        &Place {
            directory: "/src",
            maps: &[],
            tree: &NoTree,
            everywhere: false,
        },
    );
    if let Some(new) = rewritten.text {
        // Lines are only ever added.
        let mut new = new.split(|byte| *byte == b'\n');
        for line in text.split(|byte| *byte == b'\n') {
            assert!(new.any(|other| other == line));
        }
    }
    let source = String::from_utf8_lossy(source);
    let bit_fields: BTreeSet<String> = edit::bit_fields(&source);
    for line in 1..4 {
        for column in [None, Some(1), Some(9)] {
            let wanted = Wanted {
                line,
                column,
                object: Some("counter"),
                field: None,
            };
            if let Ok(made) = edit::insertion(&source, wanted, &bit_fields) {
                assert!(made.offset as usize <= source.len());
            }
        }
    }
});
