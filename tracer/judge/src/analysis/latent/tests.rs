//! Orders written down, whose cost elsewhere follows from where their bytes lie.

use super::*;
use crate::{
    access::{Access, LineKey, LineSize, Op, Place, SpaceId},
    analysis::{OrderBounds, OrderedLines, emulated_fixture::emulated},
};

const BASE: u64 = 0x7f00_0000_1000;
const ROUNDS: u64 = 100;

fn place(access: &Access) -> Place {
    Place::Private {
        space: SpaceId(3),
        addr: access.addr,
    }
}

/// Both passes.
fn replayed(order: &[Access]) -> Vec<RunElsewhere> {
    let mut neighbours = Neighbours::new(NeighbourBounds::default());
    for access in order {
        neighbours.observe(access, place(access));
    }
    let mut elsewhere = Elsewhere::new(neighbours.runs(8).runs);
    for access in order {
        elsewhere.observe(access, place(access), SpaceId(3));
    }
    elsewhere.finish(8)
}

/// Hand-offs for neighbours of all runs, in a way.
fn falsely(found: &[RunElsewhere], moved: u8, line_bytes: u8) -> u64 {
    let way = Way { moved, line_bytes };
    let ways = found.iter().flat_map(|run| &run.ways);
    let there = ways
        .filter(|(other, _)| *other == way)
        .map(|(_, there)| there);
    there
        .map(|there| there.hand_offs.falsely + there.hand_offs.dragged)
        .sum()
}

/// By turns, each thread adds to all its words: thread and places from the base.
fn by_turns(threads: &[(u32, &[u64])]) -> Vec<Access> {
    let mut order = Vec::new();
    for _ in 0..ROUNDS {
        for (thread, words) in threads {
            let add = |at: &u64| emulated(*thread, 0x40_1000 + at, Op::Rmw, BASE + at);
            order.extend(words.iter().map(add));
        }
    }
    order
}

fn has_both(line: u64, moved: u64, line_bytes: u64, a: &[u64], b: &[u64]) -> bool {
    let on = |words: &[u64]| words.iter().any(|at| (at + moved) / line_bytes == line);
    on(a) && on(b)
}

#[test]
fn structs_of_a_line_each_fight_at_the_starts_that_part_their_words() {
    // Written from byte 24 of 64 on.
    let words = |n: u64| -> Vec<u64> { (0..5).map(|field| n * 64 + 24 + field * 8).collect() };
    let all = [words(0), words(1), words(2)];
    let found = replayed(&by_turns(&[(1, &all[0]), (2, &all[1]), (3, &all[2])]));
    assert_eq!(found.len(), 1);
    assert!(found[0].lines.iter().all(|line| line.fights));
    for moved in (0..64).step_by(8) {
        let lines = (0..5).filter(|line| {
            let both = |n: usize| has_both(*line, moved, 64, &all[n], &all[n + 1]);
            both(0) || both(1)
        });
        // Each line goes to the one and to the other in each round; those of the first are no hand-offs yet.
        let lines = lines.count() as u64;
        let expected = lines * 2 * ROUNDS;
        let hand_offs = falsely(&found, moved as u8, 64);
        let missing = expected - hand_offs;
        assert!(missing <= 4 * lines, "{moved}: {hand_offs}, {expected}");
    }
    // Two and one of three, whichever way lines are paired.
    assert!(falsely(&found, 0, 128) >= 2 * ROUNDS - 4);
    assert!(falsely(&found, 64, 128) >= 2 * ROUNDS - 4);
}

#[test]
fn what_two_lines_part_is_told_from_nothing() {
    let found = replayed(&by_turns(&[(1, &[0, 56]), (2, &[128, 184])]));
    assert!(found.is_empty());
}

#[test]
fn words_that_each_thread_uses_are_true_sharing_wherever_they_lie() {
    // A lock and its data, a line behind it, taken by turns.
    let both: &[u64] = &[0, 64];
    let found = replayed(&by_turns(&[(1, both), (2, both)]));
    assert_eq!(found.len(), 1);
    for (way, _) in &found[0].ways {
        assert!(falsely(&found, way.moved, way.line_bytes) <= 4, "{way:?}");
    }
    let of = |moved, line_bytes| {
        let way = Way { moved, line_bytes };
        let (_, there) = found[0]
            .ways
            .iter()
            .find(|(other, _)| *other == way)
            .unwrap();
        there.hand_offs.truly
    };
    assert!(found[0].lines.iter().all(|line| !line.fights));
    // Two lines go over, or one.
    assert!(of(0, 64).abs_diff(4 * ROUNDS) <= 8);
    assert!(of(0, 128).abs_diff(2 * ROUNDS) <= 4);
}

#[test]
fn today_is_what_the_order_of_the_lines_themselves_shows() {
    let order = by_turns(&[(1, &[0, 64]), (2, &[8, 72]), (3, &[128])]);
    let found = replayed(&order);
    let mut lines = OrderedLines::new(LineSize::B64, OrderBounds::default());
    for access in &order {
        lines.observe(access, place(access), SpaceId(3), &mut Vec::new());
    }
    let messages: u64 = lines
        .shared()
        .map(|line| line.counts(&[]).shared_transactions)
        .sum();
    let (way, today) = found[0].ways[0];
    assert_eq!((way, today.messages), (Way::TODAY, messages));
}

#[test]
fn readers_and_one_thread_make_no_run_and_what_is_beyond_the_bound_is_counted() {
    let load = |thread, at| emulated(thread, 0x40_1000, Op::Load, BASE + at);
    let reads: Vec<Access> = (0..100).flat_map(|_| [load(1, 0), load(2, 64)]).collect();
    assert!(replayed(&reads).is_empty());
    assert!(replayed(&by_turns(&[(1, &[0, 64, 128])])).is_empty());
    let bounds = NeighbourBounds {
        lines: 64,
        pairs: 1,
    };
    let mut neighbours = Neighbours::new(bounds);
    let order = by_turns(&[(1, &[0, 1024]), (2, &[64, 1088, 1096])]);
    for access in &order {
        neighbours.observe(access, place(access));
    }
    let runs = neighbours.runs(8);
    let line = |at| LineKey(place(&emulated(0, 0, Op::Load, BASE + at)));
    assert_eq!(runs.left_out, 1);
    assert_eq!(
        runs.runs,
        [Run {
            first: line(0),
            lines: 2
        }]
    );
    assert_eq!(neighbours.runs(10 * ROUNDS).runs, []);
}

#[test]
fn runs_that_follow_each_other_are_replayed_apart() {
    let order = by_turns(&[(1, &[0]), (2, &[64]), (2, &[128]), (3, &[192])]);
    let found = replayed(&order);
    // One thread has the lines in the middle.
    let lines: Vec<usize> = found.iter().map(|run| run.lines.len()).collect();
    assert_eq!(lines, [2, 2]);
    assert_eq!(found[1].lines[0].sites.len(), 1);
}
