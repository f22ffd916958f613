//! Watch windows beside others: other processes, debuggers, threads outside of the window, and what a
//! killed tracer leaves.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::fd::{FromRawFd as _, OwnedFd},
    process::{Command, Stdio},
};

use super::stage::{Line, Watcher, Worker, own, store};
use crate::{
    access::{Pid, Tid},
    event::{Breadth, WatchedWord},
    sys::{
        bpf::KernelHalf,
        breakpoint_turn,
        breakpoints::{BreakpointError, Breakpoints, WindowPlan},
        live_tests::{can_run, online_cpus, options},
        perf_event::{self, OpenError, PerfEvent, Scope},
    },
};

const NO_LIMIT: u64 = u64::MAX;

/// A fork of this process that stores to a word of its copy of the memory when it is told.
struct Twin {
    pid: Pid,
    go: std::fs::File,
}

impl Twin {
    fn fork(word: u64, times: u64) -> Twin {
        let mut ends = [0; 2];
        // SAFETY: the array has room for both descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: the child makes only async-signal-safe calls and ends by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let mut byte = 0_u8;
            // SAFETY: one writable byte; the descriptor is open.
            let got = unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) };
            if got == 1 {
                store(word as *mut u64, times);
            }
            // SAFETY: ends the process without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: just made, and owned by nobody else.
        drop(unsafe { OwnedFd::from_raw_fd(ends[0]) });
        // SAFETY: as above.
        let go = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(ends[1]) });
        Twin {
            pid: Pid(pid as u32),
            go,
        }
    }

    fn store_and_end(mut self) {
        self.go.write_all(&[1]).unwrap();
        let mut status = 0;
        // SAFETY: our own child, not waited for yet.
        let waited = unsafe { libc::waitpid(self.pid.0 as i32, &raw mut status, 0) };
        assert_eq!((waited, status), (self.pid.0 as i32, 0));
    }
}

#[test]
fn another_process_at_the_same_address_is_recorded_only_where_the_word_is_its() {
    if !can_run("watching one of two processes") {
        return;
    }
    let mut watcher = Watcher::start();
    let (line, worker) = (Line::new(), Worker::start());
    let addr = line.word(0);
    // The word of: us, the twin, both, every target (the twin is one), every target (no one is).
    for case in 0..5 {
        let twin = Twin::fork(addr, 30);
        let of = |pid: Pid| WatchedWord { pid, ..own(addr) };
        let (ours, its, everyones) = (own(addr), of(twin.pid), of(Pid(0)));
        let (words, we_count, it_counts) = match case {
            0 => (vec![ours], true, false),
            1 => (vec![its], false, true),
            2 => (vec![its, ours], true, true),
            3 => (vec![everyones], false, true),
            _ => (vec![everyones], false, false),
        };
        let twin_pid = twin.pid;
        assert!(watcher.kernel.set_target(twin_pid, case == 3));
        watcher.arm(case, &words, NO_LIMIT);
        worker.store(addr, 20);
        twin.store_and_end();
        let closed = watcher.breakpoints.disarm().unwrap();
        let records = watcher.drain();
        let of = |pid: u32| records.iter().filter(|r| r.sample.pid == pid).count();
        let counts = (of(std::process::id()), of(twin_pid.0));
        let expected = (usize::from(we_count) * 20, usize::from(it_counts) * 30);
        assert_eq!(counts, expected, "case {case}");
        assert_eq!(records.len(), expected.0 + expected.1);
        assert_eq!(closed.hits, records.len() as u64);
        assert_eq!(closed.other_traps, 50 - closed.hits);
    }
    worker.end();
}

/// Breakpoints that count on a thread, as a debugger's watchpoints do.
fn hold(thread: Tid, words: &[u64]) -> Vec<PerfEvent> {
    words
        .iter()
        .map(|word| {
            let attributes = perf_event::data_breakpoint(*word, 8);
            let event = perf_event::open(&attributes, Scope::Thread(thread)).unwrap();
            event.enable().unwrap();
            event
        })
        .collect()
}

