//! Who the CPU was waiting for.

use iced_x86::{
    Register,
    code_asm::{
        byte_ptr, dword_ptr, eax, ecx, edx, ptr, qword_ptr, r12, rax, rbx, rcx, rdi, rdx, rsi, rsp,
    },
};

use super::program;

const STOP: u64 = 0x40_4000;

#[test]
fn the_measured_loop_blames_the_add_and_not_the_flag_it_is_sampled_at() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.add(qword_ptr(rax), 1)?;
        a.mov(edx, dword_ptr(STOP))?;
        a.test(edx, edx)?;
        a.je(again)?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        ["0 stalled rmw 8 rax", "1 decoded load 4 0x404000"]
    );
    // At the test the flag's load has not come back; at the loop's start the jump was last.
    assert_eq!(p.stalled(2, &[]), "1 stalled load 4 0x404000");
    assert_eq!(p.stalled(3, &[]), "no_memory_operand");
    assert_eq!(p.stalled(0, &[]), "no_memory_operand");
    assert_eq!(
        p.told(0, &[]),
        [
            "0 decoded rmw 8 rax",
            "1 decoded load 4 0x404000",
            "no_memory_operand"
        ]
    );
}

#[test]
fn a_body_that_falls_into_its_condition_is_blamed_at_the_condition() {
    let p = program(|a| {
        let mut condition = a.create_label();
        let mut body = a.create_label();
        a.jmp(condition)?;
        a.set_label(&mut body)?;
        a.add(qword_ptr(rdi + 8), 1)?;
        a.set_label(&mut condition)?;
        a.mov(eax, dword_ptr(STOP))?;
        a.test(eax, eax)?;
        a.jne(body)?;
        a.ret()
    });
    // The flag that let the body run is still in eax.
    assert_eq!(
        p.told(2, &[(Register::RAX, 1)]),
        ["1 stalled rmw 8 rdi+0x8", "2 decoded load 4 0x404000"]
    );
    // Twin: eax says that the body did not run, so the condition was just entered.
    assert_eq!(p.stalled(2, &[(Register::RAX, 0)]), "no_memory_operand");
}

#[test]
fn a_comparison_fused_with_the_loops_jump_is_blamed_at_the_loops_start() {
    let spin = |fused: bool| {
        program(move |a| {
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            a.pause()?;
            a.cmp(dword_ptr(rdi), 0)?;
            if !fused {
                a.nop()?;
            }
            a.jne(again)?;
            a.ret()
        })
    };
    assert_eq!(spin(true).stalled(0, &[]), "1 stalled load 4 rdi");
    assert_eq!(spin(false).stalled(0, &[]), "no_memory_operand");
    // The way out of the loop is the same jump.
    assert_eq!(spin(true).stalled(3, &[]), "1 stalled load 4 rdi");
}

#[test]
fn a_locked_decrement_does_not_fuse_with_its_jump() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.lock().dec(dword_ptr(rdi))?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.stalled(1, &[]), "0 stalled rmw 4 rdi locked");
    assert_eq!(p.stalled(0, &[]), "no_memory_operand");
}

#[test]
fn a_fused_comparison_of_the_last_iteration_is_blamed_at_its_own_address() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.add(rdi, 8)?;
        a.cmp(qword_ptr(rdi), rsi)?;
        a.jne(again)?;
        a.ret()
    });
    // rdi still points where the comparison read; the block that follows reads 8 further.
    assert_eq!(p.told(0, &[]), ["1 stalled load 8 rdi"]);
}

#[test]
fn the_functions_first_instruction_waits_for_the_callers_call() {
    let p = program(|a| {
        a.add(qword_ptr(rdi), 1)?;
        a.ret()
    });
    assert_eq!(p.told(0, &[]), ["0 decoded rmw 8 rdi", "no_memory_operand"]);
    assert_eq!(p.told(1, &[]), ["0 stalled rmw 8 rdi"]);
}

