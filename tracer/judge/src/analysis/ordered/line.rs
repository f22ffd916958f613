//! One line of a complete order that several threads touch.

use super::lookahead::Lookahead;
use crate::{
    access::{Access, ByteSet, Cpu, LineKey, LineSize, Op, SpaceId, Tid},
    analysis::{
        Group, HandOffs, Kinds, Pair, Uses,
        lifetimes::{Lifetimes, Use},
        line::Piece,
        pair::Instruction,
        pair_flow::{Flow, PairStep},
        pairs::{MAX_LOADS, Pairs, WindowFacts},
        uses::Stretches,
    },
    coherence::{Directory, Found, Intent, Request},
};

/// Loading instructions that a line keeps where memory is scarce.
const FEW_LOADS: usize = 16;

/// Sums over a line, from the moment on when a second thread or CPU touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OrderCounts {
    /// Requests for a copy.
    pub read_shar: u64,
    /// Requests for ownership.
    pub read_priv: u64,
    /// Messages that served them.
    pub transactions: u64,
    /// Of those, the ones caused by sharing: hand-offs, and
    /// what took a copy or ownership from another CPU.
    pub shared_transactions: u64,
    /// Hand-offs between CPUs.
    pub hand_offs: HandOffs,
    /// The parts of those that are of each kind, without what happened but once beside others that go on; `None` when none
    /// is decided.
    pub kinds: Option<Kinds>,
    /// CPUs that touched it.
    pub cpus: usize,
}

/// The part of an access that is on the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) cpu: Cpu,
    pub(super) tid: Tid,
    pub(super) offset: u8,
    pub(super) size: u8,
    pub(super) op: Op,
    instruction: Instruction,
    repeats: u32,
}

impl Next {
    pub(super) fn of(access: &Access, piece: Piece, space: SpaceId) -> Next {
        Next {
            cpu: access.cpu,
            tid: access.tid,
            offset: piece.offset,
            size: piece.size,
            op: access.op,
            instruction: Instruction {
                space,
                ip: access.ip,
                kernel: access.kernel,
            },
            repeats: access.measured.repeats,
        }
    }

    fn step(&self, request: Option<Request>, found: Found) -> PairStep {
        PairStep {
            instruction: self.instruction,
            cpu: self.cpu,
            tid: self.tid,
            offset: self.offset,
            size: self.size,
            within: 0,
            op: self.op,
            request,
            cold: false,
            found,
            repeats: self.repeats,
        }
    }
}

/// A line that several threads or CPUs touched.
#[derive(Debug)]
pub struct OrderedLine {
    key: LineKey,
    directory: Directory,
    lifetimes: Lifetimes,
    stretches: Stretches,
    counts: OrderCounts,
    paired: Option<Box<Paired>>,
}

/// What pairs need.
#[derive(Debug, Default)]
struct Paired {
    lookahead: Lookahead,
    flow: Flow,
    pairs: Pairs,
}

impl OrderedLine {
    /// A line that one thread on one CPU had to itself so far.
    pub(super) fn after(
        key: LineKey,
        directory: Directory,
        cpu: Cpu,
        tid: Tid,
        paired: bool,
    ) -> OrderedLine {
        OrderedLine {
            key,
            directory,
            lifetimes: Lifetimes::after(cpu, tid),
            stretches: Stretches::default(),
            counts: OrderCounts::default(),
            paired: paired.then(Box::default),
        }
    }

    /// Serves the next access, and says how many messages that took. `scarce`: there is little room for more.
    pub(super) fn take(
        &mut self,
        intent: Intent,
        next: &Next,
        line_size: LineSize,
        scarce: bool,
    ) -> u32 {
        let outcome = self.directory.access(next.cpu, intent);
        let bytes = if next.op.touches() {
            ByteSet::range(next.offset, u16::from(next.size), line_size).0
        } else {
            0
        };
        if bytes != 0 {
            self.stretches.take(next.tid, bytes);
        }
        let handed_off = self.lifetimes.take(&Use {
            cpu: next.cpu,
            tid: next.tid,
            bytes,
            missed: outcome.missed(),
            stores: next.op.stores(),
        });
        let messages = match outcome.request {
            Some(request) => {
                let messages = outcome.transactions.total();
                self.count(request, messages, handed_off, outcome.found);
                messages
            }
            None => 0,
        };
        if let Some(paired) = &mut self.paired {
            let step = next.step(outcome.request, outcome.found);
            paired.take(step, line_size, scarce);
        }
        messages as u32
    }

    fn count(&mut self, request: Request, messages: u64, handed_off: bool, found: Found) {
        let counts = &mut self.counts;
        let takes = match (request, found) {
            (_, Found::Clean(_) | Found::Dirty(_)) => true,
            (Request::ReadPriv, Found::Shared { others }) => others > 0,
            _ => false,
        };
        match request {
            Request::ReadShar => counts.read_shar += 1,
            Request::ReadPriv => counts.read_priv += 1,
        }
        counts.transactions += messages;
        if handed_off || takes {
            counts.shared_transactions += messages;
        }
    }

    /// Which line.
    pub fn key(&self) -> LineKey {
        self.key
    }

    /// The sums so far. `groups` are bytes that belong together, as [`groups`](crate::analysis::groups) tells.
    pub fn counts(&self, groups: &[Group]) -> OrderCounts {
        let held = self.lifetimes.held();
        let lives = self.lifetimes.lives();
        OrderCounts {
            hand_offs: lives.hand_offs(&held, groups),
            kinds: lives.lasting_kinds(&held, groups),
            cpus: self.lifetimes.cpus(),
            ..self.counts
        }
    }

    /// What each thread used of it at a time.
    pub fn uses(&self) -> &Uses {
        self.stretches.uses()
    }

    /// Loading instructions kept.
    pub(super) fn loads(&self) -> usize {
        self.paired
            .as_ref()
            .map_or(0, |paired| paired.pairs.loads())
    }

    /// Read-then-write pairs, most frequent first, of a line that several CPUs touched; none of others. Accesses
    /// that wait for what their threads do next count as if nothing came any more.
    pub fn pairs(&self, line_size: LineSize) -> Vec<Pair> {
        let Some(paired) = self.paired.as_ref().filter(|_| self.lifetimes.cpus() > 1) else {
            return Vec::new();
        };
        let everything = ByteSet::default();
        if paired.lookahead.is_empty() {
            return paired.pairs.ranked(everything);
        }
        let (mut flow, mut pairs) = (paired.flow.clone(), paired.pairs.clone());
        let facts = facts(line_size, false);
        for (step, mere) in paired.lookahead.rest() {
            flow.take(&step, mere, &mut pairs, &facts);
        }
        pairs.ranked(everything)
    }

    /// Executions of loads whose pairs are not kept because there are too many.
    pub fn forgotten_executions(&self) -> u64 {
        self.paired
            .as_ref()
            .map_or(0, |paired| paired.pairs.forgotten())
    }
}

impl Paired {
    fn take(&mut self, step: PairStep, line_size: LineSize, scarce: bool) {
        let facts = facts(line_size, scarce);
        self.lookahead.push(step);
        while let Some((step, mere)) = self.lookahead.pop() {
            self.flow.take(&step, mere, &mut self.pairs, &facts);
        }
    }
}

/// A complete order is a window on the whole line that misses nothing.
fn facts(line_size: LineSize, scarce: bool) -> WindowFacts {
    WindowFacts {
        line_size,
        complete: true,
        watched: ByteSet(u128::MAX),
        most_loads: if scarce { FEW_LOADS } else { MAX_LOADS },
    }
}
