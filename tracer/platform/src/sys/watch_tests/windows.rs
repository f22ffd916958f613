//! What a window records of its own process, and how it ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tracer_ebpf::{SAMPLE_KERNEL, SAMPLE_STACK_TOP, WatchRecord};

use super::stage::{Line, STACK_TOP, Watcher, Worker, own, store};
use crate::{
    event::{Breadth, WindowEnd},
    sys::{
        breakpoints::{BreakpointError, Breakpoints, WindowPlan},
        clock::thread_ns,
        live_tests::{can_run, online_cpus},
    },
};

const NO_LIMIT: u64 = u64::MAX;
const DURATION_NS: u64 = 20_000_000;

#[test]
fn each_of_a_number_of_stores_is_one_hit_with_its_thread_and_the_next_instruction() {
    if !can_run("watching a word") {
        return;
    }
    let mut watcher = Watcher::start();
    println!("{:?}", watcher.breakpoints.costs());
    assert_eq!(watcher.breakpoints.breadth(), Breadth::Cpus);
    assert_eq!(watcher.breakpoints.slots(), 4);
    // What the calibration hit is nobody's.
    assert_eq!(watcher.drain().len(), 0);
    let (line, worker) = (Line::new(), Worker::start());
    worker.store(line.word(2), 50);
    let returned_ns = watcher.arm(7, &[own(line.word(2))], NO_LIMIT);
    let ip = worker.store(line.word(2), 200);
    // The neighbours are not watched.
    worker.store(line.word(1), 50);
    worker.store(line.word(3), 50);
    let closed = watcher.breakpoints.disarm().unwrap();
    worker.store(line.word(2), 50);

    assert_eq!(
        (closed.hits, closed.dropped, closed.other_traps),
        (200, 0, 0)
    );
    assert_eq!(closed.end, WindowEnd::Asked);
    assert!(closed.open_ns <= returned_ns && closed.open_ns < closed.end_ns);
    let mut records = watcher.drain();
    assert_eq!(records.len(), 200);
    records.sort_by_key(|record| record.sample.time_ns);
    for record in &records {
        let sample = &record.sample;
        assert_eq!((sample.pid, sample.tid), (std::process::id(), worker.tid.0));
        assert_eq!(sample.ip, ip);
        assert_eq!(record.watched_addr, line.word(2));
        assert_eq!(record.window, 7);
        assert_eq!(sample.flags & SAMPLE_KERNEL, 0);
        assert_ne!(sample.flags & SAMPLE_STACK_TOP, 0);
        assert_eq!(record.stack_top, STACK_TOP);
        assert!((closed.open_ns..=closed.end_ns).contains(&sample.time_ns));
    }
    worker.end();
}

#[test]
fn up_to_four_words_are_told_apart_and_the_next_window_is_of_others() {
    if !can_run("watching four words") {
        return;
    }
    let mut watcher = Watcher::start();
    let (line, worker) = (Line::new(), Worker::start());
    for (number, first) in [(0, 0), (1, 4)] {
        let words = [0, 1, 2, 3].map(|word| own(line.word(first + word)));
        watcher.arm(number, &words, NO_LIMIT);
        for word in 0..8 {
            worker.store(line.word(word), 10 + word as u64);
        }
        let closed = watcher.breakpoints.disarm().unwrap();
        let records = watcher.drain();
        assert!(
            records
                .iter()
                .all(|record| u64::from(record.window) == number)
        );
        for word in 0..8 {
            let of_word = |record: &&WatchRecord| record.watched_addr == line.word(word);
            let is_watched = (first..first + 4).contains(&word);
            let expected = if is_watched { 10 + word } else { 0 };
            assert_eq!(records.iter().filter(of_word).count(), expected, "{word}");
        }
        assert_eq!((closed.hits, closed.other_traps), (records.len() as u64, 0));
    }
    worker.end();
}

