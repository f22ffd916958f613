//! One access to one line as a fixed-size record of 80 bytes, for sorting in memory or in a file.

use std::num::{NonZeroU32, NonZeroU64};

use rustc_hash::FxHashMap;

use crate::{
    access::{
        Access, Basis, Cost, Cpu, LineKey, LineSize, Measured, Op, Pid, Place, SpaceId, Tid, Wait,
    },
    analysis::line::Piece,
    data_source::DataSource,
};

/// The part of an access that falls on one line, with the line. Fields that are optional elsewhere are 0 here
/// where there is none, as the types they come from allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortRecord {
    /// Number of the line in its object: position over line size.
    pub line: u64,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The accessing instruction.
    pub ip: u64,
    /// Data source word.
    pub source: u64,
    /// Physical address.
    pub phys_addr: u64,
    /// Private memory: the address space. Shared memory: its number in [`Objects`]. The kernel,
    /// and what only a physical address is known of: 0.
    pub object: u32,
    /// As in [`Access::cost`], of the first line only.
    pub cost: Cost<u32>,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// CPU.
    pub cpu: u32,
    /// Address space of the executing process.
    pub space: u32,
    /// Core cycles.
    pub latency: u32,
    /// As in [`Measured::repeats`].
    pub repeats: u32,
    /// First byte touched, counted from the line's start.
    pub offset: u8,
    /// Bytes of this line touched.
    pub size: u8,
    /// Bits 0-2 operation, 3-5 basis, 6 locked, 7 kernel mode, 8 size not known, 9-10 what the CPU did while it waited,
    /// 11-12 what `object` is.
    pub kind: u16,
}

const KERNEL: u16 = 0;
const PRIVATE: u16 = 1;
const SHARED: u16 = 2;
const PHYSICAL: u16 = 3;

/// Bits of [`SortRecord::kind`] that tell the line, not the access.
const PLACE_SHIFT: u32 = 11;

impl SortRecord {
    #[inline]
    pub(super) fn new(
        access: &Access,
        key: LineKey,
        piece: Piece,
        space: SpaceId,
        line_size: LineSize,
        objects: &mut Objects,
    ) -> SortRecord {
        let (place, object) = match key.0 {
            Place::Kernel { .. } => (KERNEL, 0),
            Place::Private { space, .. } => (PRIVATE, space.0),
            Place::Shared { dev, inode, .. } => (SHARED, objects.number(dev, inode)),
            Place::Physical { .. } => (PHYSICAL, 0),
        };
        let measured = &access.measured;
        SortRecord {
            line: key.0.position() / line_size.bytes(),
            time_ns: access.time_ns,
            ip: access.ip,
            source: measured.source.map_or(0, DataSource::raw),
            phys_addr: measured.phys_addr.map_or(0, NonZeroU64::get),
            object,
            cost: Cost(piece.cost.0 as u32),
            pid: access.pid.0,
            tid: access.tid.0,
            cpu: access.cpu.0,
            space: space.0,
            latency: measured.latency_cycles.map_or(0, NonZeroU32::get),
            repeats: measured.repeats,
            offset: piece.offset,
            size: piece.size,
            kind: u16::from(access.op.index())
                | u16::from(access.basis.index()) << 3
                | u16::from(access.locked) << 6
                | u16::from(access.kernel) << 7
                | u16::from(access.size == 0) << 8
                | u16::from(access.wait.index()) << 9
                | place << PLACE_SHIFT,
        }
    }

    /// Tells lines apart, and orders them somehow.
    pub fn code(&self) -> u128 {
        let place = u128::from(self.kind >> PLACE_SHIFT);
        place << 96 | u128::from(self.object) << 64 | u128::from(self.line)
    }

    /// Sets what [`SortRecord::code`] tells, and keeps the rest.
    pub fn set_code(&mut self, code: u128) {
        let of_access = self.kind & ((1 << PLACE_SHIFT) - 1);
        self.kind = of_access | ((code >> 96) as u16) << PLACE_SHIFT;
        self.object = (code >> 64) as u32;
        self.line = code as u64;
    }

    /// Its line.
    pub fn key(&self, line_size: LineSize, objects: &Objects) -> LineKey {
        let position = self.line.wrapping_mul(line_size.bytes());
        LineKey(match self.kind >> PLACE_SHIFT {
            PRIVATE => Place::Private {
                space: SpaceId(self.object),
                addr: position,
            },
            SHARED => {
                let (dev, inode) = objects.object(self.object);
                Place::Shared {
                    dev,
                    inode,
                    offset: position,
                }
            }
            PHYSICAL => Place::Physical { addr: position },
            _ => Place::Kernel { addr: position },
        })
    }

