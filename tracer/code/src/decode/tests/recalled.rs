//! Addresses that a load overwrote and that memory tells.

use std::collections::BTreeMap;

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, byte_ptr, dword_ptr, eax, ebx, ecx, edx, qword_ptr, rax, rcx, rdi, rdx,
    },
};

use super::{Program, line, program, registers};
use crate::{
    access::Basis,
    decode::{Memory, Stall},
};

/// The memory of a process; what does not agree is believed all the same or not.
struct Bytes {
    bytes: BTreeMap<u64, u8>,
    believed: bool,
}

impl Memory for Bytes {
    fn read(&mut self, addr: u64, buffer: &mut [u8]) -> bool {
        buffer.iter_mut().zip(addr..).all(|(byte, at)| {
            let known = self.bytes.get(&at);
            *byte = known.copied().unwrap_or_default();
            known.is_some()
        })
    }

    fn believes(&mut self, _: u64, _: u64, agrees: bool) -> bool {
        agrees || self.believed
    }
}

/// What a sample at instruction `at` tells of a process with these 8-byte words in its memory.
fn told(
    program: &Program,
    at: usize,
    set: &[(Register, u64)],
    memory: &[(u64, u64)],
) -> Vec<String> {
    told_if(false, program, at, set, memory)
}

/// The same, where memory that does not agree is believed or not.
fn told_if(
    believed: bool,
    program: &Program,
    at: usize,
    set: &[(Register, u64)],
    memory: &[(u64, u64)],
) -> Vec<String> {
    let bytes: BTreeMap<u64, u8> = memory
        .iter()
        .flat_map(|(addr, value)| (*addr..).zip(value.to_le_bytes()))
        .collect();
    let mut memory = Bytes { bytes, believed };
    let mut touches = Vec::new();
    let registers = registers(program.ips[at], set);
    let harvest = program
        .code
        .harvest_with(&registers, 0, &mut memory, &mut touches);
    let stalled = touches.iter().any(|touch| touch.basis == Basis::Stalled);
    assert_eq!(harvest.stall == Stall::Attributed, stalled);
    let mut lines: Vec<String> = touches
        .iter()
        .map(|touch| {
            let number = program.ips.iter().position(|ip| *ip == touch.ip).unwrap();
            line(touch, number)
        })
        .collect();
    lines.sort();
    if let Stall::Unresolved(reason) = harvest.stall {
        lines.push(reason.name().to_owned());
    }
    if harvest.operands_unknown > 0 {
        lines.push(format!("{} unknown", harvest.operands_unknown));
    }
    lines
}

/// A pointer from memory, and a field of what it points to into the same register.
fn field(a: &mut CodeAssembler) -> Result<(), IcedError> {
    a.mov(rax, qword_ptr(rdi))?;
    a.mov(eax, dword_ptr(rax + 4))?;
    a.add(ebx, eax)?;
    a.mov(edx, 1)?;
    a.ret()
}

const TABLE: (Register, u64) = (Register::RDI, 0x1000);
const CONF: u64 = 0x50_0000;

#[test]
fn a_pointer_that_is_in_memory_still_tells_what_was_waited_for() {
    let program = program(field);
    let set = [TABLE, (Register::RAX, 7)];
    let memory = [(0x1000, CONF), (CONF, (7 << 32) + 99)];
    assert_eq!(
        told(&program, 2, &set, &memory),
        ["0 decoded load 8 0x1000", "1 stalled load 4 0x500004"]
    );
    // Further on, it was there and not waited for.
    assert_eq!(
        told(&program, 3, &set, &memory),
        [
            "0 decoded load 8 0x1000",
            "1 harvested load 4 0x500004",
            "no_memory_operand"
        ]
    );
}

#[test]
fn memory_that_does_not_agree_tells_nothing() {
    let program = program(field);
    let set = [TABLE, (Register::RAX, 7)];
    let lost = [
        "0 decoded load 8 0x1000",
        "register_overwritten",
        "1 unknown",
    ];
    // Another value; no memory there; no pointer.
    assert_eq!(
        told(&program, 2, &set, &[(0x1000, CONF), (CONF, 8 << 32)]),
        lost
    );
    assert_eq!(told(&program, 2, &set, &[(0x1000, CONF)]), lost);
    assert_eq!(told(&program, 2, &set, &[]), lost);
    // Where the address is known to be steady, its value may be another by now.
    assert_eq!(
        told_if(true, &program, 2, &set, &[(0x1000, CONF), (CONF, 8 << 32)]),
        ["0 decoded load 8 0x1000", "1 stalled load 4 0x500004"]
    );
    assert_eq!(told_if(true, &program, 2, &set, &[]), lost);
    // What the register holds is another's by now.
    let memory = [(0x1000, CONF), (CONF, 0)];
    let overwritten = super::program(|a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(eax, dword_ptr(rax + 4))?;
        a.mov(eax, 0)?;
        a.ret()
    });
    assert_eq!(
        told(&overwritten, 3, &set, &memory),
        ["0 decoded load 8 0x1000", "no_memory_operand", "1 unknown"]
    );
}

#[test]
fn chains_of_pointers_and_loads_of_every_width() {
    let chain = |last: fn(&mut CodeAssembler) -> Result<(), IcedError>| {
        program(|a| {
            a.mov(rcx, qword_ptr(rdi + 8))?;
            a.mov(rcx, qword_ptr(rcx))?;
            last(a)?;
            a.add(rdx, rcx)?;
            a.ret()
        })
    };
    let memory = [(0x1008, 0x2000), (0x2000, 0x3000), (0x3000, 0xfff0_8081)];
    let check = |last: fn(&mut CodeAssembler) -> Result<(), IcedError>, value: u64, size: u8| {
        let set = [TABLE, (Register::RCX, value)];
        let lines = told(&chain(last), 3, &set, &memory);
        assert!(
            lines.contains(&format!("2 stalled load {size} 0x3000")),
            "{lines:?}"
        );
        let wrong = [TABLE, (Register::RCX, value ^ 1)];
        let lines = told(&chain(last), 3, &wrong, &memory);
        assert!(
            lines.contains(&"register_overwritten".to_owned()),
            "{lines:?}"
        );
    };
    check(|a| a.mov(rcx, qword_ptr(rcx)), 0xfff0_8081, 8);
    check(|a| a.mov(ecx, dword_ptr(rcx)), 0xfff0_8081, 4);
    check(|a| a.movsxd(rcx, dword_ptr(rcx)), 0xffff_ffff_fff0_8081, 4);
    check(|a| a.movzx(ecx, byte_ptr(rcx)), 0x81, 1);
    check(|a| a.movsx(ecx, byte_ptr(rcx)), 0xffff_ff81, 1);
}

#[test]
fn in_a_loop_the_end_of_the_round_before_is_asked() {
    let looping = program(|a| {
        let mut round = a.create_label();
        a.set_label(&mut round)?;
        a.inc(rdx)?;
        a.mov(rax, qword_ptr(rdi))?;
        a.movzx(eax, byte_ptr(rax + 1))?;
        a.jmp(round)
    });
    let set = [TABLE, (Register::RAX, 5)];
    let memory = [(0x1000, CONF), (CONF, 5 << 8)];
    let lines = told(&looping, 3, &set, &memory);
    assert!(
        lines.contains(&"2 stalled load 1 0x500001".to_owned()),
        "{lines:?}"
    );
}
