//! What clang compiles.

use std::{fs, process::Command};

use cohtrace_tests::disassembly::Prefetched;

use super::bench::{Bench, clang_plugin, hint, position};

/// A load in a function that is inlined three times, of the field `count`.
const SOURCE: &str = "\
#include <cstdio>
struct Node { Node *next; long count; double weight; };
static inline __attribute__((always_inline)) long bump(Node *n) {
  long c;
  c = n->count;
  if (c > 3)
    n->count = c + 1;
  return c;
}
__attribute__((noinline)) long once(Node *n) { return bump(n); }
__attribute__((noinline)) long twice(Node *n) { return bump(n) + 3 * bump(n->next); }
int main(int argc, char **) {
  Node b = {nullptr, argc + 7, 2.0}, a = {&b, argc + 4, 1.0};
  long sum = 0;
  for (int i = 0; i < 5; i++) sum += once(&a) + twice(&a);
  std::printf(\"%ld %ld %ld\\n\", sum, a.count, b.count);
  return (int)(sum % 100);
}
";
const LINE: u32 = 5;
const COLUMN: u32 = 10;

fn bench() -> Option<Bench> {
    Some(Bench::new(clang_plugin()?, &[("src/t.cpp", SOURCE)]))
}

/// Builds with hints; how many prefetches there are.
fn placed(bench: &Bench) -> (usize, String) {
    let said = bench.clang(&["-O2", "-g", "src/t.cpp", "-o", "hinted"]);
    (bench.prefetches("hinted").len(), said)
}

#[test]
fn every_inlined_copy_has_its_prefetch_and_without_the_plugin_none_has() {
    let Some(bench) = bench() else { return };
    bench.hints(&[hint("H1", bench.load("src/t.cpp", LINE, COLUMN, "8(%rdi)"))]);
    for level in ["-O1", "-O2", "-O3", "-Os"] {
        bench.plainly(&[level, "-g", "src/t.cpp", "-o", "plain"]);
        let said = bench.clang(&[level, "-g", "src/t.cpp", "-o", "hinted"]);
        assert!(
            said.contains("src/t.cpp:5:10: prefetchw, 3 copies (H1)"),
            "{level}: {said}"
        );
        assert_eq!(bench.result("plain"), bench.result("hinted"), "{level}");
        let prefetches = bench.prefetches("hinted");
        assert_eq!(prefetches.len(), 3, "{level}: {prefetches:?}");
        assert!(
            prefetches.iter().all(Prefetched::is_of_next),
            "{prefetches:?}"
        );
        let (code, said) = bench.verify("hinted");
        assert!(
            code == 0 && said.contains("3 of 3 loads"),
            "{level}: {said}"
        );
        let (code, said) = bench.verify("plain");
        assert!(code == 1 && said.contains(": 0 of "), "{level}: {said}");
    }
    // Unoptimised code computes the address of the prefetch apart.
    let said = bench.clang(&["-O0", "-g", "src/t.cpp", "-o", "hinted"]);
    assert!(said.contains("3 copies (H1)"), "{said}");
    assert_eq!(bench.prefetches("hinted").len(), 3);
}

#[test]
fn a_line_that_moved_gets_nothing_and_is_told() {
    let Some(bench) = bench() else { return };
    bench.hints(&[hint("H1", bench.load("src/t.cpp", 2, COLUMN, "8(%rdi)"))]);
    let (count, said) = placed(&bench);
    assert_eq!(count, 0, "{said}");
    assert!(
        said.contains("t.cpp:2:10: no code at that line") && said.contains("(H1)"),
        "{said}"
    );
    bench.hints(&[hint("H1", bench.load("src/t.cpp", LINE, 3, "8(%rdi)"))]);
    let (count, said) = placed(&bench);
    assert!(
        count == 0 && said.contains("loads in column 10 only"),
        "{said}"
    );
}

#[test]
fn another_file_of_the_same_name_is_told_by_its_directory() {
    let Some(bench) = bench() else { return };
    bench.hints(&[hint("H1", bench.load("lib/t.cpp", LINE, COLUMN, "8(%rdi)"))]);
    assert_eq!(placed(&bench).0, 0);
    // The same tree elsewhere.
    let mut load = bench.load("src/t.cpp", LINE, COLUMN, "8(%rdi)");
    load.file = Some("/elsewhere/src/t.cpp".to_owned());
    bench.hints(&[hint("H1", load)]);
    assert_eq!(placed(&bench).0, 3);
}

#[test]
fn a_digest_decides_which_file_it_is() {
    let Some(bench) = bench() else { return };
    let output = bench.run(Command::new("md5sum").arg("src/t.cpp"));
    let md5 = String::from_utf8(output.stdout).expect("UTF-8");
    let md5 = md5.split(' ').next().expect("a digest");
    bench.hints(&[hint("H1", bench.load("lib/t.cpp", LINE, COLUMN, "8(%rdi)"))]);
    bench.digest(md5);
    assert_eq!(placed(&bench).0, 3, "the same content in another directory");
    // As GNU as writes it.
    let pairs: Vec<&str> = (0..16).rev().map(|at| &md5[2 * at..2 * at + 2]).collect();
    bench.digest(&pairs.concat());
    assert_eq!(placed(&bench).0, 3, "the same bytes in the other order");
    bench.hints(&[hint("H1", bench.load("src/t.cpp", LINE, COLUMN, "8(%rdi)"))]);
    bench.digest("0123456789abcdef0123456789abcdef");
    let (count, said) = placed(&bench);
    assert_eq!(count, 0, "other content at the same path");
    assert!(said.contains("the source file has changed"), "{said}");
}

#[test]
fn bad_hints_never_end_a_build_and_change_nothing() {
    let Some(bench) = bench() else { return };
    // Another name of the object would be in neither.
    let object = |with: bool| {
        let arguments = ["-O2", "-g", "-c", "src/t.cpp", "-o", "t.o"];
        let said = if with {
            bench.clang(&arguments)
        } else {
            bench.plainly(&arguments);
            String::new()
        };
        (fs::read(bench.at("t.o")).expect("it was built"), said)
    };
    let (plain, _) = object(false);
    let said_of = |text: Option<&str>| {
        match text {
            Some(text) => bench.write("hints.json", text),
            None => fs::remove_file(bench.at("hints.json")).expect("it was there"),
        }
        let (bytes, said) = object(true);
        assert!(bytes == plain, "the very same bytes: {said}");
        assert!(said.contains("compiled without hints"), "{said}");
        said
    };
    assert!(said_of(Some("{\"format\":")).contains("not a hints file"));
    assert!(said_of(Some("{\"format\": \"other\", \"version\": 1}")).contains("its format"));
    assert!(said_of(Some("[1, null]")).contains("not a hints file"));
    let newer = "{\"format\": \"cohtrace hints\", \"version\": 99, \"hints\": []}";
    assert!(said_of(Some(newer)).contains("another version"));
    assert!(said_of(None).contains("No such file"));
    // Fields of other kinds than expected are hints that cannot be found.
    bench.write(
        "hints.json",
        "{\"format\": \"cohtrace hints\", \"version\": 1, \"hints\": [7, {\"load\": {\"file\": 3, \"line\": \"x\"}}]}",
    );
    let (bytes, said) = object(true);
    assert!(bytes == plain && said.is_empty(), "{said}");
}

#[test]
fn loads_of_one_line_are_told_by_column_and_those_to_leave_alone_are_left() {
    let Some(plugin) = clang_plugin() else { return };
    let source = "\
struct Cell { long a, b; };
struct Pair { Cell *left; Cell *right; };
long sum(Pair *p) { return p->left->b + p->right->b; }
long both(Cell *c) {
#define TAKE c->a * 3 ^ c->b
  return TAKE;
}
int main(int argc, char **) { Cell c{argc, 2}; Pair p{&c, &c}; return (int)(sum(&p) + both(&c)); }
";
    let bench = Bench::new(plugin, &[("t.cpp", source)]);
    let count = || {
        bench.clang(&["-O2", "-g", "-fno-inline", "t.cpp", "-o", "hinted"]);
        bench.prefetches("hinted")
    };
    let (line, column) = position(source, "b + p->right");
    bench.hints(&[hint("H1", bench.load("t.cpp", line, column, "8(%rax)"))]);
    let found = count();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].operand.starts_with("0x8(%"), "{found:?}");
    // Part of the addition, a load has its column; and the compiler may put the other load between.
    let (line, column) = position(source, "+ p->right");
    let operand = found[0].operand.trim_start_matches("0x");
    bench.hints(&[hint("H1", bench.load("t.cpp", line, column, operand))]);
    assert!(!count().is_empty());
    let (code, said) = bench.verify("hinted");
    assert!(code == 0 && said.contains("1 of 1 loads"), "{said}");
    // A macro is one column: the operand tells.
    let (line, column) = position(source, "TAKE;");
    bench.hints(&[hint("H1", bench.load("t.cpp", line, column, "8(%rdi)"))]);
    let found = count();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].operand.starts_with("0x8(%"), "{found:?}");
    // Of an unknown operand it may be any, but not one that is to be left alone.
    let left = bench.load("t.cpp", line, column, "(%rdi)");
    let any = bench.load("t.cpp", line, column, "no operand");
    bench.hints(&[hint("H1", any.clone())]);
    assert_eq!(count().len(), 2);
    bench.hints_beside(&[hint("H1", any)], &[left]);
    assert_eq!(count().len(), 1);
}

