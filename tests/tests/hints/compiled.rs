//! Programs that a compiler built: each column that it gives to a line is asked for, the edits are applied, and the program must still
//! compile without a warning and pass its own check.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use cohtrace::hint::file::{HintFile, HintedCode};
use cohtrace_tests::live::skipped_core;

use super::{file, has, hint, hints, succeed};

/// Sources; a line with `want: E` gets a prefetch of E (and no other), one with `may: E` may get it, where the optimiser
/// left the load in; every other line none.
const SOURCES: [(&str, &str); 6] = [
    ("members.c", include_str!("sources/members.c")),
    ("arrays.c", include_str!("sources/arrays.c")),
    ("globals.c", include_str!("sources/globals.c")),
    ("never.c", include_str!("sources/never.c")),
    ("classes.cpp", include_str!("sources/classes.cpp")),
    ("never.cpp", include_str!("sources/never.cpp")),
];

fn compiler(family: &str, name: &str) -> &'static str {
    let is_cpp = std::path::Path::new(name).extension() == Some("cpp".as_ref());
    match (family, is_cpp) {
        ("gcc", false) => "gcc",
        ("gcc", true) => "g++",
        (_, false) => "clang",
        (_, true) => "clang++",
    }
}

fn compile(family: &str, level: &str, directory: &Path, name: &str) -> Command {
    let mut command = Command::new(compiler(family, name));
    let flags = ["-g", level, "-Wall", "-Wextra", "-Werror", "-mprfchw"];
    command.current_dir(directory).args(flags).arg(name);
    command
}

/// Every line and column that instructions of the file have in the compiler's assembly.
fn places(family: &str, level: &str, directory: &Path, name: &str) -> BTreeSet<(u32, u32)> {
    let assembly = succeed(compile(family, level, directory, name).args(["-S", "-o", "-"]));
    let lines = assembly.lines().filter_map(|line| {
        let mut words = line.trim().strip_prefix(".loc")?.split_whitespace().skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    });
    lines.filter(|(line, _)| *line > 0).collect()
}

fn build_id(program: &Path) -> String {
    let notes = succeed(Command::new("readelf").arg("-n").arg(program));
    let id = notes
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned));
    id.expect("the linker writes a build-id")
}

/// Code of the source's line in the program.
fn code(directory: &Path, name: &str, line: u32, column: u32, build_id: &str) -> HintedCode {
    HintedCode {
        module: Some(directory.join("program").to_string_lossy().into_owned()),
        build_id: Some(build_id.to_owned()),
        offset: Some("0x1139".to_owned()),
        ip: "0x401139".to_owned(),
        function: Some("f".to_owned()),
        file: Some(directory.join(name).to_string_lossy().into_owned()),
        line: Some(line),
        column: Some(column),
        ..HintedCode::default()
    }
}

/// What the source says of its lines: line, and the expressions that may be prefetched there.
fn marked<'a>(text: &'a str, mark: &str) -> Vec<(u32, Vec<&'a str>)> {
    let lines = (1..).zip(text.lines());
    let marked = lines.filter_map(|(n, line)| Some((n, line.split_once(mark)?.1)));
    marked
        .map(|(n, wanted)| {
            (
                n,
                wanted.trim_end_matches("*/").trim().split(" or ").collect(),
            )
        })
        .collect()
}

fn wanted(text: &str) -> Vec<(u32, Vec<&str>)> {
    marked(text, "want: ")
}

/// The prefetches of an edited text, with the number that the line behind had before.
fn added(text: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut n = 1;
    for line in text.lines() {
        let call = line
            .trim()
            .strip_prefix("__builtin_prefetch((const void *)&(");
        if let Some(expression) = call.and_then(|rest| rest.strip_suffix("), 1, 3);")) {
            found.push((n, expression.to_owned()));
        } else {
            n += 1;
        }
    }
    found
}

