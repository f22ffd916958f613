//! The report as JSON, schema 1.

use super::{model::Report, printable};

/// One JSON document without a newline at the end; `pretty` for people, compact for pipes.
/// `cat` of it is safe.
pub fn render(report: &Report, pretty: bool) -> String {
    let text = if pretty {
        serde_json::to_string_pretty(report)
    } else {
        serde_json::to_string(report)
    };
    printable::json(&text.expect("the report has string keys only, so serialising it cannot fail"))
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
        rates: _,
        latent: _,
        caveats,
    } = report;
    let pairs = serde_json::json!({
        "schema": schema,
        "tool": tool,
        "run": run,
        "pairs": pairs,
        "caveats": caveats,
    });
    printable::json(&format!("{pairs:#}\n"))
}
