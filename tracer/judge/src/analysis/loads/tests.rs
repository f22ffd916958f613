use super::*;
pub(super) use crate::analysis::emulated_fixture::emulated as access;
use crate::{
    access::{Access, LineKey, Op, Place, SpaceId},
    analysis::{Instruction, window_order::Trapped},
};

/// Loads.
const P: u64 = 0x401000;
const R: u64 = 0x402000;
/// A store.
const Q: u64 = 0x403000;
const LINE: u64 = 0x1000;

pub(super) fn instruction(ip: u64) -> Instruction {
    Instruction {
        space: SpaceId(0),
        ip,
        kernel: false,
    }
}

pub(super) fn feed(table: &mut LoadTable, accesses: &[Access]) {
    for access in accesses {
        let place = Place::Private {
            space: SpaceId(0),
            addr: access.addr,
        };
        table.observe(access, place, SpaceId(0));
    }
}

fn under(protocol: Protocol, accesses: &[Access]) -> Loads {
    let mut table = LoadTable::new(LoadOptions {
        protocol,
        ..LoadOptions::default()
    });
    feed(&mut table, accesses);
    table.finish()
}

fn found(accesses: &[Access]) -> Loads {
    under(Protocol::default(), accesses)
}

/// The load at `ip`.
fn load(loads: &Loads, ip: u64) -> Load {
    let mut of_ip = (loads.loads.iter()).filter(|load| load.instruction.ip == ip);
    of_ip.next().expect("the load missed").clone()
}

fn reads(cpu: u32, ip: u64) -> Access {
    access(cpu, ip, Op::Load, LINE)
}

fn writes(cpu: u32) -> Access {
    access(cpu, Q, Op::Store, LINE)
}

/// Saved, lost, readers hurt.
fn effect(load: &Load) -> (u64, u64, u64) {
    (load.saved, load.lost, load.readers_hurt)
}

#[test]
fn a_counter_that_wanders_saves_two_messages_at_first_and_then_four_a_visit() {
    let visits = (0..10).flat_map(|visit| [reads(visit % 2, P), writes(visit % 2)]);
    let loads = found(&visits.collect::<Vec<_>>());
    let load = load(&loads, P);
    assert_eq!((load.executions, load.requests), (10, 10));
    assert_eq!((load.found_idle, load.found_dirty), (1, 9));
    assert_eq!(load.followed_by_store, 10);
    assert_eq!(
        (load.stores[0].instruction, load.stores[0].count),
        (instruction(Q), 10)
    );
    assert_eq!(effect(&load), (2 + 9 * 4, 0, 0));
    // The load's request takes as many messages with ownership as without.
    assert_eq!(load.load_messages_added, 0);
    assert_eq!(loads.totals.transactions, 4 + 9 * 8);
    assert_eq!(loads.totals.load_transactions, 2 + 9 * 4);
}

#[test]
fn handing_over_dirty_lines_leaves_a_wandering_counter_little_to_save() {
    let visits = (0..10).flat_map(|visit| [reads(visit % 2, P), writes(visit % 2)]);
    let migratory = Protocol {
        migratory: true,
        ..Protocol::default()
    };
    let loads = under(migratory, &visits.collect::<Vec<_>>());
    assert_eq!(effect(&load(&loads, P)), (2, 0, 0));
}

#[test]
fn a_private_first_touch_saves_two_messages_unless_the_first_reader_owns_the_line() {
    let accesses = [reads(1, P), reads(1, P), writes(1), reads(1, P), writes(1)];
    let load_of = |loads: &Loads| load(loads, P);
    let paper = load_of(&found(&accesses));
    assert_eq!(
        (paper.executions, paper.requests, paper.found_idle),
        (3, 1, 1)
    );
    assert_eq!(effect(&paper), (2, 0, 0));
    let exclusive = Protocol {
        exclusive_on_first_read: true,
        ..Protocol::default()
    };
    let exclusive = load_of(&under(exclusive, &accesses));
    assert_eq!(effect(&exclusive), (0, 0, 0));
    assert_eq!(exclusive.followed_by_store, 0);
}

