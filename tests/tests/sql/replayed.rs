//! The same session by the tool: its printed reports, and its own folds over the stream.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use cohtrace::{
    access::{Basis, LineSize},
    analysis::{AnalysisOptions, LineTable, Requests, SiteCounts, WatchedCounts},
    event::Batch,
    finding::{Judgement, Thresholds},
    pipeline::Pipeline,
    session::SessionReader,
    space::AddressSpaces,
};
use cohtrace_tests::{
    live::GRACE,
    report::hex,
    tool::{cohtrace, run},
};
use serde_json::Value;

/// What the tool prints of a session.
pub(super) fn printed(words: &[&str], session: &Path) -> String {
    run(cohtrace(words).arg(session), GRACE)
        .expect_code(0)
        .stdout
}

pub(super) fn json(words: &[&str], session: &Path) -> Value {
    serde_json::from_str(&printed(words, session)).expect("it is JSON")
}

/// A line of the JSON report, in the numbers that its rows of accesses add up to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedLine {
    pub accesses: u64,
    pub stores: u64,
    pub stalled: u64,
    pub trapped: u64,
    pub threads: u64,
    pub common_bytes: u64,
    pub private_bytes: u64,
}

/// Findings and insignificant lines of the report by key, those with a sampled store. Of several lines that are one thing,
/// the report has the sums and a query the lines: they are left out.
pub(super) fn reported_lines(report: &Value) -> BTreeMap<String, ReportedLine> {
    let lists = ["findings", "insignificant"].map(|list| report[list].as_array().expect("a list"));
    let alone = |finding: &&Value| finding["lines"].is_null();
    let findings = lists.into_iter().flatten().filter(alone);
    let lines = findings.map(|finding| {
        let key = finding["line"]["key"].as_str().expect("a key").to_owned();
        (key, reported_line(finding))
    });
    lines.filter(|(_, line)| line.stores > 0).collect()
}

/// The lines of findings that are of several.
pub(super) fn lines_of_several(report: &Value) -> BTreeSet<String> {
    let lists = ["findings", "insignificant"].map(|list| report[list].as_array().expect("a list"));
    let lines = lists.into_iter().flatten();
    let worst = lines.filter_map(|finding| finding["lines"]["worst"].as_array());
    let keys = worst.flatten().map(|line| line["key"].as_str());
    keys.map(|key| key.expect("a key").to_owned()).collect()
}

fn reported_line(finding: &Value) -> ReportedLine {
    let number = |value: &Value| value.as_u64().expect("a number");
    let mut line = ReportedLine {
        stalled: number(&finding["cost"]["samples"]),
        ..ReportedLine::default()
    };
    let mut threads = BTreeSet::new();
    let mut touched: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut stored = BTreeSet::new();
    for row in finding["accesses"].as_array().expect("rows") {
        let stores = matches!(row["op"].as_str(), Some("store" | "rmw"));
        line.accesses += number(&row["count"]);
        line.trapped += number(&row["trapped"]);
        line.stores += if stores { number(&row["count"]) } else { 0 };
        let tids = row["threads"].as_array().expect("threads").iter();
        let tids: BTreeSet<u64> = tids.map(|thread| number(&thread["tid"])).collect();
        let first = number(&row["offset"]);
        // Which bytes it is of is not known.
        let known = if row["within"].is_null() {
            number(&row["size"])
        } else {
            0
        };
        for byte in first..first + known {
            touched.entry(byte).or_default().extend(&tids);
            stored.extend(stores.then_some(byte));
        }
        threads.extend(tids);
    }
    line.threads = threads.len() as u64;
    let common = stored.iter().filter(|byte| touched[byte].len() > 1).count();
    line.common_bytes = common as u64;
    line.private_bytes = (stored.len() - common) as u64;
    line
}

/// Pairs as compared, on all lines: load and store by where they are in their page (the same in file and memory), and their
/// counts.
pub(super) type PairCounts = BTreeMap<(u64, u64), (u64, u64)>;

/// The pairs of `cohtrace pairs --json`, which tells of one pair on several lines once.
pub(super) fn reported_pairs(session: &Path) -> PairCounts {
    let json = json(&["pairs", "--json"], session);
    let mut pairs = PairCounts::new();
    for pair in json["pairs"].as_array().expect("a list") {
        let ip = |side: &str| hex(pair[side]["code"]["ip"].as_str()?);
        let ip = |side| ip(side).expect("an address") & 0xfff;
        let count = |name: &str| pair[name].as_u64().expect("a number");
        let sums = pairs.entry((ip("load"), ip("store"))).or_default();
        sums.0 += count("global_count");
        sums.1 += count("count");
    }
    pairs
}

/// Sums over the watch windows of a line, as the library keeps them.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(super) struct Watched {
    pub windows: u64,
    pub accesses: u64,
    pub stores: u64,
    pub requests: Requests,
}

impl Watched {
    fn of(counts: &WatchedCounts) -> Watched {
        Watched {
            windows: counts.busy_windows,
            accesses: counts.accesses,
            stores: counts.stores,
            requests: counts.requests,
        }
    }
}

/// What the library makes of a session, in-process.
pub(super) struct Replayed {
    /// Lines with sampled accesses: those, and of them stores.
    pub lines: BTreeMap<String, (u64, u64)>,
    /// Watched lines whose windows saw an access.
    pub watched: BTreeMap<String, Watched>,
    /// Shared lines.
    pub judgements: Vec<Judgement>,
}

pub(super) fn replay(session: &Path) -> Replayed {
    let options = AnalysisOptions {
        line_size: LineSize::B64,
        ..AnalysisOptions::default()
    };
    let mut pipeline = Pipeline::new(options, Thresholds::default());
    let mut spaces = AddressSpaces::default();
    let mut table = LineTable::new(options);
    let mut reader = SessionReader::open(session).expect("a session");
    let mut batch = Batch::default();
    while reader.next_batch(&mut batch).expect("it reads") {
        pipeline.feed(&batch);
        // The pipeline shows shared lines only; all lines are in a table of their own.
        let mut context = batch.context.iter().peekable();
        for access in &batch.accesses {
            while let Some(due) = context.next_if(|event| event.time_ns <= access.time_ns) {
                spaces.apply(due);
            }
            let (space, place) = spaces.place(access.pid, access.addr);
            if access.basis != Basis::Trapped {
                table.observe(access, place, space);
            }
        }
        context.for_each(|rest| spaces.apply(rest));
        batch.clear();
    }
    let lines = table.lines().filter_map(|(key, line)| {
        let sites = line.sites();
        let touching = || sites.iter().filter(|site| site.site.op.touches());
        let accesses: u64 = touching().map(SiteCounts::accesses).sum();
        let stores = touching().filter(|site| site.site.op.stores());
        let stores = stores.map(SiteCounts::accesses).sum();
        (accesses > 0).then(|| (key.to_string(), (accesses, stores)))
    });
    let watched = pipeline.watched().lines();
    let watched = watched.map(|line| (line.key().to_string(), Watched::of(line.counts())));
    Replayed {
        lines: lines.collect(),
        watched: watched.filter(|(_, sums)| sums.accesses > 0).collect(),
        judgements: pipeline.judge(),
    }
}
