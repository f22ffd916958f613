//! What the report says of CPUs that stood elsewhere than at the accessing instruction.

use super::two_counters;
use crate::{
    access::{Cost, Op},
    analysis::{Totals, WaitTimes},
    finding::{Judgement, Verdict},
    report::{
        RunFacts,
        build::build,
        fixture::{FakeNames, facts, judgement, report, site, tally},
        model::Report,
    },
};

fn facts_of(report: &Report) -> String {
    report.findings[0].facts.join("\n")
}

/// A thread reads a word in a loop, 3,000 of its 4,000 stalled samples; another one or the same stores it.
fn hand_over(storing: u32, offset: u8) -> (Judgement, FakeNames) {
    let (_, names) = two_counters();
    let mut waiting = site(0, 8, Op::Load, 4001, 0x401136, 4000, 0);
    waiting.waits.spinning = Cost(3_000_000_000);
    let stores = site(offset, 8, Op::Store, storing, 0x401166, 10, 500);
    let found = judgement(Verdict::TrueSharing, 1.0, vec![waiting, stores]);
    (found, names)
}

#[test]
fn who_spins_for_a_line_and_who_ends_it_is_said() {
    let (found, names) = hand_over(4002, 0);
    let report = report(&[found], &names);
    assert!(
        facts_of(&report).contains(
            "Threads spin for it 30.0 % of the time: worker 4001 waits at demo.c:31 until worker 4002 stores at \
             demo.c:40."
        ),
        "{}",
        facts_of(&report)
    );
    assert!((report.findings[0].accesses[0].spinning_share - 0.3).abs() < 1e-9);
}

#[test]
fn a_store_by_the_waiting_thread_or_to_other_bytes_ends_no_wait() {
    for (tid, offset) in [(4001, 0), (4002, 8)] {
        let (found, names) = hand_over(tid, offset);
        let report = report(&[found], &names);
        assert!(
            facts_of(&report).contains("; no store to what it reads was seen."),
            "{}",
            facts_of(&report)
        );
    }
}

#[test]
fn nothing_is_said_of_spinning_where_nobody_does() {
    let (found, names) = two_counters();
    let text = facts_of(&report(&[found], &names));
    assert!(
        !text.contains("spin") && !text.contains("barrier"),
        "{text}"
    );
}

#[test]
fn a_wait_at_a_barrier_is_said_to_be_one() {
    let (mut found, names) = two_counters();
    let sites = found.sites.iter_mut().filter(|site| site.stalled > 0);
    for site in sites {
        site.waits = WaitTimes {
            at_barrier: Cost(site.cost.0 / 2),
            spinning: Cost(0),
        };
    }
    let report = report(&[found], &names);
    assert!(
        facts_of(&report).contains("For 23.0 % of the time the CPU waits at the full barrier"),
        "{}",
        facts_of(&report)
    );
}

/// The caveats of a run with such waits.
fn caveats(spinning: u64, undecided: u64) -> String {
    let (found, names) = hand_over(4002, 0);
    let run = RunFacts {
        totals: Totals {
            spinning: Cost(spinning),
            ..Totals::default()
        },
        undecided_cost: Cost(undecided),
        ..facts()
    };
    let report = build(&vec![found].into(), &[], &names, &tally(), &run);
    let texts: Vec<&str> = (report.caveats.iter())
        .map(|caveat| caveat.text.as_str())
        .collect();
    texts.join("\n")
}

#[test]
fn spinning_for_lines_that_are_not_listed_is_told_once_it_matters() {
    let whole = tally().cost.0;
    // Of this, 30 % are in the finding.
    assert!(caveats(whole / 100 * 40, 0).contains("10.0 % of the time threads spun"));
    assert!(!caveats(whole / 100 * 32, 0).contains("threads spun"));
}

#[test]
fn undecided_waits_are_told() {
    let whole = tally().cost.0;
    let told = "5.0 % of the time was seen at loads of memory that nobody was seen to store to";
    assert!(caveats(0, whole / 20).contains(told));
    assert!(!caveats(0, 0).contains("nobody stores to"));
}
