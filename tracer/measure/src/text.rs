//! Costs as a table.

use std::{collections::BTreeMap, fmt::Write as _};

use cohtrace_platform::sys::line_loops::Operation;

use crate::{
    costs::{Doubt, MachineCosts, PairCosts, Quantiles},
    state::State,
    sweep::{Contended, Sweep},
};

/// Columns of the table, each with its head.
const COLUMNS: [(Operation, &str); 5] = [
    (Operation::ChainedLoad, "chained load"),
    (Operation::IndependentLoad, "indep. load"),
    (Operation::StoreFence, "store+fence"),
    (Operation::ExchangeAdd, "exchange-add"),
    (Operation::CompareSwap, "compare-swap"),
];

/// CPUs whose pairs are shown with a number each; those of more have the number of their class.
const MOST_WITH_NUMBERS: usize = 16;

/// All that was measured, for people.
pub fn all(costs: &MachineCosts) -> String {
    let mut out = String::new();
    if !costs.complete {
        out.push_str("Not all was measured: there was no time for it.\n\n");
    }
    if !costs.classes.is_empty() {
        out.push_str("A load of a line that the other CPU has modified, nanoseconds:\n\n");
        out.push_str(&map(costs));
        out.push('\n');
    }
    for (class, n) in costs.classes.iter().zip(1..) {
        let pairs = match class.pairs.len() {
            1 => "1 pair".to_owned(),
            pairs => format!("{pairs} pairs"),
        };
        let distances = match &class.distances[..] {
            [] => "of which the kernel says nothing".to_owned(),
            names => format!("by the kernel {}", names.join(", ")),
        };
        let _ = writeln!(out, "class {n}: {:.1} ns, {pairs}, {distances}", class.ns);
    }
    for pair in &costs.pairs {
        out.push('\n');
        out.push_str(&table(pair));
    }
    for sweep in &costs.contention {
        out.push('\n');
        out.push_str(&curve(sweep));
    }
    for doubt in &costs.doubts {
        let _ = write!(out, "\nNote: {}\n", words(doubt));
    }
    out
}

/// Pairs as a matrix: a number each, or in large machines that of its class.
fn map(costs: &MachineCosts) -> String {
    let mut cpus: Vec<u32> = (costs.map.iter())
        .flat_map(|passage| [passage.own, passage.other])
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let large = cpus.len() > MOST_WITH_NUMBERS;
    let mut cells: BTreeMap<(u32, u32), String> = BTreeMap::new();
    for passage in &costs.map {
        let pair = (passage.own, passage.other);
        let class = costs
            .classes
            .iter()
            .position(|class| class.pairs.contains(&pair));
        let cell = match class {
            Some(class) if large => {
                char::from_digit(class as u32 + 1, 36).map_or_else(|| "#".to_owned(), String::from)
            }
            _ => format!("{:.1}", passage.ns),
        };
        cells.insert(pair, cell.clone());
        // One way stands for both, unless both were looked at.
        cells.entry((pair.1, pair.0)).or_insert(cell);
    }
    let mut out = String::new();
    let width = if large { 1 } else { 7 };
    if !large {
        let _ = write!(out, "{:4}", "");
        for cpu in &cpus {
            let _ = write!(out, "{cpu:>width$}");
        }
        out.push('\n');
    }
    for own in &cpus {
        let _ = write!(out, "{own:>4}");
        if large {
            out.push(' ');
        }
        for other in &cpus {
            let unknown = if own == other { "-" } else { "." };
            let cell = cells
                .get(&(*own, *other))
                .map_or(unknown, |cell| cell.as_str());
            let _ = write!(out, "{cell:>width$}");
        }
        out.push('\n');
    }
    out
}

/// A line model that errs by more than this part of the most that others add, is of other costs than those of the curve.
const FAR_OFF: f64 = 0.25;

