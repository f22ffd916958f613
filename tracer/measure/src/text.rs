//! Costs as a table.

use std::fmt::Write as _;

use cohtrace_platform::sys::line_loops::Operation;

use crate::{
    costs::{PairCosts, Quantiles},
    pair::State,
};

/// Columns of the table, each with its head.
const COLUMNS: [(Operation, &str); 5] = [
    (Operation::ChainedLoad, "chained load"),
    (Operation::IndependentLoad, "indep. load"),
    (Operation::StoreFence, "store+fence"),
    (Operation::ExchangeAdd, "exchange-add"),
    (Operation::CompareSwap, "compare-swap"),
];

/// A pair's costs, for people; all times in nanoseconds, as the median of blocks with 5 and 95 %.
pub fn table(pair: &PairCosts) -> String {
    let mut out = String::new();
    let ghz = pair.tick_cycles / pair.tick_ns;
    let _ = writeln!(
        out,
        "CPU {}, for lines that CPU {} had before. Nanoseconds per line: median (5 to 95 % of blocks). Core at {ghz:.2} GHz.\n",
        pair.own, pair.other
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
    use crate::costs::Cost;

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
            restart: Vec::new(),
            hand_over: Vec::new(),
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
