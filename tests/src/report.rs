//! The tool's JSON report as the tests read it, and the rules every report must keep.
//!
//! `code` reads instructions, `pair` read-then-write pairs, `watch` what windows did, and `rules` is what holds for all
//! reports. Only the documented interface is used (schema 1). What the tests do not compare is not parsed, so a report
//! may say more; what they do compare and is missing is an error that names the place.

mod code;
mod pair;
mod rules;
mod watch;

use std::collections::BTreeSet;

pub use self::{
    code::Code,
    pair::{Hint, Pair},
    watch::Watch,
};
use anyhow::{Context, bail};
use serde_json::Value;

/// One run's report.
#[derive(Clone, Debug)]
pub struct Report {
    /// As printed.
    pub json: Value,
    /// Lines that are shared.
    pub findings: Vec<Finding>,
    /// Loads that a store follows.
    pub pairs: Vec<Pair>,
    /// What watch windows did; `None` where the run had none.
    pub watch: Option<Watch>,
    /// Variables on lines that are shared, but not enough to be findings.
    pub insignificant: BTreeSet<String>,
    /// What the report says it could not see.
    pub caveats: Vec<String>,
}

/// One shared line.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// `false-sharing`, `true-sharing` or `mixed-sharing`.
    pub kind: String,
    /// Key of the line.
    pub line_key: String,
    /// What lies there: `global`, `heap`, ...
    pub object_kind: String,
    /// Variable.
    pub object_name: Option<String>,
    /// How the source comes to it.
    pub object_called: Option<String>,
    /// Its type.
    pub object_type: Option<String>,
    /// `confirmed` by watch windows, or only `sampled`.
    pub confidence: String,
    /// Time from the start of sampling to when windows confirmed it, seconds; `None` when they did not.
    pub confirmed_after_s: Option<f64>,
    /// How often the line was seen to move from one CPU to another; `None` where nobody watched.
    pub handoffs: Option<Handoffs>,
    /// Share of the time, 0..1, that CPUs were seen waiting for it.
    pub stalled_share: f64,
    /// Sentences that say why.
    pub facts: Vec<String>,
    /// What to do about it; empty where nothing is advised.
    pub advice: String,
    /// Who touches it.
    pub accesses: Vec<Access>,
}

/// Moves of a line between CPUs, in watch windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handoffs {
    /// Seen.
    pub observed: u64,
    /// Of a second of windows; `None` where that is not known.
    pub per_s: Option<f64>,
}

/// One instruction's accesses to a part of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Of the first byte.
    pub offset: u64,
    /// Path from the variable.
    pub field: Option<String>,
    /// `load`, `store` or `rmw`.
    pub op: String,
    /// How often it was seen.
    pub count: u64,
    /// Of those, trapped in watch windows instead of sampled. `None` where the report does not tell.
    pub trapped: Option<u64>,
    /// Share of the time, 0..1.
    pub cost_share: f64,
    /// Of that, at a full barrier behind it, and in loops that read it.
    pub waits: (f64, f64),
    /// Who did it.
    pub threads: Vec<Thread>,
    /// Where it is done.
    pub code: Code,
}

/// A thread that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process.
    pub pid: u64,
    /// Name.
    pub comm: Option<String>,
}

impl Report {
    /// Reads a report and checks the rules that hold for all of them.
    pub fn parse(printed: &str) -> anyhow::Result<Report> {
        let json: Value = serde_json::from_str(printed).context("the report is not JSON")?;
        if json["schema"] != 1 {
            bail!("the schema is {}, these tests read 1", json["schema"]);
        }
        let broken = rules::broken(&json);
        if !broken.is_empty() {
            bail!("the report breaks its rules:\n  {}", broken.join("\n  "));
        }
        let findings = list(&json, "findings")?
            .iter()
            .enumerate()
            .map(|(n, finding)| self::finding(finding).with_context(|| format!("findings[{n}]")))
            .collect::<Result<_, _>>()?;
        let pairs = list(&json, "pairs")?
            .iter()
            .enumerate()
            .map(|(n, pair)| Pair::read(pair).with_context(|| format!("pairs[{n}]")))
            .collect::<Result<_, _>>()?;
        let watch = Watch::read(&json["run"]["watch"]).context("run.watch")?;
        let caveats = list(&json, "caveats")?.iter().map(text_of).collect();
        let insignificant = list(&json, "insignificant")?
            .iter()
            .filter_map(|line| text(&line["object"], "name"))
            .collect();
        Ok(Report {
            json,
            findings,
            pairs,
            watch,
            insignificant,
            caveats,
        })
    }

