//! Programs that name another file for their debug information, by `.gnu_debuglink` or `.gnu_debugaltlink`, and any file
//! in its place, with the checksum and the build-id that it must have; or with a checksum that it must not have.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Bytes, DebugFiles, DebugRequest, Module, NoDebugFiles};
use symbolizer_fuzz::{ask_code, ask_data, ask_names, link::Linked, parts};

/// Gives the same file whatever is asked for, but not for names that lead elsewhere.
struct Always(Bytes);

impl DebugFiles for Always {
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes> {
        if let DebugRequest::DebugLink { file_name, .. } = request {
            assert!(!file_name.contains('/') && *file_name != "..");
        }
        Some(Arc::clone(&self.0))
    }
}

fuzz_target!(|input: &[u8]| {
    let Some(linked) = Linked::of(input) else {
        return;
    };
    let file: Bytes = Arc::new(linked.file);
    let program: Bytes = Arc::new(linked.program);
    let Ok(module) = Module::parse(Arc::clone(&program), Box::new(Always(file))) else {
        return;
    };
    let alone = Module::parse(program, Box::new(NoDebugFiles)).expect("it was parsed just now");
    for step in (0..160).step_by(7) {
        let address = parts::TEXT + step;
        ask_code(&module, address);
        if linked.spoilt {
            let named = [&module, &alone].map(|module| module.frames(address).symbol.ok());
            assert_eq!(named[0], named[1], "names of another build");
        }
    }
    for step in (0..160).step_by(40) {
        ask_data(&module, parts::DATA + step);
    }
    ask_names(&module);
});
