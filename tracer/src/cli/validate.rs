//! `validate`: programs that do so many events, counted by the tool's own sources → how the counts err; and loops that are
//! timed → what they cost.

mod cost_table;

use std::{
    fmt::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{GAIN, ValidateArgs},
    gain_tally, output,
    progress::Progress,
    reading::time,
};
use crate::{
    number::grouped,
    sys::stop_signal::StopSignal,
    validate::{
        costs::{self, COSTS, Cost, CostRow, CostStep},
        events::{Counter, EVENTS, Event, NOT_COUNTED},
        report::Document,
        run::{self, Machinery, Plan, Row, SizeRuns, Step},
    },
};

/// Under `--check`: a class that is neither none nor bias.
const EXIT_WRONG: u8 = 1;
/// Under `--check`: something was not counted.
const EXIT_DOUBT: u8 = 3;
/// Before so much is done nobody can tell how long it takes.
const LEAST_DONE: f64 = 0.01;

/// Counts, and prints the table.
pub(super) fn run(args: &ValidateArgs) -> Result<ExitCode> {
    output::check(None)?;
    if args.event.iter().any(|event| event == GAIN) {
        return gains(args);
    }
    let wanted = Wanted::by(args)?;
    let plan = Plan {
        events: wanted.events,
        sizes: args.sizes.clone(),
        runs: args.runs,
        asked_for: |n| n,
    };
    let stop = StopSignal::install().context("installing signal handlers")?;
    let stopped = || stop.arrived();
    let mut machinery = Machinery::new(args.qemu.clone())?;
    let mut progress = Progress::new(args.quiet);
    let started = Instant::now();
    let mut tell = |step: Step| progress.update(|| line(step, args.runs, started.elapsed()));
    let rows = run::run(&plan, &mut machinery, &stopped, &mut tell);
    let mut tell = |step: CostStep| progress.update(|| cost_line(step, args.runs));
    let costs = costs::measure(
        &wanted.costs,
        args.runs,
        &mut machinery,
        &stopped,
        &mut tell,
    );
    progress.clear();
    let text = if args.json {
        let document = Document::new(args.runs, &rows, &costs);
        serde_json::to_string_pretty(&document).context("writing JSON")? + "\n"
    } else {
        text(&rows, &costs, args.runs)
    };
    output::write_stdout(&text)?;
    let by_name = !(args.event.is_empty() && args.source.is_empty());
    let check = args.check.then_some(Check { by_name });
    Ok(exit_code(check, &rows, &costs))
}

/// What came of predicted gains, over all that was compared: no program is run for it.
fn gains(args: &ValidateArgs) -> Result<ExitCode> {
    if args.event.len() > 1 {
        bail!("--event {GAIN} is what `diff` has compared so far, and stands alone");
    }
    let scores = gain_tally::all()?;
    let text = if args.json {
        serde_json::to_string_pretty(&scores).context("writing JSON")? + "\n"
    } else if scores.is_empty() {
        "No predicted gain was compared yet: record before and after with --hold, then run `cohtrace diff`.\n".to_owned()
    } else {
        gain_tally::text(&scores)
    };
    output::write_stdout(&text)?;
    Ok(match (args.check, scores.is_empty()) {
        (true, true) => ExitCode::from(EXIT_DOUBT),
        (true, false) if !gain_tally::is_right(&scores) => ExitCode::from(EXIT_WRONG),
        _ => ExitCode::SUCCESS,
    })
}

/// What was asked for, in the order of the tables.
struct Wanted {
    events: Vec<&'static Event>,
    costs: Vec<&'static Cost>,
}

impl Wanted {
    fn by(args: &ValidateArgs) -> Result<Wanted> {
        let of = |asked: &[String], name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
        let is_wanted = |name: &str, counter: Counter| {
            of(&args.event, name) && of(&args.source, counter.name())
        };
        let events = EVENTS.iter();
        let costs = COSTS.iter();
        let wanted = Wanted {
            events: events
                .filter(|event| is_wanted(event.name, event.counter))
                .collect(),
            costs: costs
                .filter(|cost| is_wanted(cost.name, Counter::Clock))
                .collect(),
        };
        if wanted.events.is_empty() && wanted.costs.is_empty() {
            bail!(
                "no event of {} is counted by {}: `cohtrace validate --help` names both",
                args.event.join(", "),
                args.source.join(", ")
            );
        }
        Ok(wanted)
    }
}

