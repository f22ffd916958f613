//! Shapes of sharing with known answers, every access of which is known, each with its negative twin.

use super::{Confidence, Judgement, Reason, Significance, Thresholds, Verdict};
use crate::{
    access::{Access, Cost, Cpu, Measured, Op},
    analysis::{AnalysisOptions, Kinds, emulated_fixture::emulated},
    event::Batch,
    pipeline::Pipeline,
    spill::{Budget, SpillOptions},
};

use Op::{Load, PrefetchOwn, Rmw, Store};
use Verdict::{FalseSharing, MixedSharing, TrueSharing};

const BASE: u64 = 0x7f00_0000_0000;

/// A stream under construction; time goes on as in an emulator, slowly and unevenly.
#[derive(Default)]
struct Stream {
    accesses: Vec<Access>,
    now_ns: u64,
}

impl Stream {
    fn access(&mut self, tid: u32, op: Op, at: u64, repeats: u32) {
        self.now_ns += 1 + u64::from(tid) * 700_000;
        self.accesses.push(Access {
            time_ns: self.now_ns,
            locked: op == Rmw,
            measured: Measured {
                repeats,
                ..Measured::default()
            },
            ..emulated(
                tid,
                0x40_1000 + at * 16 + u64::from(op.index()),
                op,
                BASE + at,
            )
        });
    }

    /// Each of these in turn, so many times over.
    fn turns(mut self, times: usize, acts: &[(u32, Op, u64)]) -> Stream {
        for (tid, op, at) in acts.iter().copied().cycle().take(times * acts.len()) {
            self.access(tid, op, at, 0);
        }
        self
    }

    /// One thread on lines that nobody else touches: 4 messages each.
    fn alone(mut self, lines: u64) -> Stream {
        for line in 0..lines {
            self.access(9, Load, 0x10_0000 + line * 64, 3);
            self.access(9, Store, 0x10_0000 + line * 64, 3);
        }
        self
    }

    fn pipelines(&self) -> [Pipeline; 2] {
        let options = AnalysisOptions::default();
        let spill = SpillOptions {
            budget: Budget(1 << 26),
            directories: Vec::new(),
            threads: 2,
        };
        [
            Pipeline::new(options, Thresholds::default()),
            Pipeline::sorted(options, Thresholds::default(), spill),
        ]
        .map(|mut pipeline| {
            for accesses in self.accesses.chunks(97) {
                let accesses = accesses.to_vec();
                pipeline.feed(&Batch {
                    accesses,
                    ..Batch::default()
                });
            }
            pipeline.finish().expect("there is room");
            pipeline
        })
    }

    /// What is judged, live and recorded alike.
    fn judge(&self) -> Vec<Judgement> {
        let [live, recorded] = self.pipelines();
        assert_eq!(live.judge(), recorded.judge());
        assert_eq!(live.pairs(), recorded.pairs());
        assert_eq!(live.totals(), recorded.totals());
        assert_eq!(live.tally, recorded.tally);
        live.judge()
    }

