//! Loads and stores of A64 (Arm ARM DDI 0487, C4.1.94 "Loads and Stores"), for watchpoints of aarch64.
//!
//! A watchpoint stops the thread before the access, so the pc is the instruction and every address register
//! still holds what the access will use. SVE, SME, memory tags and memory-copy instructions are not
//! told: `None`.

mod barrier;

pub use barrier::waits_for_stores;

use super::{
    Hit, Trapped, cover,
    placing::{self, Span},
};
use crate::{
    access::Op,
    event::{Unresolved, WatchedWord},
};

/// Bytes that `dc zva` clears where DCZID_EL0 is not known: what every server part has.
const ZVA_BYTES: u16 = 64;

/// The registers of aarch64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// x0..x30.
    pub x: [u64; 31],
    /// Stack pointer.
    pub sp: u64,
    /// Address of the instruction that stopped.
    pub pc: u64,
}

/// How an instruction forms its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Address {
    /// Register (31: sp) plus a constant.
    Base(u8, i64),
    /// Register (31: sp) plus an index register, extended and shifted.
    Indexed {
        base: u8,
        index: u8,
        option: u8,
        shift: u8,
    },
    /// Relative to the pc.
    Literal(i64),
    /// Register, cut to a multiple of the size.
    Aligned(u8),
    /// From a signed pointer.
    Unknown,
}

/// What one load or store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Described {
    op: Op,
    /// Bytes, all registers together.
    size: u16,
    /// An atomic of LSE, or one half of an exclusive pair: `ldxr` is a load, `stxr` a store.
    locked: bool,
    address: Address,
}

/// Appends the access that `instruction`, the word at the pc, is about to make.
/// [`Unresolved::NoMemoryOperand`] if it is no load or store, [`Unresolved::NoCoveringAccess`] if it goes
/// elsewhere.
pub fn resolve(
    registers: &Registers,
    instruction: u32,
    hit: &Hit<'_>,
    out: &mut Vec<Trapped>,
) -> Result<(), Unresolved> {
    let described = describe(instruction).ok_or(Unresolved::NoMemoryOperand)?;
    // Prefetches hit no watchpoint.
    if described.op == Op::Prefetch {
        return Err(Unresolved::NoCoveringAccess);
    }
    let size = described.size;
    let span = if let Some(addr) = registers.address(&described) {
        let touches = |word: &WatchedWord| cover::overlap(addr, u64::from(size), word);
        (hit.words.iter().any(touches)).then(|| Span::exact(addr, size))
    } else {
        placing::place(size, hit.words, true, hit.alone, hit.packed)
    };
    let span = span.ok_or(Unresolved::NoCoveringAccess)?;
    out.push(Trapped {
        ip: registers.pc,
        addr: span.addr,
        size: span.size,
        within: span.within,
        op: described.op,
        locked: described.locked,
    });
    Ok(())
}

impl Registers {
    /// Register 31 is the stack pointer, as in addresses.
    fn base(&self, number: u8) -> u64 {
        self.x.get(usize::from(number)).copied().unwrap_or(self.sp)
    }

    /// Register 31 is zero, as in operands.
    fn operand(&self, number: u8) -> u64 {
        self.x.get(usize::from(number)).copied().unwrap_or(0)
    }

    fn address(&self, described: &Described) -> Option<u64> {
        match described.address {
            Address::Base(base, offset) => Some(self.base(base).wrapping_add_signed(offset)),
            Address::Indexed {
                base,
                index,
                option,
                shift,
            } => {
                let index = self.operand(index);
                let index = match option {
                    0b010 => index & 0xffff_ffff,
                    0b110 => i64::from(index as i32) as u64,
                    _ => index,
                };
                Some(self.base(base).wrapping_add(index << shift))
            }
            Address::Literal(offset) => Some(self.pc.wrapping_add_signed(offset)),
            Address::Aligned(base) => {
                Some(self.operand(base) & !(u64::from(described.size).wrapping_sub(1)))
            }
            Address::Unknown => None,
        }
    }
}

/// `count` bits of the word from bit `low` on.
fn bits(word: u32, low: u32, count: u32) -> u32 {
    word >> low & ((1 << count) - 1)
}

/// The same as a signed number.
fn signed(word: u32, low: u32, count: u32) -> i64 {
    let unused = 32 - count;
    i64::from((bits(word, low, count) << unused).cast_signed() >> unused)
}

fn direction(load: bool) -> Op {
    if load { Op::Load } else { Op::Store }
}

