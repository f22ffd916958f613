//! Arrays with an element for each thread, and what the order of a program with one more thread shows.

use super::*;
use crate::{
    access::Op,
    analysis::{ByThread, OrderBounds, OrderedLines, emulated_fixture::emulated},
};

/// The start of a line.
const BASE: u64 = 0x7f00_0000_1000;
const ROUNDS: u64 = 100;

fn place(access: &Access) -> Place {
    Place::Private {
        space: SpaceId(3),
        addr: access.addr,
    }
}

/// By turns, each of so many threads adds to the first word of its element of so many bytes; then thread 9 to its own words.
fn by_turns(threads: u32, stride: u64, others: &[u64]) -> Vec<Access> {
    let mut order = Vec::new();
    for _ in 0..ROUNDS {
        for thread in 0..threads {
            let at = BASE + u64::from(thread) * stride;
            order.push(emulated(thread, 0x40_1000, Op::Rmw, at));
        }
        let other = |at: &u64| emulated(9, 0x40_2000 + at, Op::Rmw, BASE + at);
        order.extend(others.iter().map(other));
    }
    order
}

/// What is told of the one array of an order.
fn one_more(order: &[Access]) -> OneMoreElement {
    let mut by_thread = ByThread::default();
    for access in order {
        by_thread.observe(access, place(access), SpaceId(3));
    }
    let arrays = by_thread.arrays(8);
    assert_eq!(arrays.arrays.len(), 1);
    let mut replay = OneMoreThread::new(&arrays);
    for access in order {
        replay.observe(access, place(access), SpaceId(3));
    }
    replay.finish().remove(0)
}

/// Hand-offs for neighbours of the lines from a byte on, in an order.
fn seen(order: &[Access], from: u64) -> u64 {
    let mut lines = OrderedLines::new(LINE, OrderBounds::default());
    for access in order {
        lines.observe(access, place(access), SpaceId(3), &mut Vec::new());
    }
    let behind = |line: &&crate::analysis::OrderedLine| line.key().0.position() >= BASE + from;
    let lines = lines.shared().filter(behind);
    lines.map(|line| line.counts(&[]).hand_offs.total()).sum()
}

#[test]
fn an_element_that_has_its_line_alone_meets_the_next_thread_s_as_often_as_that_comes() {
    // The third of 32 bytes; what four threads do to its line.
    let found = one_more(&by_turns(3, 32, &[]));
    assert_eq!((found.today, found.fought_for), (There::default(), 0));
    let four = seen(&by_turns(4, 32, &[]), 64);
    assert!(four >= 2 * ROUNDS - 4);
    assert!(
        found.beside.hand_offs.total().abs_diff(four) <= 2,
        "{found:?}"
    );
    assert!(found.beside.for_neighbours() >= four - 4);
    assert!(!found.taken);
    assert_eq!(found.array.stride, 32);
    // The twin: the next thread's has a line of its own.
    let found = one_more(&by_turns(4, 32, &[]));
    assert_eq!(found.beside, found.today);
    // And so do elements of a line each.
    assert_eq!(one_more(&by_turns(3, 64, &[])).beside, There::default());
}

#[test]
fn where_threads_fight_already_that_is_told() {
    let found = one_more(&by_turns(3, 16, &[]));
    assert!(found.fought_for >= 3 * ROUNDS - 6, "{found:?}");
}

#[test]
fn what_is_used_behind_the_last_element_meets_the_next_one_or_moves() {
    // A word on the line behind three of a line each, eight bytes behind the place of the next one's.
    let found = one_more(&by_turns(3, 64, &[200]));
    assert!(!found.taken);
    assert!(found.beside.for_neighbours() >= 2 * ROUNDS - 4, "{found:?}");
    // In its place: it has to move, and is alone again a line later.
    let found = one_more(&by_turns(3, 64, &[192]));
    assert!(found.taken);
    assert_eq!(found.behind, There::default());
    assert_eq!(found.lines_behind, There::default());
    // Behind elements of 48 bytes it is in nobody's way today, and comes to lie behind the next one on its line.
    let order = by_turns(4, 48, &[192]);
    let found = one_more(&order);
    assert!(found.taken);
    assert_eq!(found.today.for_neighbours(), 0);
    assert!(found.behind.for_neighbours() >= 2 * ROUNDS - 4, "{found:?}");
    // A whole line farther it is not.
    assert_eq!(found.lines_behind.for_neighbours(), 0);
}

#[test]
fn who_only_sets_memory_up_takes_no_place() {
    let mut order = vec![emulated(9, 0x40_3000, Op::Store, BASE + 96)];
    order.extend(by_turns(3, 32, &[]));
    assert!(!one_more(&order).taken);
}

#[test]
fn the_lines_are_told_as_they_are_with_who_uses_them() {
    let found = one_more(&by_turns(3, 32, &[128]));
    let lines = &found.run.lines;
    assert_eq!(lines[0].key.0.position(), BASE + 64);
    let users = |n: usize| -> Vec<u32> {
        lines[n]
            .sites
            .iter()
            .map(|counts| counts.site.tid.0)
            .collect()
    };
    assert_eq!((users(0), users(1)), (vec![2], vec![9]));
}

#[test]
fn an_element_that_others_use_as_well_is_nobody_s() {
    // Words in between, as of boxes of eight bytes that each thread takes some of.
    assert!(one_more(&by_turns(3, 56, &[])).is_own);
    assert!(!one_more(&by_turns(3, 56, &[2 * 56 + 16])).is_own);
}
