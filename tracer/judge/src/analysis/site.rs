//! A site: one instruction of one thread on one byte range of a line, and what was counted there.

use std::cmp::Ordering;

use crate::{
    access::{Access, Basis, ByteSet, Cost, LineSize, Op, Pid, SpaceId, Tid, Wait},
    analysis::{CpuSet, Instruction, PmuCounts, line::Piece, served::OnLine},
};

/// What tells two sites of a line apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Address space of the executing process: names the code at `ip`.
    pub space: SpaceId,
    /// Virtual address of the accessing instruction.
    pub ip: u64,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// First byte touched, counted from the line's start.
    pub offset: u8,
    /// Bytes of this line touched.
    pub size: u8,
    /// Direction.
    pub op: Op,
    /// A locked instruction.
    pub locked: bool,
    /// Executed in kernel mode.
    pub kernel: bool,
    /// Whether `size` is known; else it is the one byte that is certain.
    pub size_known: bool,
    /// Where not 0: the `size` bytes lie somewhere in so many bytes of the line from `offset` on, and none of those is
    /// certain. As in [`Access::within`].
    pub within: u8,
}

/// Bytes of the widest access that has an unknown size: such sizes come from PMUs' records, and of the instructions
/// that wait for other CPUs few are wider.
const WORD: u8 = 8;

impl Site {
    /// Of the part of an access on a line, whose own address is known.
    pub(super) fn of(access: &Access, space: SpaceId, piece: &Piece) -> Site {
        Site {
            space,
            ip: access.ip,
            pid: access.pid,
            tid: access.tid,
            offset: piece.offset,
            size: piece.size,
            op: access.op,
            locked: access.locked,
            kernel: access.kernel,
            size_known: access.size != 0,
            within: 0,
        }
    }

    /// The bytes of the line that the site touches for certain.
    pub fn bytes(&self, line_size: LineSize) -> ByteSet {
        match self.within {
            0 => ByteSet::range(self.offset, u16::from(self.size), line_size),
            _ => ByteSet::default(),
        }
    }

    /// The bytes of the line that the site may touch.
    pub fn reach(&self, line_size: LineSize) -> ByteSet {
        let bytes = self.size.max(self.within);
        ByteSet::range(self.offset, u16::from(bytes), line_size)
    }
}

/// Of the cost of accesses, what the CPU did not spend at the instruction itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// It stood at a full barrier behind it.
    pub at_barrier: Cost,
    /// It went round in a loop that reads it.
    pub spinning: Cost,
}

impl WaitTimes {
    pub(super) fn count(&mut self, wait: Wait, cost: Cost) {
        let part = match wait {
            Wait::AtInstruction => return,
            Wait::AtBarrier => &mut self.at_barrier,
            Wait::InSpinLoop => &mut self.spinning,
        };
        *part += cost;
    }

    /// Adds those of another.
    pub fn add(&mut self, other: WaitTimes) {
        self.at_barrier += other.at_barrier;
        self.spinning += other.spinning;
    }

    /// The same, where the cost is no more than this.
    pub(crate) fn within(self, cost: Cost) -> WaitTimes {
        WaitTimes {
            at_barrier: self.at_barrier.min(cost),
            spinning: self.spinning.min(cost),
        }
    }
}

/// A site with its counts over the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteCounts {
    /// Instruction, thread and bytes.
    pub site: Site,
    /// Accesses by basis: the CPU was waiting for this one.
    pub stalled: u32,
    /// Accesses by basis: in the sampled block.
    pub decoded: u32,
    /// Accesses by basis: in the sampled loop.
    pub harvested: u32,
    /// Executions in an emulator: all of them, no samples.
    pub emulated: u64,
    /// Accesses trapped in watch windows; no samples, so never added to the others.
    pub trapped: u64,
    /// Accesses by basis: sampled by a PMU, with what it measured.
    pub pmu: PmuCounts,
    /// What was waited here.
    pub cost: Cost,
    /// Of that, where the CPU stood meanwhile.
    pub waits: WaitTimes,
    /// Where it ran.
    pub cpus: CpuSet,
}

impl SiteCounts {
    /// The strongest basis that it is known on.
    pub fn basis(&self) -> Basis {
        let (stalled, decoded) = (self.stalled.into(), self.decoded.into());
        let (sampled, harvested) = (self.pmu.sampled, self.harvested.into());
        Basis::strongest(stalled, decoded, sampled, harvested, self.emulated)
    }

