//! Any bytes as a recording of perf.
#![no_main]

use std::io::Cursor;

use cohtrace::{event::Batch, perf_data::PerfData};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(mut file) = PerfData::open(Cursor::new(bytes)) {
        let (mut batch, mut newest) = (Batch::default(), 0);
        while let Ok(true) = file.next_batch(&mut batch) {
            for access in &batch.accesses {
                assert!(access.addr != 0 && access.time_ns >= newest);
            }
            let last = batch.accesses.last().map(|access| access.time_ns);
            newest = newest.max(last.unwrap_or(0));
            batch.clear();
        }
        let _ = file.description();
    }
});