/// The load or store that a word encodes.
fn describe(word: u32) -> Option<Described> {
    // DC ZVA, Xt: SYS #3, C7, C4, #1.
    if word & 0xffff_ffe0 == 0xd50b_7420 {
        return Some(Described {
            op: Op::Store,
            size: ZVA_BYTES,
            locked: false,
            address: Address::Aligned(bits(word, 0, 5) as u8),
        });
    }
    let base = bits(word, 5, 5) as u8;
    // Bits 27 and 25 are those of all loads and stores; 29..28 choose the group, 26 is V.
    if bits(word, 27, 1) != 1 || bits(word, 25, 1) != 0 {
        return None;
    }
    let vector = bits(word, 26, 1) == 1;
    match (bits(word, 28, 2), bits(word, 24, 1), vector) {
        (0b00, 0, false) => exclusive(word, base),
        (0b00, _, true) => structure(word, base),
        (0b01, 0, _) => literal(word, vector),
        (0b01, 1, false) => ordered(word, base),
        (0b10, _, _) => pair(word, vector, base),
        (0b11, _, _) => register(word, vector, base),
        _ => None,
    }
}

/// Exclusives, acquire and release, compare and swap: `size 001000 o2 L o1 Rs o0 Rt2 Rn Rt`.
fn exclusive(word: u32, base: u8) -> Option<Described> {
    let scale = bits(word, 30, 2);
    let load = bits(word, 22, 1) == 1;
    let pairs_with_none = bits(word, 10, 5) == 31;
    let (op, size, locked) = match (bits(word, 23, 1), bits(word, 21, 1)) {
        (0, 0) => (direction(load), 1 << scale, true),
        (0, 1) if scale >= 2 => (direction(load), 2 << scale, true),
        // CASP: 0 for pairs of words, 1 for pairs of doublewords.
        (0, 1) if pairs_with_none => (Op::Rmw, 8 << scale, true),
        (1, 0) => (direction(load), 1 << scale, false),
        (1, 1) if pairs_with_none => (Op::Rmw, 1 << scale, true),
        _ => return None,
    };
    Some(Described {
        op,
        size,
        locked,
        address: Address::Base(base, 0),
    })
}

/// Vector structures: `ld1`..`ld4` and `st1`..`st4`, of whole registers or one element of each.
fn structure(word: u32, base: u8) -> Option<Described> {
    if bits(word, 31, 1) != 0 {
        return None;
    }
    let (post, single) = (bits(word, 23, 1) == 1, bits(word, 24, 1) == 1);
    if !post && bits(word, 16, 5) != 0 {
        return None;
    }
    let wide = bits(word, 30, 1);
    let size = if single {
        let (opcode, s, element) = (bits(word, 13, 3), bits(word, 12, 1), bits(word, 10, 2));
        let registers = ((opcode & 1) << 1 | bits(word, 21, 1)) + 1;
        let scale = match opcode >> 1 {
            2 if element & 1 == 1 && s == 0 => 3,
            // Replicated to all elements of the registers.
            3 => element,
            scale => scale,
        };
        registers << scale
    } else {
        if bits(word, 21, 1) != 0 {
            return None;
        }
        let registers = match bits(word, 12, 4) {
            0b0000 | 0b0010 => 4,
            0b0100 | 0b0110 => 3,
            0b1000 | 0b1010 => 2,
            0b0111 => 1,
            _ => return None,
        };
        registers * (8 << wide)
    };
    Some(Described {
        op: direction(bits(word, 22, 1) == 1),
        size: size as u16,
        locked: false,
        address: Address::Base(base, 0),
    })
}

/// `ldr (literal)`.
fn literal(word: u32, vector: bool) -> Option<Described> {
    let (op, size) = match (bits(word, 30, 2), vector) {
        (0 | 2, false) | (0, true) => (Op::Load, 4),
        (1, _) => (Op::Load, 8),
        (3, false) => (Op::Prefetch, 0),
        (2, true) => (Op::Load, 16),
        _ => return None,
    };
    Some(Described {
        op,
        size,
        locked: false,
        address: Address::Literal(signed(word, 5, 19) * 4),
    })
}

