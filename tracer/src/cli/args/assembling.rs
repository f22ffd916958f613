//! Options of the assembler's wrapper.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgGroup, Args};

use crate::hint::assembly::PathMap;

/// `as`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["install", "summary", "verify", "assembler"])))]
pub(crate) struct AsArgs {
    /// Hints to place.
    #[arg(long, value_name = "HINTS.json")]
    pub hints: PathBuf,
    /// Write DIR/as, which compilers call instead of the assembler with -B DIR.
    #[arg(long, value_name = "DIR")]
    pub install: Option<PathBuf>,
    /// Sum up the log of a build that ran with COHTRACE_AS_LOG=LOG: which hints were placed, and which nowhere.
    #[arg(long, value_name = "LOG")]
    pub summary: Option<PathBuf>,
    /// Read a built program back: which hinted loads have their prefetch right in front of them. Needs its -g.
    #[arg(long, value_name = "PROGRAM")]
    pub verify: Option<PathBuf>,
    /// With --summary and --verify: exit with code 1 when a hint has no prefetch.
    #[arg(long)]
    pub check: bool,
    /// What begins with FROM in the hints begins with TO in the build; repeatable. Files are found elsewhere by themselves where
    /// their text, or a directory of their path, is the same.
    #[arg(long, value_name = "FROM=TO")]
    pub map: Vec<PathMap>,
    /// Put a prefetch in front of each hinted load, also in loops that walk over the words of a line and so repeat it.
    #[arg(long)]
    pub everywhere: bool,
    /// Say nothing of what was placed; COHTRACE_AS_QUIET=1 does the same.
    #[arg(short, long)]
    pub quiet: bool,
    /// The real assembler [default: COHTRACE_AS, else `as` in PATH].
    #[arg(long = "as", value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// The script that called, which is never taken for the real assembler.
    #[arg(long, value_name = "SCRIPT", hide = true)]
    pub from: Option<PathBuf>,
    /// Arguments of the assembler, after `--`: assembles as it would, with the hints placed.
    #[arg(last = true, value_name = "ARGS")]
    pub assembler: Vec<OsString>,
}
