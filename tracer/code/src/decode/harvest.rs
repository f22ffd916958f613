//! From one sample to its touches: who was waited for, what runs around the ip, what the loop does.
//!
//! A cpu-clock sample's ip is the instruction *after* the one that retired last, so the CPU was
//! waiting for the ip's predecessor in execution order:
//!
//! ```text
//!   addq $1,(%rax)     <- waited for        the ip inside a block: the instruction before it
//!   mov  stop,%edx     <- ip                the ip at a block's start: the end of the block that
//!   test %edx,%edx                          led here, for which edges, loops and values are asked
//! ```
//!
//! Then the walk widens: the block, blocks that surely ran before or will run after it
//! ([`Basis::Decoded`]), blocks that ran if the loop was going round, and what every iteration of the
//! innermost loop runs ([`Basis::Harvested`]). No instruction is told twice. Nothing allocates but
//! `out`, and what is recalled from memory where there is some to ask.
//!
//! The predecessor is not always what was waited for: [`waited`](super::waited) knows what else it may have been.

use super::{
    FunctionCode, Harvest, Registers, Stall, Touch,
    flow::{Edge, Way},
    instruction::Traits,
    operand::Bases,
    recall::Memory,
    registers::{Gpr, Known},
    walk::{Collect, Collector, MAX_STRETCH},
};
use crate::{access::Basis, event::Unresolved};

/// Blocks walked to in each direction.
const MAX_HOPS: usize = 8;
/// Blocks of a loop harvested for one sample; of larger loops, those nearest its end.
const MAX_LOOP_BLOCKS: usize = 32;
/// How many blocks back a path's compared values are checked, and the longest block that is undone
/// for it.
const MAX_REFUTATION: (u32, usize) = (2, 32);

/// How control came into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// By the caller's call.
    Called,
    /// By this edge: there is no other, or the register values contradict the others.
    Only(Edge),
    /// By this edge if the loop was going round, which a sample in a loop nearly always means.
    Likely(Edge),
    /// By one of several edges, of the block's loop or from outside of it.
    Several { inside: bool },
    /// By a way that is not seen.
    Unseen,
}

impl FunctionCode {
    /// Appends what the sample shows to `out`. `bias` is the run-time address minus the svma. No
    /// allocation but that of `out`.
    pub fn harvest(&self, registers: &Registers, bias: u64, out: &mut Vec<Touch>) -> Harvest {
        self.search(registers, bias, None, out)
    }

    /// The same, of a process whose memory can still be read: that tells some addresses which the loads themselves
    /// overwrote; see `recall`.
    pub fn harvest_with(
        &self,
        registers: &Registers,
        bias: u64,
        memory: &mut dyn Memory,
        out: &mut Vec<Touch>,
    ) -> Harvest {
        self.search(registers, bias, Some(memory), out)
    }

    fn search(
        &self,
        registers: &Registers,
        bias: u64,
        memory: Option<&mut dyn Memory>,
        out: &mut Vec<Touch>,
    ) -> Harvest {
        let Some(at) = self.step_at(registers.ip.wrapping_sub(bias)) else {
            return Harvest::unresolved(Unresolved::NotAnInstruction);
        };
        let block = self.step(at).block;
        let bases = Bases {
            bias,
            fs: registers.fs_base,
            gs: registers.gs_base,
        };
        let collector = Collector::new(self, bases, out);
        let mut search = Search {
            collector,
            home: block,
            visited: [(block, true); 2 * MAX_HOPS + 1],
            visits: 1,
        };
        let sampled = Known::all(registers.gpr);
        search.run(at, &sampled);
        if let Some(memory) = memory {
            search.recall(at, &sampled, memory);
        }
        if !search.collector.interrupted {
            search.suspect(at, &sampled);
        }
        let stall = search.collector.stall;
        let lost = (search.collector.waited_lost)
            .filter(|_| stall == Stall::Unresolved(Unresolved::RegisterOverwritten));
        Harvest {
            stall,
            lost: lost.map(|step| self.run_time(step, &bases)),
            wait: search.collector.wait,
            spin: search.collector.spin,
            operands_unknown: search.collector.unknown,
        }
    }

