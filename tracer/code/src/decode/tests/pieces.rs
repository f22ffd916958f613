//! Code without function bounds: what is known from where it was seen to run.

use iced_x86::{
    IcedError, Register,
    code_asm::{CodeAssembler, dword_ptr, eax, ecx, qword_ptr, r8, rax, rbx, rcx, rdi, rdx, rsi},
};

use super::{START, line, registers};
use crate::decode::{FunctionCode, Stall, pieces::instructions};

/// Code, and where its instructions begin.
struct Code {
    bytes: Vec<u8>,
    ips: Vec<u64>,
}

fn code(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Code {
    let program = super::program(build);
    Code {
        bytes: program.bytes,
        ips: program.ips,
    }
}

impl Code {
    fn from(&self, starts: &[usize]) -> Option<FunctionCode> {
        let starts: Vec<u64> = starts.iter().map(|at| self.ips[*at]).collect();
        FunctionCode::decode_pieces(START, &self.bytes, &starts)
    }

    /// The instructions that these lead to, by number.
    fn reached(&self, starts: &[usize]) -> Vec<usize> {
        let starts: Vec<u64> = starts.iter().map(|at| self.ips[*at]).collect();
        let found = instructions(START, &self.bytes, &starts).unwrap();
        let number = |ip: u64| self.ips.iter().position(|known| *known == ip);
        found.iter().filter_map(|i| number(i.ip())).collect()
    }

    /// What a sample at `at` tells, when these instructions have been sampled.
    fn told(&self, starts: &[usize], at: usize, set: &[(Register, u64)]) -> Vec<String> {
        let code = self.from(starts).unwrap();
        let mut touches = Vec::new();
        let harvest = code.harvest(&registers(self.ips[at], set), 0, &mut touches);
        let mut lines: Vec<String> = touches
            .iter()
            .map(|touch| {
                let number = self.ips.iter().position(|ip| *ip == touch.ip).unwrap();
                line(touch, number)
            })
            .collect();
        lines.sort();
        if let Stall::Unresolved(reason) = harvest.stall {
            lines.push(reason.name().to_owned());
        }
        lines
    }
}

/// The loop of two threads that count.
fn counting(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut again = a.create_label();
    a.set_label(&mut again)?;
    a.add(qword_ptr(rdi), 1)?;
    a.cmp(dword_ptr(rsi), 0)?;
    a.jne(again)?;
    a.ret()
}

#[test]
fn a_loop_is_known_whole_from_one_sample_in_it() {
    let code = code(counting);
    for sampled in 0..3 {
        assert_eq!(code.reached(&[sampled]), [0, 1, 2, 3], "{sampled}");
    }
    assert_eq!(
        code.told(&[1], 1, &[]),
        ["0 stalled rmw 8 rdi", "1 decoded load 4 rsi"]
    );
    // The jump goes back here, and no other way is seen.
    assert_eq!(
        code.told(&[0], 0, &[]),
        ["0 decoded rmw 8 rdi", "1 stalled load 4 rsi"]
    );
}

#[test]
fn what_is_before_the_first_known_instruction_is_not_known() {
    let code = code(|a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(rcx, qword_ptr(rsi))?;
        a.mov(qword_ptr(rdi + 8), rdx)?;
        a.ret()
    });
    assert_eq!(code.reached(&[1]), [1, 2, 3]);
    assert_eq!(
        code.told(&[1], 1, &[]),
        [
            "1 decoded load 8 rsi",
            "2 decoded store 8 rdi+0x8",
            "no_function"
        ]
    );
    // Once something before it was sampled, it is.
    assert_eq!(
        code.told(&[1, 0], 1, &[]),
        [
            "0 stalled load 8 rdi",
            "1 decoded load 8 rsi",
            "2 decoded store 8 rdi+0x8"
        ]
    );
}

