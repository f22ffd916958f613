//! Imported recordings of perf hold what `perf script` prints of them.

pub(crate) mod recordings;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use cohtrace::{access::Access, event::Batch, session::SessionReader};
use cohtrace_tests::{
    live::{GRACE, skipped_core},
    tool::{Ended, cohtrace, run},
};

fn has_perf() -> bool {
    let found = Command::new("perf").arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skipped_core("perf is not installed");
    }
    found
}

/// Imports a file into a directory that goes with it.
fn import(file: &Path) -> (tempfile::TempDir, PathBuf, Ended) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let session = directory.path().join("imported.coh");
    let ended = run(cohtrace(["import", "-o"]).arg(&session).arg(file), GRACE);
    (directory, session, ended)
}

fn accesses(session: &Path) -> Vec<Access> {
    let mut reader = SessionReader::open(session).expect("a session");
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    while reader.next_batch(&mut batch).expect("it reads") {
        all.append(&mut batch.accesses);
        batch.clear();
    }
    all
}

/// The fields that a comparison asks perf for, and what of an access they are.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "any of them may be asked for"
)]
struct Fields {
    cpu: bool,
    weight: bool,
    data_source: bool,
    phys: bool,
}

/// A sample as perf prints it, as text; nothing for fields that were not asked for.
type Row = [String; 8];

fn of_access(access: &Access, fields: Fields) -> Row {
    let time = format!(
        "{}.{:09}",
        access.time_ns / 1_000_000_000,
        access.time_ns % 1_000_000_000
    );
    let when = |asked: bool, text: String| if asked { text } else { String::new() };
    let source = access
        .measured
        .source
        .map_or(0, cohtrace::data_source::DataSource::raw);
    let latency = access
        .measured
        .latency_cycles
        .map_or(0, std::num::NonZero::get);
    let phys = access.measured.phys_addr.map_or(0, std::num::NonZero::get);
    [
        // perf prints what has no number here as -1.
        (access.pid.0 as i32).to_string(),
        (access.tid.0 as i32).to_string(),
        when(fields.cpu, access.cpu.0.to_string()),
        time,
        format!("{:x}", access.addr),
        when(fields.data_source, format!("{source:x}")),
        when(fields.weight, latency.to_string()),
        format!("{:x} {}", access.ip, when(fields.phys, format!("{phys:x}"))),
    ]
}

fn of_perf(line: &str, fields: Fields) -> Row {
    // The data source is followed by words for it, between bars and with spaces.
    let words = line
        .find('|')
        .map(|bar| (bar, line.find("BLK").expect("its last part")));
    let line = match words {
        Some((from, blk)) => {
            let rest = line[blk + 3..].trim_start();
            // The last part's own value.
            let rest = rest.split_once("  ").map_or(rest, |(_, rest)| rest);
            format!("{} {rest}", &line[..from])
        }
        None => line.to_owned(),
    };
    let mut parts = line.split_whitespace();
    let mut next = || {
        parts
            .next()
            .unwrap_or_else(|| panic!("a field is missing: {line}"))
            .to_owned()
    };
    let task = next();
    let (pid, tid) = task.split_once('/').expect("process and thread");
    let mut optional = |asked: bool| if asked { next() } else { String::new() };
    let cpu = optional(fields.cpu);
    let cpu = cpu
        .trim_matches(['[', ']'])
        .trim_start_matches('0')
        .to_owned();
    let cpu = if fields.cpu && cpu.is_empty() {
        "0".to_owned()
    } else {
        cpu
    };
    let time = optional(true).trim_end_matches(':').to_owned();
    let addr = optional(true);
    let source = optional(fields.data_source);
    let weight = optional(fields.weight);
    let ip = optional(true);
    let phys = optional(fields.phys);
    [
        pid.to_owned(),
        tid.to_owned(),
        cpu,
        time,
        addr,
        source,
        weight,
        format!("{ip} {phys}"),
    ]
}

