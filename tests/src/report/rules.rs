//! The rules that every report keeps, whatever it is about.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{hex, pair::side};

/// What of a report breaks a rule.
pub(super) fn broken(json: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    walk(json, "$", &mut broken);
    findings(json, &mut broken);
    pairs(json, &mut broken);
    broken
}

/// At least two threads and one store in a finding, no padding for true sharing; confirmed only by who watched.
fn findings(json: &Value, broken: &mut Vec<String>) {
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
        match finding["confidence"].as_str() {
            Some("sampled") => {}
            Some("confirmed") if has_order(json) => {}
            _ => broken.push(format!(
                "findings[{n}] is {} in a run that neither watched nor saw every access",
                finding["confidence"]
            )),
        }
    }
}

/// Whether the order of accesses is known, of windows or of all of them.
fn has_order(json: &Value) -> bool {
    !json["run"]["watch"].is_null() || !json["run"]["order"].is_null()
}

/// A hint or the reason why there is none, no hint for one instruction, counts that can be; pairs only of who knows an order.
fn pairs(json: &Value, broken: &mut Vec<String>) {
    for (n, pair) in json["pairs"].as_array().into_iter().flatten().enumerate() {
        let mut broke = |what: &str| broken.push(format!("pairs[{n}] {what}"));
        if !has_order(json) {
            broke("comes from a run that neither watched nor saw every access");
        }
        if pair["hint"].is_null() == pair["no_hint_because"].is_null() {
            broke("has not one of hint and no_hint_because");
        }
        if pair["same_instruction"] == true && !pair["hint"].is_null() {
            broke("is one instruction and has a hint");
        }
        if pair["same_instruction"] == true && side(&pair["load"]) != side(&pair["store"]) {
            broke("is one instruction in two places");
        }
        let count = pair["count"].as_u64();
        if count.is_none_or(|count| count == 0) && pair["global_count"].as_u64().unwrap_or(0) == 0 {
            broke("was never seen");
        }
        let most = pair["executions"].as_u64();
        if most.is_some_and(|most| count > Some(most)) {
            broke("was seen more often than its load");
        }
        let share = pair["share_of_load"].as_f64();
        if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            broke("follows its load more often than always");
        }
    }
}

/// Absent is null and never "", addresses are hex strings.
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
