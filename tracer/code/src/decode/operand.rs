//! Memory operands: what an instruction touches, and at which address given register values.

use iced_x86::{Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind, Register};

use super::{
    Touch,
    registers::{Gpr, Known},
};
use crate::{
    access::{Basis, Op},
    event::Unresolved,
};

/// Largest size a touch claims; a line. `fxsave` and `xsave` areas are larger or (in the decoder)
/// unsized: their first 64 bytes stand for them.
const MAX_SIZE: usize = 64;

/// The segment whose base an address needs; the other segments have base 0 in 64-bit mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Flat,
    Fs,
    Gs,
}

/// How the sum is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    Wide,
    /// Cut to 32 bits (address-size prefix).
    Narrow,
    /// From registers that are not sampled: gathers, scatters, tiles.
    Unsampled,
}

/// What turns a register state into addresses: load bias and segment bases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    pub(super) bias: u64,
    pub(super) fs: Option<u64>,
    pub(super) gs: Option<u64>,
}

impl Bases {
    /// Some known bases, to ask whether registers would do.
    pub(super) const ANY: Bases = Bases {
        bias: 0,
        fs: Some(0),
        gs: Some(0),
    };
}

/// Why an address is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAddress {
    Register,
    Segment,
}

impl NoAddress {
    /// The same, of the access that a sample waited for.
    pub(super) fn reason(self) -> Unresolved {
        match self {
            NoAddress::Register => Unresolved::RegisterOverwritten,
            NoAddress::Segment => Unresolved::SegmentUnknown,
        }
    }
}

/// One explicit memory operand: `segment + base + (index << shift) + displacement`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    displacement: u64,
    base: Option<Gpr>,
    index: Option<Gpr>,
    /// Register whose value selects a bit far from the base (`bts %rax,(mem)`).
    bit: Option<Gpr>,
    shift: u8,
    segment: Segment,
    /// The displacement is an address in the file: add the load bias.
    relative: bool,
    /// A mask that is not sampled chooses among the bytes.
    masked: bool,
    arithmetic: Arithmetic,
    pub(super) op: Op,
    pub(super) locked: bool,
    pub(super) size: u16,
}

impl Operand {
    /// What an instruction touches besides its written operands: `size` bytes at a register.
    pub(super) fn implied(base: Gpr, displacement: u64, size: u16, op: Op) -> Operand {
        Operand {
            displacement,
            base: Some(base),
            index: None,
            bit: None,
            shift: 0,
            segment: Segment::Flat,
            relative: false,
            masked: false,
            arithmetic: Arithmetic::Wide,
            op,
            locked: false,
            size,
        }
    }

    /// The same, where no register tells the address.
    pub(super) fn anywhere(size: u16, op: Op) -> Operand {
        Operand {
            base: None,
            arithmetic: Arithmetic::Unsampled,
            ..Operand::implied(Gpr::RAX, 0, size, op)
        }
    }

    /// Whether only some of the bytes from the address on are touched.
    pub(super) fn is_masked(&self) -> bool {
        self.masked
    }

    /// The address in this register state.
    pub(super) fn address(&self, known: &Known, bases: &Bases) -> Result<u64, NoAddress> {
        if self.masked {
            return Err(NoAddress::Register);
        }
        self.start(known, bases)
    }

    /// The address in this register state of what a mask may choose from.
    pub(super) fn start(&self, known: &Known, bases: &Bases) -> Result<u64, NoAddress> {
        if self.arithmetic == Arithmetic::Unsampled {
            return Err(NoAddress::Register);
        }
        let value = |register: Option<Gpr>| match register {
            Some(register) => known.get(register).ok_or(NoAddress::Register),
            None => Ok(0),
        };
        let base = match self.segment {
            Segment::Flat => 0,
            Segment::Fs => bases.fs.ok_or(NoAddress::Segment)?,
            Segment::Gs => bases.gs.ok_or(NoAddress::Segment)?,
        };
        let mut offset = value(self.base)?
            .wrapping_add(value(self.index)? << self.shift)
            .wrapping_add(self.displacement);
        if self.relative {
            offset = offset.wrapping_add(bases.bias);
        }
        if self.bit.is_some() {
            offset = offset.wrapping_add(self.bit_offset(value(self.bit)?));
        }
        if self.arithmetic == Arithmetic::Narrow {
            offset &= 0xffff_ffff;
        }
        Ok(base.wrapping_add(offset))
    }

    /// The touch that it is at this address.
    pub(super) fn touch(&self, ip: u64, addr: u64, basis: Basis) -> Touch {
        Touch {
            ip,
            addr,
            size: self.size,
            op: self.op,
            locked: self.locked,
            basis,
            suspect: 0,
        }
    }

    /// Bytes between the base and the word that holds the bit: the bit number is signed and counts
    /// in words of the operand's size (Intel SDM volume 2, BT: "bit string" addressing).
    fn bit_offset(&self, number: u64) -> u64 {
        match self.size {
            2 => ((i64::from(number as i16) >> 4) * 2) as u64,
            4 => ((i64::from(number as i32) >> 5) * 4) as u64,
            _ => ((number.cast_signed() >> 6) * 8) as u64,
        }
    }
}

