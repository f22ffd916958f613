//! Sizes, directions and addresses of operands.

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, ax, byte_ptr, dword_bcst, dword_ptr, eax, ecx, edx, ptr, qword_ptr, rax,
        rbx, rdi, rdx, rsi, rsp, word_ptr, xmm0, xmm1, xmmword_ptr, ymm0, ymm1, ymmword_ptr, zmm0,
        zmmword_ptr,
    },
};

use super::{START, program, registers};
use crate::decode::Stall;

/// What a sample at an instruction tells of that instruction.
fn told(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Vec<String> {
    let p = program(|a| {
        build(a)?;
        a.ret()
    });
    let mut lines = p.told(
        0,
        &[(Register::RAX, 3 << 20), (Register::RCX, 0x1_0000_0002)],
    );
    lines.retain(|line| line != "no_memory_operand");
    lines
        .into_iter()
        .map(|line| line.replace("0 decoded ", ""))
        .collect()
}

#[test]
fn directions_follow_the_instruction() {
    assert_eq!(told(|a| a.mov(rdx, qword_ptr(rdi))), ["load 8 rdi"]);
    assert_eq!(told(|a| a.mov(word_ptr(rdi), ax)), ["store 2 rdi"]);
    assert_eq!(told(|a| a.add(byte_ptr(rdi), 1)), ["rmw 1 rdi"]);
    assert_eq!(told(|a| a.cmp(byte_ptr(rdi), 1)), ["load 1 rdi"]);
    assert_eq!(told(|a| a.test(dword_ptr(rdi), edx)), ["load 4 rdi"]);
    assert_eq!(told(|a| a.setne(byte_ptr(rdi))), ["store 1 rdi"]);
    assert_eq!(told(|a| a.cmove(rdx, qword_ptr(rdi))), ["load 8 rdi"]);
    assert_eq!(told(|a| a.cmpxchg(dword_ptr(rdi), edx)), ["rmw 4 rdi"]);
    assert_eq!(
        told(|a| a.lock().cmpxchg16b(xmmword_ptr(rdi))),
        ["rmw 16 rdi locked"]
    );
    assert_eq!(told(|a| a.xchg(dword_ptr(rdi), edx)), ["rmw 4 rdi locked"]);
    assert_eq!(told(|a| a.push(qword_ptr(rdi))), ["load 8 rdi"]);
    assert_eq!(told(|a| a.pop(qword_ptr(rdi))), ["store 8 rdi"]);
    assert_eq!(told(|a| a.call(qword_ptr(rdi))), ["load 8 rdi"]);
    assert_eq!(told(|a| a.jmp(qword_ptr(rdi))), ["load 8 rdi"]);
}

#[test]
fn what_only_looks_like_a_memory_operand_touches_nothing() {
    assert!(told(|a| a.lea(rdx, ptr(rdi + 8))).is_empty());
    assert!(told(|a| a.nop_1(dword_ptr(rdi))).is_empty());
    assert!(told(|a| a.push(rdi)).is_empty());
    assert!(told(|a| a.pop(rdi)).is_empty());
    assert!(told(|a| a.xchg(rdi, rsi)).is_empty());
}

#[test]
fn hints_are_prefetches() {
    assert_eq!(told(|a| a.prefetchw(byte_ptr(rdi))), ["prefetch 1 rdi"]);
    assert_eq!(told(|a| a.prefetcht0(byte_ptr(rdi))), ["prefetch 1 rdi"]);
    assert_eq!(told(|a| a.clflush(byte_ptr(rdi))), ["prefetch 1 rdi"]);
    assert_eq!(told(|a| a.clflushopt(byte_ptr(rdi))), ["prefetch 1 rdi"]);
}

#[test]
fn vectors_have_their_size_and_save_areas_their_first_line() {
    assert_eq!(told(|a| a.movaps(xmm0, xmmword_ptr(rdi))), ["load 16 rdi"]);
    assert_eq!(
        told(|a| a.vmovups(ymmword_ptr(rdi), ymm0)),
        ["store 32 rdi"]
    );
    assert_eq!(
        told(|a| a.vmovdqu64(zmmword_ptr(rdi), zmm0)),
        ["store 64 rdi"]
    );
    assert_eq!(
        told(|a| a.vaddps(zmm0, zmm0, dword_bcst(rdi))),
        ["load 4 rdi"]
    );
    assert_eq!(told(|a| a.fxsave(ptr(rdi))), ["store 64 rdi"]);
    assert_eq!(told(|a| a.xsave(ptr(rdi))), ["rmw 64 rdi"]);
}

#[test]
fn masked_and_gathered_operands_are_unknown() {
    assert_eq!(
        told(|a| a.vmovdqu32(zmmword_ptr(rdi).k1(), zmm0)),
        ["1 unknown"]
    );
    assert_eq!(
        told(|a| a.vmaskmovps(ymmword_ptr(rdi), ymm0, ymm1)),
        ["1 unknown"]
    );
    assert_eq!(
        told(|a| a.vpgatherdd(xmm0.k1(), dword_ptr(rdi + xmm1 * 4))),
        ["1 unknown"]
    );
    // Twin: without the mask.
    assert_eq!(
        told(|a| a.vmovdqu32(zmmword_ptr(rdi), zmm0)),
        ["store 64 rdi"]
    );
}

#[test]
fn addresses_are_base_plus_scaled_index_plus_displacement() {
    assert_eq!(
        told(|a| a.mov(rdx, qword_ptr(rdi + rax * 8 - 0x10))),
        ["load 8 rdi+0x17ffff0"]
    );
    assert_eq!(told(|a| a.mov(rdx, qword_ptr(0x5000))), ["load 8 0x5000"]);
    // With an address-size prefix the sum is cut to 32 bits.
    assert_eq!(told(|a| a.mov(edx, dword_ptr(ecx + 6))), ["load 4 0x8"]);
    assert_eq!(told(|a| a.pop(qword_ptr(rsp + 8))), ["store 8 rsp+0x10"]);
    assert_eq!(told(|a| a.mov(rdx, qword_ptr(rsp + 8))), ["load 8 rsp+0x8"]);
}

#[test]
fn a_bit_number_in_a_register_reaches_beyond_the_base() {
    // 3 << 20 bits are 0x60000 bytes.
    assert_eq!(
        told(|a| a.lock().bts(qword_ptr(rdi), rax)),
        ["rmw 8 rdi+0x60000 locked"]
    );
    let p = program(|a| {
        a.bt(dword_ptr(rdi), eax)?;
        a.ret()
    });
    let minus_one = [(Register::RAX, u64::from(u32::MAX))];
    assert_eq!(p.told(0, &minus_one)[0], "0 decoded load 4 rdi-0x4");
    // Twin: an immediate bit number stays in the operand.
    assert_eq!(told(|a| a.bts(qword_ptr(rdi), 63)), ["rmw 8 rdi"]);
}

#[test]
fn a_relative_operand_moves_with_the_load_bias() {
    // mov 0x3ff9(%rip),%rdx; ret
    let bytes = [0x48, 0x8b, 0x15, 0xf9, 0x3f, 0, 0, 0xc3];
    let code = crate::decode::FunctionCode::decode(START, &bytes);
    let bias = 0x7f00_0000_0000;
    let mut out = Vec::new();
    code.harvest(&registers(START + 7 + bias, &[]), bias, &mut out);
    assert_eq!(out[0].addr, START + 0x4000 + bias);
    assert_eq!(out[0].ip, START + bias);
}

#[test]
fn segment_relative_operands_need_their_base() {
    let p = program(|a| {
        a.add(qword_ptr(0x28).fs(), 1)?;
        a.mov(rdx, qword_ptr(rdi + 8).gs())?;
        a.mov(rbx, qword_ptr(rsi).ds())?;
        a.ret()
    });
    assert_eq!(
        p.told(1, &[]),
        ["2 decoded load 8 rsi", "segment_unknown", "2 unknown"]
    );
    let mut sample = registers(p.ips[1], &[]);
    sample.fs_base = Some(0x7fff_0000);
    let (harvest, touches) = p.harvest(&sample);
    assert_eq!(harvest.stall, Stall::Attributed);
    assert_eq!(harvest.operands_unknown, 1);
    assert_eq!(touches[0].addr, 0x7fff_0028);
    sample.gs_base = Some(0x1000);
    let (harvest, touches) = p.harvest(&sample);
    assert_eq!(harvest.operands_unknown, 0);
    assert_eq!(touches[1].addr, (8 << 32) + 0x1008);
}
