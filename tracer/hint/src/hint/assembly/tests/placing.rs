//! Where prefetches are placed, and where not.

use expect_test::expect;

use super::{PLACE, file, load, prefetches, rewritten_in_src, unit, with_one};
use crate::hint::assembly::{How, Kept, Place, Refusal, Unread, rewrite};

const GCC: &str = "\t.file\t\"t.c\"
\t.text
.Ltext0:
\t.file 0 \"/src\" \"t.c\"
\t.type\ttwice, @function
twice:
.LVL0:
\t.file 1 \"t.c\"
\t.loc 1 10 28 view -0
\t.loc 1 5 5 is_stmt 0 view .LVU5
\tmovq\t8(%rdi), %rdx
.LVL1:
\t.loc 1 7 18 is_stmt 0 view .LVU9
\tleaq\t1(%rdx), %rax
\tmovq\t%rax, 8(%rdi)
.L2:
\t.loc 1 10 47 view .LVU12
\tmovq\t(%rdi), %rcx
.LVL3:
\t.loc 1 5 5 is_stmt 0 view .LVU16
\tmovq\t8(%rcx), %rax
\tret
other:
\tmovq\t8(%rdi), %rdx
";

const CLANG: &str = "\t.text
\t.file\t\"t.c\"
\t.file\t0 \"/src\" \"t.c\" md5 0xc8288166150c40b158472cfa98b38519
twice:                                  # @twice
\t.loc\t0 5 10 prologue_end             # t.c:5:10
\tmovq\t8(%rdi), %rcx
.Ltmp0:
\t#DEBUG_VALUE: bump:c <- $rcx
\t.loc\t0 5 10 is_stmt 0 discriminator 2 # t.c:5:10
\tmovq\t8(%rdx), %rax # 8-byte Reload
\tretq";