/// What others' accesses add, and how well the models say it.
fn curve(sweep: &Sweep) -> String {
    let mut out = String::new();
    let what = match sweep.contended {
        Contended::Line => "exchanges of one word",
        Contended::Memory => "loads from memory",
    };
    let _ = writeln!(
        out,
        "CPU {}, {what}, while CPU {} does the same. Alone one takes {:.1} ns with the rest after it.\n",
        sweep.own, sweep.other, sweep.alone_ns
    );
    let _ = writeln!(
        out,
        "{:>14} {:>10} {:>12} {:>12}",
        "other, per us", "added, ns", "finds it gone", "line model"
    );
    for point in &sweep.points {
        let gone = point
            .modelled_ns
            .map(|_| format!("{:.0} %", 100.0 * point.share_gone));
        let model = point.modelled_ns.map(|ns| format!("{ns:.1}"));
        let dash = || "-".to_owned();
        let _ = writeln!(
            out,
            "{:>14.2} {:>10.1} {:>12} {:>12}",
            point.others_per_us,
            point.added_ns,
            gone.unwrap_or_else(dash),
            model.unwrap_or_else(dash)
        );
    }
    if let Some(rms) = sweep.line_model_rms_ns {
        let _ = writeln!(out, "line model: {rms:.1} ns off (root mean square)");
        let most = sweep
            .points
            .iter()
            .map(|point| point.added_ns)
            .fold(0.0, f64::max);
        if rms > FAR_OFF * most {
            out.push_str(
                "  That is far off: the CPUs were placed otherwise when their costs were measured. Measure again.\n",
            );
        }
    }
    match sweep.queue {
        Some(queue) => {
            let _ = writeln!(
                out,
                "closed queue (M/D/1): {:.1} ns off, with a service time of {:.1} ns",
                queue.rms_ns, queue.service_ns
            );
        }
        None => {
            out.push_str("closed queue (M/D/1): not loaded, latency rose by less than a tenth\n");
        }
    }
    out
}

fn words(doubt: &Doubt) -> String {
    let list = |ns: &[f64]| -> String {
        let ns: Vec<String> = ns.iter().map(|ns| format!("{ns:.1}")).collect();
        ns.join(" and ")
    };
    match doubt {
        Doubt::Moved { own, other, ns } => format!(
            "CPUs {own} and {other} were moved by the host while they were measured: {} ns. Each placement has a table.",
            list(ns)
        ),
        Doubt::Unlike { distance, ns } => format!(
            "pairs that are {distance} by the kernel's words are not alike: {} ns. What was measured is believed.",
            list(ns)
        ),
        Doubt::Cores {
            own,
            other,
            kernel_says_one,
            ratio,
        } => format!(
            "CPUs {own} and {other} are {} by the kernel's words, but {ratio:.2} times as slow together as alone.",
            if *kernel_says_one {
                "one core"
            } else {
                "two cores"
            }
        ),
        Doubt::Emulated { by } => format!(
            "the processors of this machine are a program ({by}): nothing here says what lines cost on one that is not."
        ),
        Doubt::Busy { own, other } => format!(
            "CPUs {own} and {other} have too much to do: threads were taken off them all the time, and a curve is missing."
        ),
        Doubt::NoDifference { own, other } => format!(
            "lines of CPU {other} cost CPU {own} no more than its own: an emulator without caches, or one CPU behind both. \
             Nothing here says what sharing costs."
        ),
    }
}

/// A pair's costs, for people; all times in nanoseconds, as the median of blocks with 5 and 95 %.
pub fn table(pair: &PairCosts) -> String {
    let mut out = String::new();
    let ghz = pair.tick_cycles / pair.tick_ns;
    let _ = writeln!(
        out,
        "CPU {}, for lines that CPU {} had before{}. Nanoseconds per line: median (5 to 95 % of blocks). Core at {ghz:.2} GHz.\n",
        pair.own,
        pair.other,
        if pair.home == pair.own {
            String::new()
        } else {
            format!(", in memory of CPU {}'s node", pair.home)
        }
    );
    let _ = write!(out, "{:16}", "line is");
    for (_, head) in COLUMNS {
        let _ = write!(out, " {head:>22}");
    }
    out.push('\n');
    for state in State::ALL {
        let cells = COLUMNS.map(|(operation, _)| pair.cost(state, operation).map(|cost| cost.ns));
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "{:16}", state.words());
        for cell in cells {
            let text = cell.map_or_else(|| "-".to_owned(), quantiles);
            let _ = write!(out, " {text:>22}");
        }
        out.push('\n');
    }
    if !pair.restart.is_empty() {
        out.push_str("\nUntil the word is there, and work that fits behind a miss:\n");
    }
    for restart in &pair.restart {
        let state = State::ALL
            .into_iter()
            .find(|state| state.name() == restart.state);
        let _ = writeln!(
            out,
            "{:16} {:>8.1} of {:.1}, fill {:.1}",
            state.map_or(&*restart.state, |state| state.words()),
            restart.restart_ns,
            restart.back_to_back_ns,
            restart.fill_ns
        );
    }
    if !pair.hand_over.is_empty() {
        out.push_str("\nA word from one to the other, one way:\n");
    }
    for way in &pair.hand_over {
        let _ = writeln!(out, "{:16} {:>22}", way.way, quantiles(way.ns));
    }
    if let Some(ratio) = pair.same_core_ratio {
        let _ = writeln!(
            out,
            "\nWork that fills a core takes {ratio:.2} times as long while the other one does the same."
        );
    }
    if let Some(ns) = pair.own_locked_ns {
        let _ = writeln!(
            out,
            "\nA locked instruction on an own line takes {ns:.1} ns where many follow each other."
        );
    }
    if pair.disturbed_blocks > 0 {
        let _ = writeln!(
            out,
            "\n{} blocks were left out: a thread was taken off its CPU meanwhile.",
            pair.disturbed_blocks
        );
    }
    out
}

