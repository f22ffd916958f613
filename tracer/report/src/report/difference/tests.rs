use super::{Change, Difference, Differs, MatchedBy, Session, build, render_json, render_text};
use crate::{
    access::{Cost, CostUnit, Op},
    finding::{Grade, Verdict},
    names::{Language, ObjectKind},
    report::{
        fixture::{FakeNames, LINE, judgement, object, report, site},
        model::{FindingId, Gain, Hex, Report, ThreadGain, WordRate},
        style::TextOptions,
    },
};

/// A run with one line of `name` that two threads use in `functions`.
fn one(name: &str, functions: [&str; 2], verdict: Verdict, samples: u32) -> Report {
    let names = FakeNames {
        objects: vec![object(name, ObjectKind::Global, LINE, 16)],
        ..FakeNames::default()
    };
    let names = names
        .field(0, 8, 0, ".hits")
        .field(8, 16, 0, ".misses")
        .code(0x40_1000, functions[0], "/s/a.c", 7, Language::C)
        .code(0x40_2000, functions[1], "/s/a.c", 9, Language::C);
    let sites = vec![
        site(0, 8, Op::Store, 1, 0x40_1000, samples, 0),
        site(8, 8, Op::Store, 2, 0x40_2000, samples, 0),
    ];
    report(&[judgement(verdict, 0.0, sites)], &names)
}

fn plain() -> Report {
    one("counters", ["hit", "miss"], Verdict::FalseSharing, 2000)
}

fn none() -> Report {
    report(&[], &FakeNames::default())
}

fn compare(before: &Report, after: &Report) -> Difference {
    let session = |name, report| Session {
        name,
        report,
        cost: Cost(100),
    };
    build(session("a.coh", before), session("b.coh", after))
}

fn text(difference: &Difference) -> String {
    render_text(difference, TextOptions::default())
}

#[test]
fn equal_sessions_have_nothing_that_changed() {
    let same = compare(&plain(), &plain());
    assert!(same.is_nothing() && same.comparable && same.cautions.is_empty());
    assert_eq!(same.new_findings(), 0);
    let text = text(&same);
    assert!(
        text.contains("0 new, 0 gone, 0 changed, 1 the same"),
        "{text}"
    );
    assert!(text.ends_with("Nothing changed.\n"), "{text}");
}

#[test]
fn what_padding_cured_is_gone_and_what_comes_back_is_new() {
    let cured = compare(&plain(), &none());
    assert_eq!(
        (cured.findings[0].change, cured.new_findings()),
        (Change::Gone, 0)
    );
    let words = text(&cured);
    assert!(
        words.contains("gone     false-sharing  counters  F1 36.0 % -> not seen"),
        "{words}"
    );
    assert!(words.contains(".hits .misses; at /s/a.c:7"), "{words}");
    assert!(words.contains("counters  36.0 % -> not seen"), "{words}");
    assert!(!words.contains("Nothing changed"), "{words}");
    let back = compare(&none(), &plain());
    assert_eq!(
        (back.findings[0].change, back.new_findings()),
        (Change::New, 1)
    );
}

#[test]
fn a_finding_below_the_threshold_after_is_gone_with_the_reason() {
    let mut small = plain();
    let mut line = small.findings.remove(0);
    line.insignificant_because = Some("costs less than 1.0 % of the time".to_owned());
    line.id = FindingId::parse("I1").expect("a name");
    small.insignificant.push(line);
    let cured = compare(&plain(), &small);
    assert_eq!(cured.findings[0].change, Change::Gone);
    assert!(text(&cured).contains("I1 (costs less than 1.0 % of the time)"));
    let back = compare(&small, &plain());
    assert_eq!(back.new_findings(), 1, "it was no finding before");
    assert!(compare(&small, &small).findings.is_empty());
}

#[test]
fn a_renamed_variable_is_known_by_the_functions_that_use_it() {
    let renamed = one("totals", ["hit", "miss"], Verdict::FalseSharing, 2000);
    let known = compare(&plain(), &renamed);
    let finding = &known.findings[0];
    assert_eq!(
        (known.findings.len(), finding.change, finding.matched_by),
        (1, Change::Same, Some(MatchedBy::Code))
    );
    assert_eq!(finding.renamed_from.as_deref(), Some("counters"));
    assert!(text(&known).contains("totals (was counters)"));

    let other = one("totals", ["read", "write"], Verdict::FalseSharing, 2000);
    let apart = compare(&plain(), &other);
    assert_eq!((apart.findings.len(), apart.new_findings()), (2, 1));
    // Both names are there, so it is no new name of the old one.
    let mut with_both = plain();
    with_both.findings.extend(renamed.findings.clone());
    let more = compare(&plain(), &with_both);
    assert_eq!((more.findings.len(), more.new_findings()), (2, 1));
}