    /// How control came to the start of `block`, given the registers there. The edges of the block's
    /// own loop go first: a loop is entered once and goes round many times.
    pub(super) fn entry(&self, block: u32, known: &Known, bias: u64) -> Entry {
        let edges = self.graph.entries(block);
        let unseen = self.graph.blocks[block as usize].unseen;
        for inside in [true, false] {
            let others = edges.iter().any(|edge| edge.inside != inside);
            if !inside && unseen {
                let first = self.bounded && block == 0 && edges.iter().all(|edge| edge.inside);
                return if first { Entry::Called } else { Entry::Unseen };
            }
            let mut fitting = self.fitting(block, known, bias, inside);
            match (fitting.next(), fitting.next()) {
                (Some(edge), None) if inside && (unseen || others) => return Entry::Likely(edge),
                (Some(edge), None) => return Entry::Only(edge),
                (Some(_), Some(_)) => return Entry::Several { inside },
                (None, _) => {}
            }
        }
        Entry::Unseen
    }

    /// The edges into a block, inside or from outside of its loop, that the register values allow.
    pub(super) fn fitting(
        &self,
        block: u32,
        known: &Known,
        bias: u64,
        inside: bool,
    ) -> impl Iterator<Item = Edge> {
        let edges = self.graph.entries(block);
        // Where there is only one way, the values have nothing to decide.
        let alone = edges.len() == 1 && !self.graph.blocks[block as usize].unseen;
        edges.iter().copied().filter(move |edge| {
            edge.inside == inside && (alone || self.fits(*edge, known, bias, MAX_REFUTATION.0))
        })
    }

    /// False when the registers after the edge say that the jump before it went the other way, or
    /// that about every way into the block it leaves.
    fn fits(&self, edge: Edge, known: &Known, bias: u64, depth: u32) -> bool {
        let condition = self.facts[edge.from as usize].condition;
        let taken = condition.and_then(|condition| condition.taken(known));
        let fits = match edge.way {
            Way::Jumped => taken != Some(false),
            Way::Fell => taken != Some(true),
            Way::Either => true,
        };
        let block = &self.graph.blocks[edge.from as usize];
        let entries = self.graph.entries(edge.from);
        let short = block.steps().len() <= MAX_REFUTATION.1;
        if !fits || depth == 0 || block.unseen || entries.is_empty() || !short {
            return fits;
        }
        let mut before = known.clone();
        for step in self.steps[block.steps()].iter().rev() {
            before.back(step, bias);
        }
        // Many ways in are hardly all contradicted; looking at each would multiply by level.
        entries.len() > 2
            || entries
                .iter()
                .any(|edge| self.fits(*edge, &before, bias, depth - 1))
    }

    /// The block that runs after this one, given the registers at its end, and whether that is
    /// certain. `home` is the block of the ip: at a fork, the only way that stays in its loop is likely.
    fn next(&self, block: u32, known: &Known, home: u32) -> Option<(u32, bool)> {
        let from = &self.graph.blocks[block as usize];
        if !from.conditional || from.fall == from.jump {
            return from.fall.or(from.jump).map(|next| (next, true));
        }
        let condition = self.facts[block as usize].condition;
        if let Some(taken) = condition.and_then(|condition| condition.taken(known)) {
            let next = if taken { from.jump } else { from.fall };
            return next.map(|next| (next, true));
        }
        let around = self.nest.innermost[home as usize]?;
        let stays = |next: &u32| self.nest.contains(around, *next);
        match (from.fall.filter(stays), from.jump.filter(stays)) {
            (Some(next), None) | (None, Some(next)) => Some((next, false)),
            _ => None,
        }
    }
}

/// Where a walk in one direction stands.
struct Cursor {
    /// The block that was collected last; `None` when the walk has ended.
    block: Option<u32>,
    known: Known,
    basis: Basis,
}

/// The harvest of one sample in the making.
pub(super) struct Search<'a> {
    pub(super) collector: Collector<'a>,
    /// The block of the ip.
    pub(super) home: u32,
    /// Blocks that were collected, and whether on the way back or known from it.
    visited: [(u32, bool); 2 * MAX_HOPS + 1],
    visits: usize,
}

