//! What `simulate` says of hints in code that you build is what a rebuild reaches, in a program half of whose messages are
//! the C library's.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace_tests::{
    disassembly::prefetches,
    live::{GRACE, has_emulator},
    tool::{Ended, cohtrace, run},
    turn,
};
use serde_json::Value;

/// Threads, one after the other, change each of some lines by a load and a store. Before that the library does so with
/// fresh lines, and starts up.
const SOURCE: &str = r#"
#include <locale.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 40
#define THREADS 12
#define TEXTS 400

static struct { _Alignas(64) volatile long n; } lines[LINES];
static struct { _Alignas(64) char text[64]; } texts[TEXTS];

static void *change(void *unused) {
    for (int i = 0; i < LINES; i++)
        lines[i].n = lines[i].n * 3 + 1;
    return unused;
}

static void start(void) {
    regex_t pattern;
    char text[64];
    setlocale(LC_ALL, "C.UTF-8");
    if (regcomp(&pattern, "a(b|c)*d+[0-9]{2,4}", REG_EXTENDED) || regexec(&pattern, "abcbcd12", 0, 0, 0))
        exit(1);
    regfree(&pattern);
    snprintf(text, sizeof text, "%.17g %s", 3.14, "x");
    for (int i = 0; i < TEXTS; i++)
        strcat(texts[i].text, text);
}

int main(void) {
    start();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, change, 0) || pthread_join(thread, 0))
            return 1;
    }
    long n = 0;
    for (int i = 0; i < THREADS; i++)
        n = n * 3 + 1;
    return lines[LINES - 1].n == n && texts[TEXTS - 1].text[0] == '3' ? 0 : 2;
}
"#;

/// Most by which messages of the rebuilt program may differ from the prediction, percent of the latter.
const MOST_OFF: f64 = 2.0;

struct Bench(tempfile::TempDir);

impl Bench {
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tool(&self, arguments: &[&str]) -> Ended {
        let mut command = cohtrace(arguments);
        run(command.current_dir(self.0.path()), GRACE)
    }

    fn build(&self, name: &str, arguments: &[&OsStr]) {
        let mut cc = Command::new("cc");
        cc.args([
            "-std=gnu11",
            "-O2",
            "-g",
            "-fno-builtin-strcat",
            "-pthread",
            "-o",
            name,
        ]);
        cc.args(arguments)
            .arg("startup.c")
            .current_dir(self.0.path());
        let built = cc.output().expect("a C compiler");
        assert!(built.status.success(), "{built:?}");
    }

    fn record(&self, program: &str) {
        let (session, path) = (format!("{program}.coh"), format!("./{program}"));
        let options = ["record", "-q", "--source", "emulate", "-o"];
        let rest = [session.as_str(), "--", &path];
        self.tool(&[&options[..], &rest].concat()).expect_code(0);
    }

    fn simulate(&self, session: &str, options: &[&str]) -> Value {
        let ended = self.tool(&[&["simulate", "-q", "--json", session], options].concat());
        let json: Value = serde_json::from_str(&ended.expect_code(0).stdout).expect("JSON");
        json["sessions"][0].clone()
    }
}

fn messages(session: &Value, scenario: &str) -> f64 {
    let figure = &session[scenario]["transactions"];
    figure
        .as_f64()
        .unwrap_or_else(|| panic!("{scenario}: {session}"))
}

#[test]
fn a_rebuild_saves_what_is_said_of_your_code_and_not_what_all_hints_would() {
    if !has_emulator() {
        return;
    }
    let _turn = turn::alone();
    let bench = Bench(tempfile::tempdir().expect("a temporary directory"));
    fs::write(bench.at("startup.c"), SOURCE).expect("room");
    bench.build("plain", &[]);
    bench.record("plain");
    // All loads that save anything, the one-off ones of the library too.
    let decide = [
        "hints",
        "plain.coh",
        "--min-requests",
        "1",
        "-q",
        "-o",
        "hints.json",
    ];
    bench.tool(&decide).expect_code(0);
    let install = ["as", "--install", "bin", "--hints", "hints.json"];
    bench.tool(&install).expect_code(0);
    let bin = bench.at("bin");
    bench.build("hinted", &[OsStr::new("-B"), bin.as_os_str()]);
    assert_eq!(prefetches(&bench.at("plain")).expect("objdump"), []);
    assert_eq!(prefetches(&bench.at("hinted")).expect("objdump").len(), 1);
    bench.record("hinted");

    for options in [
        &[][..],
        &["--after", "change"],
        &["--after", "second-thread"],
    ] {
        let given = [options, &["--hints", "hints.json"]].concat();
        let predicted = bench.simulate("plain.coh", &given);
        let rebuilt = bench.simulate("hinted.coh", options);
        let (before, after) = (
            messages(&predicted, "unmodified"),
            messages(&rebuilt, "unmodified"),
        );
        let (yours, all) = (
            messages(&predicted, "your_code_all_hinted"),
            messages(&predicted, "all_hinted"),
        );
        let said = format!(
            "{options:?}: {before} messages, {yours} predicted, {all} with all, {after} rebuilt"
        );
        assert!((after - yours).abs() < yours * MOST_OFF / 100.0, "{said}");
        assert!(before - yours > before / 10.0, "{said}");
        // Of the whole run, and not behind the start, all hints promise what no rebuild has.
        let promised = (after - all).abs() > all * MOST_OFF / 100.0;
        assert!(promised || !options.is_empty(), "{said}");
    }
    assert_one_offs_are_apart(&bench);
}

/// By default the library's start is told, and not hinted.
fn assert_one_offs_are_apart(bench: &Bench) {
    let text = bench
        .tool(&["hints", "plain.coh", "-q"])
        .expect_code(0)
        .stdout;
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let one_off = &file["evidence"]["one_off"];
    let loads = one_off["loads"].as_u64().expect("a number");
    assert!(loads > 10 && one_off["saved"].as_u64().expect("a number") >= 2 * loads);
    let few = |hint: &&Value| hint["expected"]["requests"].as_u64() < Some(8);
    let hints = file["hints"].as_array().expect("hints");
    assert_eq!(hints.iter().find(few), None);
    let yours = |hint: &&Value| {
        let module = hint["load"]["module"].as_str();
        module.is_some_and(|path| Path::new(path).ends_with("plain"))
    };
    assert!(hints.iter().any(|hint| yours(&hint)));
}
