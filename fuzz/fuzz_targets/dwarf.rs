//! Any contents of debug sections in a sound ELF file.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Module, NoDebugFiles};
use symbolizer_fuzz::{ask_code, ask_data, ask_names, parts};

fuzz_target!(|input: &[u8]| {
    let sections = parts::split(input);
    let file = parts::file(&sections, "");
    let Ok(module) = Module::parse(Arc::new(file), Box::new(NoDebugFiles)) else {
        return;
    };
    // Every function of the seeds is met by these, and every variable.
    let code = sections[0].len().min(160) as u64;
    for step in (0..code).step_by(7) {
        ask_code(&module, parts::TEXT + step);
    }
    for step in (0..sections[1].len().min(160) as u64).step_by(40) {
        ask_data(&module, parts::DATA + step);
    }
    ask_names(&module);
});