#[test]
fn a_loop_that_begins_with_the_function_waits_for_its_own_end() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.inc(rcx)?;
        a.test(byte_ptr(rdi), 1)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.stalled(0, &[]), "1 stalled load 1 rdi");
}

#[test]
fn after_a_call_the_callees_return_was_last_and_not_the_calls_operand() {
    let p = program(|a| {
        a.call(qword_ptr(rbx + 0x18))?;
        a.mov(rax, qword_ptr(r12))?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        [
            "0 harvested load 8 rbx+0x18",
            "1 decoded load 8 r12",
            "no_memory_operand"
        ]
    );
    assert_eq!(p.stalled(2, &[]), "1 stalled load 8 r12");
}

#[test]
fn a_load_that_overwrote_its_own_base_cannot_be_placed() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rax))?;
        a.mov(rdx, qword_ptr(rax + 16))?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        [
            "1 decoded load 8 rax+0x10",
            "register_overwritten",
            "1 unknown"
        ]
    );
    assert_eq!(p.stalled(2, &[]), "1 stalled load 8 rax+0x10");
}

#[test]
fn the_instruction_whose_address_is_lost_is_told() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rax))?;
        a.mov(rdx, qword_ptr(rax + 16))?;
        a.ret()
    });
    let lost = |at: usize| p.harvest(&super::registers(p.ips[at], &[])).0.lost;
    assert_eq!(lost(1), Some(p.ips[0]));
    assert_eq!(lost(2), None);
}

#[test]
fn an_overwritten_base_is_found_again_where_another_register_still_tells_it() {
    let p = program(|a| {
        a.lea(rax, ptr(rbx + 0x20))?;
        a.mov(rax, qword_ptr(rax))?;
        a.ret()
    });
    assert_eq!(p.told(2, &[]), ["1 stalled load 8 rbx+0x20"]);
    // Twin: the other register was overwritten as well.
    let p = program(|a| {
        a.lea(rax, ptr(rbx + 0x20))?;
        a.mov(rax, qword_ptr(rax))?;
        a.mov(rbx, rax)?;
        a.ret()
    });
    assert_eq!(p.told(3, &[]), ["no_memory_operand", "1 unknown"]);
}

#[test]
fn constant_steps_of_the_base_are_undone() {
    let p = program(|a| {
        a.mov(qword_ptr(rdi), rax)?;
        a.add(rdi, 8)?;
        a.sub(rdi, 0x40)?;
        a.inc(rdi)?;
        a.dec(rdi)?;
        a.lea(rdi, ptr(rdi + 0x10))?;
        a.nop()?;
        a.ret()
    });
    assert_eq!(
        p.told(6, &[]),
        ["0 decoded store 8 rdi+0x28", "no_memory_operand"]
    );
    // Twin: a masked pointer does not tell what it was.
    let p = program(|a| {
        a.mov(qword_ptr(rdi), rax)?;
        a.and(rdi, -64)?;
        a.nop()?;
        a.ret()
    });
    assert_eq!(p.told(2, &[]), ["no_memory_operand", "1 unknown"]);
}

#[test]
fn the_stack_pointer_is_followed_through_push_and_pop() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rsp + 8))?;
        a.push(rax)?;
        a.push(qword_ptr(rsp + 0x20))?;
        a.pop(rcx)?;
        a.mov(rdx, qword_ptr(rsp))?;
        a.ret()
    });
    assert_eq!(
        p.told(3, &[]),
        [
            "0 decoded load 8 rsp+0x18",
            "2 stalled load 8 rsp+0x28",
            "4 decoded load 8 rsp+0x8"
        ]
    );
}

