//! Which of several ways led to the ip.

use iced_x86::{
    Register,
    code_asm::{dword_ptr, eax, ecx, edx, qword_ptr, rax, rbx, rcx, rdi, rdx, rsi},
};

use super::program;

const STOP: u64 = 0x40_4000;

#[test]
fn outside_of_a_loop_a_merge_of_two_paths_is_ambiguous() {
    let p = program(|a| {
        let mut condition = a.create_label();
        a.cmp(dword_ptr(rsi), 0)?;
        a.jmp(condition)?;
        a.add(qword_ptr(rdi + 8), 1)?;
        a.set_label(&mut condition)?;
        a.mov(eax, dword_ptr(STOP))?;
        a.ret()
    });
    assert_eq!(p.stalled(3, &[]), "ambiguous_path");
}

#[test]
fn compared_registers_tell_which_path_led_to_a_merge() {
    let p = program(|a| {
        let mut skip = a.create_label();
        a.test(rcx, rcx)?;
        a.je(skip)?;
        a.add(qword_ptr(rdi), 1)?;
        a.set_label(&mut skip)?;
        a.mov(rax, rbx)?;
        a.ret()
    });
    assert_eq!(p.told(3, &[(Register::RCX, 5)]), ["2 stalled rmw 8 rdi"]);
    // The path around the store was taken: nothing was waited for, and the store did not run.
    assert_eq!(p.told(3, &[(Register::RCX, 0)]), ["no_memory_operand"]);
    // Twin: the compared register is overwritten before the merge.
    let p = program(|a| {
        let mut skip = a.create_label();
        a.test(rcx, rcx)?;
        a.mov(rcx, rbx)?;
        a.je(skip)?;
        a.add(qword_ptr(rdi), 1)?;
        a.set_label(&mut skip)?;
        a.mov(rax, rbx)?;
        a.ret()
    });
    assert_eq!(p.told(4, &[(Register::RCX, 5)]), ["ambiguous_path"]);
}

#[test]
fn paths_without_memory_are_not_ambiguous_about_memory() {
    let p = program(|a| {
        let mut skip = a.create_label();
        a.cmp(eax, dword_ptr(rsi))?;
        a.nop()?;
        a.jl(skip)?;
        a.inc(rdx)?;
        a.set_label(&mut skip)?;
        a.mov(rax, rbx)?;
        a.ret()
    });
    assert_eq!(p.told(4, &[]), ["no_memory_operand"]);
}

#[test]
fn several_latches_are_ambiguous_unless_none_touches_memory() {
    let build = |touching: bool| {
        program(move |a| {
            let mut again = a.create_label();
            let mut other = a.create_label();
            a.set_label(&mut again)?;
            a.mov(eax, dword_ptr(rdi))?;
            a.test(eax, eax)?;
            a.je(other)?;
            if touching {
                a.cmp(dword_ptr(rsi), 0)?;
            } else {
                a.cmp(edx, 0)?;
            }
            a.jne(again)?;
            a.ret()?;
            a.set_label(&mut other)?;
            a.dec(ecx)?;
            a.jmp(again)
        })
    };
    // eax is zero on one of the two paths; with it unequal to zero only the other remains.
    let open = [(Register::RAX, 0), (Register::RDX, 1)];
    assert_eq!(build(true).stalled(0, &open), "no_memory_operand");
    assert_eq!(
        build(true).stalled(0, &[(Register::RAX, 7)]),
        "3 stalled load 4 rsi"
    );
    assert_eq!(build(false).stalled(0, &open), "no_memory_operand");
}

#[test]
fn a_jump_table_target_has_no_known_predecessor() {
    let p = program(|a| {
        let mut out = a.create_label();
        a.jmp(rax)?;
        a.add(qword_ptr(rdi), 1)?;
        a.jmp(out)?;
        a.add(qword_ptr(rsi), 1)?;
        a.jmp(out)?;
        a.set_label(&mut out)?;
        a.mov(rdx, qword_ptr(rbx))?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        [
            "1 decoded rmw 8 rdi",
            "5 decoded load 8 rbx",
            "ambiguous_path"
        ]
    );
    assert_eq!(p.stalled(2, &[]), "1 stalled rmw 8 rdi");
    // Where the cases meet, two plain jumps were last: no memory either way, and no case is told.
    assert_eq!(
        p.told(5, &[]),
        ["5 decoded load 8 rbx", "no_memory_operand"]
    );
}

#[test]
fn an_instruction_that_indirect_jumps_may_reach_is_not_certain_of_its_predecessor() {
    let build = |marked: bool| {
        program(move |a| {
            a.add(qword_ptr(rdi), 1)?;
            if marked {
                a.endbr64()?;
            } else {
                a.nop()?;
            }
            a.ret()
        })
    };
    assert_eq!(build(true).told(1, &[]), ["ambiguous_path"]);
    assert_eq!(build(false).told(1, &[]), ["0 stalled rmw 8 rdi"]);
}

#[test]
fn a_loop_whose_own_jump_is_contradicted_was_just_entered() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.mov(rax, qword_ptr(rbx))?;
        a.set_label(&mut again)?;
        a.lea(rdx, qword_ptr(rdi + 8))?;
        a.cmp(qword_ptr(rsi), rdx)?;
        a.nop()?;
        a.test(rcx, rcx)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.stalled(1, &[(Register::RCX, 0)]), "0 stalled load 8 rbx");
    // Twin: the jump may have come here, and then it was last.
    assert_eq!(p.stalled(1, &[(Register::RCX, 1)]), "no_memory_operand");
}

#[test]
fn padding_before_an_aligned_loop_is_no_way_into_it() {
    let build = |padding: bool| {
        program(move |a| {
            let mut body = a.create_label();
            let mut condition = a.create_label();
            a.jmp(condition)?;
            if padding {
                a.nop()?;
            } else {
                a.inc(rdx)?;
            }
            a.set_label(&mut body)?;
            a.add(qword_ptr(rdi), 1)?;
            a.set_label(&mut condition)?;
            a.mov(eax, dword_ptr(STOP))?;
            a.test(eax, eax)?;
            a.jne(body)?;
            a.ret()
        })
    };
    let around = [(Register::RAX, 1)];
    assert_eq!(build(true).stalled(3, &around), "2 stalled rmw 8 rdi");
    // Twin: code that does something is entered somehow, perhaps by a jump table, so the body has
    // another way in.
    assert_eq!(build(false).stalled(3, &around), "ambiguous_path");
}
