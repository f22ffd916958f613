use std::sync::Arc;

use super::*;
use crate::{
    access::{Access, Basis, Cost, Cpu, Op, Place, SpaceId, Tid},
    analysis::{WatchedCounts, site_fixture::site},
    event::{Breadth, Context, ContextKind, Mapping, Window, WindowEnd},
    finding::{WatchThresholds, Watched, judged_fixture, shown},
};

const LINE: u64 = 0x7000;

fn judged(key: LineKey, share: f64, sites: Vec<SiteCounts>) -> Judgement {
    Judgement {
        shared_share: Some(share),
        ..judged_fixture::judged(key, sites)
    }
}

fn two_counters() -> Vec<SiteCounts> {
    vec![site(1, 0, 8, Op::Rmw, 10), site(2, 8, 8, Op::Rmw, 10)]
}

fn private(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

/// Process 9 runs and has touched memory.
fn one_process() -> AddressSpaces {
    let mut spaces = AddressSpaces::default();
    spaces.place(Pid(9), LINE);
    spaces
}

fn view<'a>(
    judgements: &'a [Judgement],
    watched: &'a WatchedLines,
    spaces: &'a AddressSpaces,
) -> View<'a> {
    View {
        judgements,
        watched,
        spaces,
        line_size: LineSize::B64,
        cost_share: 0.01,
        whole: Cost(1000),
    }
}

fn addresses(request: &Request) -> Vec<(u32, u64)> {
    let mut addresses: Vec<_> = (request.words.iter()).map(|w| (w.pid.0, w.addr)).collect();
    addresses.sort_unstable();
    addresses
}

#[test]
fn the_words_of_a_finding_are_watched_where_its_process_has_them() {
    let judgements = [judged(private(LINE), 0.5, two_counters())];
    let (watched, spaces) = (WatchedLines::default(), one_process());
    let view = view(&judgements, &watched, &spaces);
    let request = Planner::default().next(&view, 4, 0).unwrap();
    assert_eq!(addresses(&request), [(9, LINE), (9, LINE + 8)]);
    assert!(!request.everyone);
    assert_eq!(Planner::default().next(&view, 0, 0), None);
}

#[test]
fn lines_take_turns_by_their_cost() {
    let judgements = [
        judged(private(LINE), 0.6, two_counters()),
        judged(private(LINE + 64), 0.2, two_counters()),
    ];
    let (watched, spaces) = (WatchedLines::default(), one_process());
    let view = view(&judgements, &watched, &spaces);
    let mut planner = Planner::default();
    let hot = (0..40)
        .filter_map(|_| planner.next(&view, 4, 0))
        .filter(|request| request.line == Some(private(LINE)))
        .count();
    assert_eq!(hot, 30);
}

#[test]
fn threads_one_after_the_other_are_watched_where_that_takes_time() {
    let (watched, spaces) = (WatchedLines::default(), one_process());
    for (share, is_watched) in [(0.3, true), (0.009, false)] {
        let mut judgement = judged(private(LINE), 0.0, two_counters());
        judgement.significance = Significance::Insignificant(Reason::NotInterleaved);
        judgement.together_share = Some(share);
        let judgements = [judgement];
        let view = view(&judgements, &watched, &spaces);
        let found = Planner::default().next(&view, 4, 0);
        assert_eq!(found.is_some(), is_watched, "{share}");
    }
}

#[test]
fn what_windows_cannot_decide_is_not_watched() {
    let (watched, spaces) = (WatchedLines::default(), one_process());
    for (reason, is_watched) in [
        (Reason::NotInterleaved, true),
        (Reason::OneCpu, false),
        (Reason::CostBelowThreshold, false),
        (Reason::Contradicted, false),
        (Reason::NoStoreSeen, true),
        (Reason::TooFewStores, true),
        (Reason::WriterNotSampled, true),
        (Reason::FromOtherCaches, true),
        (Reason::SizesUnknown, true),
    ] {
        let mut judgement = judged(private(LINE), 0.1, two_counters());
        judgement.significance = Significance::Insignificant(reason);
        let judgements = [judgement];
        let view = view(&judgements, &watched, &spaces);
        let found = Planner::default().next(&view, 4, 0);
        assert_eq!(found.is_some(), is_watched, "{reason:?}");
    }
}

#[test]
fn where_no_writer_was_sampled_every_word_is_looked_at_in_turn() {
    let mut judgement = judged(private(LINE), 0.1, vec![site(1, 0, 8, Op::Load, 10)]);
    judgement.significance = Significance::Insignificant(Reason::NoStoreSeen);
    let judgements = [judgement];
    let (mut watched, spaces) = (WatchedLines::default(), one_process());
    let mut seen = Vec::new();
    let mut planner = Planner::default();
    for number in 0..8 {
        let request = planner
            .next(&view(&judgements, &watched, &spaces), 4, 0)
            .unwrap();
        seen.extend(addresses(&request));
        close(&mut watched, number, &request);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 8);
}

