//! Prefetches in loops: before the loop, in front of the load, or nowhere.

use super::{PLACE, file, load, rewritten_in_src, unit};
use crate::hint::{
    assembly::{Place, Refusal, Rewritten, prefetch_of, rewrite},
    file::{FollowingStore, HintFile, HintedCode, Prefetch, StoreKind},
    repeated::Repeated,
};

/// A hint for line 7 of `t.c` whose load misses once in `executions` times.
fn hints(instruction: &str, executions: u64, kind: StoreKind) -> HintFile {
    let mut hints = file(vec![load("/src/t.c", 7, 3, instruction)], Vec::new());
    hints.hints[0].expected.requests = 100;
    hints.hints[0].expected.executions = 100 * executions;
    hints.hints[0].stores = vec![FollowingStore {
        code: HintedCode::default(),
        count: 100,
        kind,
    }];
    hints
}

fn placed(body: &str, hints: &HintFile) -> Rewritten {
    rewritten_in_src(unit(body).as_bytes(), hints)
}

/// The rewritten body.
fn body(rewritten: &Rewritten) -> String {
    let text = String::from_utf8(rewritten.text.clone().unwrap_or_default()).unwrap();
    let body = text.split_once("f:\n").map_or("", |(_, body)| body);
    body.replace('\t', " ")
}

fn is_refused(rewritten: &Rewritten) -> bool {
    rewritten.text.is_none() && matches!(rewritten.refused[..], [(0, Refusal::Repeats(_))])
}

/// Reads one word until it is not 0.
const POLL: &str = "\tmovq %rdi, %rbx\n.L2:\n\tpause\n\t.loc 1 7 3\n\tmovq 8(%rbx), %rax\n\ttestq %rax, %rax\n\tje .L2\n";
/// Sums words up.
const WALK: &str = "\txorl %eax, %eax\n.L2:\n\t.loc 1 7 3\n\taddq (%rdi), %rax\n\taddq $8, %rdi\n\tcmpq %rsi, %rdi\n\tjne .L2\n";

#[test]
fn a_load_of_one_line_is_fetched_before_its_loop() {
    let hints = hints("movq 8(%rbx), %rax", 50, StoreKind::Plain);
    let polled = placed(POLL, &hints);
    assert!(
        body(&polled).starts_with(" movq %rdi, %rbx\n prefetchw 8(%rbx)\n.L2:\n pause\n"),
        "{}",
        body(&polled)
    );
    assert_eq!(body(&polled).matches("prefetchw").count(), 1);
    assert!(polled.placed[0].before_loop);
    // Once more adds nothing.
    let again = rewritten_in_src(&polled.text.unwrap(), &hints);
    assert!(again.text.is_none() && again.placed[0].already);
    // Entered by a jump to its test.
    let rotated = POLL.replace(".L2:\n\tpause", "\tjmp .L3\n.L2:\n\tpause\n.L3:");
    let rotated = placed(&rotated, &hints);
    assert!(
        body(&rotated).contains(" prefetchw 8(%rbx)\n jmp .L3\n"),
        "{}",
        body(&rotated)
    );
    // A function that is called keeps %rbx, and not %rdi.
    let calls = POLL.replace("\tpause\n", "\tcall g\n");
    assert!(placed(&calls, &hints).placed[0].before_loop);
    let mut in_rdi = hints.clone();
    in_rdi.hints[0].load = load("/src/t.c", 7, 3, "movq 8(%rdi), %rax");
    assert!(is_refused(&placed(
        &calls.replace("8(%rbx)", "8(%rdi)"),
        &in_rdi
    )));
    assert!(placed(&POLL.replace("8(%rbx)", "8(%rdi)"), &in_rdi).placed[0].before_loop);
}

