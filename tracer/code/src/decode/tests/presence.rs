//! What runs around the ip, and how certain that is.

use iced_x86::{
    Register,
    code_asm::{dword_ptr, eax, ptr, qword_ptr, r12, rax, rbp, rbx, rcx, rdi, rdx, rsi, rsp},
};

use super::program;
use crate::decode::CallConvention;

#[test]
fn the_block_is_told_from_any_ip_in_it() {
    let p = program(|a| {
        a.mov(rdx, qword_ptr(rdi))?;
        a.mov(rcx, qword_ptr(rsi + 8))?;
        a.add(qword_ptr(rbx), 1)?;
        a.mov(qword_ptr(rdi + 16), rdx)?;
        a.ret()
    });
    for at in 0..5 {
        let told = p.told(at, &[]);
        let all = [
            "load 8 rdi",
            "load 8 rsi+0x8",
            "rmw 8 rbx",
            "store 8 rdi+0x10",
        ];
        for (number, what) in all.iter().enumerate() {
            let basis = if number + 1 == at {
                "stalled"
            } else {
                "decoded"
            };
            assert!(
                told.contains(&format!("{number} {basis} {what}")),
                "{told:?}"
            );
        }
    }
}

#[test]
fn a_loaded_pointer_is_known_after_its_load_and_not_before() {
    // `s->count++` as compilers write it without optimization.
    let p = program(|a| {
        a.mov(rax, qword_ptr(rbp - 8))?;
        a.mov(rax, qword_ptr(rax + 16))?;
        a.lea(rdx, ptr(rax + 1))?;
        a.mov(rax, qword_ptr(rbp - 8))?;
        a.mov(qword_ptr(rax + 16), rdx)?;
        a.nop()?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        [
            "0 stalled load 8 rbp-0x8",
            "1 decoded load 8 rax+0x10",
            "3 decoded load 8 rbp-0x8",
            "1 unknown"
        ]
    );
    assert_eq!(
        p.told(4, &[]),
        [
            "0 decoded load 8 rbp-0x8",
            "3 stalled load 8 rbp-0x8",
            "4 decoded store 8 rax+0x10",
            "1 unknown"
        ]
    );
    assert_eq!(p.stalled(5, &[]), "4 stalled store 8 rax+0x10");
    assert_eq!(p.stalled(2, &[]), "register_overwritten");
}

#[test]
fn copies_constants_and_index_arithmetic_are_followed() {
    let p = program(|a| {
        a.nop()?;
        a.mov(rax, rbx)?;
        a.mov(rdx, qword_ptr(rax + 8))?;
        a.mov(eax, 0x6000)?;
        a.mov(rdx, qword_ptr(rax + 8))?;
        a.imul_3(rax, rcx, 24)?;
        a.mov(rdx, qword_ptr(rdi + rax))?;
        a.xchg(rbx, rsi)?;
        a.mov(rdx, qword_ptr(rbx))?;
        a.add(rdi, rcx)?;
        a.mov(rdx, qword_ptr(rdi))?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[(Register::RCX, 2)]),
        [
            "2 decoded load 8 rbx+0x8",
            "4 decoded load 8 0x6008",
            "6 decoded load 8 rdi+0x30",
            "8 decoded load 8 rsi",
            "10 decoded load 8 rdi+0x2",
            "no_memory_operand"
        ]
    );
}

#[test]
fn an_unconditional_way_is_followed_and_a_fork_is_not() {
    let build = |fork: bool| {
        program(move |a| {
            let mut out = a.create_label();
            let mut there = a.create_label();
            a.nop()?;
            a.mov(rdx, qword_ptr(rdi))?;
            if fork {
                a.jo(there)?;
            } else {
                a.jmp(there)?;
            }
            a.set_label(&mut out)?;
            a.mov(rcx, qword_ptr(rbx))?;
            a.ret()?;
            a.set_label(&mut there)?;
            a.mov(rcx, qword_ptr(rsi))?;
            a.jmp(out)
        })
    };
    assert_eq!(
        build(false).told(1, &[]),
        [
            "1 decoded load 8 rdi",
            "3 decoded load 8 rbx",
            "5 decoded load 8 rsi",
            "no_memory_operand"
        ]
    );
    assert_eq!(
        build(true).told(1, &[]),
        ["1 decoded load 8 rdi", "no_memory_operand"]
    );
    // Backwards: the block was certainly entered by its only way, a fork or not.
    assert_eq!(
        build(true).told(6, &[]),
        [
            "1 decoded load 8 rdi",
            "3 decoded load 8 rbx",
            "5 stalled load 8 rsi"
        ]
    );
}

#[test]
fn a_fork_on_known_registers_is_followed() {
    let p = program(|a| {
        let mut there = a.create_label();
        a.nop()?;
        a.test(rax, rax)?;
        a.je(there)?;
        a.mov(rcx, qword_ptr(rbx))?;
        a.ret()?;
        a.set_label(&mut there)?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.ret()
    });
    let told = |value| p.told(1, &[(Register::RAX, value)])[0].clone();
    assert_eq!(told(0), "5 decoded load 8 rsi");
    assert_eq!(told(1), "3 decoded load 8 rbx");
}

#[test]
fn a_block_with_two_ways_in_does_not_tell_which_was_taken() {
    let p = program(|a| {
        let mut there = a.create_label();
        a.cmp(dword_ptr(rdi), 0)?;
        a.je(there)?;
        a.mov(rcx, qword_ptr(rbx))?;
        a.set_label(&mut there)?;
        a.nop()?;
        a.nop()?;
        a.ret()
    });
    assert_eq!(p.told(4, &[]), ["no_memory_operand"]);
}

#[test]
fn past_a_call_only_saved_registers_tell_and_the_time_is_not_certain() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rbx))?;
        a.mov(rax, qword_ptr(rdi))?;
        a.call(super::START + 0x1000)?;
        a.mov(rdx, qword_ptr(rbx + 8))?;
        a.mov(rdx, qword_ptr(rdi + 8))?;
        a.mov(rcx, qword_ptr(rsp + 0x10))?;
        a.ret()
    });
    assert_eq!(
        p.told(0, &[]),
        [
            "0 decoded load 8 rbx",
            "1 decoded load 8 rdi",
            "3 harvested load 8 rbx+0x8",
            "5 harvested load 8 rsp+0x10",
            "no_memory_operand",
            "1 unknown"
        ]
    );
    assert_eq!(
        p.told(3, &[]),
        [
            "0 harvested load 8 rbx",
            "3 decoded load 8 rbx+0x8",
            "4 decoded load 8 rdi+0x8",
            "5 decoded load 8 rsp+0x10",
            "no_memory_operand",
            "1 unknown"
        ]
    );
    // Code whose callees save nothing: rbx is lost too.
    let p = p.convention(CallConvention::PointersOnly);
    assert_eq!(
        p.told(3, &[])[..1],
        ["3 decoded load 8 rbx+0x8".to_string()]
    );
}