#[test]
fn every_copy_of_a_hinted_load_gets_its_own_operand() {
    let gcc = with_one(GCC, load("/src/t.c", 5, 5, "movq 8(%rdi), %rdx"));
    expect![[r#"
        [
            "prefetchw 8(%rdi) | movq\t8(%rdi), %rdx",
            "prefetchw 8(%rcx) | movq\t8(%rcx), %rax",
        ]
    "#]]
    .assert_debug_eq(&prefetches(&gcc));
    let how: Vec<How> = gcc.placed.iter().map(|placed| placed.how).collect();
    assert_eq!(how, [How::SameOperand, How::OtherRegisters]);
    assert_eq!(gcc.placed[1].function.as_deref(), Some("twice"));
    let clang = with_one(CLANG, load("t.c", 5, 10, "movq 8(%rdi), %rcx"));
    assert_eq!(
        prefetches(&clang),
        [
            "prefetchw 8(%rdi) | movq\t8(%rdi), %rcx",
            "prefetchw 8(%rdx) | movq\t8(%rdx), %rax # 8-byte Reload"
        ]
    );
}

#[test]
fn the_place_stays_in_force_and_nothing_else_changes() {
    let rewritten = with_one(GCC, load("/src/t.c", 10, 47, "movq (%rdi), %rcx"));
    let text = String::from_utf8(rewritten.text.unwrap()).unwrap();
    assert_eq!(
        text,
        GCC.replace(
            "\tmovq\t(%rdi), %rcx\n",
            "\tprefetchw (%rdi)\n\tmovq\t(%rdi), %rcx\n"
        )
    );
}

#[test]
fn another_line_another_file_and_another_directory_get_nothing() {
    let none = |hint| with_one(GCC, hint);
    let wrong_line = none(load("/src/t.c", 6, 5, "movq 8(%rdi), %rdx"));
    assert_eq!(
        (wrong_line.text, &wrong_line.refused[..]),
        (None, &[(0, Refusal::NoCode)][..])
    );
    let no_load = none(load("/src/t.c", 7, 18, "movq 8(%rdi), %rdx"));
    assert_eq!(
        (no_load.text, &no_load.refused[..]),
        (None, &[(0, Refusal::NoLoad)][..])
    );
    for elsewhere in ["/src/u.c", "/other/t.c", "/src/t.cc"] {
        let rewritten = none(load(elsewhere, 5, 5, "movq 8(%rdi), %rdx"));
        assert_eq!(
            (rewritten.text, rewritten.refused),
            (None, vec![]),
            "{elsewhere}"
        );
    }
}

#[test]
fn of_several_loads_the_operand_tells() {
    let text =
        unit("\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n\taddq 16(%rdi), %rax\n\taddq 8(%rsi), %rax\n");
    let placed = |instruction| prefetches(&with_one(&text, load("/src/t.c", 7, 3, instruction)));
    assert_eq!(
        placed("addq 16(%rdi), %rax"),
        ["prefetchw 16(%rdi) | addq 16(%rdi), %rax"]
    );
    assert_eq!(
        placed("addq 16(%rbx), %rax"),
        ["prefetchw 16(%rdi) | addq 16(%rdi), %rax"]
    );
    // Of another size: of none of these.
    assert_eq!(placed("addl 16(%rbx), %eax"), Vec::<String>::new());
    let unclear = with_one(&text, load("/src/t.c", 7, 3, "movq 24(%rdi), %rax"));
    let operands = ["8(%rdi)", "16(%rdi)", "8(%rsi)"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(unclear.refused, [(0, Refusal::Ambiguous(operands))]);
}

#[test]
fn a_hint_without_an_operand_means_the_only_load() {
    let one =
        unit("\t.loc 1 7 3\n\tmovq -8(%rsp), %rdi\n\tmovq 8(%rdi), %rax\n\tmovq %rax, (%rsi)\n");
    let rewritten = with_one(&one, load("/src/t.c", 7, 3, ""));
    assert_eq!(
        prefetches(&rewritten),
        ["prefetchw 8(%rdi) | movq 8(%rdi), %rax"]
    );
    assert_eq!(rewritten.placed[0].how, How::OnlyLoad);
    let two = unit("\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n\tmovq (%rsi), %rdx\n");
    assert!(with_one(&two, load("/src/t.c", 7, 3, "")).text.is_none());
}

#[test]
fn spilled_values_and_loads_to_leave_are_not_meant() {
    let spill = unit("\t.loc 1 7 3\n\tmovq 8(%rsp), %rdi\n");
    let refused = with_one(&spill, load("/src/t.c", 7, 3, "movq 8(%rdi), %rax")).refused;
    assert_eq!(
        refused,
        [(0, Refusal::NotMeant(vec!["8(%rsp)".to_owned()]))]
    );
    let text = unit("\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n");
    let hint = load("/src/t.c", 7, 3, "movq 16(%rdi), %rax");
    let left = load("/src/t.c", 7, 3, "movq 8(%rdi), %rax");
    let left_alone = rewritten_in_src(text.as_bytes(), &file(vec![hint.clone()], vec![left]));
    assert!(left_alone.text.is_none());
    assert!(
        with_one(&text, hint).text.is_some(),
        "without it, it is the only load"
    );
}

#[test]
fn without_columns_the_line_and_the_operand_decide() {
    let text = unit("\t.loc 1 7 0\n\tmovq 8(%rdi), %rax\n\taddq 8(%rsi), %rax\n");
    let placed = |instruction| prefetches(&with_one(&text, load("/src/t.c", 7, 3, instruction)));
    assert_eq!(
        placed("movq 8(%rdi), %rax"),
        ["prefetchw 8(%rdi) | movq 8(%rdi), %rax"]
    );
    // Of `a->x + b->x` in other registers nothing tells which is which.
    assert_eq!(placed("movq 8(%rbx), %rax"), Vec::<String>::new());
}

#[test]
fn another_compiler_s_columns_leave_the_operand_to_decide() {
    let text = unit("\t.loc 1 7 5\n\tmovq 8(%rdi), %rax\n\t.loc 1 7 9\n\taddq 16(%rdi), %rax\n");
    let of = |instruction| with_one(&text, load("/src/t.c", 7, 21, instruction));
    assert_eq!(
        prefetches(&of("movq 16(%rdx), %rcx")),
        ["prefetchw 16(%rdi) | addq 16(%rdi), %rax"]
    );
    assert_eq!(
        of("movq 24(%rdx), %rcx").refused,
        [(0, Refusal::OtherColumn(vec![5, 9]))]
    );
    assert!(of("").text.is_none());
    // The operand tells the column, and the column the copy in other registers.
    let copy = format!(
        "{text}g:\n\t.loc 1 7 9\n\taddq 16(%rsi), %rax\n\t.loc 1 7 5\n\taddq 16(%rdx), %rax\n"
    );
    let hint = load("/src/t.c", 7, 21, "addq 16(%rdi), %rcx");
    assert_eq!(prefetches(&with_one(&copy, hint)).len(), 2);
}

#[test]
fn what_is_not_to_be_touched_is_not_and_says_why() {
    for (statement, why) in [
        ("lock addq $1, 8(%rdi)", Kept::ReadModifyWrite),
        ("addq $1, 8(%rdi)", Kept::ReadModifyWrite),
        ("rep movsq", Kept::String),
        ("movq %fs:8(%rdi), %rax", Kept::Segment),
        ("movq %rax, %rdx; movq 8(%rdi), %rax", Kept::ByHand),
        ("here: movq 8(%rdi), %rax", Kept::ByHand),
        ("#APP\n\tmovq 8(%rdi), %rax\n#NO_APP", Kept::ByHand),
    ] {
        let rewritten = with_one(
            &unit(&format!("\t.loc 1 7 3\n\t{statement}\n")),
            load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"),
        );
        assert_eq!(rewritten.text, None, "{statement}");
        assert_eq!(
            rewritten.refused,
            [(0, Refusal::Kept(vec![why]))],
            "{statement}"
        );
    }
}

#[test]
fn a_prefetch_that_is_there_is_not_doubled() {
    let text = unit("\t.loc 1 7 3\n\tprefetchw 8(%rdi)\n\tmovq 8(%rdi), %rax\n");
    let rewritten = with_one(&text, load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"));
    assert!(rewritten.text.is_none() && rewritten.placed[0].already);
    // Where the load can be jumped to, or the prefetch is of another place, it is.
    for between in [".L4:\n\tmovq", "nop\n\tmovq"] {
        let text = text.replace("movq", between);
        assert!(
            with_one(&text, load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"))
                .text
                .is_some()
        );
    }
    let other = text.replace("prefetchw 8", "prefetchw 16");
    assert!(
        with_one(&other, load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"))
            .text
            .is_some()
    );
}

#[test]
fn two_hints_of_one_load_give_one_prefetch() {
    let hint = load("/src/t.c", 5, 5, "movq 8(%rdi), %rdx");
    let twice = rewritten_in_src(GCC.as_bytes(), &file(vec![hint.clone(), hint], Vec::new()));
    assert_eq!(prefetches(&twice).len(), 2);
    assert_eq!(twice.placed.len(), 4);
}

#[test]
fn rewriting_twice_adds_nothing() {
    let hint = load("/src/t.c", 5, 5, "movq 8(%rdi), %rdx");
    let once = with_one(GCC, hint.clone()).text.unwrap();
    let twice = rewritten_in_src(&once, &file(vec![hint], Vec::new()));
    assert!(twice.text.is_none());
    assert!(twice.placed.len() == 2 && twice.placed.iter().all(|placed| placed.already));
}

#[test]
fn what_is_not_understood_is_left_alone() {
    let hint = || load("/src/t.c", 5, 5, "movq 8(%rdi), %rdx");
    let intel = format!("\t.intel_syntax noprefix\n{GCC}");
    let rewritten = with_one(&intel, hint());
    assert_eq!(
        (rewritten.text, rewritten.unread),
        (None, Some(Unread::OtherSyntax))
    );
    let no_lines: Vec<&str> = GCC.lines().filter(|line| !line.contains(".loc")).collect();
    let no_lines = no_lines.join("\n");
    assert_eq!(with_one(&no_lines, hint()).unread, Some(Unread::NoLines));
    // Data alone needs no lines.
    assert_eq!(with_one("\t.data\nx:\n\t.long 1\n", hint()).unread, None);
}

#[test]
fn paths_are_joined_with_the_directory_of_the_compiler() {
    let text = "\t.file \"t.c\"\n\t.file 1 \"../lib/t.h\"\nf:\n\t.loc 1 3 2\n\tmovl (%rdi), %eax\n";
    let at = |file: &str, directory: &str| {
        let hints = file_of(load(file, 3, 2, "movl (%rdi), %eax"));
        let place = Place { directory, ..PLACE };
        rewrite(text.as_bytes(), &hints, &place).text.is_some()
    };
    assert!(at("/src/lib/t.h", "/src/app"));
    assert!(at("lib/t.h", "/src/app"));
    assert!(!at("/src/app/t.h", "/src/app"));
    // In another tree.
    assert!(at("/src/lib/t.h", "/other/app"));
}

fn file_of(hint: crate::hint::file::HintedCode) -> crate::hint::file::HintFile {
    file(vec![hint], Vec::new())
}

#[test]
fn a_copy_of_another_form_is_the_only_load_of_its_place_unless_its_line_comes_anyway() {
    let copy = |operand: &str| {
        let text = unit(&format!(
            "\t.loc 1 7 3\n\tmovq 8(%rdi), %rax\n\t.loc 1 9 1\n\tnop\n\t.loc 1 7 3\n\tmovq {operand}, %rdx\n"
        ));
        let rewritten = with_one(&text, load("/src/t.c", 7, 3, "movq 8(%rdi), %rax"));
        prefetches(&rewritten).len()
    };
    assert_eq!(copy("8(%rsi)"), 2);
    assert_eq!(copy("24(%rsi)"), 2);
    assert_eq!(copy("table(%rip)"), 2);
    assert_eq!(copy("72(%rdi)"), 2);
    assert_eq!(copy("24(%rdi)"), 1);
    assert_eq!(copy("24(%rsp)"), 1);
}
