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

mod known;
mod line;
mod log;
mod lookahead;
#[cfg(test)]
mod tests;

pub use line::{OrderCounts, OrderedLine};
pub use log::RequestLog;

use super::{CpuSet, cut::cut};
use crate::{
    access::{Access, Cost, Cpu, LineKey, LineSize, Place, SpaceId},
    coherence::{Directory, Intent, Protocol},
};
use known::{Copy, Known, KnownLines, PRIVATE};
use line::Next;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderTotals {
    /// Accesses, one a row of the stream.
    pub rows: u64,
    /// Executions that they stand for.
    pub executions: u64,
    /// Messages of the protocol.
    pub transactions: u64,
    /// Rows on lines beyond the bound: their messages are not counted.
    pub untracked: u64,
    /// Lines of several threads without pairs, for want of room.
    pub unpaired_lines: u64,
}

/// All lines of a run whose order is complete. Feed it every access, in order.
#[derive(Debug)]
pub struct OrderedLines {
    line_size: LineSize,
    bounds: OrderBounds,
    protocol: Protocol,
    lines: KnownLines,
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
            lines: KnownLines::new(line_size, bounds.lines),
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
        cut(access, place, line_size, &[], |key, piece| {
            let messages = match Intent::of(access.op) {
                Some(intent) => self.touch(key, intent, &Next::of(access, piece, space)),
                None => 0,
            };
            self.totals.transactions += u64::from(messages);
            costs.push(Cost(messages));
        });
    }

    fn touch(&mut self, key: LineKey, intent: Intent, next: &Next) -> u32 {
        let Some(known) = self.lines.room(key) else {
            self.totals.untracked += 1;
            return 0;
        };
        if known.is_new() {
            let (line, cost) = first(self.protocol, intent, next);
            self.lines.put(key, line);
            return cost;
        }
        if known.shared == PRIVATE && (known.cpu, known.tid) == (next.cpu, next.tid) {
            let hits = match intent {
                Intent::Load | Intent::BiasedLoad => true,
                Intent::Store => known.copy == Copy::Modified,
            };
            return if hits {
                0
            } else {
                alone(self.protocol, known, intent)
            };
        }
        if known.shared == PRIVATE {
            known.shared = self.shared.len() as u32;
            let paired = self.shared.len() < self.bounds.paired_lines;
            self.totals.unpaired_lines += u64::from(!paired);
            let directory = seeded(self.protocol, known.cpu, known.copy);
            let (cpu, tid) = (known.cpu, known.tid);
            (self.shared).push(OrderedLine::after(key, directory, cpu, tid, paired));
        }
        let line = &mut self.shared[known.shared as usize];
        let before = line.loads();
        let scarce = self.loads >= self.bounds.loads;
        let cost = line.take(intent, next, self.line_size, scarce);
        self.loads = self.loads + line.loads() - before;
        cost
    }

    /// What was fed.
    pub fn totals(&self) -> OrderTotals {
        self.totals
    }

    /// Processors that executed something.
    pub fn processors(&self) -> usize {
        self.processors.len()
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
        let known = self.lines.get(key)?;
        self.shared.get(known.shared as usize)
    }
}

/// A line that nobody touched before, and the messages that it takes.
fn first(protocol: Protocol, intent: Intent, next: &Next) -> (Known, u32) {
    let outcome = Directory::under(protocol).access(next.cpu, intent);
    let copy = match intent {
        Intent::Store => Copy::Modified,
        Intent::BiasedLoad => Copy::Exclusive,
        Intent::Load if protocol.exclusive_on_first_read => Copy::Exclusive,
        Intent::Load => Copy::Shared,
    };
    let line = Known {
        cpu: next.cpu,
        tid: next.tid,
        copy,
        shared: PRIVATE,
    };
    (line, outcome.transactions.total() as u32)
}

/// The directory of a line that one processor has to itself.
fn seeded(protocol: Protocol, cpu: Cpu, copy: Copy) -> Directory {
    let mut directory = Directory::under(protocol);
    directory.access(
        cpu,
        match copy {
            Copy::Shared => Intent::Load,
            Copy::Exclusive => Intent::BiasedLoad,
            Copy::Modified => Intent::Store,
        },
    );
    directory
}

/// The processor that alone has the line wants more of it.
fn alone(protocol: Protocol, known: &mut Known, intent: Intent) -> u32 {
    let outcome = seeded(protocol, known.cpu, known.copy).access(known.cpu, intent);
    known.copy = Copy::Modified;
    outcome.transactions.total() as u32
}
