//! `cohtrace hints`: a hints file in every form, and programs that are edited by it.

mod compiled;
mod declared;
mod forms;

use std::{fs, path::Path, process::Command};

use cohtrace::hint::file::{
    Evidence, Expected, FollowingStore, HintFile, HintedCode, LoadClass, LoadHint, StoreKind,
};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};

/// A hints file of these hints.
pub(crate) fn file(hints: Vec<LoadHint>) -> HintFile {
    HintFile {
        session: Some("made-up.coh".to_owned()),
        evidence: Evidence {
            sources: vec!["emulate".to_owned()],
            complete_order: true,
            line_bytes: 64,
            transactions: 10_000,
            load_transactions: 6_000,
            ..Evidence::default()
        },
        hints,
        caveats: vec!["The run was short.".to_owned()],
        ..HintFile::default()
    }
}

/// A hint for the load there.
pub(crate) fn hint(id: usize, load: HintedCode) -> LoadHint {
    let store = FollowingStore {
        code: load.clone(),
        count: 880,
        kind: StoreKind::Plain,
    };
    LoadHint {
        class: LoadClass::Integer,
        stores: vec![store],
        expected: Expected {
            executions: 1000,
            requests: 900,
            followed_by_store: 880,
            found_dirty: 700,
            found_shared: 200,
            saved: 1760,
            lost: 60,
            readers_hurt: 1,
            ..Expected::default()
        },
        text: "Fetch it for ownership.".to_owned(),
        ..LoadHint::new(format!("H{id}"), load)
    }
}

/// Runs the command in a directory, on the file `hints.json` that it writes there.
pub(crate) fn hints(directory: &Path, file: &HintFile, words: &[&str]) -> Ended {
    fs::write(directory.join("hints.json"), file.render()).expect("the directory is ours");
    let mut tool = cohtrace(["hints", "hints.json"]);
    run(tool.args(words).current_dir(directory), GRACE)
}

/// Whether a program is there, as `version` makes it say.
pub(crate) fn has(program: &str, version: &str) -> bool {
    Command::new(program)
        .arg(version)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Runs a program that must succeed; what it printed.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
