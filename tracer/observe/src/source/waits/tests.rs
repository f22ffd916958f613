//! Known answers: each rule with a sample where it holds and a twin where it must not.

use super::*;
use crate::{decode::Stall, event::Unresolved};

const MS: u64 = 1_000_000;

fn at(addr: u64, op: Op) -> Placed {
    let touch = Touch {
        ip: 0x40_1000,
        addr,
        size: 8,
        op,
        locked: false,
        basis: Basis::Decoded,
        suspect: 0,
    };
    Placed::new(touch, Place::Kernel { addr })
}

fn stalled(mut placed: Placed) -> Placed {
    placed.touch.basis = Basis::Stalled;
    placed
}

fn locked(mut placed: Placed) -> Placed {
    placed.touch.locked = true;
    placed
}

fn suspect(number: u8, mut placed: Placed) -> Placed {
    placed.touch.suspect = number;
    placed
}

fn harvest(wait: Wait, incomplete: bool) -> Harvest {
    Harvest {
        stall: Stall::Attributed,
        wait,
        spin: (wait == Wait::InSpinLoop).then_some(SpinLoop {
            ip: 0x40_1000,
            incomplete,
        }),
        lost: None,
        operands_unknown: 0,
    }
}

fn by(tid: u32, time_ns: u64) -> Sampled {
    Sampled {
        time_ns,
        tid: Tid(tid),
        cpu: Cpu(tid),
    }
}

/// What threads did before the sample that counts.
#[derive(Default)]
struct Before(Waits);

impl Before {
    /// A thread, on a CPU of its number, makes these accesses.
    fn used(mut self, tid: u32, accesses: &[Placed]) -> Before {
        let mut none = Vec::new();
        let nothing = Harvest::unresolved(Unresolved::NoMemoryOperand);
        (self.0).owners(&nothing, &mut accesses.to_vec(), by(tid, 0), &mut none);
        assert_eq!(none, []);
        self
    }

    /// Who thread 1 waited for: place in the sample, how, and what instead.
    fn told(mut self, wait: Wait, sample: &[Placed]) -> Vec<(usize, Wait, u8)> {
        let mut owners = Vec::new();
        let harvest = harvest(wait, false);
        (self.0).owners(&harvest, &mut sample.to_vec(), by(1, 0), &mut owners);
        let told = |owner: &Owner| (owner.touch, owner.wait, owner.instead);
        owners.iter().map(told).collect()
    }
}

const STACK: u64 = 0x7f00;
const SHARED: u64 = 0x1000;
const OTHER: u64 = 0x2000;

/// A locked no-op on the stack behind stores to two lines.
fn fence() -> [Placed; 3] {
    [
        stalled(locked(at(STACK, Op::Rmw))),
        suspect(1, at(OTHER, Op::Store)),
        suspect(2, at(SHARED, Op::Store)),
    ]
}

#[test]
fn a_barrier_on_private_memory_waits_for_the_store_to_the_shared_line() {
    let before = Before::default().used(2, &[at(SHARED + 8, Op::Store)]);
    assert_eq!(
        before.told(Wait::AtBarrier, &fence()),
        [(2, Wait::AtBarrier, 0)]
    );
    // Twin: nobody else uses any of the lines.
    let alone = Before::default();
    let told = alone.told(Wait::AtBarrier, &fence());
    assert_eq!(told, [(0, Wait::AtInstruction, 0)]);
}

#[test]
fn a_barrier_on_a_shared_line_waits_for_that() {
    let before = Before::default()
        .used(2, &[at(SHARED, Op::Store)])
        .used(2, &[at(STACK, Op::Rmw)]);
    let told = before.told(Wait::AtBarrier, &fence());
    assert_eq!(told, [(0, Wait::AtInstruction, 0)]);
}

