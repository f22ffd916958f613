//! Sampled runs.

use super::{
    Access, Basis, Batch, ContextKind, Cost, Cpu, Key, MS, Op, Per, Pid, START, Tally, Tid,
    amounts, batch, context, count, executed, lost, options, sample, total,
};
use crate::{
    access::Wait,
    event::{Breadth, Window, WindowEnd},
};

const ONE: Key = Key::Cpu(Cpu(0));
const OTHER: Key = Key::Cpu(Cpu(1));

#[test]
fn samples_are_in_the_slice_of_their_time_and_of_their_cpu() {
    let accesses = vec![sample(0, 0, 64), sample(99, 0, 64), sample(500, 1, 64)];
    let table = count(options("samples", Some(250), Per::Cpu), &[batch(accesses)]);
    let known = |slices: [u64; 4]| slices.map(Some).to_vec();
    assert_eq!(amounts(&table, Key::All), (Some(3), known([2, 0, 1, 0])));
    assert_eq!(amounts(&table, ONE), (Some(2), known([2, 0, 0, 0])));
    assert_eq!(amounts(&table, OTHER), (Some(1), known([0, 0, 1, 0])));
}

#[test]
fn one_sample_of_two_waits_is_one_sample_and_two_samples_are_two() {
    let twice = |second_ms| {
        let accesses = vec![sample(1, 0, 64), sample(second_ms, 0, 128)];
        let table = count(options("samples", None, Per::All), &[batch(accesses)]);
        amounts(&table, Key::All).0
    };
    assert_eq!((twice(1), twice(2)), (Some(1), Some(2)));
}

#[test]
fn nothing_is_0_where_all_was_looked_at_and_unknown_where_samples_were_lost() {
    let accesses = || batch(vec![sample(0, 0, 64), sample(1, 1, 64)]);
    let asked = || options("samples", Some(500), Per::Cpu);
    let whole = count(asked(), &[accesses()]);
    assert_eq!(amounts(&whole, ONE).1, [Some(1), Some(0)]);
    let holes = count(asked(), &[accesses(), lost(0)]);
    assert_eq!(amounts(&holes, ONE), (Some(1), vec![Some(1), None]));
    assert_eq!(amounts(&holes, OTHER).1, [Some(1), Some(0)]);
    assert_eq!(amounts(&holes, Key::All).1, [Some(2), None]);
}

#[test]
fn a_cpu_that_was_not_sampled_has_slices_that_are_not_known() {
    let blind = Batch {
        tally: Tally {
            blind_ns: [(Cpu(1), 5 * MS)].into(),
            ..Tally::default()
        },
        ..batch(vec![sample(0, 0, 64), sample(1, 1, 64)])
    };
    let table = count(options("samples", Some(500), Per::Cpu), &[blind]);
    assert_eq!(amounts(&table, ONE).1, [Some(1), Some(0)]);
    assert_eq!(amounts(&table, OTHER).1, [Some(1), None]);
}

#[test]
fn waits_for_a_line_of_two_threads_are_shared_and_for_a_line_of_one_private() {
    let shared_time = |second: u64| {
        let accesses = vec![sample(1, 0, 0x1000), sample(600, 1, second)];
        let names = "time.waiting_shared,time.waiting_private";
        let table = count(options(names, Some(500), Per::Thread), &[batch(accesses)]);
        let thread = Key::Thread(Pid(10), Tid(11));
        let of = |key, name| total(&table, key, name).amount;
        // What the first waited for is known to be shared only when the second comes, and is still of its own slice.
        (
            amounts(&table, thread).1,
            of(Key::All, "time.waiting_shared"),
            of(Key::All, "time.waiting_private"),
        )
    };
    let all = Some(2 * MS);
    let none = Some(0);
    assert_eq!(shared_time(0x1008), (vec![Some(MS), none], all, none));
    assert_eq!(shared_time(0x1040), (vec![none, none], none, all));
}

#[test]
fn time_is_where_the_cpu_stood() {
    let wait = |at_ms, wait| Access {
        wait,
        ..sample(at_ms, 0, 64)
    };
    let accesses = vec![
        wait(1, Wait::AtInstruction),
        wait(2, Wait::AtBarrier),
        wait(3, Wait::InSpinLoop),
        wait(4, Wait::InSpinLoop),
        Access {
            basis: Basis::Decoded,
            cost: Cost(0),
            ..wait(5, Wait::InSpinLoop)
        },
    ];
    let table = count(options("time.*", None, Per::All), &[batch(accesses)]);
    let of = |name| total(&table, Key::All, name).amount.unwrap() / MS;
    let names = [
        "time.sampled",
        "time.stalled",
        "time.at_barrier",
        "time.spinning",
    ];
    assert_eq!(names.map(of), [4, 1, 1, 2]);
}

#[test]
fn samples_are_no_executions_and_executions_no_samples() {
    let names = "samples.loads,samples.stores,executions.stores";
    let of = |accesses| {
        let table = count(options(names, None, Per::All), &[batch(accesses)]);
        ["samples.loads", "samples.stores", "executions.stores"]
            .map(|name| total(&table, Key::All, name).amount)
    };
    assert_eq!(of(vec![sample(1, 0, 64)]), [Some(0), Some(1), None]);
    assert_eq!(
        of(vec![executed(1, 0, 64, Op::Store)]),
        [Some(0), Some(0), Some(1)]
    );
}

