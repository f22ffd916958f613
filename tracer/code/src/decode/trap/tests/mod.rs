//! Known answers for trap resolution: every rule with a program where it holds and a twin where not.

mod control;
mod fuzz;
mod kept;
mod operands;
mod placed;
mod strings;
mod unbounded;

use iced_x86::{Decoder, DecoderOptions, IcedError, Register, code_asm::CodeAssembler};

use super::{FunctionText, Hit, Stopped, Text, TrapCode, Trapped, Unit};
use crate::{
    access::{Op, Pid},
    decode::{Registers, registers::Gpr},
    event::{Unresolved, WatchedWord},
};

/// Where the assembled functions begin at run time.
const START: u64 = 0x40_1000;
/// What the unit's addresses lack.
const BIAS: u64 = 0x10_0000;
/// The watched data.
const DATA: u64 = 0x7fff_0000_1000;
/// The stack pointer.
const STACK: u64 = 0x7ffe_0000_2000;

/// Functions and bare code in one module.
#[derive(Default)]
struct Memory {
    functions: Vec<(u64, Vec<u8>)>,
    bare: Vec<(u64, Vec<u8>)>,
    /// The code has no name.
    nameless: bool,
    /// Functions that were asked for.
    asked: usize,
}

impl Memory {
    fn with(mut self, start: u64, bytes: &[u8]) -> Memory {
        self.functions.push((start, bytes.to_vec()));
        self
    }

    fn bare(mut self, start: u64, bytes: &[u8]) -> Memory {
        self.bare.push((start, bytes.to_vec()));
        self
    }
}

impl Text for Memory {
    type Key = u8;

    fn unit(&mut self, _: u64) -> Result<Unit<u8>, Unresolved> {
        if self.nameless {
            return Err(Unresolved::NoModule);
        }
        Ok(Unit { key: 0, bias: BIAS })
    }

    fn function(&mut self, addr: u64) -> Result<FunctionText, Unresolved> {
        self.asked += 1;
        let holds = |(start, bytes): &&(u64, Vec<u8>)| {
            addr.checked_sub(*start)
                .is_some_and(|offset| offset < bytes.len() as u64)
        };
        let (start, bytes) = self
            .functions
            .iter()
            .find(holds)
            .ok_or(Unresolved::NoFunction)?;
        Ok(FunctionText {
            start: *start,
            bytes: bytes.clone(),
            starts: None,
        })
    }

    fn bytes(&mut self, addr: u64, buffer: &mut [u8]) -> usize {
        for (start, bytes) in self.functions.iter().chain(&self.bare) {
            let offset = addr.wrapping_sub(*start) as usize;
            if let Some(rest) = bytes.get(offset..) {
                let got = rest.len().min(buffer.len());
                buffer[..got].copy_from_slice(&rest[..got]);
                return got;
            }
        }
        0
    }
}

fn assemble(
    start: u64,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<u8> {
    let mut assembler = CodeAssembler::new(64).unwrap();
    build(&mut assembler).unwrap();
    assembler.assemble(start).unwrap()
}

/// Registers that point nowhere near the data, but for the stack pointer.
fn registers(ip: u64, set: &[(Register, u64)]) -> Registers {
    let mut gpr: [u64; 16] = std::array::from_fn(|number| (number as u64 + 1) << 20);
    gpr[Gpr::RSP.index()] = STACK;
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

fn word(addr: u64, len: u8) -> WatchedWord {
    WatchedWord {
        pid: Pid(1),
        addr,
        len,
    }
}

fn ips(start: u64, bytes: &[u8]) -> Vec<u64> {
    Decoder::with_ip(64, bytes, start, DecoderOptions::NONE)
        .into_iter()
        .map(|instruction| instruction.ip())
        .collect()
}

/// `store 8 data+0x8 locked`, addresses relative to the data or the stack.
fn line(t: &Trapped) -> String {
    let op = match t.op {
        Op::Load => "load",
        Op::Store => "store",
        Op::Rmw => "rmw",
        Op::Prefetch => "prefetch",
        Op::Unknown => "unknown",
        Op::PrefetchOwn => "prefetch for ownership",
    };
    let near = |base: u64| t.addr.wrapping_sub(base).cast_signed();
    let bases = [("data", DATA), ("stack", STACK)];
    let place = match bases.iter().find(|(_, base)| near(*base).abs() < 1 << 20) {
        Some((name, base)) => format!("{name}{:+}", near(*base)),
        None => format!("{:#x}", t.addr),
    };
    let locked = if t.locked { " locked" } else { "" };
    let within = match t.within {
        0 => String::new(),
        within => format!(" in {within}"),
    };
    format!("{op} {} {place}{locked}{within}", t.size)
}

/// A function, and what is at the trap.
struct Scene {
    bytes: Vec<u8>,
    registers: Registers,
    words: Vec<WatchedWord>,
    /// Watched too, and not hit.
    alone: Vec<WatchedWord>,
    packed: bool,
    stack_top: Option<u64>,
    kernel: bool,
}

impl Scene {
    /// Trapped with the ip at instruction `at`; one past the last is the function's end.
    fn at(
        at: usize,
        set: &[(Register, u64)],
        words: &[WatchedWord],
        build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
    ) -> Scene {
        let bytes = assemble(START, build);
        let mut ips = ips(START, &bytes);
        ips.push(START + bytes.len() as u64);
        Scene {
            registers: registers(ips[at], set),
            words: words.to_vec(),
            alone: Vec::new(),
            packed: false,
            bytes,
            stack_top: None,
            kernel: false,
        }
    }

    fn resolve(&self, memory: Memory) -> Result<Vec<Trapped>, Unresolved> {
        let mut memory = memory.with(START, &self.bytes);
        resolve(&mut TrapCode::default(), &mut memory, self)
    }

    /// One line per access, with the number of its instruction; or the reason.
    fn told(&self) -> Vec<String> {
        self.told_in(Memory::default())
    }

    fn told_in(&self, memory: Memory) -> Vec<String> {
        let ips = ips(START, &self.bytes);
        match self.resolve(memory) {
            Ok(accesses) => accesses
                .iter()
                .map(|t| match ips.iter().position(|ip| *ip == t.ip) {
                    Some(number) => format!("{number} {}", line(t)),
                    None => format!("{:#x} {}", t.ip, line(t)),
                })
                .collect(),
            Err(reason) => vec![reason.name().to_owned()],
        }
    }
}

fn resolve(
    code: &mut TrapCode<u8>,
    memory: &mut Memory,
    scene: &Scene,
) -> Result<Vec<Trapped>, Unresolved> {
    let mut out = Vec::new();
    let hit = Hit {
        stopped: Stopped::After(&scene.registers),
        words: &scene.words,
        alone: &scene.alone,
        packed: scene.packed,
        stack_top: scene.stack_top,
        kernel: scene.kernel,
    };
    code.resolve(memory, &hit, &mut out)?;
    assert!(!out.is_empty());
    Ok(out)
}