#[test]
fn jumps_are_followed_and_calls_are_likely_to_come_back() {
    let code = code(|a| {
        let mut over = a.create_label();
        let mut end = a.create_label();
        a.jmp(over)?; // 0
        a.ud2()?; // 1: never reached
        a.set_label(&mut over)?;
        a.test(rax, rax)?; // 2
        a.je(end)?; // 3
        a.call(START + 0x4000)?; // 4
        a.inc(rcx)?; // 5
        a.set_label(&mut end)?;
        a.ret()?; // 6
        a.nop() // 7: behind the end
    });
    assert_eq!(code.reached(&[0]), [0, 2, 3, 4, 5, 6]);
    assert_eq!(code.reached(&[2]), [2, 3, 4, 5, 6]);
    assert_eq!(code.reached(&[5]), [5, 6]);
    assert_eq!(code.reached(&[6, 1]), [1, 6]);
}

#[test]
fn bytes_behind_a_call_that_does_not_come_back_give_way_to_what_ran() {
    // call; then data that looks like `mov $imm64,%rax` and swallows the real instruction after it
    let mut bytes = vec![0xe8, 0, 0x10, 0, 0, 0x48, 0xb8];
    let real = START + bytes.len() as u64;
    bytes.extend([0x48, 0x89, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3]);
    let ips = |starts: &[u64]| -> Vec<u64> {
        let found = instructions(START, &bytes, starts).unwrap();
        found.iter().map(|i| i.ip() - START).collect()
    };
    assert_eq!(ips(&[START]), [0, 5, 15]);
    assert_eq!(ips(&[START, real])[..2], [0, 7]);
}

#[test]
fn starts_that_contradict_one_another_are_of_different_code() {
    let code = code(|a| {
        a.mov(rax, 0x1122_3344_5566_7788u64)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.ret()
    });
    let inside = code.ips[0] + 3;
    assert!(FunctionCode::decode_pieces(START, &code.bytes, &[code.ips[0], inside]).is_none());
    assert!(FunctionCode::decode_pieces(START, &code.bytes, &[inside]).is_some());
}

#[test]
fn nothing_to_decode_is_no_instruction() {
    let code = code(|a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.ret()
    });
    for bytes in [&code.bytes[..2], &[]] {
        let pieces = FunctionCode::decode_pieces(START, bytes, &[START]).unwrap();
        let mut out = Vec::new();
        let harvest = pieces.harvest(&registers(START, &[]), 0, &mut out);
        assert_eq!(
            harvest.stall,
            Stall::Unresolved(crate::event::Unresolved::NotAnInstruction)
        );
        assert!(out.is_empty());
    }
}

#[test]
fn after_a_call_only_the_stack_is_as_before() {
    let code = code(|a| {
        a.call(START + 0x4000)?;
        a.mov(rax, qword_ptr(rbx))?;
        a.ret()
    });
    assert_eq!(code.told(&[0], 0, &[]), ["no_function"]);
    assert_eq!(
        code.told(&[0], 1, &[]),
        ["1 decoded load 8 rbx", "no_memory_operand"]
    );
}

#[test]
fn an_interrupted_string_instruction_waits_for_itself() {
    let code = code(|a| {
        a.rep().stosq()?;
        a.ret()
    });
    assert_eq!(
        code.told(&[0], 0, &[(Register::RCX, 9)]),
        ["0 stalled store 8 rdi"]
    );
    let done = code.told(&[0], 0, &[(Register::RCX, 0)]);
    assert_eq!(done, ["no_function"]);
}

#[test]
fn a_loop_with_a_fork_is_harvested_all_round() {
    let code = code(|a| {
        let mut again = a.create_label();
        let mut skip = a.create_label();
        a.set_label(&mut again)?;
        a.mov(eax, dword_ptr(rdi))?; // 0
        a.test(eax, eax)?; // 1
        a.je(skip)?; // 2
        a.lock().inc(qword_ptr(rsi))?; // 3
        a.set_label(&mut skip)?;
        a.mov(ecx, dword_ptr(r8))?; // 4
        a.dec(ecx)?; // 5
        a.jne(again)?; // 6
        a.ret()
    });
    // What was loaded tells that the jump was not taken.
    let told = code.told(&[5], 5, &[(Register::RAX, 1)]);
    let all = [
        "0 decoded load 4 rdi",
        "3 decoded rmw 8 rsi locked",
        "4 stalled load 4 r8",
    ];
    assert_eq!(told, all);
}
