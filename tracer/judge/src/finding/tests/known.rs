//! The same programs, seen by every observer: who can tell must say the same.
//!
//! A program stands once in a table, with its answer; where an observer rightly says something else, that stands beside it
//! with the reason. A program that is mixed for one observer and true for another is a failing test.

use super::{
    answers::{Shared, findings},
    complete::stream,
    pmu::{PEBS, run},
    programs::{Program, Random, Worker, add, load, program, store, worker},
};
use crate::{
    analysis::{
        AnalysisOptions,
        watched_fixture::{Act, Watch},
    },
    finding::{Thresholds, Verdict, WatchThresholds, shown},
    pipeline::Pipeline,
};

use Verdict::{FalseSharing, MixedSharing, TrueSharing};

const LINE: u64 = 64;

/// Who looks at a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observer {
    /// A timer, which sees what instructions wait.
    Samples,
    /// Breakpoints, which see all accesses for a short time.
    Windows,
    /// An emulator, which sees all accesses.
    CompleteOrder,
    /// A PMU, which sees some loads that other CPUs serve, and some stores.
    Pmu,
}

const OBSERVERS: [Observer; 4] = [
    Observer::Samples,
    Observer::Windows,
    Observer::CompleteOrder,
    Observer::Pmu,
];

impl Observer {
    /// Runs that must all say the same; what chance decides in samples takes more of them.
    fn seeds(self) -> u64 {
        match self {
            Observer::Samples => 50,
            Observer::Windows | Observer::CompleteOrder | Observer::Pmu => 5,
        }
    }
}

