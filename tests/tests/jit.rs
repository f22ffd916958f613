//! Code that is in no file: named where its compiler tells of it, and said to be unnamed where it does not.

use std::collections::BTreeSet;

use cohtrace_tests::{
    answer::Variant::{self, Padded, Plain},
    live::{GRACE, Subject, ready},
    report::Report,
    tool::{self, cohtrace},
};

/// The report on the perf map workload, told how to write its map.
fn look(variant: Variant, how: &str) -> (Subject, Report) {
    let subject = Subject::new("jit_map", variant).unwrap_or_else(|error| panic!("{error:#}"));
    let mut command = cohtrace(["attach", "--json", "--duration", "2", "--"]);
    command.arg(&subject.program.path).args(["2500", how]);
    let ended = tool::run(&mut command, GRACE).expect_code(0);
    let report = Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()));
    (subject, report)
}

#[test]
fn a_perf_map_whose_numbers_have_a_prefix_names_code_as_well() {
    let Some(_turn) = ready() else { return };
    // A machine that gives the threads no time together shows nothing once in a while.
    let found = (0..3).any(|_| {
        let (subject, report) = look(Plain, "0x");
        subject.judge_report(&report).is_ok()
    });
    assert!(found, "three looks did not give the answer");
}

#[test]
fn code_without_a_map_has_no_name_and_the_report_says_what_would_give_one() {
    let Some(_turn) = ready() else { return };
    // A machine that gives the threads no time together shows nothing once in a while.
    let looks = (0..3).map(|_| look(Plain, "none").1);
    let report = looks
        .into_iter()
        .find(|report| !report.findings.is_empty())
        .expect("what it touches is known all the same");
    assert_eq!(report.findings[0].kind, "false-sharing");
    let fields: BTreeSet<&str> = (report.findings[0].accesses.iter())
        .filter_map(|access| access.field.as_deref())
        .collect();
    assert!(
        fields.iter().any(|field| field.ends_with("hits"))
            && fields.iter().any(|field| field.ends_with("misses")),
        "{fields:?}"
    );
    let accesses = report.findings.iter().flat_map(|finding| &finding.accesses);
    for access in accesses {
        assert_eq!(access.code.symbol, None, "{:?}", access.code);
    }
    assert!(
        report
            .caveats
            .iter()
            .any(|caveat| caveat.contains("--perf-basic-prof")),
        "{:#?}",
        report.caveats
    );
}

#[test]
fn code_without_a_map_with_counters_apart_is_read_and_cleared() {
    let Some(_turn) = ready() else { return };
    let (_, report) = look(Padded, "none");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(
        report.json["run"]["conclusive"], true,
        "{:#?}",
        report.caveats
    );
}