    /// A site at which nothing was counted.
    pub fn unseen(site: Site) -> SiteCounts {
        SiteCounts {
            site,
            stalled: 0,
            decoded: 0,
            harvested: 0,
            emulated: 0,
            trapped: 0,
            pmu: PmuCounts::default(),
            cost: Cost(0),
            waits: WaitTimes::default(),
            cpus: CpuSet::default(),
        }
    }

    /// The order of a line's sites: the costliest first, then those with the most accesses.
    pub fn costlier(a: &SiteCounts, b: &SiteCounts) -> Ordering {
        let rank = |site: &SiteCounts| (site.cost, site.accesses());
        rank(b).cmp(&rank(a)).then_with(|| a.site.cmp(&b.site))
    }

    /// Sampled accesses of any basis, and emulated ones.
    pub fn accesses(&self) -> u64 {
        let by_timer =
            u64::from(self.stalled) + u64::from(self.decoded) + u64::from(self.harvested);
        (by_timer + self.pmu.sampled).saturating_add(self.emulated)
    }
}

/// [`Site`] in 24 bytes: a system-wide run holds hundreds of thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SiteKey {
    ip: u64,
    space: SpaceId,
    pid: Pid,
    pub(super) tid: Tid,
    pub(super) offset: u8,
    pub(super) size: u8,
    within: u8,
    /// Bits 0-2 the [`Op`], bit 3 locked, bit 4 kernel, bit 5 size unknown.
    kind: u8,
}

impl SiteKey {
    /// The site of the part of an access on a line: `size` bytes from `offset` on, in which it lies somewhere if that
    /// is all that is known of it.
    pub(super) fn new(access: &Access, space: SpaceId, offset: u8, size: u8) -> SiteKey {
        SiteKey::of(&OnLine::new(access, space, offset, size))
    }

    /// The site of an access to a line.
    pub(super) fn of(access: &OnLine) -> SiteKey {
        let Instruction { space, ip, kernel } = access.instruction;
        SiteKey {
            ip,
            space,
            pid: access.pid,
            tid: access.tid,
            offset: access.offset,
            size: access.size,
            within: access.within,
            kind: access.op.index()
                | u8::from(access.locked) << 3
                | u8::from(kernel) << 4
                | u8::from(!access.size_known) << 5,
        }
    }

    pub(super) fn size_known(self) -> bool {
        self.kind & 32 == 0
    }

    /// The bytes that the access touches at least.
    pub(super) fn least(self) -> u8 {
        if self.within > 0 { 0 } else { self.size }
    }

    /// The bytes that the access may touch at most: where its size is not known, up to the end of the aligned word
    /// that it begins in, since an aligned access of a word or less ends there.
    pub(super) fn widest(self) -> u8 {
        if self.size_known() {
            self.size.max(self.within)
        } else {
            WORD - self.offset % WORD
        }
    }

    pub(super) fn op(self) -> Op {
        let index = usize::from(self.kind & 7);
        Op::ALL.get(index).copied().unwrap_or(Op::Unknown)
    }

    pub(super) fn site(self) -> Site {
        Site {
            space: self.space,
            ip: self.ip,
            pid: self.pid,
            tid: self.tid,
            offset: self.offset,
            size: self.size,
            op: self.op(),
            locked: self.kind & 8 != 0,
            kernel: self.kind & 16 != 0,
            size_known: self.size_known(),
            within: self.within,
        }
    }
}

/// The counts of one site, and of the open window apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// Those that a PMU sampled included.
    stalled: u32,
    decoded: u32,
    harvested: u32,
    /// Number of the site among those that a PMU sampled; see [`MeasuredLine`](super::pmu::MeasuredLine).
    pub(super) measured: u32,
    /// Stalled and decoded accesses in the open window.
    pub(super) window_exact: u32,
    /// Harvested accesses in the open window.
    pub(super) window_harvested: u32,
    emulated: u64,
    cost: Cost,
    waits: WaitTimes,
    pub(super) cpus: CpuSet,
}

impl Record {
    /// Counts one access; `cost` is the part of its cost that belongs to this line.
    pub(super) fn count(&mut self, access: &Access, cost: Cost) {
        if access.basis == Basis::Emulated {
            self.emulated = self.emulated.saturating_add(access.executions());
            self.cost += cost;
            self.cpus.insert(access.cpu);
            return;
        }
        let (run, window) = match access.basis {
            Basis::Stalled | Basis::Sampled => (&mut self.stalled, &mut self.window_exact),
            Basis::Decoded => (&mut self.decoded, &mut self.window_exact),
            Basis::Harvested => (&mut self.harvested, &mut self.window_harvested),
            // No sample: the watched lines count it. Emulated ones are counted above.
            Basis::Trapped | Basis::Emulated => return,
        };
        *run = run.saturating_add(1);
        *window = window.saturating_add(1);
        self.cost += cost;
        self.waits.count(access.wait, cost);
        self.cpus.insert(access.cpu);
    }

