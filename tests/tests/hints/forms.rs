//! A hints file in text and SARIF, selected, and refused.

use std::{fs, path::PathBuf, process::Command};

use cohtrace::hint::file::{HintFile, HintedCode, StoreKind};
use cohtrace_tests::{
    live::{GRACE, skipped},
    tool::{cohtrace, run},
};
use serde_json::Value;

use super::{file, hint, hints, succeed};

const SOURCE: &str =
    "long f(struct node *n)\n{\n\tn->gr\u{f6}\u{df}e = 1; n->count++;\n\treturn n->count;\n}\n";

fn at(directory: &std::path::Path, line: u32, column: u32) -> HintedCode {
    HintedCode {
        module: Some("/nowhere/program".to_owned()),
        build_id: Some("c0ffee".to_owned()),
        offset: Some("0x1139".to_owned()),
        ip: "0x401139".to_owned(),
        function: Some("f".to_owned()),
        file: Some(directory.join("src/a b.c").to_string_lossy().into_owned()),
        line: Some(line),
        column: Some(column),
        operand: Some("8(%rdi)".to_owned()),
        ..HintedCode::default()
    }
}

/// A directory with the source, and a file with a plain hint, one before a compare-and-swap, and one without source.
fn three() -> (tempfile::TempDir, PathBuf, HintFile) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().canonicalize().expect("it is there");
    fs::create_dir(path.join("src")).expect("it is ours");
    fs::write(path.join("src/a b.c"), SOURCE).expect("it is ours");
    let mut swap = hint(2, at(&path, 4, 9));
    swap.stores[0].kind = StoreKind::CompareAndSwap;
    swap.object = Some("node\u{1b}[31m".to_owned());
    swap.field = Some(".count".to_owned());
    let mut bare = hint(3, HintedCode::default());
    "0x401200".clone_into(&mut bare.load.ip);
    bare.expected.saved = 10;
    let file = file(vec![hint(1, at(&path, 3, 17)), swap, bare]);
    (directory, path, file)
}

/// Asserts that SARIF is valid against the standard's schema, where a Python can check it.
pub(super) fn assert_valid(log: &std::path::Path) {
    let python = std::env::var_os("COHTRACE_SARIF_PYTHON").filter(|name| !name.is_empty());
    let schema = std::env::var_os("COHTRACE_SARIF_SCHEMA").filter(|name| !name.is_empty());
    let (Some(python), Some(schema)) = (python, schema) else {
        return skipped(
            "no schema of SARIF: name a Python with the module jsonschema in COHTRACE_SARIF_PYTHON and the schema's file in \
             COHTRACE_SARIF_SCHEMA (.ci/run does)",
        );
    };
    let check = "import json, sys, jsonschema\n\
                 schema, log = (json.load(open(name)) for name in sys.argv[1:])\n\
                 jsonschema.validate(log, schema)\n\
                 log['runs'][0]['results'].append({'ruleId': 3})\n\
                 try: jsonschema.validate(log, schema)\n\
                 except jsonschema.ValidationError: print('refuses what is wrong')";
    let said = succeed(
        Command::new(python)
            .args(["-c", check])
            .arg(schema)
            .arg(log),
    );
    assert!(
        said.contains("refuses what is wrong"),
        "the schema takes anything"
    );
}

#[test]
fn text_is_as_compilers_print_and_names_the_trap() {
    let (_kept, path, mut file) = three();
    file.left.push(cohtrace::hint::file::LeftLoad {
        load: at(&path, 4, 9),
        class: file.hints[0].class,
        expected: file.hints[0].expected,
        reason: "costs-more-than-it-saves".to_owned(),
        text: "readers would lose the line".to_owned(),
    });
    let text = hints(&path, &file, &["--format", "text", "--any-source"])
        .expect_code(0)
        .stdout;
    for words in [
        "src/a b.c:3:17: warning: this load fetches a line to read, and a store to it follows: fetch it for ownership [load-hint] (H1)\n",
        "src/a b.c:3:17: note: a store follows here, 880 times\n",
        "900 of 1,000 executions missed, 880 of these with the store next",
        "(net 17.0 % of all); 1 read by another CPU loses by it",
        "    4 |         return n->count;\n",
        "note: write before it: __builtin_prefetch((const void *)&(n->count), 1, 3);\n",
        "0x401200: warning:",
        "In code that you build: 2 load hints, expected to save 3,400 of 10,000 messages (34.0 %). With 1 load elsewhere: \
         3 load hints, expected to save 3,350 of 10,000 messages (33.5 %); 1 load left as they are (--verbose lists them).",
        "every access of the program in order",
        "-mprfchw",
        "The run was short.",
    ] {
        assert!(text.contains(words), "{words} is missing\n{text}");
    }
    assert!(
        !text.contains('\u{1b}') && text.contains("\\x1b[31m.count"),
        "{text}"
    );
    let apart = text
        .find("compare-and-swaps and fenced stores")
        .expect("a heading");
    let elsewhere = text.find("does not place").expect("a heading");
    let at = |hint: &str| text.find(hint).expect("a hint");
    assert!(at("(H1)") < apart && apart < at("(H2)"));
    assert!(at("(H2)") < elsewhere && elsewhere < at("(H3)"));
    assert!(!text.contains("costs-more-than-it-saves"));
    let verbose = hints(&path, &file, &["--format", "text", "-v"])
        .expect_code(0)
        .stdout;
    assert!(
        verbose.contains("readers would lose the line [costs-more-than-it-saves]"),
        "{verbose}"
    );
    assert!(
        !verbose.contains("write before it"),
        "the program is not there\n{verbose}"
    );
}

