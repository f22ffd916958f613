//! How a test says that it, or a part of it, was not run. The test runner counts such a test as passed and hides what it
//! prints, so this goes past the runner; `cargo xtask ci` counts and lists what it finds.

use std::{fmt, io::Write as _};

/// How a line begins that tells of a skip.
pub const MARK: &str = "*** SKIPPED";
/// The same of one that must not be where everything was set up.
pub const CORE_MARK: &str = "*** SKIPPED (core)";

/// What was not tested for want of something that machines may lack: hardware, a kernel's option, a choice of the compiler.
pub fn skipped(why: impl fmt::Display) {
    not_run(MARK, &why);
}

/// What was not tested for want of rights or of a tool that `.ci/run` installs: with `cargo xtask ci --strict`, which it runs, a
/// failure.
pub fn skipped_core(why: impl fmt::Display) {
    not_run(CORE_MARK, &why);
}

fn not_run(mark: &str, why: &dyn fmt::Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // One line, whatever a tool said.
    let why = why.to_string();
    let why: Vec<&str> = why.split_whitespace().collect();
    say(format_args!("{mark} {test}: {}", why.join(" ")));
}

/// Prints a line past the test runner, which hides what a passing test prints.
pub fn say(what: impl fmt::Display) {
    // Nobody is left to tell when standard error is closed.
    writeln!(std::io::stderr(), "\n{what}\n").ok();
}
