//! What watch windows add: confirmed findings, dropped ones, pairs.

use super::{plain, two_counters, verbose};
use crate::{
    access::{ByteSet, LineKey, Op, Place, SpaceId},
    analysis::{HandOffs, Instruction, Left, Pair, PairSide, WatchedCounts},
    finding::{
        Confidence, Fact, Hint, JudgedPair, Judgement, NoHint, Reason, Significance, Verdict,
        WatchVerdict, Watched, WindowVerdict,
    },
    names::Language,
    report::{
        build,
        fixture::{FakeNames, LINE, facts, tally, watching},
        json,
        model::Report,
        text::{self, TextOptions},
    },
};

/// Wherever its lines were broken.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn watched(shown: WindowVerdict) -> Watched {
    let hand_offs = HandOffs {
        truly: 3,
        falsely: 300,
        undecided: 1,
        dragged: 0,
    };
    let counts = WatchedCounts {
        windows: 5,
        accesses: 640,
        stores: 320,
        span_ns: 10_000_000,
        hand_offs: hand_offs.total(),
        ..WatchedCounts::default()
    };
    Watched {
        verdict: WatchVerdict {
            shown,
            certain: true,
            shared_windows: 5,
            accesses: counts.accesses,
            stores: counts.stores,
            threads: 2,
            second_thread: 300,
            hand_offs,
            by_bytes: Some(Verdict::FalseSharing),
            widest: None,
        },
        counts,
        since_ns: Some(1_250_000_000),
    }
}

fn confirmed() -> (Judgement, FakeNames) {
    let (mut judgement, names) = two_counters();
    judgement.confidence = Confidence::Confirmed;
    judgement.watched = Some(watched(WindowVerdict::FalseSharing));
    (judgement, names)
}

fn made(judgements: &[Judgement], pairs: &[JudgedPair], names: &FakeNames) -> Report {
    build(&judgements.into(), pairs, names, &tally(), &watching())
}

#[test]
fn a_confirmed_finding_says_so_and_what_the_windows_saw() {
    let (judgement, names) = confirmed();
    let report = made(&[judgement], &[], &names);
    let finding = &report.findings[0];
    assert_eq!(finding.confidence, Confidence::Confirmed);
    assert_eq!(finding.confirmed_after_s, Some(0.25));
    let hand_offs = finding.handoffs.as_ref().unwrap();
    assert_eq!((hand_offs.observed, hand_offs.truly), (304, Some(3)));
    assert_eq!(hand_offs.at_least_per_s, Some(30_400.0));
    assert_eq!(hand_offs.per_s, None);
    let text = in_one_line(&plain(&report));
    assert!(
        text.contains("F1 FALSE SHARING, confirmed stats.hits"),
        "{text}"
    );
    assert!(text.contains("5 watch windows saw every access"), "{text}");
    assert!(text.contains("304 moved it to another CPU"), "{text}");
    assert!(!text.contains("no hand-offs are counted"), "{text}");
}

#[test]
fn a_sampled_finding_makes_no_such_claim() {
    let (judgement, names) = two_counters();
    let report = build(&[judgement].into(), &[], &names, &tally(), &facts());
    assert_eq!(report.findings[0].confidence, Confidence::Sampled);
    assert_eq!(report.findings[0].handoffs, None);
    assert_eq!(report.run.watch, None);
    assert!(!plain(&report).contains("confirmed"));
}

#[test]
fn a_suspicion_that_windows_dropped_is_listed_with_the_reason() {
    let (mut judgement, names) = two_counters();
    judgement.significance = Significance::Insignificant(Reason::Contradicted);
    judgement.watched = Some(watched(WindowVerdict::OneThread));
    judgement
        .facts
        .push(Fact::ShownInstead(WindowVerdict::OneThread));
    let report = made(&[judgement], &[], &names);
    assert!(report.findings.is_empty());
    let dropped = &report.insignificant[0];
    assert_eq!(
        dropped.insignificant_because.as_deref(),
        Some("watch windows saw no sharing")
    );
    assert!(
        dropped
            .facts
            .iter()
            .any(|fact| fact.contains("a single thread"))
    );
    assert_eq!(dropped.confirmed_after_s, None);
}