    /// Executing address space.
    pub(super) fn space(&self) -> SpaceId {
        SpaceId(self.space)
    }

    /// The part of the access.
    pub(super) fn piece(&self) -> Piece {
        Piece {
            offset: self.offset,
            size: self.size,
            cost: self.cost.into(),
        }
    }

    /// The access, as far as its line cares: address, size and cost are those of the part. No access that is
    /// [somewhere](Access::within) comes here: only trapped ones are.
    pub(super) fn access(&self, line_size: LineSize) -> Access {
        let of = |codes: u16| usize::from(codes & 7);
        Access {
            time_ns: self.time_ns,
            addr: self.line.wrapping_mul(line_size.bytes()) + u64::from(self.offset),
            ip: self.ip,
            cost: self.cost,
            pid: Pid(self.pid),
            tid: Tid(self.tid),
            cpu: Cpu(self.cpu),
            size: if self.kind & 1 << 8 == 0 {
                u16::from(self.size)
            } else {
                0
            },
            op: Op::ALL[of(self.kind).min(5)],
            basis: Basis::ALL[of(self.kind >> 3).min(5)],
            locked: self.kind & 1 << 6 != 0,
            kernel: self.kind & 1 << 7 != 0,
            wait: Wait::ALL[usize::from(self.kind >> 9 & 3).min(2)],
            measured: Measured {
                source: DataSource::new(self.source),
                latency_cycles: NonZeroU32::new(self.latency),
                phys_addr: NonZeroU64::new(self.phys_addr),
                repeats: self.repeats,
            },
            ..Access::BLANK
        }
    }
}

/// Shared memory objects by number; no more than there were mappings of such.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    objects: Vec<(u64, u64)>,
    numbers: FxHashMap<(u64, u64), u32>,
}

impl Objects {
    fn number(&mut self, dev: u64, inode: u64) -> u32 {
        let object = (dev, inode);
        *self.numbers.entry(object).or_insert_with(|| {
            self.objects.push(object);
            self.objects.len() as u32 - 1
        })
    }

    /// Device and inode.
    fn object(&self, number: u32) -> (u64, u64) {
        let known = self.objects.get(number as usize);
        known.copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(n: u64) -> Access {
        Access {
            time_ns: n,
            addr: 0x1238,
            ip: 0x401000,
            cost: Cost(7),
            pid: Pid(1),
            tid: Tid(2),
            cpu: Cpu(3),
            size: 8,
            op: Op::ALL[n as usize % 5],
            basis: Basis::ALL[n as usize % 5],
            locked: n & 1 == 1,
            kernel: n & 2 == 2,
            wait: Wait::ALL[n as usize % 3],
            measured: Measured {
                source: DataSource::new(n),
                latency_cycles: NonZeroU32::new(n as u32 / 2),
                phys_addr: NonZeroU64::new(n / 3),
                repeats: n as u32 / 5,
            },
            ..Access::BLANK
        }
    }

    #[test]
    fn an_access_and_its_line_come_back_from_any_place() {
        assert_eq!(size_of::<SortRecord>(), 80);
        let mut objects = Objects::default();
        let places = [
            Place::Kernel {
                addr: 0xffff_8000_0000_1240,
            },
            Place::Private {
                space: SpaceId(u32::MAX),
                addr: 0x1240,
            },
            Place::Shared {
                dev: 9,
                inode: 4,
                offset: 0x1240,
            },
            Place::Shared {
                dev: 9,
                inode: 5,
                offset: !63,
            },
        ];
        for (n, place) in (0..).zip(places) {
            for size in [LineSize::B64, LineSize::B128] {
                let access = access(n);
                let key = place.line(size);
                let piece = Piece {
                    offset: 56,
                    size: 8,
                    cost: Cost(7),
                };
                let kept = SortRecord::new(&access, key, piece, SpaceId(8), size, &mut objects);
                assert_eq!(kept.key(size, &objects), key);
                assert_eq!((kept.space(), kept.piece()), (SpaceId(8), piece));
                let expected = Access {
                    addr: key.0.position() + 56,
                    ..access
                };
                assert_eq!(kept.access(size), expected);
                let mut copy = SortRecord {
                    line: 0,
                    object: 0,
                    kind: kept.kind & 0x7ff,
                    ..kept
                };
                copy.set_code(kept.code());
                assert_eq!(copy, kept);
            }
        }
    }
}
