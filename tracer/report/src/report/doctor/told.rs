//! What the kernel half told of why it did nothing, as a page and as JSON.

use std::{fmt::Write as _, time::Duration};

use serde::Serialize;

use crate::{printable, report::model::Target};

/// Version of the JSON document's layout.
const SCHEMA: u32 = 1;

/// Reasons of those whom nobody asked for.
const OTHERS: [&str; 2] = ["no_target", "foreign"];

/// Everything there is to print.
#[derive(Debug)]
pub struct Telling {
    /// What was observed.
    pub targets: Vec<Target>,
    /// Names of the sources at work.
    pub sources: Vec<String>,
    /// How long.
    pub duration: Duration,
    /// The lines, in any order.
    pub lines: Vec<Line>,
    /// Lines beyond those.
    pub left_out: usize,
    /// What the user half has to say: why something was not armed or seen.
    pub remarks: Vec<String>,
}

/// One line. Times and ids are the kernel's.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The same, since the observation began.
    #[serde(skip)]
    pub after: Duration,
    /// The program of the kernel half.
    pub program: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, for people.
    pub words: &'static str,
    /// Process id in the initial pid namespace.
    pub pid: u32,
    /// Thread id, as above.
    pub tid: u32,
    /// The thread's name, where it was still there.
    pub thread: Option<String>,
    /// The instruction, the watched word or the memory that it is about.
    #[serde(serialize_with = "hexadecimal")]
    pub addr: Option<u64>,
}

#[expect(clippy::ref_option, reason = "serde lends the field as it is")]
fn hexadecimal<S: serde::Serializer>(addr: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
    match addr {
        Some(addr) => to.collect_str(&format_args!("{addr:#x}")),
        None => to.serialize_none(),
    }
}

/// A page of lines in the order of their times. With `ascii`, names are written in ASCII.
pub fn render_text(telling: &Telling, ascii: bool) -> String {
    let targets: Vec<String> = telling.targets.iter().map(target).collect();
    let heading = format!(
        "cohtrace doctor --bpf-log: {}, {:.1} s, by {}",
        targets.join(", "),
        telling.duration.as_secs_f64(),
        telling.sources.join(", ")
    );
    let mut page = format!("{}\n\n", printable::printable(&heading, ascii));
    page += if telling.lines.is_empty() {
        "Nothing was told: every event that came was recorded.\n"
    } else {
        "Each line stands for the first time that a thread, a program and a reason met.\n"
    };
    let (others, own): (Vec<_>, Vec<_>) = in_order(&telling.lines)
        .into_iter()
        .partition(|line| OTHERS.contains(&line.reason));
    section(&mut page, "What was observed", &own, ascii);
    section(&mut page, "Others", &others, ascii);
    if telling.left_out > 0 {
        let _ = writeln!(page, "\n{} later lines were left out.", telling.left_out);
    }
    if !telling.remarks.is_empty() {
        page += "\nBeside the kernel half:\n";
    }
    for remark in &telling.remarks {
        let _ = writeln!(page, "  {}", printable::printable(remark, ascii));
    }
    page
}

fn section(page: &mut String, title: &str, lines: &[&Line], ascii: bool) {
    if !lines.is_empty() {
        // A page in memory takes all that is written to it, here and below.
        let _ = writeln!(page, "\n{title}:");
    }
    for line in lines {
        let name = line.thread.as_deref().unwrap_or("(ended)");
        let addr = line
            .addr
            .map_or(String::new(), |addr| format!(" at {addr:#x}"));
        let text = format!(
            "{:>9.3} s  {}  {}/{} {name}{addr}: {}",
            line.after.as_secs_f64(),
            line.program,
            line.pid,
            line.tid,
            line.words
        );
        let _ = writeln!(page, "{}", printable::printable(&text, ascii));
    }
}

fn target(target: &Target) -> String {
    let command = target.command.as_deref();
    match target.pid {
        Some(pid) => format!("process {pid} ({})", command.unwrap_or("unknown")),
        None => command.unwrap_or("all processes").to_owned(),
    }
}

fn in_order(lines: &[Line]) -> Vec<&Line> {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| line.time_ns);
    lines
}

/// The same as one indented JSON document, schema 1.
pub fn render_json(telling: &Telling) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        targets: Vec<TargetJson<'a>>,
        sources: &'a [String],
        duration_s: f64,
        lines: Vec<&'a Line>,
        left_out: usize,
        remarks: &'a [String],
    }
    #[derive(Serialize)]
    struct TargetJson<'a> {
        pid: Option<u32>,
        command: Option<&'a str>,
    }
    let targets = telling.targets.iter().map(|target| TargetJson {
        pid: target.pid,
        command: target.command.as_deref(),
    });
    let document = Document {
        schema: SCHEMA,
        targets: targets.collect(),
        sources: &telling.sources,
        duration_s: telling.duration.as_secs_f64(),
        lines: in_order(&telling.lines),
        left_out: telling.left_out,
        remarks: &telling.remarks,
    };
    let text = serde_json::to_string_pretty(&document).expect("plain data has a JSON form");
    printable::json(&text) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telling() -> Telling {
        let line = Line {
            time_ns: 5_000_000,
            after: Duration::from_millis(4),
            program: "watch",
            reason: "limit_reached",
            words: "not recorded: the window had had its hits",
            pid: 7,
            tid: 8,
            thread: Some("na\x1b[31mme".to_owned()),
            addr: Some(0x7f00),
        };
        let earlier = Line {
            time_ns: 1_000_000,
            after: Duration::ZERO,
            program: "task_fork",
            reason: "no_target",
            words: "not recorded: the process is no target",
            thread: None,
            addr: None,
            ..line.clone()
        };
        Telling {
            targets: vec![Target {
                pid: Some(42),
                command: Some("server".to_owned()),
            }],
            sources: vec!["timer".to_owned(), "watch".to_owned()],
            duration: Duration::from_secs(3),
            lines: vec![line, earlier],
            left_out: 0,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn what_was_observed_stands_before_others_and_no_name_acts_on_a_terminal() {
        expect_test::expect![[r"
            cohtrace doctor --bpf-log: process 42 (server), 3.0 s, by timer, watch

            Each line stands for the first time that a thread, a program and a reason met.

            What was observed:
                0.004 s  watch  7/8 na\x1b[31mme at 0x7f00: not recorded: the window had had its hits

            Others:
                0.000 s  task_fork  7/8 (ended): not recorded: the process is no target
        "]]
        .assert_eq(&render_text(&telling(), true));
    }

    #[test]
    fn what_was_left_out_and_what_else_there_is_to_say_is_said_and_so_is_nothing() {
        let page = Telling {
            lines: Vec::new(),
            left_out: 3,
            remarks: vec!["no breakpoints".to_owned()],
            ..telling()
        };
        let text = render_text(&page, true);
        assert!(text.contains("Nothing was told"), "{text}");
        assert!(text.contains("3 later lines"), "{text}");
        assert!(
            text.ends_with("Beside the kernel half:\n  no breakpoints\n"),
            "{text}"
        );
    }

    #[test]
    fn the_document_has_the_same_lines() {
        let text = render_json(&telling());
        assert!(!text.contains('\x1b'));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["lines"][0]["program"], "task_fork");
        assert_eq!(json["lines"][0]["addr"], serde_json::Value::Null);
        assert_eq!(json["lines"][1]["addr"], "0x7f00");
        assert_eq!(json["lines"][1]["thread"], "na\x1b[31mme");
        assert_eq!(json["targets"][0]["pid"], 42);
    }
}
