//! `diff`: what changed from one session to another.

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, Result};

use super::{args::DiffArgs, gain_tally, output, report};
use crate::{
    access::Cost,
    report::{
        difference::{self, Session},
        model::Report,
    },
};

/// Prints the difference.
pub(super) fn run(args: &DiffArgs) -> Result<ExitCode> {
    output::check(args.output.as_deref())?;
    let (before, before_cost) = read(&args.before, args)?;
    let (after, after_cost) = read(&args.after, args)?;
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let difference = difference::build(
        Session {
            name: &names[0],
            report: &before,
            cost: before_cost,
        },
        Session {
            name: &names[1],
            report: &after,
            cost: after_cost,
        },
    );
    let mut rendered = if args.json {
        difference::render_json(&difference)
    } else {
        difference::render_text(
            &difference,
            output::text_options(args.color, args.output.as_deref()),
        )
    };
    if !difference.gains.is_empty() {
        // The same place may hold another session tomorrow.
        let started = |report: &Report| report.run.observed.started_ns.unwrap_or(0);
        let sessions = [
            format!("{}@{}", names[0], started(&before)),
            format!("{}@{}", names[1], started(&after)),
        ];
        match gain_tally::keep(&difference, &sessions) {
            Ok(scores) if !args.json => rendered += &gain_tally::text(&scores),
            Ok(_) => {}
            Err(error) => output::say(&format!("gains were not kept for the tally: {error:#}")),
        }
    }
    output::write_text(&rendered, args.output.as_deref())?;
    let found = args.check && difference.new_findings() > 0;
    Ok(ExitCode::from(u8::from(found)))
}

/// A session's report, and the sum of all costs in it.
fn read(path: &Path, args: &DiffArgs) -> Result<(Report, Cost)> {
    let replayed = report::replay(path, &args.analysis, args.pairs.thresholds(), &args.reading)
        .with_context(|| path.display().to_string())?;
    let cost = replayed.pipeline.tally.whole_cost();
    let report = report::make(&replayed.pipeline, &replayed.modules, &replayed.facts);
    Ok((report, cost))
}
