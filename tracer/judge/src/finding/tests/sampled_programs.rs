//! Shapes of sharing with known answers, each sampled with 50 seeds, each with its negative twin.

use super::{
    answers::{expect_findings, expect_reason},
    programs::{BASE, Program, add, load, program, store, worker},
};
use crate::{
    access::{Cost, LineSize},
    analysis::Kinds,
    finding::{Fact, Reason, Significance, Verdict},
};

use Verdict::{FalseSharing, TrueSharing};

const SEEDS: u64 = 50;

/// Checks that exactly these lines (offsets from the base) are findings, with these verdicts.
fn check(program: &Program, expected: &[(u64, Verdict)]) {
    for seed in 0..SEEDS {
        let judgements = program.sample(seed).judge();
        expect_findings(&judgements, expected, seed);
    }
}

/// Checks that the line at the base is listed as insignificant for this reason.
fn check_reason(program: &Program, reason: Reason) {
    for seed in 0..SEEDS {
        let judgements = program.sample(seed).judge();
        let line = judgements.iter().find(|j| j.key.0.position() == BASE);
        expect_reason(line, reason, &judgements, seed);
    }
}

#[test]
fn owners_of_a_slot_one_after_the_other_do_not_share_it() {
    let owners = |length_ms: u64| {
        let slot = |at: u64, first: bool| {
            let owner = move |n: u64| {
                let start = n * length_ms + if first { 0 } else { length_ms / 2 };
                worker(&[add(at)]).during(start..start + length_ms)
            };
            (0..3000 / length_ms).map(owner)
        };
        program(slot(0, true).chain(slot(8, false)))
    };
    for length_ms in [30, 100, 500] {
        check(&owners(length_ms), &[(0, FalseSharing)]);
    }
}

#[test]
fn a_writer_that_is_rarely_sampled_is_still_seen_by_its_victims() {
    let rarely = |at| program([worker(&[store(0)]).busy(0.05), worker(&[load(at)])]);
    check(&rarely(8), &[(0, FalseSharing)]);
    check(&rarely(64), &[]);
}

#[test]
fn counters_that_main_initialised_are_false_sharing() {
    let counters = [
        worker(&[store(0), store(8), store(16)]).during(0..20),
        worker(&[add(0)]).during(20..u64::MAX),
        worker(&[add(8)]).during(20..u64::MAX),
    ];
    check(&program(counters), &[(0, FalseSharing)]);
}

#[test]
fn a_configuration_written_once_is_nothing() {
    let config = program([
        worker(&[store(0), store(8)]).during(0..2),
        worker(&[load(0)]),
        worker(&[load(8)]),
        worker(&[load(0)]),
    ]);
    check(&config, &[]);
    let long_initialisation = program([
        worker(&[store(0), store(8)]).during(0..150),
        worker(&[load(0)]).during(150..3000),
        worker(&[load(8)]).during(150..3000),
    ]);
    check(&long_initialisation, &[]);
}

#[test]
fn a_stop_flag_written_once_is_nothing() {
    let flag = program([
        worker(&[load(0)]),
        worker(&[load(0)]),
        worker(&[store(0)]).during(2997..2999),
    ]);
    check(&flag, &[]);
}

#[test]
fn reading_by_all_is_nothing_and_says_that_no_store_was_seen() {
    let reading = program((0..3).map(|_| worker(&[load(0), load(8)])));
    check(&reading, &[]);
    check_reason(&reading, Reason::NoStoreSeen);
    let judgements = reading.sample(1).judge();
    assert!(judgements[0].facts.contains(&Fact::NoStoreSeen));
    assert_eq!(judgements[0].verdict, None);
}

#[test]
fn one_thread_is_nothing_even_when_it_migrates() {
    let mut one = program([worker(&[add(0), add(8)])]);
    check(&one, &[]);
    // The idle second thread makes the scheduler draw lots for the CPU.
    one.workers.push(worker(&[add(0x1000)]));
    check(&one, &[]);
    assert!(one.sample(1).judge().is_empty());
}

#[test]
fn threads_on_one_cpu_are_nothing() {
    let mut counters = program([worker(&[add(0)]), worker(&[add(8)])]);
    counters.cpus = 1;
    check(&counters, &[]);
    check_reason(&counters, Reason::OneCpu);
}

#[test]
fn phases_are_nothing_whatever_their_length() {
    let phases = |length_ms| {
        program([
            worker(&[add(0)]).alternating(length_ms, true),
            worker(&[add(8)]).alternating(length_ms, false),
        ])
    };
    for length_ms in [21, 50, 100, 130, 500, 1500] {
        let mut phases = phases(length_ms);
        // Each on a CPU of its own, for the order alone to tell.
        phases
            .workers
            .insert(0, worker(&[add(0x1000)]).alternating(length_ms, false));
        check(&phases, &[]);
        check_reason(&phases, Reason::NotInterleaved);
    }
}

#[test]
fn a_stray_address_now_and_then_is_nothing() {
    let stray = |share| {
        program([
            worker(&[add(0)]),
            worker(&[store(8)]).busy(share),
            worker(&[add(0x1000)]),
        ])
    };
    check(&stray(0.0005), &[]);
}

