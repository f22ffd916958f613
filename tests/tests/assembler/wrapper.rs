//! The wrapper: it is the assembler, whatever becomes of the hints.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use cohtrace_tests::tool;

use super::bench::{Bench, LOAD, SOURCE, hint_file, instructions, prefetches};

/// An object that was built with `bin/as`, after the hints were spoilt, and what was said.
fn spoilt(spoil: impl Fn(&Bench)) -> String {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    spoil(&bench);
    bench.compile(&["gcc", "-O2", "-g", "-c", "t.c", "-o", "plain.o"]);
    let said = bench.compile(&[
        "gcc", "-B", "bin", "-O2", "-g", "-c", "t.c", "-o", "hinted.o",
    ]);
    assert!(!said.contains("panicked"), "{said}");
    let read = |name| fs::read(bench.at(name)).expect("the file is there");
    assert_eq!(read("plain.o"), read("hinted.o"), "the very same bytes");
    said
}

#[test]
fn bad_hints_never_end_a_build() {
    let missing =
        spoilt(|bench| fs::remove_file(bench.at("hints.json")).expect("as the test set it up"));
    assert!(
        missing.contains("hints.json") && missing.contains("without hints"),
        "{missing}"
    );
    let corrupt = spoilt(|bench| {
        fs::write(bench.at("hints.json"), "{\"format\":").expect("the directory is writable");
    });
    assert!(corrupt.contains("not a hints file"), "{corrupt}");
    let newer = spoilt(|bench| {
        let text = fs::read_to_string(bench.at("hints.json")).expect("the file is there");
        fs::write(
            bench.at("hints.json"),
            text.replace("\"version\": 1", "\"version\": 99"),
        )
        .expect("as the test set it up");
    });
    assert!(newer.contains("version 99"), "{newer}");
    let gone = spoilt(|bench| {
        let script = fs::read_to_string(bench.at("bin/as")).expect("the file is there");
        let tool = tool::path()
            .expect("the tool is built")
            .canonicalize()
            .expect("it is there");
        fs::write(
            bench.at("bin/as"),
            script.replace(
                tool.to_str().expect("as the test set it up"),
                "/nonexistent/cohtrace",
            ),
        )
        .expect("as the test set it up");
    });
    assert!(gone.contains("cohtrace is gone"), "{gone}");
}

/// Writes an executable script.
fn script(path: &Path, text: &str) {
    fs::write(path, text).expect("the directory is writable");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

#[test]
fn an_assembler_that_refuses_prefetches_gets_the_plain_text() {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    let picky = "#!/bin/sh\ncat \"$(eval echo \\${$#})\" 2>/dev/null > text || cat > text\n\
                 if grep -q prefetchw text; then echo 'text:1: Error: no such instruction' >&2; exit 1; fi\n\
                 exec as \"$@\"\n";
    script(&bench.at("picky"), picky);
    bench.compile(&["gcc", "-O2", "-g", "-c", "t.c", "-o", "plain.o"]);
    let mut gcc = Command::new("gcc");
    gcc.args(["-B", "bin", "-O2", "-g", "-c", "t.c", "-o", "hinted.o"])
        .env("COHTRACE_AS", bench.at("picky"));
    let output = bench.run(&mut gcc);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("refused") && said.contains("no such instruction"),
        "{said}"
    );
    assert_eq!(
        fs::read(bench.at("plain.o")).expect("the file is there"),
        fs::read(bench.at("hinted.o")).expect("the file is there")
    );
}

#[test]
fn it_answers_as_the_assembler_does() {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    let real = |words: &[&str]| bench.run(Command::new("as").args(words));
    let ours = |words: &[&str]| bench.run(Command::new(bench.at("bin/as")).args(words));
    for words in [
        &["--version"][..],
        &["--help"],
        &["--no-such-option"],
        &["absent.s"],
    ] {
        let (real, ours) = (real(words), ours(words));
        assert_eq!(real.status.code(), ours.status.code(), "{words:?}");
        assert_eq!(real.stdout, ours.stdout, "{words:?}");
        assert_eq!(
            String::from_utf8_lossy(&real.stderr),
            String::from_utf8_lossy(&ours.stderr),
            "{words:?}"
        );
    }
    fs::write(bench.at("wrong.s"), "\tfrobnicate %rax\n").expect("the directory is writable");
    let (real, wrong) = (
        real(&["wrong.s", "-o", "x.o"]),
        ours(&["wrong.s", "-o", "x.o"]),
    );
    assert_eq!(
        (real.status.code(), real.stderr),
        (wrong.status.code(), wrong.stderr)
    );
    // By response file, with a listing on standard output.
    fs::write(bench.at("list"), "-aln 'plain.s' -o\nlisted.o").expect("the directory is writable");
    let listed = ours(&["@list"]);
    assert!(
        listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("prefetchw")
    );
    assert!(
        instructions("objdump", &bench.at("listed.o"))
            .iter()
            .any(|text| text.starts_with("prefetchw"))
    );
    // Without its option it is a question.
    let (code, said) = bench.tool(&[]);
    assert!(code == 2 && said.contains("--install"), "{said}");
}

