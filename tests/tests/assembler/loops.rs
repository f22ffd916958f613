//! Hinted loads in loops, built by real compilers: before the loop, in front of the load, or left out.

use cohtrace::hint::file::{HintFile, HintedCode};
use cohtrace_tests::live;

use super::bench::{Bench, has, hint_file};

/// Line 3 reads one word again and again, line 7 walks over words, line 12 over lines, line 17 along a list.
const SOURCE: &str = "\
__attribute__((noinline)) long poll(const volatile long *word, long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += word[1];
  return sum; }
__attribute__((noinline)) long walk(const volatile long *words, long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += words[i];
  return sum; }
struct line { volatile long word; char rest[56]; };
__attribute__((noinline)) long stride(const struct line *lines, long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += lines[i].word;
  return sum; }
struct node { struct node *next; char between[56]; volatile long word; };
__attribute__((noinline)) long chase(const struct node *node) {
  long sum = 0;
  for (; node; node = node->next) sum += node->word;
  return sum; }
static struct line lines[16];
static struct node nodes[2] = {{&nodes[1], {0}, 2}, {0, {0}, 3}};
int main(void) {
  const volatile long *words = &lines[0].word;
  return (int)(poll(words, 100) + walk(words, 100) + stride(lines, 16) + chase(nodes)); }
";
/// Functions, lines of their loads, and executions for each request.
const LOADS: [(&str, u32, u64); 4] = [
    ("poll", 3, 100),
    ("walk", 7, 8),
    ("stride", 12, 1),
    ("chase", 17, 1),
];

fn hints(bench: &Bench, functions: &[&str]) -> HintFile {
    let loads = LOADS.iter().filter(|(name, ..)| functions.contains(name));
    let code = |(_, line, _): &(&str, u32, u64)| HintedCode {
        ip: "0x1".to_owned(),
        file: Some(bench.at("t.c").display().to_string()),
        line: Some(*line),
        // Columns differ between compilers; in `chase` the operand tells the word from the pointer.
        operand: (*line == 17).then(|| "64(%rdi)".to_owned()),
        ..HintedCode::default()
    };
    let code: Vec<HintedCode> = loads.clone().map(code).collect();
    let mut file = hint_file(&code);
    for (hint, (.., times)) in file.hints.iter_mut().zip(loads) {
        hint.expected.requests = 10;
        hint.expected.executions = 10 * times;
    }
    file
}

#[test]
fn one_prefetch_is_before_the_loop_or_in_front_of_each_new_line_or_nowhere() {
    let mut compilers = vec![
        vec!["gcc", "-O2", "-g"],
        vec!["gcc", "-O1", "-g", "-gdwarf-4"],
    ];
    if has("clang") {
        compilers.push(vec![
            "clang",
            "-fno-integrated-as",
            "-O2",
            "-g",
            "-fno-unroll-loops",
        ]);
    } else {
        live::skipped_core("no clang");
    }
    for compiler in compilers {
        let bench = Bench::new("t.c", SOURCE);
        let build = |name: &str| {
            bench.compile(&[&compiler[..], &["-B", "bin", "t.c", "-o", name]].concat())
        };
        bench.compile(&[&compiler[..], &["t.c", "-o", "plain"]].concat());
        bench.install_file(&hints(&bench, &["poll", "walk", "stride", "chase"]), &[]);
        let said = build("hinted");
        assert!(said.contains("before the loop"), "{compiler:?}\n{said}");
        assert!(said.contains("70 of its 80 executions"), "{said}");
        let of = |program: &str| bench.functions_with_prefetch(program);
        assert_eq!(
            of("hinted"),
            ["<poll>", "<stride>", "<chase>"],
            "{compiler:?}\n{said}"
        );
        assert_eq!(bench.result("hinted"), bench.result("plain"));
        let (code, said) = bench.tool(&["--verify", "hinted", "--check"]);
        assert_eq!(code, 0, "{compiler:?}\n{said}");
        assert!(
            said.contains("t.c:3: 1 of 1 loads") && said.contains("1 hint is left out"),
            "{said}"
        );
        let (code, said) = bench.tool(&["--verify", "plain"]);
        assert_eq!(code, 1, "{compiler:?}\n{said}");
        assert!(said.contains("has none before its loop"), "{said}");

        // Alone, the walk is nothing to look for; asked for, it is placed.
        let walk = hints(&bench, &["walk"]);
        bench.install_file(&walk, &[]);
        build("left");
        let (code, said) = bench.tool(&["--verify", "left", "--check"]);
        assert!(code == 0 && said.contains("left out"), "{said}");
        bench.install_file(&walk, &["--everywhere"]);
        build("everywhere");
        assert_eq!(of("everywhere"), ["<walk>"], "{compiler:?}");
        let everywhere = ["--everywhere", "--check", "--verify"];
        assert_eq!(
            bench.tool(&[&everywhere[..], &["everywhere"]].concat()).0,
            0
        );
        assert_eq!(bench.tool(&[&everywhere[..], &["left"]].concat()).0, 1);
    }
}
