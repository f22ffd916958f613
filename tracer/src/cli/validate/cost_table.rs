//! Costs for people: a line each, and what follows from them.

use std::fmt::Write as _;

use crate::validate::costs::{CostRow, Derived};

/// The costs, and whether each repeats.
pub(super) fn table(rows: &[CostRow], planned: u32) -> String {
    let mut out = String::new();
    let heading = ["cycles", "least", "most", "ns"].map(str::to_owned);
    put(&mut out, "cost", heading, "", "what is charged for");
    for row in rows {
        let about = row.cost.about;
        let (Some(median), Some((least, most))) = (row.median(), row.range()) else {
            let why = row.missing.as_deref().unwrap_or("no run");
            put(
                &mut out,
                row.cost.name,
                Default::default(),
                about,
                &format!("not measured: {why}"),
            );
            continue;
        };
        let numbers = [median.cycles, least.cycles, most.cycles, median.ns];
        put(
            &mut out,
            row.cost.name,
            numbers.map(number),
            about,
            &said(row, planned),
        );
    }
    let derived = Derived::of(rows);
    let lines = [
        (
            "a branch that was predicted wrongly",
            derived.branch_miss_cycles,
            "cycles",
        ),
        (
            "64 bytes of code beyond the instruction cache",
            derived.code_line_cycles,
            "cycles more",
        ),
        ("issue width", derived.issue_width, "additions in a cycle"),
    ];
    for (what, value, unit) in lines {
        if let Some(value) = value {
            let _ = writeln!(out, "{what}: {value:.1} {unit}");
        }
    }
    out
}

/// What is to be said of the runs; nothing where all is as planned.
fn said(row: &CostRow, planned: u32) -> String {
    let all = row.charges.len();
    let few = (all < planned as usize).then(|| format!("{all} of {planned} runs"));
    let noisy = (row.repeats() == Some(false)).then(|| "does not repeat within 5 %".to_owned());
    let parts: Vec<String> = [few, row.missing.clone(), noisy]
        .into_iter()
        .flatten()
        .collect();
    parts.join("; ")
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

fn put(out: &mut String, name: &str, numbers: [String; 4], about: &str, said: &str) {
    let [cycles, least, most, ns] = numbers;
    let apart = if about.is_empty() || said.is_empty() {
        ""
    } else {
        ": "
    };
    let line = format!("{name:20} {cycles:>9}{least:>9}{most:>9}{ns:>9}  {about}{apart}{said}");
    let _ = writeln!(out, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::costs::{COSTS, Charge};

    fn row(name: &str, cycles: &[f64]) -> CostRow {
        let charge = |cycles: &f64| Charge {
            cycles: *cycles,
            ns: cycles / 4.0,
        };
        let mut costs = COSTS.iter();
        CostRow {
            cost: costs.find(|cost| cost.name == name).unwrap(),
            charges: cycles.iter().map(charge).collect(),
            missing: cycles.is_empty().then(|| "no program".to_owned()),
            absent: false,
        }
    }

    #[test]
    fn a_cost_has_a_line_with_its_spread_and_says_when_it_does_not_repeat() {
        let rows = [
            row("branch-predicted", &[4.0, 4.0, 4.0]),
            row("branch-random", &[12.0, 13.0, 19.0]),
            row("fp-add", &[3.0]),
            row("fp-mul", &[]),
        ];
        let text = table(&rows, 3);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "cost                    cycles    least     most       ns  what is charged for",
                "branch-predicted          4.00     4.00     4.00     1.00  a turn with a branch that never jumps",
                "branch-random            13.00    12.00    19.00     3.25  the same by a random bit: does not repeat within 5 %",
                "fp-add                    3.00     3.00     3.00     0.75  an addition of double precision: 1 of 3 runs",
                "fp-mul                                                     a multiplication: not measured: no program",
                "a branch that was predicted wrongly: 18.0 cycles",
            ]
        );
    }
}
