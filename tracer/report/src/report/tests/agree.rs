//! One quantity has one figure: what the text says of generated programs is in the JSON form, and that agrees with itself.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use super::{pipeline::reported, plain};
use crate::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Place, SpaceId, Tid},
    analysis::{AnalysisOptions, LineTable},
    number::{percent, percent_beside},
    report::{
        fixture::LINE,
        model::{ByteRange, Finding, Report},
    },
};

/// What a thread does over and over: line, word of it, how, and how many nanoseconds it waits for that.
type Act = (u64, u64, Op, u32);

/// 3000 samples of each thread, each on a CPU of its own, by turns; a thread does one act after the other.
fn run(threads: &[Vec<Act>]) -> Report {
    let mut table = LineTable::new(AnalysisOptions::default());
    let mut whole = 0;
    let mut samples = 0;
    for n in 0..3000usize {
        for (thread, acts) in threads.iter().enumerate() {
            let number = n % acts.len();
            let (line, word, op, cost) = acts[number];
            let addr = LINE + line * 64 + word * 8;
            let access = Access {
                time_ns: n as u64 * 1_000_000 + thread as u64 * 100_000,
                addr,
                ip: 0x40_1000 + (thread * 16 + number) as u64 * 8,
                cost: Cost(cost),
                pid: Pid(4000),
                tid: Tid(4001 + thread as u32),
                cpu: Cpu(thread as u32),
                size: 8,
                op,
                basis: Basis::Stalled,
                ..Access::BLANK
            };
            (whole, samples) = (whole + 1_000_000, samples + 1);
            let space = SpaceId(0);
            table.observe(&access, Place::Private { space, addr }, space);
        }
    }
    reported(&table, samples, Cost(whole))
}

/// Every number in a JSON value that may be a share.
fn shares(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Number(n) => out.extend(n.as_f64().filter(|n| (0.0..=1.0).contains(n))),
        Value::Array(values) => values.iter().for_each(|value| shares(value, out)),
        Value::Object(fields) => fields.values().for_each(|value| shares(value, out)),
        _ => {}
    }
}

/// The percentages of a text, as they stand there.
fn percentages(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let follows = |pair: &[&str]| pair[1].starts_with('%').then(|| format!("{} %", pair[0]));
    let found = words.windows(2).filter_map(follows);
    found
        .map(|text| text.trim_start_matches('(').to_owned())
        .collect()
}

fn bytes(ranges: &[ByteRange]) -> BTreeSet<u16> {
    let of = |range: &ByteRange| u16::from(range.offset)..u16::from(range.offset) + range.size;
    ranges.iter().flat_map(of).collect()
}

/// The groups of bytes say of threads what the rows say of them.
fn check_groups(finding: &Finding) {
    let mut storing: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
    let mut touching: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
    for row in &finding.accesses {
        for byte in u16::from(row.offset)..u16::from(row.offset) + row.size {
            let tids = || row.threads.iter().map(|thread| thread.tid);
            touching.entry(byte).or_default().extend(tids());
            if row.op != Op::Load {
                storing.entry(byte).or_default().extend(tids());
            }
        }
    }
    for group in &finding.groups {
        let all = bytes(&group.bytes);
        let of = |by: &BTreeMap<u16, BTreeSet<u32>>| -> BTreeSet<u32> {
            let sets = all.iter().filter_map(|byte| by.get(byte));
            sets.flatten().copied().collect()
        };
        let writers: BTreeSet<u32> = group.writers.iter().copied().collect();
        let readers: BTreeSet<u32> = group.readers.iter().copied().collect();
        assert_eq!(writers, of(&storing), "{group:?}");
        assert!(writers.is_disjoint(&readers), "{group:?}");
        assert_eq!(&writers | &readers, of(&touching), "{group:?}");
        let stored: BTreeSet<u16> = all
            .iter()
            .filter(|byte| storing.contains_key(byte))
            .copied()
            .collect();
        assert_eq!(bytes(&group.stored), stored, "{group:?}");
    }
}

/// What holds for a finding by itself, and for a line that is none.
fn check_finding(finding: &Finding, threshold: f64) {
    let cost = &finding.cost;
    let rows: f64 = finding.accesses.iter().map(|row| row.cost_share).sum();
    assert!((rows - cost.stalled_share).abs() < 1e-6, "{finding:#?}");
    assert!(cost.share <= cost.stalled_share + 1e-9, "{finding:#?}");
    if let Some(lines) = &finding.lines {
        let worst: f64 = lines.worst.iter().map(|line| line.share).sum();
        assert!(worst <= cost.stalled_share + 1e-6, "{finding:#?}");
        assert!(lines.half <= lines.count, "{finding:#?}");
    } else {
        check_groups(finding);
    }
    match finding.insignificant_because.as_deref() {
        None => assert!(cost.share >= threshold, "{finding:#?}"),
        Some(because) if because.starts_with("costs less") => {
            assert!(cost.share < threshold, "{finding:#?}");
        }
        Some(_) => {}
    }
}

fn check(report: &Report) {
    let threshold = report.run.threshold;
    for finding in report.findings.iter().chain(&report.insignificant) {
        check_finding(finding, threshold);
    }
    let found: f64 = report
        .findings
        .iter()
        .map(|finding| finding.cost.share)
        .sum();
    assert!(report.run.shared_share.unwrap_or(0.0) >= found - 1e-6);
    let json = serde_json::to_value(report).expect("it serializes");
    let mut known = vec![found.min(1.0)];
    shares(&json, &mut known);
    // Hand-offs that are not of common bytes.
    let kinds = report.findings.iter().filter_map(|finding| finding.kinds);
    known.extend(kinds.map(|kinds| 1.0 - kinds.truly));
    let known: BTreeSet<String> = known
        .iter()
        .flat_map(|share| [percent(*share), percent_beside(*share, threshold)])
        .collect();
    let text = plain(report);
    let said = percentages(&text);
    let unknown: Vec<&String> = said.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?} of {known:?}\n{text}");
    for finding in &report.findings {
        assert!(text.contains(&percent(finding.cost.share)), "{text}");
    }
}

fn act() -> impl Strategy<Value = Act> {
    let op = prop_oneof![Just(Op::Load), Just(Op::Store), Just(Op::Rmw)];
    (0..3u64, 0..8u64, op, 0..1_000_000u32)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_of_the_text_is_one_of_the_model_and_the_model_agrees_with_itself(
        threads in proptest::collection::vec(proptest::collection::vec(act(), 1..6), 1..5),
    ) {
        check(&run(&threads));
    }
}

#[test]
fn a_wait_outside_of_sharing_is_in_no_figure_twice() {
    // The third word is one thread's, and is waited for as long as the two that are fought over.
    let one = |word| vec![(0, word, Op::Rmw, 400_000)];
    let report = run(&[one(0), one(1), vec![(0, 2, Op::Load, 400_000)]]);
    assert_eq!(report.findings.len(), 1);
    check(&report);
}