#[test]
fn a_line_of_the_standard_library_is_that_of_the_caller_it_was_hinted_for() {
    let Some(plugin) = clang_plugin() else { return };
    let source = "\
#include <atomic>
struct Word { std::atomic<long> value; };
long one(Word *w) {
  return w->value.load(std::memory_order_relaxed);
}
long other(Word *w) {
  return w->value.load(std::memory_order_relaxed);
}
int main(int argc, char **) { Word w{}; w.value = argc; return (int)(one(&w) + other(&w)); }
";
    let bench = Bench::new(plugin, &[("t.cpp", source)]);
    bench.plainly(&[
        "-O2",
        "-g",
        "-fno-inline-functions",
        "-c",
        "t.cpp",
        "-S",
        "-emit-llvm",
        "-o",
        "t.ll",
    ]);
    // The library's line is whatever its version says.
    let text = fs::read_to_string(bench.at("t.ll")).expect("it was written");
    let load = text
        .lines()
        .find(|line| line.contains("load atomic i64"))
        .expect("a load");
    let number = load.rsplit("!dbg !").next().expect("a location");
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    let location = text
        .lines()
        .find(|line| line.starts_with(&format!("!{number} = ")))
        .expect("the location");
    let field = |name: &str| -> u32 {
        let (_, rest) = location.split_once(&format!("{name}: ")).expect("a field");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let (line, column) = position(source, "load(std");
    let hinted = |call_line: u32| {
        let mut code = bench.load("t.cpp", field("line"), field("column"), "(%rdi)");
        code.file = Some("/usr/include/c++/12/bits/atomic_base.h".to_owned());
        code.inlined_at = vec![bench.call("t.cpp", call_line, column)];
        bench.hints(&[hint("H1", code)]);
        bench.clang(&["-O2", "-g", "t.cpp", "-o", "hinted"])
    };
    let said = hinted(line);
    let found = bench.prefetches("hinted");
    // In `one`, and in its copy in `main`.
    let by_caller = |one: &Prefetched| one.frames.iter().any(|frame| frame.line == line);
    assert!(
        !found.is_empty() && found.iter().all(by_caller),
        "{said}\n{found:?}"
    );
    assert!(
        said.contains(&format!("t.cpp:{line}:{column}: prefetchw")),
        "{said}"
    );
    let (code, verified) = bench.verify("hinted");
    assert_eq!(code, 0, "{verified}");
    // The twin: a call that is not there.
    hinted(line + 1);
    assert!(bench.prefetches("hinted").is_empty());
}
