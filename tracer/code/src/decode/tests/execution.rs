//! A tiny machine that runs the tests' programs, so that there is a truth to compare harvests with.
//! Addresses come from the decoder crate's own `virtual_address`, not from the code under test.

use std::collections::HashMap;

use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::{START, registers};
use crate::access::Op;

/// Calls to addresses from here on run nothing and return.
pub(super) const OUTSIDE: u64 = START + 0x10_0000;

/// Numbers that only look random; the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        // xorshift64 (Marsaglia 2003)
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// One executed instruction.
pub(super) struct Executed {
    pub(super) ip: u64,
    pub(super) before: [u64; 16],
    /// Explicit memory operands: address, bytes, direction.
    pub(super) accesses: Vec<(u64, u16, Op)>,
    pub(super) flow: FlowControl,
    pub(super) mnemonic: Mnemonic,
}

/// Registers, flags and memory.
#[expect(clippy::struct_excessive_bools, reason = "they are the flags register")]
pub(super) struct Machine {
    pub(super) gpr: [u64; 16],
    zero: bool,
    sign: bool,
    carry: bool,
    overflow: bool,
    memory: HashMap<u64, u8>,
    dice: Dice,
    accesses: Vec<(u64, u16, Op)>,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Machine {
        Machine {
            gpr: registers(0, &[]).gpr,
            zero: false,
            sign: false,
            carry: false,
            overflow: false,
            memory: HashMap::new(),
            dice: Dice(seed | 1),
            accesses: Vec::new(),
        }
    }

    /// Runs the program until it returns, or `limit` instructions.
    pub(super) fn run(&mut self, instructions: &[Instruction], limit: usize) -> Vec<Executed> {
        let mut trace = Vec::new();
        let mut ip = instructions[0].ip();
        while trace.len() < limit {
            let Some(instruction) = instructions.iter().find(|i| i.ip() == ip) else {
                break;
            };
            let before = self.gpr;
            ip = self.step(instruction);
            trace.push(Executed {
                ip: instruction.ip(),
                before,
                accesses: std::mem::take(&mut self.accesses),
                flow: instruction.flow_control(),
                mnemonic: instruction.mnemonic(),
            });
        }
        trace
    }

    fn register(&self, register: Register) -> u64 {
        let full = self.gpr[register.full_register().number() & 15];
        match register.size() {
            1 => full & 0xff,
            2 => full & 0xffff,
            4 => full & 0xffff_ffff,
            _ => full,
        }
    }

    fn set_register(&mut self, register: Register, value: u64) {
        let full = &mut self.gpr[register.full_register().number() & 15];
        *full = match register.size() {
            1 => *full & !0xff | value & 0xff,
            2 => *full & !0xffff | value & 0xffff,
            4 => value & 0xffff_ffff,
            _ => value,
        };
    }

    fn width(instruction: &Instruction, operand: u32) -> usize {
        match instruction.op_kind(operand) {
            OpKind::Register => instruction.op_register(operand).size(),
            OpKind::Memory => instruction.memory_size().size(),
            _ => 8,
        }
    }

    fn address(&self, instruction: &Instruction, operand: u32) -> u64 {
        let value = |register: Register, _, _| {
            Some(match register {
                register if register.is_segment_register() => 0,
                register => self.gpr[register.full_register().number() & 15],
            })
        };
        instruction.virtual_address(operand, 0, value).unwrap()
    }

    fn load(&self, address: u64, bytes: usize) -> u64 {
        // Untouched memory holds small numbers, so that branches on it go both ways.
        let byte = |n: usize| {
            let at = address.wrapping_add(n as u64);
            let fresh = (at.wrapping_mul(0x9e37_79b9) >> 13 & 1) as u8;
            self.memory.get(&at).copied().unwrap_or(fresh)
        };
        (0..bytes)
            .rev()
            .fold(0, |all, n| all << 8 | u64::from(byte(n)))
    }

    fn store(&mut self, address: u64, bytes: usize, value: u64) {
        for n in 0..bytes {
            let at = address.wrapping_add(n as u64);
            self.memory.insert(at, (value >> (8 * n)) as u8);
        }
    }

    fn get(&mut self, instruction: &Instruction, operand: u32, op: Op) -> u64 {
        match instruction.op_kind(operand) {
            OpKind::Register => self.register(instruction.op_register(operand)),
            OpKind::Memory => {
                let address = self.address(instruction, operand);
                let bytes = instruction.memory_size().size();
                self.accesses.push((address, bytes as u16, op));
                self.load(address, bytes)
            }
            _ => instruction.immediate(operand),
        }
    }

    fn put(&mut self, instruction: &Instruction, operand: u32, value: u64) {
        if instruction.op_kind(operand) == OpKind::Register {
            self.set_register(instruction.op_register(operand), value);
        } else {
            let address = self.address(instruction, operand);
            self.store(address, instruction.memory_size().size(), value);
        }
    }

    fn logic(&mut self, result: u64, bits: usize) {
        let result = result << (64 - bits) >> (64 - bits);
        self.zero = result == 0;
        self.sign = result >> (bits - 1) & 1 != 0;
        self.carry = false;
        self.overflow = false;
    }

