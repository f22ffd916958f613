//! `report --stats`: session → fold → table → text, JSON or CSV.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use super::{
    args::{ReportArgs, SplitBy},
    output,
    reading::{self, Reading},
    report::{line_size, modules_of},
    stats_names,
};
use crate::{
    access::CostUnit,
    event::Batch,
    session::Meta,
    source::{SourceKind as _, emulate, ibs, pebs, timer, watch},
    statistics::{self, Fold, Looked, Options, Per, Slices, Table, TextOptions},
};

/// Columns of the text.
const WIDTH: usize = 100;

/// Prints the statistics of a session, or which there are.
pub(super) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let file = args.output.output.as_deref();
    if args.stats.list {
        output::write_text(&statistics::list(), file)?;
        return Ok(ExitCode::SUCCESS);
    }
    let table = of_session(args)?;
    let name = reading::name(args.session());
    let rendered = if args.stats.csv {
        statistics::csv(&table)
    } else if args.output.json {
        statistics::json(&table, &name)
    } else {
        let options = TextOptions {
            width: WIDTH,
            ascii: !output::unicode(),
            all: args.output.verbose,
        };
        statistics::text(&table, &name, options)
    };
    output::write_text(&rendered, file)?;
    Ok(ExitCode::SUCCESS)
}

fn of_session(args: &ReportArgs) -> Result<Table> {
    // What was mistyped is said before anything is read.
    let selected = statistics::select(args.stats.names())?;
    let path = args.session();
    let name = || path.display().to_string();
    let line_size = line_size(args.analysis.line_size);
    let mut session = Reading::open(path, line_size, "counting", args.reading.quiet)?;
    let slices = slices(session.session().meta(), args.stats.interval).with_context(name)?;
    let mut fold = Fold::new(Options {
        slices,
        per: per(args.stats.per),
        statistics: selected,
        line_size,
        looked: looked(session.session().meta()),
    })
    .with_context(name)?;
    let mut batch = Batch::default();
    while session.next_batch(&mut batch)? {
        fold.feed(&batch).with_context(name)?;
        batch.clear();
    }
    session.clear();
    if fold.keys().len() > 1 && per(args.stats.per).is_by_name() {
        let modules = modules_of(session.session().meta());
        let names = loop {
            let names = stats_names::of(&fold, per(args.stats.per), line_size, &modules);
            // Somebody wrote to a file while it was read: what it said then is left out. Each time, there are fewer of them.
            if !modules.recheck() {
                break names;
            }
        };
        fold.name(&names);
    }
    let caveats = session.session().caveats();
    Ok(Table {
        caveats: caveats.iter().map(ToString::to_string).collect(),
        ..fold.finish().with_context(name)?
    })
}

fn slices(meta: &Meta, interval_ns: Option<u64>) -> Result<Slices> {
    let start_ns = match (meta.start_ns, interval_ns) {
        (Some(start_ns), _) => start_ns,
        (None, None) => 0,
        (None, Some(_)) => {
            bail!("it does not say when it began, so it cannot be cut: leave --interval away")
        }
    };
    Ok(Slices::new(start_ns, meta.end_ns, interval_ns)?)
}

fn per(split: SplitBy) -> Per {
    match split {
        SplitBy::All => Per::All,
        SplitBy::Cpu => Per::Cpu,
        SplitBy::Thread => Per::Thread,
        SplitBy::Process => Per::Process,
        SplitBy::Function => Per::Function,
        SplitBy::Line => Per::Line,
        SplitBy::Object => Per::Object,
    }
}

/// Who observed the run, as far as its recorder said.
fn looked(meta: &Meta) -> Looked {
    let by = |names: &[&str]| {
        let mut sources = meta.sources.iter();
        sources.any(|source| names.contains(&source.name.as_str()))
    };
    Looked {
        timer: by(&[timer::KIND.name()]),
        pmu: by(&[ibs::KIND.name(), pebs::KIND.name()])
            || meta.cost_unit == CostUnit::LatencyCycles,
        emulator: by(&[emulate::KIND.name()]) || meta.cost_unit == CostUnit::Transactions,
        windows: by(&[watch::NAME]),
    }
}