#[test]
fn at_its_limit_a_window_is_over_and_its_breakpoints_are_off_time_and_again() {
    if !can_run("a window's limit") {
        return;
    }
    let mut watcher = Watcher::start();
    let by_themselves = watcher.breakpoints.end_by_themselves();
    println!("breakpoints end by themselves: {by_themselves}");
    let (line, worker) = (Line::new(), Worker::start());
    let cpus = online_cpus().len() as u64;
    // Windows that are asked to end come in between: an event's limit that was not counted down must not
    // be raised again.
    for (number, limit) in [50, NO_LIMIT, NO_LIMIT, 50, 20, NO_LIMIT, 1]
        .into_iter()
        .enumerate()
    {
        watcher.arm(number as u64, &[own(line.word(0))], limit);
        assert_eq!(watcher.breakpoints.over(), None);
        worker.store(line.word(0), 100);
        let ends = limit < 100;
        assert_eq!(watcher.breakpoints.over(), ends.then_some(WindowEnd::Hits));
        let word = line.word(0);
        let late_ns = worker.run(move || {
            let start_ns = thread_ns();
            store(word as *mut u64, 400);
            thread_ns() - start_ns
        });
        if ends && by_themselves {
            let traps_ns = 400 * watcher.breakpoints.costs().hit_ns;
            assert!(
                late_ns < traps_ns / 4,
                "{late_ns} ns for what {traps_ns} ns of traps would be"
            );
        }
        let closed = watcher.breakpoints.disarm().unwrap();
        let records = watcher.drain();
        assert_eq!(closed.hits, if ends { limit } else { 500 });
        assert_eq!(records.len() as u64, closed.hits);
        assert_eq!(
            closed.end,
            if ends {
                WindowEnd::Hits
            } else {
                WindowEnd::Asked
            }
        );
        if !ends {
            assert_eq!(closed.other_traps, 0);
        } else if by_themselves {
            // The thread may have moved: each CPU's breakpoint costs one more trap.
            assert!((1..=cpus).contains(&closed.other_traps), "{closed:?}");
        } else {
            assert_eq!(closed.other_traps, 500 - limit);
        }
        let last = records.iter().map(|record| record.sample.time_ns).max();
        assert!(last.unwrap() <= closed.end_ns);
    }
    worker.end();
}

#[test]
fn a_deadline_ends_a_window_that_is_still_being_hit() {
    if !can_run("a window's deadline") {
        return;
    }
    let mut watcher = Watcher::start();
    let (line, worker) = (Line::new(), Worker::start());
    let stop = Arc::new(AtomicBool::new(false));
    let (seen, word) = (stop.clone(), line.word(0));
    worker.begin(move || {
        while !seen.load(Ordering::Relaxed) {
            store(word as *mut u64, 1);
        }
    });
    let open_ns = watcher
        .breakpoints
        .arm(&WindowPlan {
            number: 0,
            words: &[own(word)],
            threads: &[],
            hit_limit: NO_LIMIT,
            duration_ns: DURATION_NS,
        })
        .unwrap();
    let start = Instant::now();
    while watcher.breakpoints.over().is_none() && start.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(watcher.breakpoints.over(), Some(WindowEnd::Time));
    // However late it is closed.
    thread::sleep(Duration::from_millis(20));
    let closed = watcher.breakpoints.disarm().unwrap();
    stop.store(true, Ordering::Relaxed);
    worker.end();
    let records = watcher.drain();
    println!("{closed:?}, {} records", records.len());
    assert_eq!(closed.end, WindowEnd::Time);
    assert!(closed.end_ns < open_ns + DURATION_NS);
    assert!(closed.hits > 0);
    assert_eq!(records.len() as u64, closed.hits);
    let is_before_the_deadline =
        |record: &WatchRecord| record.sample.time_ns < open_ns + DURATION_NS;
    assert!(records.iter().all(is_before_the_deadline));
    assert!(watcher.breakpoints.over().is_none());
}

#[test]
fn two_threads_at_once_exceed_the_limit_by_no_more_than_a_hit_a_cpu() {
    if !can_run("a limit that two threads reach") {
        return;
    }
    let mut watcher = Watcher::start();
    let line = Line::new();
    let workers = [Worker::start(), Worker::start()];
    let cpus = online_cpus().len() as u64;
    for number in 0..10 {
        watcher.arm(number, &[own(line.word(0)), own(line.word(1))], 100);
        let done = Arc::new(());
        for (worker, word) in workers.iter().zip([line.word(0), line.word(1)]) {
            let done = done.clone();
            worker.begin(move || {
                store(word as *mut u64, 300);
                drop(done);
            });
        }
        while Arc::strong_count(&done) > 1 {
            thread::yield_now();
        }
        let closed = watcher.breakpoints.disarm().unwrap();
        let records = watcher.drain();
        assert!((100..100 + cpus).contains(&closed.hits), "{closed:?}");
        assert_eq!(records.len() as u64, closed.hits);
        // The order is complete up to the end: all but those who passed the limit at the same time.
        let complete = records
            .iter()
            .filter(|record| record.sample.time_ns <= closed.end_ns)
            .count() as u64;
        assert!(closed.hits - complete < cpus, "{closed:?}");
    }
    for worker in workers {
        worker.end();
    }
}

#[test]
fn what_a_full_ring_drops_is_counted_to_the_hit() {
    if !can_run("overrunning a ring of hits") {
        return;
    }
    // A page holds about 20 hits.
    let mut watcher = Watcher::with(1, |kernel| Breakpoints::open(kernel, &online_cpus(), 1));
    let (line, worker) = (Line::new(), Worker::start());
    watcher.arm(0, &[own(line.word(0))], NO_LIMIT);
    worker.store(line.word(0), 200);
    let closed = watcher.breakpoints.disarm().unwrap();
    let records = watcher.drain();
    assert_eq!(closed.hits, 200);
    assert!(closed.dropped > 0);
    assert_eq!(records.len() as u64 + closed.dropped, closed.hits);
    worker.end();
}