/// A program with its answer.
struct Known {
    name: &'static str,
    program: Program,
    answer: Shared,
    /// Who says what else, and why that is right.
    except: Vec<(Observer, Shared, &'static str)>,
}

fn known(
    name: &'static str,
    workers: impl IntoIterator<Item = Worker>,
    answer: &[(u64, Verdict)],
) -> Known {
    Known {
        name,
        program: program(workers),
        answer: answer.to_vec(),
        except: Vec::new(),
    }
}

impl Known {
    fn but(mut self, observer: Observer, says: &[(u64, Verdict)], why: &'static str) -> Known {
        self.except.push((observer, says.to_vec(), why));
        self
    }
}

/// The accesses of so many rounds: in each one of the threads that is due, by lot, goes once through its loop.
fn order(program: &Program, rounds: usize, random: &mut Random) -> Vec<Act> {
    let mut acts = Vec::new();
    for _ in 0..rounds {
        let tid = random.below(program.workers.len() as u64);
        let worker = &program.workers[tid as usize];
        if random.chance(worker.busy) {
            acts.extend(worker.steps.iter().zip(0..).map(|(step, code)| Act {
                tid: tid as u32 + 1,
                cpu: tid as u32 + 1,
                op: step.op,
                offset: step.at,
                size: step.size,
                within: 0,
                ip: 0x40_1000 + tid * 0x100 + code * 4,
            }));
        }
    }
    acts
}

/// What windows show of each line, five of them on the whole of it.
fn windows(program: &Program, seed: u64) -> Shared {
    let mut random = Random::new(seed);
    let rounds: Vec<Vec<Act>> = (0..5).map(|_| order(program, 100, &mut random)).collect();
    let words: Vec<u8> = (0..LINE as u8).step_by(8).collect();
    let lines = |acts: &Vec<Act>| acts.iter().map(|act| act.offset / LINE).max();
    let last = rounds.iter().filter_map(lines).max().unwrap_or(0);
    let shown_of = |line: u64| {
        let mut watch = Watch::new();
        for acts in &rounds {
            let here = acts.iter().filter(|act| act.offset / LINE == line);
            let acts: Vec<Act> = here
                .map(|act| Act {
                    offset: act.offset % LINE,
                    ..*act
                })
                .collect();
            watch.window(&words, &acts, |_| {});
        }
        let watched = watch.line();
        let limits = WatchThresholds::default();
        let verdict = shown(watched, &watched.groups(), &limits).shown.verdict();
        verdict.map(|verdict| (line * LINE, verdict))
    };
    (0..=last).filter_map(shown_of).collect()
}

fn seen(observer: Observer, program: &Program, seed: u64) -> Shared {
    match observer {
        Observer::Samples => findings(&program.sample(seed).judge()),
        Observer::Windows => windows(program, seed),
        Observer::CompleteOrder => {
            let acts = order(program, 400, &mut Random::new(seed));
            findings(&stream().turns(1, &acts).judge())
        }
        Observer::Pmu => {
            let options = AnalysisOptions {
                sample_period_ns: 0,
                ..AnalysisOptions::default()
            };
            let mut pipeline = Pipeline::new(options, Thresholds::default());
            pipeline.feed(&run(&program.workers, PEBS, 200, seed));
            findings(&pipeline.judge())
        }
    }
}

/// Why a PMU misses a thread that only adds.
const UNSEEN: &str =
    "an addition to a line of which the adder has a copy is no long load, so none is sampled";

/// What two threads, and what four threads, use each for itself or all alike.
fn alone_and_alike() -> Vec<Known> {
    let counter = |at| worker(&[load(at), store(at)]);
    let adder = |at| worker(&[add(at)]);
    let slot = |at| worker(&[add(at), load(0x800)]);
    // Elements of 64 bytes: the last field of one is on the next one's line where they begin in the middle of one.
    let element = |at| worker(&[add(at), add(at + 56)]);
    let all = [(0, TrueSharing)];
    let each = [(0, FalseSharing)];
    vec![
        known("counters", [counter(0), counter(8)], &each),
        known("counters apart", [counter(0), counter(64)], &[]),
        known("additions", [adder(0), adder(8)], &each),
        known("additions apart", [adder(0), adder(64)], &[]),
        known("four slots", (0..4).map(|n| slot(n * 8)), &each),
        known("four slots apart", (0..4).map(|n| slot(n * 64)), &[]),
        known(
            "elements",
            [element(16), element(80)],
            &[(64, FalseSharing)],
        ),
        known("aligned elements", [element(0), element(64)], &[]),
        known("a counter of two", [counter(0), counter(0)], &all),
        known("an atomic of two", [adder(0), adder(0)], &all),
        known("an atomic of four", (0..4).map(|_| adder(0)), &all),
        known("four atomics apart", (0..4).map(|n| adder(n * 64)), &[]),
        known(
            "what all read",
            (0..3).map(|_| worker(&[load(0), load(8)])),
            &[],
        ),
        known("one thread", [worker(&[add(0), add(8)])], &[]),
    ]
}

/// Locks, with what is beside them.
fn locks() -> Vec<Known> {
    let taker = |at| worker(&[add(at), store(at)]);
    let adding = |at| worker(&[add(0), add(at), store(0)]);
    let storing = |at| worker(&[add(0), load(at), store(at), store(0)]);
    let reading = |at| worker(&[add(0), load(at), store(0)]);
    let adder = |at| worker(&[add(at)]);
    let reader = |at| worker(&[load(at)]);
    let one = [(0, TrueSharing)];
    let both = [(0, TrueSharing), (64, TrueSharing)];
    let mixed = [(0, MixedSharing)];
    let two = |at| [taker(0), taker(0), taker(at), taker(at)];
    let four_counters = [0, 0, 8, 8].map(|at| worker(&[load(at), store(at)]));
    let around = |at: u64| [adder(0), adder(0), adder(at + 8), reader(at + 16)];
    vec![
        known("two locks", two(8), &mixed),
        known("two locks apart", two(64), &both),
        known("two counters of two", four_counters, &mixed),
        known("a lock with what it adds to", [adding(8), adding(8)], &one),
        known("what it adds to apart", [adding(64), adding(64)], &both),
        known("a lock with its data", [storing(8), storing(8)], &one),
        known("its data apart", [storing(64), storing(64)], &both),
        known(
            "a lock with what its takers read",
            [reading(8), reading(8)],
            &one,
        ),
        known(
            "what its takers read apart",
            [reading(64), reading(64)],
            &one,
        ),
        known(
            "a lock with what others read",
            [taker(0), taker(0), reader(8)],
            &mixed,
        ),
        known(
            "what others read apart",
            [taker(0), taker(0), reader(64)],
            &one,
        ),
        known(
            "a lock beside a statistic",
            [storing(8), storing(8), adder(16)],
            &mixed,
        ),
        known(
            "a statistic apart",
            [storing(8), storing(8), adder(64)],
            &one,
        ),
        known("a lock word beside fields of others", around(0), &mixed),
        // The counter beside the reader's field.
        known(
            "fields of others apart",
            around(64),
            &[(0, TrueSharing), (64, FalseSharing)],
        )
        .but(Observer::Pmu, &[(0, TrueSharing)], UNSEEN),
    ]
}

/// What one thread stores and another reads.
fn written_and_read() -> Vec<Known> {
    let queue = |at| [worker(&[load(at), store(0)]), worker(&[load(0), store(at)])];
    let writer = |at| worker(&[store(at)]);
    let reader = |at| worker(&[load(at)]);
    let beside = |at| {
        [
            worker(&[add(0)]),
            worker(&[load(at), load(at + 8)]),
            reader(at),
        ]
    };
    let reporter = worker(&[load(0), load(8)]).busy(0.02);
    let false_sharing = [(0, FalseSharing)];
    vec![
        known("positions of a queue", queue(8), &[(0, MixedSharing)]),
        known(
            "positions apart",
            queue(64),
            &[(0, TrueSharing), (64, TrueSharing)],
        ),
        known("a value", [writer(8), reader(8)], &[(0, TrueSharing)]),
        known("a value beside", [writer(8), reader(0)], &false_sharing),
        known("a value apart", [writer(64), reader(0)], &[]),
        known("a writer beside configuration", beside(8), &false_sharing).but(
            Observer::Pmu,
            &[],
            UNSEEN,
        ),
        known("a writer apart from it", beside(64), &[]),
        known(
            "a reporter of counters",
            [worker(&[add(0)]), worker(&[add(8)]), reporter],
            &false_sharing,
        ),
    ]
}

fn check(programs: Vec<Known>) {
    let mut wrong: Vec<String> = Vec::new();
    for known in programs {
        for observer in OBSERVERS {
            let except = known.except.iter().find(|(who, ..)| *who == observer);
            let (expected, why) = match except {
                Some((_, says, why)) => (says, *why),
                None => (&known.answer, ""),
            };
            for seed in 0..observer.seeds() {
                let seen = seen(observer, &known.program, seed);
                if seen != *expected {
                    wrong.push(format!(
                        "{observer:?} of {}, seed {seed}: {seen:?}, not {expected:?} {why}",
                        known.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn who_uses_bytes_alone_or_with_all_others_is_seen_alike_by_all() {
    check(alone_and_alike());
}

#[test]
fn locks_and_what_is_beside_them_are_seen_alike_by_all() {
    check(locks());
}

#[test]
fn what_one_writes_and_others_read_is_seen_alike_by_all() {
    check(written_and_read());
}
