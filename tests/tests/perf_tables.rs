//! Exported sessions read in perf's own tools, which count what our c2c tables count.

use std::{
    collections::BTreeMap,
    fs,
    num::{NonZeroU32, NonZeroU64},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use cohtrace::{
    access::{Access, Basis, Cpu, Measured, Op, Pid, Tid},
    data_source::DataSource,
    event::{Batch, Context, ContextKind, Mapping},
    session::{Meta, SessionWriter, WriterOptions},
};
use cohtrace_tests::{
    live::{GRACE, skipped_core},
    tool::{Ended, cohtrace, run},
};

use super::import::recordings;

const CODE: u64 = 0x40_0000;
const PRIVATE: u64 = 0x7f00_0000_0000;
const SHARED: [u64; 2] = [0x7f11_0000_0000, 0x7f22_0000_0000];
const UNMAPPED: u64 = 0x7f33_0000_0000;
const PIDS: [u32; 2] = [100, 200];

fn has_perf() -> bool {
    let found = Command::new("perf").arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skipped_core("perf is not installed");
    }
    found
}

/// Every operation with every level, snoop, remote, hops and peer bit that `c2c_decode_stats` asks for, and
/// locks and blocks in turn.
fn words() -> Vec<u64> {
    // Bits as include/uapi/linux/perf_event.h places them.
    let operations = [0, 0x1, 0x2, 0x4, 0x6, 0x8, 0x10];
    let levels = [
        0, 0x1, 0x2, 0x4, 0xa, 0xc, 0x12, 0x22, 0x42, 0x44, 0x82, 0x102, 0x202, 0x402, 0x802,
        0x404, 0x1002, 0x2002, 0x84, 0x2a, 0x62, 0x46, 0xe,
    ];
    let mut all = Vec::new();
    for op in operations {
        for level in levels {
            for snoop in [0, 0x1, 0x2, 0x4, 0x8, 0x10] {
                for (remote, hops, extended) in (0..8).map(|n| (n & 1, n >> 1 & 1, n & 4)) {
                    let lock = [1, 2, 0][all.len() % 3];
                    let blocked = [1, 2, 4, 6, 0][all.len() % 5];
                    all.push(
                        op | level << 5
                            | snoop << 19
                            | lock << 24
                            | 1 << 26
                            | 0xf << 33
                            | remote << 37
                            | extended >> 1 << 38
                            | blocked << 40
                            | hops << 43,
                    );
                }
            }
        }
    }
    all
}

fn operation(word: u64) -> Op {
    match (word & 2, word & 4, word & 8) {
        (2, 4, _) => Op::Rmw,
        (2, ..) => Op::Load,
        (0, 4, _) => Op::Store,
        (0, 0, 8) => Op::Prefetch,
        _ => Op::Unknown,
    }
}

fn mapping(start: u64, shared: bool, executable: bool, name: &str) -> Mapping {
    Mapping {
        start,
        len: 0x1_0000,
        file_offset: 0,
        dev: u64::from(shared),
        inode: if shared { 4711 } else { 0 },
        shared,
        executable,
        writable: !executable,
        name: name.to_owned(),
        build_id: None,
        stamp: None,
    }
}

/// Two processes that share memory under two addresses.
fn context() -> Vec<Context> {
    let mut all = Vec::new();
    for (pid, shared) in PIDS.into_iter().zip(SHARED) {
        let comm = ContextKind::Comm {
            pid: Pid(pid),
            tid: Tid(pid),
            comm: format!("worker{pid}"),
            exec: true,
        };
        let mappings = [
            mapping(CODE, false, true, "//anon"),
            mapping(PRIVATE, false, false, "//anon"),
            mapping(shared, true, false, "/dev/shm/ring"),
        ];
        let mappings = mappings.map(|mapping| ContextKind::Mapping {
            pid: Pid(pid),
            mapping: Arc::new(mapping),
        });
        all.extend([comm].into_iter().chain(mappings));
    }
    all.into_iter()
        .map(|kind| Context { time_ns: 1, kind })
        .collect()
}

fn access(n: usize, word: Option<u64>) -> Access {
    let of_process = n % 2;
    let line = 64 * (n as u64 % 31) + 8 * (n as u64 % 5);
    let addr = match n % 13 {
        // Of one process: perf takes unmapped addresses of all for the same memory.
        0 if of_process == 0 => UNMAPPED + line,
        1 if of_process == 0 && n.is_multiple_of(5) => 0,
        2..6 => SHARED[of_process] + line,
        _ => PRIVATE + line,
    };
    Access {
        time_ns: 1000 + 10 * n as u64,
        addr,
        ip: if n.is_multiple_of(17) {
            UNMAPPED
        } else {
            CODE + 4 * (n as u64 % 7)
        },
        pid: Pid(PIDS[of_process]),
        tid: Tid(PIDS[of_process]),
        cpu: Cpu(n as u32 % 3),
        size: 8,
        op: word.map_or([Op::Load, Op::Store, Op::Rmw][n % 3], operation),
        basis: Basis::Sampled,
        locked: word.is_some_and(|word| word >> 24 & 2 != 0),
        kernel: false,
        measured: Measured {
            source: word.and_then(DataSource::new),
            latency_cycles: NonZeroU32::new(n as u32 % 400),
            phys_addr: NonZeroU64::new(if n.is_multiple_of(3) {
                0x1234_5000 + line
            } else {
                0
            }),
            repeats: 0,
        },
        ..Access::BLANK
    }
}

