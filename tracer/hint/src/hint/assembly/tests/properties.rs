//! What holds for any text.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*, sample::select};

use super::{file, load, rewritten_in_src};
use crate::hint::assembly::Rewritten;

/// The text without what was added.
fn without_added(rewritten: &Rewritten) -> Option<Vec<u8>> {
    let new = rewritten.text.as_ref()?;
    let added: Vec<Vec<u8>> = rewritten
        .placed
        .iter()
        .filter(|placed| !placed.already)
        .map(|placed| format!("\t{}\n", placed.instruction).into_bytes())
        .collect();
    Some(
        new.split_inclusive(|byte| *byte == b'\n')
            .filter(|line| !added.iter().any(|added| added == line))
            .flatten()
            .copied()
            .collect(),
    )
}

fn hints() -> crate::hint::file::HintFile {
    let hints = vec![
        load("/src/t.c", 1, 1, "movq 8(%rdi), %rax"),
        load("t.c", 2, 0, ""),
        load("/src/t.c", 2, 1, "addq table(%rip), %rax"),
    ];
    file(hints, vec![load("t.c", 2, 1, "movq 8(%rcx), %rax")])
}

const LINES: [&str; 24] = [
    ".file \"t.c\"",
    ".file 1 \"t.c\"",
    ".file 0 \"/src\" \"t.c\"",
    ".loc 1 1 1",
    ".loc 1 2 1",
    ".loc 1 2",
    ".loc 0 1 1",
    ".loc 1 3 1",
    "f:",
    ".L1:",
    "movq 8(%rdi), %rax",
    "movq 8(%rcx), %rax",
    "addq table(%rip), %rax",
    "addq $1, 8(%rdi)",
    "movq %fs:0, %rax",
    "rep movsq",
    "x: movq 8(%rdi), %rax",
    "nop; movq 8(%rdi), %rax",
    "#APP",
    "#NO_APP",
    ".macro m",
    ".endm",
    "ldr x0, [x1, 8]",
    "/* x */",
];

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..300)) {
        let rewritten = rewritten_in_src(&bytes, &hints());
        if let Some(back) = without_added(&rewritten) {
            prop_assert_eq!(back, bytes);
        }
    }

    #[test]
    fn lines_are_only_ever_added(
        lines in vec(select(&LINES[..]), 0..60),
        tabs in any::<bool>(),
        last in any::<bool>(),
    ) {
        let start = if tabs { "\t" } else { "" };
        let mut text: String = lines.iter().flat_map(|line| [start, line, "\n"]).collect();
        if last {
            text.pop();
        }
        let rewritten = rewritten_in_src(text.as_bytes(), &hints());
        match without_added(&rewritten) {
            Some(back) => prop_assert_eq!(back, text.into_bytes()),
            None => prop_assert!(rewritten.placed.iter().all(|placed| placed.already)),
        }
    }

    #[test]
    fn any_text_of_the_signs_of_assembly_gives_an_answer(text in "[\\t\\n .:;#%$(),*{}\"\\\\/a-f0-9movqlcfie+-]{0,200}") {
        let rewritten = rewritten_in_src(text.as_bytes(), &hints());
        if let Some(back) = without_added(&rewritten) {
            prop_assert_eq!(back, text.into_bytes());
        }
    }
}

#[test]
fn a_large_unit_takes_a_moment() {
    let mut text = String::from("\t.file \"t.c\"\n\t.file 1 \"t.c\"\n");
    for line in 0..50_000 {
        let place = line % 500 + 3;
        writeln!(
            text,
            "\t.loc 1 {place} 1 view .LVU{line}\n\tmovq\t8(%rdi), %rax"
        )
        .unwrap();
    }
    let hints = file(
        (3..503)
            .map(|line| load("/src/t.c", line, 1, "movq 8(%rdi), %rax"))
            .collect(),
        Vec::new(),
    );
    let start = Instant::now();
    let rewritten = rewritten_in_src(text.as_bytes(), &hints);
    assert_eq!(rewritten.placed.len(), 50_000);
    // A hundred times what it takes: only what grows faster than the text would be caught.
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}
