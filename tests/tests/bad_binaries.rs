//! Programs whose file is gone, closed or broken: the lines are still found, and what has no name says so.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace_tests::{
    answer::Variant,
    live::{GRACE, Subject, ready},
    report::{Finding, Report},
    tool::{Running, cohtrace, run},
};

/// A copy of the two counters, to be spoilt.
struct Copy {
    subject: Subject,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn copy() -> Copy {
    let subject =
        Subject::new("two_counters", Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("two_counters");
    fs::copy(&subject.program.path, &path).expect("the build is readable");
    Copy {
        subject,
        path,
        _directory: directory,
    }
}

fn start(path: &Path) -> Running {
    Running::start(Command::new(path).arg("60000")).expect("it starts")
}

/// What the tool says about a running target, which it must survive.
fn look_at(target: &Running) -> Report {
    let mut attach = cohtrace([
        "attach",
        "--json",
        "--duration",
        "2",
        "-p",
        &target.pid().to_string(),
    ]);
    let ended = run(&mut attach, GRACE).expect_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.said());
    Report::parse(&ended.stdout).unwrap_or_else(|error| panic!("{error:#}\n{}", ended.said()))
}

/// Two counters are falsely shared, whatever they and the code are called.
fn assert_unnamed_answer(report: &Report) {
    let [finding] = &report.findings[..] else {
        panic!(
            "not one finding: {:#?}\n{:#?}",
            report.findings, report.caveats
        );
    };
    assert_eq!(finding.kind, "false-sharing", "{finding:#?}");
    let counts_at = |offset: u64| {
        finding
            .accesses
            .iter()
            .any(|a| a.op == "rmw" && a.offset == offset)
    };
    assert!(counts_at(0) && counts_at(8), "{finding:#?}");
}

fn functions(finding: &Finding) -> Vec<&str> {
    finding
        .accesses
        .iter()
        .filter_map(|access| access.code.symbol.as_deref())
        .collect()
}

#[test]
fn a_deleted_program_is_decoded_from_its_memory_or_its_open_file() {
    let Some(_turn) = ready() else { return };
    let copy = copy();
    let target = start(&copy.path);
    fs::remove_file(&copy.path).expect("it is ours");
    let report = look_at(&target);
    assert_unnamed_answer(&report);
    // /proc/PID/exe still opens the file, so names may be there; when they are not, the report says why.
    let named = functions(&report.findings[0]).contains(&"count_hits");
    let said = report
        .caveats
        .iter()
        .any(|caveat| caveat.contains("deleted"));
    assert!(
        named || said,
        "neither names nor a reason: {:#?}\n{:#?}",
        report.findings,
        report.caveats
    );
}

#[test]
fn a_program_that_was_replaced_is_not_named_from_the_new_file() {
    let Some(_turn) = ready() else { return };
    let copy = copy();
    let target = start(&copy.path);
    fs::remove_file(&copy.path).expect("it is ours");
    // An upgrade under a running daemon: same path, other code.
    let other =
        Subject::new("served_loop", Variant::Plain).unwrap_or_else(|error| panic!("{error:#}"));
    fs::copy(&other.program.path, &copy.path).expect("the build is readable");
    let report = look_at(&target);
    assert_unnamed_answer(&report);
    let finding = &report.findings[0];
    for name in functions(finding) {
        assert!(
            name.starts_with("count_"),
            "{name} is from the new file: {finding:#?}"
        );
    }
    assert_ne!(finding.object_name.as_deref(), Some("desk"), "{finding:#?}");
}

#[test]
fn a_program_that_only_its_owner_may_read_is_named_by_root() {
    let Some(_turn) = ready() else { return };
    let copy = copy();
    fs::set_permissions(&copy.path, fs::Permissions::from_mode(0o111)).expect("it is ours");
    let report = look_at(&start(&copy.path));
    copy.subject
        .judge_report(&report)
        .expect("root reads it all the same");
}

/// Looks at a copy whose debug information is in a file beside it, which `behind` may replace.
fn look_at_linked(behind: impl Fn(&Path)) -> Report {
    let copy = copy();
    let link = copy.path.with_file_name("linked.debug");
    let objcopy = |arguments: &[&str], files: &[&Path]| {
        let mut command = Command::new("objcopy");
        let status = command.args(arguments).args(files).status();
        assert!(status.expect("objcopy runs").success(), "{arguments:?}");
    };
    objcopy(&["--only-keep-debug"], &[&copy.path, &link]);
    let link_to = format!("--add-gnu-debuglink={}", link.display());
    objcopy(&["--strip-debug", &link_to], &[&copy.path]);
    behind(&link);
    look_at(&start(&copy.path))
}

/// Whether any access has a source line.
fn has_lines(report: &Report) -> bool {
    let accesses = report.findings.iter().flat_map(|finding| &finding.accesses);
    accesses
        .into_iter()
        .any(|access| !access.code.places.is_empty())
}

#[test]
fn debug_information_that_is_said_to_be_in_a_pipe_or_a_device_is_left_alone() {
    let Some(_turn) = ready() else { return };
    // The twin: where it is a file, it is read.
    assert!(has_lines(&look_at_linked(|_| {})));
    let pipe = |link: &Path| {
        fs::remove_file(link).expect("it is ours");
        let made = Command::new("mkfifo").arg(link).status();
        assert!(made.expect("mkfifo runs").success());
    };
    let device = |link: &Path| {
        fs::remove_file(link).expect("it is ours");
        std::os::unix::fs::symlink("/dev/zero", link).expect("it is ours");
    };
    for behind in [&pipe as &dyn Fn(&Path), &device] {
        let report = look_at_linked(behind);
        assert_unnamed_answer(&report);
        assert!(!has_lines(&report), "{:#?}", report.findings);
    }
}

#[test]
fn a_program_with_a_name_that_is_no_text_is_named_from_its_own_file() {
    let Some(_turn) = ready() else { return };
    let copy = copy();
    let odd = copy.path.with_file_name(OsStr::from_bytes(b"odd\xff"));
    fs::rename(&copy.path, &odd).expect("it is ours");
    let report = look_at(&start(&odd));
    copy.subject
        .judge_report(&report)
        .expect("the bytes of the name lead to the file");
}

/// A library that is sampled, and a program that then shortens it under whoever reads it.
const SHORTENED: [&str; 2] = [
    "volatile long hits[16] __attribute__((aligned(128)));
     char large[4 << 20] = {1};
     __attribute__((noinline)) void count(int at, long times) { while (times--) hits[at]++; }",
    "#include <pthread.h>
     #include <stdlib.h>
     #include <time.h>
     #include <unistd.h>
     void count(int at, long times);
     volatile struct { long left, right; } own __attribute__((aligned(128)));
     pthread_barrier_t both;
     static void count_for_two_seconds(int at) {
         for (time_t end = time(0) + 2; time(0) < end;) count(at, 1000000);
     }
     static void *other(void *arg) {
         count_for_two_seconds(0);
         pthread_barrier_wait(&both);
         for (;;) own.left++;
     }
     int main(int argc, char **argv) {
         pthread_t thread;
         pthread_barrier_init(&both, 0, 2);
         pthread_create(&thread, 0, other, 0);
         count_for_two_seconds(1);
         pthread_barrier_wait(&both);
         if (argc > 1 && truncate(argv[1], 4096)) abort();
         for (;;) own.right++;
     }",
];

#[test]
fn a_library_that_its_program_shortens_ends_neither_the_run_nor_the_other_names() {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let compile = |arguments: &[&str], source: &str, to: &str| {
        let file = at(to).with_extension("c");
        fs::write(&file, source).expect("room");
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O1", "-o"]).arg(at(to)).arg(&file);
        let built = cc.args(arguments).status();
        assert!(built.expect("cc runs").success(), "{to}");
    };
    compile(&["-shared", "-fPIC"], SHORTENED[0], "libcount.so");
    let path = at("libcount.so");
    let path = path.to_str().expect("a name in letters");
    compile(&["-pthread", path], SHORTENED[1], "shortens");
    for shortens in [false, true] {
        let mut attach = cohtrace(["attach", "--json", "--duration", "4", "--"]);
        attach.arg(at("shortens")).args(shortens.then_some(path));
        let ended = run(&mut attach, GRACE).expect_code(0);
        let report = Report::parse(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error:#}\n{}", ended.said()));
        let named = |name| {
            let mut findings = report.findings.iter();
            findings.any(|finding| finding.object_name.as_deref() == Some(name))
        };
        assert!(named("own"), "{:#?}", report.findings);
        assert_eq!(named("hits"), !shortens, "{:#?}", report.findings);
        let told = |caveat: &String| caveat.contains("libcount.so") && caveat.contains("changed");
        assert_eq!(
            report.caveats.iter().any(told),
            shortens,
            "{:#?}",
            report.caveats
        );
    }
}

/// Builds the two counters again: with other names, lines and code.
fn build_again(path: &Path, arguments: &[&str]) {
    let source = path.with_extension("c");
    let text = "#include <pthread.h>
        struct { long added; volatile long LEFT, RIGHT; } OTHER __attribute__((aligned(64)));
        static void *COUNT(void *arg) { for (;;) OTHER.LEFT++; }
        int main(void) { pthread_t t; pthread_create(&t, 0, COUNT, 0); for (;;) OTHER.RIGHT++; }";
    fs::write(&source, text).expect("room");
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O1", "-pthread", "-o"])
        .arg(path)
        .arg(source);
    let built = cc.args(arguments).status();
    assert!(built.expect("cc runs").success());
}

#[test]
fn a_recording_is_not_named_from_a_later_build_of_its_program() {
    let Some(_turn) = ready() else { return };
    // By their build-ids, and by their times where the linker writes none.
    for notes in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let copy = copy();
        let session = copy.path.with_extension("coh");
        build_again(&copy.path, &[notes]);
        let first = fs::read(&copy.path).expect("just built");
        let mut record = cohtrace(["record", "--duration", "2", "-o"]);
        record.arg(&session).arg("--").arg(&copy.path);
        run(&mut record, GRACE).expect_code(0);
        let report = || {
            let mut report = cohtrace(["report", "--json"]);
            let ended = run(report.arg(&session), GRACE).expect_code(0);
            Report::parse(&ended.stdout).unwrap_or_else(|e| panic!("{e:#}\n{}", ended.said()))
        };
        let named = report();
        let object = named.findings[0].object_name.as_deref();
        assert_eq!(object, Some("OTHER"), "{:#?}", named.findings);
        // In place of the first, whose inode number may or may not be used again, and written into its very inode.
        let replaced = |how: &str, bytes: &[u8]| {
            if how == "linked" {
                fs::remove_file(&copy.path).expect("it is ours");
            }
            fs::write(&copy.path, bytes).expect("it is ours");
            let report = report();
            let name = copy.path.to_str().expect("a name in letters");
            let said = |caveat: &String| {
                caveat.contains(name) && (caveat.contains("build") || caveat.contains("changed"))
            };
            let finding = &report.findings[0];
            assert_eq!(
                finding.kind, "false-sharing",
                "{notes}, {how}: {finding:#?}"
            );
            assert!(
                report.caveats.iter().any(said),
                "{notes}, {how}: {:#?}",
                report.caveats
            );
            assert_eq!(functions(finding), [""; 0], "{notes}, {how}");
            assert_eq!(finding.object_kind, "global", "{notes}, {how}");
            let object = finding.object_name.clone().unwrap_or_default();
            assert!(object.starts_with("two_counters+0x"), "{object}");
            assert!(!finding.advice.contains("OTHER"), "{}", finding.advice);
            assert!(!has_lines(&report), "{notes}, {how}");
        };
        let mut second = copy.subject.program.path.clone();
        if notes.ends_with("none") {
            second = copy.path.with_file_name("second");
            build_again(&second, &["-Wl,--build-id=none", "-O0"]);
        }
        let second = fs::read(second).expect("built");
        assert_ne!(first, second);
        replaced("written", &second);
        replaced("linked", &second);
    }
}

/// The sections of an ELF file: name, offset and size of the contents.
fn sections(elf: &[u8]) -> Vec<(String, usize, usize)> {
    let number = |at: usize, bytes: usize| {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&elf[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(value)).expect("64-bit machine")
    };
    // Elf64_Ehdr: e_shoff at 40, e_shentsize at 58, e_shnum at 60, e_shstrndx at 62. Elf64_Shdr: sh_name at 0,
    // sh_offset at 24, sh_size at 32.
    let header = |index: usize| number(40, 8) + index * number(58, 2);
    let names = number(header(number(62, 2)) + 24, 8);
    (0..number(60, 2))
        .map(|index| {
            let name = &elf[names + number(header(index), 4)..];
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let at = header(index);
            (
                String::from_utf8_lossy(name).into_owned(),
                number(at + 24, 8),
                number(at + 32, 8),
            )
        })
        .collect()
}

/// Overwrites bytes with noise that is the same each time (xorshift64, Marsaglia 2003).
fn garble(bytes: &mut [u8], mut state: u64) {
    for byte in bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
}

/// Spoils a copy, checks that it still runs, and looks at it.
fn look_at_spoilt(spoil: impl Fn(&mut Vec<u8>)) -> Report {
    let copy = copy();
    let mut elf = fs::read(&copy.path).expect("just copied");
    let whole = elf.clone();
    spoil(&mut elf);
    assert_ne!(elf, whole, "nothing was spoilt");
    fs::write(&copy.path, elf).expect("it is ours");
    look_at(&start(&copy.path))
}

#[test]
fn garbled_debug_information_costs_lines_but_not_the_finding() {
    let Some(_turn) = ready() else { return };
    for seed in 1..=3 {
        let report = look_at_spoilt(|elf| {
            for (name, offset, size) in sections(elf) {
                if name.starts_with(".debug_") {
                    garble(&mut elf[offset..offset + size], seed);
                }
            }
        });
        assert_unnamed_answer(&report);
        // The symbol table is whole.
        assert!(
            functions(&report.findings[0]).contains(&"count_hits"),
            "{:#?}",
            report.findings
        );
    }
}

#[test]
fn a_garbled_symbol_table_costs_names_but_not_the_finding() {
    let Some(_turn) = ready() else { return };
    let report = look_at_spoilt(|elf| {
        for (name, offset, size) in sections(elf) {
            if name == ".symtab" || name == ".strtab" {
                garble(&mut elf[offset..offset + size], 7);
            }
        }
    });
    assert_unnamed_answer(&report);
}

#[test]
fn garbled_section_headers_cost_names_but_not_the_finding() {
    let Some(_turn) = ready() else { return };
    let report = look_at_spoilt(|elf| {
        let table = usize::try_from(u64::from_le_bytes(elf[40..48].try_into().expect("8 bytes")))
            .expect("64-bit");
        garble(&mut elf[table..], 11);
    });
    assert_unnamed_answer(&report);
}

#[test]
fn a_section_table_beyond_the_end_of_the_file_is_survived() {
    let Some(_turn) = ready() else { return };
    let report = look_at_spoilt(|elf| elf[40..48].copy_from_slice(&u64::MAX.to_le_bytes()));
    assert_unnamed_answer(&report);
}
