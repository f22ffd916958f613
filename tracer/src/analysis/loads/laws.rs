//! Properties of the fold on any order of accesses.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use super::{
    tests::{access, feed, instruction},
    *,
};
use crate::{
    access::{Basis, Cpu, Measured, Pid, Tid},
    coherence::{
        Directory, Request, RequestRow, followed_by_ownership, laws::protocols, sort_by_line,
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

fn options(protocol: Protocol) -> LoadOptions {
    LoadOptions {
        protocol,
        ..LoadOptions::default()
    }
}

/// Messages of all and of loads, by one directory a line, with these loads hinted.
fn replay(protocol: Protocol, accesses: &[Access], hinted: &[u64]) -> (i64, i64) {
    let mut lines: BTreeMap<u64, Directory> = BTreeMap::new();
    let mut sums = (0, 0);
    for access in accesses {
        let line = lines.entry(access.addr);
        let line = line.or_insert_with(|| Directory::under(protocol));
        let intent = match access.op {
            Op::Load if hinted.contains(&access.ip) => Intent::BiasedLoad,
            op => Intent::of(op).expect("only loads and stores"),
        };
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
        let kept = LoadBounds { streaks: 1000, ..LoadBounds::default() };
        let mut table = LoadTable::new(LoadOptions { bounds: kept, ..options(protocol) });
        feed(&mut table, &accesses);
        let streaks = table.finish().streaks.expect("there is room");
        let is_hinted = |load: u32| hinted.contains(&streaks.loads()[load as usize].ip);
        let mut sums = (0, 0);
        for line in 0..streaks.lines() {
            let (all, of_loads) = streaks.count(line, is_hinted);
            sums = (sums.0 + all as i64, sums.1 + of_loads as i64);
        }
        prop_assert_eq!(sums, replay(protocol, &accesses, &hinted));
        let most = accesses.len();
        let length: usize = (0..streaks.lines()).map(|line| streaks.length(line)).sum();
        prop_assert!(length <= most);
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
        let counted: u64 = (0..streaks.lines()).map(|line| streaks.count(line, |_| false).0).sum();
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
            bounds: LoadBounds { lines: 50, loads: 5, shadows_per_line: 2, streaks: 20 },
            line_size: LineSize::B128,
            ..LoadOptions::default()
        });
        for (cpu, addr, op, size, repeats) in accesses {
            let access = Access {
                time_ns: 0, addr, ip: addr % 7, cost_ns: 0, pid: Pid(0), tid: Tid(cpu),
                cpu: Cpu(cpu), size, op: Op::ALL[op], basis: Basis::Emulated, locked: false,
                kernel: false, measured: Measured { repeats, ..Measured::default() },
                ..Access::BLANK
            };
            feed(&mut table, &[access]);
        }
        let totals = table.totals();
        prop_assert!(totals.load_transactions <= totals.transactions);
        table.finish();
    }
}
