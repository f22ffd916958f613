//! Options of `diff`.

use std::path::PathBuf;

use clap::Args;

use super::{AnalysisArgs, Color, PairArgs, ReadingArgs};

/// `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Session directory of before.
    #[arg(value_name = "BEFORE.coh")]
    pub before: PathBuf,
    /// Session directory of after.
    #[arg(value_name = "AFTER.coh")]
    pub after: PathBuf,
    /// Print JSON (schema 1) instead of text.
    #[arg(long)]
    pub json: bool,
    /// Exit with code 1 when AFTER has a finding that BEFORE has not.
    #[arg(long)]
    pub check: bool,
    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
}
