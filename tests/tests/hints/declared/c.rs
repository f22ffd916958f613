//! C and C++, by gcc and clang.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path, process::Command};

use cohtrace::hint::AdviceKind;

use super::{BASE, Built, Numbers, Used, assert_sane, code, has};
use crate::hints::succeed;

/// Members of C: a declaration around the name `@`.
const C_MEMBERS: [&str; 28] = [
    "long @",
    "int @",
    "char @",
    "short @",
    "_Bool @",
    "double @",
    "long double @",
    "struct inner @",
    "struct inner *@",
    "enum color @",
    "_Atomic long @",
    "_Atomic(struct inner *) @",
    "long @[3]",
    "short @[2][3]",
    "char @[40]",
    "int (*@)(struct inner *, int)",
    "int (*@)(const char *, ...)",
    "long (*@[2])(void)",
    "int (*@)[4]",
    "char *const @",
    "const volatile long @",
    "unsigned @ : 3",
    "unsigned @ : 9",
    "union { int i; float f; } @",
    "float _Complex @",
    "__int128 @",
    "struct { int @_a; long @_b; }",
    "union { int @_i; char @_c[12]; }",
];

/// Members of C++.
const CPP_MEMBERS: [&str; 23] = [
    "long @",
    "bool @",
    "char @",
    "double @",
    "inner @",
    "inner *@",
    "color @",
    "std::atomic<long> @",
    "std::atomic<inner *> @",
    "std::string @",
    "std::map<int, std::vector<long>> @",
    "std::unique_ptr<inner> @",
    "ns::pair<int, long> @",
    "std::array<int, 4> @",
    "long @[3]",
    "int (*@)(inner *, int)",
    "int inner::*@",
    "unsigned @ : 5",
    "union { int i; float f; } @",
    "struct { int @_a; long @_b; }",
    "union { int @_i; char @_c[12]; }",
    "std::function<int(long)> @",
    "long double @",
];

const C_PRELUDE: &str = "#include <stddef.h>\n#define ____cacheline_aligned_in_smp __attribute__((aligned(64)))\n\
                         struct inner { int x; short y; };\nenum color { RED, GREEN };\n";

const CPP_PRELUDE: &str = "#include <atomic>\n#include <array>\n#include <cstddef>\n#include <functional>\n#include <map>\n\
                           #include <memory>\n#include <string>\n#include <vector>\n\
                           struct inner { int x; short y; };\nenum color { RED, GREEN };\n\
                           struct base { long b0; int b1; };\n\
                           namespace ns { template <class A, class B> struct pair { A a; B b; }; }\n";

/// Structs made up for one run.
const STRUCTS: usize = 40;

/// A made-up struct.
struct Made {
    name: String,
    /// It is derived.
    has_base: bool,
    /// Names and declarations.
    members: Vec<(String, String)>,
}

impl Made {
    fn draw(n: usize, language: &Language, numbers: &mut Numbers) -> Made {
        let count = 2 + numbers.below(10);
        let member = |m: usize, numbers: &mut Numbers| {
            let name = format!("m{m}");
            let declaration = numbers.pick(language.members).replace('@', &name);
            (name, declaration)
        };
        Made {
            name: format!("made{n}"),
            has_base: language.extension == "cpp" && numbers.below(4) == 0,
            members: (0..count).map(|m| member(m, numbers)).collect(),
        }
    }

    fn definition(&self, members: &[String]) -> String {
        let base = if self.has_base { " : base" } else { "" };
        format!(
            "struct {}{base} {{\n    {};\n}};\n",
            self.name,
            members.join(";\n    ")
        )
    }

    fn plain(&self) -> String {
        let members: Vec<String> = self.members.iter().map(|(_, text)| text.clone()).collect();
        self.definition(&members)
    }

    /// The declaration of a member, or of the anonymous one around it; none of those of the base.
    fn declaration(&self, name: &str) -> Option<&str> {
        let around = name.split('_').next();
        let found = self
            .members
            .iter()
            .find(|(member, _)| Some(member.as_str()) == around);
        found.map(|(_, text)| text.as_str())
    }
}

struct Language {
    extension: &'static str,
    compilers: [&'static str; 2],
    flags: &'static [&'static str],
    prelude: &'static str,
    members: &'static [&'static str],
    word: &'static str,
    assertion: &'static str,
}

const C: Language = Language {
    extension: "c",
    compilers: ["gcc", "clang"],
    flags: &["-std=gnu11"],
    prelude: C_PRELUDE,
    members: &C_MEMBERS,
    word: "_Alignas(64)",
    assertion: "_Static_assert",
};

const CPP: Language = Language {
    extension: "cpp",
    compilers: ["g++", "clang++"],
    flags: &["-std=c++17", "-Wno-invalid-offsetof"],
    prelude: CPP_PRELUDE,
    members: &CPP_MEMBERS,
    word: "alignas(64)",
    assertion: "static_assert",
};

fn compile(language: &Language, compiler: &str, directory: &Path, name: &str, more: &[&str]) {
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(["-g", "-w"]);
    if compiler == "clang++" {
        // Else it leaves out types that the library's own debug information would have.
        command.arg("-fstandalone-debug");
    }
    succeed(command.args(language.flags).args(more).arg(name));
}