/// Reads eight zero bytes into the word.
fn read_zeros_into(word: u64) {
    use std::os::fd::AsRawFd as _;
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    // SAFETY: the word is live, and nobody else accesses it meanwhile.
    let read = unsafe { libc::read(zeros.as_raw_fd(), word as *mut libc::c_void, 8) };
    assert_eq!(read, 8);
}

#[test]
fn a_system_call_that_stores_to_the_word_is_a_hit_in_the_kernel() {
    if !can_run("watching a system call") {
        return;
    }
    let mut watcher = Watcher::start();
    let (line, worker) = (Line::new(), Worker::start());
    let (watched, other) = (line.word(0), line.word(1));
    watcher.arm(0, &[own(watched)], NO_LIMIT);
    worker.run(move || read_zeros_into(other));
    assert_eq!(watcher.drain().len(), 0);
    worker.run(move || read_zeros_into(watched));
    let closed = watcher.breakpoints.disarm().unwrap();
    let records = watcher.drain();
    println!("{} hits for one read", records.len());
    assert!(closed.hits > 0);
    assert_eq!(records.len() as u64, closed.hits);
    for record in &records {
        assert_eq!(record.sample.tid, worker.tid.0);
        assert_ne!(record.sample.flags & SAMPLE_KERNEL, 0);
        assert_eq!(record.sample.flags & SAMPLE_STACK_TOP, 0);
    }
    worker.end();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_watched_word_on_top_of_the_stack_is_read_without_an_end() {
    use std::arch::asm;
    if !can_run("watching the top of a stack") {
        return;
    }
    let mut watcher = Watcher::start();
    let worker = Worker::start();
    // The program itself reads the word, inside of the trap.
    let (send_top, top) = std::sync::mpsc::channel::<u64>();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let done = Arc::new(());
    let finished = done.clone();
    worker.begin(move || {
        let mut words = [0_u64; 64];
        let stack = words.as_mut_ptr() as u64 + 256;
        send_top.send(stack).unwrap();
        wait.recv().unwrap();
        // SAFETY: `stack` is the middle of a live array that nothing else uses, and the real stack pointer
        // is put back; signals of a test have no handler on this thread.
        unsafe {
            asm!(
                "xchg rsp, {stack}",
                "2: mov qword ptr [rsp], {times}",
                "dec {times}",
                "jnz 2b",
                "xchg rsp, {stack}",
                stack = inout(reg) stack => _,
                times = inout(reg) 100_u64 => _,
            );
        }
        assert_eq!(std::hint::black_box(words)[32], 1);
        drop(finished);
    });
    watcher.arm(0, &[own(top.recv().unwrap())], NO_LIMIT);
    go.send(()).unwrap();
    while Arc::strong_count(&done) > 1 {
        thread::yield_now();
    }
    let closed = watcher.breakpoints.disarm().unwrap();
    worker.end();
    let mut records = watcher.drain();
    println!("{closed:?}");
    assert!(closed.hits >= 100);
    records.sort_by_key(|record| record.sample.time_ns);
    let tops: Vec<u64> = records.iter().map(|record| record.stack_top).collect();
    let expected: Vec<u64> = (1..=100).rev().collect();
    assert_eq!(tops[..100], expected);
}

#[test]
fn a_plan_that_cannot_be_arms_nothing_and_a_later_one_can_be() {
    if !can_run("impossible windows") {
        return;
    }
    let mut watcher = Watcher::start();
    let line = Line::new();
    let words = [own(line.word(0))];
    let plan = WindowPlan {
        number: 0,
        words: &words,
        threads: &[],
        hit_limit: 1,
        duration_ns: NO_LIMIT,
    };
    let breakpoints = &mut watcher.breakpoints;
    let refused = |result| matches!(result, Err(BreakpointError::Plan(_)));
    assert!(matches!(
        breakpoints.disarm(),
        Err(BreakpointError::Plan(_))
    ));
    assert!(refused(breakpoints.arm(&WindowPlan {
        hit_limit: 0,
        ..plan
    })));
    assert!(refused(breakpoints.arm(&WindowPlan {
        duration_ns: 0,
        ..plan
    })));
    assert!(refused(breakpoints.arm(&WindowPlan { words: &[], ..plan })));
    breakpoints.arm(&plan).unwrap();
    assert!(refused(breakpoints.arm(&plan)));
    assert_eq!(breakpoints.disarm().unwrap().hits, 0);
}
