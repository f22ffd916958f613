//! What is said of a unit and of a build.

use expect_test::expect;

use super::{file, load, unit};
use crate::hint::assembly::{UnitRecord, lines, names_unit, record, rewrite, summary};

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
    rewrite(text.as_bytes(), &hints(), "/src")
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
fn a_unit_is_named_by_a_hint_of_its_file() {
    assert!(names_unit(&hints(), Some("u.c"), "/src"));
    assert!(!names_unit(&hints(), Some("u.c"), "/other"));
    assert!(!names_unit(&hints(), None, "/src"));
}
