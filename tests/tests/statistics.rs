//! `cohtrace report --stats` on sessions that were made up, and on an emulated program whose counts are known.

mod emulated;

use std::path::Path;

use cohtrace::{
    access::{Access, Basis, Cost, Cpu, LineSize, Op, Pid, Tid},
    event::{Batch, Context, ContextKind, Tally},
    session::{Meta, SessionWriter, WriterOptions},
    statistics::{Fold, Looked, Options, Per, Slices, json, read_csv, select},
};
use cohtrace_tests::{
    live::GRACE,
    tool::{Ended, cohtrace, run},
};
use serde_json::Value;

const MS: u64 = 1_000_000;
const START: u64 = 5_000 * MS;

fn meta() -> Meta {
    Meta {
        start_ns: Some(START),
        end_ns: Some(START + 1000 * MS),
        frequency_hz: Some(1000),
        ..Meta::new()
    }
}

/// A second in which one thread stores each millisecond, and another one in the second half, so many bytes apart; with
/// so many samples lost.
fn stream(apart: u64, lost: u64) -> Batch {
    let sample = |n: u64, thread: u32| Access {
        time_ns: START + n * MS + u64::from(thread),
        addr: 0x5000_0000 + u64::from(thread) * apart,
        ip: 0x40_1000,
        cost: Cost(1_000_000),
        pid: Pid(10),
        tid: Tid(11 + thread),
        cpu: Cpu(thread),
        size: 8,
        op: Op::Store,
        basis: Basis::Stalled,
        ..Access::BLANK
    };
    let accesses = (0..1000).flat_map(|n| {
        let threads = if n < 500 { 0..1 } else { 0..2 };
        threads.map(move |thread| sample(n, thread))
    });
    Batch {
        accesses: accesses.collect(),
        context: vec![Context {
            time_ns: START + 500 * MS,
            kind: ContextKind::Fork {
                pid: Pid(10),
                tid: Tid(12),
                parent_pid: Pid(10),
            },
        }],
        tally: Tally {
            produced: 1500 + lost,
            samples: 1500,
            attributed: 1500,
            lost: [(Cpu(1), lost)].into(),
            cost: Cost(1500 * MS),
            ..Tally::default()
        },
        ..Batch::default()
    }
}

fn write(path: &Path, apart: u64, lost: u64) {
    let mut writer =
        SessionWriter::create(path, meta(), &WriterOptions::default()).expect("a new session");
    let batch = stream(apart, lost);
    writer.append(&batch).expect("room for a batch");
    writer.finish(meta()).expect("room for the rest");
}

/// `shared.coh`, `apart.coh` and `lossy.coh` in a directory of their own.
fn sessions() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(&directory.path().join("shared.coh"), 8, 0);
    write(&directory.path().join("apart.coh"), 64, 0);
    write(&directory.path().join("lossy.coh"), 8, 3);
    directory
}

fn stats(directory: &Path, words: &[&str]) -> Ended {
    let mut tool = cohtrace(["report", "--quiet"]);
    run(tool.args(words).current_dir(directory), GRACE)
}

/// By key, the value of one statistic in the whole run and in each slice.
fn values(directory: &Path, statistic: &str, words: &[&str]) -> Vec<(String, Value, Vec<Value>)> {
    let named = format!("--stats={statistic}");
    let words = [&[named.as_str(), "--json"], words].concat();
    let ended = stats(directory, &words).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).expect("it is JSON");
    assert_eq!(
        (&json["schema"], &json["kind"]),
        (&1.into(), &"stats".into())
    );
    let keys = json["keys"].as_array().expect("there are keys").iter();
    let of_key = |key: &Value| {
        let values = &key["values"][0];
        let slices = values["slices"].as_array().expect("slices").iter();
        (
            key["key"].as_str().expect("a name").to_owned(),
            values["total"]["value"].clone(),
            slices.map(|value| value["value"].clone()).collect(),
        )
    };
    keys.map(of_key).collect()
}

