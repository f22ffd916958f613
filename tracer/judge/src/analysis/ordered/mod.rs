//! The fold over a complete order: a stream that has every access of a program, as an emulator gives it.
//!
//! Each access is served by the directory protocol, per line and in the order of the stream; what that takes is the
//! access's cost. There are no slices of time here: time in an emulator is not the program's, and need not be asked.
//! Sampled accesses conflict when they are close in time; here two accesses are in each other's way when the line
//! really moved between them, and the protocol says when it does, however far apart they are.
//!
//! ```text
//!   one thread on one CPU      a few bytes a line: who, in which state
//!   another one comes          an OrderedLine: its directory, the lives of its copies, its pairs
//! ```
//!
//! So what a line went through while one thread had it to itself is in no pair and no hand-off, nor are the values that it
//! left there: who sets something up hands it over once, whatever happens to it later. Everything happens while the stream is fed, so that a stream that is looked
//! at while it grows and one that was recorded show the same.

mod line;
mod log;
#[cfg(test)]
mod tests;

pub use line::{OrderCounts, OrderedLine};
pub use log::RequestLog;

use super::{CpuSet, served::OnLine, split_by_line::split_by_line};
use crate::{
    access::{Access, Cost, Cpu, LineKey, LineSize, Place, SpaceId, Tid},
    coherence::{Directory, Intent, Lines, Protocol, State},
};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBounds {
    /// Lines; accesses to more cost nothing and are counted in [`OrderTotals::untracked`].
    pub lines: usize,
    /// Lines of several threads whose pairs are kept; those that become shared later have none.
    pub paired_lines: usize,
    /// Loading instructions of all lines together; beyond it a line keeps its most frequent few.
    pub loads: usize,
}

impl Default for OrderBounds {
    /// 8 Mi lines, 512 MiB of memory that a program touches, in as much of ours; pairs on 128 Ki of them, 200 MiB.
    fn default() -> Self {
        OrderBounds {
            lines: 1 << 23,
            paired_lines: 1 << 17,
            loads: 1 << 20,
        }
    }
}

/// What was fed and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OrderTotals {
    /// Accesses, one a row of the stream; not in reports.
    #[serde(skip)]
    pub rows: u64,
    /// Executions that they stand for; not in reports.
    #[serde(skip)]
    pub executions: u64,
    /// Processors of the emulated machine that executed something: one for each thread at a time.
    pub processors: u64,
    /// Messages of the directory protocol that served all accesses.
    pub transactions: u64,
    /// Rows on lines beyond the bound: their messages are not counted.
    pub untracked: u64,
    /// Lines of several threads without pairs, for want of room.
    pub unpaired_lines: u64,
}

/// A line as long as one thread on one CPU has it to itself, and where to find it after.
#[derive(Clone, Copy, Debug)]
struct PrivateLine {
    cpu: Cpu,
    tid: Tid,
    state: State,
    /// Number of the line among those of several threads, or none.
    shared: u32,
}

/// Of a line of one thread, in place of its number among those of several.
const PRIVATE: u32 = u32::MAX;

/// All lines of a run whose order is complete. Feed it every access, in order.
#[derive(Debug)]
pub struct OrderedLines {
    line_size: LineSize,
    bounds: OrderBounds,
    protocol: Protocol,
    lines: Lines,
    /// By number of the line.
    private: Vec<PrivateLine>,
    shared: Vec<OrderedLine>,
    loads: usize,
    processors: CpuSet,
    totals: OrderTotals,
}

impl OrderedLines {
    /// Nothing fed yet; the paper's protocol.
    pub fn new(line_size: LineSize, bounds: OrderBounds) -> OrderedLines {
        OrderedLines {
            line_size,
            bounds,
            protocol: Protocol::default(),
            lines: Lines::up_to(line_size, bounds.lines),
            private: Vec::new(),
            shared: Vec::new(),
            loads: 0,
            processors: CpuSet::default(),
            totals: OrderTotals::default(),
        }
    }

