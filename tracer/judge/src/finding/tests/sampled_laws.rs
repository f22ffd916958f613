//! What must hold for every stream, tested with random programs and random accesses.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::{
    programs::{Program, Random, add, load, program, store, worker},
    samples::Stream,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineSize, Measured, Op, Pid, Place, SpaceId, Tid},
    analysis::{AnalysisOptions, Kinds, LineTable, WatchedLines},
    data_source::DataSource,
    finding::{Judgement, Significance, Thresholds, Verdict, table_fixture::judge_all},
};

/// A random program of two to four threads on up to three lines.
fn any_program() -> impl Strategy<Value = (Program, u64)> {
    (any::<u64>(), 2..5u64, 1..4u64).prop_map(|(seed, threads, steps)| {
        let mut random = Random::new(seed);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let steps: Vec<_> = (0..steps)
                    .map(|_| {
                        let at = random.below(24) * 8;
                        [add, load, store][random.below(3) as usize](at)
                    })
                    .collect();
                worker(&steps)
            })
            .collect();
        let mut program = program(workers);
        program.duration_ms = 1000;
        (program, seed)
    })
}

fn verdicts(judgements: &[Judgement]) -> Vec<(u64, Option<Verdict>, Significance)> {
    let mut verdicts: Vec<_> = judgements
        .iter()
        .map(|j| (j.key.0.position(), j.verdict, j.significance))
        .collect();
    verdicts.sort_by_key(|v| v.0);
    verdicts
}

