//! Any bytes as an ELF file.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use symbolizer::{Module, NoDebugFiles};
use symbolizer_fuzz::{addresses, ask, ask_names};

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = Module::parse(Arc::new(bytes.to_vec()), Box::new(NoDebugFiles)) else {
        return;
    };
    for address in addresses(&module, 8) {
        ask(&module, address);
    }
    ask_names(&module);
});