#[test]
fn what_only_one_processor_reads_changes_nothing() {
    let loads = found(&[reads(1, P), reads(1, P), reads(1, R)]);
    assert_eq!(effect(&load(&loads, P)), (0, 0, 0));
    // R always hits.
    assert_eq!(loads.loads.len(), 1);
}

#[test]
fn a_flag_that_is_mostly_read_loses_by_every_reader() {
    // Written once; then three processors read it twice in turn.
    let mut accesses = vec![writes(0)];
    for round in 0..2 {
        accesses.extend((1..=3).map(|cpu| reads(cpu, P)));
        let _ = round;
    }
    let loads = found(&accesses);
    let load = load(&loads, P);
    // As it was: 4 for the first read, 2 for each other one, then hits. With the hint each read takes the line from the
    // one before: 6 times 4.
    assert_eq!(loads.totals.load_transactions, 4 + 2 + 2);
    assert_eq!(effect(&load), (0, 24 - 8, 3));
    assert_eq!(load.load_messages_added, 16);
    assert_eq!(
        (load.found_dirty, load.found_shared, load.sharers),
        (1, 2, 2 + 3)
    );
}

#[test]
fn a_consumer_that_polls_gains_nothing_by_owning_what_the_producer_writes() {
    let mut accesses = Vec::new();
    for _ in 0..5 {
        accesses.extend([writes(0), reads(1, P), reads(1, P)]);
    }
    let loads = found(&accesses);
    // The producer's store recalls an owner as it invalidates a sharer: but the producer itself still shares, too.
    // As it was, per round: 4 for the read, 2 + 2 for the upgrade. With the hint: 4, and 4 for the producer's store.
    assert_eq!(effect(&load(&loads, P)), (0, 0, 0));
    // Polled by two, each takes the line from the other.
    let mut accesses = Vec::new();
    for _ in 0..5 {
        accesses.extend([writes(0), reads(1, P), reads(2, P), reads(1, P)]);
    }
    let load = load(&found(&accesses), P);
    // As it was: 4, 2, hit, and 2 + 4 for the next store. With the hint: 4, 4, 4, and 4 for the next store.
    assert_eq!(effect(&load), (0, 4 * (16 - 12) + (12 - 6), 5));
}

#[test]
fn a_load_that_is_stored_half_the_time_nets_what_the_other_half_costs() {
    // Another processor writes between the visits; and every other visit is a mere read that is then read again by it.
    let stored = [writes(0), reads(1, P), writes(1)];
    let only_read = [writes(0), reads(1, P), reads(0, R), reads(1, P)];
    let half: Vec<Access> = [stored, stored].concat();
    let load_of = |accesses: &[Access]| load(&found(accesses), P);
    assert_eq!(effect(&load_of(&half)), (8, 0, 0));
    // 0 would keep its copy, but comes back for it with 4 messages; and then 1 shares it.
    assert_eq!(effect(&load_of(&only_read)), (0, 4, 1));
    let mixed = [&stored[..], &only_read, &stored, &only_read].concat();
    let load = load_of(&mixed);
    assert_eq!((load.requests, load.followed_by_store), (4, 2));
    assert_eq!(effect(&load), (8, 8, 2));
    assert_eq!(load.net(), 0);
}