#[test]
fn each_half_of_a_run_has_what_happened_in_it() {
    let directory = sessions();
    let words = ["--interval", "500ms", "--per", "cpu", "shared.coh"];
    let found = values(directory.path(), "samples", &words);
    let of = |name: &str, total: u64, halves: [u64; 2]| {
        (
            name.to_owned(),
            Value::from(total),
            halves.map(Value::from).to_vec(),
        )
    };
    let expected = [
        of("all", 1500, [500, 1000]),
        of("cpu 0", 1000, [500, 500]),
        of("cpu 1", 500, [0, 500]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn where_samples_were_lost_nothing_is_not_known() {
    let directory = sessions();
    let words = ["--interval", "500ms", "--per", "cpu", "lossy.coh"];
    let found = values(directory.path(), "samples", &words);
    assert_eq!(found[2].2, [Value::Null, 500.into()]);
    assert_eq!(found[1].2, [500, 500]);
}

#[test]
fn waits_are_shared_where_threads_share_the_line_and_private_where_not() {
    let directory = sessions();
    let total = |statistic, session| values(directory.path(), statistic, &[session])[0].1.clone();
    let all = Value::from(1500 * MS);
    for (session, shared) in [("shared.coh", true), ("apart.coh", false)] {
        let [yes, no] = if shared {
            [&all, &0.into()]
        } else {
            [&0.into(), &all]
        };
        assert_eq!(&total("time.waiting_shared", session), yes, "{session}");
        assert_eq!(&total("time.waiting_private", session), no, "{session}");
    }
}

#[test]
fn slices_of_any_length_add_up_to_the_same_and_csv_says_the_same_as_json() {
    let directory = sessions();
    for interval in ["1ms", "7ms", "100ms", "1s"] {
        let words = ["--interval", interval, "--per", "thread", "shared.coh"];
        let found = values(directory.path(), "time.sampled", &words);
        let csv = stats(
            directory.path(),
            &[&["--stats=time.sampled", "--csv"], &words[..]].concat(),
        );
        let lines = read_csv(&csv.expect_code(0).stdout);
        for (key, total, slices) in &found {
            let sum: u64 = slices
                .iter()
                .map(|value| value.as_u64().expect("a count"))
                .sum();
            assert_eq!(Value::from(sum), *total, "{key} by {interval}");
            let of_key = lines.iter().filter(|line| line[3] == *key);
            let amounts: Vec<u64> = of_key
                .map(|line| line[6].parse().expect("a count"))
                .collect();
            assert_eq!(amounts[0], sum, "{key} by {interval}");
            assert_eq!(amounts[1..].iter().sum::<u64>(), sum, "{key} by {interval}");
            assert_eq!(amounts.len(), 1 + slices.len());
        }
    }
}

/// What a live command does: it feeds what comes, and never reads a session.
#[test]
fn a_stream_that_is_counted_as_it_comes_and_its_session_say_the_same() {
    let directory = sessions();
    let live = |apart: u64| {
        let options = Options {
            slices: Slices::new(START, Some(START + 1000 * MS), Some(50 * MS)).expect("slices"),
            per: Per::Thread,
            statistics: select(None).expect("all"),
            line_size: LineSize::B64,
            looked: Looked::default(),
        };
        let mut fold = Fold::new(options).expect("few values");
        let whole = stream(apart, 3);
        let rest = |tally| Batch {
            tally,
            ..Batch::default()
        };
        for (n, part) in whole.accesses.chunks(77).enumerate() {
            let batch = Batch {
                accesses: part.to_vec(),
                context: if n == 0 {
                    whole.context.clone()
                } else {
                    Vec::new()
                },
                ..Batch::default()
            };
            fold.feed(&batch).expect("few values");
        }
        fold.feed(&rest(whole.tally)).expect("few values");
        json(&fold.finish().expect("few values"), "lossy")
    };
    let words = [
        "--stats",
        "--interval",
        "50ms",
        "--per",
        "thread",
        "--json",
        "lossy.coh",
    ];
    let recorded = stats(directory.path(), &words).expect_code(0).stdout;
    assert_eq!(live(8), recorded);
    assert_ne!(live(64), recorded);
}

#[test]
fn text_has_a_strip_for_each_key_and_fits_a_page() {
    let directory = sessions();
    let words = [
        "--stats=samples,threads.started",
        "--interval",
        "100ms",
        "--per",
        "cpu",
        "shared.coh",
    ];
    let said = stats(directory.path(), &words).expect_code(0);
    assert_eq!(said.stderr, "");
    let has = |text: &str| {
        said.stdout
            .lines()
            .any(|line| line.trim_start().starts_with("cpu") && line.contains(text))
    };
    assert!(
        has("|@@@@@@@@@@|") && has("|     @@@@@|"),
        "{}",
        said.said()
    );
    assert!(
        said.stdout.lines().all(|line| line.chars().count() <= 100),
        "{}",
        said.said()
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let directory = sessions();
    for (words, told) in [
        (
            &["--stats", "--interval", "0ms", "shared.coh"][..],
            "give one such as 100ms",
        ),
        (
            &["--stats", "--interval", "2s", "shared.coh"],
            "the run is 1.000000 s long",
        ),
        (
            &["--stats=samples", "--interval", "100ns", "shared.coh"],
            "an interval of 1us would do",
        ),
        (
            &["--stats=cycles", "shared.coh"],
            "no statistic is called \"cycles\"; there are samples,",
        ),
        (
            &["--stats=samples,samples", "shared.coh"],
            "samples is asked for twice",
        ),
        (
            &["--stats", "--interval", "5", "shared.coh"],
            "expected a length of time",
        ),
        (&["--interval", "5ms", "shared.coh"], "--stats"),
        (
            &["--stats", "--latent", "shared.coh"],
            "cannot be used with",
        ),
        (&["--stats"], "NAME.coh"),
    ] {
        let ended = stats(directory.path(), words).expect_code(2);
        assert!(ended.stderr.contains(told), "{words:?}: {}", ended.said());
        assert_eq!(ended.stdout, "", "{words:?}");
    }
    let list = stats(directory.path(), &["--stats", "--list"])
        .expect_code(0)
        .stdout;
    assert!(
        list.contains("time.spinning") && list.contains("requests.upgrades"),
        "{list}"
    );
}
