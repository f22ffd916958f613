//! The kernels for load hints, without the tool: they build, find their results right and the same every time, and notice
//! when a single update is missing.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    process::{Command, Stdio},
};

use cohtrace_tests::evaluation::{Build, Input, KERNELS, Kernel, directory};

/// Runs of each program with each input.
const RUNS: usize = 4;

/// The same build by Clang, where it is installed.
const CLANG: Build<'static> = Build {
    name: "clang",
    compiler: "clang-14",
    arguments: &[],
    depends_on: "",
};

/// The checksum of a run of a build that finds itself right, or wrong.
fn checksum(kernel: &Kernel, build: &Build, input: Input, right: bool) -> String {
    let program = kernel.build(build).unwrap_or_else(|e| panic!("{e:#}"));
    let answered = kernel.run(&program, input);
    let answered = answered.unwrap_or_else(|e| panic!("{e:#}"));
    let who = format!("{} ({}), {}", kernel.name, build.name, input.name());
    assert_eq!(answered.right, right, "{who}");
    answered.checksum
}

/// The checksums of several runs.
fn checksums(kernel: &Kernel, build: &Build, input: Input, right: bool) -> BTreeSet<String> {
    let runs = 0..RUNS;
    runs.map(|_| checksum(kernel, build, input, right))
        .collect()
}

#[test]
fn each_kernel_is_right_and_gives_the_same_result_every_time_by_whichever_compiler() {
    let has_clang = Command::new(CLANG.compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    for kernel in &KERNELS {
        for input in Input::ALL {
            let mut all = checksums(kernel, &Build::PLAIN, input, true);
            if has_clang {
                all.extend(checksums(kernel, &CLANG, input, true));
            }
            assert_eq!(all.len(), 1, "{}, {}: {all:?}", kernel.name, input.name());
        }
    }
}

#[test]
fn each_kernel_notices_that_a_single_update_is_missing() {
    let arguments = [OsStr::new("-DSABOTAGE")];
    let sabotaged = Build {
        name: "sabotaged",
        arguments: &arguments,
        ..Build::PLAIN
    };
    for kernel in &KERNELS {
        for input in Input::ALL {
            checksums(kernel, &sabotaged, input, false);
        }
    }
}

#[test]
fn the_two_inputs_of_each_kernel_are_different_work() {
    // All runs with one input give one result: that is a test of its own.
    for kernel in &KERNELS {
        let [train, reference] =
            Input::ALL.map(|input| checksum(kernel, &Build::PLAIN, input, true));
        assert_ne!(train, reference, "{}", kernel.name);
    }
}

#[test]
fn what_is_no_input_is_refused() {
    for kernel in &KERNELS {
        let program = kernel.build(&Build::PLAIN).expect("it builds");
        let output = Command::new(program).arg("reference").output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{}", kernel.name);
        assert!(String::from_utf8_lossy(&output.stderr).contains("train|ref"));
    }
}

#[test]
fn each_kernel_is_listed_and_says_its_counterpart_and_its_expected_candidates() {
    let sources = fs::read_dir(directory()).expect("the kernels are there");
    let sources: BTreeSet<_> = sources
        .map(|entry| entry.expect("it is readable").path())
        .filter(|path| path.extension() == Some(OsStr::new("c")))
        .collect();
    let listed: BTreeSet<_> = KERNELS.iter().map(Kernel::source).collect();
    assert_eq!(sources, listed);
    for kernel in &KERNELS {
        let text = fs::read_to_string(kernel.source()).expect("it is readable");
        let counterpart = format!("// Counterpart: {} of SPLASH-2", kernel.counterpart);
        assert!(text.contains(&counterpart), "{}", kernel.name);
        assert!(text.contains("// Expected candidates: "), "{}", kernel.name);
    }
}
