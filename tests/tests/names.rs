//! Names that must be the same whenever a program is looked at.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, RUN_MS, Subject, ready, skipped, skipped_core},
    report::{Finding, Report},
    tool::{cohtrace, run},
    workload,
};
use serde_json::Value;

/// Looks at a program until something is found: a busy machine may show nothing.
const LOOKS: u32 = 3;

/// A session of a run of the program, and what its report says.
fn session(subject: &Subject, path: &Path) -> Report {
    for look in 1.. {
        let _ = fs::remove_dir_all(path);
        let mut command = cohtrace(["record", "--duration", "2", "-o"]);
        command.arg(path).arg("--").arg(&subject.program.path);
        run(command.arg(RUN_MS.to_string()), GRACE).expect_code(0);
        let mut command = cohtrace(["report", "--json"]);
        let ended = run(command.arg(path), GRACE).expect_code(0);
        let report = Report::parse(&ended.stdout).expect("a report");
        if !report.findings.is_empty() || look == LOOKS {
            return report;
        }
    }
    unreachable!("the last look is returned")
}

/// Twice the same program, at addresses of its own each time.
#[test]
fn a_global_of_a_stripped_program_has_one_name_in_all_runs_and_diff_knows_it() {
    let Some(_turn) = ready() else { return };
    let subject = Subject::new("stripped", Variant::Plain).expect("it builds");
    let directory = tempfile::tempdir().expect("a directory");
    let paths = ["old", "new"].map(|name| directory.path().join(name));
    let found = paths.each_ref().map(|path| {
        let report = session(&subject, path);
        let finding = report.findings.first().expect("a finding");
        let address = finding_address(&report);
        (finding.object_name.clone().expect("a name"), address)
    });
    let [(name, address), (same_name, other_address)] = found;
    assert_eq!(name, same_name);
    let offset = name.strip_prefix("stripped+0x");
    let offset = offset.and_then(|hex| u64::from_str_radix(hex, 16).ok());
    assert_eq!(offset.map(|offset| offset % 64), Some(0), "{name}");
    assert_ne!(address, other_address, "it was loaded at one address twice");

    let mut command = cohtrace(["diff", "--json"]);
    let ended = run(command.args(&paths), GRACE).expect_code(0);
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let change = &json["findings"][0];
    let told = [&change["object"], &change["matched_by"]].map(Value::as_str);
    assert_eq!(told, [Some(&*name), Some("name")], "{change:#}");
}

fn finding_address(report: &Report) -> Option<String> {
    let address = report.json["findings"][0]["line"]["address"].as_str();
    address.map(str::to_owned)
}

/// The runtime gives its threads stacks in the memory that it also allocates from.
#[test]
fn what_two_goroutines_know_of_is_on_the_heap_and_has_its_type() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("fields");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(workload::directory().join("go/fields.go"))
        .env("GOCACHE", directory.path().join("cache"))
        .env("GOFLAGS", "-mod=mod")
        .status();
    let Ok(status) = built else {
        skipped_core("no go (apt install golang-go)");
        return;
    };
    assert!(status.success(), "go build: {status}");
    for look in 1..=LOOKS {
        let mut command = cohtrace(["attach", "--json", "--duration", "2", "--"]);
        let ended = run(command.arg(&program).arg(RUN_MS.to_string()), GRACE).expect_code(0);
        let report = Report::parse(&ended.stdout).expect("a report");
        let Some(finding) = report.findings.first() else {
            assert_ne!(look, LOOKS, "nothing found in {LOOKS} looks");
            continue;
        };
        let object = (&*finding.object_kind, finding.object_type.as_deref());
        assert_eq!(object, ("heap", Some("main.stats")));
        let fields = finding.accesses.iter().filter_map(|a| a.field.as_deref());
        let mut fields: Vec<&str> = fields.collect();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(fields, [".hits", ".misses"]);
        return;
    }
}

/// The program whose threads call the kernel about one eventfd, or each about its own.
fn eventfd_program(directory: &Path) -> PathBuf {
    let program = directory.join("shared_eventfd");
    let status = Command::new("cc")
        .args(["-O2", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(workload::directory().join("syscalls/shared_eventfd.c"))
        .status();
    assert!(status.expect("a C compiler").success());
    program
}

fn look_at_eventfd(program: &Path, descriptors: &[&str]) -> Report {
    let mut command = cohtrace(["attach", "--json", "--duration", "2", "--"]);
    command
        .arg(program)
        .arg(RUN_MS.to_string())
        .args(descriptors);
    let ended = run(&mut command, GRACE).expect_code(0);
    Report::parse(&ended.stdout).expect("a report")
}

/// Whether a finding is about the count of references of a `struct file`.
fn is_of_file(finding: &Finding) -> bool {
    finding.object_type.as_deref() == Some("struct file")
}

/// No file of the kernel with debug info is needed: it describes its types and functions itself.
#[test]
fn what_two_threads_share_in_the_kernel_has_its_type_and_member_by_the_kernels_description_of_itself()
 {
    let Some(_turn) = ready() else { return };
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        skipped("the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = eventfd_program(directory.path());
    for look in 1..=LOOKS {
        let report = look_at_eventfd(&program, &[]);
        let Some(finding) = report.findings.iter().find(|found| is_of_file(found)) else {
            assert_ne!(look, LOOKS, "not found in {LOOKS} looks: {:#}", report.json);
            continue;
        };
        assert_eq!(
            (&*finding.object_kind, &*finding.kind),
            ("kernel", "true-sharing")
        );
        let found = &report.json["findings"].as_array().expect("findings");
        let of_file = found
            .iter()
            .find(|found| found["object"]["type"] == "struct file");
        let code = &of_file.expect("it was found")["accesses"][0]["code"];
        assert!(
            code["line"].is_u64() || code["symbol_offset"].is_string(),
            "{code:#}"
        );
        for access in &finding.accesses {
            // `f_count` before Linux 6.13.
            let field = access.field.as_deref();
            assert!(
                matches!(field, Some(".f_ref" | ".f_count")),
                "{field:?} by {:?}",
                access.code
            );
        }
        let mut symbols = finding
            .accesses
            .iter()
            .filter_map(|a| a.code.symbol.as_deref());
        assert!(
            symbols.any(|symbol| symbol.contains("fput") || symbol.contains("fdget")),
            "{:?}",
            finding.accesses
        );
        return;
    }
}

#[test]
fn threads_that_call_the_kernel_about_files_of_their_own_share_nothing_there() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let report = look_at_eventfd(&eventfd_program(directory.path()), &["own"]);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|found| &found.accesses)
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}
