//! What the instructions are that accesses name by number, and what becomes of an access of each.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::merge::Row;
use crate::{
    access::{Access, Basis, Cpu, Measured, Op, Pid, Tid},
    decode::{Emulated, emulated},
    sys::emulator_layout::{ADDRESS_BITS, Instruction, STORE, Shared},
};

/// An instruction, decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Its address.
    pub ip: u64,
    /// The address of the `prefetchw` before it.
    before: u64,
    /// What it does.
    pub is: Emulated,
}

/// All that were seen so far.
#[derive(Debug, Default)]
pub(super) struct Instructions(Vec<Known>);

impl Instructions {
    /// Reads descriptions that are new; returns the addresses of their instructions.
    pub(super) fn read(&mut self, shared: &Shared) -> impl Iterator<Item = u64> {
        let from = self.0.len();
        let count = shared.header.instructions.load(Acquire) as usize;
        let count = count.min(shared.instructions.len());
        let new = shared.instructions.get(from..count).unwrap_or_default();
        self.0.extend(new.iter().map(known));
        self.0[from..].iter().map(|known| known.ip)
    }

    /// The instruction of a number.
    pub(super) fn get(&self, id: u32) -> Known {
        self.0.get(id as usize).copied().unwrap_or_default()
    }
}

fn known(instruction: &Instruction) -> Known {
    let code = |words: &[std::sync::atomic::AtomicU64; 2]| {
        unpack([words[0].load(Relaxed), words[1].load(Relaxed)])
    };
    let ip = instruction.ip.load(Relaxed);
    let (bytes, len) = code(&instruction.code);
    let (before, before_len) = code(&instruction.before);
    Known {
        ip,
        before: ip.wrapping_sub(before_len as u64),
        is: emulated(ip, &bytes[..len], &before[..before_len]),
    }
}

/// What the plugin's `pack_code` packed.
pub(super) fn unpack(words: [u64; 2]) -> ([u8; 15], usize) {
    let mut bytes = [0; 15];
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes[8..].copy_from_slice(&words[1].to_le_bytes()[..7]);
    (bytes, ((words[1] >> 56) as usize).min(15))
}

/// Address, bytes, and whether it is a store, of the plugin's `place`.
fn unpack_place(place: u64) -> (u64, u16, bool) {
    // Addresses are signed: the upper half repeats the highest bit.
    let above = 64 - ADDRESS_BITS;
    let address = ((place << above) as i64 >> above) as u64;
    (
        address,
        (place >> ADDRESS_BITS & 0x7f) as u16,
        place & STORE != 0,
    )
}

/// Whose access it is, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Processor.
    pub cpu: Cpu,
    /// Time.
    pub time_ns: u64,
}

/// The accesses that a row stands for: that of a `prefetchw` before it, which has no row, then its own. Of an
/// instruction that reads and writes one operand, an emulator tells a store, and a load as well while there is one
/// thread only: the store is all of it.
pub(super) fn accesses(row: &Row, known: &Known, whose: Whose) -> (Option<Access>, Option<Access>) {
    let (addr, size, store) = unpack_place(row.place);
    if known.is.read_modify_write && !store {
        return (None, None);
    }
    let op = match (known.is.read_modify_write, store) {
        (true, _) => Op::Rmw,
        (false, true) => Op::Store,
        (false, false) => Op::Load,
    };
    let Whose {
        pid,
        tid,
        cpu,
        time_ns,
    } = whose;
    let access = Access {
        time_ns,
        addr,
        ip: known.ip,
        pid,
        tid,
        cpu,
        size,
        op,
        basis: Basis::Emulated,
        locked: known.is.locked,
        kernel: false,
        measured: Measured {
            repeats: row.repeats,
            ..Measured::default()
        },
        ..Access::BLANK
    };
    let owned = known.is.owned_before && op != Op::Store;
    let prefetch = owned.then_some(Access {
        ip: known.before,
        op: Op::PrefetchOwn,
        locked: false,
        measured: Measured::default(),
        ..access
    });
    (prefetch, Some(access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::emulator_layout::{pack_code, place};

    const WHOSE: Whose = Whose {
        pid: Pid(7),
        tid: Tid(8),
        cpu: Cpu(1),
        time_ns: 99,
    };
    // Bytes as GNU as writes them.
    const PREFETCHW: &[u8] = &[0x0f, 0x0d, 0x4f, 0x08]; // prefetchw 8(%rdi)
    const LOAD: &[u8] = &[0x48, 0x8b, 0x47, 0x08]; // mov 8(%rdi),%rax
    const LOCKED: &[u8] = &[0xf0, 0xff, 0x07]; // lock incl (%rdi)
    const MOVSQ: &[u8] = &[0x48, 0xa5]; // movsq

    fn of(
        code: &[u8],
        before: &[u8],
        size_log2: u32,
        store: bool,
    ) -> Vec<(Op, u64, u16, u32, bool)> {
        let ip = 0x40_1000;
        let known = Known {
            ip,
            before: ip - before.len() as u64,
            is: emulated(ip, code, before),
        };
        let row = Row {
            tsc: 5,
            place: place(0x7fff_1008, 1 << size_log2, store),
            instruction: 0,
            repeats: 41,
        };
        let (prefetch, access) = accesses(&row, &known, WHOSE);
        let all = prefetch.into_iter().chain(access);
        all.inspect(|a| {
            assert_eq!(
                (a.addr, a.time_ns, a.cpu, a.tid),
                (0x7fff_1008, 99, Cpu(1), Tid(8))
            );
        })
        .map(|a| (a.op, a.ip, a.size, a.measured.repeats, a.locked))
        .collect()
    }

    #[test]
    fn loads_and_stores_are_what_the_emulator_said() {
        assert_eq!(
            of(LOAD, &[], 3, false),
            [(Op::Load, 0x40_1000, 8, 41, false)]
        );
        assert_eq!(
            of(MOVSQ, &[], 3, false),
            [(Op::Load, 0x40_1000, 8, 41, false)]
        );
        assert_eq!(
            of(MOVSQ, &[], 3, true),
            [(Op::Store, 0x40_1000, 8, 41, false)]
        );
    }

    #[test]
    fn a_read_modify_write_is_its_store_whether_a_load_was_told_or_not() {
        assert_eq!(of(LOCKED, &[], 2, false), []);
        assert_eq!(
            of(LOCKED, &[], 2, true),
            [(Op::Rmw, 0x40_1000, 4, 41, true)]
        );
    }

    #[test]
    fn a_prefetchw_before_a_load_of_its_operand_is_an_access_of_its_own() {
        let [prefetch, load] = of(LOAD, PREFETCHW, 3, false)[..] else {
            panic!("two accesses");
        };
        assert_eq!(prefetch, (Op::PrefetchOwn, 0x40_0ffc, 8, 0, false));
        assert_eq!(load.0, Op::Load);
        assert_eq!(of(LOAD, LOAD, 3, false).len(), 1);
    }

    #[test]
    fn code_and_places_of_the_plugin_come_back() {
        for len in 0..=15 {
            let bytes: Vec<u8> = (1..=len).collect();
            let (code, n) = unpack(pack_code(&bytes));
            assert_eq!(&code[..n], &bytes[..]);
        }
        for (address, bytes, store) in [
            (0x7fff_1234_5678, 8, true),
            (0, 1, false),
            (0xffff_ffff_ff60_0000, 64, false),
        ] {
            let found = unpack_place(place(address, u64::from(bytes), store));
            assert_eq!(found, (address, bytes, store));
        }
    }
}