#[test]
fn rust_gets_the_instruction_and_no_edit() {
    let (_kept, path, mut file) = three();
    file.hints.truncate(1);
    file.hints[0].load.file = Some("src/lib.rs".to_owned());
    let text = hints(&path, &file, &["--format", "text"])
        .expect_code(0)
        .stdout;
    assert!(
        text.contains("asm!(\"prefetchw [{}]\"") && !text.contains("-mprfchw"),
        "{text}"
    );
    let diff = hints(&path, &file, &["--format", "diff"]).expect_code(0);
    assert!(
        diff.stdout.is_empty() && diff.stderr.contains("Rust has no stable"),
        "{}",
        diff.said()
    );
}

#[test]
fn sarif_has_a_result_per_hint_with_places_that_code_scanning_takes() {
    let (_kept, path, file) = three();
    hints(
        &path,
        &file,
        &["--format", "sarif", "--any-source", "-o", "log.sarif"],
    )
    .expect_code(0);
    let text = fs::read_to_string(path.join("log.sarif")).expect("it was written");
    let log: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 3);
    let mut prints = Vec::new();
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("a rule") as usize;
        assert_eq!(result["ruleId"], rules[index]["id"]);
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|text| text.contains("ownership"))
        );
        prints.push(
            result["partialFingerprints"]["cohtrace/v1"]
                .as_str()
                .expect("a fingerprint"),
        );
    }
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 3, "each is one of its own");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/a%20b.c");
    assert_eq!(place["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    // Bytes before the column: a tab, and two letters of two bytes each.
    assert_eq!(
        (
            &place["region"]["startLine"],
            &place["region"]["startColumn"]
        ),
        (&3.into(), &15.into())
    );
    let fix = &results[1]["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(
        fix["insertedContent"]["text"],
        "\t__builtin_prefetch((const void *)&(n->count), 1, 3);\n"
    );
    assert!(
        results[0].get("fixes").is_none(),
        "two statements are on its line"
    );
    assert_valid(&path.join("log.sarif"));

    // Lines above move it; the fingerprint stays.
    let moved = format!("// one\n// two\n{SOURCE}");
    fs::write(path.join("src/a b.c"), moved).expect("it is ours");
    let mut later = file.clone();
    later.hints[0].load.line = Some(5);
    let again = hints(&path, &later, &["--format", "sarif"])
        .expect_code(0)
        .stdout;
    let again: Value = serde_json::from_str(&again).expect("it is JSON");
    assert_eq!(
        again["runs"][0]["results"][0]["partialFingerprints"],
        results[0]["partialFingerprints"]
    );
}

#[test]
fn hints_are_selected_by_what_they_save_and_what_follows() {
    let (_kept, path, file) = three();
    let ids = |words: &[&str]| {
        let ended = hints(&path, &file, words).expect_code(0);
        let file = HintFile::parse(&ended.stdout).expect("the default is JSON");
        file.hints
            .iter()
            .map(|hint| hint.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["H1", "H2", "H3"]);
    assert_eq!(ids(&["--min-saved", "1"]), ["H1", "H2"]);
    assert_eq!(ids(&["--min-saved", "-50"]), ["H1", "H2", "H3"]);
    assert_eq!(ids(&["--kind", "compare-and-swap,fenced"]), ["H2"]);
    assert_eq!(ids(&["--kind", "plain"]), ["H1", "H3"]);
    // The third names no module.
    assert_eq!(ids(&["--module", "program"]), ["H1", "H2"]);
    assert!(ids(&["--module", "libc.so.6", "--module", "prog"]).is_empty());
    hints(&path, &file, &["--check"]).expect_code(1);
    let none = hints(&path, &file, &["--check", "--kind", "fenced"]).expect_code(0);
    assert!(none.stderr.contains("no load hints"), "{}", none.said());
    for format in ["text", "sarif", "diff", "clang-tidy"] {
        hints(&path, &file, &["--format", format, "--kind", "fenced"]).expect_code(0);
    }
}

#[test]
fn what_is_no_hints_file_is_refused_with_the_reason() {
    let (_kept, path, file) = three();
    let mut newer = file.clone();
    newer.version = 7;
    let cut = &file.render()[..400];
    for (text, words) in [
        (newer.render().as_str(), "version 7"),
        ("{\"format\": \"other\"}", "\"other\""),
        (cut, "not a hints file"),
        ("", "not a hints file"),
    ] {
        fs::write(path.join("bad.json"), text).expect("it is ours");
        let mut tool = cohtrace(["hints", "bad.json"]);
        let ended = run(tool.current_dir(&path), GRACE).expect_code(2);
        assert!(
            ended.stderr.contains(words) && ended.stderr.contains("bad.json"),
            "{}",
            ended.said()
        );
    }
    for input in ["gone.json", "src"] {
        let mut tool = cohtrace(["hints", input]);
        let ended = run(tool.current_dir(&path), GRACE).expect_code(2);
        assert!(
            ended.stderr.contains(input) && ended.stdout.is_empty(),
            "{}",
            ended.said()
        );
    }
}