    /// Serves an access at its resolved place; `space` is the address space of the executing process. Puts into
    /// `costs` the messages that it took on each line that it touches, in their order.
    pub fn observe(
        &mut self,
        access: &Access,
        place: Place,
        space: SpaceId,
        costs: &mut Vec<Cost<u32>>,
    ) {
        costs.clear();
        self.totals.rows += 1;
        let executions = access.executions();
        self.totals.executions = self.totals.executions.saturating_add(executions);
        self.processors.insert(access.cpu);
        let line_size = self.line_size;
        split_by_line(access, place, line_size, &[], |key, piece| {
            let messages = Intent::of(access.op).map_or(0, |intent| {
                let part = OnLine::new(access, space, piece.offset, piece.size);
                self.touch(key, intent, part)
            });
            self.totals.transactions += u64::from(messages);
            costs.push(Cost(messages));
        });
    }

    fn touch(&mut self, key: LineKey, intent: Intent, access: OnLine) -> u32 {
        let Some(line) = self.lines.line(key) else {
            self.totals.untracked += 1;
            return 0;
        };
        let at = line.id as usize;
        if at == self.private.len() {
            self.private.push(PrivateLine {
                cpu: access.cpu,
                tid: access.tid,
                state: State::Invalid,
                shared: PRIVATE,
            });
        }
        let line = &mut self.private[at];
        if line.shared == PRIVATE {
            if (line.cpu, line.tid) == (access.cpu, access.tid) {
                return line.serve(self.protocol, intent);
            }
            line.shared = self.shared.len() as u32;
            let paired = self.shared.len() < self.bounds.paired_lines;
            self.totals.unpaired_lines += u64::from(!paired);
            let directory = line.directory(self.protocol);
            (self.shared).push(OrderedLine::after(
                key, directory, line.cpu, line.tid, paired,
            ));
        }
        let line = &mut self.shared[line.shared as usize];
        let before = line.loads();
        let scarce = self.loads >= self.bounds.loads;
        let cost = line.take(access, self.line_size, scarce);
        self.loads = self.loads + line.loads() - before;
        cost
    }

    /// What was fed.
    pub fn totals(&self) -> OrderTotals {
        OrderTotals {
            processors: self.processors.len() as u64,
            ..self.totals
        }
    }

    /// The granule that lines are cut by.
    pub fn line_size(&self) -> LineSize {
        self.line_size
    }

    /// Whether nothing was.
    pub fn is_empty(&self) -> bool {
        self.totals.rows == 0
    }

    /// Lines that several threads or CPUs touched, in the order in which they became so.
    pub fn shared(&self) -> impl Iterator<Item = &OrderedLine> {
        self.shared.iter()
    }

    /// One of these.
    pub fn get(&self, key: LineKey) -> Option<&OrderedLine> {
        let line = self.private.get(self.lines.get(key)?.id as usize)?;
        self.shared.get(line.shared as usize)
    }
}

impl PrivateLine {
    /// Serves an access of its only thread, and says how many messages that took.
    fn serve(&mut self, protocol: Protocol, intent: Intent) -> u32 {
        let hits = match self.state {
            State::Modified => true,
            State::Exclusive | State::Shared => intent != Intent::Store,
            State::Invalid => false,
        };
        if hits {
            return 0;
        }
        let mut directory = self.directory(protocol);
        let outcome = directory.access(self.cpu, intent);
        self.state = directory.state(self.cpu);
        outcome.transactions.total() as u32
    }

    /// The directory where one processor has it to itself.
    fn directory(&self, protocol: Protocol) -> Directory {
        let mut directory = Directory::under(protocol);
        let intent = match self.state {
            State::Invalid => return directory,
            State::Shared => Intent::Load,
            State::Exclusive => Intent::BiasedLoad,
            State::Modified => Intent::Store,
        };
        directory.access(self.cpu, intent);
        directory
    }
}
