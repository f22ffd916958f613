//! Any bytes as `/proc/PID/maps`, whose names a process chooses.
#![no_main]

use cohtrace::sys::proc_snapshot::parse_mapping;
use libfuzzer_sys::fuzz_target;
use symbolizer::Mapping;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        let Some(ours) = parse_mapping(line) else {
            continue;
        };
        assert!(ours.start.checked_add(ours.len).is_some());
    }
    for theirs in Mapping::parse_all(&text) {
        assert!(theirs.start.checked_add(theirs.len).is_some());
    }
});
