//! On programs that run, in the kernel that is here.

use std::{
    fs,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{available_parallelism, sleep},
    time::Instant,
};

use cohtrace_skips::skipped;

use super::*;
use crate::sys::{
    priority::Urgent,
    process_memory::read_word,
    running::{Running, compile},
};

const HOLD: Duration = Duration::from_millis(2);

/// Programs that take both CPUs, one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The program, its two threads found.
struct Program {
    _alone: MutexGuard<'static, ()>,
    running: Running,
    own: Tid,
    other: Tid,
}

impl Program {
    fn start(options: &[&str]) -> Option<Program> {
        if available_parallelism().map_or(1, usize::from) < 2 {
            skipped("one CPU: no two threads run at once");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        fs::write(
            directory.path().join("program.c"),
            include_str!("program.c"),
        )
        .unwrap();
        let common = ["-O2", "-pthread", "program.c", "-o", "program"];
        compile(directory.path(), &[&common, options].concat());
        // Whatever else the machine has to do, the two run.
        let urgent = Urgent::raise();
        let running = Running::start(directory);
        drop(urgent);
        let thread = |name: &str| loop {
            let tasks = fs::read_dir(format!("/proc/{}/task", running.pid().0)).unwrap();
            let named = tasks.flatten().find(|task| {
                fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
            });
            if let Some(task) = named {
                break Tid(task.file_name().to_string_lossy().parse().unwrap());
            }
            sleep(Duration::from_millis(1));
        };
        let (own, other) = (thread("own"), thread("other"));
        Some(Program {
            _alone: alone,
            own,
            other,
            running,
        })
    }

    fn asked(&self, hold: Duration) -> Asked {
        let pid = self.running.pid();
        Asked {
            pid,
            tid: self.own,
            addr: self.running.says["own"],
            len: 8,
            line_addr: self.running.says["own"],
            others: vec![(pid, self.other)],
            beside: Duration::from_millis(5),
            hold,
        }
    }

    fn word(&self, name: &str) -> u64 {
        read_word(self.running.pid(), self.running.says[name]).unwrap()
    }

    /// The letter of its state: `R`, `S`, `t`.
    fn state(&self, tid: Tid) -> char {
        let path = format!("/proc/{}/task/{}/stat", self.running.pid().0, tid.0);
        let stat = fs::read_to_string(Path::new(&path)).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    /// Both go on within a second.
    fn runs_on(&self) {
        let start = Instant::now();
        let before = [self.word("own"), self.word("other")];
        loop {
            let grew = self.word("own") > before[0] && self.word("other") > before[1];
            if grew && self.state(self.other) != 't' {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(1), "a thread stands");
            sleep(Duration::from_millis(1));
        }
    }
}

fn ask(holder: &mut Holder, asked: Asked) -> Pace {
    holder.ask(asked);
    loop {
        if let Some((_, pace)) = holder.answer() {
            return pace;
        }
        sleep(Duration::from_micros(200));
    }
}

/// The middle of how many times as fast the word grew while the other was held, of ten holds; on a busy machine most holds may
/// end early.
fn gain(program: &Program) -> f64 {
    let mut holder = Holder::start().unwrap();
    let mut gains: Vec<f64> = Vec::new();
    let start = Instant::now();
    while gains.len() < 10 {
        assert!(start.elapsed() < Duration::from_mins(1), "{gains:?}");
        let read = ask(&mut holder, program.asked(HOLD));
        let together = read.others_run_ns * 10 >= read.beside_ns * 9;
        if read.end == HoldEnd::Held && together {
            assert_eq!(read.others, 1);
            gains.push(read.alone.rate().unwrap() / read.beside.rate().unwrap());
        }
    }
    gains.sort_by(f64::total_cmp);
    gains[5]
}

#[test]
fn a_word_grows_faster_while_the_thread_that_takes_its_line_is_held() {
    let Some(program) = Program::start(&[]) else {
        return;
    };
    let gain = gain(&program);
    assert!(gain > 1.5, "{gain}");
    program.runs_on();
}

#[test]
fn a_word_on_a_line_of_its_own_grows_as_before_while_another_thread_is_held() {
    let Some(program) = Program::start(&["-DPADDED"]) else {
        return;
    };
    let gain = gain(&program);
    assert!((0.9..1.1).contains(&gain), "{gain}");
}

#[test]
fn nobody_stands_after_the_holder_was_killed_a_hundred_times() {
    let Some(program) = Program::start(&[]) else {
        return;
    };
    let mut stood = 0;
    for tried in 0.. {
        assert!(tried < 1000, "only {stood} were killed while they held");
        let mut holder = Holder::start().unwrap();
        let beside = Duration::from_micros(200);
        holder.ask(Asked {
            beside,
            ..program.asked(Duration::from_millis(500))
        });
        let start = Instant::now();
        while holder.answer().is_none() && start.elapsed() < Duration::from_millis(300) {
            if program.state(program.other) == 't' {
                stood += 1;
                break;
            }
        }
        drop(holder);
        program.runs_on();
        if stood == 100 {
            break;
        }
    }
}

#[test]
fn who_holds_a_lock_that_the_thread_waits_for_is_let_go_at_once() {
    let Some(program) = Program::start(&["-DLOCK"]) else {
        return;
    };
    let mut holder = Holder::start().unwrap();
    let (mut stuck, mut tried) = (0, 0);
    while stuck < 5 {
        tried += 1;
        assert!(tried < 1000, "it was let go {stuck} times");
        let read = ask(&mut holder, program.asked(Duration::from_millis(50)));
        if read.end == HoldEnd::Stuck {
            stuck += 1;
            // 1 ms to stand, a quarter until it is seen; the rest is for a machine that is busy.
            assert!(read.held_ns < 20_000_000, "{read:?}");
        }
    }
    let before = program.word("own");
    sleep(Duration::from_millis(100));
    assert!(program.word("own") > before, "it got its lock");
}

#[test]
fn a_thread_that_waits_in_a_system_call_is_not_touched() {
    let Some(program) = Program::start(&["-DWAITS"]) else {
        return;
    };
    let mut holder = Holder::start().unwrap();
    for _ in 0..20 {
        let read = ask(&mut holder, program.asked(HOLD));
        assert_eq!((read.held, read.in_system_call), (0, 0));
    }
    assert_eq!(program.word("interrupted"), 0);
}

#[test]
fn what_cannot_be_read_or_does_not_grow_holds_nobody() {
    let Some(program) = Program::start(&[]) else {
        return;
    };
    let mut holder = Holder::start().unwrap();
    let still = Asked {
        addr: program.running.says["interrupted"],
        ..program.asked(HOLD)
    };
    assert_eq!(ask(&mut holder, still).end, HoldEnd::Slow);
    let nowhere = Asked {
        addr: 8,
        ..program.asked(HOLD)
    };
    assert_eq!(ask(&mut holder, nowhere).end, HoldEnd::Gone);
    let nobody = Asked {
        hold: Duration::ZERO,
        ..program.asked(HOLD)
    };
    let read = ask(&mut holder, nobody);
    assert_eq!((read.end, read.held_ns), (HoldEnd::Beside, 0));
    assert!(read.beside.added > 0);
}

#[test]
fn a_word_that_passes_its_end_grew_and_one_that_went_down_did_not() {
    assert_eq!(marks::grown(5, 9, 8), Some(4));
    assert_eq!(marks::grown(u64::from(u32::MAX), 2, 4), Some(3));
    assert_eq!(marks::grown(9, 5, 8), None);
}