fn edit_with(family: &str) {
    for (name, text) in SOURCES {
        for level in ["-O0", "-O2"] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let at = directory.path().canonicalize().expect("it is there");
            fs::write(at.join(name), text).expect("it is ours");
            succeed(compile(family, level, &at, name).args(["-Wl,--build-id", "-o", "program"]));
            let build_id = build_id(&at.join("program"));
            let mut asked = places(family, level, &at, name);
            // The check at the end has no loads that are meant.
            let main = (1..)
                .zip(text.lines())
                .find(|(_, line)| line.starts_with("int main"));
            asked.retain(|(line, _)| main.is_some_and(|(main, _)| *line < main));
            let loads = asked
                .iter()
                .map(|&(line, column)| code(&at, name, line, column, &build_id));
            let all = file((1..).zip(loads).map(|(n, load)| hint(n, load)).collect());

            let diff = hints(&at, &all, &["--format", "diff", "-o", "hints.patch"]).expect_code(0);
            let fixes =
                hints(&at, &all, &["--format", "clang-tidy", "-o", "fixes.yaml"]).expect_code(0);
            assert_eq!(diff.stderr, fixes.stderr, "both leave out the same");
            let wanted = wanted(text);
            if wanted.is_empty() {
                let patch = fs::read_to_string(at.join("hints.patch")).expect("just written");
                assert_eq!(patch, "", "{family} {level} {name}\n{}", diff.stderr);
                assert!(diff.stderr.contains("0 of "), "{}", diff.said());
                continue;
            }
            succeed(
                Command::new("patch")
                    .args(["-p1", "--fuzz=0", "-i", "hints.patch"])
                    .current_dir(&at),
            );
            let patched = fs::read_to_string(at.join(name)).expect("it is there");
            let added = added(&patched);
            for (line, expression) in &added {
                let fits = wanted
                    .iter()
                    .chain(&marked(text, "may: "))
                    .any(|(n, all)| n == line && all.contains(&expression.as_str()));
                assert!(
                    fits,
                    "{family} {level} {name}:{line} got {expression}\n{}",
                    diff.stderr
                );
            }
            for (line, _) in &wanted {
                // A load that the optimiser took away has no place.
                let is_there = asked.iter().any(|(n, _)| n == line);
                let is_edited = added.iter().any(|(n, _)| n == line);
                assert!(
                    is_edited || !is_there,
                    "{family} {level} {name}:{line} got nothing\n{}",
                    diff.stderr
                );
            }
            let mut again = compile(family, level, &at, name);
            succeed(again.args(["-o", "edited"]));
            succeed(&mut Command::new(at.join("edited")));
            let code = succeed(Command::new("objdump").arg("-d").arg(at.join("edited")));
            let count = code.matches("prefetchw").count();
            assert!(count > 0, "no prefetchw in the code of {name}");
            apply_fixes(&at, name, text, &patched);
        }
    }
}

/// The fixes give the same text as the diff.
fn apply_fixes(directory: &Path, name: &str, text: &str, patched: &str) {
    let Some(tool) = ["clang-apply-replacements", "clang-apply-replacements-14"]
        .into_iter()
        .find(|name| has(name, "--version"))
    else {
        return skipped_core(
            "no clang-apply-replacements: the YAML of fixes is not applied (apt install clang-tools)",
        );
    };
    fs::write(directory.join(name), text).expect("it is ours");
    fs::create_dir(directory.join("fixes")).expect("it is ours");
    fs::rename(
        directory.join("fixes.yaml"),
        directory.join("fixes/fixes.yaml"),
    )
    .expect("just written");
    succeed(Command::new(tool).arg("fixes").current_dir(directory));
    let fixed = fs::read_to_string(directory.join(name)).expect("it is there");
    assert_eq!(fixed, patched, "the fixes and the diff differ");
}

#[test]
fn programs_of_gcc_are_edited_where_it_is_safe_and_still_pass() {
    edit_with("gcc");
}

#[test]
fn programs_of_clang_are_edited_where_it_is_safe_and_still_pass() {
    if !has("clang", "--version") {
        return skipped_core("no clang");
    }
    edit_with("clang");
}

#[test]
fn a_source_that_changed_since_the_build_is_left_alone_and_said_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = directory.path().canonicalize().expect("it is there");
    let (name, text) = SOURCES[0];
    fs::write(at.join(name), text).expect("it is ours");
    succeed(compile("gcc", "-O2", &at, name).args(["-Wl,--build-id", "-o", "program"]));
    let build_id = build_id(&at.join("program"));
    let (line, _) = wanted(text)[0];
    let one = |build_id: &str| {
        let mut one = hint(1, code(&at, name, line, 1, build_id));
        one.load.column = None;
        one.field = Some(".count".to_owned());
        file(vec![one])
    };
    let diff = |file: HintFile, more: &[&str]| {
        hints(&at, &file, &[&["--format", "diff"], more].concat()).expect_code(0)
    };
    assert!(
        diff(one(&build_id), &[])
            .stdout
            .contains("+\t__builtin_prefetch")
    );

    let other = diff(one("c0ffee"), &[]);
    assert!(
        other.stdout.is_empty() && other.stderr.contains("built again"),
        "{}",
        other.said()
    );
    let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
    let source = fs::File::options()
        .append(true)
        .open(at.join(name))
        .expect("it is there");
    source.set_modified(later).expect("it is ours");
    let newer = diff(one(&build_id), &[]);
    assert!(
        newer.stdout.is_empty() && newer.stderr.contains("newer than"),
        "{}",
        newer.said()
    );
    assert!(
        diff(one(&build_id), &["--any-source"])
            .stdout
            .contains("+\t__builtin_prefetch")
    );

    fs::remove_file(at.join("program")).expect("it is ours");
    let gone = diff(one(&build_id), &[]);
    assert!(
        gone.stdout.is_empty() && gone.stderr.contains("cannot be said"),
        "{}",
        gone.said()
    );
    fs::remove_file(at.join(name)).expect("it is ours");
    let gone = diff(one(&build_id), &["--any-source"]);
    assert!(
        gone.stdout.is_empty() && gone.stderr.contains("No such file"),
        "{}",
        gone.said()
    );
    let text = hints(&at, &one(&build_id), &["--format", "text"]).expect_code(0);
    assert!(
        text.stdout.contains("warning: this load fetches"),
        "{}",
        text.said()
    );
}
