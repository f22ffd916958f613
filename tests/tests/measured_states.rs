//! The states that `measure` times: an emulator sees every access that brings lines into them, and its directory must then have
//! the lines as the states say.

use std::{collections::BTreeMap, path::Path};

use cohtrace::{
    access::{Access, Cpu},
    coherence::{Directory, Intent, Protocol, State as Held},
    event::Batch,
    measure::state::State,
    session::SessionReader,
    sys::line_loops::Operation,
};
use cohtrace_tests::{
    emulated::{address, record},
    live::has_emulator,
    tool,
};

/// Bytes of a line.
const LINE: u64 = 64;

/// What a store says that the thread makes that times.
#[derive(Clone, Debug)]
enum Mark {
    /// All lines are about to be taken out of all caches.
    Flush,
    /// The lines are in the state, and the operation is about to be done to each.
    Timed(State, String),
    /// It was done.
    Done,
}

/// A run: what it said, and its accesses in order.
struct Shown {
    /// By the address that is stored to.
    marks: BTreeMap<u64, Mark>,
    lines: Vec<u64>,
    accesses: Vec<Access>,
}

fn shown() -> Shown {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("states.coh");
    let program = tool::path().expect("the tool is built");
    let program = program.to_str().expect("a plain path");
    let ended = record(&session, &[program, "measure", "--show-states"]).expect_code(0);
    let mut shown = Shown {
        marks: BTreeMap::new(),
        lines: Vec::new(),
        accesses: accesses(&session),
    };
    for line in ended.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let mark = match words[..] {
            ["line", at] => {
                shown.lines.push(address(at));
                continue;
            }
            ["flush", _] => Mark::Flush,
            ["done", _] => Mark::Done,
            ["timed", _, state, operation] => {
                let state = State::named(state).expect("a state");
                Mark::Timed(state, operation.to_owned())
            }
            _ => panic!("{line}"),
        };
        shown.marks.insert(address(words[1]), mark);
    }
    shown
}

fn accesses(session: &Path) -> Vec<Access> {
    let mut reader = SessionReader::open(session).expect("the session reads");
    let (mut all, mut batch) = (Vec::new(), Batch::default());
    while reader.next_batch(&mut batch).expect("the session reads") {
        assert_eq!(batch.tally.lost_total(), 0);
        all.append(&mut batch.accesses);
        batch.clear();
    }
    all
}

/// A state and operation, as it came.
#[derive(Debug)]
struct Moment {
    state: State,
    operation: String,
    /// Of each line before the operation: who holds it, how, in the order of processors.
    held: Vec<Vec<(Cpu, Held)>>,
    /// Executions on the lines by each processor during the operation. What asks for nothing may stand with an earlier time of
    /// the same operation: the emulator counts it as a repeat.
    executions: BTreeMap<Cpu, u64>,
}

/// What the directory says of the lines whenever they are about to be timed. `evicts`: a flush takes them out of all caches.
fn replay(shown: &Shown, evicts: bool) -> Vec<Moment> {
    let today = Protocol {
        exclusive_on_first_read: true,
        ..Protocol::default()
    };
    let mut homes: BTreeMap<u64, Directory> = (shown.lines.iter())
        .map(|line| (line / LINE, Directory::under(today)))
        .collect();
    let mut moments: Vec<Moment> = Vec::new();
    let mut is_timed = false;
    for access in &shown.accesses {
        let Some(intent) = Intent::of(access.op) else {
            continue;
        };
        if let Some(home) = homes.get_mut(&(access.addr / LINE)) {
            home.access(access.cpu, intent);
            if let Some(moment) = moments.last_mut().filter(|_| is_timed) {
                *moment.executions.entry(access.cpu).or_default() += access.executions();
            }
        }
        match shown.marks.get(&access.addr) {
            Some(Mark::Flush) if evicts => {
                for home in homes.values_mut() {
                    let holders: Vec<Cpu> = home.holders().collect();
                    for cpu in holders {
                        home.evict(cpu);
                    }
                }
            }
            Some(Mark::Timed(state, operation)) => {
                let held = |home: &Directory| {
                    let holders = home.holders();
                    holders.map(|cpu| (cpu, home.state(cpu))).collect()
                };
                moments.push(Moment {
                    state: *state,
                    operation: operation.clone(),
                    held: homes.values().map(held).collect(),
                    executions: BTreeMap::new(),
                });
                is_timed = true;
            }
            Some(Mark::Done) => is_timed = false,
            Some(Mark::Flush) | None => {}
        }
    }
    moments
}

/// The processor of the thread that times, of the other one, and of the third, in the order in which they come to the lines.
fn threads(shown: &Shown) -> [Cpu; 3] {
    let mut found: Vec<Cpu> = Vec::new();
    let on_line = |access: &&Access| {
        let line = access.addr / LINE;
        shown.lines.iter().any(|known| known / LINE == line)
    };
    for access in shown.accesses.iter().filter(on_line) {
        if !found.contains(&access.cpu) {
            found.push(access.cpu);
        }
    }
    found.try_into().expect("three threads come to the lines")
}

/// Who holds a line in a state, and how.
fn claimed(state: State, [own, other, third]: [Cpu; 3]) -> Vec<(Cpu, Held)> {
    use Held::{Exclusive, Modified, Shared};
    let mut held = match state {
        State::OwnL1 | State::OwnL2 | State::OwnL3 => vec![(own, Modified)],
        State::Memory => vec![],
        State::OtherModified => vec![(other, Modified)],
        State::OtherExclusive => vec![(other, Exclusive)],
        State::OtherShared => vec![(other, Shared), (third, Shared)],
        State::SharedByBoth => vec![(own, Shared), (other, Shared)],
        State::SharedByThree => vec![(own, Shared), (other, Shared), (third, Shared)],
    };
    held.sort_unstable_by_key(|(cpu, _)| *cpu);
    held
}

#[test]
fn an_emulators_directory_has_all_lines_in_the_states_that_are_timed_and_nobody_else_is_at_them() {
    if !has_emulator() {
        return;
    }
    let shown = shown();
    let threads = threads(&shown);
    let is_as_claimed = |moment: &Moment| {
        let claimed = claimed(moment.state, threads);
        moment.held.iter().all(|held| *held == claimed)
    };
    let moments = replay(&shown, true);
    assert_eq!(moments.len(), State::ALL.len() * Operation::ALL.len());
    let mut executions = 0;
    for moment in &moments {
        assert!(is_as_claimed(moment), "{moment:?}");
        let by_others = moment.executions.keys().filter(|cpu| **cpu != threads[0]);
        assert_eq!(
            by_others.count(),
            0,
            "{} of {:?}",
            moment.operation,
            moment.state
        );
        executions += moment.executions.values().sum::<u64>();
    }
    // Each line is accessed once.
    assert_eq!(executions, (moments.len() * shown.lines.len()) as u64);
    // The twin: lines that no flush takes out of the caches are not where three states want them.
    let mut wrong: Vec<State> = (replay(&shown, false).iter())
        .filter(|moment| !is_as_claimed(moment))
        .map(|moment| moment.state)
        .collect();
    wrong.dedup();
    assert_eq!(
        wrong,
        [State::OtherShared, State::OtherExclusive, State::Memory]
    );
}
