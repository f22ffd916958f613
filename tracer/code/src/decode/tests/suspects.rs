//! What may have been waited for instead of the instruction before the ip.

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, dword_ptr, eax, ecx, edx, ptr, qword_ptr, r8, r9, rax, rbx, rcx, rdi, rdx,
        rsi, rsp,
    },
};

use super::{Program, program};

/// `for (;;) { (rbx) = 1; (rdi) = rax; barrier; (rsi) }`
fn stores_and(barrier: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Program {
    program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(qword_ptr(rbx), 1)?;
        a.mov(qword_ptr(rdi), rax)?;
        barrier(a)?;
        a.mov(edx, dword_ptr(rsi))?;
        a.test(edx, edx)?;
        a.jne(again)?;
        a.ret()
    })
}

#[test]
fn behind_a_locked_instruction_the_stores_before_it_are_suspects() {
    let p = stores_and(|a| a.lock().or(qword_ptr(rsp), 0));
    assert_eq!(p.stalled(3, &[]), "2 stalled rmw 8 rsp locked");
    assert_eq!(
        p.suspects(3, &[]),
        [
            "AtBarrier",
            "1 decoded store 8 rdi",
            "0 decoded store 8 rbx"
        ]
    );
}

#[test]
fn behind_mfence_nothing_stalls_but_the_stores_before_it_are_suspects() {
    let p = stores_and(CodeAssembler::mfence);
    assert_eq!(p.stalled(3, &[]), "full_barrier");
    assert_eq!(
        p.suspects(3, &[]),
        [
            "AtBarrier",
            "1 decoded store 8 rdi",
            "0 decoded store 8 rbx"
        ]
    );
    // Twin: what only orders loads, or stores among themselves, waits for no line.
    for p in [
        stores_and(CodeAssembler::lfence),
        stores_and(CodeAssembler::sfence),
    ] {
        assert_eq!(p.stalled(3, &[]), "no_memory_operand");
        assert_eq!(p.suspects(3, &[]), ["AtInstruction"]);
    }
}

#[test]
fn xchg_with_memory_is_a_barrier_and_xchg_of_registers_is_none() {
    let p = stores_and(|a| a.xchg(qword_ptr(r8), rcx));
    assert_eq!(p.stalled(3, &[]), "2 stalled rmw 8 r8 locked");
    assert_eq!(
        p.suspects(3, &[]),
        [
            "AtBarrier",
            "1 decoded store 8 rdi",
            "0 decoded store 8 rbx"
        ]
    );
    let p = stores_and(|a| a.xchg(r9, rcx));
    assert_eq!(p.suspects(3, &[]), ["AtInstruction"]);
}

#[test]
fn a_load_right_behind_a_barrier_retires_with_it() {
    let p = stores_and(|a| a.lock().or(qword_ptr(rsp), 0));
    assert_eq!(p.stalled(4, &[]), "3 stalled load 4 rsi");
    assert_eq!(
        p.suspects(4, &[]),
        [
            "AtBarrier",
            "2 decoded rmw 8 rsp locked",
            "1 decoded store 8 rdi",
            "0 decoded store 8 rbx"
        ]
    );
    // Twin: another access in between would have been the one to wait.
    let p = program(|a| {
        a.mov(qword_ptr(rdi), rax)?;
        a.mfence()?;
        a.mov(eax, dword_ptr(rbx))?;
        a.mov(edx, dword_ptr(rsi))?;
        a.test(edx, edx)?;
        a.ret()
    });
    assert_eq!(
        p.suspects(4, &[]),
        ["AtInstruction", "2 decoded load 4 rbx"]
    );
}

#[test]
fn what_lies_before_an_earlier_barrier_or_a_call_is_no_suspect() {
    let p = program(|a| {
        a.mov(qword_ptr(rbx), rax)?;
        a.lock().inc(qword_ptr(r8))?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mfence()?;
        a.ret()
    });
    assert_eq!(p.suspects(4, &[]), ["AtBarrier", "2 decoded store 8 rdi"]);
    let p = program(|a| {
        a.mov(qword_ptr(rbx), 1)?;
        a.call(super::START + 0x1000)?;
        a.mov(qword_ptr(rsp + 8), 1)?;
        a.mfence()?;
        a.ret()
    });
    assert_eq!(
        p.suspects(4, &[]),
        ["AtBarrier", "2 decoded store 8 rsp+0x8"]
    );
}

