//! Known answers, and what must hold for every order of accesses.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{
    super::{Lines, laws::protocols},
    *,
};
use crate::access::{LineKey, Place};

const P0: Cpu = Cpu(0);
const P1: Cpu = Cpu(1);

fn line(index: u64) -> Line {
    Line {
        id: index as u32,
        index,
    }
}

fn machine(model: SystemModel) -> Multiprocessor {
    Multiprocessor::new(&model).expect("a machine that can be")
}

/// Two sets of two ways, over four sets of two ways.
fn small(protocol: Protocol) -> SystemModel {
    SystemModel {
        line: LineSize::B64,
        l2: CacheGeometry {
            bytes: 256,
            ways: 2,
        },
        l3: CacheGeometry {
            bytes: 512,
            ways: 2,
        },
        protocol,
        log: LogBuffer::default(),
    }
}

/// Totals of these accesses.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    transactions: u64,
    missed_l2: u64,
    missed_l3: u64,
    written_back: u64,
    dropped: u64,
}

fn run(machine: &mut Multiprocessor, accesses: &[(Cpu, u64, Intent)]) -> Sums {
    let mut sums = Sums::default();
    for (cpu, index, intent) in accesses {
        let served = machine.access(*cpu, line(*index), *intent);
        sums.transactions += served.transactions.total();
        sums.missed_l2 += u64::from(served.missed_l2);
        sums.missed_l3 += u64::from(served.missed_l3);
        sums.written_back += u64::from(served.eviction == Some(Transaction::WriteBack));
        sums.dropped += u64::from(served.eviction == Some(Transaction::Drop));
    }
    sums
}

#[test]
fn the_papers_six_against_four_on_a_line_that_another_processor_shares() {
    for (load, expected) in [(Intent::Load, 6), (Intent::BiasedLoad, 4)] {
        let mut machine = machine(SystemModel::default());
        run(&mut machine, &[(P1, 0, Intent::Load)]);
        let sums = run(&mut machine, &[(P0, 0, load), (P0, 0, Intent::Store)]);
        assert_eq!(sums.transactions, expected);
        assert_eq!(sums.missed_l3, 1);
    }
}

/// Each of four processors in turn adds to a counter.
fn turns(load: Intent, protocol: Protocol) -> Sums {
    let mut machine = machine(SystemModel {
        protocol,
        ..SystemModel::default()
    });
    let accesses: Vec<_> = (0..40)
        .flat_map(|n| [(Cpu(n % 4), 0, load), (Cpu(n % 4), 0, Intent::Store)])
        .collect();
    run(&mut machine, &accesses)
}

#[test]
fn a_counter_that_four_processors_add_to_takes_eight_messages_a_turn_and_four_with_bias() {
    let plain = turns(Intent::Load, Protocol::default());
    assert_eq!(plain.transactions, 4 + 39 * 8);
    let biased = turns(Intent::BiasedLoad, Protocol::default());
    assert_eq!(biased.transactions, 2 + 39 * 4);
    // What bias asks for, a migratory home does by itself, but for the first read.
    let migratory = Protocol {
        migratory: true,
        ..Protocol::default()
    };
    assert_eq!(turns(Intent::Load, migratory).transactions, 4 + 39 * 4);
    let both = Protocol {
        exclusive_on_first_read: true,
        ..migratory
    };
    assert_eq!(turns(Intent::Load, both).transactions, 2 + 39 * 4);
    assert_eq!((plain.missed_l3, biased.missed_l3), (40, 40));
}

#[test]
fn bias_costs_where_others_only_read() {
    let reads = |load| {
        let mut machine = machine(SystemModel::default());
        let accesses: Vec<_> = (0..40).map(|n| (Cpu(n % 4), 0, load)).collect();
        run(&mut machine, &accesses)
    };
    let plain = reads(Intent::Load);
    assert_eq!((plain.transactions, plain.missed_l3), (8, 4));
    let biased = reads(Intent::BiasedLoad);
    assert_eq!((biased.transactions, biased.missed_l3), (2 + 39 * 4, 40));
}

#[test]
fn a_stream_that_the_last_level_cannot_hold_misses_each_time_and_one_that_it_can_misses_once() {
    let twice = |mib: u64| {
        let mut machine = machine(SystemModel::default());
        let lines = (mib << 20) / 64;
        let stream: Vec<_> = (0..2 * lines)
            .map(|n| (P0, n % lines, Intent::Load))
            .collect();
        run(&mut machine, &stream)
    };
    let four = twice(4);
    assert_eq!(four.missed_l3, 2 * (4 << 20) / 64);
    assert_eq!(four.dropped, four.missed_l3 - (3 << 20) / 64);
    assert_eq!(four.written_back, 0);
    let two = twice(2);
    assert_eq!(two.missed_l3, (2 << 20) / 64);
    assert_eq!(two.missed_l2, 2 * two.missed_l3);
    assert_eq!(two.dropped, 0);
}

