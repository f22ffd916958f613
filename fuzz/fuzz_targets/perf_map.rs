//! Any bytes as a perf map that grows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolizer::PerfMap;

fuzz_target!(|bytes: &[u8]| {
    let mut map = PerfMap::default();
    // In two steps, cut anywhere: the reader is given what lies behind its position.
    let cut = bytes
        .first()
        .map_or(0, |&first| usize::from(first) % (bytes.len() + 1));
    for end in [cut, bytes.len()] {
        let at = map.position() as usize;
        assert!(at <= end, "it cannot have read what was not there");
        map.read(&bytes[at..end]);
    }
    for address in [0, 0x1000, 0x7f00_0000_1020, u64::MAX] {
        if let Some(function) = map.function(address) {
            assert!((function.start..function.end).contains(&address));
        }
    }
});
