//! One watch window as an order of accesses to its line, with what the directory protocol makes of each.

use crate::{
    access::{Access, ByteSet, LineKey, LineSize, Place, SpaceId},
    coherence::{Directory, Intent, Outcome, RequestRow},
};

/// A trapped access and the memory it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// The access.
    pub access: Access,
    /// Its first byte.
    pub place: Place,
    /// Address space of the executing process.
    pub space: SpaceId,
}

impl Trapped {
    /// Offset and length of the part that falls on the line, or of the bytes there in which it lies somewhere; `None`
    /// when there is none. A size of 0 (not known to the decoder) is the one byte that is certain.
    pub(super) fn on_line(&self, line: LineKey, line_size: LineSize) -> Option<(u8, u8)> {
        if self.place.at(0) != line.0.at(0) {
            return None;
        }
        let first = self.place.position();
        let bytes = u64::from(self.access.size.max(u16::from(self.access.within)));
        let last = first.saturating_add(bytes.max(1) - 1);
        let start = line.0.position();
        let end = start.saturating_add(line_size.bytes() - 1);
        let (from, to) = (first.max(start), last.min(end));
        (from <= to).then(|| ((from - start) as u8, (to - from + 1) as u8))
    }
}

/// One access in the order of its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) access: Access,
    pub(super) space: SpaceId,
    /// Where the place's own numbering has the first byte.
    pub(super) position: u64,
    /// The part on the line, or the bytes there in which it lies somewhere.
    pub(super) offset: u8,
    pub(super) size: u8,
    /// No store came before it in its window.
    pub(super) cold: bool,
    /// How the line's home served it.
    pub(super) outcome: Outcome,
}

impl Step {
    /// Whether it is known to lie within some bytes only.
    pub(super) fn is_somewhere(&self) -> bool {
        self.access.within > 0
    }

    /// The bytes of the line that it touches for certain.
    pub(super) fn bytes(&self, line_size: LineSize) -> ByteSet {
        if self.is_somewhere() {
            ByteSet::default()
        } else {
            self.reach(line_size)
        }
    }

    /// The bytes of the line that it may touch.
    pub(super) fn reach(&self, line_size: LineSize) -> ByteSet {
        ByteSet::range(self.offset, u16::from(self.size), line_size)
    }

    /// Whether it was a request that the CPU's cache must really have made. Before the first store of a window
    /// nobody knows which caches have the line.
    pub(super) fn is_known_request(&self) -> bool {
        self.outcome.request.is_some() && !self.cold
    }
}

/// Runs the line's accesses through the protocol, CPUs as processors, from an Idle line. Accesses to other
/// lines and prefetches are left out.
pub(super) fn order<'a>(
    accesses: impl IntoIterator<Item = &'a Trapped>,
    line: LineKey,
    line_size: LineSize,
) -> Vec<Step> {
    let mut directory = Directory::new();
    let mut cold = true;
    let steps = accesses.into_iter().filter_map(|trapped| {
        let (offset, size) = trapped.on_line(line, line_size)?;
        let intent = Intent::of(trapped.access.op)?;
        let was_cold = cold;
        cold &= !trapped.access.op.stores();
        Some(Step {
            cold: was_cold,
            access: trapped.access,
            space: trapped.space,
            position: trapped.place.position(),
            offset,
            size,
            outcome: directory.access(trapped.access.cpu, intent),
        })
    });
    steps.collect()
}

/// The window's request log; a row's number is the number of its step. Targets and lines are positions in
/// the place's numbering: addresses for private and kernel memory, file offsets for shared memory.
pub(super) fn request_log(steps: &[Step], line: LineKey) -> Vec<RequestRow> {
    let rows = (0..).zip(steps).filter_map(|(number, step)| {
        Some(RequestRow {
            number,
            cpu: step.access.cpu,
            tid: step.access.tid,
            ip: step.access.ip,
            target: step.position,
            line: line.0.position(),
            request: step.outcome.request?,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Basis, Cpu, Op, Pid, Tid};

    fn trapped(addr: u64, size: u16, op: Op, cpu: u32) -> Trapped {
        let access = Access {
            time_ns: 1,
            addr,
            ip: 0x401000,
            pid: Pid(1),
            tid: Tid(cpu),
            cpu: Cpu(cpu),
            size,
            op,
            basis: Basis::Trapped,
            locked: false,
            kernel: false,
            ..Access::BLANK
        };
        Trapped {
            access,
            place: Place::Kernel { addr },
            space: SpaceId(0),
        }
    }

    fn key(addr: u64) -> LineKey {
        LineKey(Place::Kernel { addr })
    }

    #[test]
    fn the_part_of_an_access_on_the_line_is_what_counts() {
        let part =
            |addr, size| trapped(addr, size, Op::Load, 1).on_line(key(0x1040), LineSize::B64);
        assert_eq!(part(0x1048, 8), Some((8, 8)));
        assert_eq!(part(0x103c, 8), Some((0, 4)));
        assert_eq!(part(0x107c, 8), Some((60, 4)));
        assert_eq!(part(0x1000, 512), Some((0, 64)));
        assert_eq!(part(0x1050, 0), Some((16, 1)));
        assert_eq!(part(0x1038, 8), None);
        assert_eq!(part(0x1080, 8), None);
        let end = trapped(u64::MAX - 3, 8, Op::Load, 1);
        assert_eq!(
            end.on_line(key(u64::MAX - 63), LineSize::B64),
            Some((60, 4))
        );
    }

    #[test]
    fn the_same_position_in_another_memory_is_another_line() {
        let private = LineKey(Place::Private {
            space: SpaceId(0),
            addr: 0x1040,
        });
        let access = trapped(0x1048, 8, Op::Load, 1);
        assert_eq!(access.on_line(private, LineSize::B64), None);
    }

    #[test]
    fn the_log_of_a_window_has_its_requests_and_neither_hits_nor_prefetches() {
        let accesses = [
            trapped(0x1040, 8, Op::Load, 1),
            trapped(0x1048, 8, Op::Load, 1),
            trapped(0x1048, 8, Op::Prefetch, 2),
            trapped(0x1088, 8, Op::Store, 2),
            trapped(0x104c, 4, Op::Store, 1),
            trapped(0x1040, 8, Op::Rmw, 2),
        ];
        let steps = order(&accesses, key(0x1040), LineSize::B64);
        let log = request_log(&steps, key(0x1040));
        let text: Vec<String> = log.iter().map(ToString::to_string).collect();
        let expected = [
            "0,1,1,0x401000,0x1040,0x1040,READ_SHAR",
            "2,1,1,0x401000,0x104c,0x1040,READ_PRIV",
            "3,2,2,0x401000,0x1040,0x1040,READ_PRIV",
        ];
        assert_eq!(text, expected);
    }
}