/// Rows of `perf script` with an address, in no order.
fn perf_rows(file: &Path, fields: Fields) -> Vec<Row> {
    let mut asked = "pid,tid,time,addr,ip".to_owned();
    for (wanted, name) in [
        (fields.cpu, "cpu"),
        (fields.weight, "weight"),
        (fields.data_source, "data_src"),
        (fields.phys, "phys_addr"),
    ] {
        if wanted {
            asked.push(',');
            asked.push_str(name);
        }
    }
    let output = Command::new("perf")
        .args(["script", "--ns", "--hide-call-graph", "-F", &asked, "-i"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .expect("perf starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    let mut rows: Vec<Row> = rows.map(|line| of_perf(line, fields)).collect();
    rows.retain(|row| row[4] != "0");
    rows.sort();
    rows
}

/// Holds every row of perf's against the session's.
fn compare(file: &Path, session: &Path, fields: Fields) -> usize {
    let accesses = accesses(session);
    assert!(accesses.is_sorted_by_key(|access| access.time_ns));
    let mut ours: Vec<Row> = accesses
        .iter()
        .map(|access| of_access(access, fields))
        .collect();
    ours.sort();
    let theirs = perf_rows(file, fields);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{}", file.display());
    }
    assert_eq!(ours.len(), theirs.len(), "{}", file.display());
    ours.len()
}

const MEASURED: Fields = Fields {
    cpu: false,
    weight: true,
    data_source: true,
    phys: false,
};

#[test]
fn recordings_of_loads_hold_what_perf_prints_of_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for loads in recordings::loads(directory.path()) {
        let rows = loads.accesses;
        let (_directory, session, ended) = import(&loads.file);
        let ended = ended.expect_code(0);
        assert!(
            ended.stderr.contains(&format!("({rows} accesses")),
            "{}",
            ended.said()
        );
        assert_eq!(accesses(&session).len(), rows);
        let report = run(cohtrace(["report", "--json"]).arg(&session), GRACE).expect_code(0);
        assert!(report.stdout.contains("perf-data"), "{}", report.said());
        let fields = Fields {
            cpu: loads.has_cpus,
            ..MEASURED
        };
        if has_perf() {
            assert_eq!(compare(&loads.file, &session, fields), rows);
        }
    }
}

#[test]
fn a_recording_whose_addresses_are_all_zero_has_no_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for file in recordings::without_addresses(directory.path()) {
        let (_directory, session, ended) = import(&file);
        ended.expect_code(0);
        assert!(accesses(&session).is_empty());
        let report = run(cohtrace(["report"]).arg(&session), GRACE).expect_code(0);
        assert!(
            report
                .stdout
                .contains("100.0 % of the samples have no data address"),
            "{}",
            report.said()
        );
    }
}

#[test]
fn a_compressed_pipe_holds_what_was_put_into_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for piped in recordings::compressed_pipes(directory.path()) {
        let (_directory, session, ended) = import(&piped.file);
        let ended = ended.expect_code(0);
        let (samples, found) = piped.counts;
        assert!(
            ended
                .stderr
                .contains(&format!("imported {samples} samples ({found} accesses")),
            "{}",
            ended.said()
        );
        let sum = accesses(&session)
            .iter()
            .fold(0u64, |sum, access| sum.wrapping_add(access.addr));
        assert_eq!(sum, piped.sum);
    }
}

