//! Which loops wait, and for what.

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, al, byte_ptr, dword_ptr, eax, ecx, edx, esi, qword_ptr, r8, rax, rbx, rcx,
        rdi, rdx, rsi, rsp, xmm0,
    },
};

use super::{Program, program};

/// `do { body } while (CONDITION of (rdi));`, with the compared value in edx.
fn polling(body: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Program {
    program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        body(a)?;
        a.mov(eax, dword_ptr(rdi))?;
        a.cmp(eax, edx)?;
        a.jne(again)?;
        a.ret()
    })
}

/// Whether a sample at the loop's last instruction, where the word is still another, is in a loop that waits.
fn waits(p: &Program) -> bool {
    p.suspects(p.ips.len() - 2, &[(Register::RAX, 5)])[0] == "InSpinLoop"
}

#[test]
fn a_loop_that_pauses_and_tests_a_word_waits_for_it_wherever_it_is_sampled() {
    let p = polling(CodeAssembler::pause);
    for at in 0..4 {
        let set = [(Register::RAX, 5)];
        assert_eq!(p.suspects(at, &set)[0], "InSpinLoop", "{at}");
        assert!(p.suspects(at, &set)[1].ends_with("load 4 rdi"), "{at}");
    }
    // Behind the pause, code alone names nobody.
    assert_eq!(p.stalled(1, &[(Register::RAX, 5)]), "no_memory_operand");
    // Twin: past the loop.
    assert_eq!(p.suspects(4, &[])[0], "AtInstruction");
}

#[test]
fn it_waits_without_a_pause_too() {
    assert!(waits(&polling(|_| Ok(()))));
    assert!(waits(&polling(CodeAssembler::nop)));
    assert!(waits(&polling(|a| a.mov(rcx, qword_ptr(rsi)))));
    assert!(waits(&polling(|a| a.tpause(ecx))));
    assert!(waits(&polling(CodeAssembler::monitor)));
    assert!(waits(&polling(CodeAssembler::mfence)));
    assert!(waits(&polling(|a| a.lock().or(qword_ptr(rsp), 0))));
}

#[test]
fn a_loop_that_stores_or_calls_or_leaves_for_the_kernel_works() {
    assert!(!waits(&polling(|a| a.mov(qword_ptr(rsi), rax))));
    assert!(!waits(&polling(|a| a.add(dword_ptr(rsp + 8), 1))));
    assert!(!waits(&polling(|a| a.lock().or(qword_ptr(rsi), 0))));
    assert!(!waits(&polling(|a| a.lock().or(qword_ptr(rsp), 1))));
    assert!(!waits(&polling(|a| a.lock().cmpxchg(dword_ptr(rsi), ecx))));
    assert!(!waits(&polling(|a| a.push(rbx))));
    assert!(!waits(&polling(|a| a.call(super::START + 0x1000))));
    assert!(!waits(&polling(CodeAssembler::syscall)));
    assert!(!waits(&polling(|a| a.addss(xmm0, xmm0))));
    assert!(!waits(&polling(|a| a.fadd(dword_ptr(rsi)))));
    assert!(!waits(&polling(CodeAssembler::cpuid)));
}

#[test]
fn a_loop_that_pauses_may_ask_a_function_whether_to_go_on() {
    // As the kernel waits for the owner of a lock: rcx, which a call may change, is used on after it.
    let p = program(|a| {
        let mut again = a.create_label();
        let mut test = a.create_label();
        let mut out = a.create_label();
        a.jmp(test)?;
        a.set_label(&mut again)?;
        a.mov(esi, dword_ptr(rdx + 0x14))?;
        a.call(super::START + 0x1000)?;
        a.test(al, al)?;
        a.jne(out)?;
        a.pause()?;
        a.mov(rax, qword_ptr(rcx + 8))?;
        a.cmp(rax, rdx)?;
        a.jne(out)?;
        a.set_label(&mut test)?;
        a.mov(rax, qword_ptr(r8))?;
        a.test(al, 0x10)?;
        a.jne(out)?;
        a.mov(eax, dword_ptr(rdx + 0x34))?;
        a.test(eax, eax)?;
        a.jne(again)?;
        a.set_label(&mut out)?;
        a.ret()
    });
    for at in [3, 4, 5, 6, 10, 13] {
        // What the function returned, and what the words were.
        let value = u64::from(at > 5);
        let suspects = p.suspects(at, &[(Register::RAX, value)]);
        assert_eq!(suspects[0], "InSpinLoop", "{at}");
        let words: Vec<&str> = (suspects[1..].iter())
            .map(|suspect| suspect.rsplit(' ').next().unwrap())
            .collect();
        assert_eq!(words, ["rdx+0x34", "r8", "rcx+0x8", "rdx+0x14"], "{at}");
    }
}