#[test]
fn locked_loops_blame_the_locked_instruction() {
    let p = program(|a| {
        let mut again = a.create_label();
        a.mov(rax, qword_ptr(rdi))?;
        a.set_label(&mut again)?;
        a.lea(rdx, ptr(rax + 1))?;
        a.lock().cmpxchg(qword_ptr(rdi), rdx)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.stalled(3, &[]), "2 stalled rmw 8 rdi locked");
    let p = program(|a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(eax, 1)?;
        a.lock().xadd(dword_ptr(rdi), eax)?;
        a.dec(ecx)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(p.stalled(2, &[]), "1 stalled rmw 4 rdi locked");
    let p = program(|a| {
        a.xchg(qword_ptr(rdi), rdx)?;
        a.xadd(qword_ptr(rsi), rdx)?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        ["0 stalled rmw 8 rdi locked", "1 decoded rmw 8 rsi"]
    );
}

#[test]
fn an_interrupted_string_instruction_waits_for_itself() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rbx))?;
        a.rep().movsq()?;
        a.mov(rdx, qword_ptr(rdi))?;
        a.ret()
    });
    // Two elements to go: the load is what it waits for, the copy ends 16 bytes on.
    let rest = [(Register::RCX, 2)];
    assert_eq!(
        p.told(1, &rest),
        [
            "0 decoded load 8 rbx",
            "1 decoded store 8 rdi",
            "1 stalled load 8 rsi",
            "2 decoded load 8 rdi+0x10"
        ]
    );
    // Twin: nothing to go, so it has not run and the load before it was waited for.
    assert_eq!(p.stalled(1, &[(Register::RCX, 0)]), "0 stalled load 8 rbx");
}

#[test]
fn a_string_instruction_that_still_has_its_whole_count_has_not_begun() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rbx))?;
        a.mov(ecx, 4)?;
        a.lock().inc(qword_ptr(rdx))?;
        a.rep().stosq()?;
        a.ret()
    });
    assert_eq!(
        p.stalled(3, &[(Register::RCX, 4)]),
        "2 stalled rmw 8 rdx locked"
    );
    assert_eq!(p.stalled(3, &[(Register::RCX, 3)]), "3 stalled store 8 rdi");
    // Afterwards its pointer has moved, and nothing tells from where.
    assert_eq!(p.stalled(4, &[(Register::RCX, 0)]), "register_overwritten");
}

#[test]
fn a_finished_string_instruction_waited_for_its_last_element() {
    let build = |count: i32| {
        program(move |a| {
            a.mov(rdi, rbx)?;
            a.mov(ecx, count)?;
            a.rep().stosq()?;
            a.nop()?;
            a.ret()
        })
    };
    let done = [(Register::RCX, 0)];
    assert_eq!(build(4).told(3, &done), ["2 stalled store 8 rbx+0x18"]);
    assert_eq!(build(4).told(4, &done)[0], "2 decoded store 8 rbx");
    // Twin: with a count of zero it touched nothing.
    assert_eq!(build(0).told(3, &done), ["no_memory_operand"]);
    assert_eq!(build(0).told(4, &done), ["no_memory_operand"]);
}

#[test]
fn the_instruction_after_sti_is_not_blamed_for_what_was_pending() {
    let build = |enables: bool| {
        program(move |a| {
            if enables {
                a.sti()?;
            } else {
                a.nop()?;
            }
            a.mov(rax, qword_ptr(rdi))?;
            a.nop()?;
            a.ret()
        })
    };
    assert_eq!(build(true).stalled(2, &[]), "no_memory_operand");
    assert_eq!(build(false).stalled(2, &[]), "1 stalled load 8 rdi");
}

#[test]
fn a_hint_is_never_waited_for() {
    let p = program(|a| {
        a.prefetchw(byte_ptr(rdi + 0x40))?;
        a.nop()?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        ["0 decoded prefetch 1 rdi+0x40", "no_memory_operand"]
    );
}

#[test]
fn an_ip_between_instructions_or_outside_is_not_an_instruction() {
    let p = program(|a| {
        a.mov(rax, qword_ptr(rdi + 0x1000))?;
        a.ret()
    });
    for ip in [p.ips[0] + 1, p.ips[0] - 1, p.ips[1] + 1, 0, u64::MAX] {
        let (harvest, touches) = p.harvest(&super::registers(ip, &[]));
        assert_eq!(
            harvest.stall,
            super::Stall::Unresolved(crate::event::Unresolved::NotAnInstruction)
        );
        assert!(touches.is_empty());
    }
}
