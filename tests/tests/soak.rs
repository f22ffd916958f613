//! What the tool keeps does not grow with what comes and goes; `cargo xtask bench soak` is the same for longer.

#[path = "../benches/soak/churn.rs"]
mod churn;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use churn::{Churn, Life, Tool};
use cohtrace::event::{Batch, Mapping};

const PROCESSES: u64 = 20_000;
/// 100 processes a second; a poll is every 50 ms.
const STEP_NS: u64 = 10_000_000;
const A_POLL: u64 = 5;

/// A program that was there once, under a number and name of its own.
fn file(number: u64) -> Mapping {
    Mapping {
        start: 0,
        len: 0,
        file_offset: 0,
        dev: 1,
        // Numbers are used again, as file systems do.
        inode: 1_000_000 + number % 3,
        shared: false,
        executable: true,
        writable: false,
        name: PathBuf::from(format!("/gone/{number}"))
            .to_string_lossy()
            .into_owned(),
        build_id: None,
        stamp: None,
    }
}

/// The most that was kept in the first half, and in the second; by what it is.
fn most(tool: &mut Tool) -> [BTreeMap<&'static str, usize>; 2] {
    let mut churn = Churn::new(vec![Life::of_this_process()], STEP_NS);
    let mut halves = [BTreeMap::new(), BTreeMap::new()];
    while churn.processes < PROCESSES {
        let mut batch = Batch::default();
        for _ in 0..A_POLL {
            let number = churn.processes;
            let file = number.is_multiple_of(10).then(|| file(number));
            churn.next(file.as_ref(), &mut batch);
        }
        tool.feed(&batch, churn.now_ns());
        if churn.processes.is_multiple_of(100) {
            let half = &mut halves[usize::from(churn.processes > PROCESSES / 2)];
            for (name, entries) in tool.entries() {
                let most = half.entry(name).or_default();
                *most = entries.max(*most);
            }
        }
    }
    halves
}

/// The names of what grows: its most in the second half is more than a tenth above its most in the first.
fn growing(halves: [&BTreeMap<&'static str, usize>; 2]) -> BTreeSet<&'static str> {
    let grown = |(name, most): &(&&'static str, &usize)| {
        let before = halves[0].get(**name).copied().unwrap_or(0);
        **most > before + before / 10
    };
    halves[1]
        .iter()
        .filter(grown)
        .map(|(name, _)| *name)
        .collect()
}

#[test]
fn twenty_thousand_processes_leave_no_more_behind_than_ten_thousand() {
    let mut tool = Tool::new(true);
    let [first, second] = most(&mut tool);
    let grown = growing([&first, &second]);
    assert!(grown.is_empty(), "{grown:?}: {first:?}, then {second:?}");
    assert_eq!(tool.attach.totals().accesses, tool.record.totals().accesses);
    assert!(tool.attach.totals().accesses > PROCESSES);
}

#[test]
fn what_is_not_forgotten_is_seen_to_grow() {
    let [first, second] = most(&mut Tool::new(false));
    let grown = growing([&first, &second]);
    for name in ["source", "files", "compilers"] {
        assert!(grown.contains(name), "{name}: {first:?}, then {second:?}");
    }
}
