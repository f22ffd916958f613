//! The report for people: names and lines, no colours in a pipe, no line too long to read.

use cohtrace_tests::{
    answer::{Variant, tagged_line},
    live::{GRACE, RUN_MS, Subject, ready},
    tool::{cohtrace, run},
};

/// The text report of one run on a workload.
fn text_report(name: &str) -> (Subject, String) {
    let subject = Subject::new(name, Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let mut attach = cohtrace(["attach", "--duration", "2", "--"]);
    attach.arg(&subject.program.path).arg(RUN_MS.to_string());
    let text = run(&mut attach, GRACE).expect_code(0).stdout;
    (subject, text)
}

#[test]
fn the_first_screen_names_variable_fields_and_lines_and_fits() {
    let Some(_turn) = ready() else { return };
    let (subject, text) = text_report("two_counters");
    let first_screen: String = text
        .lines()
        .take(40)
        .flat_map(|line| [line, "\n"])
        .collect();
    let line = |tag| tagged_line(&subject.workload.text, tag).expect("read with the key");
    for word in [
        "FALSE SHARING",
        "counters",
        "hits",
        "misses",
        "count_hits",
        "count_misses",
        &format!("two_counters.c:{}", line("@hits")),
        &format!("two_counters.c:{}", line("@misses")),
        // The cure, in the language of the source.
        "alignas(64)",
    ] {
        assert!(
            first_screen.contains(word),
            "{word} is not on the first screen:\n{text}"
        );
    }
    assert!(!text.contains('\x1b'), "colours in a pipe:\n{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "more than 100 columns: {line}");
    }
}

#[test]
fn advice_for_rust_speaks_rust() {
    let Some(_turn) = ready() else { return };
    let (_, text) = text_report("two_atomics");
    assert!(
        text.contains("repr(align(64))") || text.contains("CachePadded"),
        "{text}"
    );
    assert!(!text.contains("alignas"), "{text}");
}

#[test]
fn true_sharing_is_never_told_to_pad() {
    let Some(_turn) = ready() else { return };
    let (_, text) = text_report("shared_atomic");
    assert!(text.contains("TRUE SHARING"), "{text}");
    assert!(
        !text.contains("alignas(64)") && !text.contains("CachePadded"),
        "{text}"
    );
}
