//! Go.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use cohtrace::hint::AdviceKind;

use super::{Built, Numbers, Used, assert_sane, code, has};
use crate::hints::succeed;

/// Fields: declarations with `@` for the name.
const FIELDS: [&str; 20] = [
    "@ int64",
    "@ int32",
    "@ uint8",
    "@ bool",
    "@ string",
    "@ []byte",
    "@ [3]int16",
    "@ [70]byte",
    "@ map[string]*inner",
    "@ *inner",
    "@ inner",
    "@ func(int, ...string) error",
    "@ interface{}",
    "@ error",
    "@ chan<- int",
    "@ sync.Mutex",
    "@ time.Time",
    "@ pair[int64]",
    "@ struct{ p, q int }",
    "@ atomic.Value",
];

/// Structs made up for one run.
const STRUCTS: usize = 40;

/// Where the linker puts programs that are not position-independent.
const LINKED_AT: u64 = 0x40_0000;

const PRELUDE: &str = "package main\n\nimport (\n\t\"sync\"\n\t\"sync/atomic\"\n\t\"time\"\n\t\"unsafe\"\n)\n\n\
                       type pair[T any] struct{ a, b T }\ntype inner struct{ x, y int32 }\n\
                       var _ sync.Mutex\nvar _ atomic.Value\nvar _ time.Time\nvar _ unsafe.Pointer\nvar sink interface{}\n";

fn build(directory: &Path, source: &str) {
    fs::write(directory.join("main.go"), source).expect("it is ours");
    let mut command = Command::new("go");
    command
        .current_dir(directory)
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "");
    command.env("GOCACHE", directory.join("cache"));
    succeed(command.args(["build", "-gcflags=-N -l", "-o", "program", "main.go"]));
}

#[test]
fn structs_of_go_are_changed_as_promised() {
    if !has("go", "version") {
        return;
    }
    let mut numbers = Numbers(0x5eed_0003);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut source = PRELUDE.to_owned();
    let mut main = String::new();
    let structs: Vec<Vec<(String, String)>> = (0..STRUCTS)
        .map(|_| {
            let count = 2 + numbers.below(9);
            let field = |m: usize, numbers: &mut Numbers| {
                let name = format!("m{m}");
                let declaration = numbers.pick(&FIELDS).replace('@', &name);
                (name, declaration)
            };
            (0..count).map(|m| field(m, &mut numbers)).collect()
        })
        .collect();
    for (n, fields) in structs.iter().enumerate() {
        let fields: Vec<&str> = fields.iter().map(|(_, text)| text.as_str()).collect();
        writeln!(
            source,
            "type made{n} struct {{\n\t{}\n}}\nvar object{n} made{n}",
            fields.join("\n\t")
        )
        .expect("a String takes all");
        writeln!(main, "\tsink = &object{n}").expect("a String takes all");
    }
    build(
        directory.path(),
        &format!("{source}func main() {{\n{main}}}\n"),
    );
    let built = Built::at(&directory.path().join("program"), LINKED_AT);

    let mut changed = PRELUDE.to_owned();
    let mut moved = 0;
    for (n, fields) in structs.iter().enumerate() {
        let object = built.variable(&format!("main.object{n}"), 0);
        let used = Used::draw(object, &mut numbers);
        let advice = used.advice();
        assert_sane(
            &advice.text,
            &["_Alignas", "alignas", "aligned_alloc", "repr("],
        );
        if advice.kind != AdviceKind::SeparateFields {
            continue;
        }
        moved += 1;
        let proposal = used.proposal().expect("the advice has a plan");
        let written = code(&advice.text);
        let mut members = Vec::new();
        for placed in &proposal.members {
            let plain = fields.iter().find(|(name, _)| *name == placed.name);
            let (_, plain) = plain.expect("the members are the source's");
            if placed.starts_line {
                let (padding, declared) = placed
                    .declaration
                    .split_once("; ")
                    .unwrap_or_else(|| panic!("{}: {}", placed.declaration, advice.text));
                let is_shown = written.iter().any(|line| line == declared);
                assert!(
                    is_shown || advice.text.contains("more likewise"),
                    "{}",
                    advice.text
                );
                members.push(format!("{padding}\n\t{declared}"));
            } else {
                members.push(plain.clone());
            }
        }
        writeln!(
            changed,
            "type made{n} struct {{\n\t{}\n}}",
            members.join("\n\t")
        )
        .expect("a String takes all");
        let size = proposal.new_size;
        let mut same = |what: &str, expected: u64| {
            // Constants of Go are exact: an array of another length is another type.
            writeln!(changed, "var _ [{expected}]byte = [{what}]byte{{}}")
                .expect("a String takes all");
        };
        same(&format!("unsafe.Sizeof(made{n}{{}})"), size);
        for placed in &proposal.members {
            let offset = placed.offset.expect("the order is the source's");
            same(
                &format!("unsafe.Offsetof(made{n}{{}}.{})", placed.name),
                offset,
            );
        }
        let place = |name: &str| {
            let placed = proposal.members.iter().find(|placed| placed.name == name);
            let placed = placed.unwrap_or_else(|| panic!("{name} is gone"));
            (
                placed.offset.expect("the order is the source's"),
                placed.size,
            )
        };
        // Wherever an allocator that knows of words puts it.
        let starts = (0..64).step_by(proposal.alignment as usize);
        assert_eq!(used.conflict(&starts, place), None, "{}", advice.text);
    }
    assert!(moved > STRUCTS / 8, "only {moved} structs were changed");
    build(directory.path(), &format!("{changed}func main() {{}}\n"));
}
