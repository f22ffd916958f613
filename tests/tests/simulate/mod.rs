//! `simulate` on crafted sessions of an emulator: the tables of SWIFT with answers that are counted by hand.

mod counting;
mod crafted;
mod several;

use std::{fs, path::Path};

use cohtrace::{
    access::Basis,
    hint::file::{HintFile, HintedCode, LoadClass, LoadHint},
};

use crafted::{COUNTER, Program, adds, json, recorded_turns, session, simulate, table, turns};

/// One line that four threads add to 40 times: the first pair finds it idle and takes 2 and 2 messages, the others 4 and
/// 4; with bias the store takes none.
const PLAIN: u64 = 4 + 39 * 8;
const BIASED: u64 = 2 + 39 * 4;
const HINTED: [[u64; 3]; 3] = [
    [2 * PLAIN, PLAIN + BIASED, 2 * BIASED],
    [2 * BIASED; 3],
    [80; 3],
];

#[test]
fn the_loads_that_the_filter_finds_in_the_session_are_hinted_by_their_class() {
    let (_directory, _program, session) = adds();
    let report = json(&[], &[&session]);
    let one = &report["sessions"][0];
    assert_eq!(table(one), HINTED);
    for figure in ["integer_hinted", "all_hinted"] {
        assert_eq!(one[format!("your_code_{figure}")], one[figure]);
    }
    assert_eq!(
        (&one["name"], &one["role"]),
        (&"adds".into(), &"own".into())
    );
    assert_eq!(
        (&one["hints"]["integer"], &one["hints"]["floating_point"]),
        (&1.into(), &1.into())
    );
    assert_eq!(one["executed"]["loads"], 80);
    assert_eq!(one["threads"], 4);
    // The load and the store of either line.
    assert_eq!(one["instructions"].as_array().map(Vec::len), Some(4));
    assert_eq!(one["instructions"][0]["followed_by_ownership"], 40);
    assert_eq!(
        one["top_lines"][1]["transactions"],
        serde_json::json!([PLAIN, PLAIN, BIASED, PLAIN, BIASED])
    );

    let text = simulate(&[], &[&session]).expect_code(0).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Hinted, found in it: 1 integer load and 1 floating-point load.",
        "A rebuild with the hints in code that you build: 316 messages fewer of 632 (50.0 %).",
        "adds your code 632 474 25.0 % 316 50.0 %",
        "Lines with most transactions in adds",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let short = simulate(&["--top", "0"], &[&session]).expect_code(0).stdout;
    assert!(!short.contains("with most transactions"), "{short}");
}

#[test]
fn hints_of_a_training_session_are_found_in_another_one_of_the_same_build_and_of_no_other() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    // Only the integer load is trained.
    let mut few = turns(&program, Basis::Emulated);
    few.retain(|access| access.addr == COUNTER);
    let train = session(directory.path(), "train.coh", &program, few);
    let whole = recorded_turns(directory.path(), "ref.coh", &program);
    let other = Program::build(directory.path(), "other", "ret");
    let moved = recorded_turns(directory.path(), "moved.coh", &other);
    let train = train.to_str().expect("text");
    let report = json(&["--train", train], &[&whole, &moved]);
    let rows = report["sessions"].as_array().expect("rows");
    let roles: Vec<&str> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    assert_eq!(roles, ["train", "given", "given"]);
    assert_eq!(table(&rows[0])[0], [PLAIN, BIASED, BIASED]);
    assert_eq!(
        table(&rows[1])[0],
        [2 * PLAIN, PLAIN + BIASED, PLAIN + BIASED]
    );
    assert_eq!(table(&rows[2])[0], [2 * PLAIN; 3]);
    assert_eq!(rows[1]["hints"]["unmatched"], serde_json::json!([]));
    assert_eq!(
        rows[2]["hints"]["unmatched"].as_array().map(Vec::len),
        Some(1)
    );
    let caveats = rows[2]["caveats"].to_string();
    assert!(
        caveats.contains("1 of 1 hints matched no load that ran"),
        "{caveats}"
    );
    let text = simulate(&["--train", train], &[&whole])
        .expect_code(0)
        .stdout;
    assert!(text.contains("train (train)"), "{text}");
}

/// Hints for these instructions of the program.
fn hints(program: &Program, build_id: &str, loads: &[(&str, u64, LoadClass)]) -> HintFile {
    let hint = |(id, offset, class): &(&str, u64, LoadClass)| LoadHint {
        class: *class,
        ..LoadHint::new(
            (*id).to_owned(),
            HintedCode {
                module: Some(program.path.display().to_string()),
                build_id: Some(build_id.to_owned()),
                offset: Some(format!("{offset:#x}")),
                ip: format!("{offset:#x}"),
                ..HintedCode::default()
            },
        )
    };
    HintFile {
        hints: loads.iter().map(hint).collect(),
        ..HintFile::default()
    }
}