#[test]
fn an_assembler_that_is_this_one_again_does_not_run_for_ever() {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    script(
        &bench.at("around"),
        &format!("#!/bin/sh\nexec {} \"$@\"\n", bench.at("bin/as").display()),
    );
    for assembler in ["bin/as", "around", "/nonexistent/as", "bin"] {
        let mut gcc = Command::new("gcc");
        gcc.args(["-B", "bin", "-O2", "-g", "-c", "t.c", "-o", "t.o"])
            .env("COHTRACE_AS", bench.at(assembler));
        let path = format!(
            "{}:{}",
            bench.at("bin").display(),
            std::env::var("PATH").expect("as the test set it up")
        );
        let output = bench.run(gcc.env("PATH", path));
        assert!(
            output.status.success(),
            "{assembler}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(
            prefetches(&bench.instructions("t.o")).len(),
            3,
            "{assembler}"
        );
    }
}

#[test]
fn a_build_of_many_units_at_once_is_summed_up() {
    let bench = Bench::new("t.c", SOURCE);
    let mut nowhere = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    let hint = nowhere.clone();
    nowhere.file = Some("/nowhere/z.c".to_owned());
    bench.install(&[hint, nowhere]);
    let children: Vec<_> = (0..8)
        .map(|number| {
            let mut gcc = Command::new("gcc");
            gcc.args([
                "-B",
                "bin",
                "-O2",
                "-g",
                "-c",
                "t.c",
                "-o",
                &format!("t{number}.o"),
            ]);
            gcc.current_dir(bench.at(""))
                .env("COHTRACE_AS_LOG", bench.at("as.log"))
                .env("COHTRACE_AS_QUIET", "1");
            gcc.stderr(std::process::Stdio::piped())
                .spawn()
                .expect("as the test set it up")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it runs");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "quiet");
    }
    let first = fs::read(bench.at("t0.o")).expect("the file is there");
    assert!((1..8).all(|number| {
        fs::read(bench.at(&format!("t{number}.o"))).expect("the file is there") == first
    }));
    let (code, said) = bench.tool(&["--summary", "as.log"]);
    assert_eq!(code, 0);
    assert!(
        said.contains("8 units of the build") && said.contains("24 prefetches in 8 units"),
        "{said}"
    );
    assert!(
        said.contains("H2 /nowhere/z.c:5") && said.contains("no unit has code of that line"),
        "{said}"
    );
    assert_eq!(bench.tool(&["--summary", "as.log", "--check"]).0, 1);
}

#[test]
fn nothing_of_others_is_written_over() {
    let bench = Bench::new("t.c", SOURCE);
    fs::write(bench.at("hints.json"), hint_file(&[]).render()).expect("the directory is writable");
    fs::create_dir(bench.at("bin")).expect("as the test set it up");
    fs::write(bench.at("bin/as"), "somebody's").expect("the directory is writable");
    let (code, said) = bench.tool(&["--install", "bin"]);
    assert!(
        code == 2 && said.contains("not a script of cohtrace"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(bench.at("bin/as")).expect("the file is there"),
        "somebody's"
    );
    // Bad hints are told when they are installed.
    fs::write(bench.at("hints.json"), "{}").expect("the directory is writable");
    let (code, said) = bench.tool(&["--install", "other"]);
    assert!(
        code == 2 && said.contains("not a hints file") && !bench.at("other").exists(),
        "{said}"
    );
}

#[test]
fn odd_names_of_directories_are_quoted() {
    let bench = Bench::new("t.c", SOURCE);
    let hint = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render())
        .expect("the directory is writable");
    let name = "it's $HOME `x` \"q\"";
    assert_eq!(bench.tool(&["--install", name]).0, 0);
    bench.compile(&["gcc", "-B", name, "-O2", "-g", "-c", "t.c"]);
    assert_eq!(prefetches(&bench.instructions("t.o")).len(), 3);
}
