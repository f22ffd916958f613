//! Known answers for the decoder: every rule with a program where it holds and a twin where it must not.

mod differential;
mod execution;
mod fuzz;
mod loops;
mod operands;
mod paths;
mod pieces;
mod presence;
mod recalled;
mod spinning;
mod stalled;
mod suspects;
mod trapped;

use iced_x86::{Decoder, DecoderOptions, IcedError, Register, code_asm::CodeAssembler};

use super::{CallConvention, FunctionCode, Harvest, Registers, Stall, Touch, registers::Gpr};
use crate::access::{Basis, Op};

/// Where the assembled functions begin (svma).
const START: u64 = 0x40_1000;

/// An assembled function, with the address of each instruction.
struct Program {
    bytes: Vec<u8>,
    code: FunctionCode,
    ips: Vec<u64>,
}

/// Assembles a function.
fn program(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Program {
    let mut assembler = CodeAssembler::new(64).unwrap();
    build(&mut assembler).unwrap();
    Program::of(assembler.assemble(START).unwrap())
}

/// A sample's registers: each far from all others, unless set here.
fn registers(ip: u64, set: &[(Register, u64)]) -> Registers {
    let mut gpr = std::array::from_fn(|number| (number as u64 + 1) << 32);
    for (register, value) in set {
        gpr[Gpr::of(*register).unwrap().index()] = *value;
    }
    Registers {
        gpr,
        ip,
        fs_base: None,
        gs_base: None,
    }
}

/// `rdi+0x8` for addresses near a register's own value, plain hexadecimal for others.
fn address(addr: u64) -> String {
    let names = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let number = (addr.wrapping_add(0x8000_0000) >> 32) as usize;
    let Some(name) = number.checked_sub(1).and_then(|number| names.get(number)) else {
        return format!("{addr:#x}");
    };
    let offset = addr.cast_signed() - ((number as i64) << 32);
    match offset {
        0 => (*name).to_string(),
        1.. => format!("{name}+{offset:#x}"),
        _ => format!("{name}-{:#x}", -offset),
    }
}

/// `3 stalled rmw 8 rax locked`: instruction, basis, direction, bytes, address.
fn line(touch: &Touch, number: usize) -> String {
    let basis = match touch.basis {
        Basis::Stalled => "stalled",
        Basis::Decoded => "decoded",
        Basis::Harvested => "harvested",
        Basis::Trapped => "trapped",
        Basis::Sampled => "sampled",
        Basis::Emulated => "emulated",
    };
    let op = match touch.op {
        Op::Load => "load",
        Op::Store => "store",
        Op::Rmw => "rmw",
        Op::Prefetch => "prefetch",
        Op::Unknown => "unknown",
        Op::PrefetchOwn => "prefetch for ownership",
    };
    let locked = if touch.locked { " locked" } else { "" };
    format!(
        "{number} {basis} {op} {} {}{locked}",
        touch.size,
        address(touch.addr)
    )
}

impl Program {
    fn of(bytes: Vec<u8>) -> Program {
        let code = FunctionCode::decode(START, &bytes);
        let ips = Decoder::with_ip(64, &bytes, START, DecoderOptions::NONE)
            .into_iter()
            .map(|instruction| instruction.ip())
            .collect();
        Program { bytes, code, ips }
    }

    fn convention(mut self, convention: CallConvention) -> Program {
        self.code = FunctionCode::decode_as(START, &self.bytes, convention);
        self
    }

    fn harvest(&self, registers: &Registers) -> (Harvest, Vec<Touch>) {
        let mut touches = Vec::new();
        let harvest = self.code.harvest(registers, 0, &mut touches);
        let stalled = touches.iter().filter(|touch| touch.basis == Basis::Stalled);
        let expected = usize::from(harvest.stall == Stall::Attributed);
        assert_eq!(stalled.count(), expected, "{harvest:?} {touches:?}");
        (harvest, touches)
    }

    /// What a sample at instruction `at` tells, one line per touch in instruction order, then the
    /// reason if the stall is not attributed.
    fn told(&self, at: usize, set: &[(Register, u64)]) -> Vec<String> {
        let (harvest, touches) = self.harvest(&registers(self.ips[at], set));
        let mut lines: Vec<(usize, String)> = touches
            .iter()
            .map(|touch| {
                let number = self.ips.iter().position(|ip| *ip == touch.ip).unwrap();
                (number, line(touch, number))
            })
            .collect();
        lines.sort();
        let mut lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        if let Stall::Unresolved(reason) = harvest.stall {
            lines.push(reason.name().to_string());
        }
        if harvest.operands_unknown > 0 {
            lines.push(format!("{} unknown", harvest.operands_unknown));
        }
        lines
    }

    /// How the CPU waited, then what it may have waited for besides the stalled access, the first suspect first.
    fn suspects(&self, at: usize, set: &[(Register, u64)]) -> Vec<String> {
        let (harvest, touches) = self.harvest(&registers(self.ips[at], set));
        let mut suspects: Vec<&Touch> = touches.iter().filter(|touch| touch.suspect > 0).collect();
        suspects.sort_by_key(|touch| touch.suspect);
        let lines = suspects.iter().enumerate().map(|(n, touch)| {
            assert_eq!(usize::from(touch.suspect), n + 1, "{touches:?}");
            let number = self.ips.iter().position(|ip| *ip == touch.ip).unwrap();
            line(touch, number)
        });
        std::iter::once(format!("{:?}", harvest.wait))
            .chain(lines)
            .collect()
    }

    /// Only the stalled line or the reason.
    fn stalled(&self, at: usize, set: &[(Register, u64)]) -> String {
        let lines = self.told(at, set);
        let owner = lines
            .iter()
            .find(|line| line.contains("stalled") || line.contains('_'));
        owner.unwrap().clone()
    }
}
