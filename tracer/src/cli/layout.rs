//! `layout`: the type of a finding's object.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use super::{
    args::{Format, LayoutArgs, PairArgs},
    output, report,
};
use crate::{names::Resolver, report::layout};

/// Prints the layout.
pub(super) fn run(args: &LayoutArgs) -> Result<ExitCode> {
    output::check(None)?;
    let pairs = PairArgs::standard().thresholds();
    let replayed = report::replay(&args.session, &args.analysis, pairs, &args.reading)?;
    let pipeline = &replayed.pipeline;
    let names = Resolver::new(&pipeline.spaces, &replayed.modules);
    let found = layout::build(
        &pipeline.judge_all(),
        args.finding,
        &names,
        &pipeline.tally,
        &replayed.facts,
    )
    .with_context(|| args.session.display().to_string())?;
    let rendered = if args.json || args.format == Format::Json {
        layout::render_json(&found)
    } else {
        layout::render_text(&found, output::text_options(args.color, None))
    };
    output::write_stdout(&rendered)?;
    Ok(ExitCode::SUCCESS)
}
