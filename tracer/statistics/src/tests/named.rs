//! Code and memory, put together by name.

use super::{Access, Batch, Key, MS, Per, Table, amounts, batch, lost, options, sample, total};
use crate::Fold;

/// Three instructions by two threads, on two lines.
fn accesses() -> Vec<Access> {
    let at = |at_ms, thread, ip, addr| Access {
        ip,
        ..sample(at_ms, thread, addr)
    };
    vec![
        at(1, 0, 0x10, 0x1000),
        at(2, 0, 0x20, 0x1000),
        at(600, 1, 0x20, 0x1008),
        at(700, 1, 0x30, 0x2000),
    ]
}

/// Instructions and lines below an address are `low`, the others `high`.
fn named(statistics: &str, per: Per, limit: u64) -> Table {
    let mut fold = Fold::new(options(statistics, Some(500), per)).unwrap();
    fold.feed(&batch(accesses())).unwrap();
    let name = |key: Key| {
        let at = match key {
            Key::Code { ip, .. } => ip,
            Key::Memory(line) => line.0.position(),
            _ => return None,
        };
        Some((key, if at < limit { "low" } else { "high" }.to_owned()))
    };
    let names: Vec<_> = fold.keys().into_iter().filter_map(name).collect();
    fold.name(&names);
    fold.finish().unwrap()
}

fn labels(table: &Table) -> Vec<&str> {
    table.rows.iter().map(|row| row.label.as_str()).collect()
}

#[test]
fn instructions_of_one_function_add_up_and_those_of_another_are_apart() {
    let two = named("samples", Per::Function, 0x30);
    assert_eq!(labels(&two), ["all", "high", "low"]);
    let known = |slices: [u64; 2]| slices.map(Some).to_vec();
    assert_eq!(amounts(&two, Key::Named(0)), (Some(1), known([0, 1])));
    assert_eq!(amounts(&two, Key::Named(1)), (Some(3), known([2, 1])));
    let one = named("samples", Per::Function, u64::MAX);
    assert_eq!(labels(&one), ["all", "low"]);
    assert_eq!(amounts(&one, Key::Named(0)), (Some(4), known([2, 2])));
    assert_eq!(amounts(&one, Key::All), amounts(&one, Key::Named(0)));
}

#[test]
fn a_thread_in_two_instructions_of_a_function_is_one_thread() {
    let table = named("threads.seen", Per::Function, 0x30);
    let low = Key::Named(1);
    assert_eq!(amounts(&table, low), (Some(2), vec![Some(1), Some(1)]));
    assert_eq!(amounts(&table, Key::All).0, Some(2));
}

#[test]
fn waits_are_of_the_object_that_was_waited_for() {
    let table = named(
        "time.waiting_shared,time.waiting_private",
        Per::Object,
        0x2000,
    );
    let of = |name| [0, 1].map(|key| total(&table, Key::Named(key), name).amount);
    assert_eq!(of("time.waiting_shared"), [Some(0), Some(3 * MS)]);
    assert_eq!(of("time.waiting_private"), [Some(MS), Some(0)]);
}

#[test]
fn starts_of_threads_are_in_no_function() {
    let table = named("threads.started,run.lost", Per::Line, 0x30);
    let of = |key, name| total(&table, key, name).amount;
    assert_eq!(of(Key::All, "threads.started"), Some(0));
    assert_eq!(of(Key::Named(0), "threads.started"), None);
    assert_eq!(of(Key::Named(0), "run.lost"), None);
}

#[test]
fn keys_that_nobody_names_stay_addresses() {
    let mut fold = Fold::new(options("samples", None, Per::Function)).unwrap();
    fold.feed(&batch(accesses())).unwrap();
    fold.feed(&lost(0)).unwrap();
    fold.feed(&Batch::default()).unwrap();
    let table = fold.finish().unwrap();
    assert_eq!(labels(&table)[..2], ["all", "0x10"]);
    assert_eq!(table.rows.len(), 4);
}
