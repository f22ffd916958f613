//! Hints and findings as SARIF 2.1.0 (OASIS, March 2020), for editors and code scanning: one result each.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Sources, edits, memory, store_kind, store_words};
use crate::{
    finding::Verdict,
    hint::file::{HintFile, HintedCode, LoadHint},
    number::{grouped, percent},
    report::{
        gain,
        model::{Code, Finding, Report},
        named::op_name,
        printable,
    },
};

/// Name that relative paths are from: the root of the checkout, where the tool ran.
const ROOT: &str = "%SRCROOT%";

/// Related places of one result; the others are in the report.
const MOST_RELATED: usize = 30;

/// One rule: id, name, what it is in short and in full, level, precision.
struct Rule {
    id: &'static str,
    name: &'static str,
    short: &'static str,
    full: &'static str,
    fix: &'static str,
    level: &'static str,
}

const RULES: [Rule; 4] = [
    Rule {
        id: "false-sharing",
        name: "FalseSharing",
        short: "Threads store to different bytes of one cache line.",
        full: "Threads use different bytes of one cache line, at least one of them stores, and the line moves between \
               their CPUs although they share no data.",
        fix: "Give the bytes that different threads use lines of their own: align or pad them to 64 bytes, or move \
              members that one thread uses together.",
        level: "warning",
    },
    Rule {
        id: "mixed-sharing",
        name: "MixedSharing",
        short: "Threads share some bytes of a cache line and fight over others.",
        full: "Part of the traffic on the cache line is for bytes that threads share, part for bytes that only happen to be \
               beside them.",
        fix: "Separate the bytes that are not shared, then share the others less often.",
        level: "warning",
    },
    Rule {
        id: "true-sharing",
        name: "TrueSharing",
        short: "Threads store to and use the same bytes.",
        full: "Threads on different CPUs store to and use the same bytes, so their cache line must move. Padding does not help.",
        fix: "Share less often: count per thread and sum up, batch updates, or split locks.",
        level: "note",
    },
    Rule {
        id: "load-hint",
        name: "LoadBeforeStore",
        short: "A load fetches a line that a store to it asks for again.",
        full: "A load brings a cache line to be read, and a store of the same CPU to the line needs a second request for \
               its ownership. One request can bring both.",
        fix: "Fetch the line for ownership before the load: `__builtin_prefetch(address, 1, 3)` in C and C++, built with \
              `-mprfchw` on x86-64 (else it becomes `prefetcht0`, which asks for no ownership).",
        level: "note",
    },
];

/// The log as JSON with a newline at the end: of hints, of a report's findings, or of both where they are of one session.
pub fn render(hints: Option<&HintFile>, report: Option<&Report>, sources: &dyn Sources) -> String {
    let mut results = Vec::new();
    for finding in report.map_or(&[][..], |report| &report.findings) {
        results.push(of_finding(finding, sources));
    }
    if let Some(file) = hints {
        results.extend(file.hints.iter().map(|hint| of_hint(hint, file, sources)));
    }
    number_fingerprints(&mut results);
    let mut caveats: Vec<&String> = hints.map_or(&[][..], |file| &file.caveats).iter().collect();
    for caveat in report.map_or(&[][..], |report| &report.caveats) {
        if !caveats.contains(&&caveat.text) {
            caveats.push(&caveat.text);
        }
    }
    let notifications: Vec<Value> = caveats
        .into_iter()
        .map(|caveat| json!({"level": "note", "message": {"text": caveat}}))
        .collect();
    let mut directory = uri(&sources.directory());
    if !directory.ends_with('/') {
        directory.push('/');
    }
    let evidence = hints.map(|file| &file.evidence);
    let session = hints.and_then(|file| file.session.as_ref());
    let version = hints
        .map(|file| &file.tool_version)
        .or(report.map(|report| &report.tool.version));
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "cohtrace",
                "version": version,
                "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications,
            }],
            "originalUriBaseIds": {ROOT: {"uri": format!("file://{directory}")}},
            "columnKind": "unicodeCodePoints",
            "properties": {"session": session, "evidence": evidence},
            "results": results,
        }],
    });
    printable::json(&format!("{log:#}\n"))
}

fn rule(rule: &Rule) -> Value {
    json!({
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.short},
        "fullDescription": {"text": rule.full},
        "help": {
            "text": format!("{} {}", rule.full, rule.fix.replace('`', "")),
            "markdown": format!("{}\n\n**What to do.** {}", rule.full, rule.fix),
        },
        "defaultConfiguration": {"level": rule.level},
        "properties": {
            "tags": ["performance", "concurrency"],
            "precision": "high",
            "problem.severity": if rule.level == "warning" { "warning" } else { "recommendation" },
        },
    })
}

/// Place of the rule for loads in [`RULES`].
const LOAD_HINT: usize = 3;

/// Place of a finding's rule in [`RULES`].
fn rule_of(kind: Option<Verdict>) -> usize {
    match kind {
        Some(Verdict::FalseSharing) => 0,
        // A finding has one of the three kinds; an unknown one is still told.
        Some(Verdict::MixedSharing) | None => 1,
        Some(Verdict::TrueSharing) => 2,
    }
}

