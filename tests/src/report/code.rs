//! An instruction as a report names it.

use serde_json::Value;

use super::{hex, text};

/// An instruction and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// File that holds it.
    pub module: Option<String>,
    /// Its address.
    pub ip: Option<u64>,
    /// Function that was compiled.
    pub symbol: Option<String>,
    /// Functions inlined into it here.
    pub inlined: Vec<String>,
    /// Source positions of the instruction and of the calls that were inlined: file and line.
    pub places: Vec<(String, u32)>,
}

impl Code {
    /// Reads a `code` object; what it does not tell is not known.
    pub(super) fn read(json: &Value) -> Code {
        let mut places: Vec<(String, u32)> = place(json).into_iter().collect();
        let mut inlined = Vec::new();
        for frame in json["inlined"].as_array().into_iter().flatten() {
            places.extend(place(frame));
            inlined.extend(
                ["symbol", "function", "name"]
                    .iter()
                    .find_map(|key| text(frame, key))
                    .or_else(|| frame.as_str().map(str::to_owned)),
            );
        }
        Code {
            module: text(json, "module"),
            ip: text(json, "ip").and_then(|ip| hex(&ip)),
            symbol: text(json, "symbol"),
            inlined,
            places,
        }
    }
}

fn place(json: &Value) -> Option<(String, u32)> {
    Some((
        text(json, "file")?,
        u32::try_from(json["line"].as_u64()?).ok()?,
    ))
}
