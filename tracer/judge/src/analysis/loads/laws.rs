//! Properties of the fold on any order of accesses.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use super::{
    tests::{access, feed, instruction},
    *,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineKey, LineSize, Measured, Op, Pid, Place, SpaceId, Tid},
    analysis::window_order::Trapped,
    coherence::{
        Directory, Intent, Protocol, Request, RequestRow, followed_by_ownership, sort_by_line,
    },
};

const LINES: u64 = 3;

/// Loads are instructions 0 to 3, stores 4 and 5.
fn orders() -> impl Strategy<Value = Vec<Access>> {
    let one = (0..4u32, 0..6u64, 0..LINES).prop_map(|(cpu, ip, line)| {
        let op = match ip {
            0..4 => Op::Load,
            4 => Op::Store,
            _ => Op::Rmw,
        };
        access(cpu, ip, op, 0x1000 + 64 * line)
    });
    vec(one, 0..80)
}

/// Every variant.
fn protocols() -> impl Strategy<Value = Protocol> {
    any::<(bool, bool, bool)>().prop_map(|(exclusive_on_first_read, migratory, relinquish)| {
        Protocol {
            exclusive_on_first_read,
            migratory,
            relinquish,
        }
    })
}

fn options(protocol: Protocol) -> LoadOptions {
    LoadOptions {
        protocol,
        ..LoadOptions::default()
    }
}

/// Messages of all and of loads, by one directory a line, with these loads hinted.
fn replay(protocol: Protocol, accesses: &[Access], hinted: &[u64]) -> (i64, i64) {
    replay_from(0, protocol, accesses, hinted)
}

/// The same, where accesses count and loads are hinted from one of them on.
fn replay_from(
    start: usize,
    protocol: Protocol,
    accesses: &[Access],
    hinted: &[u64],
) -> (i64, i64) {
    let mut lines: BTreeMap<u64, Directory> = BTreeMap::new();
    let mut sums = (0, 0);
    for (number, access) in accesses.iter().enumerate() {
        let line = lines.entry(access.addr);
        let line = line.or_insert_with(|| Directory::under(protocol));
        let intent = match access.op {
            Op::Load if number >= start && hinted.contains(&access.ip) => Intent::BiasedLoad,
            op => Intent::of(op).expect("only loads and stores"),
        };
        if number < start {
            line.access(access.cpu, intent);
            continue;
        }
        let sent = line.access(access.cpu, intent).transactions.total() as i64;
        sums.0 += sent;
        sums.1 += if access.op == Op::Load { sent } else { 0 };
    }
    sums
}

fn table(protocol: Protocol, accesses: &[Access], hinted: &[u64]) -> Loads {
    let hinted = hinted.iter().copied().map(instruction).collect();
    let mut table = LoadTable::hinting(options(protocol), hinted);
    feed(&mut table, accesses);
    table.finish()
}