#[test]
fn a_walk_over_words_is_refused_and_one_over_lines_is_not() {
    let walk = |executions, kind| placed(WALK, &hints("addq (%rdi), %rax", executions, kind));
    let refused = walk(8, StoreKind::Plain);
    assert!(is_refused(&refused), "{refused:?}");
    assert!(
        refused.refused[0]
            .1
            .phrase()
            .contains("700 of its 800 executions")
    );
    // The twin: each element is on a line of its own.
    let lines = WALK.replace("$8", "$64");
    let lines = placed(&lines, &hints("addq (%rdi), %rax", 1, StoreKind::Plain));
    assert!(body(&lines).contains(" prefetchw (%rdi)\n addq (%rdi), %rax\n"));
    assert!(!lines.placed[0].before_loop);
    // Nodes of a list.
    let list = WALK.replace("addq $8, %rdi", "movq 8(%rdi), %rdi");
    assert!(
        placed(&list, &hints("addq (%rdi), %rax", 1, StoreKind::Plain))
            .text
            .is_some()
    );
    // A store that the CPU waits for pays for eight prefetches, and not for a thousand.
    assert!(body(&walk(8, StoreKind::CompareAndSwap)).contains(" prefetchw (%rdi)\n addq"));
    assert!(is_refused(&walk(1000, StoreKind::CompareAndSwap)));
    // Whoever asks for it gets each one.
    let everywhere = Place {
        everywhere: true,
        ..PLACE
    };
    let hints = hints("addq (%rdi), %rax", 8, StoreKind::Plain);
    let asked = rewrite(unit(WALK).as_bytes(), &hints, &everywhere);
    assert!(body(&asked).contains(" prefetchw (%rdi)\n addq (%rdi), %rax\n"));
}

#[test]
fn what_is_in_no_loop_keeps_its_prefetch_and_what_may_be_is_refused() {
    let straight =
        "\t.loc 1 7 3\n\tmovq 8(%rbx), %rax\n\ttestq %rax, %rax\n\tje .L2\n\tnop\n.L2:\n";
    let hints = hints("movq 8(%rbx), %rax", 50, StoreKind::Plain);
    assert!(body(&placed(straight, &hints)).starts_with(" .loc 1 7 3\n prefetchw 8(%rbx)\n"));
    // What stands behind a jump to anywhere is not run on the way into the loop, whichever compiler writes the jump.
    for jump in ["jmp", "jmpq"] {
        let away = POLL.replace("\tmovq %rdi, %rbx\n", &format!("\t{jump} *%rax\n"));
        assert!(is_refused(&placed(&away, &hints)), "{jump}");
    }
    // A table of jumps may lead into the loop.
    let table = format!("{POLL}\tret\n\t.section .rodata\n.L9:\n\t.quad .L2\n\t.text\n");
    assert!(is_refused(&placed(&table, &hints)));
    let debug = format!("{POLL}\tret\n\t.section .debug_rnglists\n\t.quad .L2\n\t.text\n");
    assert!(placed(&debug, &hints).placed[0].before_loop);
    // Under a condition, the loop may never load.
    let rarely = POLL
        .replace("\tpause\n", "\ttestb %cl, %cl\n\tje .L4\n")
        .replace(
            "\tje .L2\n",
            "\tjne .L5\n.L4:\n\tdecb %cl\n\tjmp .L2\n.L5:\n",
        );
    assert!(is_refused(&placed(&rarely, &hints)));
    // Assembly by hand, as of spin loops, is read as far as it can be.
    let by_hand = |text: &str| {
        let text = format!("#APP\n{text}\n#NO_APP\n");
        placed(&POLL.replace("\tpause\n", &text), &hints)
    };
    assert!(by_hand("rep; nop").placed[0].before_loop);
    assert!(is_refused(&by_hand("cpuid")));
    assert!(is_refused(&by_hand("1: decq %rcx; jne 1b")));
}

#[test]
fn a_rebuild_has_the_prefetch_before_a_loop_that_keeps_the_address_and_none_in_one_that_walks() {
    // xor %eax,%eax; 1: mov (%rdi),%rax; ..
    const START: u64 = 0x1000;
    const LOAD: u64 = START + 2;
    let repeated = |executions: u64, pays| Repeated {
        executions,
        requests: 1,
        pays,
    };
    let place = |code: &[u8], repeated| prefetch_of(code, START, LOAD, repeated);
    // add $8,%rdi; cmp %rsi,%rdi; jne 1b; ret
    let walk = [
        0x31, 0xc0, 0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x39, 0xf7, 0x75, 0xf4, 0xc3,
    ];
    // dec %esi; jne 1b; ret
    let poll = [0x31, 0xc0, 0x48, 0x8b, 0x07, 0xff, 0xce, 0x75, 0xf9, 0xc3];
    let straight = [0x31, 0xc0, 0x48, 0x8b, 0x07, 0xc3];
    let hits = Some(repeated(8, false));
    assert_eq!(place(&walk, hits), Prefetch::LeftOut);
    assert_eq!(place(&poll, hits), Prefetch::BeforeLoop);
    assert_eq!(place(&straight, hits), Prefetch::InFront);
    // Where the CPU waits for the store, or each execution has a line of its own, it stays.
    assert_eq!(place(&walk, Some(repeated(8, true))), Prefetch::InFront);
    assert_eq!(place(&walk, None), Prefetch::InFront);
}
