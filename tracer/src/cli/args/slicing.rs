//! `report --stats`: which statistics, and how they are cut.

use clap::{Args, ValueEnum};

use super::values::interval;

/// Statistics instead of findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Statistics")]
pub(in crate::cli) struct StatsArgs {
    /// Print statistics of the session instead of its findings: all, or --stats=NAMES, separated by commas; NAME.* is a
    /// group. docs/statistics.md says what each is.
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with_all = ["latent", "format", "check"])]
    pub stats: Option<String>,
    /// Cut the run into slices of this length from its start on, such as 100ms, 50us or 2s.
    #[arg(long, value_name = "TIME", value_parser = interval, requires = "stats")]
    pub interval: Option<u64>,
    /// Split the values, besides those of the whole.
    #[arg(long, value_enum, default_value_t = SplitBy::All, requires = "stats")]
    pub per: SplitBy,
    /// Print CSV: a line for each value.
    #[arg(long, requires = "stats", conflicts_with = "json")]
    pub csv: bool,
    /// List the statistics that there are; needs no session.
    #[arg(long, requires = "stats")]
    pub list: bool,
}

/// What values are split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SplitBy {
    /// Not at all.
    All,
    /// CPU; in an emulator, the processor, which is a thread.
    Cpu,
    /// Thread.
    Thread,
    /// Process.
    Process,
    /// Function that accesses, inlined ones too.
    Function,
    /// Source line that accesses.
    Line,
    /// Variable or allocation that is accessed; several on one cache line are told together.
    Object,
}

impl StatsArgs {
    /// Whether statistics are asked for.
    pub(in crate::cli) fn is_asked(&self) -> bool {
        self.stats.is_some()
    }

    /// The names that were given, if any were.
    pub(in crate::cli) fn names(&self) -> Option<&str> {
        self.stats.as_deref().filter(|names| !names.is_empty())
    }
}