/// `--check`.
#[derive(Clone, Copy)]
struct Check {
    /// Events or sources were named: then what the machine has not is missing, too.
    by_name: bool,
}

fn exit_code(check: Option<Check>, rows: &[Row], costs: &[CostRow]) -> ExitCode {
    let Some(Check { by_name }) = check else {
        return ExitCode::SUCCESS;
    };
    let is_missing =
        |missing: &Option<String>, absent: bool| missing.is_some() && (by_name || !absent);
    let counted = |row: &&Row| row.missing.is_none();
    let mut lacking = (rows.iter().map(|row| (&row.missing, row.absent)))
        .chain(costs.iter().map(|row| (&row.missing, row.absent)));
    if rows.iter().filter(counted).any(|row| !row.is_right()) {
        ExitCode::from(EXIT_WRONG)
    } else if lacking.any(|(missing, absent)| is_missing(missing, absent)) {
        ExitCode::from(EXIT_DOUBT)
    } else {
        ExitCode::SUCCESS
    }
}

fn cost_line(step: CostStep, runs: u32) -> String {
    format!("cost of {}: run {} of {runs}", step.cost.name, step.run)
}

/// All for people.
fn text(rows: &[Row], costs: &[CostRow], runs: u32) -> String {
    let mut out = String::new();
    if !rows.is_empty() {
        out = table(rows, runs);
    }
    if !costs.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &cost_table::table(costs, runs);
    }
    out.push_str("\nNot counted by any source:\n");
    for (event, why) in NOT_COUNTED {
        let _ = writeln!(out, "  {event}: {why}");
    }
    out
}

fn line(step: Step, runs: u32, took: Duration) -> String {
    let (event, n) = (step.event, grouped(step.n));
    let now = format!(
        "{} by {}: {n}, run {} of {runs}",
        event.name,
        event.counter.name(),
        step.run
    );
    if step.done < LEAST_DONE {
        return now;
    }
    let left = took.as_secs_f64() * (1.0 - step.done) / step.done;
    format!("{:.0} %, {} left: {now}", step.done * 100.0, time(left))
}

/// The rows for people: a line for each size, and the class at the first one.
fn table(rows: &[Row], planned: u32) -> String {
    let mut out = String::new();
    put(
        &mut out,
        ["event", "source", "n", "predicted", "mean", "deviation"],
        "difference",
        "class",
    );
    for row in rows {
        let mut class = row
            .class
            .map_or_else(String::new, |class| class.to_string());
        if row.lost > 0 {
            let _ = write!(class, ", {} lost", grouped(row.lost));
        }
        if let Some(missing) = &row.missing {
            let how = if row.sizes.is_empty() {
                "not counted"
            } else {
                "not counted to the end"
            };
            class = format!("{how}: {missing}");
        }
        let (mut name, mut source) = (row.event.name, row.event.counter.name());
        if row.sizes.is_empty() {
            put(&mut out, [name, source, "", "", "", ""], "", &class);
        }
        for runs in &row.sizes {
            let said = said(runs, planned, std::mem::take(&mut class));
            put(
                &mut out,
                [
                    std::mem::take(&mut name),
                    std::mem::take(&mut source),
                    &grouped(runs.n),
                    &number(runs.size.predicted),
                    &number(runs.size.mean()),
                    &number(runs.size.deviation()),
                ],
                &format!("{:+.2} %", runs.size.difference() * 100.0),
                &said,
            );
        }
    }
    out
}

