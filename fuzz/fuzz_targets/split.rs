//! Any contents of debug sections in a program and in the `.dwo` file, package or debug file that it asks for.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Bytes, DebugFiles, DebugRequest, Module};
use symbolizer_fuzz::{ask_code, ask_data, ask_names, parts};

/// Gives the same file whatever is asked for.
struct Always(Bytes);

impl DebugFiles for Always {
    fn find(&self, _: &DebugRequest<'_>) -> Option<Bytes> {
        Some(Arc::clone(&self.0))
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let (program, other) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let sections = parts::split(program);
    let other: Bytes = Arc::new(parts::file(&parts::split(other), ".dwo"));
    let file = parts::file(&sections, "");
    let Ok(module) = Module::parse(Arc::new(file), Box::new(Always(other))) else {
        return;
    };
    for step in (0..sections[0].len().min(160) as u64).step_by(7) {
        ask_code(&module, parts::TEXT + step);
    }
    for step in (0..sections[1].len().min(160) as u64).step_by(40) {
        ask_data(&module, parts::DATA + step);
    }
    ask_names(&module);
});
