//! A complete order against a watch window on the same accesses, and against the protocol as it is.

use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::*;
use crate::{
    access::{Basis, ByteSet, Cost, Measured, Op},
    analysis::{
        Pair,
        watched_fixture::{Act, Watch, key, load, repeated, rmw, store},
    },
};

fn emulated(act: &Act, repeats: u32) -> (Access, Place) {
    let trapped = act.trapped(0);
    let access = Access {
        basis: Basis::Emulated,
        measured: Measured {
            repeats,
            ..Measured::default()
        },
        ..trapped.access
    };
    (access, trapped.place)
}

fn observe(lines: &mut OrderedLines, act: &Act, repeats: u32) -> Vec<u32> {
    let (access, place) = emulated(act, repeats);
    let mut costs = vec![Cost(7)];
    lines.observe(&access, place, SpaceId(0), &mut costs);
    costs.iter().map(|cost| cost.0).collect()
}

fn ordered(acts: &[Act]) -> OrderedLines {
    let mut lines = OrderedLines::new(LineSize::B64, OrderBounds::default());
    for act in acts {
        observe(&mut lines, act, 0);
    }
    lines
}

fn pairs(lines: &OrderedLines) -> Vec<Pair> {
    let line = lines.get(key()).expect("several threads touched it");
    line.pairs(LineSize::B64)
}

/// A line that is shared from its second access on.
fn begun(acts: &[Act]) -> Vec<Act> {
    [&[store(1, 0), store(2, 0)], acts].concat()
}

fn act() -> impl Strategy<Value = Act> {
    (1u32..4, 0u8..3, 0u64..8, 0u64..3).prop_map(|(tid, op, word, code)| {
        let make = [load, store, rmw][usize::from(op)];
        Act {
            ip: 0x40_1000 + u64::from(op) * 0x100 + code,
            ..make(tid, word * 8)
        }
    })
}

proptest! {
    #[test]
    fn pairs_requests_and_hand_offs_are_those_of_a_window_on_the_same_accesses(
        acts in prop::collection::vec(act(), 0..30),
    ) {
        let acts = begun(&acts);
        let lines = ordered(&acts);
        let everything: Vec<u8> = (0..4).map(|n| n * 8).collect();
        let watch = Watch::new().windows(1, &everything, &acts);
        let mut watched = watch.line().pairs(ByteSet::default());
        for pair in &mut watched {
            pair.complete_order = true;
        }
        prop_assert_eq!(pairs(&lines), watched);
        let (counts, window) = (lines.get(key()).unwrap().counts(&[]), watch.line().counts());
        // The first store was before the line was shared.
        prop_assert_eq!(counts.requests.read_priv, window.requests.read_priv - 1);
        prop_assert_eq!(counts.requests.read_shar, window.requests.read_shar);
        prop_assert_eq!(lines.totals().transactions, window.requests.transactions);
        // What it left there sets the line up.
        let later = Watch::new().windows(1, &everything, &acts[1..]);
        prop_assert_eq!(counts.hand_offs, later.line().hand_offs(&[]));
    }

    #[test]
    fn each_access_costs_what_its_lines_directories_send(
        accesses in prop::collection::vec((0u64..600, 1u16..16, 0u32..3, 0usize..6), 0..400),
        wide in any::<bool>(),
    ) {
        let line_size = if wide { LineSize::B128 } else { LineSize::B64 };
        let mut lines = OrderedLines::new(line_size, OrderBounds::default());
        let mut directories: FxHashMap<u64, Directory> = FxHashMap::default();
        let mut sum = 0;
        for (addr, size, cpu, op) in accesses {
            let (mut access, _) = emulated(&load(cpu, 0), 0);
            (access.addr, access.size, access.op) = (addr, size, Op::ALL[op]);
            let place = Place::Kernel { addr };
            let mut costs = Vec::new();
            lines.observe(&access, place, SpaceId(0), &mut costs);
            let touched = addr / line_size.bytes()..=(addr + u64::from(size) - 1) / line_size.bytes();
            let expected: Vec<u32> = touched
                .map(|line| {
                    let directory = directories.entry(line).or_default();
                    let outcome = Intent::of(access.op).map(|intent| directory.access(Cpu(cpu), intent));
                    outcome.map_or(0, |outcome| outcome.transactions.total() as u32)
                })
                .collect();
            sum += expected.iter().copied().map(u64::from).sum::<u64>();
            let costs: Vec<u32> = costs.iter().map(|cost| cost.0).collect();
            prop_assert_eq!(costs, expected);
        }
        prop_assert_eq!(lines.totals().transactions, sum);
    }
}