#[test]
fn three_processors_that_read_between_load_and_store_are_hurt_each() {
    // 1 loads and stores; 2 and 3, which had copies, read in between.
    let visit = [
        reads(2, R),
        reads(3, R),
        reads(1, P),
        reads(2, R),
        reads(3, R),
        writes(1),
    ];
    let loads = found(&visit);
    let load = load(&loads, P);
    // As it was: 2 2 2 0 0, and 2 + 4 for the store. With the hint: 2 2, 2 + 4 for the load, then 4 2, and 6 for the
    // store, as 1 lost its ownership to a reader.
    assert_eq!(loads.totals.transactions, 12);
    assert_eq!(effect(&load), (0, (2 + 2 + 6 + 4 + 2 + 6) - 12, 2));
    // Without the readers in between, the pair saves its second request.
    let alone = [reads(2, R), reads(3, R), reads(1, P), writes(1)];
    assert_eq!(effect(&super::tests::load(&found(&alone), P)), (2, 0, 0));
}

#[test]
fn a_load_may_save_on_one_line_and_cost_on_another() {
    let elsewhere = |cpu, ip| access(cpu, ip, Op::Load, LINE + 64);
    let accesses = [
        // A counter.
        reads(1, P),
        writes(1),
        reads(2, P),
        writes(2),
        // A constant.
        elsewhere(1, P),
        elsewhere(2, P),
        elsewhere(1, P),
    ];
    let load = load(&found(&accesses), P);
    // The constant: 2 + 2 + 0 as it was, and 2 + 4 + 4 with the hint.
    assert_eq!(effect(&load), (6, 6, 1));
    let lines: Vec<(LineKey, u64)> = (load.lines.iter())
        .map(|line| (line.line, line.requests))
        .collect();
    let key = |addr| {
        LineKey(Place::Private {
            space: SpaceId(0),
            addr,
        })
    };
    assert_eq!(lines, [(key(LINE), 2), (key(LINE + 64), 2)]);
}

#[test]
fn of_two_loads_before_one_store_the_one_that_misses_has_the_whole_saving() {
    let mut accesses = Vec::new();
    for visit in 0..4 {
        let cpu = visit % 2;
        accesses.extend([reads(cpu, P), reads(cpu, R), writes(cpu)]);
    }
    let loads = found(&accesses);
    assert_eq!(effect(&load(&loads, P)), (2 + 3 * 4, 0, 0));
    assert!(loads.loads.iter().all(|load| load.instruction.ip == P));
}

#[test]
fn beside_a_hint_another_hint_saves_only_what_it_leaves() {
    // 1 reads by P, 2 reads by R, 2 stores: either hint takes the line from the other.
    let round = [reads(1, P), writes(1), reads(2, R), writes(2)];
    let accesses = [round, round].concat();
    let alone = found(&accesses);
    let (p, r) = (load(&alone, P), load(&alone, R));
    assert_eq!((p.net(), r.net()), (2 + 4, 4 + 4));
    let hinted = [instruction(P)].into();
    let mut beside = LoadTable::hinting(LoadOptions::default(), hinted);
    feed(&mut beside, &accesses);
    let beside = beside.finish();
    let (p, r) = (load(&beside, P), load(&beside, R));
    assert!(p.hinted && !r.hinted);
    assert_eq!((p.net(), r.net()), (6, 8));
    let saved = alone.totals.transactions - beside.totals.transactions;
    assert_eq!(saved as i64, p.net());
}

#[test]
fn shadows_beyond_the_bound_are_counted_as_unknown() {
    let bounds = LoadBounds {
        shadows_per_line: 1,
        ..LoadBounds::default()
    };
    let mut table = LoadTable::new(LoadOptions {
        bounds,
        ..LoadOptions::default()
    });
    // Nothing makes P's worlds equal again before R misses.
    feed(
        &mut table,
        &[reads(1, P), reads(2, R), writes(1), reads(2, R)],
    );
    let loads = table.finish();
    assert_eq!((load(&loads, P).unknown, load(&loads, R).unknown), (0, 1));
    assert_eq!(load(&loads, R).requests, 2);
}