#[test]
fn several_stores_to_shared_lines_share_the_wait_by_line() {
    let used = [at(SHARED, Op::Load), at(OTHER, Op::Load)];
    let sample = [
        suspect(1, at(OTHER, Op::Store)),
        suspect(2, at(SHARED, Op::Store)),
        suspect(3, at(SHARED + 16, Op::Store)),
    ];
    let told = Before::default()
        .used(2, &used)
        .told(Wait::AtBarrier, &sample);
    assert_eq!(told, [(0, Wait::AtBarrier, 0), (1, Wait::AtBarrier, 0)]);
}

#[test]
fn a_barrier_without_operand_and_without_a_shared_store_waits_for_nobody_known() {
    let sample = [suspect(1, at(SHARED, Op::Store))];
    assert_eq!(Before::default().told(Wait::AtBarrier, &sample), []);
}

#[test]
fn a_load_behind_a_barrier_waits_for_its_line_only_if_others_store_there() {
    let sample = [
        stalled(at(OTHER, Op::Load)),
        suspect(1, locked(at(STACK, Op::Rmw))),
        suspect(2, at(SHARED, Op::Store)),
    ];
    let both = |op| {
        let used = [at(SHARED, Op::Store), at(OTHER, op)];
        Before::default()
            .used(2, &used)
            .told(Wait::AtBarrier, &sample)
    };
    assert_eq!(both(Op::Load), [(2, Wait::AtBarrier, 0)]);
    assert_eq!(both(Op::Store), [(0, Wait::AtInstruction, 0)]);
}

#[test]
fn a_loop_waits_for_the_word_that_another_thread_stores() {
    let sample = [
        stalled(suspect(1, at(OTHER, Op::Load))),
        suspect(2, at(SHARED, Op::Load)),
        suspect(3, at(SHARED + 8, Op::Load)),
    ];
    let told = |before: Before| before.told(Wait::InSpinLoop, &sample);
    let stored = Before::default().used(2, &[at(SHARED + 8, Op::Store)]);
    assert_eq!(told(stored), [(2, Wait::InSpinLoop, 0)]);
    // Its neighbour is stored; this thread itself stores there; others only read it, so that it is in doubt.
    let neighbour = Before::default().used(2, &[at(SHARED + 32, Op::Store)]);
    assert_eq!(told(neighbour), [(1, Wait::InSpinLoop, 0)]);
    let own = Before::default().used(1, &[at(SHARED + 8, Op::Store)]);
    assert_eq!(told(own), [(1, Wait::InSpinLoop, 0)]);
    let read = Before::default().used(2, &[at(SHARED + 8, Op::Load)]);
    assert_eq!(told(read), [(1, Wait::InSpinLoop, 1)]);
    // Nobody is known to use any of them: the one tested last, in doubt.
    assert_eq!(told(Before::default()), [(0, Wait::InSpinLoop, 2)]);
}

/// Thread 1 waits at these times for the word at SHARED, which thread 2 stores; or, where the pointer to it is lost, it
/// only shows the load of the pointer. Who the last sample waited for, by address.
fn waited(samples: &[(u64, Option<u64>)]) -> Option<u64> {
    let stored = [at(SHARED, Op::Store), at(SHARED + 8, Op::Store)];
    let mut before = Before::default().used(2, &stored);
    let mut owners = Vec::new();
    let mut sample = Vec::new();
    for (time_ns, word) in samples {
        sample = vec![stalled(suspect(1, at(OTHER, Op::Load)))];
        sample.extend(word.map(|addr| suspect(2, at(addr, Op::Load))));
        let harvest = harvest(Wait::InSpinLoop, word.is_none());
        (before.0).owners(&harvest, &mut sample, by(1, *time_ns), &mut owners);
    }
    assert!(owners.iter().all(|owner| owner.wait == Wait::InSpinLoop));
    owners.first().map(|owner| sample[owner.touch].touch.addr)
}