/// Records page faults, whose addresses need no PMU; `None` where perf cannot.
fn record(directory: &Path, options: &[&str]) -> Option<PathBuf> {
    let file = directory.join("recorded.data");
    let output = Command::new("perf")
        .args(["record", "-q", "-e", "page-faults:u", "-d", "-c", "1"])
        .args(options)
        .arg("-o")
        .arg(&file)
        .args(["--", "sh", "-c", "ls /usr > /dev/null; ls /"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    if !output.status.success() {
        skipped_core(format_args!(
            "perf record: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
        return None;
    }
    Some(file)
}

#[test]
fn recordings_made_here_hold_what_perf_prints_of_them_in_whatever_way_they_were_made() {
    if !has_perf() {
        return;
    }
    let plain = Fields {
        cpu: false,
        weight: false,
        data_source: false,
        phys: false,
    };
    for (options, fields) in [
        (&[][..], plain),
        (
            &["--sample-cpu", "-W", "--phys-data", "-z"],
            Fields {
                cpu: true,
                phys: true,
                ..MEASURED
            },
        ),
        (&["--call-graph", "dwarf", "-z"], plain),
        (
            &[
                "--all-cgroups",
                "--data-page-size",
                "--code-page-size",
                "-R",
            ],
            plain,
        ),
        (
            &[
                "-e",
                "cpu-clock",
                "--call-graph",
                "fp",
                "--intr-regs",
                "-k",
                "CLOCK_MONOTONIC",
            ],
            plain,
        ),
        (
            &["-e", "{minor-faults:u,major-faults:u}", "--namespaces"],
            plain,
        ),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let Some(file) = record(directory.path(), options) else {
            continue;
        };
        let (_kept, session, ended) = import(&file);
        ended.expect_code(0);
        let rows = compare(&file, &session, fields);
        assert!(
            rows > 50,
            "{options:?}: {rows} page faults are too few to have compared anything"
        );
    }
}

#[test]
fn a_pipe_gives_the_same_as_the_file_that_it_was_written_to() {
    if !has_perf() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(file) = record(directory.path(), &[]) else {
        return;
    };
    let piped = directory.path().join("piped");
    let out = fs::File::create(&piped).expect("room");
    let inject = Command::new("perf")
        .args([
            "record",
            "-q",
            "-e",
            "page-faults:u",
            "-d",
            "-c",
            "1",
            "-o",
            "-",
            "--",
            "true",
        ])
        .stdin(Stdio::null())
        .stdout(out)
        .status();
    assert!(
        inject.is_ok_and(|status| status.success()),
        "perf records to a pipe"
    );
    let (_kept, session, ended) = import(&piped);
    ended.expect_code(0);
    let as_file = accesses(&session);
    assert!(as_file.len() > 20);
    // Through a pipe that cannot be sought, and as the shell's own file.
    for through in [
        "cat \"$1\" | \"$2\" import -q - -o \"$3\"",
        "\"$2\" import -q - -o \"$3\" < \"$1\"",
    ] {
        let session = directory.path().join("streamed.coh");
        let binary = cohtrace_tests::tool::path().expect("the tool");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", through, "sh"])
            .arg(&piped)
            .arg(&binary)
            .arg(&session);
        run(&mut shell, GRACE).expect_code(0);
        assert_eq!(accesses(&session), as_file);
        fs::remove_dir_all(&session).expect("it is there");
    }
    // What was recorded to a file has its header's sections at its end.
    let mut shell = Command::new("sh");
    let binary = cohtrace_tests::tool::path().expect("the tool");
    shell
        .args([
            "-c",
            "cat \"$1\" | \"$2\" import - -o /dev/null/x.coh",
            "sh",
        ])
        .arg(&file)
        .arg(binary);
    let refused = run(&mut shell, GRACE).expect_code(2);
    assert!(
        refused.stderr.contains("cannot be read from a pipe"),
        "{}",
        refused.said()
    );
}

#[test]
fn what_cannot_be_imported_is_refused_and_leaves_no_session() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("notes.txt");
    fs::write(&file, "no recording, but longer than any magic number").expect("room");
    let parts = directory.path().join("parts.data");
    fs::create_dir(&parts).expect("room");
    for (path, word) in [
        (file, "not a perf.data file"),
        (parts, "--threads"),
        (directory.path().join("absent"), "No such file"),
    ] {
        let (_kept, session, ended) = import(&path);
        let ended = ended.expect_code(2);
        assert!(ended.stderr.contains(word), "{}", ended.said());
        assert!(!session.exists());
    }
}

#[test]
fn a_recording_that_was_cut_is_imported_as_far_as_it_goes_and_the_tool_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cut = directory.path().join("cut.perf.data");
    let whole = &recordings::loads(directory.path())[0];
    let bytes = fs::read(&whole.file).expect("readable");
    fs::write(&cut, &bytes[..bytes.len() - 200]).expect("room");
    let mut import = cohtrace(["import", "-q", "cut.perf.data"]);
    let ended = run(import.current_dir(directory.path()), GRACE).expect_code(0);
    assert!(ended.stderr.contains("not whole"), "{}", ended.said());
    // Under the name of the file, which is then taken.
    let session = directory.path().join("cut.perf.coh");
    let found = accesses(&session).len();
    assert!(found > 0 && found < whole.accesses, "{found}");
    run(import.current_dir(directory.path()), GRACE).expect_code(2);
    run(import.arg("--force"), GRACE).expect_code(0);
}
