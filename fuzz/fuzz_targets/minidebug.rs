//! Any `.gnu_debugdata` in a sound file: the section itself, its compressed data in a sound container, or the contents
//! of what is inflated.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Module, NoDebugFiles};
use symbolizer_fuzz::{ask_code, parts, xz};

fuzz_target!(|input: &[u8]| {
    let Some(section) = xz::section(input) else {
        return;
    };
    let file = parts::stripped(&section);
    let Ok(module) = Module::parse(Arc::new(file), Box::new(NoDebugFiles)) else {
        return;
    };
    for step in (0..parts::CODE as u64).step_by(5) {
        ask_code(&module, parts::TEXT + step);
    }
});