#[test]
fn a_loop_that_has_lost_its_pointer_waits_for_what_it_waited_for_in_the_samples_before() {
    let known = |times: u64| (0..times).map(|n| (n * MS, Some(SHARED)));
    let then = |times, lost| waited(&known(times).chain([lost]).collect::<Vec<_>>());
    assert_eq!(then(3, (9 * MS, None)), Some(SHARED));
    // Twins: too few samples, too long ago, and this word and that one by turns.
    assert_eq!(then(2, (9 * MS, None)), None);
    assert_eq!(then(3, (200 * MS, None)), None);
    let by_turns: Vec<_> = (0..20)
        .map(|n| (n * MS, Some(SHARED + n % 2 * 8)))
        .chain([(20 * MS, None)])
        .collect();
    assert_eq!(waited(&by_turns), None);
}

#[test]
fn a_load_that_overwrote_its_pointer_is_where_it_was_in_the_samples_before() {
    let lost = Harvest {
        lost: Some(0x40_1000),
        ..Harvest::unresolved(Unresolved::RegisterOverwritten)
    };
    let behind = |places: &[u64]| {
        let mut waits = Waits::default();
        let mut owners = Vec::new();
        // Only once its place was wanted, it is remembered.
        waits.owners(&lost, &mut Vec::new(), by(1, 0), &mut owners);
        assert_eq!(owners, []);
        let nothing = Harvest::unresolved(Unresolved::NoMemoryOperand);
        for addr in places {
            waits.owners(
                &nothing,
                &mut vec![at(*addr, Op::Load)],
                by(1, MS),
                &mut owners,
            );
        }
        let mut sample = vec![at(STACK, Op::Load)];
        sample[0].touch.ip += 4;
        waits.owners(&lost, &mut sample, by(1, 2 * MS), &mut owners);
        owners.first().map(|owner| sample[owner.touch].touch.addr)
    };
    assert_eq!(behind(&[SHARED; 3]), Some(SHARED));
    // Twins: met too seldom, and a list that it goes through.
    assert_eq!(behind(&[SHARED; 2]), None);
    assert_eq!(behind(&[SHARED, SHARED + 64, SHARED, OTHER, SHARED]), None);
}

/// A load of a line that others read, behind accesses to two lines and one to its own.
fn doubtful() -> [Placed; 4] {
    [
        suspect(1, at(OTHER + 8, Op::Store)),
        suspect(3, at(SHARED, Op::Load)),
        stalled(at(OTHER, Op::Load)),
        suspect(2, at(SHARED, Op::Store)),
    ]
}

fn instead(used: &[Placed], sample: &[Placed]) -> u8 {
    let told = Before::default()
        .used(2, used)
        .told(Wait::AtInstruction, sample);
    assert_eq!(told.len(), 1);
    told[0].2
}

#[test]
fn a_load_of_a_line_that_nobody_stores_to_has_an_access_to_a_contended_line_instead() {
    let mut sample = doubtful();
    sample[0] = suspect(1, at(STACK, Op::Store));
    let read = at(OTHER, Op::Load);
    let written = at(SHARED, Op::Store);
    // The second of the sample's accesses: the load of the line that others store to, and not the store.
    assert_eq!(instead(&[read, written], &sample), 2);
    // Twins: nobody uses the others' lines; its own line is stored to; only one thread uses it.
    assert_eq!(instead(&[read], &sample), 0);
    assert_eq!(instead(&[read, written], &doubtful()), 0);
    assert_eq!(instead(&[written], &sample), 0);
}

#[test]
fn accesses_to_the_same_line_are_never_instead() {
    let mut sample = doubtful();
    for placed in &mut sample {
        placed.touch.op = Op::Load;
        placed.line = LineKey(Place::Kernel { addr: OTHER });
    }
    assert_eq!(instead(&[at(OTHER, Op::Load)], &sample), 0);
}

#[test]
fn hints_are_no_use_of_a_line() {
    let before = Before::default().used(2, &[at(SHARED, Op::PrefetchOwn)]);
    let told = before.told(Wait::AtBarrier, &fence());
    assert_eq!(told, [(0, Wait::AtInstruction, 0)]);
}