/// The class; how many runs there were, where some lack; and of samples, how many runs were as chance has it.
fn said(runs: &SizeRuns, planned: u32, class: String) -> String {
    let all = runs.size.counted.len();
    let few = (all < planned as usize).then(|| format!("{all} of {planned} runs"));
    let likely = runs.likely;
    let likely = likely.map(|likely| format!("{likely} of {all} runs within the 99 % bound"));
    let parts = [Some(class).filter(|class| !class.is_empty()), few, likely];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

/// A line of the table: words to the left, numbers to the right.
fn put(out: &mut String, cells: [&str; 6], difference: &str, class: &str) {
    let [event, source, n, predicted, mean, deviation] = cells;
    let line = format!(
        "{event:20} {source:9}{n:>10}{predicted:>12}{mean:>14}{deviation:>12}{difference:>12}  {class}"
    );
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Whole numbers without a fraction, others with a digit of one.
fn number(value: f64) -> String {
    let whole = value.trunc();
    let tenths = ((value - whole) * 10.0).round();
    if tenths.abs() < 1.0 {
        grouped(whole.max(0.0) as u64)
    } else if tenths >= 10.0 {
        grouped(whole as u64 + 1)
    } else {
        format!("{}.{tenths:.0}", grouped(whole.max(0.0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::events::named;

    /// Counts these, and no other size.
    struct Fixed<'a>(&'a [(u64, f64)]);
    impl run::Counts for Fixed<'_> {
        fn count(
            &mut self,
            _: &Event,
            n: u64,
            _: &dyn Fn() -> bool,
        ) -> Result<run::Run, crate::validate::NotCounted> {
            let found = self.0.iter().find(|(size, _)| *size == n);
            let (_, count) = found.ok_or(crate::validate::NotCounted::NoWindow)?;
            Ok(run::Run {
                counted: run::Counted {
                    count: *count,
                    lost: 0,
                },
                is_likely: None,
            })
        }
    }

    fn row(event: &str, counted: &[(u64, f64)]) -> Row {
        let plan = Plan {
            events: vec![named(event).unwrap()],
            sizes: counted.iter().map(|(n, _)| *n).collect(),
            runs: 2,
            asked_for: |n| n,
        };
        run::run(&plan, &mut Fixed(counted), &|| false, &mut |_| ()).remove(0)
    }

    #[test]
    fn the_table_has_a_line_for_each_size_and_the_class_once() {
        let rows = [row("loads", &[(1, 6.0), (1000, 1005.5)])];
        let text = text(&rows, &[], 2);
        let lines: Vec<&str> = text.lines().take(3).collect();
        assert_eq!(
            lines,
            [
                "event                source            n   predicted          mean   deviation  difference  class",
                "loads                emulate           1           1             6           0   +500.00 %  bias (+5.0)",
                "                                   1,000       1,000       1,005.5           0     +0.55 %",
            ]
        );
        assert!(text.contains("HITM of a PMU: "));
    }

    #[test]
    fn only_a_wrong_class_fails_a_check_and_what_was_not_counted_is_no_success() {
        let code = |check, rows: &[Row]| format!("{:?}", exit_code(check, rows, &[]));
        let of = |code| format!("{:?}", ExitCode::from(code));
        let right = row("loads", &[(1, 1.0), (1000, 1000.0)]);
        let wrong = row("stores", &[(1, 2.0), (1000, 2000.0)]);
        let mut missing = right.clone();
        missing.missing = Some("no emulator".to_owned());
        let [all, named] = [false, true].map(|by_name| Some(Check { by_name }));
        assert_eq!(code(all, std::slice::from_ref(&right)), of(0));
        assert_eq!(code(all, &[right.clone(), wrong.clone()]), of(1));
        assert_eq!(code(all, &[missing.clone(), wrong.clone()]), of(1));
        assert_eq!(code(all, &[right.clone(), missing.clone()]), of(3));
        assert_eq!(code(None, std::slice::from_ref(&wrong)), of(0));
        // What the machine has not is missing only where it was asked for.
        missing.absent = true;
        let rows = [right, missing];
        assert_eq!([all, named].map(|check| code(check, &rows)), [of(0), of(3)]);
    }

    #[test]
    fn a_cost_that_does_not_repeat_is_no_failure_and_one_that_was_not_measured_is() {
        let mut cost = CostRow {
            cost: &COSTS[0],
            charges: [1.0, 2.0, 3.0]
                .map(|cycles| costs::Charge { cycles, ns: 1.0 })
                .to_vec(),
            missing: None,
            absent: false,
        };
        let check = Some(Check { by_name: false });
        let code =
            |cost: &CostRow| format!("{:?}", exit_code(check, &[], std::slice::from_ref(cost)));
        let of = |code| format!("{:?}", ExitCode::from(code));
        assert_eq!((cost.repeats(), code(&cost)), (Some(false), of(0)));
        cost.missing = Some("no program".to_owned());
        assert_eq!(code(&cost), of(3));
    }

    #[test]
    fn numbers_have_a_digit_of_fraction_where_they_have_one() {
        let all = [0.0, 0.04, 0.5, 1_234.96, 1_234.9, 99.0].map(number);
        assert_eq!(all, ["0", "0", "0.5", "1,235", "1,234.9", "99"]);
    }
}