    fn sum(&mut self, left: u64, right: u64, bits: usize, subtract: bool) -> u64 {
        let cut = |value: u64| value << (64 - bits) >> (64 - bits);
        let (left, right) = (cut(left), cut(right));
        let result = cut(if subtract {
            left.wrapping_sub(right)
        } else {
            left.wrapping_add(right)
        });
        self.logic(result, bits);
        let top = |value: u64| value >> (bits - 1) & 1 != 0;
        self.carry = if subtract {
            left < right
        } else {
            result < left
        };
        let right_top = top(right) != subtract;
        self.overflow = top(left) == right_top && top(result) != top(left);
        result
    }

    fn holds(&self, code: ConditionCode) -> bool {
        let less = self.sign != self.overflow;
        match code {
            ConditionCode::e => self.zero,
            ConditionCode::ne => !self.zero,
            ConditionCode::s => self.sign,
            ConditionCode::ns => !self.sign,
            ConditionCode::b => self.carry,
            ConditionCode::ae => !self.carry,
            ConditionCode::be => self.carry || self.zero,
            ConditionCode::a => !self.carry && !self.zero,
            ConditionCode::l => less,
            ConditionCode::ge => !less,
            ConditionCode::le => less || self.zero,
            ConditionCode::g => !less && !self.zero,
            ConditionCode::o => self.overflow,
            ConditionCode::no => !self.overflow,
            other => panic!("{other:?} is not generated"),
        }
    }

    fn push(&mut self, value: u64) {
        self.gpr[4] = self.gpr[4].wrapping_sub(8);
        self.store(self.gpr[4], 8, value);
    }

    fn step(&mut self, i: &Instruction) -> u64 {
        let bits = Machine::width(i, 0) * 8;
        match i.mnemonic() {
            Mnemonic::Nop => {}
            Mnemonic::Mov => {
                let value = self.get(i, 1, Op::Load);
                if i.op0_kind() == OpKind::Memory {
                    let address = self.address(i, 0);
                    self.accesses.push((address, (bits / 8) as u16, Op::Store));
                }
                self.put(i, 0, value);
            }
            Mnemonic::Lea => {
                let address = self.address(i, 1);
                self.put(i, 0, address);
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Xadd => {
                let left = self.get(i, 0, Op::Rmw);
                let right = self.get(i, 1, Op::Load);
                let result = self.sum(left, right, bits, i.mnemonic() == Mnemonic::Sub);
                if i.mnemonic() == Mnemonic::Xadd {
                    self.put(i, 1, left);
                }
                self.put(i, 0, result);
            }
            Mnemonic::Inc | Mnemonic::Dec => {
                let left = self.get(i, 0, Op::Rmw);
                let carry = self.carry;
                let result = self.sum(left, 1, bits, i.mnemonic() == Mnemonic::Dec);
                self.carry = carry;
                self.put(i, 0, result);
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let left = self.get(i, 0, Op::Rmw);
                let right = self.get(i, 1, Op::Load);
                let result = match i.mnemonic() {
                    Mnemonic::And => left & right,
                    Mnemonic::Or => left | right,
                    _ => left ^ right,
                };
                self.logic(result, bits);
                self.put(i, 0, result);
            }
            Mnemonic::Cmp => {
                let left = self.get(i, 0, Op::Load);
                let right = self.get(i, 1, Op::Load);
                self.sum(left, right, bits, true);
            }
            Mnemonic::Test => {
                let result = self.get(i, 0, Op::Load) & self.get(i, 1, Op::Load);
                self.logic(result, bits);
            }
            Mnemonic::Imul => {
                let value = self.get(i, 1, Op::Load).wrapping_mul(i.immediate(2));
                self.put(i, 0, value);
            }
            Mnemonic::Shl | Mnemonic::Shr => {
                let value = self.get(i, 0, Op::Rmw);
                let by = i.immediate(1) as u32 & if bits == 64 { 63 } else { 31 };
                let left = i.mnemonic() == Mnemonic::Shl;
                self.put(i, 0, if left { value << by } else { value >> by });
            }
            Mnemonic::Movzx => {
                let value = self.get(i, 1, Op::Load);
                self.put(i, 0, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let unused = 64 - 8 * Machine::width(i, 1);
                let value = self.get(i, 1, Op::Load);
                self.put(i, 0, ((value << unused).cast_signed() >> unused) as u64);
            }
            Mnemonic::Xchg => {
                let left = self.get(i, 0, Op::Rmw);
                let right = self.get(i, 1, Op::Load);
                self.put(i, 0, right);
                self.put(i, 1, left);
            }
            Mnemonic::Push => {
                let value = self.get(i, 0, Op::Load);
                self.push(value);
            }
            Mnemonic::Pop => {
                let value = self.load(self.gpr[4], 8);
                self.gpr[4] = self.gpr[4].wrapping_add(8);
                self.put(i, 0, value);
            }
            Mnemonic::Call => {
                if i.op0_kind() == OpKind::Memory {
                    self.get(i, 0, Op::Load);
                }
                // What the callee leaves in the registers it need not give back.
                for number in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
                    self.gpr[number] = self.dice.below(1 << 30) << 12;
                }
            }
            Mnemonic::Ret => return 0,
            Mnemonic::Jmp => return i.near_branch_target(),
            _ if i.is_jcc_short_or_near() => {
                if self.holds(i.condition_code()) {
                    return i.near_branch_target();
                }
            }
            other => panic!("{other:?} is not generated"),
        }
        i.next_ip()
    }
}