#[test]
fn arithmetic_that_goes_on_from_round_to_round_is_work_and_counting_is_none() {
    assert!(waits(&polling(|a| a.inc(rcx))));
    assert!(waits(&polling(|a| a.sub(rcx, 3))));
    assert!(waits(&polling(|a| a.shl(rcx, 1))));
    assert!(waits(&polling(|a| {
        a.mov(rcx, qword_ptr(rsi))?;
        a.and(rcx, -4)?;
        a.xor(rcx, rbx)
    })));
    assert!(!waits(&polling(|a| a.imul_3(rcx, rcx, 5))));
    assert!(!waits(&polling(|a| a.xor(rcx, rbx))));
    assert!(!waits(&polling(|a| a.add(rcx, qword_ptr(rsi)))));
    assert!(!waits(&polling(|a| {
        a.mov(r8, rcx)?;
        a.shl(r8, 13)?;
        a.xor(rcx, r8)
    })));
    // Nor is it waiting where a pause is in it.
    assert!(!waits(&polling(|a| {
        a.pause()?;
        a.imul_3(rcx, rcx, 5)
    })));
}

#[test]
fn a_search_is_no_waiting() {
    // while (*rdi++ != edx);
    assert!(!waits(&polling(|a| a.add(rdi, 4))));
    // while (list->value != edx) list = list->next;
    assert!(!waits(&polling(|a| a.mov(rdi, qword_ptr(rdi + 8)))));
    // The same beside a word that is waited for.
    assert!(!waits(&polling(|a| {
        a.mov(rcx, qword_ptr(rsi))?;
        a.add(rsi, 8)
    })));
    // Twin: a pointer that is read anew in each round.
    assert!(waits(&polling(|a| a.mov(rdi, qword_ptr(rsi + 8)))));
}

#[test]
fn a_loop_that_ends_by_its_own_count_alone_waits_for_nobody() {
    let counted = |tests: bool| {
        program(move |a| {
            let mut again = a.create_label();
            let mut out = a.create_label();
            a.set_label(&mut again)?;
            a.pause()?;
            a.mov(eax, dword_ptr(rdi))?;
            if tests {
                a.test(eax, eax)?;
                a.jne(out)?;
            }
            a.dec(ecx)?;
            a.jne(again)?;
            a.set_label(&mut out)?;
            a.ret()
        })
    };
    let waits = |tests| {
        let p = counted(tests);
        let going = [(Register::RAX, 0), (Register::RCX, 5)];
        p.suspects(p.ips.len() - 2, &going)[0] == "InSpinLoop"
    };
    assert!(waits(true));
    assert!(!waits(false));
}

#[test]
fn a_failed_exchange_that_goes_back_to_the_loop_before_it_leaves_that_waiting() {
    // again: pause; if ((rdi)) goto again; if (!cmpxchg) goto again;
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.pause()?;
        a.mov(eax, dword_ptr(rdi))?;
        a.test(eax, eax)?;
        a.jne(again)?;
        a.lock().cmpxchg(dword_ptr(rdi), ecx)?;
        a.jne(again)?;
        a.ret()
    });
    let taken = [(Register::RAX, 1)];
    assert_eq!(
        p.suspects(1, &taken),
        ["InSpinLoop", "1 decoded load 4 rdi"]
    );
    // Twin: the exchange itself is no waiting.
    assert_eq!(p.suspects(5, &taken)[0], "AtBarrier");
    // A loop of nothing but exchanges works.
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.pause()?;
        a.mov(eax, ecx)?;
        a.xchg(dword_ptr(rdi), eax)?;
        a.test(eax, eax)?;
        a.jne(again)?;
        a.ret()
    });
    assert!(!waits(&p));
}