#[test]
fn hints_of_a_file_are_matched_by_build_and_address_and_those_without_a_load_are_named() {
    let (directory, program, session) = adds();
    let own = json(&[], &[&session]);
    let build_id = own["sessions"][0]["instructions"][0]["build_id"]
        .as_str()
        .expect("a build");
    let loads = [
        // Unknown to who decided: the session's code tells.
        ("H1", program.at("fp_load"), LoadClass::Unknown),
        // A store, which no hint is for, and what never ran.
        ("H2", program.at("int_store"), LoadClass::Integer),
        ("H3", program.at("_start"), LoadClass::Integer),
    ];
    let path = directory.path().join("hints.json");
    let use_hints = |file: &HintFile| {
        fs::write(&path, file.render()).expect("room for the hints");
        json(&["--hints", path.to_str().expect("text")], &[&session])["sessions"][0].clone()
    };
    let row = use_hints(&hints(&program, build_id, &loads));
    assert_eq!(table(&row)[0], [2 * PLAIN, 2 * PLAIN, PLAIN + BIASED]);
    assert_eq!(row["hints"]["unmatched"].as_array().map(Vec::len), Some(2));
    let caveats = row["caveats"].to_string();
    assert!(
        caveats.contains("2 of 3 hints matched no load that ran: H2"),
        "{caveats}"
    );
    let row = use_hints(&hints(&program, "c0ffee", &loads));
    assert_eq!(table(&row)[0], [2 * PLAIN; 3]);
    assert_eq!(row["hints"]["unmatched"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_migratory_protocol_leaves_hints_only_the_first_pair_to_save() {
    let (_directory, _program, session) = adds();
    // A store that follows asks for nothing there, but in the first pair.
    let any = ["--min-stored", "0"];
    let row = |arguments: &[&str]| {
        let arguments = [&any, arguments].concat();
        table(&json(&arguments, &[&session])["sessions"][0])[0]
    };
    let first = 2;
    let migratory = [2 * (BIASED + first), 2 * BIASED + first, 2 * BIASED];
    assert_eq!(row(&["--migratory"]), migratory);
    // Nothing is left to save, and the filter finds nothing.
    assert_eq!(
        row(&["--migratory", "--exclusive-on-first-read"]),
        [2 * BIASED; 3]
    );
    let text = simulate(&["--migratory", "--exclusive-on-first-read"], &[&session]).stdout;
    assert!(text.contains("no load to hint"), "{text}");
}

#[test]
fn the_papers_setting_is_named_and_what_is_given_beside_it_holds() {
    let (_directory, _program, session) = adds();
    // Four messages for the load of a line that another wrote, and two for the store: the writer kept no copy.
    let relinquished = 4 + 39 * 6;
    let expected = [2 * relinquished, relinquished + BIASED, 2 * BIASED];
    let of = |arguments: &[&str]| {
        let json = json(arguments, &[&session]);
        let line_bytes = json["machine"]["line_bytes"].as_u64().expect("a size");
        (line_bytes, table(&json["sessions"][0])[0])
    };
    let model = ["--model", "swift2005"];
    assert_eq!(of(&model), (128, expected));
    assert_eq!(of(&["--relinquish"]), (64, expected));
    assert_eq!(of(&[&model[..], &["--line-size", "64"]].concat()).0, 64);
    // The filter is the paper's: of a log that has stores only, it finds nothing.
    let sampled = [&model[..], &["--log-buffer", "1/2"]].concat();
    assert_eq!(of(&sampled), (128, [2 * relinquished; 3]));
    let complete = [&model[..], &["--log-buffer", "2/2"]].concat();
    assert_eq!(of(&complete), (128, expected));
}

#[test]
fn what_cannot_be_simulated_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = Program::build(directory.path(), "adds", "nop");
    let sampled = session(
        directory.path(),
        "s.coh",
        &program,
        turns(&program, Basis::Sampled),
    );
    let emulated = recorded_turns(directory.path(), "e.coh", &program);
    let hints = directory.path().join("hints.json");
    fs::write(&hints, "{}").expect("room");
    let cases: [(&[&str], &Path, &str); 7] = [
        (&[], &sampled, "cohtrace record --source emulate"),
        (&[], Path::new("/nonexistent.coh"), "/nonexistent.coh"),
        (&["--l2-ways", "7"], &emulated, "cannot have 7 ways"),
        (&["--log-buffer", "1/2"], &emulated, "--filter swift"),
        (
            &["--l3", "128K", "--l3-ways", "8"],
            &emulated,
            "third level has 131072 bytes",
        ),
        (
            &["--hints", "/nonexistent.json"],
            &emulated,
            "/nonexistent.json",
        ),
        (
            &["--hints", hints.to_str().expect("text")],
            &emulated,
            "not a hints file",
        ),
    ];
    for (arguments, session, words) in cases {
        let ended = simulate(arguments, &[session]);
        assert_eq!(ended.code(), 2, "{}", ended.said());
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.said());
        assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    }
}
