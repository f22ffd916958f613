//! Shapes of sharing with known answers, every access of which is known, each with its negative twin.

use super::complete::stream;
use crate::{
    access::{Cost, Cpu, Op},
    analysis::{
        Kinds,
        watched_fixture::{Act, load, rmw, store},
    },
    finding::{Reason, Verdict},
};

use Verdict::{FalseSharing, MixedSharing, TrueSharing};

#[test]
fn two_counters_on_a_line_are_false_sharing_and_apart_they_are_nothing() {
    let counters = |second| {
        let acts = [load(1, 0), store(1, 0), load(2, second), store(2, second)];
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
    assert_eq!((line.accesses, line.samples), (800, 0));
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
        .turns(100, &[rmw(1, 0), rmw(2, 0)])
        .check(&[(0, TrueSharing)]);
    let lock = |tid| [rmw(tid, 0), load(tid, 8), store(tid, 8), store(tid, 0)];
    let acts = [lock(1), lock(2), lock(3)].concat();
    stream().turns(100, &acts).check(&[(0, TrueSharing)]);
    assert!(stream().turns(100, &lock(1)).check(&[]).is_empty());
}

#[test]
fn a_statistic_beside_a_lock_is_mixed_sharing_and_on_its_own_line_the_lock_is_true() {
    let acts = |statistic| {
        let lock = |tid| [rmw(tid, 0), load(tid, 8), store(tid, 8), store(tid, 0)];
        let beside = |tid| [lock(tid).to_vec(), vec![rmw(3, statistic)]].concat();
        [beside(1), beside(2)].concat()
    };
    stream().turns(100, &acts(16)).check(&[(0, MixedSharing)]);
    stream().turns(100, &acts(64)).check(&[(0, TrueSharing)]);
}

#[test]
fn a_line_that_all_read_is_nothing_however_often() {
    let judgements = stream()
        .turns(1000, &[load(1, 0), load(2, 8), load(3, 0)])
        .check(&[]);
    assert!(judgements.is_empty());
}

#[test]
fn initialised_by_one_and_used_by_another_is_nothing() {
    let mut slots = stream();
    for slot in 0..64 {
        slots.access(store(1, slot * 64), 0);
    }
    for slot in 0..64u64 {
        let tid = 2 + (slot % 4) as u32;
        slots = slots.turns(50, &[load(tid, slot * 64), store(tid, slot * 64)]);
    }
    slots.check_reason(Reason::HardlyHandedOff);
}

#[test]
fn counters_that_main_sets_up_and_sums_are_false_sharing_and_those_it_takes_each_time_are_mixed() {
    let counting = [rmw(1, 0), rmw(2, 8)];
    let (set_up, summed) = ([store(3, 0), store(3, 8)], [load(3, 0), load(3, 8)]);
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
            phases = phases.turns(500, &[rmw(1 + phase % 2, 0)]);
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
        let acts = [rmw(1, 0), rmw(2, 8)];
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
    let mut one = stream().turns(100, &[rmw(1, 0), rmw(2, 8)]);
    for access in &mut one.accesses {
        access.cpu = Cpu(0);
    }
    one.check_reason(Reason::OneCpu);
}

#[test]
fn a_prefetch_for_ownership_is_no_touch() {
    let own = |tid, at| Act {
        op: Op::PrefetchOwn,
        ..load(tid, at)
    };
    let acts = [own(1, 0), own(2, 0), load(3, 8)];
    assert!(stream().turns(100, &acts).check(&[]).is_empty());
}

#[test]
fn repeats_count_as_executions_and_change_no_verdict() {
    let mut counters = stream();
    for _ in 0..50 {
        for tid in [1, 2] {
            counters.access(rmw(tid, u64::from(tid) * 8), 1_000_000);
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
            spinning.access(rmw(tid, 0), u32::MAX);
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
            wide.access(store(tid, at), 0);
        }
    }
    let judgements = wide.check(&[(0, FalseSharing), (64, TrueSharing)]);
    let costs: Cost = judgements.iter().map(|line| line.cost).sum();
    let [live, _] = wide.pipelines();
    assert_eq!(costs, live.tally.whole_cost());
    assert_eq!(live.totals().cost, live.tally.whole_cost());
}