#[test]
fn an_access_across_two_lines_costs_on_both() {
    let wide = Act {
        size: 16,
        ..store(1, 56)
    };
    let mut lines = OrderedLines::new(LineSize::B64, OrderBounds::default());
    assert_eq!(observe(&mut lines, &wide, 0), [2, 2]);
    assert_eq!(observe(&mut lines, &wide, 0), [0, 0]);
    assert_eq!(observe(&mut lines, &store(2, 0), 0), [4]);
    assert_eq!(observe(&mut lines, &wide, 0), [4, 0]);
}

#[test]
fn a_prefetch_for_ownership_owns_and_a_plain_one_asks_for_nothing() {
    let own = Act {
        op: Op::PrefetchOwn,
        ..load(1, 0)
    };
    let mut lines = OrderedLines::new(LineSize::B64, OrderBounds::default());
    let plain = Act {
        op: Op::Prefetch,
        ..own
    };
    assert_eq!(observe(&mut lines, &plain, 0), [0]);
    assert_eq!(observe(&mut lines, &store(2, 0), 0), [2]);
    assert_eq!(observe(&mut lines, &own, 0), [4]);
    assert_eq!(observe(&mut lines, &load(1, 0), 0), [0]);
    assert_eq!(observe(&mut lines, &store(1, 0), 0), [0]);
    // It is no access of its thread's: the pair is the same, and the load asks for nothing.
    for tid in [2, 1, 2] {
        observe(
            &mut lines,
            &Act {
                tid,
                cpu: tid,
                ..own
            },
            0,
        );
        observe(&mut lines, &load(tid, 0), 0);
        observe(&mut lines, &store(tid, 0), 0);
    }
    let pairs = pairs(&lines);
    assert_eq!(pairs.len(), 1);
    assert_eq!((pairs[0].count, pairs[0].load_requests), (4, 0));
}

#[test]
fn what_one_thread_has_to_itself_is_no_shared_line_and_its_values_are_handed_over_once_for_all() {
    let alone = repeated(50, &[load(1, 0), store(1, 0)]);
    assert!(ordered(&alone).get(key()).is_none());
    // It set the word up before anybody else came: that moves no line again.
    let taken = [&alone[..], &[load(2, 0)]].concat();
    let counts = ordered(&taken).get(key()).unwrap().counts(&[]);
    assert_eq!(counts.hand_offs, crate::analysis::HandOffs::default());
    assert_eq!(
        (counts.requests.read_shar, counts.shared_transactions),
        (1, 4)
    );
    // Its next value is one that somebody waits for.
    let lines = ordered(&[&taken[..], &[store(1, 0), load(2, 0)]].concat());
    let counts = lines.get(key()).unwrap().counts(&[]);
    assert_eq!((counts.hand_offs.truly, counts.hand_offs.falsely), (1, 0));
    let lines = ordered(&[&taken[..], &[store(1, 0), load(2, 8)]].concat());
    let counts = lines.get(key()).unwrap().counts(&[]);
    assert_eq!((counts.hand_offs.truly, counts.hand_offs.undecided), (0, 1));
}

#[test]
fn a_first_read_of_what_others_only_read_is_no_cost_of_sharing() {
    let lines = ordered(&[load(1, 0), load(2, 0), load(3, 8)]);
    let counts = lines.get(key()).unwrap().counts(&[]);
    assert_eq!(
        (counts.requests.transactions, counts.shared_transactions),
        (4, 0)
    );
    assert_eq!(counts.hand_offs, crate::analysis::HandOffs::default());
    let lines = ordered(&[load(1, 0), load(2, 0), load(3, 8), store(1, 0)]);
    let counts = lines.get(key()).unwrap().counts(&[]);
    assert_eq!(
        (counts.requests.transactions, counts.shared_transactions),
        (10, 6)
    );
}

#[test]
fn repeats_are_executions_and_ask_for_nothing() {
    let mut lines = ordered(&begun(&[]));
    for _ in 0..10 {
        for tid in [1, 2] {
            observe(&mut lines, &load(tid, 0), 9);
            observe(&mut lines, &store(tid, 0), 9);
        }
    }
    let found = pairs(&lines);
    assert_eq!(found.len(), 1);
    let pair = &found[0];
    assert_eq!((pair.count, pair.executions), (200, 200));
    assert_eq!(pair.share_of_load, Some(1.0));
    assert_eq!((pair.load_requests, pair.global_count), (20, 20));
    assert_eq!((pair.left.own, pair.left.shared), (180, 20));
    assert_eq!(lines.totals().executions, 402);
}