/// Appends the explicit memory operands of an instruction. What `push`, `pop`, `call` and `ret` do to
/// the stack by themselves is private by nature and left out.
pub(super) fn operands(instruction: &Instruction, info: &InstructionInfo, out: &mut Vec<Operand>) {
    for number in 0..instruction.op_count() {
        let kind = instruction.op_kind(number);
        if !is_memory(kind) {
            continue;
        }
        let mnemonic = instruction.mnemonic();
        let op = match info.op_access(number) {
            _ if is_hint(mnemonic) => Op::Prefetch,
            OpAccess::Read | OpAccess::CondRead => Op::Load,
            OpAccess::Write | OpAccess::CondWrite => Op::Store,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Op::Rmw,
            // `lea` and long `nop`s have a memory operand in form only.
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        let mut operand = Operand {
            displacement: 0,
            base: None,
            index: None,
            bit: None,
            shift: 0,
            segment: segment(instruction.memory_segment()),
            relative: false,
            masked: is_masked(instruction),
            arithmetic: Arithmetic::Wide,
            op,
            locked: instruction.has_lock_prefix() || mnemonic == Mnemonic::Xchg,
            size: size(instruction),
        };
        match kind {
            OpKind::MemorySegRSI => operand.base = Some(Gpr::RSI),
            OpKind::MemoryESRDI => {
                operand.base = Some(Gpr::RDI);
                operand.segment = Segment::Flat;
            }
            OpKind::Memory => explicit(instruction, &mut operand),
            // 16- and 32-bit string forms and the masked stores through rdi.
            _ => operand.arithmetic = Arithmetic::Unsampled,
        }
        out.push(operand);
    }
}

/// Fills in base, index and displacement of a ModRM operand.
fn explicit(instruction: &Instruction, operand: &mut Operand) {
    operand.displacement = instruction.memory_displacement64();
    operand.shift = instruction.memory_index_scale().trailing_zeros() as u8 & 3;
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    operand.relative = base == Register::RIP;
    operand.base = Gpr::of(base);
    operand.index = Gpr::of(index);
    let is = |register: Register, wanted: fn(Register) -> bool| {
        register == Register::None || wanted(register)
    };
    operand.arithmetic =
        if operand.relative || (is(base, Register::is_gpr64) && is(index, Register::is_gpr64)) {
            Arithmetic::Wide
        } else if is(base, Register::is_gpr32) && is(index, Register::is_gpr32) {
            Arithmetic::Narrow
        } else {
            // Vector indices, the byte index of `xlat`, eip.
            Arithmetic::Unsampled
        };
    // The rows of a tile lie a register's value apart.
    if is_tile(instruction) {
        operand.arithmetic = Arithmetic::Unsampled;
    }
    match instruction.mnemonic() {
        Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts => {
            operand.bit = Gpr::of(instruction.op1_register());
        }
        // The address of `pop (mem)` is taken after rsp has moved.
        Mnemonic::Pop if operand.base == Some(Gpr::RSP) => {
            let moved = i64::from(instruction.stack_pointer_increment()) as u64;
            operand.displacement = operand.displacement.wrapping_add(moved);
        }
        _ => {}
    }
}

fn is_memory(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Memory
            | OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI
    )
}

/// The segment whose base counts; the others begin at zero in 64-bit mode.
fn segment(register: Register) -> Segment {
    match register {
        Register::FS => Segment::Fs,
        Register::GS => Segment::Gs,
        _ => Segment::Flat,
    }
}

/// Instructions that name a line without reading or writing a byte of it.
fn is_hint(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Prefetch
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Clflush
            | Mnemonic::Clflushopt
            | Mnemonic::Clwb
            | Mnemonic::Cldemote
    )
}

/// Which bytes are touched depends on a vector register or a mask that is not in the sample.
pub(super) fn is_masked(instruction: &Instruction) -> bool {
    instruction.has_op_mask()
        || instruction.is_vsib()
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Vmaskmovps
                | Mnemonic::Vmaskmovpd
                | Mnemonic::Vpmaskmovd
                | Mnemonic::Vpmaskmovq
                | Mnemonic::Maskmovq
                | Mnemonic::Maskmovdqu
                | Mnemonic::Vmaskmovdqu
        )
}

fn is_tile(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Tileloadd | Mnemonic::Tileloaddt1 | Mnemonic::Tilestored
    )
}

/// Bytes touched; a broadcast reads one element.
fn size(instruction: &Instruction) -> u16 {
    let memory = instruction.memory_size();
    let bytes = if memory.is_broadcast() {
        memory.element_size()
    } else {
        memory.size()
    };
    match bytes {
        0 => MAX_SIZE as u16,
        bytes => bytes.min(MAX_SIZE) as u16,
    }
}