impl Search<'_> {
    fn run(&mut self, at: u32, sampled: &Known) {
        let code = self.collector.code;
        let step = code.step(at);
        let mut behind = Cursor {
            block: Some(self.home),
            known: sampled.clone(),
            basis: Basis::Decoded,
        };
        let mut ahead = Cursor {
            block: Some(self.home),
            known: sampled.clone(),
            basis: Basis::Decoded,
        };
        let interrupted = step.traits.has(Traits::REPEATS)
            && sampled
                .get(Gpr::RCX)
                .is_some_and(|rcx| step.effect.has_begun(rcx));
        if interrupted {
            // The instruction at the ip is the one that runs; its registers have moved on since it began.
            self.collector.waited = Some(at);
            self.collector.interrupted = true;
            self.ahead_from(at, &mut ahead);
            behind.known.forget(step.written);
            self.behind_from(at, &mut behind);
        } else {
            self.attribute(at, sampled);
            self.behind_from(at, &mut behind);
            if self.collector.stall != Stall::Attributed {
                self.collector.waited = None;
            }
            self.ahead_from(at, &mut ahead);
        }
        // In a loop both ways lead to the same blocks: what ran before the ip may be what was waited for.
        for certain in [true, false] {
            self.walk_behind(&mut behind, certain);
            self.walk_ahead(&mut ahead, certain);
        }
        self.round(sampled);
    }

    /// Asks memory for the addresses that loads before the ip overwrote: in its block, and in the one that led there.
    fn recall(&mut self, at: u32, sampled: &Known, memory: &mut dyn Memory) {
        let code = self.collector.code;
        let home = code.graph.blocks[self.home as usize].first;
        self.collector.recall(home, at, sampled, memory);
        if let Some(waited) = self.collector.waited_lost.filter(|_| at == home) {
            let from = &code.graph.blocks[code.step(waited).block as usize];
            self.collector.recall(from.first, from.end, sampled, memory);
        }
    }

    /// Finds what was waited for; when that is in another block, tells its touch at once.
    fn attribute(&mut self, at: u32, sampled: &Known) {
        let code = self.collector.code;
        let bias = self.collector.bases.bias;
        let first = code.graph.blocks[self.home as usize].first;
        if at > first {
            let shadowed = at > first + 1 && code.step(at - 2).traits.has(Traits::SHADOWS);
            if !shadowed {
                let waited = Some(at - 1).filter(|step| code.step(*step).waits_for.is_some());
                self.collector.waited = waited;
                self.stand_behind(at - 1);
            }
            return;
        }
        let edge = match code.entry(self.home, sampled, bias) {
            // What retired last is the caller's call, which waits for nothing we could name.
            Entry::Called => return,
            Entry::Only(edge) | Entry::Likely(edge) => edge,
            Entry::Several { inside } => {
                // One path with a memory operand beside one without is no proof that it was taken:
                // unless none of the paths waits for memory, the sample's cost stays unowned.
                let waits = |edge: Edge| {
                    let last = code.graph.blocks[edge.from as usize].end - 1;
                    let operand = code.facts[edge.from as usize].waits_at_end;
                    operand.is_some() || code.step(last).traits.has(Traits::FENCES)
                };
                let mut fitting = code.fitting(self.home, sampled, bias, inside);
                if fitting.any(waits) {
                    self.collector.stall = Stall::Unresolved(Unresolved::AmbiguousPath);
                }
                return;
            }
            Entry::Unseen => {
                self.collector.stall = Stall::Unresolved(if code.bounded {
                    Unresolved::AmbiguousPath
                } else {
                    Unresolved::NoFunction
                });
                return;
            }
        };
        let waited = code.facts[edge.from as usize].waits_at_end;
        let from = &code.graph.blocks[edge.from as usize];
        self.stand_behind(from.end - 1);
        if waited.is_none() {
            return;
        }
        self.collector.waited = waited;
        let start = from.first.max(from.end.saturating_sub(MAX_STRETCH));
        let mut known = sampled.clone();
        self.collector.back(
            start,
            from.end,
            &mut known,
            Basis::Decoded,
            Collect::Stalled,
        );
    }

    /// Collects the ip's block before the ip.
    fn behind_from(&mut self, at: u32, cursor: &mut Cursor) {
        let first = self.collector.code.graph.blocks[self.home as usize].first;
        self.stretch_back(first, at, cursor);
    }

    /// Collects the ip's block from the ip on.
    fn ahead_from(&mut self, at: u32, cursor: &mut Cursor) {
        let end = self.collector.code.graph.blocks[self.home as usize].end;
        self.stretch_ahead(at, end, cursor);
    }

    fn stretch_back(&mut self, first: u32, end: u32, cursor: &mut Cursor) {
        let start = first.max(end.saturating_sub(MAX_STRETCH));
        cursor.basis =
            self.collector
                .back(start, end, &mut cursor.known, cursor.basis, Collect::All);
        if start > first {
            cursor.block = None;
        }
    }

    fn stretch_ahead(&mut self, first: u32, end: u32, cursor: &mut Cursor) {
        let stop = end.min(first + MAX_STRETCH);
        cursor.basis = self
            .collector
            .forward(first, stop, &mut cursor.known, cursor.basis);
        if stop < end {
            cursor.block = None;
        }
    }

    /// Goes on to blocks that run next; only to those that certainly do, or to likely ones too.
    fn walk_ahead(&mut self, cursor: &mut Cursor, certain: bool) {
        let code = self.collector.code;
        while let Some(from) = cursor.block {
            let Some((next, sure)) = code.next(from, &cursor.known, self.home) else {
                return;
            };
            if (certain && !sure) || !self.visit(next, false) {
                return;
            }
            if !sure {
                cursor.basis = Basis::Harvested;
            }
            cursor.block = Some(next);
            let block = &code.graph.blocks[next as usize];
            self.stretch_ahead(block.first, block.end, cursor);
        }
    }

    /// Goes back to blocks that ran before.
    fn walk_behind(&mut self, cursor: &mut Cursor, certain: bool) {
        let code = self.collector.code;
        while let Some(to) = cursor.block {
            let (from, sure) = match code.entry(to, &cursor.known, self.collector.bases.bias) {
                Entry::Only(edge) => (edge.from, true),
                Entry::Likely(edge) => (edge.from, false),
                Entry::Called | Entry::Several { .. } | Entry::Unseen => return,
            };
            if certain && !sure {
                return;
            }
            let block = &code.graph.blocks[from as usize];
            if self.visit(from, true) {
                if !sure {
                    cursor.basis = Basis::Harvested;
                }
                self.stretch_back(block.first, block.end, cursor);
            } else if self.meet(from) && block.steps().len() <= MAX_STRETCH as usize {
                self.collector
                    .meet(block.first, block.end, &mut cursor.known);
            } else {
                return;
            }
            cursor.block = cursor.block.map(|_| from);
        }
    }

    /// Collects what every iteration of the ip's innermost loop runs, as far as registers tell that
    /// the loop leaves alone.
    fn round(&mut self, sampled: &Known) {
        let code = self.collector.code;
        let Some(number) = code.nest.innermost[self.home as usize] else {
            return;
        };
        let around = &code.nest.loops[number as usize];
        let mut unchanged = sampled.clone();
        unchanged.forget(code.loops[number as usize].written);
        let mut at = Some(around.tail);
        for _ in 0..MAX_LOOP_BLOCKS {
            let Some(number) = at else { return };
            if !self.is_visited(number) {
                let block = &code.graph.blocks[number as usize];
                let end = block.end.min(block.first + MAX_STRETCH);
                let mut known = unchanged.clone();
                self.collector
                    .forward(block.first, end, &mut known, Basis::Harvested);
            }
            if number == around.header {
                return;
            }
            at = code.nest.dominator[number as usize];
        }
    }

    fn is_visited(&self, block: u32) -> bool {
        let mut visited = self.visited[..self.visits].iter();
        visited.any(|(visited, _)| *visited == block)
    }

    /// Notes a visit; false if the block was visited before or there were enough.
    fn visit(&mut self, block: u32, behind: bool) -> bool {
        if self.is_visited(block) {
            return false;
        }
        let Some(slot) = self.visited.get_mut(self.visits) else {
            return false;
        };
        *slot = (block, behind);
        self.visits += 1;
        true
    }

    /// Notes that a block was met on the way back; false if it was before, or was not visited.
    fn meet(&mut self, block: u32) -> bool {
        let mut visited = self.visited[..self.visits].iter_mut();
        let met = visited.find(|(visited, _)| *visited == block);
        met.is_some_and(|(_, behind)| !std::mem::replace(behind, true))
    }
}
