//! What a run's watch windows did, as a report tells it.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use super::text;

/// `run.watch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Windows that were opened.
    pub windows: u64,
    /// Accesses that were trapped.
    pub hits: u64,
    /// Of those, how many found no room.
    pub lost: u64,
    /// Of those, how many could not be told, by reason; only reasons that occurred.
    pub unresolved: BTreeMap<String, u64>,
    /// What the targets may be slowed down by, as a share of their time.
    pub budget_share: Option<f64>,
    /// What they were slowed down by.
    pub spent_share: Option<f64>,
    /// Time that one trap takes, nanoseconds.
    pub hit_cost_ns: Option<f64>,
    /// Breakpoints of each CPU that the tool could have.
    pub slots: Option<u64>,
    /// What they are armed on.
    pub breadth: Option<String>,
}

impl Watch {
    /// `None` where the run had no windows at all; an error where it had and does not tell how many.
    pub(super) fn read(json: &Value) -> anyhow::Result<Option<Watch>> {
        if json.is_null() {
            return Ok(None);
        }
        let count = |key: &str| {
            json[key]
                .as_u64()
                .with_context(|| format!("{key} is not a number"))
        };
        let reasons = json["unresolved"]
            .as_object()
            .context("unresolved is not a map")?;
        Ok(Some(Watch {
            windows: count("windows")?,
            hits: count("hits")?,
            lost: count("lost")?,
            unresolved: reasons
                .iter()
                .map(|(reason, n)| (reason.clone(), n.as_u64().unwrap_or(u64::MAX)))
                .filter(|(_, n)| *n > 0)
                .collect(),
            budget_share: json["budget_share"].as_f64(),
            spent_share: json["spent_share"].as_f64(),
            hit_cost_ns: json["hit_cost_ns"].as_f64(),
            slots: json["slots"].as_u64(),
            breadth: text(json, "breadth"),
        }))
    }
}