#[test]
fn pauses_that_are_counted_belong_to_the_loop_around_them() {
    // Counted down from 40, and 39 are left.
    let set = [(Register::RCX, 39)];
    let p = program(|a| {
        let mut again = a.create_label();
        let mut delay = a.create_label();
        a.set_label(&mut again)?;
        a.mov(ecx, 40)?;
        a.set_label(&mut delay)?;
        a.pause()?;
        a.dec(ecx)?;
        a.jne(delay)?;
        a.cmp(byte_ptr(rdi), 0)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(
        p.suspects(2, &set),
        ["InSpinLoop", "4 harvested load 1 rdi"]
    );
}

/// `for (;;) { if ((rdi) < (rsi)) (rdi)++; else rbx++; }`, as gcc lays it out.
fn stores_unless_full() -> Program {
    program(|a| {
        let mut full = a.create_label();
        let mut again = a.create_label();
        a.jmp(again)?;
        a.set_label(&mut full)?;
        a.inc(rbx)?;
        a.set_label(&mut again)?;
        a.mov(rdx, qword_ptr(rdi))?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.cmp(rdx, rcx)?;
        a.jae(full)?;
        a.inc(rdx)?;
        a.mov(qword_ptr(rdi), rdx)?;
        a.jmp(again)
    })
}

#[test]
fn a_block_that_waiting_and_working_share_waits_if_its_test_fails() {
    let p = stores_unless_full();
    let sampled = |at, used, limit| {
        let set = [(Register::RDX, used), (Register::RCX, limit)];
        p.suspects(at, &set)[0].clone()
    };
    // Both values are there: it is full, or it is not and will store.
    assert_eq!(sampled(4, 9, 9), "InSpinLoop");
    assert_eq!(sampled(4, 8, 9), "AtInstruction");
    // Before that nothing tells from where it came.
    assert_eq!(sampled(2, 9, 9), "AtInstruction");
    // What only runs where it is full waits.
    assert_eq!(sampled(1, 9, 9), "InSpinLoop");
}

#[test]
fn on_the_way_into_the_loop_nobody_waits_yet() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.mov(edx, dword_ptr(rsi))?;
        a.set_label(&mut again)?;
        a.mov(eax, dword_ptr(rdi))?;
        a.cmp(eax, edx)?;
        a.jne(again)?;
        a.ret()
    });
    // The compared values are equal: the loop's own end would have left it.
    let fresh = [(Register::RAX, 7), (Register::RDX, 7)];
    assert_eq!(p.stalled(1, &fresh), "0 stalled load 4 rsi");
    assert_eq!(p.suspects(1, &fresh), ["AtInstruction"]);
    let going = [(Register::RAX, 7), (Register::RDX, 8)];
    assert_eq!(p.suspects(1, &going)[0], "InSpinLoop");
}

#[test]
fn a_word_whose_address_the_registers_do_not_tell_leaves_the_sample_without_an_owner() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.pause()?;
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(rax, qword_ptr(rax))?;
        a.test(rax, rax)?;
        a.nop()?;
        a.jne(again)?;
        a.ret()
    });
    // (rdi) is known, and read anew in each round.
    assert_eq!(p.suspects(4, &[]), ["InSpinLoop", "1 decoded load 8 rdi"]);
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.pause()?;
        a.mov(rax, qword_ptr(rdi).gs())?;
        a.test(rax, rax)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.suspects(1, &[(Register::RAX, 1)]), ["InSpinLoop"]);
    assert_eq!(p.stalled(1, &[(Register::RAX, 1)]), "segment_unknown");
}