/// `stlur`, `ldapur` and the 128-bit atomics: `size 011001 opc ...`.
fn ordered(word: u32, base: u8) -> Option<Described> {
    let scale = bits(word, 30, 2);
    if bits(word, 21, 1) == 1 {
        // LDCLRP, LDSETP, SWPP (FEAT_LSE128): o3 and opc.
        let pair = scale == 0
            && bits(word, 10, 2) == 0
            && matches!(bits(word, 12, 4), 0b0001 | 0b0011 | 0b1000);
        return pair.then_some(Described {
            op: Op::Rmw,
            size: 16,
            locked: true,
            address: Address::Base(base, 0),
        });
    }
    (bits(word, 10, 2) == 0).then(|| Described {
        op: direction(bits(word, 22, 2) != 0),
        size: 1 << scale,
        locked: false,
        address: Address::Base(base, signed(word, 12, 9)),
    })
}

/// `ldp`, `stp` and their kin: `opc 101 V 0 mode L imm7 Rt2 Rn Rt`.
fn pair(word: u32, vector: bool, base: u8) -> Option<Described> {
    let (opc, load) = (bits(word, 30, 2), bits(word, 22, 1) == 1);
    let element: u16 = match (opc, vector) {
        (0, _) => 4,
        // LDPSW loads words; STGP stores doublewords at multiples of a tag's 16 bytes.
        (1, false) if load => 4,
        (1, _) | (2, false) => 8,
        (2, true) => 16,
        _ => return None,
    };
    let tagged = opc == 1 && !vector && !load;
    let scale = if tagged { 16 } else { i64::from(element) };
    let post = bits(word, 23, 2) == 0b01;
    let offset = if post { 0 } else { signed(word, 15, 7) * scale };
    Some(Described {
        op: direction(load),
        size: element * 2,
        locked: false,
        address: Address::Base(base, offset),
    })
}

/// `ldr`, `str` and their kin of one register, and the atomics: `size 111 V 0x opc ...`.
fn register(word: u32, vector: bool, base: u8) -> Option<Described> {
    let (scale, opc) = (bits(word, 30, 2), bits(word, 22, 2));
    let unsigned = bits(word, 24, 1) == 1;
    let kind = (bits(word, 21, 1), bits(word, 10, 2));
    if !unsigned && kind.0 == 1 && kind.1 != 0b10 {
        return if vector {
            None
        } else if kind.1 == 0 {
            atomic(word, base)
        } else {
            // LDRAA and LDRAB take off the pointer's signature first.
            (scale == 3).then_some(Described {
                op: Op::Load,
                size: 8,
                locked: false,
                address: Address::Unknown,
            })
        };
    }
    let (op, scale) = match (vector, scale, opc) {
        (true, 0, 2 | 3) => (direction(opc == 3), 4),
        (true, _, 2 | 3) | (false, 2 | 3, 3) => return None,
        (false, 3, 2) => (Op::Prefetch, 3),
        (_, scale, 0) => (Op::Store, scale),
        (_, scale, _) => (Op::Load, scale),
    };
    let address = if unsigned {
        Address::Base(base, i64::from(bits(word, 10, 12)) << scale)
    } else if kind.0 == 1 {
        let option = bits(word, 13, 3) as u8;
        if option & 0b010 == 0 {
            return None;
        }
        let shifted = bits(word, 12, 1) == 1;
        Address::Indexed {
            base,
            index: bits(word, 16, 5) as u8,
            option,
            shift: if shifted { scale as u8 } else { 0 },
        }
    } else if kind.1 == 0b01 {
        // Post-index: the base moves after the access.
        Address::Base(base, 0)
    } else {
        Address::Base(base, signed(word, 12, 9))
    };
    Some(Described {
        op,
        size: 1 << scale,
        locked: false,
        address,
    })
}

/// The atomics of LSE, `ldapr`, and the 64-byte accesses: `size 111 0 00 A R 1 Rs o3 opc 00 Rn Rt`.
fn atomic(word: u32, base: u8) -> Option<Described> {
    let scale = bits(word, 30, 2);
    let acquire_release = bits(word, 22, 2);
    let (op, size, locked) = match (bits(word, 12, 4), acquire_release) {
        (0b0000..=0b1000, _) => (Op::Rmw, 1 << scale, true),
        (0b1100, 0b10) => (Op::Load, 1 << scale, false),
        // ST64B, ST64BV0, ST64BV
        (0b1001..=0b1011, 0) if scale == 3 => (Op::Store, 64, false),
        (0b1101, 0) if scale == 3 => (Op::Load, 64, false),
        _ => return None,
    };
    Some(Described {
        op,
        size,
        locked,
        address: Address::Base(base, 0),
    })
}

#[cfg(test)]
mod tests;
