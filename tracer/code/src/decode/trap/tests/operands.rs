//! The instruction before the ip: addresses, sizes and directions of what it touched.

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, ax, byte_ptr, dword_ptr, eax, ebx, ptr, qword_ptr, rax, rbp, rbx, rcx, rdi,
        rdx, rsi, rsp, word_ptr, xmm0, xmm1, xmmword_ptr, ymm0, ymm1, ymmword_ptr, zmm0,
        zmmword_ptr,
    },
};

use super::{DATA, STACK, Scene, word};

/// What a trap right after the first instruction tells, with rdi pointing at the data.
fn told(
    watched: (u64, u8),
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<String> {
    told_with(&[], watched, build)
}

fn told_with(
    set: &[(Register, u64)],
    (addr, len): (u64, u8),
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<String> {
    let mut all = vec![(Register::RDI, DATA)];
    all.extend_from_slice(set);
    Scene::at(1, &all, &[word(addr, len)], |a| {
        build(a)?;
        a.nop()?;
        a.ret()
    })
    .told()
}

const NONE: [&str; 1] = ["no_covering_access"];

#[test]
fn an_operand_that_touches_the_word_is_the_access() {
    let at = (DATA + 8, 8);
    assert_eq!(
        told(at, |a| a.mov(qword_ptr(rdi + 8), rax)),
        ["0 store 8 data+8"]
    );
    assert_eq!(
        told(at, |a| a.mov(rbx, qword_ptr(rdi + 8))),
        ["0 load 8 data+8"]
    );
    assert_eq!(
        told(at, |a| a.add(dword_ptr(rdi + 12), 1)),
        ["0 rmw 4 data+12"]
    );
    assert_eq!(
        told(at, |a| a.lock().xadd(qword_ptr(rdi + 8), rbx)),
        ["0 rmw 8 data+8 locked"]
    );
    assert_eq!(
        told(at, |a| a.xchg(qword_ptr(rdi + 8), rbx)),
        ["0 rmw 8 data+8 locked"]
    );
    assert_eq!(
        told(at, |a| a.lock().cmpxchg16b(xmmword_ptr(rdi))),
        ["0 rmw 16 data+0 locked"]
    );
}

#[test]
fn an_operand_elsewhere_is_never_taken() {
    let at = (DATA + 8, 8);
    assert_eq!(told(at, |a| a.mov(qword_ptr(rdi), rax)), NONE);
    assert_eq!(told(at, |a| a.mov(qword_ptr(rdi + 16), rax)), NONE);
    assert_eq!(told(at, |a| a.mov(byte_ptr(rdi + 7), 1)), NONE);
    assert_eq!(told(at, |a| a.nop_1(dword_ptr(rdi + 8))), NONE);
    assert_eq!(told(at, |a| a.lea(rax, ptr(rdi + 8))), NONE);
    assert_eq!(told(at, CodeAssembler::nop), NONE);
}

#[test]
fn ranges_that_overlap_are_enough() {
    let at = (DATA + 8, 4);
    assert_eq!(
        told(at, |a| a.mov(qword_ptr(rdi + 1), rax)),
        ["0 store 8 data+1"]
    );
    assert_eq!(
        told(at, |a| a.mov(qword_ptr(rdi + 11), rax)),
        ["0 store 8 data+11"]
    );
    assert_eq!(told(at, |a| a.mov(qword_ptr(rdi + 12), rax)), NONE);
    assert_eq!(
        told(at, |a| a.movups(xmm0, xmmword_ptr(rdi - 4))),
        ["0 load 16 data-4"]
    );
    // Over the end of a line, the word on either side.
    let crossing = |a: &mut CodeAssembler| a.mov(qword_ptr(rdi + 60), rax);
    assert_eq!(told((DATA + 56, 8), crossing), ["0 store 8 data+60"]);
    assert_eq!(told((DATA + 64, 8), crossing), ["0 store 8 data+60"]);
}

#[test]
fn an_access_at_the_end_of_the_address_space_does_not_wrap_into_everything() {
    let set = [(Register::RBX, u64::MAX - 3)];
    let store = |a: &mut CodeAssembler| a.mov(qword_ptr(rbx), rax);
    assert_eq!(
        told_with(&set, (u64::MAX - 7, 8), store),
        ["0 store 8 0xfffffffffffffffc"]
    );
    assert_eq!(
        told_with(&set, (0, 4), store),
        ["0 store 8 0xfffffffffffffffc"]
    );
    assert_eq!(told_with(&set, (4, 4), store), NONE);
}

#[test]
fn overwritten_address_registers_leave_what_the_watched_word_says() {
    let at = (DATA + 8, 8);
    assert_eq!(
        told(at, |a| a.mov(rdi, qword_ptr(rdi))),
        ["0 load 8 data+8"]
    );
    assert_eq!(
        told(at, |a| a.mov(eax, dword_ptr(rax))),
        ["0 load 4 data+8 in 8"]
    );
    assert_eq!(
        told((DATA + 5, 1), |a| a.mov(rax, qword_ptr(rax))),
        ["0 load 8 data+0"]
    );
    assert_eq!(
        told(at, |a| a.lock().xadd(qword_ptr(rax), rax)),
        ["0 rmw 8 data+8 locked"]
    );
    assert_eq!(
        told(at, |a| a.xchg(word_ptr(rax), ax)),
        ["0 rmw 2 data+8 locked in 8"]
    );
    assert_eq!(
        told(at, |a| a.lock().cmpxchg(dword_ptr(rax), ebx)),
        ["0 rmw 4 data+8 locked in 8"]
    );
    // The index is known, the base is not.
    assert_eq!(
        told(at, |a| a.mov(rbx, qword_ptr(rbx + rcx * 8))),
        ["0 load 8 data+8"]
    );
    assert_eq!(
        told(at, |a| a.movzx(ebx, byte_ptr(rbx + rcx))),
        ["0 load 1 data+8 in 8"]
    );
}

#[test]
fn what_the_instruction_did_to_its_address_is_undone() {
    let at = (STACK, 8);
    // rsp is that after the pop.
    let set = [(Register::RSP, STACK + 8)];
    assert_eq!(told_with(&set, at, |a| a.pop(rax)), ["0 load 8 stack+0"]);
    // The load is from [rsp], the store to [rsp] after it moved.
    let pop = |a: &mut CodeAssembler| a.pop(qword_ptr(rsp));
    assert_eq!(told_with(&set, at, pop), ["0 load 8 stack+0"]);
    assert_eq!(told_with(&set, (STACK + 8, 8), pop), ["0 store 8 stack+8"]);
    let set = [(Register::RSP, STACK - 8)];
    let push = |a: &mut CodeAssembler| a.push(qword_ptr(rsp));
    assert_eq!(told_with(&set, (STACK - 8, 8), push), ["0 store 8 stack-8"]);
    assert_eq!(told_with(&set, at, push), ["0 load 8 stack+0"]);
    let set = [(Register::RSP, STACK + 8)];
    assert_eq!(
        told_with(&set, at, CodeAssembler::leave),
        ["0 load 8 stack+0"]
    );
    // enter leaves the frame pointer at the word it pushed.
    let set = [(Register::RBP, STACK), (Register::RSP, STACK - 16)];
    assert_eq!(
        told_with(&set, at, |a| a.enter(16, 0)),
        ["0 store 8 stack+0"]
    );
    assert_eq!(told_with(&set, (STACK + 8, 8), |a| a.enter(16, 0)), NONE);
}

#[test]
fn pushes_and_pops_touch_the_stack() {
    let at = (STACK, 8);
    let set = [(Register::RSP, STACK)];
    assert_eq!(told_with(&set, at, |a| a.push(rax)), ["0 store 8 stack+0"]);
    assert_eq!(told_with(&set, at, |a| a.push(1)), ["0 store 8 stack+0"]);
    assert_eq!(
        told_with(&set, at, CodeAssembler::pushfq),
        ["0 store 8 stack+0"]
    );
    assert_eq!(told_with(&set, at, |a| a.pop(rax)), NONE);
    assert_eq!(told_with(&set, (STACK + 8, 8), |a| a.push(rax)), NONE);
    // rsp itself is popped: where from is gone.
    assert_eq!(told_with(&set, at, |a| a.pop(rsp)), ["0 load 8 stack+0"]);
}

#[test]
fn an_operand_of_unknown_segment_is_possible() {
    let at = (DATA, 8);
    assert_eq!(
        told(at, |a| a.mov(rax, qword_ptr(0x28).fs())),
        ["0 load 8 data+0"]
    );
    let mut scene = Scene::at(1, &[], &[word(DATA + 0x28, 8)], |a| {
        a.mov(rax, qword_ptr(0x28).fs())?;
        a.nop()
    });
    scene.registers.fs_base = Some(DATA);
    assert_eq!(scene.told(), ["0 load 8 data+40"]);
    scene.registers.fs_base = Some(DATA + 8);
    assert_eq!(scene.told(), NONE);
}

#[test]
fn the_kernel_does_not_use_the_gs_base_of_user_mode() {
    let mut scene = Scene::at(1, &[], &[word(DATA, 8)], |a| {
        a.inc(qword_ptr(0x10).gs())?;
        a.nop()
    });
    scene.registers.gs_base = Some(0x1000);
    assert_eq!(scene.told(), NONE);
    scene.kernel = true;
    assert_eq!(scene.told(), ["0 rmw 8 data+0"]);
}

#[test]
fn large_areas_are_cut_to_the_line_of_the_word() {
    // fxsave is 512 bytes; the area need not begin a line.
    let set = [(Register::RBX, DATA - 48)];
    let fxsave = |a: &mut CodeAssembler| a.fxsave(ptr(rbx));
    assert_eq!(
        told_with(&set, (DATA + 8, 8), fxsave),
        ["0 store 64 data+0"]
    );
    assert_eq!(
        told_with(&set, (DATA - 40, 8), fxsave),
        ["0 store 48 data-48"]
    );
    assert_eq!(
        told_with(&set, (DATA + 456, 8), fxsave),
        ["0 store 16 data+448"]
    );
    assert_eq!(told_with(&set, (DATA + 464, 8), fxsave), NONE);
    // Which bytes of its area xsave writes depends on a mask and on what was modified.
    let xsave = |a: &mut CodeAssembler| a.xsave(ptr(rbx));
    assert_eq!(
        told_with(&set, (DATA + 1000, 8), xsave),
        ["0 rmw 1 data+1000 in 8"]
    );
    assert_eq!(told_with(&set, (DATA + 20000, 8), xsave), NONE);
    assert_eq!(told_with(&set, (DATA - 56, 8), xsave), NONE);
}

#[test]
fn masked_operands_may_touch_any_of_their_bytes() {
    let load = |a: &mut CodeAssembler| a.vmaskmovps(ymm0, ymm1, ymmword_ptr(rdi));
    assert_eq!(told((DATA + 24, 8), load), ["0 load 1 data+24 in 8"]);
    assert_eq!(told((DATA + 32, 8), load), NONE);
    let store = |a: &mut CodeAssembler| a.vmovdqu32(zmmword_ptr(rdi).k1(), zmm0);
    assert_eq!(told((DATA + 56, 4), store), ["0 store 1 data+56 in 4"]);
    assert_eq!(told((DATA + 64, 4), store), NONE);
}

#[test]
fn gathers_are_possible_wherever_they_point() {
    let gather = |a: &mut CodeAssembler| a.vpgatherdd(xmm0.k1(), dword_ptr(rdi + xmm1 * 4));
    assert_eq!(told((DATA + 4096, 8), gather), ["0 load 1 data+4096 in 8"]);
}

#[test]
fn table_look_ups_and_bit_strings() {
    assert_eq!(
        told((DATA, 8), CodeAssembler::xlatb),
        ["0 load 1 data+0 in 8"]
    );
    let set = [(Register::RCX, 64 * 5 + 3)];
    let bts = |a: &mut CodeAssembler| a.lock().bts(qword_ptr(rdi), rcx);
    assert_eq!(
        told_with(&set, (DATA + 40, 8), bts),
        ["0 rmw 8 data+40 locked"]
    );
    assert_eq!(told_with(&set, (DATA, 8), bts), NONE);
}

#[test]
fn flushes_trap_and_prefetches_do_not() {
    let at = (DATA, 8);
    assert_eq!(
        told(at, |a| a.clflush(byte_ptr(rdi))),
        ["0 prefetch 1 data+0"]
    );
    assert_eq!(told((DATA + 8, 8), |a| a.clflush(byte_ptr(rdi))), NONE);
    assert_eq!(told(at, |a| a.prefetchw(byte_ptr(rdi))), NONE);
    assert_eq!(told(at, |a| a.prefetcht0(byte_ptr(rdi))), NONE);
}

#[test]
fn stores_without_a_written_memory_operand() {
    assert_eq!(
        told((DATA + 32, 8), |a| a.movdir64b(rdi, zmmword_ptr(rsi))),
        ["0 store 64 data+0"]
    );
    assert_eq!(
        told((DATA + 32, 8), CodeAssembler::clzero),
        ["0 store 64 data-31 in 134"]
    );
}

#[test]
fn two_words_of_one_operand_give_it_once_and_of_two_operands_both() {
    let words = [word(DATA + 8, 8), word(DATA, 8)];
    let scene = Scene::at(1, &[(Register::RDI, DATA)], &words, |a| {
        a.movups(xmmword_ptr(rdi), xmm0)?;
        a.nop()
    });
    assert_eq!(scene.told(), ["0 store 16 data+0"]);
    let words = [word(STACK - 8, 8), word(DATA, 8)];
    let set = [(Register::RDI, DATA), (Register::RSP, STACK - 8)];
    let scene = Scene::at(1, &set, &words, |a| {
        a.push(qword_ptr(rdi))?;
        a.nop()
    });
    assert_eq!(scene.told(), ["0 load 8 data+0", "0 store 8 stack-8"]);
    // Two words, one unknown operand: it lies across both, aligned or not.
    let words = [word(DATA, 8), word(DATA + 8, 4)];
    let scene = Scene::at(1, &[], &words, |a| {
        a.mov(rbx, qword_ptr(rbx))?;
        a.nop()
    });
    assert_eq!(scene.told(), ["0 load 8 data+1 in 14"]);
    // And one that is too small for that.
    let scene = Scene::at(1, &[], &words, |a| {
        a.movzx(ebx, byte_ptr(rbx))?;
        a.nop()
    });
    assert_eq!(scene.told(), NONE);
    let scene = Scene::at(1, &[], &words, |a| {
        a.vpgatherdd(xmm0.k1(), dword_ptr(rdi + xmm1 * 4))?;
        a.nop()
    });
    assert_eq!(
        scene.told(),
        ["0 load 1 data+0 in 8", "0 load 1 data+8 in 4"]
    );
}

#[test]
fn without_a_word_there_is_no_access() {
    let scene = Scene::at(1, &[], &[], |a| {
        a.mov(rbx, qword_ptr(rbx))?;
        a.mov(rdx, qword_ptr(rbp))
    });
    assert_eq!(scene.told(), NONE);
}
