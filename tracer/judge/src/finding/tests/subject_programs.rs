//! Things of many lines with known answers, each sampled with some seeds, each with its negative twin.

use super::programs::{BASE, Random};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineSize, Op, Pid, Place, SpaceId, Tid},
    analysis::{
        AnalysisOptions, LineTable, OrderBounds, OrderedLines, WatchedLines,
        emulated_fixture::emulated,
    },
    event::Batch,
    finding::{
        Member, Model, Moved, Orders, Ranking, Significance, Subject, Thresholds, Verdict,
        judge_table, subjects,
    },
    names::{ObjectKind, Owned, Owner, Unit},
    pipeline::Pipeline,
};

const SEEDS: u64 = 10;

/// One sample of one of two threads: offset from the base, and what it does there.
type Sample = (u64, Op);

/// 4 s of two threads on two CPUs at 1 kHz, all of it waiting: `at` says what a thread touches, by millisecond.
fn sampled(seed: u64, at: impl Fn(u32, u64, &mut Random) -> Sample) -> LineTable {
    let mut random = Random::new(seed);
    let mut table = LineTable::new(AnalysisOptions::default());
    for ms in 0..4000u64 {
        for thread in 0..2u32 {
            let (offset, op) = at(thread, ms, &mut random);
            let addr = BASE + offset;
            let space = SpaceId(1);
            let access = Access {
                time_ns: 10_000_000_000 + ms * 1_000_000 + u64::from(thread) * 400_000,
                addr,
                ip: 0x40_1000 + u64::from(thread) * 0x100,
                cost: Cost(1_000_000),
                pid: Pid(7),
                tid: Tid(100 + thread),
                cpu: Cpu(thread),
                size: 8,
                op,
                basis: Basis::Stalled,
                ..Access::BLANK
            };
            table.observe(&access, Place::Private { space, addr }, space);
        }
    }
    table
}

/// Judges all lines as parts of one array of elements of `stride` bytes, or by their instructions.
fn judged(table: &LineTable, stride: Option<u64>) -> Vec<Subject> {
    let thresholds = Thresholds::default();
    let watched = WatchedLines::default();
    let ordered = OrderedLines::new(LineSize::B64, OrderBounds::default());
    let orders = Orders {
        watched: &watched,
        moved: &Moved::default(),
        ordered: &ordered,
    };
    let whole = Cost(8_000_000_000);
    let model = Model {
        whole,
        untimed_stores: 0,
        line_size: LineSize::B64,
        thresholds: &thresholds,
    };
    let ranking = Ranking::new(&orders, model);
    let members = judge_table(table, ranking.with_members()).members;
    let owner = |_: &Member| {
        stride.map(|stride| Owned {
            owner: Owner {
                kind: ObjectKind::Global,
                label: "ring[]".to_owned(),
                start: BASE,
                part: 0,
            },
            lines: None,
            unit: Some(Unit {
                start: BASE,
                stride,
            }),
        })
    };
    let model = Model {
        whole,
        untimed_stores: 0,
        line_size: LineSize::B64,
        thresholds: &thresholds,
    };
    subjects(members, owner, &model)
}

/// Checks that all lines together are one finding of this kind, or none.
fn check(
    stride: Option<u64>,
    expected: Option<Verdict>,
    at: impl Fn(u32, u64, &mut Random) -> Sample,
) {
    for seed in 0..SEEDS {
        let subjects = judged(&sampled(seed, &at), stride);
        let found = subjects.iter().filter(|subject| subject.is_finding());
        let found: Vec<&Subject> = found.collect();
        let worst = &subjects[0];
        let said = format!(
            "seed {seed}: {} subjects, {:?} {:?} {:?} on {} lines, {} of {} ns",
            subjects.len(),
            worst.verdict,
            worst.significance,
            worst.kinds,
            worst.lines,
            worst.shared_cost.0,
            worst.cost.0
        );
        match expected {
            None => assert!(found.is_empty(), "{said}"),
            Some(verdict) => {
                assert_eq!(found.len(), 1, "{said}");
                assert_eq!(found[0].verdict, Some(verdict), "{said}");
                assert!(found[0].lines > 100, "{said}");
            }
        }
    }
}