    /// A count of the run: `samples`, `accesses`, `produced`, ...
    pub fn run_count(&self, name: &str) -> anyhow::Result<u64> {
        total(&self.json["run"][name])
            .with_context(|| format!("run.{name} is {}, not a count", self.json["run"][name]))
    }

    /// Samples without an access, for one reason.
    pub fn unresolved(&self, reason: &str) -> u64 {
        total(&self.json["run"]["unresolved"][reason]).unwrap_or(0)
    }
}

/// A number, or the sum of a list or map of numbers (losses are counted per CPU).
fn total(value: &Value) -> Option<u64> {
    match value {
        Value::Array(parts) => parts.iter().map(total).sum(),
        Value::Object(parts) => match parts.get("total") {
            Some(sum) => total(sum),
            None => parts.values().map(total).sum(),
        },
        _ => value.as_u64(),
    }
}

fn finding(json: &Value) -> anyhow::Result<Finding> {
    let object = &json["object"];
    Ok(Finding {
        kind: required(json, "kind")?,
        line_key: required(&json["line"], "key").context("line")?,
        object_kind: required(object, "kind").context("object")?,
        object_name: text(object, "name"),
        object_called: text(object, "called"),
        object_type: text(object, "type"),
        confidence: required(json, "confidence")?,
        confirmed_after_s: json["confirmed_after_s"].as_f64(),
        handoffs: json["handoffs"]["observed"]
            .as_u64()
            .map(|observed| Handoffs {
                observed,
                per_s: json["handoffs"]["per_s"].as_f64(),
            }),
        stalled_share: share(&json["cost"], "stalled_share"),
        advice: text(&json["advice"], "text").unwrap_or_default(),
        facts: (json["facts"].as_array().into_iter().flatten())
            .map(text_of)
            .collect(),
        accesses: list(json, "accesses")?
            .iter()
            .enumerate()
            .map(|(n, access)| self::access(access).with_context(|| format!("accesses[{n}]")))
            .collect::<Result<_, _>>()?,
    })
}

fn access(json: &Value) -> anyhow::Result<Access> {
    Ok(Access {
        offset: json["offset"].as_u64().context("offset is not a number")?,
        field: text(json, "field"),
        op: required(json, "op")?,
        count: json["count"].as_u64().context("count is not a number")?,
        cost_share: share(json, "cost_share"),
        waits: (
            share(json, "at_barrier_share"),
            share(json, "spinning_share"),
        ),
        threads: list(json, "threads")?
            .iter()
            .map(|thread| {
                Ok(Thread {
                    pid: thread["pid"]
                        .as_u64()
                        .context("threads[].pid is not a number")?,
                    comm: text(thread, "comm"),
                })
            })
            .collect::<anyhow::Result<_>>()?,
        trapped: json["trapped"].as_u64(),
        code: Code::read(&json["code"]),
    })
}

/// Of the time; nothing where the report does not tell.
fn share(json: &Value, key: &str) -> f64 {
    json[key].as_f64().unwrap_or(0.0)
}

fn list<'a>(json: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    json[key]
        .as_array()
        .with_context(|| format!("{key} is not a list"))
}

fn required(json: &Value, key: &str) -> anyhow::Result<String> {
    text(json, key).with_context(|| format!("{key} is not a string"))
}

fn text(json: &Value, key: &str) -> Option<String> {
    json[key].as_str().map(str::to_owned)
}

/// A caveat is a sentence, or an object that holds one.
fn text_of(json: &Value) -> String {
    text(json, "text")
        .or_else(|| json.as_str().map(str::to_owned))
        .unwrap_or_else(|| json.to_string())
}

