//! What a loop tells beyond the ip's own block.

use iced_x86::{
    IcedError, Register,
    code_asm::{CodeAssembler, dword_ptr, eax, qword_ptr, r12, r13, rax, rbx, rcx, rdi, rdx, rsi},
};

use super::{Program, program};
use crate::decode::{
    CallConvention,
    flow::{Flow, Graph},
    loops,
};

/// A loop whose middle runs on some iterations only:
/// `do { (rbx)++; if ((rcx) == 0) (rsi)++; (r12)++; advance } while (--edx)`.
fn with_a_conditional_middle() -> Program {
    program(|a| {
        let mut again = a.create_label();
        let mut skip = a.create_label();
        a.set_label(&mut again)?;
        a.add(qword_ptr(rbx), 1)?;
        a.cmp(dword_ptr(rcx), 0)?;
        a.nop()?;
        a.jne(skip)?;
        a.add(qword_ptr(rsi), 1)?;
        a.nop()?;
        a.set_label(&mut skip)?;
        a.add(qword_ptr(r12), 1)?;
        a.add(rdi, 8)?;
        a.mov(rax, qword_ptr(rdi))?;
        a.dec(rdx)?;
        a.jne(again)?;
        a.ret()
    })
}

#[test]
fn every_iterations_blocks_are_harvested_and_sometimes_blocks_are_not() {
    let p = with_a_conditional_middle();
    assert_eq!(
        p.told(1, &[(Register::RDX, 9)]),
        [
            "0 stalled rmw 8 rbx",
            "1 decoded load 4 rcx",
            "6 harvested rmw 8 r12",
            "8 harvested load 8 rdi",
        ]
    );
}

/// `do { (rbx)++; fork; (rdi)++, (r12)++; fork; } while (..)`, where the forks have `arm` on one side:
/// from the loop's start, no walk reaches the middle.
fn with_a_middle(arm: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>) -> Program {
    program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.add(qword_ptr(rbx), 1)?;
        a.nop()?;
        for touches in [true, false] {
            let mut skip = a.create_label();
            a.jo(skip)?;
            arm(a)?;
            a.set_label(&mut skip)?;
            if touches {
                a.add(qword_ptr(rdi), 1)?;
                a.add(qword_ptr(r12), 1)?;
            }
        }
        a.jno(again)?;
        a.ret()
    })
}

#[test]
fn registers_that_the_loop_changes_tell_nothing_elsewhere_in_it() {
    let p = with_a_middle(|a| a.mov(rdi, qword_ptr(rsi)));
    assert_eq!(
        p.told(1, &[]),
        ["0 stalled rmw 8 rbx", "5 harvested rmw 8 r12", "1 unknown"]
    );
    let p = with_a_middle(|a| a.mov(rdx, qword_ptr(rsi)));
    assert_eq!(
        p.told(1, &[]),
        [
            "0 stalled rmw 8 rbx",
            "4 harvested rmw 8 rdi",
            "5 harvested rmw 8 r12"
        ]
    );
}

#[test]
fn a_call_in_a_loop_costs_the_caller_saved_registers() {
    let p = with_a_middle(|a| a.call(super::START + 0x1000));
    assert_eq!(
        p.told(1, &[]),
        ["0 stalled rmw 8 rbx", "5 harvested rmw 8 r12", "1 unknown"]
    );
    // Code whose callees save nothing.
    assert_eq!(
        p.convention(CallConvention::PointersOnly).told(1, &[]),
        ["0 stalled rmw 8 rbx", "2 unknown"]
    );
}

#[test]
fn only_the_innermost_loop_is_harvested() {
    let p = program(|a| {
        let mut outer = a.create_label();
        let mut inner = a.create_label();
        a.set_label(&mut outer)?;
        a.add(qword_ptr(rbx), 1)?;
        a.cmp(dword_ptr(r13), 0)?;
        a.set_label(&mut inner)?;
        a.add(qword_ptr(r12), 1)?;
        a.nop()?;
        a.jno(inner)?;
        a.add(qword_ptr(rsi), 1)?;
        a.nop()?;
        a.jno(outer)?;
        a.ret()
    });
    assert_eq!(p.told(3, &[]), ["2 stalled rmw 8 r12"]);
    // In the outer loop, the inner one runs on every iteration too.
    assert_eq!(
        p.told(6, &[]),
        [
            "0 harvested rmw 8 rbx",
            "1 harvested load 4 r13",
            "2 decoded rmw 8 r12",
            "5 stalled rmw 8 rsi"
        ]
    );
    // The inner loop's start is entered from its own end.
    assert_eq!(p.stalled(2, &[]), "no_memory_operand");
}

