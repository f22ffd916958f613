//! `cohtrace hints`: a hints file in every form, and programs that are edited by it.

mod compiled;
mod forms;

use std::{fs, path::Path, process::Command};

use cohtrace::hint::file::{
    Evidence, Expected, FORMAT, FollowingStore, HintFile, HintedCode, LoadClass, LoadHint,
    StoreKind, VERSION,
};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};

/// A hints file of these hints.
pub fn file(hints: Vec<LoadHint>) -> HintFile {
    HintFile {
        format: FORMAT.to_owned(),
        version: VERSION,
        tool_version: "0.1.0".to_owned(),
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
        left: Vec::new(),
        caveats: vec!["The run was short.".to_owned()],
    }
}

/// A hint for the load there.
pub fn hint(id: usize, load: HintedCode) -> LoadHint {
    let store = FollowingStore {
        code: load.clone(),
        count: 880,
        kind: StoreKind::Plain,
    };
    LoadHint {
        id: format!("H{id}"),
        kind: "fetch-for-ownership".to_owned(),
        load,
        class: LoadClass::Integer,
        stores: vec![store],
        object: None,
        field: None,
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
        x86: "prefetchw".to_owned(),
        aarch64: "prfm pstl1keep".to_owned(),
        text: "Fetch it for ownership.".to_owned(),
    }
}

/// Runs the command in a directory, on the file `hints.json` that it writes there.
pub fn hints(directory: &Path, file: &HintFile, words: &[&str]) -> Ended {
    fs::write(directory.join("hints.json"), file.render()).expect("the directory is ours");
    let mut tool = cohtrace(["hints", "hints.json"]);
    run(tool.args(words).current_dir(directory), GRACE)
}

/// Runs a program that must succeed; what it printed.
pub fn succeed(command: &mut Command) -> String {
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
