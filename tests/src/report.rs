//! The tool's JSON report as the tests read it, and the rules every report must keep.
//!
//! Only the documented interface is used (schema 1). What the tests do not compare is not parsed, so a report
//! may say more; what they do compare and is missing is an error that names the place.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde_json::Value;

/// One run's report.
#[derive(Clone, Debug)]
pub struct Report {
    /// As printed.
    pub json: Value,
    /// Lines that are shared.
    pub findings: Vec<Finding>,
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
    /// Its type.
    pub object_type: Option<String>,
    /// Who touches it.
    pub accesses: Vec<Access>,
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
    /// Who did it.
    pub threads: Vec<Thread>,
    /// File that holds the code.
    pub module: Option<String>,
    /// Address of the instruction.
    pub ip: Option<u64>,
    /// Function that was compiled.
    pub symbol: Option<String>,
    /// Functions inlined into it at the access.
    pub inlined: Vec<String>,
    /// Source positions of the access and of the calls that were inlined: file and line.
    pub places: Vec<(String, u32)>,
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
        let broken = broken_rules(&json);
        if !broken.is_empty() {
            bail!("the report breaks its rules:\n  {}", broken.join("\n  "));
        }
        let findings = list(&json, "findings")?
            .iter()
            .enumerate()
            .map(|(n, finding)| self::finding(finding).with_context(|| format!("findings[{n}]")))
            .collect::<Result<_, _>>()?;
        let caveats = list(&json, "caveats")?.iter().map(text_of).collect();
        let insignificant = list(&json, "insignificant")?
            .iter()
            .filter_map(|line| text(&line["object"], "name"))
            .collect();
        Ok(Report {
            json,
            findings,
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
        object_type: text(object, "type"),
        accesses: list(json, "accesses")?
            .iter()
            .enumerate()
            .map(|(n, access)| self::access(access).with_context(|| format!("accesses[{n}]")))
            .collect::<Result<_, _>>()?,
    })
}

fn access(json: &Value) -> anyhow::Result<Access> {
    let code = &json["code"];
    let mut places: Vec<(String, u32)> = place(code).into_iter().collect();
    let mut inlined = Vec::new();
    for frame in code["inlined"].as_array().into_iter().flatten() {
        places.extend(place(frame));
        inlined.extend(
            ["symbol", "function", "name"]
                .iter()
                .find_map(|key| text(frame, key))
                .or_else(|| frame.as_str().map(str::to_owned)),
        );
    }
    Ok(Access {
        offset: json["offset"].as_u64().context("offset is not a number")?,
        field: text(json, "field"),
        op: required(json, "op")?,
        count: json["count"].as_u64().context("count is not a number")?,
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
        module: text(code, "module"),
        ip: text(code, "ip").and_then(|ip| hex(&ip)),
        symbol: text(code, "symbol"),
        inlined,
        places,
    })
}

fn place(json: &Value) -> Option<(String, u32)> {
    Some((
        text(json, "file")?,
        u32::try_from(json["line"].as_u64()?).ok()?,
    ))
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

/// Rules of every report: absent is null and never "", addresses are hex strings, at least two threads and one
/// store in a finding, no padding for true sharing.
fn broken_rules(json: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    walk(json, "$", &mut broken);
    for (n, finding) in json["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let accesses = finding["accesses"].as_array().into_iter().flatten();
        let mut tids = BTreeSet::new();
        let mut stores = false;
        for access in accesses {
            stores |= access["op"] == "store" || access["op"] == "rmw";
            for thread in access["threads"].as_array().into_iter().flatten() {
                tids.insert(thread["tid"].as_u64());
            }
        }
        if tids.len() < 2 {
            broken.push(format!("findings[{n}] is made of {} thread(s)", tids.len()));
        }
        if !stores && finding["kind"] == "true-sharing" {
            broken.push(format!("findings[{n}] is true sharing without a store"));
        }
        let advice = &finding["advice"];
        let moves_apart = advice["fields"]
            .as_array()
            .is_some_and(|fields| !fields.is_empty())
            || !matches!(
                advice["kind"].as_str(),
                None | Some("none" | "reduce-sharing")
            );
        if finding["kind"] == "true-sharing" && moves_apart {
            broken.push(format!(
                "findings[{n}] advises to pad a truly shared line: {advice}"
            ));
        }
    }
    broken
}

fn walk(json: &Value, path: &str, broken: &mut Vec<String>) {
    match json {
        Value::Object(members) => {
            for (key, value) in members {
                let path = format!("{path}.{key}");
                let is_address = matches!(key.as_str(), "ip" | "address");
                if is_address && !value.is_null() && value.as_str().and_then(hex).is_none() {
                    broken.push(format!("{path} is {value}, not a hex string"));
                }
                walk(value, &path, broken);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{n}]"), broken);
            }
        }
        Value::String(text) if text.is_empty() => broken.push(format!("{path} is \"\", not null")),
        _ => {}
    }
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

    #[test]
    fn what_the_tests_compare_is_read() {
        let report = Report::parse(TWO_COUNTERS).unwrap();
        let finding = &report.findings[0];
        assert_eq!(finding.kind, "false-sharing");
        assert_eq!(finding.object_name.as_deref(), Some("counters"));
        assert_eq!(finding.accesses[1].offset, 8);
        assert_eq!(finding.accesses[1].ip, Some(0x12f8));
        assert_eq!(
            finding.accesses[0].places,
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
    }
}
