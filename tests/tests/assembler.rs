//! `cohtrace as`: real compilers build with hints, and what they built is disassembled by binutils.

mod bench;
mod elsewhere;
mod loops;
mod wrapper;

use std::{fs, process::Command};

use cohtrace::hint::file::HintedCode;
use cohtrace_tests::live;

use bench::{Bench, LOAD, SOURCE, has, hint_file, instructions, others, prefetches};

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
        return live::skipped_core("no clang");
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
    // A build that no hint has reached is no success, checked or not.
    for words in [
        &["--verify", "hinted", "--check"][..],
        &["--verify", "hinted"],
    ] {
        assert_eq!(bench.tool(words).0, 1);
    }
    // Where one of several is in it, a missing one is an error with --check only.
    let own = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    let moved = HintedCode {
        line: Some(4),
        ..own.clone()
    };
    bench.install(&[own, moved]);
    bench.compile(&["gcc", "-B", "bin", "-O2", "-g", "t.c", "-o", "hinted"]);
    assert_eq!(bench.tool(&["--verify", "hinted", "--check"]).0, 1);
    assert_eq!(bench.tool(&["--verify", "hinted"]).0, 0);
}

#[test]
fn hints_for_libraries_are_not_missing_from_a_program_but_it_must_have_one_of_its_own() {
    let bench = Bench::new("t.c", SOURCE);
    let own = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    let mut library = own.clone();
    library.file = Some("/usr/src/libc/malloc/malloc.c".to_owned());
    bench.install(&[own, library.clone()]);
    bench.compile(&["gcc", "-B", "bin", "-O2", "-g", "t.c", "-o", "hinted"]);
    let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
    assert!(
        code == 0 && said.contains("1 hint is for source files"),
        "{said}"
    );
    bench.install(&[library]);
    let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
    assert!(
        code == 1 && said.contains("no hint is for this program"),
        "{said}"
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
    fs::write(bench.at("u.c"), "int x(int *p) { return *p; }\n")
        .expect("the directory is writable");
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
fn a_builtin_that_only_fetches_for_reading_is_told() {
    let source = SOURCE.replace(
        "  c = n->count;",
        "  __builtin_prefetch(&n->count, 1); c = n->count;",
    );
    let bench = Bench::new("t.c", &source);
    let hint = bench.hint(&["gcc", "-O2", "-g"], "t.c", LOAD);
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render())
        .expect("the directory is writable");
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
    fs::write(bench.at("hints.json"), hint_file(&[hint]).render())
        .expect("the directory is writable");
    let real = String::from_utf8(
        Command::new("aarch64-linux-gnu-gcc")
            .arg("-print-prog-name=as")
            .output()
            .expect("it runs")
            .stdout,
    )
    .expect("as the test set it up");
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