#[test]
fn a_word_with_an_access_that_could_not_be_placed_is_watched_in_parts_from_then_on() {
    let words = |within: u8, slots: usize| {
        let sites = vec![
            site(1, 0, 4, Op::Store, 10),
            site(2, 4, 4, Op::Load, 10),
            site(2, 8, 8, Op::Load, 10),
        ];
        let judgements = [judged(private(LINE), 0.5, sites)];
        let (mut watched, spaces) = (WatchedLines::default(), one_process());
        let mut planner = Planner::default();
        let mut next = |watched: &WatchedLines| {
            let request = planner.next(&view(&judgements, watched, &spaces), slots, 0);
            request.unwrap()
        };
        let first = next(&watched);
        assert!(first.words.iter().all(|word| word.len == 8));
        close_with(&mut watched, 0, &first, |access| {
            (access.size, access.within) = (4, within);
        });
        let mut rounds: Vec<Vec<(u64, u8)>> = Vec::new();
        for number in 1..4 {
            let request = next(&watched);
            close(&mut watched, number, &request);
            let of = |word: &WatchedWord| (word.addr - LINE, word.len);
            rounds.push(request.words.iter().map(of).collect());
        }
        rounds
    };
    let parts = vec![(0, 4), (4, 4), (8, 8)];
    assert_eq!(words(8, 4), [parts.clone(), parts.clone(), parts]);
    // Its bytes are known.
    let whole = vec![(0, 8), (8, 8)];
    assert_eq!(words(0, 4), [whole.clone(), whole.clone(), whole]);
    // The parts and the other word have turns.
    let rounds = words(8, 2);
    assert!(rounds.contains(&vec![(0, 4), (4, 4)]), "{rounds:?}");
    assert!(rounds.contains(&vec![(8, 8)]), "{rounds:?}");
    // One register divides nothing.
    assert!(words(8, 1).contains(&vec![(0, 8)]));
}

#[test]
fn data_that_is_not_aligned_is_told_to_those_who_place_accesses() {
    let packed = |offset, size| {
        let sites = vec![
            site(1, 0, 8, Op::Rmw, 10),
            site(2, offset, size, Op::Load, 10),
        ];
        let judgements = [judged(private(LINE), 0.5, sites)];
        let (watched, spaces) = (WatchedLines::default(), one_process());
        let mut planner = Planner::default();
        let request = planner.next(&view(&judgements, &watched, &spaces), 4, 0);
        request.unwrap().packed
    };
    assert!(packed(9, 4) && packed(12, 8));
    assert!(!packed(12, 4) && !packed(9, 1) && !packed(8, 16));
}

/// A window on the requested words, with an access to the first.
fn close(watched: &mut WatchedLines, number: u64, request: &Request) {
    close_with(watched, number, request, |_| {});
}

/// The same, with another access.
fn close_with(
    watched: &mut WatchedLines,
    number: u64,
    request: &Request,
    change: impl FnOnce(&mut Access),
) {
    let time_ns = number * 1000 + 10;
    let place = request.line.unwrap().0;
    let mut access = Access {
        time_ns,
        addr: place.position(),
        ip: 0x401000,
        pid: Pid(9),
        tid: Tid(1),
        cpu: Cpu(0),
        size: 8,
        op: Op::Load,
        basis: Basis::Trapped,
        locked: false,
        kernel: false,
        ..Access::BLANK
    };
    change(&mut access);
    watched.observe(&access, place, SpaceId(0));
    let window = Window {
        number,
        open_ns: time_ns - 1,
        end_ns: time_ns + 1,
        words: request.words.clone(),
        everyone: false,
        hits: 1,
        lost: 0,
        unresolved: std::collections::BTreeMap::new(),
        inferred: 0,
        cost_ns: 0,
        breadth: Breadth::Cpus,
        end: WindowEnd::Hits,
    };
    watched.close(&window, |_| place);
}

#[test]
fn a_line_whose_windows_met_one_thread_alone_gets_short_ones() {
    let hits = |busy_windows, shared_windows| {
        let mut judgement = judged(private(LINE), 0.5, two_counters());
        judgement.watched = Some(Watched {
            verdict: shown(&some_line(), &[], &WatchThresholds::default()),
            counts: WatchedCounts {
                busy_windows,
                shared_windows,
                ..WatchedCounts::default()
            },
            since_ns: None,
        });
        let judgements = [judgement];
        let (watched, spaces) = (WatchedLines::default(), one_process());
        let view = view(&judgements, &watched, &spaces);
        Planner::default().next(&view, 4, 0).unwrap().enough_hits
    };
    assert_eq!(hits(4, 1), SHORT_HITS);
    assert_eq!(hits(4, 3), u64::MAX);
    assert_eq!(hits(0, 0), u64::MAX);
}