/// The streaks of an order, with room for so many.
fn kept(protocol: Protocol, accesses: &[Access], streaks: usize, shards: usize) -> LineStreaks {
    let bounds = LoadBounds {
        streaks,
        ..LoadBounds::default()
    };
    let mut table = LoadTable::new(LoadOptions {
        bounds,
        shards,
        ..options(protocol)
    });
    feed(&mut table, accesses);
    table.finish().streaks.expect("kept")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_a_hint_saves_is_the_difference_of_two_replays(
        accesses in orders(), protocol in protocols(), others in vec(0..4u64, 0..3),
    ) {
        let found = table(protocol, &accesses, &others);
        let base = replay(protocol, &accesses, &others);
        prop_assert_eq!(found.totals.transactions as i64, base.0);
        prop_assert_eq!(found.totals.load_transactions as i64, base.1);
        for ip in 0..4 {
            let mut with = others.clone();
            with.push(ip);
            let without: Vec<u64> = (others.iter().copied()).filter(|other| *other != ip).collect();
            let (without, with) = (
                replay(protocol, &accesses, &without),
                replay(protocol, &accesses, &with),
            );
            let load = found.loads.iter().find(|load| load.instruction.ip == ip);
            prop_assert_eq!(load.map_or(0, Load::net), without.0 - with.0);
            prop_assert_eq!(load.map_or(0, |load| load.load_messages_added), with.1 - without.1);
            prop_assert_eq!(load.map_or(0, |load| load.unknown), 0);
        }
    }

    #[test]
    fn streaks_count_what_a_replay_counts_whichever_loads_are_hinted(
        accesses in orders(), protocol in protocols(), hinted in vec(0..4u64, 0..4),
    ) {
        let streaks = kept(protocol, &accesses, 1000, 1);
        let is_hinted = |load: u32| hinted.contains(&streaks.loads()[load as usize].ip);
        let mut sums = (0, 0);
        for line in streaks.all_lines() {
            let (all, of_loads) = streaks.count(line, is_hinted);
            sums = (sums.0 + all as i64, sums.1 + of_loads as i64);
        }
        prop_assert_eq!(sums, replay(protocol, &accesses, &hinted));
        let most = accesses.len() as u64;
        let length = streaks.all_lines().map(|line| streaks.length(line) as u64 * streaks.times(line));
        prop_assert!(length.sum::<u64>() <= most);
    }

    #[test]
    fn a_run_of_streaks_finds_what_a_table_finds_that_is_given_the_order(
        accesses in orders(), protocol in protocols(), hinted in vec(0..4u64, 0..4),
    ) {
        let streaks = kept(protocol, &accesses, 1000, 1);
        let is_hinted = |load: u32| hinted.contains(&streaks.loads()[load as usize].ip);
        let run = streaks.run(streaks.all_lines(), is_hinted);
        let found = table(protocol, &accesses, &hinted);
        prop_assert_eq!(run.messages, (found.totals.transactions, found.totals.load_transactions));
        for (instruction, number) in streaks.loads().iter().zip(0..) {
            let ran = run.load(number);
            let load = found.loads.iter().find(|load| load.instruction == *instruction);
            let of = |load: &Load| (load.requests, load.net(), load.lost, load.load_messages_added, load.readers_hurt);
            let ran = (ran.requests, ran.net(), ran.lost(), ran.load_messages_added(), ran.readers_hurt());
            prop_assert_eq!(ran, load.map_or((0, 0, 0, 0, 0), of));
        }
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_number_of_shards(
        accesses in orders(), protocol in protocols(), hinted in vec(0..4u64, 0..3),
    ) {
        let of = |shards| {
            let hinted = hinted.iter().copied().map(instruction).collect();
            let bounds = LoadBounds { streaks: 1000, ..LoadBounds::default() };
            let options = LoadOptions { bounds, shards, ..options(protocol) };
            let mut table = LoadTable::hinting(options, hinted);
            feed(&mut table, &accesses);
            let loads = table.finish();
            let streaks = loads.streaks.as_ref().expect("kept");
            let run = streaks.run(streaks.all_lines(), |_| false);
            (loads.loads, loads.totals, run)
        };
        prop_assert_eq!(of(1), of(3));
    }

    #[test]
    fn orders_one_after_the_other_are_on_lines_of_their_own(
        first in orders(), second in orders(), protocol in protocols(),
    ) {
        let bounds = LoadBounds { streaks: 1000, ..LoadBounds::default() };
        let mut table = LoadTable::new(LoadOptions { bounds, shards: 2, ..options(protocol) });
        for order in [&first, &second] {
            feed(&mut table, order);
            table.end_order();
        }
        let both = table.finish();
        let streaks = both.streaks.as_ref().expect("kept");
        prop_assert_eq!(streaks.orders(), 2);
        for (n, order) in [&first, &second].into_iter().enumerate() {
            let alone = replay(protocol, order, &[]);
            let run = streaks.run(streaks.lines_of_order(n), |_| false);
            prop_assert_eq!((run.messages.0 as i64, run.messages.1 as i64), alone);
        }
    }

    #[test]
    fn of_a_line_with_too_many_streaks_the_first_are_kept(accesses in orders(), most in 1..20usize) {
        let bounds = LoadBounds { streaks: 1000, streaks_per_line: most, ..LoadBounds::default() };
        let mut table = LoadTable::new(LoadOptions { bounds, ..LoadOptions::default() });
        feed(&mut table, &accesses);
        let cut = table.finish().streaks.expect("kept");
        let all = kept(Protocol::default(), &accesses, 1000, 1);
        let longest = all.all_lines().map(|line| all.length(line)).max().unwrap_or(0);
        prop_assert_eq!(cut.is_whole(), longest <= most);
        for line in cut.all_lines() {
            prop_assert!(cut.length(line) <= most);
            let counts = cut.count(line, |_| false).0 / cut.times(line);
            let whole = all.all_lines().map(|line| all.count(line, |_| false).0 / all.times(line)).max();
            prop_assert!(counts <= whole.unwrap_or(0));
        }
    }

    #[test]
    fn where_there_is_no_room_some_lines_are_kept_whole(accesses in orders(), room in 1..30usize) {
        let protocol = Protocol::default();
        let all = kept(protocol, &accesses, 1000, 1);
        let some = kept(protocol, &accesses, room, 1);
        let size = |streaks: &LineStreaks| -> u64 {
            let sizes = streaks.all_lines().map(|line| streaks.length(line) as u64 * streaks.times(line));
            sizes.sum()
        };
        prop_assert_eq!(some.is_whole(), size(&all) <= room as u64);
        prop_assert!(size(&some) <= room as u64);
        let kinds = |streaks: &LineStreaks| -> Vec<(u64, u64)> {
            streaks.all_lines().map(|line| streaks.count(line, |_| false)).collect()
        };
        let known = kinds(&all);
        for (line, counts) in some.all_lines().zip(kinds(&some)) {
            let one = counts.0 / some.times(line);
            let mut ones = all.all_lines().zip(&known).map(|(line, counts)| counts.0 / all.times(line));
            prop_assert!(ones.any(|known| known == one));
        }
    }

    #[test]
    fn what_runs_before_counting_begins_changes_where_lines_are_and_nothing_else(
        accesses in orders(), start in 0..80usize, protocol in protocols(), hinted in vec(0..4u64, 0..4),
    ) {
        let start = start.min(accesses.len());
        let (before, counted) = accesses.split_at(start);
        let bounds = LoadBounds { streaks: 1000, ..LoadBounds::default() };
        let options = LoadOptions { bounds, ..options(protocol) };
        let run = |hinted: &[u64]| {
            let mut table = LoadTable::hinting(options, hinted.iter().copied().map(instruction).collect());
            table.set_counting(false);
            feed(&mut table, before);
            table.set_counting(true);
            feed(&mut table, counted);
            table.finish()
        };
        let (with, plain) = (run(&hinted), run(&[]));
        let expected = replay_from(start, protocol, &accesses, &hinted);
        let sums = |totals: LoadTotals| (totals.transactions as i64, totals.load_transactions as i64);
        prop_assert_eq!(sums(with.totals), expected);
        let executions: u64 = plain.loads.iter().map(|load| load.executions).sum();
        prop_assert!(executions <= counted.len() as u64);
        for load in &plain.loads {
            let alone = replay_from(start, protocol, &accesses, &[load.instruction.ip]);
            prop_assert_eq!(sums(plain.totals).0 - alone.0, load.net());
        }
        let streaks = plain.streaks.expect("there is room");
        let is_hinted = |load: u32| hinted.contains(&streaks.loads()[load as usize].ip);
        let lines = streaks.all_lines().map(|line| streaks.count(line, is_hinted));
        let kept = lines.fold((0, 0), |sum, line| (sum.0 + line.0 as i64, sum.1 + line.1 as i64));
        prop_assert_eq!(kept, expected);
    }

    #[test]
    fn the_filter_is_that_of_the_sorted_log(accesses in orders(), protocol in protocols()) {
        let mut lines: BTreeMap<u64, Directory> = BTreeMap::new();
        let mut log = Vec::new();
        for (number, access) in (0..).zip(&accesses) {
            let line = lines.entry(access.addr);
            let line = line.or_insert_with(|| Directory::under(protocol));
            let intent = Intent::of(access.op).expect("only loads and stores");
            let Some(request) = line.access(access.cpu, intent).request else { continue };
            log.push(RequestRow {
                number,
                cpu: access.cpu,
                tid: access.tid,
                ip: access.ip,
                target: access.addr,
                line: access.addr,
                request,
            });
        }
        sort_by_line(&mut log);
        let mut pairs: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (load, store) in followed_by_ownership(&log) {
            *pairs.entry((load.ip, store.ip)).or_default() += 1;
        }
        let requests = log.iter().filter(|row| row.request == Request::ReadShar).count() as u64;
        let found = table(protocol, &accesses, &[]);
        let mut ours: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for load in &found.loads {
            for store in &load.stores {
                ours.insert((load.instruction.ip, store.instruction.ip), store.count);
            }
            prop_assert_eq!(load.stores.iter().map(|s| s.count).sum::<u64>(), load.followed_by_store);
            let placed = load.found_idle + load.found_shared + load.found_clean + load.found_dirty;
            prop_assert_eq!(placed, load.requests);
        }
        prop_assert_eq!(ours, pairs);
        prop_assert_eq!(found.loads.iter().map(|load| load.requests).sum::<u64>(), requests);
    }

    #[test]
    fn a_window_is_an_order_from_behind_its_first_store(accesses in orders()) {
        let on_line: Vec<Access> = accesses.into_iter().filter(|a| a.addr == 0x1000).collect();
        let place = |access: &Access| Place::Private { space: SpaceId(0), addr: access.addr };
        let trapped: Vec<Trapped> = (on_line.iter())
            .map(|access| Trapped { access: *access, place: place(access), space: SpaceId(0) })
            .collect();
        let bounds = LoadBounds { streaks: 1000, ..LoadBounds::default() };
        let mut windows = LoadTable::new(LoadOptions { bounds, ..LoadOptions::default() });
        let key = LineKey(Place::Private { space: SpaceId(0), addr: 0x1000 });
        windows.observe_window(key, &trapped);
        let windows = windows.finish();
        let first = on_line.iter().position(|access| access.op.stores());
        let known = first.map_or(&[][..], |at| &on_line[at..]);
        let whole = table(Protocol::default(), known, &[]);
        let facts = |loads: &Loads| -> Vec<_> {
            let facts = |load: &Load| (load.instruction, load.requests, load.net(), load.followed_by_store);
            loads.loads.iter().map(facts).collect()
        };
        prop_assert_eq!(facts(&windows), facts(&whole));
        let streaks = windows.streaks.as_ref().expect("there is room");
        let counted: u64 = streaks.all_lines().map(|line| streaks.count(line, |_| false).0).sum();
        prop_assert_eq!(counted, windows.totals.transactions);
        // The first store itself: from an Idle line 2 messages, but nobody knows.
        let first = if known.is_empty() { 0 } else { 2 };
        prop_assert_eq!(windows.totals.transactions + first, whole.totals.transactions);
    }

    #[test]
    fn any_access_is_taken(
        accesses in vec((0..3u32, any::<u64>(), 0..6usize, any::<u16>(), any::<u32>()), 0..30),
    ) {
        let mut table = LoadTable::new(LoadOptions {
            bounds: LoadBounds { lines: 50, loads: 5, shadows_per_line: 2, streaks: 20, streaks_per_line: 3 },
            line_size: LineSize::B128,
            ..LoadOptions::default()
        });
        for (cpu, addr, op, size, repeats) in accesses {
            let access = Access {
                time_ns: 0, addr, ip: addr % 7, cost: Cost(0), pid: Pid(0), tid: Tid(cpu),
                cpu: Cpu(cpu), size, op: Op::ALL[op], basis: Basis::Emulated, locked: false,
                kernel: false, measured: Measured { repeats, ..Measured::default() },
                ..Access::BLANK
            };
            feed(&mut table, &[access]);
        }
        let totals = table.finish().totals;
        prop_assert!(totals.load_transactions <= totals.transactions);
    }
}
