//! `cohtrace as`: real compilers build with hints, and what they built is disassembled by binutils.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cohtrace::hint::file::{
    Evidence, Expected, FORMAT, HintFile, HintedCode, LoadClass, LoadHint, VERSION,
};
use cohtrace_tests::{live, tool};

const SOURCE: &str = "\
#include <stdio.h>
struct node { struct node *next; long count; double weight; };
static inline __attribute__((always_inline)) long bump(struct node *n) {
  long c;
  c = n->count;
  if (c > 3)
    n->count = c + 1;
  return c;
}
__attribute__((noinline)) long once(struct node *n) { return bump(n); }
__attribute__((noinline)) long twice(struct node *n) { return bump(n) + 3 * bump(n->next); }
int main(int argc, char **argv) {
  (void)argv;
  struct node b = {0, argc + 7, 2.0}, a = {&b, argc + 4, 1.0};
  long sum = 0;
  for (int i = 0; i < 5; i++) sum += once(&a) + twice(&a);
  printf(\"%ld %ld %ld\\n\", sum, a.count, b.count);
  return (int)(sum % 100);
}
";
/// The line of the load, and the displacement of its operand.
const LOAD: (u32, &str) = (5, "8(%");

/// A directory with a source file, hints and `bin/as`.
struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new(file: &str, source: &str) -> Bench {
        let bench = Bench {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::write(bench.at(file), source).unwrap();
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        // Compilers write the full path down.
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// Runs a command here.
    fn run(&self, command: &mut Command) -> Output {
        command
            .current_dir(self.at(""))
            .output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Runs a compiler, which must succeed, and gives what it said.
    fn compile(&self, words: &[&str]) -> String {
        let output = self.run(Command::new(words[0]).args(&words[1..]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}\n{said}");
        said
    }

    /// The tool, with hints of this directory.
    fn tool(&self, words: &[&str]) -> (i32, String) {
        let mut command = tool::cohtrace(["as", "--hints", "hints.json"]);
        let output = self.run(command.args(words));
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    fn install(&self, hints: &[HintedCode]) {
        fs::write(self.at("hints.json"), hint_file(hints).render()).unwrap();
        let (code, said) = self.tool(&["--install", "bin"]);
        assert_eq!(code, 0, "{said}");
    }

    /// The hint that the compiler's own assembly gives for a load of a line.
    fn hint(&self, compiler: &[&str], file: &str, (line, part): (u32, &str)) -> HintedCode {
        self.compile(&[compiler, &["-S", file, "-o", "plain.s"]].concat());
        let text = fs::read_to_string(self.at("plain.s")).unwrap();
        let mut column = None;
        for text in text.lines().map(str::trim) {
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.first() == Some(&".loc") {
                let of_line = words[2] == line.to_string();
                column = of_line.then(|| words[3].parse::<u32>().unwrap());
            }
            let load = text.starts_with("mov") && text.contains(part) && !text.ends_with(')');
            if let (Some(column), true) = (column, load) {
                let operand = &words[1].trim_end_matches(',');
                return HintedCode {
                    ip: "0x1".to_owned(),
                    file: Some(self.at(file).display().to_string()),
                    line: Some(line),
                    column: (column > 0).then_some(column),
                    instruction: Some(text.to_owned()),
                    operand: Some((*operand).to_owned()),
                    ..HintedCode::default()
                };
            }
        }
        panic!("no load of line {line} in\n{text}");
    }

    fn instructions(&self, program: &str) -> Vec<String> {
        instructions("objdump", &self.at(program))
    }

    /// What a program prints, and its exit code.
    fn result(&self, program: &str) -> (String, Option<i32>) {
        let output = self.run(&mut Command::new(self.at(program)));
        (
            String::from_utf8(output.stdout).unwrap(),
            output.status.code(),
        )
    }
}

fn hint_file(hints: &[HintedCode]) -> HintFile {
    let hint = |(number, load): (usize, &HintedCode)| LoadHint {
        id: format!("H{}", number + 1),
        kind: "fetch-for-ownership".to_owned(),
        load: load.clone(),
        class: LoadClass::Integer,
        stores: Vec::new(),
        object: None,
        field: None,
        expected: Expected::default(),
        x86: "prefetchw".to_owned(),
        aarch64: "prfm pstl1keep".to_owned(),
        text: String::new(),
    };
    HintFile {
        format: FORMAT.to_owned(),
        version: VERSION,
        tool_version: "0.1.0".to_owned(),
        session: None,
        evidence: Evidence::default(),
        hints: hints.iter().enumerate().map(hint).collect(),
        left: Vec::new(),
        caveats: Vec::new(),
    }
}

/// The instructions of the functions of a program, as objdump has them.
fn instructions(objdump: &str, program: &Path) -> Vec<String> {
    let output = Command::new(objdump)
        .args(["-d", "--no-show-raw-insn", "-j", ".text"])
        .arg(program)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let tab = |line: &str| {
        Some(
            line.split_once(":\t")?
                .1
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    text.lines().filter_map(tab).collect()
}

/// The prefetches; each must stand in front of an instruction with the same operand.
fn prefetches(instructions: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for pair in instructions.windows(2) {
        if let Some(operand) = pair[0].strip_prefix("prefetchw ") {
            let operand = operand.split(" #").next().unwrap().trim();
            assert!(pair[1].contains(operand), "{pair:?}");
            found.push(operand);
        }
    }
    found
}

/// The mnemonics without prefetches and padding: what must stay as it was.
fn others(instructions: &[String]) -> Vec<&str> {
    let mnemonics = instructions
        .iter()
        .filter_map(|text| text.split(' ').next());
    mnemonics
        .filter(|name| {
            !name.starts_with("prefetch")
                && !name.contains("nop")
                && !["xchg", "data16", "cs"].contains(name)
        })
        .collect()
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Builds plainly and with hints, and compares. Gives the operands of the prefetches.
fn built_with(compiler: &[&str], file: &str, source: &str, load: (u32, &str)) -> Vec<String> {
    let bench = Bench::new(file, source);
    bench.install(&[bench.hint(compiler, file, load)]);
    bench.compile(&[compiler, &[file, "-o", "plain"]].concat());
    let said = bench.compile(&[compiler, &["-B", "bin", file, "-o", "hinted"]].concat());
    assert!(
        said.contains(&format!("{file}:{}", load.0)) && said.contains("prefetchw"),
        "{said}"
    );
    let (plain, hinted) = (bench.instructions("plain"), bench.instructions("hinted"));
    assert_eq!(others(&plain), others(&hinted), "{compiler:?}");
    assert_eq!(
        bench.result("plain"),
        bench.result("hinted"),
        "{compiler:?}"
    );
    assert!(prefetches(&plain).is_empty());
    // What is read back agrees, for both.
    let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
    assert_eq!(code, 0, "{compiler:?}\n{said}");
    let (code, said) = bench.tool(&["--verify", "plain", "--check"]);
    assert!(
        code == 1 && said.contains("has none"),
        "{compiler:?}\n{said}"
    );
    prefetches(&hinted).into_iter().map(str::to_owned).collect()
}

#[test]
fn every_inlined_copy_has_its_prefetch_right_in_front() {
    let of = |compiler: &[&str]| built_with(compiler, "t.c", SOURCE, LOAD);
    // One in `once` and two in `twice`.
    for level in ["-O1", "-O2", "-O3", "-Os"] {
        let operands = of(&["gcc", level, "-g"]);
        assert_eq!(operands.len(), 3, "{level}: {operands:?}");
        assert!(
            operands.iter().all(|operand| operand.starts_with("0x8(%")),
            "{operands:?}"
        );
    }
    assert_eq!(of(&["gcc", "-O2", "-g", "-gdwarf-4"]).len(), 3);
    // Without columns, the copy in other registers of a function that has the very operand may be another load.
    assert_eq!(of(&["gcc", "-O2", "-g", "-gno-column-info"]).len(), 2);
    assert_eq!(of(&["gcc", "-O2", "-g", "-pipe"]).len(), 3);
    assert_eq!(of(&["gcc", "-O0", "-g"]).len(), 3);
}

#[test]
fn clang_with_its_assembler_outside_is_reached() {
    if !has("clang") {
        return live::skipped("no clang");
    }
    for level in ["-O2", "-O3"] {
        let operands = built_with(
            &["clang", "-fno-integrated-as", level, "-g"],
            "t.c",
            SOURCE,
            LOAD,
        );
        // At -O3 it doubles code.
        assert!(operands.len() >= 3, "{level}: {operands:?}");
    }
}

#[test]
fn templates_and_inline_members_of_cpp_are_reached() {
    let source = "\
#include <cstdio>
template <class T> struct Cell { T before; T value;
  T take() {
    T v = value;
    if (v > 3) value = v - 1;
    return v;
  } };
__attribute__((noinline)) long a(Cell<long> &c) { return c.take(); }
__attribute__((noinline)) long b(Cell<long> *c) { return c[0].take() + 2 * c[1].take(); }
int main(int argc, char **) {
  Cell<long> cells[2] = {{0, argc + 6}, {0, argc + 9}};
  std::printf(\"%ld %ld\\n\", a(cells[0]), b(cells));
}
";
    let operands = built_with(&["g++", "-O2", "-g"], "t.cc", source, (4, "8(%"));
    // The second cell's has another displacement, and the same place.
    assert!(operands.len() >= 2, "{operands:?}");
}

#[test]
fn link_time_optimization_assembles_with_hints_when_it_links() {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    bench.compile(&["gcc", "-O2", "-g", "-flto", "t.c", "-o", "plain"]);
    bench.compile(&[
        "gcc", "-B", "bin", "-O2", "-g", "-flto", "t.c", "-o", "hinted",
    ]);
    assert_eq!(prefetches(&bench.instructions("hinted")).len(), 3);
    assert_eq!(bench.result("plain"), bench.result("hinted"));
}

#[test]
fn a_line_that_moved_gets_nothing_and_is_told() {
    let bench = Bench::new("t.c", SOURCE);
    let mut hint = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    hint.line = Some(4);
    bench.install(&[hint]);
    let said = bench.compile(&["gcc", "-B", "bin", "-O2", "-g", "t.c", "-o", "hinted"]);
    assert!(
        said.contains("t.c:4") && said.contains("no code at that line") && said.contains("H1"),
        "{said}"
    );
    assert!(prefetches(&bench.instructions("hinted")).is_empty());
    let (code, _) = bench.tool(&["--verify", "hinted", "--check"]);
    assert_eq!(code, 1);
    // Without --check it is only said.
    assert_eq!(bench.tool(&["--verify", "hinted"]).0, 0);
}

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
    let read = |name| fs::read(bench.at(name)).unwrap();
    assert_eq!(read("plain.o"), read("hinted.o"), "the very same bytes");
    said
}

#[test]
fn bad_hints_never_end_a_build() {
    let missing = spoilt(|bench| fs::remove_file(bench.at("hints.json")).unwrap());
    assert!(
        missing.contains("hints.json") && missing.contains("without hints"),
        "{missing}"
    );
    let corrupt = spoilt(|bench| fs::write(bench.at("hints.json"), "{\"format\":").unwrap());
    assert!(corrupt.contains("not a hints file"), "{corrupt}");
    let newer = spoilt(|bench| {
        let text = fs::read_to_string(bench.at("hints.json")).unwrap();
        fs::write(
            bench.at("hints.json"),
            text.replace("\"version\": 1", "\"version\": 99"),
        )
        .unwrap();
    });
    assert!(newer.contains("version 99"), "{newer}");
    let gone = spoilt(|bench| {
        let script = fs::read_to_string(bench.at("bin/as")).unwrap();
        let tool = tool::path().unwrap().canonicalize().unwrap();
        fs::write(
            bench.at("bin/as"),
            script.replace(tool.to_str().unwrap(), "/nonexistent/cohtrace"),
        )
        .unwrap();
    });
    assert!(gone.contains("cohtrace is gone"), "{gone}");
}

/// Writes an executable script.
fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
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
        fs::read(bench.at("plain.o")).unwrap(),
        fs::read(bench.at("hinted.o")).unwrap()
    );
}

#[test]
fn intel_syntax_and_code_without_lines_are_left_alone_and_told() {
    let bench = Bench::new("t.c", SOURCE);
    bench.install(&[bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD)]);
    let intel = bench.compile(&[
        "gcc",
        "-B",
        "bin",
        "-O2",
        "-g",
        "-masm=intel",
        "t.c",
        "-o",
        "intel",
    ]);
    assert!(intel.contains("AT&T"), "{intel}");
    let no_lines = bench.compile(&["gcc", "-B", "bin", "-O2", "t.c", "-o", "no_lines"]);
    assert!(no_lines.contains("compile with -g"), "{no_lines}");
    for program in ["intel", "no_lines"] {
        assert!(prefetches(&bench.instructions(program)).is_empty());
    }
    let (code, said) = bench.tool(&["--verify", "no_lines"]);
    assert!(code == 2 && said.contains("compile with -g"), "{said}");
    // Another file's units have nothing to say.
    fs::write(bench.at("u.c"), "int x(int *p) { return *p; }\n").unwrap();
    assert_eq!(bench.compile(&["gcc", "-B", "bin", "-O2", "-c", "u.c"]), "");
}

#[test]
fn locked_instructions_and_thread_locals_are_never_touched() {
    let source = "\
__thread long mine;
long shared;
long add(long *p) { return __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST); }
void more(long *p) { *p += 5; }
long own(void) { return mine; }
long plain(long *p) { return p[1]; }
long hand(long *p) { long v; __asm__ volatile(\"movq 8(%1), %0\" : \"=r\"(v) : \"r\"(p)); return v; }
";
    let bench = Bench::new("t.c", source);
    let at = |line| HintedCode {
        ip: "0x1".to_owned(),
        file: Some("t.c".to_owned()),
        line: Some(line),
        ..HintedCode::default()
    };
    bench.install(&[at(3), at(4), at(5), at(6), at(7)]);
    let said = bench.compile(&["gcc", "-B", "bin", "-O2", "-g", "-c", "t.c"]);
    for (hint, words) in [
        ("H1", "no prefetch"),
        ("H2", "also writes"),
        ("H3", "segment"),
        ("H5", "inline assembly"),
    ] {
        let line = said
            .lines()
            .find(|line| line.contains(&format!("({hint})")))
            .unwrap_or_else(|| panic!("{hint}\n{said}"));
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(prefetches(&bench.instructions("t.o")), ["0x8(%rdi)"]);
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
    fs::write(bench.at("wrong.s"), "\tfrobnicate %rax\n").unwrap();
    let (real, wrong) = (
        real(&["wrong.s", "-o", "x.o"]),
        ours(&["wrong.s", "-o", "x.o"]),
    );
    assert_eq!(
        (real.status.code(), real.stderr),
        (wrong.status.code(), wrong.stderr)
    );
    // By response file, with a listing on standard output.
    fs::write(bench.at("list"), "-aln 'plain.s' -o\nlisted.o").unwrap();
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
            std::env::var("PATH").unwrap()
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
            gcc.stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "quiet");
    }
    let first = fs::read(bench.at("t0.o")).unwrap();
    assert!((1..8).all(|number| fs::read(bench.at(&format!("t{number}.o"))).unwrap() == first));
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
    fs::write(bench.at("hints.json"), hint_file(&[]).render()).unwrap();
    fs::create_dir(bench.at("bin")).unwrap();
    fs::write(bench.at("bin/as"), "somebody's").unwrap();
    let (code, said) = bench.tool(&["--install", "bin"]);
    assert!(
        code == 2 && said.contains("not a script of cohtrace"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(bench.at("bin/as")).unwrap(),
        "somebody's"
    );
    // Bad hints are told when they are installed.
    fs::write(bench.at("hints.json"), "{}").unwrap();
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
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render()).unwrap();
    let name = "it's $HOME `x` \"q\"";
    assert_eq!(bench.tool(&["--install", name]).0, 0);
    bench.compile(&["gcc", "-B", name, "-O2", "-g", "-c", "t.c"]);
    assert_eq!(prefetches(&bench.instructions("t.o")).len(), 3);
}

#[test]
fn a_builtin_that_only_fetches_for_reading_is_told() {
    let source = SOURCE.replace(
        "  c = n->count;",
        "  __builtin_prefetch(&n->count, 1); c = n->count;",
    );
    let bench = Bench::new("t.c", &source);
    let hint = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render()).unwrap();
    // With -O2 gcc moves the prefetch behind the load.
    let built = |words: &[&str]| {
        bench.compile(&[&["gcc", "-O1", "-g", "t.c", "-o", "built"], words].concat());
        bench.tool(&["--verify", "built", "--check"])
    };
    let (code, said) = built(&["-march=x86-64"]);
    assert!(
        code == 1 && said.contains("prefetcht0") && said.contains("-mprfchw"),
        "{said}"
    );
    let (code, said) = built(&["-march=x86-64", "-mprfchw"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn aarch64_units_get_the_prefetch_of_their_processor() {
    if !has("aarch64-linux-gnu-gcc") {
        return live::skipped("no aarch64-linux-gnu-gcc");
    }
    let bench = Bench::new("t.c", SOURCE);
    let hint = HintedCode {
        ip: "0x1".to_owned(),
        file: Some(bench.at("t.c").display().to_string()),
        line: Some(LOAD.0),
        operand: Some("[x0, #8]".to_owned()),
        ..HintedCode::default()
    };
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render()).unwrap();
    let real = String::from_utf8(
        Command::new("aarch64-linux-gnu-gcc")
            .arg("-print-prog-name=as")
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    assert_eq!(bench.tool(&["--install", "bin", "--as", real.trim()]).0, 0);
    bench.compile(&[
        "aarch64-linux-gnu-gcc",
        "-O2",
        "-g",
        "-c",
        "t.c",
        "-o",
        "plain.o",
    ]);
    bench.compile(&[
        "aarch64-linux-gnu-gcc",
        "-B",
        "bin",
        "-O2",
        "-g",
        "-c",
        "t.c",
        "-o",
        "hinted.o",
    ]);
    let of = |name: &str| instructions("aarch64-linux-gnu-objdump", &bench.at(name));
    let hinted = of("hinted.o");
    let mut found = 0;
    for pair in hinted
        .windows(2)
        .filter(|pair| pair[0].starts_with("prfm pstl1keep, "))
    {
        let operand = pair[0].trim_start_matches("prfm pstl1keep, ");
        assert!(
            pair[1].starts_with("ldr ") && pair[1].ends_with(operand),
            "{pair:?}"
        );
        found += 1;
    }
    assert_eq!(found, 3, "{hinted:?}");
    let without: Vec<_> = hinted
        .iter()
        .filter(|text| !text.starts_with("prfm") && *text != "nop")
        .filter_map(|text| text.split(' ').next())
        .collect();
    let plain = of("plain.o");
    let plain: Vec<_> = plain
        .iter()
        .filter(|text| *text != "nop")
        .filter_map(|text| text.split(' ').next())
        .collect();
    assert_eq!(without, plain);
    let (code, said) = bench.tool(&["--verify", "hinted.o"]);
    assert!(code == 2 && said.contains("x86-64"), "{said}");
}