    pub(super) fn end_window(&mut self) {
        self.window_exact = 0;
        self.window_harvested = 0;
    }

    /// Accesses in the open window.
    pub(super) fn in_window(&self) -> u64 {
        u64::from(self.window_exact) + u64::from(self.window_harvested)
    }

    /// Accesses over the run.
    pub(super) fn accesses(&self) -> u64 {
        let by_timer =
            u64::from(self.stalled) + u64::from(self.decoded) + u64::from(self.harvested);
        by_timer.saturating_add(self.emulated)
    }

    pub(super) fn counts(&self, key: SiteKey, pmu: PmuCounts) -> SiteCounts {
        let sampled = u32::try_from(pmu.sampled).unwrap_or(u32::MAX);
        SiteCounts {
            site: key.site(),
            stalled: self.stalled.saturating_sub(sampled),
            decoded: self.decoded,
            harvested: self.harvested,
            emulated: self.emulated,
            trapped: 0,
            pmu,
            cost: self.cost,
            waits: self.waits,
            cpus: self.cpus.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Cpu;

    #[test]
    fn a_packed_site_unpacks_to_itself() {
        for op in Op::ALL {
            for (locked, kernel) in [(false, false), (true, false), (false, true), (true, true)] {
                let access = Access {
                    time_ns: 1,
                    addr: 0x1008,
                    ip: 0xffff_ffff_8100_0000,
                    pid: Pid(1),
                    tid: Tid(2),
                    cpu: Cpu(3),
                    size: 8,
                    op,
                    basis: Basis::Decoded,
                    locked,
                    kernel,
                    ..Access::BLANK
                };
                let site = SiteKey::new(&access, SpaceId(9), 120, 8).site();
                let expected = Site {
                    space: SpaceId(9),
                    ip: access.ip,
                    pid: Pid(1),
                    tid: Tid(2),
                    offset: 120,
                    size: 8,
                    op,
                    locked,
                    kernel,
                    size_known: true,
                    within: 0,
                };
                assert_eq!(site, expected);
            }
        }
    }

    #[test]
    fn an_access_of_unknown_size_may_reach_to_the_end_of_its_word() {
        let widest = |offset, size| {
            let access = Access {
                time_ns: 1,
                addr: 0x1000 + u64::from(offset),
                ip: 0x401000,
                pid: Pid(1),
                tid: Tid(2),
                cpu: Cpu(3),
                size,
                op: Op::Load,
                basis: Basis::Sampled,
                locked: false,
                kernel: false,
                ..Access::BLANK
            };
            let key = SiteKey::new(&access, SpaceId(0), offset, size.max(1) as u8);
            assert_eq!(key.site().size_known, size > 0);
            key.widest()
        };
        assert_eq!((widest(0, 0), widest(4, 0), widest(63, 0)), (8, 4, 1));
        assert_eq!((widest(4, 4), widest(0, 16)), (4, 16));
    }

    #[test]
    fn an_access_that_is_somewhere_in_a_word_touches_no_byte_for_certain() {
        let access = Access {
            addr: 0x1008,
            size: 4,
            within: 8,
            basis: Basis::Trapped,
            ..Access::BLANK
        };
        let key = SiteKey::new(&access, SpaceId(0), 8, 8);
        assert_eq!((key.least(), key.widest()), (0, 8));
        let site = key.site();
        assert_eq!((site.offset, site.size, site.within), (8, 4, 8));
        assert!(site.bytes(LineSize::B64).is_empty());
        assert_eq!(site.reach(LineSize::B64).0, 0xff00);
        // The same instruction where its bytes are known is another site.
        let exact = Access {
            within: 0,
            ..access
        };
        let exact = SiteKey::new(&exact, SpaceId(0), 8, 4);
        assert_ne!(exact, key);
        assert_eq!((exact.least(), exact.widest()), (4, 4));
    }

    #[test]
    fn a_site_stays_small() {
        assert_eq!(size_of::<SiteKey>(), 24);
        assert_eq!(size_of::<(SiteKey, Record)>(), 96);
    }
}