fn quantiles(ns: Quantiles) -> String {
    let digits = if ns.median < 10.0 { 2 } else { 1 };
    format!(
        "{:.digits$} ({:.digits$}-{:.digits$})",
        ns.median, ns.low, ns.high
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::{Cost, PairClass, Passage, SCHEMA};

    fn machine(cpus: u32) -> MachineCosts {
        let pairs = (0..cpus).flat_map(|own| (own + 1..cpus).map(move |other| (own, other)));
        let pairs: Vec<(u32, u32)> = pairs.collect();
        let ns = |other: u32| if other == 1 { 12.5 } else { 70.0 };
        let of = |near: bool| {
            (pairs.iter().copied())
                .filter(|(_, other)| (*other == 1) == near)
                .collect()
        };
        MachineCosts {
            schema: SCHEMA,
            boot_id: String::new(),
            begun_unix_s: 0,
            took_s: 1.0,
            complete: true,
            map: (pairs.iter())
                .map(|(own, other)| Passage {
                    own: *own,
                    other: *other,
                    ns: ns(*other),
                })
                .collect(),
            classes: [true, false]
                .map(|near| PairClass {
                    ns: if near { 12.5 } else { 70.0 },
                    pairs: of(near),
                    distances: vec!["one-node".to_owned()],
                })
                .to_vec(),
            pairs: Vec::new(),
            contention: Vec::new(),
            doubts: Vec::new(),
        }
    }

    #[test]
    fn pairs_are_a_matrix_of_times_and_in_a_large_machine_of_classes() {
        let small = all(&machine(3));
        assert!(small.contains("   0      -   12.5   70.0\n"), "{small}");
        assert!(small.contains("   2   70.0   70.0      -\n"), "{small}");
        assert!(
            small.contains("class 1: 12.5 ns, 1 pair, by the kernel one-node"),
            "{small}"
        );
        let large = all(&machine(20));
        assert!(
            large.contains(&format!("   0 -1{}\n", "2".repeat(18))),
            "{large}"
        );
    }

    #[test]
    fn what_was_not_looked_at_is_a_dot_and_a_run_that_was_cut_short_says_so() {
        let mut costs = machine(3);
        costs.map.pop();
        costs.complete = false;
        let text = all(&costs);
        assert!(text.contains("   2   70.0      .      -\n"), "{text}");
        assert!(text.starts_with("Not all was measured"), "{text}");
    }

    #[test]
    fn each_doubt_is_a_sentence_with_its_figures() {
        let mut costs = machine(2);
        costs.doubts = vec![
            Doubt::Moved {
                own: 0,
                other: 1,
                ns: vec![13.0, 73.0],
            },
            Doubt::NoDifference { own: 0, other: 1 },
            Doubt::Emulated {
                by: "QEMU TCG".to_owned(),
            },
        ];
        let text = all(&costs);
        assert!(
            text.contains("moved by the host while they were measured: 13.0 and 73.0 ns"),
            "{text}"
        );
        assert!(text.contains("cost CPU 0 no more than its own"), "{text}");
        assert!(text.contains("are a program (QEMU TCG)"), "{text}");
    }

    #[test]
    fn a_row_has_what_was_measured_and_a_dash_for_what_was_not() {
        let ns = Quantiles {
            blocks: 60,
            low: 12.0,
            median: 12.3,
            high: 14.0,
        };
        let pair = PairCosts {
            own: 0,
            other: 1,
            tick_ns: 0.5,
            tick_cycles: 2.0,
            costs: vec![Cost {
                state: State::OtherModified.name().to_owned(),
                operation: Operation::StoreFence.name().to_owned(),
                ns,
            }],
            third: None,
            home: 0,
            sittings: 6,
            restart: Vec::new(),
            hand_over: Vec::new(),
            same_core_ratio: None,
            own_locked_ns: None,
            disturbed_blocks: 0,
        };
        let text = table(&pair);
        assert!(text.contains("Core at 4.00 GHz"), "{text}");
        let row = text
            .lines()
            .find(|line| line.starts_with("other, modified"));
        let row: Vec<&str> = row
            .expect("a row")
            .split("  ")
            .filter(|cell| !cell.is_empty())
            .collect();
        let row: Vec<&str> = row.into_iter().map(str::trim).collect();
        assert_eq!(row[1..], ["-", "-", "12.3 (12.0-14.0)", "-", "-"]);
        assert!(
            !text.contains("own, L1") && !text.contains("left out"),
            "{text}"
        );
    }
}
