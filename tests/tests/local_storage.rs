//! Thread-local variables of libraries, for each way in which a loader places them and a compiler asks for them.

use cohtrace_skips::skipped;
use std::{path::Path, process::Command};

use cohtrace_tests::{
    live::{GRACE, RUN_MS, ready},
    tool::{cohtrace, run},
    workload,
};
use serde_json::Value;

/// Compiles the workload with a library beside it; nothing where the compiler lacks an option.
fn build(directory: &Path, library_flags: &[&str], linked: bool) -> Option<()> {
    let source = workload::directory().join("tls_library.c");
    let compile = |flags: &[&str], output: &str| {
        let mut command = Command::new("cc");
        command
            .current_dir(directory)
            .args(["-std=gnu11", "-O2", "-g", "-pthread"])
            .arg(&source)
            .args(flags)
            .args(["-ldl", "-o", output]);
        let output = command.output().expect("cc runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let flags = [&["-shared", "-fPIC", "-DLIBRARY"], library_flags].concat();
    let (built, said) = compile(&flags, "program.so");
    if !built && said.contains("unrecognized") {
        skipped(format_args!("cc has no {library_flags:?}"));
        return None;
    }
    assert!(built, "{said}");
    let flags: &[&str] = if linked {
        &["-DLINKED", "-Wl,-rpath,$ORIGIN", "-L.", "-l:program.so"]
    } else {
        &[]
    };
    let (built, said) = compile(flags, "program");
    assert!(built, "{said}");
    Some(())
}

/// Records the program and gives the report's first finding.
fn first_finding(directory: &Path) -> Value {
    let session = directory.join("s.coh");
    let mut record = cohtrace(["record", "--no-watch", "--duration", "2", "-o"]);
    record
        .arg(&session)
        .arg("--")
        .arg(directory.join("program"));
    run(record.arg(RUN_MS.to_string()), GRACE).expect_code(0);
    let reported = run(cohtrace(["report", "--json"]).arg(&session), GRACE).expect_code(0);
    let report: Value = serde_json::from_str(&reported.stdout).expect("it is JSON");
    report["findings"][0].clone()
}

#[test]
fn thread_locals_of_libraries_are_named_however_they_are_placed_and_asked_for() {
    let Some(_turn) = ready() else { return };
    // Opened or linked: made when first touched, or beside the thread pointer. Asked for by the module's number, by
    // the distance from the thread pointer, or through a descriptor.
    let cases: [(&[&str], bool); 5] = [
        (&[], false),
        (&[], true),
        (&["-ftls-model=initial-exec"], true),
        (&["-mtls-dialect=gnu2"], false),
        (&["-mtls-dialect=gnu2"], true),
    ];
    for (flags, linked) in cases {
        let directory = tempfile::tempdir().expect("a temporary directory");
        if build(directory.path(), flags, linked).is_none() {
            continue;
        }
        let finding = first_finding(directory.path());
        let label = format!("{flags:?}, linked: {linked}: {finding}");
        let object = &finding["object"];
        assert_eq!(
            (&object["kind"], &object["name"]),
            (&"tls".into(), &"per_thread".into()),
            "{label}"
        );
        assert_eq!(object["type"], "struct per_thread", "{label}");
        let thread = object["thread"].as_str().unwrap_or_default();
        assert!(thread.starts_with("worker-1 "), "{label}");
        let fields: Vec<&str> = finding["accesses"]
            .as_array()
            .expect("rows")
            .iter()
            .filter_map(|row| row["field"].as_str())
            .collect();
        assert!(
            fields.contains(&".hits") && fields.contains(&".misses"),
            "{label}"
        );
    }
}
