//! Any bytes as a jitdump that grows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolizer::JitDump;

fuzz_target!(|bytes: &[u8]| {
    let mut dump = JitDump::default();
    let cut = bytes
        .last()
        .map_or(0, |&last| usize::from(last) % (bytes.len() + 1));
    for end in [cut, bytes.len()] {
        // A record that says to be longer than the file puts the position beyond its end.
        let at = usize::try_from(dump.position()).unwrap_or(end).min(end);
        if dump.read(&bytes[at..end]).is_err() {
            break;
        }
    }
    for address in [0, 0x1000, 0x1004, 0x2000, 0x2004, u64::MAX] {
        if let Some(function) = dump.function(address) {
            assert!((function.start..function.end).contains(&address));
        }
        let _ = dump.line(address);
        let _ = dump.code(address);
    }
});
