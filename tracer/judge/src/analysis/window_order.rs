//! One watch window as an order of accesses to its line, with what the directory protocol makes of each.

use super::{
    served::{Home, OnLine, Served},
    split_by_line::split_by_line,
};
use crate::{
    access::{Access, LineKey, LineSize, Place, SpaceId},
    coherence::RequestRow,
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
    /// The part on the line, or the bytes there in which it lies somewhere; `None` when there is none. A size of 0 (not
    /// known to the decoder) is the one byte that is certain.
    pub(super) fn on_line(&self, line: LineKey, line_size: LineSize) -> Option<OnLine> {
        let mut part = None;
        split_by_line(&self.access, self.place, line_size, &[], |key, piece| {
            if key == line {
                part = Some(OnLine::new(
                    &self.access,
                    self.space,
                    piece.offset,
                    piece.size,
                ));
            }
        });
        part
    }
}

/// Runs the line's accesses through the protocol, CPUs as processors, from an Idle line. Accesses to other lines and
/// prefetches are left out.
pub(super) fn serve<'a>(
    accesses: impl IntoIterator<Item = &'a Trapped>,
    line: LineKey,
    line_size: LineSize,
) -> impl Iterator<Item = (&'a Trapped, Served)> {
    let mut home = Home::unknown();
    accesses.into_iter().filter_map(move |trapped| {
        let served = home.serve(trapped.on_line(line, line_size)?)?;
        Some((trapped, served))
    })
}

/// The window's request log; a row's number is that of its access among those served.
pub(super) fn request_log(
    accesses: &[Trapped],
    line: LineKey,
    line_size: LineSize,
) -> Vec<RequestRow> {
    let rows = (0..).zip(serve(accesses, line, line_size));
    rows.filter_map(|(number, (trapped, served))| served.request_row(number, trapped.place, line))
        .collect()
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
        let part = |addr, size| {
            let part = trapped(addr, size, Op::Load, 1).on_line(key(0x1040), LineSize::B64)?;
            Some((part.offset, part.size))
        };
        assert_eq!(part(0x1048, 8), Some((8, 8)));
        assert_eq!(part(0x103c, 8), Some((0, 4)));
        assert_eq!(part(0x107c, 8), Some((60, 4)));
        assert_eq!(part(0x1000, 512), Some((0, 64)));
        assert_eq!(part(0x1050, 0), Some((16, 1)));
        assert_eq!(part(0x1038, 8), None);
        assert_eq!(part(0x1080, 8), None);
        let end = trapped(u64::MAX - 3, 8, Op::Load, 1);
        let end = end.on_line(key(u64::MAX - 63), LineSize::B64).unwrap();
        assert_eq!((end.offset, end.size), (60, 4));
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
        let log = request_log(&accesses, key(0x1040), LineSize::B64);
        let text: Vec<String> = log.iter().map(ToString::to_string).collect();
        let expected = [
            "0,1,1,0x401000,0x1040,0x1040,READ_SHAR",
            "2,1,1,0x401000,0x104c,0x1040,READ_PRIV",
            "3,2,2,0x401000,0x1040,0x1040,READ_PRIV",
        ];
        assert_eq!(text, expected);
    }
}