#[test]
fn what_was_written_goes_back_when_it_has_to_leave_and_is_fetched_again() {
    let mut machine = machine(small(Protocol::default()));
    // Lines 0, 4, 8 fall into one set of two ways.
    let written = run(
        &mut machine,
        &[
            (P0, 0, Intent::Store),
            (P0, 4, Intent::Load),
            (P0, 8, Intent::Load),
        ],
    );
    assert_eq!((written.written_back, written.dropped), (1, 0));
    assert_eq!(machine.state(P0, line(0)), State::Invalid);
    let again = machine.access(P0, line(0), Intent::Load);
    assert!(again.missed_l3 && again.transactions.total() == 2);
    assert_eq!(again.eviction, Some(Transaction::Drop));
    // Another processor's copy is not in the way of anybody's.
    let other = machine.access(P1, line(0), Intent::Load);
    assert_eq!((other.eviction, other.transactions.total()), (None, 2));
}

#[test]
fn an_invalidated_line_makes_room_before_a_used_one() {
    let mut machine = machine(small(Protocol::default()));
    let before = [
        (P0, 0, Intent::Load),
        (P0, 4, Intent::Load),
        (P1, 4, Intent::Store),
    ];
    run(&mut machine, &before);
    let next = machine.access(P0, line(8), Intent::Load);
    assert_eq!(next.eviction, None);
    assert_eq!(machine.state(P0, line(0)), State::Shared);
}

#[test]
fn lines_of_128_bytes_bring_two_of_64() {
    let misses = |size| {
        let mut machine = machine(SystemModel {
            line: size,
            ..SystemModel::default()
        });
        let mut lines = Lines::new(size);
        let mut missed = 0;
        for addr in (0..64 << 10).step_by(8) {
            let key: LineKey = Place::Kernel { addr }.line(size);
            let line = lines.line(key).expect("a number");
            let served = machine.access(P0, line, Intent::Load);
            missed += u64::from(served.missed_l3);
        }
        missed
    };
    assert_eq!((misses(LineSize::B64), misses(LineSize::B128)), (1024, 512));
}

#[test]
fn a_machine_that_cannot_be_is_refused_with_the_reason() {
    let refused =
        |model: &SystemModel| Multiprocessor::new(model).expect_err("refused").to_string();
    let mut model = SystemModel::default();
    model.l3.ways = 13;
    assert!(refused(&model).contains("3145728 bytes cannot have 13 ways"));
    let mut model = SystemModel::default();
    model.l3.bytes = 128 << 10;
    model.l3.ways = 8;
    assert!(refused(&model).contains("third level has 131072 bytes"));
}

fn accesses() -> impl Strategy<Value = Vec<(Cpu, u64, Intent)>> {
    let intents = prop::sample::select(vec![Intent::Load, Intent::BiasedLoad, Intent::Store]);
    let cpus = prop_oneof![0..4u32, 63..66u32].prop_map(Cpu);
    prop::collection::vec((cpus, 0..24u64, intents), 0..200)
}

proptest! {
    #[test]
    fn the_third_level_has_all_that_the_second_has_and_the_home_knows_it(
        protocol in protocols(),
        accesses in accesses(),
    ) {
        let mut machine = machine(small(protocol));
        for (cpu, index, intent) in accesses {
            machine.access(cpu, line(index), intent);
            for (number, caches) in (0..).zip(&machine.processors) {
                let l3: BTreeSet<u32> = caches.l3.lines().collect();
                prop_assert!(caches.l2.lines().all(|line| l3.contains(&line)));
                let held = (0..).zip(&machine.lines)
                    .filter(|(_, kept)| kept.home.state(Cpu(number)) != State::Invalid)
                    .map(|(id, _)| id);
                prop_assert_eq!(held.collect::<BTreeSet<u32>>(), l3);
            }
            for kept in &machine.lines {
                let owned = kept.home.holders()
                    .any(|holder| kept.home.state(holder) != State::Shared);
                prop_assert!(!owned || kept.home.holders().count() == 1);
            }
        }
    }

    #[test]
    fn caches_without_end_are_the_homes_alone(protocol in protocols(), accesses in accesses()) {
        let mut machine = machine(SystemModel { protocol, ..SystemModel::default() });
        let mut homes = vec![Directory::under(protocol); 24];
        for (cpu, index, intent) in accesses {
            let served = machine.access(cpu, line(index), intent);
            let outcome = homes[index as usize].access(cpu, intent);
            prop_assert_eq!(served.request, outcome.request);
            prop_assert_eq!(served.transactions, outcome.transactions);
            prop_assert_eq!(served.missed_l3, outcome.missed());
            prop_assert_eq!(served.eviction, None);
        }
    }

    #[test]
    fn what_hits_costs_nothing_and_what_misses_two_messages_for_each_that_is_asked(
        protocol in protocols(),
        accesses in accesses(),
    ) {
        let mut machine = machine(small(protocol));
        for (cpu, index, intent) in accesses {
            let before = machine.state(cpu, line(index));
            let served = machine.access(cpu, line(index), intent);
            prop_assert_eq!(served.missed_l3, before == State::Invalid);
            prop_assert!(!served.missed_l3 || served.missed_l2);
            let suffices = match intent {
                Intent::Store => matches!(before, State::Modified | State::Exclusive),
                Intent::Load | Intent::BiasedLoad => before != State::Invalid,
            };
            prop_assert_eq!(served.request.is_none(), suffices);
            let sent = |kind| served.transactions.of(kind);
            let asked = u64::from(!suffices)
                + sent(Transaction::RecallPriv)
                + sent(Transaction::RecallShar);
            prop_assert_eq!(served.transactions.total(), 2 * asked);
            // Only a line that came in takes another one's place.
            prop_assert!(served.eviction.is_none() || served.missed_l3);
        }
    }
}
