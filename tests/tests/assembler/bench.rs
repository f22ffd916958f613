//! A directory to build in, and what binutils say of what was built.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cohtrace::hint::file::{HintFile, HintedCode, LoadClass, LoadHint};
use cohtrace_tests::tool;

/// A load in a function that is inlined three times.
pub(super) const SOURCE: &str = "\
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
pub(super) const LOAD: (u32, &str) = (5, "8(%");

/// A directory with a source file, hints and `bin/as`.
pub(super) struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    /// A directory with this file.
    pub(super) fn new(file: &str, source: &str) -> Bench {
        let bench = Bench {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        fs::write(bench.at(file), source).expect("the directory is writable");
        bench
    }

    /// A path in it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        // Compilers write the full path down.
        self.directory
            .path()
            .canonicalize()
            .expect("it is there")
            .join(name)
    }

    /// Runs a command here.
    pub(super) fn run(&self, command: &mut Command) -> Output {
        command
            .current_dir(self.at(""))
            .output()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Runs a compiler, which must succeed, and gives what it said.
    pub(super) fn compile(&self, words: &[&str]) -> String {
        let output = self.run(Command::new(words[0]).args(&words[1..]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}\n{said}");
        said
    }

    /// The tool, with hints of this directory.
    pub(super) fn tool(&self, words: &[&str]) -> (i32, String) {
        let mut command = tool::cohtrace(["as", "--hints", "hints.json"]);
        let output = self.run(command.args(words));
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().expect("it exits"),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Writes `hints.json` and `bin/as`.
    pub(super) fn install(&self, hints: &[HintedCode]) {
        self.install_file(&hint_file(hints), &[]);
    }

    /// The same of a whole file, with more options.
    pub(super) fn install_file(&self, hints: &HintFile, options: &[&str]) {
        fs::write(self.at("hints.json"), hints.render()).expect("the directory is writable");
        let (code, said) = self.tool(&[&["--install", "bin"], options].concat());
        assert_eq!(code, 0, "{said}");
    }

    /// The hint that the compiler's own assembly gives for a load of a line.
    pub(super) fn hint(
        &self,
        compiler: &[&str],
        file: &str,
        (line, part): (u32, &str),
    ) -> HintedCode {
        self.compile(&[compiler, &["-S", file, "-o", "plain.s"]].concat());
        let text = fs::read_to_string(self.at("plain.s")).expect("the file is there");
        let mut column = None;
        for text in text.lines().map(str::trim) {
            let words: Vec<&str> = text.split_whitespace().collect();
            if words.first() == Some(&".loc") {
                let of_line = words[2] == line.to_string();
                column = of_line.then(|| words[3].parse::<u32>().expect("a column"));
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

    /// Those of a program of this directory.
    pub(super) fn instructions(&self, program: &str) -> Vec<String> {
        instructions("objdump", &self.at(program))
    }

    /// The functions of a program that have a prefetch, each once: `<once>`.
    pub(super) fn functions_with_prefetch(&self, program: &str) -> Vec<String> {
        let output = self.run(Command::new("objdump").args(["-d", "-j", ".text", program]));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let (mut found, mut function) = (Vec::new(), "");
        for line in text.lines() {
            if let Some(name) = line
                .strip_suffix(':')
                .and_then(|head| head.split(' ').nth(1))
            {
                function = name;
            }
            if line.contains("prefetchw") && found.last().is_none_or(|last| last != function) {
                found.push(function.to_owned());
            }
        }
        found
    }

    /// What a program prints, and its exit code.
    pub(super) fn result(&self, program: &str) -> (String, Option<i32>) {
        let output = self.run(&mut Command::new(self.at(program)));
        (
            String::from_utf8(output.stdout).expect("UTF-8"),
            output.status.code(),
        )
    }
}

/// A file of these hints, `H1`, ..
pub(super) fn hint_file(hints: &[HintedCode]) -> HintFile {
    let hint = |(number, load): (usize, &HintedCode)| LoadHint {
        class: LoadClass::Integer,
        ..LoadHint::new(format!("H{}", number + 1), load.clone())
    };
    HintFile {
        hints: hints.iter().enumerate().map(hint).collect(),
        ..HintFile::default()
    }
}

/// The instructions of the functions of a program, as objdump has them.
pub(super) fn instructions(objdump: &str, program: &Path) -> Vec<String> {
    let output = Command::new(objdump)
        .args(["-d", "--no-show-raw-insn", "-j", ".text"])
        .arg(program)
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
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
pub(super) fn prefetches(instructions: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for pair in instructions.windows(2) {
        if let Some(operand) = pair[0].strip_prefix("prefetchw ") {
            let operand = operand
                .split(" #")
                .next()
                .expect("as the test set it up")
                .trim();
            assert!(pair[1].contains(operand), "{pair:?}");
            found.push(operand);
        }
    }
    found
}

/// The mnemonics without prefetches and padding: what must stay as it was.
pub(super) fn others(instructions: &[String]) -> Vec<&str> {
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

/// Whether a program is installed.
pub(super) fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
