//! Emulated runs: every access is known.

use super::{Access, Batch, Cpu, Key, Op, Per, batch, count, executed, options, total};
use crate::access::Measured;

fn run(accesses: Vec<Access>) -> crate::Table {
    let names = "executions.*,requests.*,messages";
    count(options(names, Some(500), Per::Cpu), &[batch(accesses)])
}

fn of(table: &crate::Table, key: Key, names: &[&str]) -> Vec<u64> {
    (names.iter())
        .map(|name| total(table, key, name).amount.expect("known"))
        .collect()
}

const REQUESTS: [&str; 6] = [
    "requests.read",
    "requests.read_owning",
    "requests.upgrades",
    "requests.interventions",
    "requests.invalidations",
    "requests.hand_offs",
];

#[test]
fn lines_of_one_thread_are_asked_for_once_and_a_line_of_two_goes_back_and_forth() {
    let stores = |apart: u64| {
        let turn = |n: u64| executed(n, (n % 2) as u32, 0x1000 + (n % 2) * apart, Op::Store);
        run((0..100).map(turn).collect())
    };
    let own = stores(64);
    assert_eq!(of(&own, Key::All, &REQUESTS), [0, 2, 0, 0, 0, 0]);
    let shared = stores(8);
    assert_eq!(of(&shared, Key::All, &REQUESTS), [0, 100, 0, 99, 99, 99]);
    let first = Key::Cpu(Cpu(0));
    assert_eq!(of(&shared, first, &REQUESTS), [0, 50, 0, 49, 49, 49]);
    assert_eq!(of(&shared, first, &["executions.stores"]), [50]);
}

#[test]
fn a_store_after_a_read_is_an_upgrade_and_takes_the_copies_of_others() {
    let accesses = |others: u32| {
        let reads = (0..=others).map(|n| executed(u64::from(n), n, 0x1000, Op::Load));
        reads.chain([executed(50, 0, 0x1000, Op::Store)]).collect()
    };
    let alone = run(accesses(0));
    assert_eq!(of(&alone, Key::All, &REQUESTS), [1, 0, 1, 0, 0, 0]);
    let shared = run(accesses(3));
    assert_eq!(of(&shared, Key::All, &REQUESTS), [4, 0, 1, 0, 3, 1]);
}

#[test]
fn repeats_are_executions_and_ask_for_nothing() {
    let repeated = Access {
        measured: Measured {
            repeats: 41,
            ..Measured::NOTHING
        },
        ..executed(1, 0, 0x1000, Op::Load)
    };
    let table = run(vec![repeated]);
    assert_eq!(
        of(&table, Key::All, &["executions.loads", "requests.read"]),
        [42, 1]
    );
}

#[test]
fn an_access_across_two_lines_asks_for_both() {
    let at = |addr| run(vec![executed(1, 0, addr, Op::Store)]);
    let asked = |addr| of(&at(addr), Key::All, &["requests.read_owning"]);
    assert_eq!((asked(0x103c), asked(0x1038)), (vec![2], vec![1]));
}

#[test]
fn of_a_run_that_no_emulator_saw_executions_are_not_known() {
    let table = count(
        options("executions.loads", None, Per::All),
        &[Batch::default()],
    );
    let value = total(&table, Key::All, "executions.loads");
    assert_eq!(value.amount, None);
    assert!(
        value
            .reason
            .is_some_and(|reason| reason.contains("no emulator"))
    );
}
