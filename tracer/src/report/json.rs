//! The report as JSON, schema 1.

use std::fmt::Write;

use super::{model::Report, printable::is_hostile};

/// One JSON document without a newline at the end; `pretty` for people, compact for pipes.
///
/// Strings carry names from binaries. JSON itself escapes only the controls below U+0020; the other
/// characters that a terminal may act on are escaped here, so that `cat` of a report is safe too.
pub fn render(report: &Report, pretty: bool) -> String {
    let text = if pretty {
        serde_json::to_string_pretty(report)
    } else {
        serde_json::to_string(report)
    };
    escape(&text.expect("the report has string keys only, so serialising it cannot fail"))
}

/// The pairs of a report, with what must be known of them: `{schema, tool, run, pairs, caveats}`.
pub fn render_pairs(report: &Report) -> String {
    let Report {
        schema,
        tool,
        run,
        findings: _,
        insignificant: _,
        pairs,
        caveats,
    } = report;
    let pairs = serde_json::json!({
        "schema": schema,
        "tool": tool,
        "run": run,
        "pairs": pairs,
        "caveats": caveats,
    });
    escape(&format!("{pairs:#}\n"))
}

/// Outside of strings JSON has no such characters but the newlines of the pretty form, so replacing
/// them anywhere keeps the document and its meaning.
pub(super) fn escape(json: &str) -> String {
    if !json.chars().any(|c| c != '\n' && is_hostile(c)) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if c == '\n' || !is_hostile(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to a String cannot fail");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_json_leaves_alone_are_escaped_without_changing_the_value() {
        let name = "a\u{9b}b\u{7f}c\u{202e}d\u{e0001}e\x1b\n";
        let json = escape(&serde_json::to_string(name).unwrap());
        assert!(json.is_ascii() && !json.chars().any(is_hostile), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }
}