#[test]
fn nothing_follows_a_call_that_never_returns() {
    let build = |returns: bool| {
        program(move |a| {
            let mut fail = a.create_label();
            let mut go = a.create_label();
            a.test(eax, eax)?;
            a.jne(go)?;
            a.set_label(&mut fail)?;
            a.call(super::START + 0x1000)?;
            a.set_label(&mut go)?;
            a.add(qword_ptr(r12), 1)?;
            a.ret()?;
            a.call(super::START + if returns { 0x2000 } else { 0x1000 })
        })
    };
    // With the other way in shut, the block was entered by the jump alone.
    assert_eq!(build(false).told(2, &[]), ["no_memory_operand"]);
    assert_eq!(
        build(true).told(2, &[]),
        ["3 harvested rmw 8 r12", "no_memory_operand"]
    );
}

#[test]
fn bytes_that_are_no_instruction_end_the_walk() {
    // mov (%rdi),%rax; (invalid in 64-bit mode); mov (%rsi),%rax; ret
    let bytes = vec![0x48, 0x8b, 0x07, 0x06, 0x06, 0x48, 0x8b, 0x06, 0xc3];
    let p = super::Program::of(bytes);
    assert_eq!(
        p.told(0, &[]),
        ["0 decoded load 8 rdi", "no_memory_operand"]
    );
    assert_eq!(p.told(2, &[]), ["2 decoded load 8 rsi", "ambiguous_path"]);
}

#[test]
fn a_jump_into_the_middle_of_an_instruction_leaves_the_rest_sound() {
    // je +1 over a lock prefix; lock cmpxchg %edx,(%rdi); ret
    let bytes = vec![0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x17, 0xc3];
    let p = super::Program::of(bytes);
    assert_eq!(p.told(2, &[]), ["1 stalled rmw 4 rdi locked"]);
}

#[test]
fn a_very_long_row_is_told_near_the_ip_only() {
    let p = program(|a| {
        for _ in 0..2000 {
            a.add(qword_ptr(rdi), 1)?;
        }
        a.ret()
    });
    let (_, touches) = p.harvest(&super::registers(p.ips[1000], &[]));
    assert_eq!(touches.len(), 512);
    let far = touches.iter().map(|touch| touch.ip.abs_diff(p.ips[1000]));
    assert!(far.max().unwrap() <= 4 * 256);
}

#[test]
fn an_oversized_function_is_cut_and_trusts_no_path_in_the_rest() {
    let mut bytes = vec![0x48, 0x8b, 0x07, 0x75, 0x00, 0x90]; // mov (%rdi),%rax; jne +0; nop
    bytes.resize(2 << 20, 0x90);
    let p = super::Program {
        code: crate::decode::FunctionCode::decode(super::START, &bytes),
        ips: (0..8)
            .map(|n| super::START + [0, 3, 5, 6, 7, 8, 9, 10][n])
            .collect(),
        bytes: Vec::new(),
    };
    assert_eq!(p.code.instructions().len(), (1 << 20) - 3);
    assert_eq!(p.stalled(1, &[]), "0 stalled load 8 rdi");
    assert_eq!(p.stalled(2, &[]), "ambiguous_path");
    let beyond = super::registers(super::START + (1 << 20) + 5, &[]);
    let (harvest, _) = p.harvest(&beyond);
    assert_eq!(
        harvest.stall,
        crate::decode::Stall::Unresolved(crate::event::Unresolved::NotAnInstruction)
    );
}