fn session(directory: &Path, name: &str, accesses: Vec<Access>) -> PathBuf {
    let path = directory.join(name);
    let mut meta = Meta::new();
    meta.machine.arch = Some("x86_64".to_owned());
    meta.machine.online_cpus = Some(4);
    let mut writer =
        SessionWriter::create(&path, meta.clone(), &WriterOptions::default()).expect("a session");
    let batch = Batch {
        accesses,
        context: context(),
        ..Batch::default()
    };
    writer.append(&batch).expect("it is taken");
    writer.finish(meta).expect("it ends");
    path
}

fn export(session: &Path, to: &Path, more: &[&str]) -> Ended {
    let mut command = cohtrace(["export", "--perf-data"]);
    run(command.arg(to).arg(session).args(more), GRACE)
}

/// What perf prints, and what it complains of.
fn perf(arguments: &[&str], file: &Path) -> (String, String) {
    let output = Command::new("perf")
        .args(arguments)
        .args(["-f", "-i"])
        .arg(file)
        .output()
        .expect("perf runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "perf {arguments:?}: {err}");
    (out, err)
}

fn tables(session: &Path) -> String {
    let ended = run(cohtrace(["report", "--format", "c2c"]).arg(session), GRACE);
    ended.expect_code(0).stdout
}

/// The rows `label : value` of a table, in order.
fn entries(text: &str, title: &str) -> Vec<(String, String)> {
    let at = text
        .find(title)
        .unwrap_or_else(|| panic!("no {title}:\n{text}"));
    let rows = text[at..]
        .lines()
        .skip(2)
        .take_while(|line| line.contains(" : "));
    rows.map(|line| {
        let (label, value) = line.split_once(" : ").expect("a row");
        // Of nothing, glibc prints -nan and we n/a.
        let value = value.trim().replace("-nan%", "n/a").replace("nan%", "n/a");
        (label.trim().to_owned(), value)
    })
    .collect()
}

const EVENTS: &str = "Trace Event Information";
const GLOBAL: &str = "Global Shared Cache Line Event Information";

/// Numbers of the table of lines, without index, address and node.
fn line_rows(text: &str, before_count: usize, skip: &[usize], columns: usize) -> Vec<Vec<String>> {
    let from = text
        .find("Shared Data Cache Line Table")
        .expect("the table");
    let to = text
        .find("Shared Cache Line Distribution Pareto")
        .expect("the next");
    let mut rows: Vec<Vec<String>> = (text[from..to].lines())
        .filter(|line| !line.starts_with('#') && line.contains(" 0x"))
        .map(|line| {
            let words = line.split_whitespace().skip(before_count).take(columns);
            let kept = words.enumerate().filter(|(n, _)| !skip.contains(n));
            kept.map(|(_, word)| word.to_owned()).collect()
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn perf_counts_an_exported_session_row_by_row_as_we_do() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let accesses = words().into_iter().enumerate();
    let accesses = accesses.map(|(n, word)| access(n, Some(word))).collect();
    let session = session(directory.path(), "words.coh", accesses);
    let file = directory.path().join("perf.data");
    export(&session, &file, &[]).expect_code(0);
    let ours = tables(&session);
    let (theirs, _) = perf(&["c2c", "report", "--stdio"], &file);
    let events = entries(&ours, EVENTS);
    assert_eq!(events.len(), 35, "{ours}");
    assert_eq!(events, entries(&theirs, EVENTS));
    let silent: Vec<&str> = (events.iter())
        .filter(|(_, value)| value == "0")
        .map(|(label, _)| label.as_str())
        .collect();
    assert!(silent.is_empty(), "the samples do not show {silent:?}");
    let global = entries(&ours, GLOBAL);
    assert_eq!(global.len(), 13, "{ours}");
    assert_eq!(global, entries(&theirs, GLOBAL));
    // Ours: index, address, then 21 numbers of which two are perf's -d peer. Theirs: a node after the address.
    let mut rows = line_rows(&ours, 2, &[5, 6], 22);
    // perf leaves out lines without HITM, which we show when they are judged or have peer loads.
    rows.retain(|row| row[2] != "0");
    assert!(rows.len() > 30, "{ours}");
    assert_eq!(rows, line_rows(&theirs, 3, &[], 20));
}

#[test]
fn perf_reads_a_session_without_a_pmu_in_all_its_tools_and_complains_of_nothing() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let accesses = (1..500).map(|n| access(n, None)).collect();
    let session = session(directory.path(), "timer.coh", accesses);
    let file = directory.path().join("perf.data");
    export(&session, &file, &[]).expect_code(0);
    for tool in [
        &["script"][..],
        &["report", "--stdio"],
        &["mem", "report", "--stdio"],
        &["c2c", "report", "--stdio"],
        &["c2c", "report", "--stats"],
        &["evlist", "-v"],
    ] {
        let arguments = match tool {
            ["mem", ..] => vec!["mem", "report", "--stdio"],
            other => other.to_vec(),
        };
        let (out, err) = perf(&arguments, &file);
        assert!(!out.is_empty(), "{tool:?}");
        assert_eq!(err.trim(), "", "{tool:?}");
    }
    let (script, _) = perf(&["script", "-F", "event,addr"], &file);
    let of = |event: &str| script.lines().filter(|line| line.contains(event)).count();
    // Of three operations in turn, one is a store; a read-modify-write is with the loads.
    assert_eq!((of("mem-loads"), of("mem-stores")), (332, 167));
    assert_eq!(
        entries(&tables(&session), EVENTS),
        entries(&perf(&["c2c", "report", "--stats"], &file).0, EVENTS)
    );
}

#[test]
fn perf_counts_recordings_of_loads_as_we_do_but_for_kernel_memory_and_missing_addresses() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    for recordings::Loads { file, .. } in recordings::loads(directory.path()) {
        let name = file.display().to_string();
        let directory = tempfile::tempdir().expect("a directory");
        let session = directory.path().join("imported.coh");
        run(
            cohtrace(["import", "-q", "-o"]).arg(&session).arg(&file),
            GRACE,
        )
        .expect_code(0);
        let ours = tables(&session);
        let (theirs, _) = perf(&["c2c", "report", "--stats"], &file);
        for title in [EVENTS, GLOBAL] {
            // perf maps kernel memory if it finds that kernel's file.
            let comparable = |text: &str| -> BTreeMap<String, String> {
                let rows = entries(text, title).into_iter();
                rows.filter(|(label, _)| label != "No Page Map Rejects")
                    .collect()
            };
            assert!(!comparable(&ours).is_empty());
            assert_eq!(comparable(&ours), comparable(&theirs), "{name}");
        }
        // Exported again, perf counts the same.
        let again = directory.path().join("again.data");
        export(&session, &again, &[]).expect_code(0);
        let (exported, _) = perf(&["c2c", "report", "--stats"], &again);
        let without_kernel = |text: &str| -> Vec<(String, String)> {
            let rows = entries(text, EVENTS).into_iter();
            rows.filter(|(label, _)| label != "No Page Map Rejects")
                .collect()
        };
        assert_eq!(without_kernel(&exported), without_kernel(&theirs), "{name}");
    }
}

#[test]
fn nothing_is_replaced_unasked_and_what_fails_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = session(directory.path(), "some.coh", vec![access(1, None)]);
    let file = directory.path().join("perf.data");
    fs::write(&file, "mine").expect("it is written");
    let refused = export(&session, &file, &[]);
    assert_eq!(refused.code(), 2, "{}", refused.said());
    assert!(refused.stderr.contains("--force"), "{}", refused.said());
    assert_eq!(fs::read(&file).expect("it reads"), b"mine");
    export(&session, &file, &["--force"]).expect_code(0);
    assert!(fs::read(&file).expect("it reads").starts_with(b"PERFILE2"));
    let before = fs::read_dir(directory.path()).expect("it lists").count();
    let gone = directory.path().join("none.coh");
    assert_eq!(
        export(&gone, &directory.path().join("new.data"), &[]).code(),
        2
    );
    assert_eq!(
        export(&session, Path::new("/dev/null"), &["--force"]).code(),
        2
    );
    assert_eq!(export(&session, directory.path(), &["--force"]).code(), 2);
    // A session whose segment is damaged.
    let part = session.join("accesses/part-00000.parquet");
    fs::write(&part, "no parquet").expect("it is written");
    assert_eq!(
        export(&session, &directory.path().join("new.data"), &[]).code(),
        2
    );
    assert_eq!(
        fs::read_dir(directory.path()).expect("it lists").count(),
        before
    );
}

#[test]
fn a_file_that_cannot_grow_is_not_left_half_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let accesses = (1..5000).map(|n| access(n, None)).collect();
    let session = session(directory.path(), "some.coh", accesses);
    let before = fs::read_dir(directory.path()).expect("it lists").count();
    let file = directory.path().join("new.data");
    // 64 KiB at most; without the signal, writes beyond fail like those to a full disk.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh"]);
    limited.arg(cohtrace(["export"]).get_program());
    limited
        .args(["export", "--perf-data"])
        .arg(&file)
        .arg(&session);
    let ended = run(&mut limited, GRACE);
    assert_eq!(ended.code(), 2, "{}", ended.said());
    assert!(ended.stderr.contains("new.data"), "{}", ended.said());
    assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    assert_eq!(
        fs::read_dir(directory.path()).expect("it lists").count(),
        before
    );
    export(&session, &file, &[]).expect_code(0);
}