/// `0x1f` as a number.
pub fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report with one finding: two threads count in `counters`.
    pub(crate) const TWO_COUNTERS: &str = r#"{
      "schema": 1, "tool": "cohtrace 0.1.0",
      "run": {"sources": ["timer"], "samples": 90, "produced": 100, "lost": {"0": 4, "1": 6}, "unresolved": {"no_mapping": 2}},
      "findings": [{"id": 1, "kind": "false-sharing", "confidence": "sampled",
        "line": {"key": "private:0:0x4040", "address": "0x4040", "bytes": 64},
        "object": {"kind": "global", "name": "counters", "type": "counters", "file": null, "line": null, "offset_in_object": 0},
        "cost": {"share": 0.9, "samples": 80}, "handoffs": null,
        "accesses": [
          {"offset": 0, "size": 8, "field": "counters.hits", "op": "rmw", "count": 40, "cost_share": 0.5,
           "threads": [{"pid": 7, "tid": 8, "comm": "hits", "cpus": [0]}],
           "code": {"module": "/bin/two", "build_id": null, "ip": "0x12d8", "symbol": "count_hits", "inlined": [],
                    "file": "/src/two_counters.c", "line": 23, "column": 9}},
          {"offset": 8, "size": 8, "field": "counters.misses", "op": "rmw", "count": 40, "cost_share": 0.5,
           "threads": [{"pid": 7, "tid": 9, "comm": "misses", "cpus": [1]}],
           "code": {"module": "/bin/two", "build_id": null, "ip": "0x12f8", "symbol": "count_misses", "inlined": [],
                    "file": "/src/two_counters.c", "line": 31, "column": 9}}],
        "advice": {"kind": "separate-fields", "text": "alignas(64)", "fields": ["hits", "misses"]}}],
      "insignificant": [{"object": {"name": "report"}}],
      "pairs": [], "caveats": ["no snoop data"]}"#;

    /// A report of a run that watched, with one confirmed finding and the pair that makes it.
    pub(crate) const GET_SET: &str = r#"{
      "schema": 1, "tool": "cohtrace 0.1.0",
      "run": {"sources": ["timer", "watch"], "samples": 90, "produced": 90, "lost": {}, "unresolved": {},
        "watch": {"windows": 12, "hits": 2400, "lost": 0, "unresolved": {"no_function": 0}, "spent_s": 0.03,
                  "budget_share": 0.02, "spent_share": 0.015, "hit_cost_ns": 12500, "slots": 4, "breadth": "cpus"}},
      "findings": [{"id": 1, "kind": "false-sharing", "confidence": "confirmed", "confirmed_after_s": 0.4,
        "line": {"key": "private:0:0x4100", "address": "0x4100", "bytes": 64},
        "object": {"kind": "global", "name": "gauges", "type": "gauges"},
        "cost": {"share": 0.4, "samples": 80}, "handoffs": {"observed": 700, "per_s": 40000.5},
        "accesses": [
          {"offset": 0, "size": 8, "field": "gauges.left", "op": "load", "count": 40, "trapped": 600,
           "threads": [{"pid": 7, "tid": 8, "comm": "left"}, {"pid": 7, "tid": 9, "comm": "right"}],
           "code": {"module": "/bin/get_set", "ip": "0x12e0", "symbol": "get", "inlined": [],
                    "file": "/src/get_set.c", "line": 37, "column": 12}}],
        "advice": null}],
      "insignificant": [],
      "pairs": [{
        "load": {"code": {"module": "/bin/get_set", "ip": "0x12e0", "symbol": "get", "inlined": [],
                          "file": "/src/get_set.c", "line": 37, "column": 12}},
        "store": {"code": {"module": "/bin/get_set", "ip": "0x12f0", "symbol": "set", "inlined": [],
                           "file": "/src/get_set.c", "line": 41, "column": 12}},
        "same_instruction": false, "line": {"key": "private:0:0x4100"}, "object": {"name": "gauges"},
        "field": "gauges.left", "store_field": "gauges.left", "op_store": "store",
        "count": 590, "global_count": 300, "executions": 600, "share_of_load": 0.983, "complete_order": true,
        "taken": {"reads": 200, "writes": 290}, "left": {"dirty": 500, "clean": 0, "shared": 40, "own": 50},
        "hint": {"kind": "fetch-for-ownership", "x86": "prefetchw", "aarch64": "prfm pstl1keep", "text": "fetch it"},
        "no_hint_because": null}],
      "caveats": []}"#;

    #[test]
    fn what_windows_saw_is_read() {
        let report = Report::parse(GET_SET).unwrap();
        let watch = report.watch.unwrap();
        assert_eq!((watch.windows, watch.hits, watch.lost), (12, 2400, 0));
        assert!(watch.unresolved.is_empty(), "a reason that never occurred");
        assert_eq!(watch.spent_share, Some(0.015));
        assert_eq!(watch.slots, Some(4));
        let finding = &report.findings[0];
        assert_eq!(finding.confidence, "confirmed");
        assert_eq!(finding.confirmed_after_s, Some(0.4));
        assert_eq!(finding.handoffs.map(|h| h.observed), Some(700));
        assert_eq!(finding.accesses[0].trapped, Some(600));
        let pair = &report.pairs[0];
        assert_eq!((pair.load.ip, pair.store.ip), (Some(0x12e0), Some(0x12f0)));
        assert_eq!(pair.store_field.as_deref(), Some("gauges.left"));
        assert_eq!((pair.count, pair.share_of_load), (590, Some(0.983)));
        assert!(pair.hint.is_some() && pair.no_hint_because.is_none());
    }

    #[test]
    fn a_run_without_windows_tells_none_and_not_zero() {
        let report = Report::parse(TWO_COUNTERS).unwrap();
        assert_eq!(report.watch, None);
        assert_eq!(report.findings[0].handoffs, None);
        assert_eq!(report.findings[0].accesses[0].trapped, None);
    }

    #[test]
    fn what_the_tests_compare_is_read() {
        let report = Report::parse(TWO_COUNTERS).unwrap();
        let finding = &report.findings[0];
        assert_eq!(finding.kind, "false-sharing");
        assert_eq!(finding.object_name.as_deref(), Some("counters"));
        assert_eq!(finding.accesses[1].offset, 8);
        assert_eq!(finding.accesses[1].code.ip, Some(0x12f8));
        assert_eq!(
            finding.accesses[0].code.places,
            [("/src/two_counters.c".to_owned(), 23)]
        );
        assert_eq!(report.run_count("samples").unwrap(), 90);
        assert_eq!(report.run_count("lost").unwrap(), 10);
        assert_eq!(report.unresolved("no_mapping"), 2);
        assert_eq!(report.caveats, ["no snoop data"]);
        assert!(report.insignificant.contains("report"));
    }

    #[test]
    fn a_count_that_is_not_there_is_an_error_and_not_zero() {
        let report = Report::parse(TWO_COUNTERS).unwrap();
        assert!(report.run_count("accesses").is_err());
    }

    #[test]
    fn a_report_that_breaks_a_rule_is_refused() {
        let refused = |from: &str, to: &str| {
            let text = TWO_COUNTERS.replacen(from, to, 1);
            assert_ne!(text, TWO_COUNTERS, "the case changes nothing");
            Report::parse(&text).unwrap_err().to_string()
        };
        assert!(refused("\"schema\": 1", "\"schema\": 2").contains("schema"));
        assert!(refused("\"file\": null", "\"file\": \"\"").contains("not null"));
        assert!(refused("\"0x12d8\"", "4824").contains("hex"));
        assert!(refused("\"tid\": 9", "\"tid\": 8").contains("1 thread"));
        assert!(refused("false-sharing", "true-sharing").contains("pad"));
        assert!(refused("\"sampled\"", "\"confirmed\"").contains("neither watched"));
        assert!(refused("\"sampled\"", "\"likely\"").contains("likely"));
    }

    #[test]
    fn a_report_whose_pairs_break_a_rule_is_refused() {
        let refused = |from: &str, to: &str| {
            let text = GET_SET.replacen(from, to, 1);
            assert_ne!(text, GET_SET, "the case changes nothing");
            Report::parse(&text).unwrap_err().to_string()
        };
        let nothing = "\"no_hint_because\": null";
        assert!(refused(nothing, "\"no_hint_because\": \"rare\"").contains("not one of"));
        assert!(
            refused("\"same_instruction\": false", "\"same_instruction\": true").contains("one")
        );
        assert!(refused("\"count\": 590", "\"count\": 601").contains("more often than its load"));
        let never = "\"count\": 0, \"global_count\": 0";
        assert!(refused("\"count\": 590, \"global_count\": 300", never).contains("never seen"));
        assert!(refused("0.983", "1.1").contains("than always"));
        let unwatched = refused("\"watch\": {", "\"watch\": null, \"was\": {");
        assert!(unwatched.contains("neither watched"), "{unwatched}");
    }
}