fn changed(stream: &Stream, change: impl Fn(&mut Access)) -> Stream {
    let mut changed = stream.clone();
    changed.accesses.iter_mut().for_each(change);
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_numbers_of_cpus_do_not_matter((program, seed) in any_program(), by in 1..90u32) {
        let stream = program.sample(seed);
        let renamed = changed(&stream, |a| a.cpu = Cpu((a.cpu.0 + 1) % 2 * by));
        prop_assert_eq!(verdicts(&stream.judge()), verdicts(&renamed.judge()));
    }

    #[test]
    fn where_the_lines_are_does_not_matter((program, seed) in any_program(), lines in 1..1000u64) {
        let stream = program.sample(seed);
        let by = lines * 128;
        let moved = changed(&stream, |a| a.addr += by);
        let expected: Vec<_> = verdicts(&stream.judge())
            .into_iter()
            .map(|(at, verdict, significance)| (at + by, verdict, significance))
            .collect();
        prop_assert_eq!(expected, verdicts(&moved.judge()));
    }

    #[test]
    fn looking_in_between_changes_nothing((program, seed) in any_program(), batch in 1..500usize) {
        let stream = program.sample(seed);
        let mut table = stream.table();
        for batch in stream.accesses.chunks(batch) {
            stream.observe(&mut table, batch);
            judge_all(&table, &WatchedLines::default(), stream.whole, &Thresholds::default());
        }
        let found = judge_all(&table, &WatchedLines::default(), stream.whole, &Thresholds::default());
        prop_assert_eq!(found, stream.judge());
    }

    #[test]
    fn every_access_twice_is_the_same_at_twice_the_cost((program, seed) in any_program()) {
        let stream = program.sample(seed);
        let mut doubled = stream.clone();
        doubled.accesses = stream.accesses.iter().flat_map(|a| [*a, *a]).collect();
        doubled.whole += doubled.whole;
        let (once, twice) = (stream.judge(), doubled.judge());
        prop_assert_eq!(verdicts(&once), verdicts(&twice));
        for (a, b) in once.iter().zip(&twice) {
            prop_assert_eq!(a.samples, b.samples);
            prop_assert_eq!(a.cost + a.cost, b.cost);
            let (a, b) = (a.shared_share.unwrap(), b.shared_share.unwrap());
            prop_assert!((a - b).abs() < 1e-9);
        }
    }

    #[test]
    fn one_thread_is_never_a_finding((program, seed) in any_program()) {
        let stream = changed(&program.sample(seed), |a| a.tid = Tid(1));
        prop_assert!(stream.judge().is_empty());
    }

    #[test]
    fn loads_alone_are_never_a_finding((program, seed) in any_program()) {
        for op in [Op::Load, Op::Prefetch] {
            let stream = changed(&program.sample(seed), |a| a.op = op);
            let judgements = stream.judge();
            prop_assert!(judgements.iter().all(|j| !j.is_finding() && j.verdict.is_none()));
        }
    }

    #[test]
    fn shared_cost_is_never_more_than_the_cost((program, seed) in any_program()) {
        for j in program.sample(seed).judge() {
            prop_assert!(j.shared_cost <= j.cost);
            let kinds = j.kinds.unwrap_or_default();
            for part in [j.interleaving, kinds.truly, kinds.falsely] {
                prop_assert!((0.0..=1.0 + 1e-9).contains(&part), "{part}");
            }
            if j.is_finding() {
                prop_assert!(j.verdict.is_some() && j.threads.len() >= 2);
                prop_assert!(j.threads.iter().any(|t| t.stores > 0));
            }
        }
    }

    #[test]
    fn any_accesses_at_all_are_accounted_for(
        raw in prop::collection::vec(any::<(u64, u64, u32, u32, u8, u16, u8)>(), 0..300),
        crowded in any::<bool>(),
        line_size in prop::sample::select(vec![LineSize::B64, LineSize::B128]),
    ) {
        let options = AnalysisOptions {
            line_size,
            max_lines: 32,
            max_sites: 100,
            ..AnalysisOptions::default()
        };
        let mut table = LineTable::new(options);
        for (time_ns, addr, tid, cpu, kind, size, space) in raw {
            let (time_ns, addr) = if crowded { (time_ns % 9, addr % 300) } else { (time_ns, addr) };
            let access = Access {
                time_ns,
                addr,
                ip: addr,
                cost: Cost(cpu),
                pid: Pid(tid),
                tid: Tid(if crowded { tid % 5 } else { tid }),
                cpu: Cpu(if crowded { cpu % 3 } else { cpu }),
                size: if crowded { size % 70 } else { size },
                op: [Op::Load, Op::Store, Op::Rmw, Op::Prefetch, Op::Unknown][usize::from(kind % 5)],
                basis: [Basis::Stalled, Basis::Decoded, Basis::Sampled, Basis::Harvested]
                    [usize::from(kind / 5 % 4)],
                locked: kind & 64 != 0,
                kernel: kind & 128 != 0,
                measured: Measured {
                    source: DataSource::new(u64::from(tid).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                    latency_cycles: NonZeroU32::new(cpu),
                    phys_addr: None,
                    repeats: 0,
                },
                ..Access::BLANK
            };
            let space = SpaceId(u32::from(space % 2));
            let place = match (space.0, crowded) {
                (0, _) => Place::Private { space, addr },
                (_, false) => Place::Kernel { addr },
                (_, true) => Place::Physical { addr },
            };
            table.observe(&access, place, space);
        }
        let totals = table.totals();
        let held: u64 = table.lines().map(|(_, line)| line.accesses()).sum();
        let cost: Cost = table.lines().map(|(_, line)| line.cost()).sum();
        prop_assert_eq!(totals.touches, totals.evicted_touches + held);
        prop_assert_eq!(totals.cost, totals.evicted_cost + cost);
        for whole in [0, 1, u64::MAX].map(Cost) {
            let judgements =
                judge_all(&table, &WatchedLines::default(), whole, &Thresholds::default());
            for j in judgements {
                prop_assert!(j.shared_cost <= j.cost);
                prop_assert!((0.0..=1.0 + 1e-9).contains(&j.interleaving), "{j:?}");
                prop_assert!(!j.is_finding() || j.threads.iter().any(|t| t.stores > 0));
                prop_assert!(!j.significance.moves() || j.pmu.is_some());
            }
        }
    }
}

#[test]
fn the_verdict_follows_from_the_kinds_of_hand_offs_and_each_has_its_place() {
    let mut seen = std::collections::BTreeSet::new();
    for truly in 0..=20 {
        for falsely in (20 - truly)..=20 {
            let [truly, falsely] = [truly, falsely].map(|part| f64::from(part) / 20.0);
            let verdict = Verdict::of(Kinds { truly, falsely });
            let expected = match (truly < 0.1, falsely < 0.1) {
                (true, _) => Verdict::FalseSharing,
                (false, true) => Verdict::TrueSharing,
                (false, false) => Verdict::MixedSharing,
            };
            assert_eq!(verdict, expected, "true {truly}, false {falsely}");
            seen.insert(verdict);
        }
    }
    assert_eq!(seen.len(), 3);
}
