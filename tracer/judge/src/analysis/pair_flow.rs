//! The order of a line's accesses, one after the other, as [`Pairs`] needs it.

use super::{
    pair::Instruction,
    pairs::{Between, Pairs, WindowFacts},
    site::extent,
    small_map::SmallMap,
    window_order::Step,
};
use crate::{
    access::{Cpu, Op, Tid},
    coherence::{Found, Request},
};

/// An access to the line, with what the directory protocol made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairStep {
    pub(super) instruction: Instruction,
    pub(super) cpu: Cpu,
    pub(super) tid: Tid,
    pub(super) offset: u8,
    pub(super) size: u8,
    /// As in [`Site::within`](super::Site::within).
    pub(super) within: u8,
    pub(super) op: Op,
    pub(super) request: Option<Request>,
    /// Nobody knows where the line was.
    pub(super) cold: bool,
    pub(super) found: Found,
    /// As in [`Measured::repeats`](crate::access::Measured::repeats).
    pub(super) repeats: u32,
}

impl PairStep {
    /// An access of a watch window.
    pub(super) fn of(step: &Step) -> PairStep {
        let (size, within) = extent(&step.access, step.size);
        PairStep {
            instruction: Instruction {
                space: step.space,
                ip: step.access.ip,
                kernel: step.access.kernel,
            },
            cpu: step.access.cpu,
            tid: step.access.tid,
            offset: step.offset,
            size,
            within,
            op: step.access.op,
            request: step.outcome.request,
            cold: step.cold,
            found: step.outcome.found,
            repeats: step.access.measured.repeats,
        }
    }

    /// Executions that it stands for.
    pub(super) fn executions(&self) -> u64 {
        1 + u64::from(self.repeats)
    }

    /// Whether it was a request that the CPU's cache must really have made.
    pub(super) fn is_known_request(&self) -> bool {
        self.request.is_some() && !self.cold
    }
}

/// The newest access of some kind, and the newest by another CPU than that one's; numbered from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    newest: Option<(u64, Cpu)>,
    of_others: Option<u64>,
}

impl Newest {
    fn note(&mut self, at: u64, cpu: Cpu) {
        if let Some((before, by)) = self.newest
            && by != cpu
        {
            self.of_others = Some(before);
        }
        self.newest = Some((at, cpu));
    }

    /// The newest by another CPU.
    fn besides(&self, cpu: Cpu) -> Option<u64> {
        match self.newest {
            Some((at, by)) if by != cpu => Some(at),
            _ => self.of_others,
        }
    }
}

/// A load that waits for its thread's next access.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    load: Option<(u64, PairStep)>,
    among_readers: bool,
}

/// An order of accesses to one line, so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    at: u64,
    threads: SmallMap<Tid, Waiting>,
    reads: Newest,
    stores: Newest,
    /// Mere reads.
    readers: Newest,
    /// The newest request.
    requested: Option<PairStep>,
}

impl Flow {
    /// Takes the next access and gives `pairs` what it completes. `mere`: a load that its thread does not follow
    /// with a store.
    ///
    /// An access that stands for several executions is in the order by its first one. Nobody else asked for the
    /// line meanwhile, so where the load and the store that follows it both have such repeats, they went on taking
    /// turns: as often as the rarer of the two.
    pub(super) fn take(
        &mut self,
        step: &PairStep,
        mere: bool,
        pairs: &mut Pairs,
        window: &WindowFacts,
    ) {
        self.follow_log(step, pairs, window);
        if !step.op.touches() {
            return;
        }
        self.at += 1;
        let (at, cpu) = (self.at, step.cpu);
        let last_store = self.stores.newest.map(|(at, _)| at);
        let among_readers = (self.readers.besides(cpu)).is_some_and(|at| Some(at) > last_store);
        let waiting = self.threads.slot(step.tid, usize::MAX);
        let waiting = waiting.map(std::mem::take).unwrap_or_default();
        if let Some((from, load)) = waiting.load {
            self.complete(from, &load, step, waiting.among_readers, pairs, window);
        }
        match step.op {
            Op::Load => {
                self.reads.note(at, cpu);
                if mere {
                    self.readers.note(at, cpu);
                }
                if let Some(waiting) = self.threads.slot(step.tid, usize::MAX) {
                    waiting.load = Some((at, *step));
                    waiting.among_readers = among_readers;
                }
            }
            Op::Rmw => {
                pairs.executed(step, u64::from(among_readers), window);
                pairs.pair(step, step, Between::default(), step.executions(), window);
                self.stores.note(at, cpu);
            }
            Op::Store => self.stores.note(at, cpu),
            // Not known to be either: no side of a pair.
            Op::Prefetch | Op::PrefetchOwn | Op::Unknown => {}
        }
    }

    /// A load whose thread's next access has come.
    fn complete(
        &self,
        from: u64,
        load: &PairStep,
        next: &PairStep,
        among_readers: bool,
        pairs: &mut Pairs,
        window: &WindowFacts,
    ) {
        let since = |newest: &Newest| {
            let other = newest.besides(load.cpu);
            other.is_some_and(|other| other > from)
        };
        let between = Between {
            reads: since(&self.reads),
            writes: since(&self.stores),
            mere_reads: since(&self.readers),
        };
        // Once others had it in between, the load's repeats were before, and the store's are after.
        let undisturbed = !between.reads && !between.writes;
        let times = if next.op.stores() && undisturbed {
            load.executions().min(next.executions())
        } else {
            1
        };
        // From the second execution on, its own store is newer than any reader.
        let among = if among_readers {
            load.executions() - (times - 1)
        } else {
            0
        };
        pairs.executed(load, among, window);
        if next.op.stores() {
            pairs.pair(load, next, between, times, window);
        }
    }

    /// SWIFT's filter on the line's request log.
    fn follow_log(&mut self, step: &PairStep, pairs: &mut Pairs, window: &WindowFacts) {
        let Some(request) = step.request else {
            return;
        };
        if let Some(before) = self.requested.replace(*step)
            && (before.request, request) == (Some(Request::ReadShar), Request::ReadPriv)
            && before.cpu == step.cpu
            && before.is_known_request()
            && step.op.stores()
        {
            pairs.adjacent(&before, step, window);
        }
    }
}
