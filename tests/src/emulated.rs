//! Small C programs under the emulated source, and the requests that their sessions have.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};

/// Compiles a program with threads; panics with the compiler's words where that fails.
pub fn build(directory: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (file, program) = (directory.join(format!("{name}.c")), directory.join(name));
    fs::write(&file, source).expect("the directory is writable");
    let built = Command::new("gcc")
        .args(["-O1", "-g", "-pthread"])
        .args(flags)
        .arg(&file)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("gcc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    program
}

/// Records a command, which may end in any way.
pub fn record(session: &Path, command: &[&str]) -> Ended {
    let mut tool = cohtrace(["record", "--quiet", "--source", "emulate", "--output"]);
    run(tool.arg(session).arg("--").args(command), GRACE)
}

/// An address as programs and logs print it.
pub fn address(text: &str) -> u64 {
    let digits = text.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).expect("an address")
}

/// Requests for some memory with lines of so many bytes. The log has the addresses of private memory, and the places in
/// shared memory.
pub fn requests(session: &Path, places: Range<u64>, line_size: &str) -> usize {
    let mut tool = cohtrace(["log", "--line-size", line_size]);
    let log = run(tool.arg(session), GRACE).expect_code(0).stdout;
    let target = |row: &str| address(row.split(',').nth(4).expect("a target"));
    log.lines()
        .filter(|row| places.contains(&target(row)))
        .count()
}