#[test]
fn the_share_of_the_kernel_is_of_samples_and_of_nothing_is_none() {
    let kernel = Access {
        kernel: true,
        ..sample(1, 0, 64)
    };
    let accesses = vec![kernel, sample(2, 0, 64), sample(3, 0, 64), sample(4, 0, 64)];
    let table = count(
        options("samples.kernel_share", Some(500), Per::All),
        &[batch(accesses)],
    );
    let row = &table.rows[0];
    let sums = table.columns[0].statistic.sums();
    assert_eq!(row.total[0].number(sums), Some(25.0));
    let estimate = row.total[0].estimate.unwrap();
    assert!(estimate.low > 4.0 && estimate.high < 71.0, "{estimate:?}");
    assert_eq!(row.slices[0][1].number(sums), None);
    assert_eq!(row.slices[0][1].reason, Some("a share of nothing"));
}

#[test]
fn an_estimate_holds_what_it_is_of_and_nothing_is_up_to_four_samples() {
    let accesses = (0..100).map(|n| sample(n, 0, 64)).collect();
    let table = count(
        options("time.stalled", Some(500), Per::All),
        &[batch(accesses)],
    );
    let [first, second] = [0, 1].map(|slice| table.rows[0].slices[0][slice].estimate.unwrap());
    assert!((80.0..83.0).contains(&(first.low / MS as f64)), "{first:?}");
    assert!(
        (120.0..123.0).contains(&(first.high / MS as f64)),
        "{first:?}"
    );
    assert!(second.low < f64::EPSILON, "{second:?}");
    assert!(
        (3.6..3.8).contains(&(second.high / MS as f64)),
        "{second:?}"
    );
}

#[test]
fn threads_that_start_have_no_cpu_and_are_of_their_process() {
    let fork = |at_ms, pid, parent_pid| {
        let (pid, parent_pid) = (Pid(pid), Pid(parent_pid));
        let tid = Tid(100 + at_ms as u32);
        context(
            at_ms,
            ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            },
        )
    };
    let feed = Batch {
        context: vec![
            fork(1, 10, 10),
            fork(600, 20, 10),
            context(
                700,
                ContextKind::Exit {
                    pid: Pid(10),
                    tid: Tid(101),
                },
            ),
        ],
        ..batch(vec![sample(800, 0, 64)])
    };
    let names = "threads.started,threads.ended,processes.started";
    let by_process = count(
        options(names, Some(500), Per::Process),
        std::slice::from_ref(&feed),
    );
    assert_eq!(
        amounts(&by_process, Key::All),
        (Some(2), vec![Some(1), Some(1)])
    );
    assert_eq!(amounts(&by_process, Key::Process(Pid(20))).0, Some(1));
    let of = |name| total(&by_process, Key::All, name).amount;
    assert_eq!([of("threads.ended"), of("processes.started")], [Some(1); 2]);
    let by_cpu = count(options(names, None, Per::Cpu), &[feed]);
    assert_eq!(amounts(&by_cpu, ONE), (None, vec![None]));
}

#[test]
fn different_threads_are_counted_once_in_the_whole_and_once_in_each_slice() {
    let accesses = vec![
        sample(1, 0, 64),
        sample(2, 0, 64),
        sample(600, 0, 64),
        sample(700, 1, 64),
    ];
    let table = count(
        options("threads.seen", Some(500), Per::All),
        &[batch(accesses)],
    );
    assert_eq!(amounts(&table, Key::All), (Some(2), vec![Some(1), Some(2)]));
}

#[test]
fn hits_are_known_while_words_are_watched_and_not_between() {
    let hit = Access {
        basis: Basis::Trapped,
        cost: Cost(0),
        ..sample(510, 0, 64)
    };
    let window = |open_ms: u64, end_ms: u64| Window {
        number: 0,
        open_ns: START + open_ms * MS,
        end_ns: START + end_ms * MS,
        words: Vec::new(),
        everyone: false,
        hits: 1,
        lost: 0,
        unresolved: std::collections::BTreeMap::new(),
        inferred: 0,
        cost_ns: 0,
        breadth: Breadth::Cpus,
        end: WindowEnd::Time,
    };
    let feed = Batch {
        windows: vec![window(500, 520), window(760, 770)],
        ..batch(vec![hit])
    };
    let table = count(options("watch.hits", Some(250), Per::All), &[feed]);
    let slices = vec![None, None, Some(1), Some(0)];
    assert_eq!(amounts(&table, Key::All), (Some(1), slices));
    let unwatched = count(options("watch.hits", None, Per::All), &[]);
    assert_eq!(amounts(&unwatched, Key::All).0, None);
}

#[test]
fn the_runs_own_counts_are_of_the_run_and_its_cpus() {
    let table = count(
        options("run.*", Some(500), Per::Cpu),
        &[batch(vec![sample(0, 0, 64), sample(1, 1, 64)]), lost(0)],
    );
    let of = |key| total(&table, key, "run.lost").amount;
    assert_eq!(
        [of(Key::All), of(ONE), of(OTHER)],
        [Some(1), Some(1), Some(0)]
    );
    assert_eq!(total(&table, ONE, "run.samples").amount, None);
    assert!(
        table.rows[0]
            .slices
            .iter()
            .flatten()
            .all(|value| value.amount.is_none())
    );
}