#[test]
fn a_debuggers_watchpoints_go_on_counting_and_the_other_slots_are_ours() {
    if !can_run("watching beside a debugger") {
        return;
    }
    let (line, worker) = (Line::new(), Worker::start());
    let held_words = [line.word(0), line.word(1)];
    let mut held = Vec::new();
    let mut watcher = Watcher::with(1 << 20, |kernel| {
        held = hold(worker.tid, &held_words);
        Breakpoints::open(kernel, &online_cpus(), 4)
    });
    assert_eq!(watcher.breakpoints.breadth(), Breadth::Cpus);
    assert_eq!(watcher.breakpoints.slots(), 2);
    let words = [own(line.word(2)), own(line.word(3))];
    for number in 0..3 {
        watcher.arm(number, &words, NO_LIMIT);
        for word in 0..4 {
            worker.store(line.word(word), 10);
        }
        let closed = watcher.breakpoints.disarm().unwrap();
        assert_eq!((closed.hits, closed.other_traps), (20, 0));
        let counts: Vec<_> = held.iter().map(|event| event.count().unwrap()).collect();
        assert_eq!(counts, [10 * (number + 1); 2]);
    }
    assert_eq!(watcher.drain().len(), 60);
    worker.end();
}

#[test]
fn where_no_cpu_has_a_slot_left_the_threads_are_watched_that_have() {
    if !can_run("watching threads beside a debugger") {
        return;
    }
    let (line, free, debugged) = (Line::new(), Worker::start(), Worker::start());
    let held_words = [4, 5, 6, 7].map(|word| line.word(word));
    let mut held = Vec::new();
    let mut watcher = Watcher::with(1 << 20, |kernel| {
        held = hold(debugged.tid, &held_words);
        Breakpoints::open(kernel, &online_cpus(), 4)
    });
    let words = [own(line.word(0))];
    let mut plan = WindowPlan {
        number: 3,
        words: &words,
        threads: &[free.tid],
        hit_limit: NO_LIMIT,
        duration_ns: NO_LIMIT,
    };
    assert_eq!(watcher.breakpoints.breadth(), Breadth::Threads);
    watcher.breakpoints.arm(&plan).unwrap();
    free.store(line.word(0), 40);
    debugged.store(line.word(0), 5);
    assert_eq!(watcher.breakpoints.disarm().unwrap().hits, 40);
    let records = watcher.drain();
    assert_eq!(records.len(), 40);
    assert!(records.iter().all(|record| record.sample.tid == free.tid.0));

    let both = [free.tid, debugged.tid];
    plan.threads = &both;
    let refused = watcher.breakpoints.arm(&plan);
    assert!(
        matches!(
            refused,
            Err(BreakpointError::Open(OpenError::NoSlot { .. }))
        ),
        "{refused:?}"
    );
    free.store(line.word(0), 10);
    assert_eq!(watcher.drain().len(), 0);
    // The debugger ends its session.
    held.clear();
    watcher.breakpoints.arm(&plan).unwrap();
    free.store(line.word(0), 10);
    debugged.store(line.word(0), 5);
    assert_eq!(watcher.breakpoints.disarm().unwrap().hits, 15);
    free.end();
    debugged.end();
}

