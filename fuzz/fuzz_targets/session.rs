//! Any bytes as the files of a session, read and judged.
#![no_main]

use std::{path::Path, sync::Once};

use cohtrace::{
    analysis::AnalysisOptions, event::Batch, finding::Thresholds, pipeline::Pipeline,
    session::SessionReader,
};
use libfuzzer_sys::fuzz_target;
use symbolizer_fuzz::session;
use tempfile::TempDir;

static HOOK: Once = Once::new();

fuzz_target!(|input: &[u8]| {
    // The reader catches what panics in the Parquet crate; the fuzzer's own hook would end the process before. A panic
    // that is not caught still ends it.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    };
    let directory = directory.expect("a temporary directory");
    session::write(directory.path(), input).expect("room for a session");
    let Ok(mut reader) = SessionReader::open(directory.path()) else {
        return;
    };
    let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).unwrap_or(false) {
        pipeline.feed(&batch);
        batch.clear();
    }
    let _ = (reader.caveats(), pipeline.judge(), pipeline.pairs());
});