#[test]
fn stores_of_the_blocks_before_are_suspects_up_to_where_paths_meet() {
    // if (rbx & 1) (rdi) = 1; mfence
    let p = program(|a| {
        let mut skip = a.create_label();
        a.mov(qword_ptr(rsi), 1)?;
        a.test(rbx, 1)?;
        a.jne(skip)?;
        a.mov(qword_ptr(rdi), 1)?;
        a.set_label(&mut skip)?;
        a.mfence()?;
        a.ret()
    });
    let even = (Register::RBX, 4 << 32);
    let odd = (Register::RBX, (4 << 32) + 1);
    assert_eq!(
        p.suspects(5, &[even]),
        [
            "AtBarrier",
            "3 decoded store 8 rdi",
            "0 decoded store 8 rsi"
        ]
    );
    assert_eq!(
        p.suspects(5, &[odd]),
        ["AtBarrier", "0 decoded store 8 rsi"]
    );
}

#[test]
fn a_barrier_at_the_end_of_the_block_before_is_seen() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.mov(qword_ptr(rdi), rax)?;
        a.mfence()?;
        a.set_label(&mut again)?;
        a.mov(rdx, qword_ptr(rsi))?;
        a.dec(rcx)?;
        a.jne(again)?;
        a.ret()
    });
    // rcx was not counted down yet: the loop was just entered. The loop's own end would leave it at something else.
    let told = p.told(2, &[(Register::RCX, 0)]);
    assert!(told.contains(&"full_barrier".to_owned()), "{told:?}");
    assert_eq!(
        p.suspects(2, &[(Register::RCX, 0)]),
        ["AtBarrier", "0 decoded store 8 rdi"]
    );
}

#[test]
fn before_a_stalled_load_every_access_is_a_suspect_the_nearest_first() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.inc(rax)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.mov(rdx, qword_ptr(rsi + 16))?;
        a.lea(rdx, ptr(rdx + 1))?;
        a.ret()
    });
    assert_eq!(
        p.suspects(5, &[]),
        [
            "AtInstruction",
            "3 decoded load 8 rsi",
            "2 decoded store 8 rdi",
            "0 decoded load 8 rdi"
        ]
    );
    // Twin: a store waits for nobody, and what stores has its line.
    assert_eq!(p.suspects(3, &[]), ["AtInstruction"]);
}

#[test]
fn suspects_are_near_and_few() {
    let far = |between: usize| {
        program(move |a| {
            a.mov(rax, qword_ptr(rdi))?;
            for _ in 0..between {
                a.inc(ecx)?;
            }
            a.mov(rdx, qword_ptr(rsi))?;
            a.inc(edx)?;
            a.ret()
        })
    };
    assert_eq!(far(60).suspects(62, &[]).len(), 2);
    assert_eq!(far(70).suspects(72, &[]).len(), 1);
    let many = program(|a| {
        for n in 0..40 {
            a.mov(rax, qword_ptr(rdi + n * 8))?;
        }
        a.inc(edx)?;
        a.ret()
    });
    let suspects = many.suspects(40, &[]);
    assert_eq!(suspects.len(), 17);
    assert_eq!(suspects[1], "38 decoded load 8 rdi+0x130");
    assert_eq!(suspects[16], "23 decoded load 8 rdi+0xb8");
}

#[test]
fn in_a_loop_the_stores_of_the_last_round_are_suspects_behind_its_barrier() {
    // `do { (rdi) = rax; mfence; } while (!(rsi));`, entered at its condition.
    let p = program(|a| {
        let mut again = a.create_label();
        let mut condition = a.create_label();
        a.jmp(condition)?;
        a.set_label(&mut again)?;
        a.inc(rax)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mfence()?;
        a.set_label(&mut condition)?;
        a.mov(edx, dword_ptr(rsi))?;
        a.test(edx, edx)?;
        a.je(again)?;
        a.ret()
    });
    let set = [(Register::RDX, 0)];
    assert_eq!(p.stalled(4, &set), "full_barrier");
    assert_eq!(
        p.suspects(4, &set),
        ["AtBarrier", "2 harvested store 8 rdi"]
    );
    // The flag's load retires with the barrier of the block before.
    assert_eq!(p.stalled(5, &set), "4 stalled load 4 rsi");
    assert_eq!(p.suspects(5, &set), ["AtBarrier", "2 decoded store 8 rdi"]);
}