#[test]
fn lines_and_loads_beyond_their_bounds_are_counted() {
    let bounds = LoadBounds {
        lines: 1,
        loads: 1,
        ..LoadBounds::default()
    };
    let mut table = LoadTable::new(LoadOptions {
        bounds,
        ..LoadOptions::default()
    });
    let far = access(1, P, Op::Load, LINE + 4096);
    feed(&mut table, &[reads(1, P), far, reads(2, R), far]);
    let loads = table.finish();
    assert_eq!((loads.totals.beyond, loads.totals.nameless), (2, 1));
    assert_eq!((loads.loads.len(), loads.totals.transactions), (1, 4));
}

#[test]
fn repeats_are_executions_that_ask_for_nothing() {
    let mut repeated = reads(1, P);
    repeated.measured.repeats = 9;
    let loads = found(&[repeated, writes(1)]);
    let load = load(&loads, P);
    assert_eq!((load.executions, load.requests), (10, 1));
    assert_eq!((loads.totals.accesses, loads.totals.transactions), (11, 4));
}

#[test]
fn an_access_across_two_lines_asks_for_both() {
    let across = access(1, P, Op::Load, LINE + 60);
    let loads = found(&[across, writes(1)]);
    let load = load(&loads, P);
    assert_eq!(
        (load.executions, load.requests, load.followed_by_store),
        (1, 2, 1)
    );
    assert_eq!(effect(&load), (2, 0, 0));
}

#[test]
fn prefetches_and_what_is_not_known_ask_for_nothing_and_one_for_ownership_does() {
    let other = |op| access(1, Q, op, LINE);
    let loads = found(&[other(Op::Prefetch), other(Op::Unknown)]);
    assert_eq!(loads, Loads::default());
    // The load behind a prefetch for ownership hits: nothing is left to hint.
    let hinted = [other(Op::PrefetchOwn), reads(1, P), writes(1)];
    let loads = found(&hinted);
    assert!(loads.loads.is_empty());
    assert_eq!(
        (loads.totals.transactions, loads.totals.load_transactions),
        (2, 2)
    );
}

fn window(accesses: &[Access]) -> Loads {
    let trapped: Vec<Trapped> = (accesses.iter())
        .map(|access| Trapped {
            access: *access,
            place: Place::Kernel { addr: access.addr },
            space: SpaceId(0),
        })
        .collect();
    let mut table = LoadTable::new(LoadOptions::default());
    table.observe_window(LineKey(Place::Kernel { addr: LINE }), &trapped);
    table.finish()
}

#[test]
fn a_window_counts_from_behind_its_first_store() {
    let accesses = [
        reads(1, P),
        writes(1),
        reads(2, P),
        writes(2),
        reads(1, P),
        access(2, P, Op::Load, LINE + 64),
    ];
    let loads = window(&accesses);
    let load = load(&loads, P);
    // The first read may have hit, and the first store may have owned the line.
    assert_eq!(
        (load.executions, load.requests, load.followed_by_store),
        (3, 2, 1)
    );
    assert_eq!((load.found_dirty, load.found_idle), (2, 0));
    // The window ends before anyone saw what came of the last read.
    assert_eq!(effect(&load), (4, 0, 0));
    assert_eq!(loads.totals.transactions, 4 + 4 + 4);
}

#[test]
fn a_window_without_a_store_shows_nothing() {
    assert!(
        window(&[reads(1, P), reads(2, P), reads(1, P)])
            .loads
            .is_empty()
    );
}

#[test]
fn windows_on_one_line_are_stretches_of_their_own() {
    let trapped = |access: Access| Trapped {
        access,
        place: Place::Kernel { addr: LINE },
        space: SpaceId(0),
    };
    let key = LineKey(Place::Kernel { addr: LINE });
    let mut table = LoadTable::new(LoadOptions::default());
    let one = [writes(1), reads(2, P)].map(trapped);
    table.observe_window(key, &one);
    // Who had the line in between is not known, so this store is not the one behind that read.
    table.observe_window(key, &[writes(2)].map(trapped));
    let load = load(&table.finish(), P);
    assert_eq!(
        (load.requests, load.followed_by_store, load.saved),
        (1, 0, 0)
    );
}