    fn check(&self, expected: &[(u64, Verdict)]) -> Vec<Judgement> {
        let judgements = self.judge();
        let mut found: Vec<(u64, Verdict)> = judgements
            .iter()
            .filter(|judgement| judgement.is_finding())
            .map(|j| (j.key.0.position() - BASE, j.verdict.expect("a kind")))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{judgements:#?}");
        for finding in judgements.iter().filter(|j| j.is_finding()) {
            assert_eq!(finding.confidence, Confidence::Confirmed);
        }
        judgements
    }

    fn check_reason(&self, reason: Reason) {
        let judgements = self.check(&[]);
        assert_eq!(
            judgements[0].significance,
            Significance::Insignificant(reason),
            "{judgements:#?}"
        );
    }
}

fn stream() -> Stream {
    Stream::default()
}

#[test]
fn two_counters_on_a_line_are_false_sharing_and_apart_they_are_nothing() {
    let counters = |second| {
        let acts = [
            (1, Load, 0),
            (1, Store, 0),
            (2, Load, second),
            (2, Store, second),
        ];
        stream().alone(20).turns(200, &acts)
    };
    let line = &counters(8).check(&[(0, FalseSharing)])[0];
    assert_eq!(
        line.kinds,
        Some(Kinds {
            truly: 0.0,
            falsely: 1.0
        })
    );
    // The last copy may still be used.
    let order = line.order.expect("all is known");
    assert_eq!(order.hand_offs.total(), 398);
    assert_eq!((line.accesses, line.samples), (800, 800));
    let bytes: Vec<(u8, u64)> = (line.sites.iter())
        .map(|site| (site.site.offset, site.emulated))
        .collect();
    assert_eq!(bytes.len(), 4);
    assert!(
        bytes
            .iter()
            .all(|(offset, n)| [0, 8].contains(offset) && *n == 200)
    );
    counters(64).check(&[]);
}

#[test]
fn a_counter_of_all_and_a_lock_are_true_sharing_and_of_one_thread_nothing() {
    stream()
        .turns(100, &[(1, Rmw, 0), (2, Rmw, 0)])
        .check(&[(0, TrueSharing)]);
    let lock = |tid| {
        [
            (tid, Rmw, 0),
            (tid, Load, 8),
            (tid, Store, 8),
            (tid, Store, 0),
        ]
    };
    let acts = [lock(1), lock(2), lock(3)].concat();
    stream().turns(100, &acts).check(&[(0, TrueSharing)]);
    assert!(stream().turns(100, &lock(1)).check(&[]).is_empty());
}

#[test]
fn a_statistic_beside_a_lock_is_mixed_sharing_and_on_its_own_line_the_lock_is_true() {
    let acts = |statistic| {
        let lock = |tid| {
            [
                (tid, Rmw, 0),
                (tid, Load, 8),
                (tid, Store, 8),
                (tid, Store, 0),
            ]
        };
        let beside = |tid| [lock(tid).to_vec(), vec![(3, Rmw, statistic)]].concat();
        [beside(1), beside(2)].concat()
    };
    stream().turns(100, &acts(16)).check(&[(0, MixedSharing)]);
    stream().turns(100, &acts(64)).check(&[(0, TrueSharing)]);
}

#[test]
fn a_line_that_all_read_is_nothing_however_often() {
    let judgements = stream()
        .turns(1000, &[(1, Load, 0), (2, Load, 8), (3, Load, 0)])
        .check(&[]);
    assert!(judgements.is_empty());
}

#[test]
fn initialised_by_one_and_used_by_another_is_nothing() {
    let mut slots = stream();
    for slot in 0..64 {
        slots.access(1, Store, slot * 64, 0);
    }
    for slot in 0..64u64 {
        let tid = 2 + (slot % 4) as u32;
        slots = slots.turns(50, &[(tid, Load, slot * 64), (tid, Store, slot * 64)]);
    }
    slots.check_reason(Reason::HardlyHandedOff);
}

#[test]
fn counters_that_main_sets_up_and_sums_are_false_sharing_and_those_it_takes_each_time_are_mixed() {
    let counting = [(1, Rmw, 0), (2, Rmw, 8)];
    let (set_up, summed) = ([(3, Store, 0), (3, Store, 8)], [(3, Load, 0), (3, Load, 8)]);
    (stream().turns(1, &set_up).turns(5, &counting))
        .turns(1, &summed)
        .check(&[(0, FalseSharing)]);
    let each_time = [counting.as_slice(), &summed].concat();
    (stream().turns(1, &set_up).turns(5, &each_time)).check(&[(0, MixedSharing)]);
}

#[test]
fn a_line_handed_over_a_few_times_is_nothing_and_from_the_eighth_time_on_it_is_shared() {
    let phases = |n: u32| {
        let mut phases = stream();
        for phase in 0..n {
            phases = phases.turns(500, &[(1 + phase % 2, Rmw, 0)]);
        }
        phases
    };
    phases(9).check_reason(Reason::HardlyHandedOff);
    // In a program that sends hardly another message.
    phases(10).check(&[(0, TrueSharing)]);
    phases(10)
        .alone(1000)
        .check_reason(Reason::CostBelowThreshold);
}

#[test]
fn a_finding_is_what_takes_its_share_of_the_messages() {
    let beside = |lines| {
        let acts = [(1, Rmw, 0), (2, Rmw, 8)];
        stream().turns(50, &acts).alone(lines)
    };
    // 2 + 99 * 4 messages against 4 for each line of the third thread.
    let line = &beside(9000).check(&[(0, FalseSharing)])[0];
    let share = line.shared_share.unwrap();
    assert!((share - 396.0 / (398.0 + 36_000.0)).abs() < 1e-9, "{share}");
    assert_eq!((line.cost, line.shared_cost), (Cost(398), Cost(396)));
    beside(10_000).check_reason(Reason::CostBelowThreshold);
}

#[test]
fn threads_of_one_processor_hand_nothing_off() {
    let mut one = stream().turns(100, &[(1, Rmw, 0), (2, Rmw, 8)]);
    for access in &mut one.accesses {
        access.cpu = Cpu(0);
    }
    one.check_reason(Reason::OneCpu);
}

#[test]
fn a_prefetch_for_ownership_is_no_touch() {
    let acts = [(1, PrefetchOwn, 0), (2, PrefetchOwn, 0), (3, Load, 8)];
    assert!(stream().turns(100, &acts).check(&[]).is_empty());
}

#[test]
fn repeats_count_as_executions_and_change_no_verdict() {
    let mut counters = stream();
    for _ in 0..50 {
        for tid in [1, 2] {
            counters.access(tid, Rmw, u64::from(tid) * 8, 1_000_000);
        }
    }
    let line = &counters.check(&[(0, FalseSharing)])[0];
    assert_eq!(line.accesses, 100 * 1_000_001);
    assert_eq!(line.threads[0].stores, 50 * 1_000_001);
    let [live, _] = counters.pipelines();
    assert_eq!(live.tally.executions, 100 * 1_000_001);
    assert_eq!(live.tally.whole_cost(), Cost(2 + 99 * 4));
}

#[test]
fn executions_beyond_32_bits_are_counted() {
    let mut spinning = stream();
    for _ in 0..20 {
        for tid in [1, 2] {
            spinning.access(tid, Rmw, 0, u32::MAX);
        }
    }
    let line = &spinning.check(&[(0, TrueSharing)])[0];
    assert_eq!(line.sites[0].emulated, 20 << 32);
}

#[test]
fn an_access_across_two_lines_is_on_both_with_the_messages_of_each() {
    let mut wide = stream();
    for _ in 0..100 {
        for (tid, at) in [(1, 60), (2, 0), (2, 64)] {
            wide.access(tid, Store, at, 0);
        }
    }
    let judgements = wide.check(&[(0, FalseSharing), (64, TrueSharing)]);
    let costs: Cost = judgements.iter().map(|line| line.cost).sum();
    let [live, _] = wide.pipelines();
    assert_eq!(costs, live.tally.whole_cost());
    assert_eq!(live.totals().cost, live.tally.whole_cost());
}