#[test]
fn what_watching_cost_is_told_beside_what_it_might() {
    let (judgement, names) = confirmed();
    let watch = made(&[judgement], &[], &names).run.watch.unwrap();
    assert_eq!(
        (watch.tally.windows, watch.tally.hits, watch.slots),
        (5, 640, 4)
    );
    assert!((watch.spent_share - 0.0012).abs() < 1e-9);
    assert!((watch.budget_share - 0.02).abs() < 1e-9);
}

fn judged(hint: Hint) -> JudgedPair {
    let side = |ip, offset, op| PairSide {
        instruction: Instruction {
            space: SpaceId(0),
            ip,
            kernel: false,
        },
        op,
        offset,
        size: 8,
        within: 0,
        bytes: ByteSet(0xff << offset),
    };
    JudgedPair {
        line: LineKey(Place::Private {
            space: SpaceId(0),
            addr: LINE,
        }),
        pair: Pair {
            load: side(0x401700, 0, Op::Load),
            store: side(0x401800, 8, Op::Store),
            same_instruction: false,
            count: 95,
            global_count: 40,
            executions: 100,
            share_of_load: Some(0.95),
            load_requests: 60,
            among_readers: 0,
            taken_by_reads: 2,
            taken_by_writes: 7,
            mere_reads: 1,
            left: Left {
                dirty: 7,
                clean: 0,
                shared: 40,
                own: 48,
            },
            threads: 2,
            complete_order: true,
        },
        hint,
    }
}

fn names() -> FakeNames {
    let (_, names) = two_counters();
    names
        .code(0x401700, "peek", "/src/demo/demo.c", 61, Language::C)
        .code(0x401800, "poke", "/src/demo/demo.c", 72, Language::C)
}

#[test]
fn a_pair_with_a_hint_is_in_the_report_with_both_places_and_the_instruction_to_use() {
    let (judgement, _) = confirmed();
    let report = made(&[judgement], &[judged(Hint::FetchForOwnership)], &names());
    let text = in_one_line(&plain(&report));
    let line = "P1 stats.hits demo.c:61 then demo.c:72 95 times, 95.0 % of its executions";
    assert!(text.contains(line) && !text.contains("prefetchw"), "{text}");
    let text = in_one_line(&verbose(&report));
    for part in [
        "P1 FETCH FOR OWNERSHIP",
        "load stats.hits in peek, demo.c:61",
        "then stats.misses in poke, demo.c:72",
        "95 times, 95.0 % of its executions, by 2 threads",
        "prefetchw",
        "prfm pstl1keep",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json::render(&report, false)).unwrap();
    let pair = &json["pairs"][0];
    assert_eq!(pair["load"]["code"]["line"], 61);
    assert_eq!(pair["store"]["op"], "store");
    assert_eq!(pair["hint"]["kind"], "fetch-for-ownership");
    assert_eq!(pair["no_hint_because"], serde_json::Value::Null);
    assert_eq!(pair["left"]["shared"], 40);
}

#[test]
fn a_pair_without_a_hint_is_listed_by_itself_with_the_reason() {
    let (judgement, _) = confirmed();
    let seldom = judged(Hint::No(NoHint::SeldomStored(0.25)));
    let report = made(&[judgement], &[seldom], &names());
    assert!(!plain(&report).contains("P1"));
    let text = in_one_line(&text::render_pairs(&report, TextOptions::default()));
    assert!(text.contains("P1 leave as it is"), "{text}");
    assert!(
        text.contains("follows 25.0 % of the loads, less than 90.0 %"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&json::render_pairs(&report)).unwrap();
    assert_eq!(json["pairs"][0]["hint"], serde_json::Value::Null);
}

#[test]
fn a_run_without_windows_says_why_it_has_no_pairs() {
    let (judgement, names) = two_counters();
    let report = build(&[judgement].into(), &[], &names, &tally(), &facts());
    let text = in_one_line(&text::render_pairs(&report, TextOptions::default()));
    assert!(text.contains("record without --no-watch"), "{text}");
}
