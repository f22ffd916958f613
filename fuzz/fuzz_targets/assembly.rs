//! Any bytes as what a compiler hands to its assembler. Lines are only ever added.
#![no_main]

use cohtrace::hint::{
    assembly::{self, NoTree, Place},
    file::HintFile,
};
use libfuzzer_sys::fuzz_target;

/// Hints for lines 1 to 3 of a.c.
const HINTS: &str = include_str!("standard_hints.json");

fuzz_target!(|text: &[u8]| {
    let hints = HintFile::parse(HINTS).expect("ours");
    for everywhere in [false, true] {
        let place = Place {
            directory: "/src",
            maps: &[],
            tree: &NoTree,
            everywhere,
        };
        let rewritten = assembly::rewrite(text, &hints, &place);
        let _ = assembly::lines(&rewritten, &hints);
        if let Some(new) = rewritten.text {
            let mut new = new.split(|byte| *byte == b'\n');
            for line in text.split(|byte| *byte == b'\n') {
                assert!(new.any(|other| other == line));
            }
        }
    }
});