#[test]
fn on_threads_a_limit_ends_a_window_and_threads_that_are_gone_are_passed_over() {
    if !can_run("watching threads") {
        return;
    }
    let mut watcher = Watcher::with(1 << 20, |kernel| Breakpoints::open_on_threads(kernel, 4));
    assert_eq!(watcher.breakpoints.slots(), 4);
    println!("{:?}", watcher.breakpoints.costs());
    let (line, worker, gone) = (Line::new(), Worker::start(), Worker::start());
    let gone_tid = gone.tid;
    gone.end();
    let words = [0, 1, 2, 3].map(|word| own(line.word(word)));
    let mut threads = vec![gone_tid, worker.tid];
    for number in 0..2 {
        let plan = WindowPlan {
            number,
            words: &words,
            threads: &threads,
            hit_limit: 30,
            duration_ns: NO_LIMIT,
        };
        watcher.breakpoints.arm(&plan).unwrap();
        worker.store(line.word(0), 20);
        worker.store(line.word(3), 50);
        let closed = watcher.breakpoints.disarm().unwrap();
        assert_eq!(closed.hits, 30);
        if watcher.breakpoints.end_by_themselves() {
            assert_eq!(closed.other_traps, 1);
        }
        assert_eq!(watcher.drain().len(), 30);
    }
    threads.pop();
    let plan = WindowPlan {
        number: 2,
        words: &words,
        threads: &threads,
        hit_limit: 30,
        duration_ns: NO_LIMIT,
    };
    let refused = watcher.breakpoints.arm(&plan);
    assert!(
        matches!(refused, Err(BreakpointError::NoThread)),
        "{refused:?}"
    );
    worker.end();
}

/// As on kernels that count an event's limit down whatever the program returns.
#[test]
fn without_a_limit_what_comes_after_the_end_is_skipped_and_counted_until_it_is_disarmed() {
    if !can_run("watching without a limit") {
        return;
    }
    let mut watcher = Watcher::with(1 << 20, |kernel| Breakpoints::open_on_threads(kernel, 1));
    watcher.breakpoints.limit_by_program = false;
    let (line, worker) = (Line::new(), Worker::start());
    let words = [own(line.word(0))];
    for number in 0..2 {
        let plan = WindowPlan {
            number,
            words: &words,
            threads: &[worker.tid],
            hit_limit: 30,
            duration_ns: NO_LIMIT,
        };
        watcher.breakpoints.arm(&plan).unwrap();
        worker.store(line.word(0), 100);
        let closed = watcher.breakpoints.disarm().unwrap();
        assert_eq!((closed.hits, closed.other_traps), (30, 70));
        let records = watcher.drain();
        assert_eq!(records.len(), 30);
        let is_in_it = |time_ns| (closed.open_ns..=closed.end_ns).contains(&time_ns);
        assert!(records.iter().all(|record| is_in_it(record.sample.time_ns)));
    }
    worker.end();
}

/// Set for the process that is to be killed.
const VICTIM: &str = "COHTRACE_TEST_ARMED_UNTIL_KILLED";

#[test]
fn a_process_that_is_killed_while_armed_leaves_every_slot_free() {
    if !can_run("killing an armed process") {
        return;
    }
    let mut kernel = KernelHalf::load(&options()).unwrap();
    if std::env::var_os(VICTIM).is_some() {
        return be_armed_until_killed(&mut kernel);
    }
    let _turn = breakpoint_turn::take();
    let test =
        "sys::watch_tests::others::a_process_that_is_killed_while_armed_leaves_every_slot_free";
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let armed = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(VICTIM)));
    let full = Breakpoints::open(&mut kernel, &online_cpus(), 4);
    victim.kill().unwrap();
    victim.wait().unwrap();
    armed.expect("it was armed").unwrap();
    assert!(
        matches!(full, Err(BreakpointError::Open(OpenError::NoSlot { .. }))),
        "{full:?}"
    );
    let free = Breakpoints::open(&mut kernel, &online_cpus(), 4).unwrap();
    assert_eq!((free.slots(), free.breadth()), (4, Breadth::Cpus));
}

/// Arms every slot, says so, and hits one of them until it is killed, or its parent is gone.
fn be_armed_until_killed(kernel: &mut KernelHalf) {
    let mut breakpoints = Breakpoints::open(kernel, &online_cpus(), 4).unwrap();
    let line = Line::new();
    let words = [0, 1, 2, 3].map(|word| own(line.word(word)));
    let plan = WindowPlan {
        number: 0,
        words: &words,
        threads: &[],
        hit_limit: NO_LIMIT,
        duration_ns: NO_LIMIT,
    };
    breakpoints.arm(&plan).unwrap();
    println!("{VICTIM}");
    let word = line.word(0);
    std::thread::spawn(move || {
        loop {
            store(word as *mut u64, 1);
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
    std::process::abort();
}
