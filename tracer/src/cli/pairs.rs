//! `pairs`: the read-then-write pairs of a session.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::{args::PairsArgs, output, report};
use crate::report::{
    json,
    text::{self, TextOptions},
};

/// Prints the pairs; nothing else of the report.
pub(super) fn run(args: &PairsArgs) -> Result<ExitCode> {
    output::check(None)?;
    let pairs = args.pairs.thresholds();
    let report = report::of_session(&args.session, &args.analysis, pairs, &args.reading)?;
    let rendered = if args.json {
        json::render_pairs(&report)
    } else {
        let options = TextOptions {
            verbose: true,
            ..output::text_options(args.color, None)
        };
        text::render_pairs(&report, options)
    };
    output::write_stdout(&rendered).with_context(|| args.session.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
