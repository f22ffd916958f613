//! How long a word takes from one CPU to another, beside the programs that are known for these numbers.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::figures::{Spread, Table, spread};

use super::{Bench, Plan};

pub(super) static BENCH: Bench = Bench {
    name: "measure",
    about: "a word's way between CPUs 0 and 1: cohtrace measure, core-to-core-latency, c2clat",
    rounds: 5,
    needs_root: false,
    takes: |plan| plan.rounds * Duration::from_secs(6),
    run,
};

/// A way of handing over, with who else measures it.
struct Way {
    name: &'static str,
    peer: &'static str,
    install: &'static str,
    arguments: &'static [&'static str],
    /// One way, nanoseconds, of what the peer printed.
    read: fn(&str) -> Option<f64>,
}

const WAYS: [Way; 2] = [
    Way {
        name: "compare-swap",
        peer: "core-to-core-latency",
        install: "cargo install core-to-core-latency",
        arguments: &["1000", "300", "--cores", "0,1", "--csv"],
        // The second line of a matrix of pairs: `57.5,`.
        read: |text| text.lines().nth(1)?.split(',').next()?.trim().parse().ok(),
    },
    Way {
        name: "store-load",
        peer: "c2clat",
        install: "build it from its source: github.com/rigtorp/c2clat",
        arguments: &[],
        // ` CPU    0    1`, then `   0    0   57`.
        read: |text| {
            let row = text
                .lines()
                .find(|line| line.split_whitespace().next() == Some("0"));
            row?.split_whitespace().nth(2)?.parse().ok()
        },
    },
];

fn run(plan: &Plan) -> Result<()> {
    let mut ours: [Vec<f64>; 2] = Default::default();
    let mut theirs: [Vec<f64>; 2] = Default::default();
    for _ in 0..plan.rounds {
        let document = printed(
            plan.cohtrace()
                .args(["measure", "-q", "--pairs", "0-1", "--json"]),
        )?;
        let document: serde_json::Value =
            serde_json::from_str(&document).context("reading JSON")?;
        for (n, way) in WAYS.iter().enumerate() {
            let ways = document["pairs"][0]["hand_over"].as_array();
            let one = ways.and_then(|ways| ways.iter().find(|one| one["way"] == way.name));
            let median = one.and_then(|one| one["ns"]["median"].as_f64());
            ours[n].push(median.context("a way is missing in what was measured")?);
            if let Ok(text) = printed(Command::new(way.peer).args(way.arguments)) {
                theirs[n].push((way.read)(&text).with_context(|| format!("{}: {text}", way.peer))?);
            }
        }
    }
    let mut table = Table::new(&["one way, ns", "cohtrace measure", "peer", "cohtrace : peer"]);
    for ((way, ours), theirs) in WAYS.iter().zip(&ours).zip(&theirs) {
        let ratio = Spread::of(ours).zip(Spread::of(theirs));
        let peer = if theirs.is_empty() {
            format!("{} is not installed: {}", way.peer, way.install)
        } else {
            format!("{} {}", way.peer, spread(theirs, 1))
        };
        table.row([
            way.name.to_owned(),
            spread(ours, 1),
            peer,
            ratio.map_or_else(String::new, |(ours, theirs)| {
                format!("{:.2}", ours.median / theirs.median)
            }),
        ]);
    }
    print!("{table}");
    Ok(())
}

fn printed(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