/// What is thought of 256 lines, every access to which is known, if they are one thing. `turns`: the threads that store to
/// each, one after the other.
fn ordered(turns: &[u32]) -> Option<Verdict> {
    let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
    let mut accesses = Vec::new();
    for (turn, tid) in turns.iter().enumerate() {
        accesses.extend((0..256).map(|line| Access {
            time_ns: 1_000_000 * (1 + turn as u64) + line,
            ..emulated(*tid, 0x40_1000, Op::Rmw, BASE + line * 64)
        }));
    }
    pipeline.feed(&Batch {
        accesses,
        ..Batch::default()
    });
    let thresholds = Thresholds::default();
    let model = Model {
        whole: pipeline.tally.whole_cost(),
        untimed_stores: 0,
        line_size: LineSize::B64,
        thresholds: &thresholds,
    };
    let subjects = subjects(pipeline.judge_all().members, |_| None, &model);
    let findings = subjects.iter().filter(|subject| subject.is_finding());
    findings.map(|finding| finding.verdict).next().flatten()
}

#[test]
fn what_is_set_up_and_collected_is_not_shared_in_a_complete_order_and_what_goes_to_and_fro_is() {
    assert_eq!(ordered(&[1, 2, 1]), None);
    assert_eq!(ordered(&[1, 2, 1, 2]), Some(Verdict::TrueSharing));
}

/// Some element of `count`.
fn any(count: u64, random: &mut Random) -> u64 {
    random.below(count)
}

#[test]
fn a_ring_whose_slots_both_threads_use_is_truly_shared_and_no_line_of_it_is_seen_alone() {
    let ring = |_: u32, _: u64, random: &mut Random| (any(8 * 512, random) * 8, Op::Rmw);
    check(Some(8), Some(Verdict::TrueSharing), ring);
    let alone = judged(&sampled(1, ring), Some(8));
    let findings = alone[0]
        .members
        .iter()
        .filter(|m| m.significance == Significance::Significant);
    assert_eq!(findings.count(), 0);
    // Each thread has a half of it.
    check(Some(8), None, |thread, _, random| {
        (
            any(4 * 512, random) * 8 + u64::from(thread) * 512 * 32,
            Op::Rmw,
        )
    });
}

#[test]
fn elements_of_one_thread_each_that_alternate_are_falsely_shared() {
    let alternate = |thread: u32, _: u64, random: &mut Random| {
        (any(4 * 512, random) * 16 + u64::from(thread) * 8, Op::Rmw)
    };
    check(Some(8), Some(Verdict::FalseSharing), alternate);
    // Elements of whole lines do not meet.
    check(Some(64), None, |thread, _, random| {
        (any(256, random) * 128 + u64::from(thread) * 64, Op::Rmw)
    });
}

#[test]
fn lines_without_a_name_are_put_together_by_their_instructions() {
    let ring = |_: u32, _: u64, random: &mut Random| (any(8 * 512, random) * 8, Op::Rmw);
    let subjects = judged(&sampled(3, ring), None);
    assert_eq!(subjects.len(), 1);
    assert!(subjects[0].is_finding() && subjects[0].owned.is_none());
}

#[test]
fn parts_that_change_hands_between_phases_are_not_shared() {
    // Halves that the threads swap each second.
    check(Some(8), None, |thread, ms, random| {
        let half = (u64::from(thread) + ms / 1000) % 2;
        (any(4 * 512, random) * 8 + half * 512 * 32, Op::Rmw)
    });
}

#[test]
fn an_array_that_all_read_is_nothing() {
    check(Some(8), None, |_, _, random| {
        (any(8 * 512, random) * 8, Op::Load)
    });
}

#[test]
fn a_few_hot_lines_are_told_from_many_that_are_alike() {
    let hot = |thread: u32, _: u64, random: &mut Random| {
        let few = random.below(10) < 9;
        let element = if few {
            any(16, random)
        } else {
            any(8 * 512, random)
        };
        (element * 8, if thread == 0 { Op::Rmw } else { Op::Store })
    };
    let subjects = judged(&sampled(5, hot), Some(8));
    assert!(
        subjects[0].lines_of_half() <= 2,
        "{}",
        subjects[0].lines_of_half()
    );
    let even = |_: u32, _: u64, random: &mut Random| (any(8 * 512, random) * 8, Op::Rmw);
    let subjects = judged(&sampled(5, even), Some(8));
    assert!(subjects[0].lines_of_half() > 100);
}
