//! Any `.gnu_debugdata` in a sound file: the section itself, its compressed data in a sound container, or the contents
//! of what is inflated.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Module, NoDebugFiles};
use symbolizer_fuzz::{ask_code, parts, xz};

/// Where the file has code that only `.gnu_debugdata` can name.
const CODE: [u8; 64] = [0x90; 64];

fuzz_target!(|input: &[u8]| {
    let Some((&[way, dictionary], rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let section = match way % 3 {
        0 => rest.to_vec(),
        1 => xz::around(rest, dictionary, 1),
        _ => xz::store(&parts::file(&parts::split(rest), "")),
    };
    let mut outer = [&[][..]; parts::NAMES.len()];
    outer[0] = &CODE;
    let file = parts::file_with(&outer, "", Some((".gnu_debugdata", &section)));
    let Ok(module) = Module::parse(Arc::new(file), Box::new(NoDebugFiles)) else {
        return;
    };
    for step in (0..CODE.len() as u64).step_by(5) {
        ask_code(&module, parts::TEXT + step);
    }
});