#[test]
fn shares_differ_only_beyond_chance() {
    let of = |samples| one("counters", ["hit", "miss"], Verdict::FalseSharing, samples);
    assert_eq!(
        compare(&of(2000), &of(2020)).findings[0].change,
        Change::Same
    );
    let half = compare(&of(2000), &of(1000));
    assert_eq!(half.findings[0].differences, [Differs::Share]);
    let kind = compare(
        &of(2000),
        &one("counters", ["hit", "miss"], Verdict::MixedSharing, 2000),
    );
    assert_eq!(kind.findings[0].differences, [Differs::Kind]);
    assert!(text(&kind).contains("false-sharing -> mixed-sharing"));
}

#[test]
fn sessions_that_do_not_compare_are_warned_of() {
    let mut other = one("counters", ["hit", "miss"], Verdict::FalseSharing, 1000);
    other.run.cost_unit = CostUnit::LatencyCycles;
    other.run.observed.sources = vec!["ibs".to_owned()];
    other.run.observed.duration_ns = 60_000_000_000;
    other.run.observed.frequency_hz = None;
    other.run.lost = 5000;
    let warned = compare(&plain(), &other);
    assert!(!warned.comparable);
    let text = text(&warned);
    for words in [
        "different units",
        "different sources",
        "5.0 s before and 60 s after",
        "an unknown rate",
        "lost 50.0 %",
    ] {
        assert!(text.contains(words), "{words} is missing\n{text}");
    }
    assert_eq!(
        warned.findings[0].change,
        Change::Same,
        "shares of different things are not held against each other"
    );
    assert!(!text.contains("Objects,"), "{text}");
}

#[test]
fn counts_of_emulated_runs_are_compared_as_they_are() {
    let mut run = plain();
    run.run.cost_unit = CostUnit::Transactions;
    let session = |cost| Session {
        name: "e.coh",
        report: &run,
        cost,
    };
    let fewer = render_text(
        &build(session(Cost(2000)), session(Cost(1500))),
        TextOptions::default(),
    );
    assert!(
        fewer.contains("transactions  2,000 before, 1,500 after (-25.0 %)"),
        "{fewer}"
    );
    let none = render_text(
        &build(session(Cost(0)), session(Cost(1500))),
        TextOptions::default(),
    );
    assert!(none.contains("0 before, 1,500 after\n"), "{none}");
}

#[test]
fn json_has_the_same_and_nothing_hostile() {
    let hostile = one("co\u{1b}[2J", ["hit", "miss"], Verdict::FalseSharing, 2000);
    let difference = compare(&plain(), &hostile);
    let json: serde_json::Value = serde_json::from_str(&render_json(&difference)).unwrap();
    assert_eq!(
        (&json["schema"], &json["findings"][0]["change"]),
        (&1.into(), &"same".into())
    );
    assert!(!render_json(&difference).contains('\u{1b}') && !text(&difference).contains('\u{1b}'));
}

/// A report whose thread by `counters.hits` is said to become so many times as fast, and grows by so much a second.
fn predicting(times: f64, per_s: f64) -> Report {
    let mut report = plain();
    let word = Some("counters.hits".to_owned());
    report.findings[0].gain = Some(Gain {
        grade: Grade::Held,
        low: times * 0.95,
        high: Some(times * 1.05),
        per_thread: vec![ThreadGain {
            pid: 1,
            tid: 1,
            comm: Some("hitter".to_owned()),
            times,
            low: times * 0.95,
            high: times * 1.05,
            readings: 10,
            word: word.clone(),
            address: Hex(LINE),
            beside_per_s: per_s,
        }],
        basis: "seen".to_owned(),
    });
    report.rates = vec![WordRate {
        word,
        address: Hex(LINE),
        pid: 1,
        tid: 1,
        comm: Some("hitter".to_owned()),
        per_s,
        readings: 10,
    }];
    report
}

#[test]
fn what_was_predicted_stands_beside_what_came_of_it() {
    let mut after = predicting(1.0, 108e6);
    after.findings.clear();
    let right = compare(&predicting(2.0, 50e6), &after);
    let gain = &right.gains[0];
    assert!(
        (gain.real - 2.16).abs() < 1e-9 && gain.is_as_predicted,
        "{gain:?}"
    );
    let printed = text(&right);
    assert!(printed.contains("Gains: 1 of 1 as predicted"), "{printed}");
    assert!(
        printed.contains("F1 hitter, by counters.hits: predicted 2.00 times as fast (1.90 to 2.10, held), real 2.16"),
        "{printed}"
    );
    let wrong = compare(&predicting(4.0, 50e6), &after);
    assert!(!wrong.gains[0].is_as_predicted);
    assert!(text(&wrong).contains("Gains: 0 of 1 as predicted"));
    // Nothing was read after, or before.
    assert_eq!(compare(&predicting(2.0, 50e6), &plain()).gains, []);
    assert_eq!(compare(&plain(), &after).gains, []);
}