fn made_up(language: &Language, seed: u64) {
    let mut numbers = Numbers(seed);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let structs: Vec<Made> = (0..STRUCTS)
        .map(|n| Made::draw(n, language, &mut numbers))
        .collect();
    let mut source = language.prelude.to_owned();
    for made in &structs {
        source += &made.plain();
        writeln!(source, "struct {0} object_{0};", made.name).expect("a String takes all");
    }
    let name = format!("plain.{}", language.extension);
    fs::write(directory.path().join(&name), &source).expect("it is ours");
    let mut changed = language.prelude.to_owned();
    let mut moved = 0;
    for compiler in language.compilers {
        if !has(compiler, "--version") {
            continue;
        }
        let more = ["-shared", "-fPIC", "-o", "plain.so"];
        compile(language, compiler, directory.path(), &name, &more);
        let built = Built::at(&directory.path().join("plain.so"), BASE);
        for made in &structs {
            let object = built.variable(&format!("object_{}", made.name), BASE);
            let used = Used::draw(object, &mut numbers);
            moved += usize::from(apply(language, made, &used, compiler, &mut changed));
        }
    }
    assert!(moved > STRUCTS / 8, "only {moved} structs were changed");
    let name = format!("changed.{}", language.extension);
    fs::write(directory.path().join(&name), &changed).expect("it is ours");
    for compiler in language
        .compilers
        .iter()
        .filter(|compiler| has(compiler, "--version"))
    {
        compile(
            language,
            compiler,
            directory.path(),
            &name,
            &["-fsyntax-only"],
        );
    }
}

/// Writes the changed struct, with assertions that it is what the advice promises; `false` where it moves no member.
fn apply(language: &Language, made: &Made, used: &Used, compiler: &str, out: &mut String) -> bool {
    let advice = used.advice();
    assert_sane(&advice.text, &["repr(", "cpu.CacheLinePad", "Contended"]);
    if advice.kind != AdviceKind::SeparateFields {
        assert!(
            used.proposal()
                .is_none_or(|p| p.members.iter().all(|m| !m.starts_line))
        );
        return false;
    }
    let proposal = used.proposal().expect("the advice has a plan");
    let written = code(&advice.text);
    let mut members: Vec<String> = Vec::new();
    for placed in &proposal.members {
        let Some(plain) = made.declaration(&placed.name).map(str::to_owned) else {
            continue;
        };
        if placed.name.contains('_') && members.last() == Some(&plain) {
            continue;
        }
        let ours = format!("{} {plain}", language.word);
        if !placed.starts_line {
            members.push(plain);
            continue;
        }
        // The first four are shown as code, unless some type has no name: then the words say the same.
        let is_shown = written.contains(&placed.declaration);
        let in_words = format!("Put `{}` in front", language.word);
        assert!(
            is_shown || advice.text.contains(&in_words) || advice.text.contains("more likewise"),
            "{}: {}",
            placed.name,
            advice.text
        );
        members.push(if is_shown {
            placed.declaration.trim_end_matches(';').to_owned()
        } else {
            ours
        });
    }
    let name = format!("{}{}", made.name, compiler.replace('+', "p"));
    let named = Made {
        name: name.clone(),
        has_base: made.has_base,
        members: Vec::new(),
    };
    *out += &named.definition(&members);
    let assertion = language.assertion;
    let bit_fields: BTreeSet<&str> = (made.members.iter())
        .filter(|(_, text)| text.contains(" : "))
        .map(|(name, _)| name.as_str())
        .collect();
    let mut assert = |fact: &str| {
        writeln!(out, "{assertion}({fact}, \"\");").expect("a String takes all");
    };
    // Where a bit-field fits into what the members before it left, everything behind it may be less far than that.
    let is_exact = bit_fields.is_empty();
    let relation = if is_exact { "==" } else { "<=" };
    let size = proposal.new_size;
    assert(&format!("sizeof(struct {name}) {relation} {size}"));
    for placed in proposal.members.iter().filter(|_| is_exact) {
        let offset = placed.offset.expect("the order is the source's");
        assert(&format!(
            "offsetof(struct {name}, {}) == {offset}",
            placed.name
        ));
    }
    let apart = |first: &str, second: &str| {
        let end =
            format!("offsetof(struct {name}, {first}) + sizeof(((struct {name} *)0)->{first}) - 1");
        format!("({end}) / 64 < offsetof(struct {name}, {second}) / 64")
    };
    for (a, b) in used.apart() {
        if !bit_fields.contains(a) && !bit_fields.contains(b) {
            assert(&format!("{} || {}", apart(a, b), apart(b, a)));
        }
    }
    let place = |name: &str| {
        let placed = proposal.members.iter().find(|placed| placed.name == name);
        let placed = placed.unwrap_or_else(|| panic!("{name} is gone"));
        (
            placed.offset.expect("the order is the source's"),
            placed.size,
        )
    };
    assert_eq!(
        used.conflict(&std::iter::once(0), place),
        None,
        "{}",
        advice.text
    );
    true
}

#[test]
fn structs_of_c_are_changed_as_promised() {
    made_up(&C, 0x5eed_0001);
}

#[test]
fn structs_of_cpp_are_changed_as_promised() {
    made_up(&CPP, 0x5eed_0002);
}