/// A line that one window has watched.
fn some_line() -> WatchedLine {
    let judgements = [judged(private(LINE), 0.5, two_counters())];
    let (mut watched, spaces) = (WatchedLines::default(), one_process());
    let request = Planner::default()
        .next(&view(&judgements, &watched, &spaces), 4, 0)
        .unwrap();
    close(&mut watched, 0, &request);
    watched.get(private(LINE)).unwrap().clone()
}

#[test]
fn a_process_that_ended_is_not_watched() {
    let judgements = [judged(private(LINE), 0.5, two_counters())];
    let (watched, mut spaces) = (WatchedLines::default(), one_process());
    spaces.apply(&Context {
        time_ns: 1,
        kind: ContextKind::Exit {
            pid: Pid(9),
            tid: Tid(9),
        },
    });
    let view = view(&judgements, &watched, &spaces);
    assert_eq!(Planner::default().next(&view, 4, 0), None);
}

#[test]
fn what_seems_to_be_in_the_page_of_null_pointers_is_not_watched() {
    let judgements = [
        judged(private(0), 0.9, two_counters()),
        judged(private(LINE), 0.5, two_counters()),
    ];
    let (watched, spaces) = (WatchedLines::default(), one_process());
    let view = view(&judgements, &watched, &spaces);
    let request = Planner::default().next(&view, 4, 0).unwrap();
    assert_eq!(addresses(&request), [(9, LINE), (9, LINE + 8)]);
}

/// Shared memory at these addresses of two processes.
fn shared(first: u64, second: u64) -> (AddressSpaces, LineKey) {
    let mut spaces = AddressSpaces::default();
    for (pid, start) in [(Pid(9), first), (Pid(10), second)] {
        let mapping = Arc::new(Mapping {
            start,
            len: 4096,
            file_offset: 0,
            dev: 1,
            inode: 77,
            shared: true,
            executable: false,
            writable: true,
            name: "/dev/shm/counters".to_owned(),
            build_id: None,
            stamp: None,
        });
        spaces.apply(&Context {
            time_ns: 0,
            kind: ContextKind::Mapping { pid, mapping },
        });
        spaces.place(pid, start);
    }
    let (_, place) = spaces.place(Pid(9), first + 64);
    (spaces, place.line(LineSize::B64))
}

#[test]
fn shared_memory_is_watched_at_the_address_of_each_process() {
    let (spaces, key) = shared(0x10000, 0x20000);
    let judgements = [judged(key, 0.5, two_counters())];
    let watched = WatchedLines::default();
    let view = view(&judgements, &watched, &spaces);
    let request = Planner::default().next(&view, 4, 0).unwrap();
    assert_eq!(
        addresses(&request),
        [(9, 0x10040), (9, 0x10048), (10, 0x20040), (10, 0x20048)]
    );
    assert!(!request.everyone);
}

#[test]
fn processes_with_the_line_at_one_address_share_its_breakpoints() {
    let (spaces, key) = shared(0x10000, 0x10000);
    let judgements = [judged(key, 0.5, two_counters())];
    let watched = WatchedLines::default();
    let view = view(&judgements, &watched, &spaces);
    let request = Planner::default().next(&view, 4, 0).unwrap();
    assert_eq!(addresses(&request), [(9, 0x10040), (9, 0x10048)]);
    assert!(request.everyone);
}

#[test]
fn what_is_asked_for_is_cut_into_words_of_one_line_and_all_of_it_has_its_turn() {
    let asked = [
        Asked {
            pid: Pid(9),
            addr: LINE + 60,
            len: 7,
        },
        Asked {
            pid: Pid(9),
            addr: LINE + 256,
            len: 40,
        },
    ];
    let mut planner = Planner::default();
    let mut next = || {
        let request = planner.next_asked(&asked, LineSize::B64, 4).unwrap();
        (request.words.iter())
            .map(|word| (word.addr - LINE, word.len))
            .collect::<Vec<_>>()
    };
    assert_eq!(next(), [(60, 4)]);
    assert_eq!(next(), [(64, 2), (66, 1)]);
    assert_eq!(next(), [(256, 8), (264, 8), (272, 8), (280, 8)]);
    assert_eq!(next(), [(288, 8)]);
    assert_eq!(next(), [(60, 4)]);
}
