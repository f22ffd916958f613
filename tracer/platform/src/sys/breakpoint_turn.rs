//! Breakpoint registers are the machine's: tests that take or count them do it in turns, also those of
//! other test programs.

use std::fs::File;

/// Waits for the turn, which lasts as long as the file is open.
pub(super) fn take() -> File {
    let path = std::env::temp_dir().join("cohtrace-breakpoints.lock");
    let file = File::create(path).unwrap();
    file.lock().unwrap();
    file
}