#[test]
fn sharing_that_takes_a_twentieth_of_the_time_is_found() {
    let small = |at| {
        let mut program = program([worker(&[add(0)]).busy(0.08), worker(&[add(at)]).busy(0.08)]);
        program.duration_ms = 5000;
        program
    };
    check(&small(8), &[(0, FalseSharing)]);
    check(&small(64), &[]);
}

#[test]
fn sharing_below_a_hundredth_of_the_time_is_listed_and_no_finding() {
    let mut tiny = program([worker(&[add(0)]).busy(0.01), worker(&[add(8)]).busy(0.01)]);
    tiny.duration_ms = 5000;
    check(&tiny, &[]);
    let judgements = tiny.sample(3).judge();
    assert!(matches!(
        judgements[0].significance,
        Significance::Insignificant(_)
    ));
}

#[test]
fn shared_memory_of_two_processes_is_one_line_and_private_memory_is_not() {
    let mut forked = program([
        worker(&[add(0)]).of_process(100),
        worker(&[add(8)]).of_process(200),
    ]);
    check(&forked, &[]);
    forked.shared_memory = true;
    check(&forked, &[(0, FalseSharing)]);
}

#[test]
fn fields_on_neighbouring_lines_are_false_sharing_only_in_pairs_of_lines() {
    let mut neighbours = program([worker(&[add(0)]), worker(&[add(64)])]);
    check(&neighbours, &[]);
    neighbours.line_size = LineSize::B128;
    check(&neighbours, &[(0, FalseSharing)]);
    let mut further = program([worker(&[add(0)]), worker(&[add(128)])]);
    further.line_size = LineSize::B128;
    check(&further, &[]);
}

#[test]
fn a_finding_that_rests_on_harvested_stores_is_weak() {
    let both = |harvested| {
        let mut program = program([
            worker(&[add(0x1000), store(0)]),
            worker(&[add(0x2000), load(8)]),
        ]);
        for worker in &mut program.workers {
            for step in &mut worker.steps {
                // The line itself never stalls, so its accesses are decoded or harvested.
                step.stall = u64::from(step.at >= 0x1000);
            }
        }
        program.harvested = harvested;
        program.sample(1).judge()
    };
    let harvested = both(1.0);
    assert!(harvested[0].weak);
    assert!(harvested[0].facts.contains(&Fact::HarvestedOnly));
    assert_eq!(harvested[0].verdict, Some(FalseSharing));
    let decoded = both(0.0);
    assert!(!decoded[0].weak);
    assert!(!decoded[0].facts.contains(&Fact::HarvestedOnly));
}

#[test]
fn a_judgement_carries_its_numbers() {
    let judgements = program([worker(&[add(0)]), worker(&[add(8)])])
        .sample(1)
        .judge();
    let line = &judgements[0];
    // Both threads are in the loop for 90 % of their samples, and 60 % of those are stalled.
    let share = line.shared_share.unwrap();
    assert!((0.45..0.60).contains(&share), "{share}");
    assert!(line.interleaving > 0.8);
    assert_eq!(
        line.kinds,
        Some(Kinds {
            truly: 0.0,
            falsely: 1.0
        })
    );
    assert!(line.shared_cost <= line.cost);
    assert_eq!(line.threads.len(), 2);
    assert_eq!(
        line.accesses,
        line.threads.iter().map(|t| t.accesses).sum::<u64>()
    );
    assert_eq!(line.cost, line.sites.iter().map(|s| s.cost).sum::<Cost>());
    assert!(line.sites.is_sorted_by(|a, b| a.cost >= b.cost));
    assert!(line.facts.contains(&Fact::Separable(1.0)));
}

#[test]
fn verdicts_hold_on_machines_with_more_cpus() {
    let on = |cpus, workers: Vec<_>| {
        let mut program = program(workers);
        program.cpus = cpus;
        program.duration_ms = 500;
        program
    };
    let slots = |stride: u64| (0..8).map(|n| worker(&[add(n * stride)])).collect();
    check(&on(8, slots(8)), &[(0, FalseSharing)]);
    check(&on(8, slots(64)), &[]);
    let phases = (0..8).map(|n| worker(&[add(n * 8)]).during(n * 60..n * 60 + 60));
    check(&on(8, phases.collect()), &[]);
    let crowd = |load_only: bool| {
        let step = if load_only { load(0) } else { add(0) };
        (0..500).map(|_| worker(&[step])).collect()
    };
    check(&on(64, crowd(false)), &[(0, TrueSharing)]);
    check(&on(64, crowd(true)), &[]);
}

#[test]
fn verdicts_hold_at_a_tenth_of_the_rate() {
    let slowly = |workers: [_; 2]| {
        let mut program = program(workers);
        program.period_ms = 10;
        program.duration_ms = 20_000;
        program
    };
    check(
        &slowly([worker(&[add(0)]), worker(&[add(8)])]),
        &[(0, FalseSharing)],
    );
    check(&slowly([worker(&[add(0)]), worker(&[add(64)])]), &[]);
    let phases = [true, false].map(|first| worker(&[add(0)]).alternating(1000, first));
    check(&slowly(phases), &[]);
}