fn of_hint(hint: &LoadHint, file: &HintFile, sources: &dyn Sources) -> Value {
    let rule = &RULES[LOAD_HINT];
    let what = memory(hint).map_or_else(
        || "a cache line".to_owned(),
        |memory| format!("the line of {memory}"),
    );
    let net = hint.expected.net();
    let text = format!(
        "This load fetches {what} to read, and {} to it follows. Fetch it for ownership: expected to save {net} of {} messages.",
        store_words(store_kind(hint)),
        grouped(file.evidence.transactions)
    );
    let load = Place::of(&hint.load);
    let stores = hint.stores.iter().map(|store| {
        let text = format!(
            "{} follows here, {} times",
            store_words(store.kind),
            grouped(store.count)
        );
        (Place::of(&store.code), text)
    });
    let mut result = json!({
        "ruleId": rule.id,
        "ruleIndex": LOAD_HINT,
        "level": rule.level,
        "message": {"text": text},
        "locations": [load.location(sources)],
        "relatedLocations": related(stores, sources),
        "partialFingerprints": {"cohtrace/v1": fingerprint(&[
            rule.id,
            &load.stable_file(sources),
            hint.load.function.as_deref().unwrap_or_default(),
            hint.object.as_deref().unwrap_or_default(),
            hint.field.as_deref().unwrap_or_default(),
            &load.line_text(sources),
        ])},
        "properties": {
            "id": hint.id,
            "expected": hint.expected,
            "net": net,
            "class": hint.class,
            "x86": hint.x86,
            "aarch64": hint.aarch64,
            "operand": hint.load.operand,
        },
    });
    if let (Some(made), Some(name)) = (edits::of_hint(hint, sources), &hint.load.file) {
        let start =
            json!({"startLine": made.line, "startColumn": 1, "endLine": made.line, "endColumn": 1});
        result["fixes"] = json!([{
            "description": {"text": format!("Prefetch {} for ownership", made.expression)},
            "artifactChanges": [{
                "artifactLocation": artifact(name, sources),
                "replacements": [{"deletedRegion": start, "insertedContent": {"text": made.text}}],
            }],
        }]);
    }
    result
}

fn of_finding(finding: &Finding, sources: &dyn Sources) -> Value {
    let index = rule_of(finding.kind);
    let rule = &RULES[index];
    let object = &finding.object;
    let name = object.spoken().unwrap_or("memory without a name");
    let mut text = format!(
        "{}: {name} takes {} of the cost.",
        rule.short.trim_end_matches('.'),
        percent(finding.cost.share)
    );
    if let Some(known) = &finding.gain {
        text.push_str(&format!(
            " What a change gains: {}",
            gain::sentence(known, finding.kind)
        ));
    }
    if let Some(advice) = &finding.advice.text {
        text.push('\n');
        text.push_str(advice);
    }
    let declared = object.file.as_ref().map(|file| Place {
        file: Some(file),
        line: object.line,
        ..Place::default()
    });
    let accessed = finding.accesses.iter().map(|row| {
        let op = op_name(row.op).unwrap_or("access");
        let field = row.field.as_deref().unwrap_or("bytes without a name");
        let threads: Vec<String> = (row.threads.iter())
            .map(|thread| {
                thread
                    .comm
                    .clone()
                    .unwrap_or_else(|| thread.tid.to_string())
            })
            .collect();
        let text = format!(
            "{op} of {field} by {}, {} of the cost",
            threads.join(", "),
            percent(row.cost_share)
        );
        (Place::of_code(&row.code), text)
    });
    let first = finding
        .accesses
        .first()
        .map(|row| Place::of_code(&row.code));
    let main = declared.or_else(|| {
        let named = finding.accesses.iter().map(|row| Place::of_code(&row.code));
        named
            .into_iter()
            .find(|place| place.file.is_some())
            .or(first)
    });
    let locations: Vec<Value> = main.iter().map(|place| place.location(sources)).collect();
    let mut fields: Vec<&str> = finding
        .accesses
        .iter()
        .filter_map(|row| row.field.as_deref())
        .collect();
    fields.sort_unstable();
    fields.dedup();
    // What has no name is known by who uses it.
    let mut users: Vec<&str> = finding
        .accesses
        .iter()
        .filter_map(|row| row.code.symbol.as_deref())
        .collect();
    users.sort_unstable();
    users.dedup();
    let by_name = object.name.is_some() || object.type_name.is_some();
    let users = if by_name {
        String::new()
    } else {
        users.join(",")
    };
    json!({
        "ruleId": rule.id,
        "ruleIndex": index,
        "level": rule.level,
        "message": {"text": text},
        "rank": (finding.cost.share * 100.0).clamp(0.0, 100.0),
        "locations": locations,
        "relatedLocations": related(accessed, sources),
        "partialFingerprints": {"cohtrace/v1": fingerprint(&[
            rule.id,
            &main.map_or(String::new(), |place| place.stable_file(sources)),
            object.name.as_deref().unwrap_or_default(),
            object.type_name.as_deref().unwrap_or_default(),
            &fields.join(","),
            &users,
        ])},
        "properties": {
            "id": finding.id,
            "confidence": finding.confidence.name(),
            "cost": finding.cost,
            "handoffs": finding.handoffs,
            "advice": finding.advice.kind,
            "gain": finding.gain,
            "objectKind": object.kind.name(),
            "facts": finding.facts,
        },
    })
}