#[test]
fn an_advancing_pointer_is_undone_into_the_last_iteration() {
    let p = program(|a| {
        let mut again = a.create_label();
        let mut condition = a.create_label();
        a.jmp(condition)?;
        a.set_label(&mut again)?;
        a.add(qword_ptr(rdi), 1)?;
        a.add(rdi, 0x40)?;
        a.set_label(&mut condition)?;
        a.mov(eax, dword_ptr(rbx))?;
        a.test(eax, eax)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(
        p.told(4, &[(Register::RAX, 1)]),
        ["1 decoded rmw 8 rdi", "3 stalled load 4 rbx",]
    );
    assert_eq!(
        p.told(4, &[(Register::RAX, 0)]),
        ["1 harvested rmw 8 rdi-0x40", "3 stalled load 4 rbx",]
    );
}

#[test]
fn a_loop_through_a_jump_table_is_not_harvested() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.add(qword_ptr(rbx), 1)?;
        a.mov(eax, dword_ptr(rsi))?;
        a.jmp(qword_ptr(rax * 8 + 0x5000))?;
        a.add(qword_ptr(r12), 1)?;
        a.nop()?;
        a.jmp(again)?;
        a.add(qword_ptr(r13), 1)?;
        a.jmp(again)
    });
    // Which case runs next is not known; the next round's start is.
    assert_eq!(
        p.told(4, &[]),
        [
            "0 decoded rmw 8 rbx",
            "1 decoded load 4 rsi",
            "3 stalled rmw 8 r12",
            "1 unknown"
        ]
    );
    assert_eq!(
        p.told(1, &[]),
        ["0 stalled rmw 8 rbx", "1 decoded load 4 rsi", "1 unknown"]
    );
}

fn nest_of(flows: &[Flow]) -> (Graph, loops::Nest) {
    let nowhere = vec![false; flows.len()];
    let mut graph = Graph::cut(flows, &nowhere, &nowhere);
    let nest = loops::find(&mut graph);
    (graph, nest)
}

#[test]
fn nested_loops_know_their_parents_and_their_every_iteration_blocks() {
    // 0: outer header, 1: inner header, 2: inner latch, 3: outer latch, 4: out
    let (graph, nest) = nest_of(&[
        Flow::Next,
        Flow::Branch(Some(3)),
        Flow::Branch(Some(1)),
        Flow::Branch(Some(0)),
        Flow::Stop,
    ]);
    assert_eq!(graph.blocks.len(), 5);
    assert_eq!(nest.loops.len(), 2);
    assert_eq!((nest.loops[0].header, nest.loops[0].tail), (1, 2));
    assert_eq!((nest.loops[1].header, nest.loops[1].tail), (0, 3));
    assert_eq!(nest.loops[0].parent, Some(1));
    assert_eq!(nest.innermost, [Some(1), Some(0), Some(0), Some(1), None]);
    assert!(nest.contains(1, 2) && !nest.contains(0, 3));
    // 3 is reached from 1 and from 2: 1 dominates it.
    assert_eq!(nest.dominator, [None, Some(0), Some(1), Some(1), Some(3)]);
}

#[test]
fn a_cycle_with_two_entries_is_no_loop() {
    // 0 branches into the middle (2) of the cycle 1 -> 2 -> 1.
    let (_, nest) = nest_of(&[
        Flow::Branch(Some(2)),
        Flow::Next,
        Flow::Branch(Some(1)),
        Flow::Stop,
    ]);
    assert!(nest.loops.is_empty());
    // Twin: entered at the top only.
    let (_, nest) = nest_of(&[
        Flow::Branch(Some(3)),
        Flow::Next,
        Flow::Branch(Some(1)),
        Flow::Stop,
    ]);
    assert_eq!(nest.loops.len(), 1);
}

#[test]
fn a_cycle_that_nothing_seen_enters_is_a_loop_from_its_first_block() {
    // 0: jump table; 1: a case that is a loop by itself.
    let (graph, nest) = nest_of(&[Flow::Stop, Flow::Next, Flow::Branch(Some(1)), Flow::Stop]);
    assert_eq!(nest.loops.len(), 1);
    assert_eq!(nest.loops[0].header, 1);
    assert!(graph.blocks[1].unseen);
}

#[test]
fn a_shape_beyond_the_bound_has_no_loops_and_ends() {
    // A ladder whose every rung jumps back to the start and ahead to the end.
    let rungs = 60_000u32;
    let flows: Vec<Flow> = (0..rungs)
        .map(|rung| match rung % 2 {
            0 => Flow::Branch(Some(rungs - 1)),
            _ => Flow::Branch(Some(rung / 2)),
        })
        .collect();
    let started = std::time::Instant::now();
    let (graph, nest) = nest_of(&flows);
    assert_eq!(graph.blocks.len(), nest.innermost.len());
    assert!(started.elapsed().as_secs() < 20);
}
