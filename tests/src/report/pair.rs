//! A load that a store to its line follows, as a report lists it.

use anyhow::Context;
use serde_json::Value;

use super::{Code, required, text};

/// One read-then-write pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The load.
    pub load: Code,
    /// The next access to the line by the same CPU.
    pub store: Code,
    /// Whether they are one instruction.
    pub same_instruction: bool,
    /// Key of the line.
    pub line_key: String,
    /// Variable that lies there.
    pub object_name: Option<String>,
    /// What is loaded.
    pub field: Option<String>,
    /// What is stored.
    pub store_field: Option<String>,
    /// `store` or `rmw`; `None` where the report does not tell.
    pub op_store: Option<String>,
    /// How often it was seen.
    pub count: u64,
    /// Of the load's executions, how many a store follows, from 0 to 1.
    pub share_of_load: Option<f64>,
    /// Whether no access to the watched bytes is missing between the two.
    pub complete_order: bool,
    /// What to do about it.
    pub hint: Option<Hint>,
    /// Why nothing.
    pub no_hint_because: Option<String>,
}

/// The advice to fetch a line for ownership where it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// `fetch-for-ownership`.
    pub kind: String,
    /// The instruction to add, for people.
    pub text: String,
}

/// A side is its code and more, or holds it.
pub(super) fn side(json: &Value) -> Code {
    let code = &json["code"];
    Code::read(if code.is_object() { code } else { json })
}

impl Pair {
    pub(super) fn read(json: &Value) -> anyhow::Result<Pair> {
        let truth = |key: &str| {
            json[key]
                .as_bool()
                .with_context(|| format!("{key} is neither true nor false"))
        };
        let hint = match &json["hint"] {
            Value::Null => None,
            hint => Some(Hint {
                kind: required(hint, "kind").context("hint")?,
                text: required(hint, "text").context("hint")?,
            }),
        };
        Ok(Pair {
            load: side(&json["load"]),
            store: side(&json["store"]),
            same_instruction: truth("same_instruction")?,
            line_key: required(&json["line"], "key").context("line")?,
            object_name: text(&json["object"], "name"),
            field: text(json, "field"),
            store_field: text(json, "store_field").or_else(|| text(&json["store"], "field")),
            op_store: text(json, "op_store").or_else(|| text(&json["store"], "op")),
            count: json["count"].as_u64().context("count is not a number")?,
            share_of_load: json["share_of_load"].as_f64(),
            complete_order: truth("complete_order")?,
            hint,
            no_hint_because: text(json, "no_hint_because"),
        })
    }
}
