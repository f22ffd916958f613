//! What is said of a unit and of a build.

use expect_test::expect;

use super::{file, load, rewritten_in_src, unit, with_one};
use crate::hint::assembly::{UnitRecord, lines, record, summary};

fn hints() -> crate::hint::file::HintFile {
    let mut nowhere = load("/src/t.c", 1, 1, "");
    nowhere.file = None;
    file(
        vec![
            load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"),
            load("/src/t.c", 8, 3, "movq 8(%rdi), %rax"),
            load("/src/u.c", 9, 3, ""),
            nowhere,
        ],
        Vec::new(),
    )
}

fn rewritten() -> crate::hint::assembly::Rewritten {
    let text = unit(
        "\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n\t.loc 1 9 1\n\tnop\n\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n\tmovq 8(%rcx), %rax\n\
         \t.loc 1 8 3\n\tlock addq $1, 8(%rdi)\n",
    );
    rewritten_in_src(text.as_bytes(), &hints())
}

#[test]
fn a_unit_s_lines_say_what_was_placed_and_what_was_not() {
    expect![[r"
        t.c:7:3: prefetchw 8(%rdi), 2 copies (H1)
        t.c:7:3: prefetchw 8(%rcx), other registers (H1)
        /src/t.c:8:3: no prefetch: the instruction there also writes, and so fetches for ownership itself (H2)"]]
    .assert_eq(&lines(&rewritten(), &hints()).join("\n"));
}

#[test]
fn a_build_is_summed_up_by_hint() {
    let mut one = record(&rewritten(), &hints());
    one.output = Some("t.o".to_owned());
    let old = UnitRecord {
        placed: Vec::new(),
        ..one.clone()
    };
    let other = UnitRecord {
        unit: Some("v.c".to_owned()),
        unchanged: Some("it has no source lines: compile with -g".to_owned()),
        ..UnitRecord::default()
    };
    let line = |record: &UnitRecord| serde_json::to_string(record).unwrap();
    let log = format!(
        "{}\n{}\nhalf a li\n{}\n",
        line(&old),
        line(&one),
        line(&other)
    );
    let summed = summary(&log, &hints());
    expect![[r"
        2 units of the build
        1 unit unchanged: it has no source lines: compile with -g
        1 line of the log cannot be read
        H1 /src/t.c:7:3: 3 prefetches in 1 unit
        H2 /src/t.c:8:3: placed nowhere: the instruction there also writes, and so fetches for ownership itself
        H3 /src/u.c:9:3: placed nowhere: no unit has code of that line
        H4 code at 0x401136: placed nowhere: the hint names no source line; record a program that was compiled with -g
        3 of 4 hints placed nowhere
    "]]
    .assert_eq(&summed.text);
    assert_eq!(summed.missing, 3);
}

#[test]
fn what_keeps_a_unit_from_its_hints_is_said_once() {
    let said = |text: &str, file: &str| {
        let hint = load(file, 7, 3, "movq 8(%rdi), %rax");
        let hints = super::file(vec![hint.clone(), hint], Vec::new());
        lines(&rewritten_in_src(text.as_bytes(), &hints), &hints)
    };
    let no_lines = "\t.file \"t.c\"\nf:\n\tmovq 8(%rdi), %rax\n";
    assert_eq!(
        said(no_lines, "/src/t.c"),
        ["t.c: no prefetch: it has no source lines: compile with -g"]
    );
    assert_eq!(said(no_lines, "/src/u.c"), [""; 0]);
    let built = "\t.file \"t.c\"\n\t.file 1 \"t.c\"\nf:\n\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n";
    assert_eq!(
        said(built, "/old/t.c"),
        [
            "t.c: no prefetch: the hints are of /old/t.c, and here /src/t.c (the same file? --map /old=/src)"
        ]
    );
    let mut hint = load("/src/t.c", 7, 3, "movq 8(%rdi), %rax");
    hint.md5 = Some("0".repeat(32));
    let changed = with_one(&built.replace("1 \"t.c\"", "1 \"t.c\" md5 0x1"), hint);
    assert_eq!((changed.placed.len(), changed.doubts.len()), (1, 1));
    assert!(changed.doubts[0].starts_with("t.c: its text is not the recorded one"));
}