#[test]
fn a_load_repeated_before_one_store_is_followed_once() {
    let mut lines = ordered(&begun(&[]));
    for tid in [1, 2, 1, 2] {
        observe(&mut lines, &load(tid, 0), 99);
        observe(&mut lines, &store(tid, 0), 0);
    }
    let found = pairs(&lines);
    assert_eq!((found[0].count, found[0].executions), (4, 400));
    // Nor does a store that comes after the line was taken follow the repeats before.
    let mut lines = ordered(&begun(&[]));
    for tid in [1, 2, 1, 2] {
        observe(&mut lines, &load(tid, 0), 99);
        observe(&mut lines, &store(3, 8), 0);
        observe(&mut lines, &store(tid, 0), 99);
    }
    let found = pairs(&lines);
    assert_eq!((found[0].count, found[0].executions), (4, 400));
    assert_eq!(found[0].taken_by_writes, 4);
}

#[test]
fn a_read_modify_write_is_a_pair_as_often_as_it_runs() {
    let mut lines = ordered(&begun(&[]));
    for tid in [1, 2, 1] {
        observe(&mut lines, &rmw(tid, 0), 4);
    }
    let found = pairs(&lines);
    assert!(found[0].same_instruction);
    assert_eq!((found[0].count, found[0].load_requests), (15, 3));
}

#[test]
fn a_thread_that_never_comes_back_holds_up_some_accesses_and_is_a_reader() {
    let turns = repeated(100, &[load(1, 0), store(1, 0), load(2, 0), store(2, 0)]);
    let lines = ordered(&begun(&[&[load(3, 8)][..], &turns].concat()));
    let found = pairs(&lines);
    assert_eq!(found[0].count, 200);
    assert_eq!(found[0].among_readers, 1);
}

#[test]
fn beyond_the_bounds_lines_have_no_pairs_or_no_cost_and_are_counted() {
    let bounds = OrderBounds {
        lines: 3,
        paired_lines: 1,
        loads: 1,
    };
    let mut lines = OrderedLines::new(LineSize::B64, bounds);
    for line in 0..4 {
        for tid in [1, 2, 1, 2] {
            for act in [load(tid, 0), store(tid, 0)] {
                let (mut access, _) = emulated(&act, 0);
                access.addr = 0x1000 + line * 64;
                let place = Place::Kernel { addr: access.addr };
                lines.observe(&access, place, SpaceId(0), &mut Vec::new());
            }
        }
    }
    let totals = lines.totals();
    assert_eq!((totals.untracked, totals.unpaired_lines), (8, 2));
    let with_pairs = lines
        .shared()
        .filter(|line| !line.pairs(LineSize::B64).is_empty());
    assert_eq!(with_pairs.count(), 1);
    assert!(
        lines
            .shared()
            .all(|line| line.counts(&[]).hand_offs.total() == 2)
    );
}

#[test]
fn endless_instructions_stay_within_the_bound_on_loads() {
    let bounds = OrderBounds {
        loads: 40,
        ..OrderBounds::default()
    };
    let mut lines = OrderedLines::new(LineSize::B64, bounds);
    for n in 0..5000u64 {
        for tid in [1, 2] {
            observe(&mut lines, &load(tid, 0).at(n), 0);
            observe(&mut lines, &store(tid, 0), 0);
        }
    }
    let line = lines.get(key()).unwrap();
    let kept: u64 = line
        .pairs(LineSize::B64)
        .iter()
        .map(|pair| pair.executions)
        .sum();
    assert!(line.loads() <= 41, "{}", line.loads());
    // One load came before the line was shared.
    assert_eq!(kept + line.forgotten_executions(), 9999);
}

#[test]
fn the_log_has_each_request_with_its_line_once_and_no_hit() {
    let mut log = RequestLog::new(LineSize::B64);
    let wide = Act {
        size: 16,
        ..store(2, 56)
    };
    let mut rows = Vec::new();
    for act in [load(1, 0), load(1, 8), wide, wide, store(1, 0), rmw(1, 64)] {
        let (access, place) = emulated(&act, 3);
        let first = |line: LineKey| line == key();
        log.observe(&access, place, first, |row, first| {
            rows.push(format!("{row} {first}"));
        });
    }
    let expected = [
        "0,1,1,0x402000,0x7f0000001000,0x7f0000001000,READ_SHAR true",
        "1,2,2,0x403038,0x7f0000001038,0x7f0000001000,READ_PRIV true",
        "2,2,2,0x403038,0x7f0000001038,0x7f0000001040,READ_PRIV false",
        "3,1,1,0x403000,0x7f0000001000,0x7f0000001000,READ_PRIV true",
        "4,1,1,0x404040,0x7f0000001040,0x7f0000001040,READ_PRIV false",
    ];
    assert_eq!(rows, expected);
}
