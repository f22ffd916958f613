//! Windows that a thread of their own opens and closes.

use std::{thread, time::Duration};

use super::stage::{Line, Watcher, Worker, own};
use crate::{
    event::WindowEnd,
    sys::{
        breakpoints::WindowPlan,
        live_tests::{can_run, online_cpus},
        poll::wait_readable,
        window_keeper::WindowKeeper,
    },
};

const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_window_that_is_over_is_closed_and_told_while_nobody_asks_and_another_one_is_not() {
    if !can_run("windows that are kept") {
        return;
    }
    let watcher = Watcher::start();
    let mut keeper = WindowKeeper::start(watcher.breakpoints).unwrap();
    let (line, worker) = (Line::new(), Worker::start());
    let word = line.word(0);
    let cpus = online_cpus();
    let ends = [
        (50, LONG, WindowEnd::Hits),
        (u64::MAX, Duration::from_millis(400), WindowEnd::Time),
        (u64::MAX, LONG, WindowEnd::Asked),
        (20, LONG, WindowEnd::Hits),
    ];
    for (number, (hit_limit, duration, end)) in ends.into_iter().enumerate() {
        let plan = WindowPlan {
            number: number as u64,
            words: &[own(word)],
            threads: &[],
            hit_limit,
            duration_ns: duration.as_nanos() as u64,
        };
        keeper.arm(&plan, cpus[number % cpus.len()]);
        assert!(!keeper.is_over() && keeper.has_window());
        // Long after it is open.
        thread::sleep(Duration::from_millis(150));
        assert!(keeper.refusal().is_none());
        worker.store(word, 100);
        let most = if end == WindowEnd::Asked {
            Duration::from_millis(50)
        } else {
            LONG
        };
        let told = wait_readable(&[keeper.told()], most).unwrap()[0];
        assert_eq!((told, keeper.is_over()), (end != WindowEnd::Asked, told));
        // Nobody took the window yet, and its breakpoints are off all the same: what traps now is counted with the next one.
        worker.store(word, 400);
        let closed = keeper.close().unwrap();
        assert_eq!(closed.end, end);
        let hits = if told { 100 } else { 500 };
        assert_eq!(closed.hits, hits.min(hit_limit));
        assert!(closed.hits + closed.other_traps <= hits, "{closed:?}");
        assert!(!keeper.is_over() && !keeper.has_window());
        assert!(!wait_readable(&[keeper.told()], Duration::ZERO).unwrap()[0]);
    }
    assert!(keeper.close().is_err());
    worker.end();
}

#[test]
fn why_a_window_was_refused_is_told_once_and_the_next_one_can_be() {
    if !can_run("windows that are refused") {
        return;
    }
    let watcher = Watcher::start();
    let mut keeper = WindowKeeper::start(watcher.breakpoints).unwrap();
    let line = Line::new();
    let plan = WindowPlan {
        number: 0,
        words: &[],
        threads: &[],
        hit_limit: 10,
        duration_ns: LONG.as_nanos() as u64,
    };
    let cpu = online_cpus()[0];
    keeper.arm(&plan, cpu);
    assert!(wait_readable(&[keeper.told()], LONG).unwrap()[0]);
    assert!(keeper.refusal().is_some());
    assert!(keeper.refusal().is_none() && !keeper.has_window() && !keeper.is_over());
    // Or when it is closed.
    keeper.arm(&plan, cpu);
    assert!(keeper.close().is_err());
    assert!(!wait_readable(&[keeper.told()], Duration::ZERO).unwrap()[0]);
    let words = [own(line.word(0))];
    keeper.arm(
        &WindowPlan {
            words: &words,
            ..plan
        },
        cpu,
    );
    assert_eq!(keeper.close().unwrap().hits, 0);
}
