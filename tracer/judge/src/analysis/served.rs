//! The accesses to one line in their order, as the directory protocol serves them.
//!
//! Watch windows and the complete orders of emulated programs go this one way. A complete order is a window on the whole
//! line that misses nothing, whose first access finds the line where it really was, and that is still open:
//!
//! ```text
//!                     accesses                    Home                       each Statistic
//!   watch window      of one line, at once    ┐   which caches have     ┌─►  requests, pairs, sites,
//!   complete order    of all lines, as they   ├─► the line, so what   ──┼─►  what each thread used;
//!                     come, cut at lines      ┘   each access asks for  └─►  lives of copies, by bytes
//! ```

use super::pair::Instruction;
use crate::{
    access::{Access, ByteSet, Cpu, LineKey, LineSize, Op, Pid, Place, SpaceId, Tid},
    coherence::{Directory, Found, Intent, Protocol, Request, RequestRow},
};

/// One access, as far as it is on a line: whose, by which instruction, and which bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnLine {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(super) time_ns: u64,
    pub(super) instruction: Instruction,
    pub(super) cpu: Cpu,
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    /// As in [`Measured::repeats`](crate::access::Measured::repeats).
    pub(super) repeats: u32,
    pub(super) op: Op,
    pub(super) locked: bool,
    /// First byte, from the line's start.
    pub(super) offset: u8,
    /// Bytes of the line.
    pub(super) size: u8,
    /// Whether `size` is known; else it is the one byte that is certain.
    pub(super) size_known: bool,
    /// As in [`Site::within`](super::Site::within).
    pub(super) within: u8,
}

impl OnLine {
    /// The part of an access that is on a line: `size` bytes from `offset` on, or somewhere in these.
    #[inline]
    pub(super) fn new(access: &Access, space: SpaceId, offset: u8, size: u8) -> OnLine {
        let (size, within) = match access.within {
            0 => (size, 0),
            _ => (size.min(access.size as u8), size),
        };
        OnLine {
            time_ns: access.time_ns,
            instruction: Instruction {
                space,
                ip: access.ip,
                kernel: access.kernel,
            },
            cpu: access.cpu,
            pid: access.pid,
            tid: access.tid,
            repeats: access.measured.repeats,
            op: access.op,
            locked: access.locked,
            offset,
            size,
            size_known: access.size != 0,
            within,
        }
    }

    /// Executions that it stands for.
    pub(super) fn executions(&self) -> u64 {
        1 + u64::from(self.repeats)
    }

    /// Whether it is known to lie within some bytes only.
    pub(super) fn is_somewhere(&self) -> bool {
        self.within > 0
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
        ByteSet::range(
            self.offset,
            u16::from(self.size.max(self.within)),
            line_size,
        )
    }
}

/// An access, and what the line's home made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) access: OnLine,
    /// What its processor had to ask for; `None` for a hit.
    pub(super) request: Option<Request>,
    /// Where the line was before.
    pub(super) found: Found,
    /// The line had to be fetched.
    pub(super) missed: bool,
    /// Where the line was is certain: in a window, from its first store on.
    pub(super) known: bool,
    /// Messages that served the request.
    pub(super) messages: u32,
}

impl Served {
    /// The bytes of the line that it touches for certain; none for a prefetch.
    pub(super) fn touched(&self, line_size: LineSize) -> ByteSet {
        if self.access.op.touches() {
            self.access.bytes(line_size)
        } else {
            ByteSet::default()
        }
    }

    /// Whether it was a request that the processor's cache must really have made.
    pub(super) fn is_known_request(&self) -> bool {
        self.request.is_some() && self.known
    }

    /// Its row in the request log, if it asked for anything. `target` is the first byte of the access. Targets and lines
    /// are positions in the place's numbering: addresses for private and kernel memory, file offsets for shared memory.
    pub(super) fn request_row(
        &self,
        number: u64,
        target: Place,
        line: LineKey,
    ) -> Option<RequestRow> {
        Some(RequestRow {
            number,
            cpu: self.access.cpu,
            tid: self.access.tid,
            ip: self.access.instruction.ip,
            target: target.position(),
            line: line.0.position(),
            request: self.request?,
        })
    }

    /// Whether it took a copy or ownership from another processor.
    pub(super) fn takes(&self) -> bool {
        match (self.request, self.found) {
            (Some(_), Found::Clean(_) | Found::Dirty(_)) => true,
            (Some(Request::ReadPriv), Found::Shared { others }) => others > 0,
            _ => false,
        }
    }
}

/// Where a line is kept track of while its accesses come.
#[derive(Debug)]
pub(super) struct Home {
    directory: Directory,
    known: bool,
}

impl Home {
    /// Of a line that is in no cache.
    pub(super) fn idle() -> Home {
        Home::of(Directory::under(Protocol::default()))
    }

    /// Of a line whose state is known.
    pub(super) fn of(directory: Directory) -> Home {
        Home {
            directory,
            known: true,
        }
    }

    /// Of a line that nobody knows anything of, as at the start of a window: in no cache until its first store tells.
    pub(super) fn unknown() -> Home {
        Home {
            known: false,
            ..Home::idle()
        }
    }

    /// Serves the next access; `None` of a prefetch, and of what may be one, which asks for nothing.
    pub(super) fn serve(&mut self, access: OnLine) -> Option<Served> {
        let intent = Intent::of(access.op)?;
        let outcome = self.directory.access(access.cpu, intent);
        let known = self.known;
        self.known |= access.op.stores();
        Some(Served {
            access,
            request: outcome.request,
            found: outcome.found,
            missed: outcome.missed(),
            known,
            messages: if outcome.request.is_some() {
                outcome.transactions.total() as u32
            } else {
                0
            },
        })
    }
}

/// What must be known of an order besides its accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderFacts {
    pub(super) line_size: LineSize,
    /// Nothing is missing.
    pub(super) complete: bool,
    /// Bytes of the line of which every access was seen.
    pub(super) watched: ByteSet,
    /// Loading instructions to keep of a line.
    pub(super) most_loads: usize,
    /// It has no end that could be waited for.
    pub(super) endless: bool,
}

/// What is counted of a line, access by access. The lives of its copies are followed apart from these: of a window that
/// could not place all accesses, they are judged twice, by the bytes that are certain and by those that are possible.
pub(super) trait Statistic {
    /// The next access.
    fn see(&mut self, served: &Served, order: &OrderFacts);

    /// The order is over: nothing that comes has to do with what came.
    fn end_window(&mut self, _: &OrderFacts) {}
}