fn related<'a>(
    places: impl Iterator<Item = (Place<'a>, String)>,
    sources: &dyn Sources,
) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for (place, text) in places {
        let mut location = place.location(sources);
        location["message"] = json!({"text": text});
        if out.len() < MOST_RELATED && !out.contains(&location) {
            out.push(location);
        }
    }
    for (id, location) in (1_u64..).zip(&mut out) {
        location["id"] = id.into();
    }
    out
}

/// An address as a file of hints has it.
fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// Where something is, in source or in a program.
#[derive(Debug, Clone, Copy, Default)]
struct Place<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    module: Option<&'a str>,
    address: Option<u64>,
    function: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(code: &'a HintedCode) -> Place<'a> {
        Place {
            file: code.file.as_deref(),
            line: code.line,
            column: code.column,
            module: code.module.as_deref(),
            address: code.offset.as_deref().and_then(hexadecimal),
            function: code.function.as_deref(),
        }
    }

    fn of_code(code: &'a Code) -> Place<'a> {
        Place {
            file: code.file.as_deref(),
            line: code.line,
            column: code.column,
            module: code.module.as_deref(),
            address: Some(code.ip.0),
            function: code.symbol.as_deref(),
        }
    }

    fn location(&self, sources: &dyn Sources) -> Value {
        let mut out = Map::new();
        if let Some(file) = self.file {
            let mut physical = json!({"artifactLocation": artifact(file, sources)});
            if let Some(line) = self.line.filter(|line| *line > 0) {
                let mut region = json!({"startLine": line});
                if let Some(column) = self.code_point_column(sources) {
                    region["startColumn"] = column.into();
                }
                physical["region"] = region;
            }
            out.insert("physicalLocation".to_owned(), physical);
        } else if let Some(module) = self.module {
            let mut physical = json!({"artifactLocation": artifact(module, sources)});
            // The standard's integers are those of JSON readers: exact up to 2^53.
            if let Some(number) = self.address.filter(|number| *number < 1 << 53) {
                physical["address"] = json!({"relativeAddress": number});
            }
            out.insert("physicalLocation".to_owned(), physical);
        }
        if let Some(function) = self.function {
            let logical = json!([{"fullyQualifiedName": function, "kind": "function"}]);
            out.insert("logicalLocations".to_owned(), logical);
        }
        Value::Object(out)
    }

    /// Debug information counts bytes; where the source is not here, that is what there is.
    fn code_point_column(&self, sources: &dyn Sources) -> Option<u64> {
        let column = self.column.filter(|column| *column > 0)?;
        let text = self.file.and_then(|file| sources.text(file).ok());
        let line = text
            .as_ref()
            .and_then(|text| text.lines().nth((self.line? as usize).checked_sub(1)?));
        let before = line.and_then(|line| line.get(..column as usize - 1));
        Some(before.map_or(u64::from(column), |before| {
            before.chars().count() as u64 + 1
        }))
    }

    /// The file in a form that does not depend on where the checkout is.
    fn stable_file(&self, sources: &dyn Sources) -> String {
        let file = self.file.or(self.module).unwrap_or_default();
        let base = || file.rsplit('/').next().unwrap_or_default().to_owned();
        sources.relative(file).unwrap_or_else(base)
    }

    /// The line itself, which moves with the code; its number would change with every line above.
    fn line_text(&self, sources: &dyn Sources) -> String {
        let text = self.file.and_then(|file| sources.text(file).ok());
        let line = text
            .as_ref()
            .and_then(|text| text.lines().nth((self.line? as usize).checked_sub(1)?));
        line.map_or(String::new(), |line| {
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        })
    }
}

fn artifact(file: &str, sources: &dyn Sources) -> Value {
    if let Some(relative) = sources.relative(file) {
        return json!({"uri": uri(&relative), "uriBaseId": ROOT});
    }
    let absolute = uri(&sources.absolute(file));
    json!({"uri": format!("file://{absolute}")})
}

/// A path as part of a URI (RFC 3986, 2.3: what is not unreserved is escaped).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// FNV-1a over the parts, 64 bits: it must be the same in every version, so it is none of the library's.
fn fingerprint(parts: &[&str]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// Results that are alike get numbers, so that each is one of its own.
fn number_fingerprints(results: &mut [Value]) {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for result in results {
        let print = &mut result["partialFingerprints"]["cohtrace/v1"];
        let Some(text) = print.as_str().map(str::to_owned) else {
            continue;
        };
        let number = seen.entry(text.clone()).or_default();
        *number += 1;
        *print = format!("{text}:{number}").into();
    }
}
