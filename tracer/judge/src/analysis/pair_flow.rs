//! The order of a line's accesses, one after the other, as [`PairRecords`] need it.

use super::{
    pair_records::{Between, PairRecords},
    served::{OrderFacts, Served},
    small_map::SmallMap,
};
use crate::{
    access::{Cpu, Op, Tid},
    coherence::Request,
};

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
    load: Option<(u64, Served)>,
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
    requested: Option<Served>,
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
        served: &Served,
        mere: bool,
        pairs: &mut PairRecords,
        order: &OrderFacts,
    ) {
        self.follow_log(served, pairs, order);
        if !served.access.op.touches() {
            return;
        }
        self.at += 1;
        let (at, cpu) = (self.at, served.access.cpu);
        let last_store = self.stores.newest.map(|(at, _)| at);
        let among_readers = (self.readers.besides(cpu)).is_some_and(|at| Some(at) > last_store);
        let waiting = self.threads.slot(served.access.tid, usize::MAX);
        let waiting = waiting.map(std::mem::take).unwrap_or_default();
        if let Some((from, load)) = waiting.load {
            self.complete(from, &load, served, waiting.among_readers, pairs, order);
        }
        match served.access.op {
            Op::Load => {
                self.reads.note(at, cpu);
                if mere {
                    self.readers.note(at, cpu);
                }
                if let Some(waiting) = self.threads.slot(served.access.tid, usize::MAX) {
                    waiting.load = Some((at, *served));
                    waiting.among_readers = among_readers;
                }
            }
            Op::Rmw => {
                pairs.executed(served, u64::from(among_readers), order);
                pairs.pair(
                    served,
                    served,
                    Between::default(),
                    served.access.executions(),
                    order,
                );
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
        load: &Served,
        next: &Served,
        among_readers: bool,
        pairs: &mut PairRecords,
        order: &OrderFacts,
    ) {
        let since = |newest: &Newest| {
            let other = newest.besides(load.access.cpu);
            other.is_some_and(|other| other > from)
        };
        let between = Between {
            reads: since(&self.reads),
            writes: since(&self.stores),
            mere_reads: since(&self.readers),
        };
        // Once others had it in between, the load's repeats were before, and the store's are after.
        let undisturbed = !between.reads && !between.writes;
        let times = if next.access.op.stores() && undisturbed {
            load.access.executions().min(next.access.executions())
        } else {
            1
        };
        // From the second execution on, its own store is newer than any reader.
        let among = if among_readers {
            load.access.executions() - (times - 1)
        } else {
            0
        };
        pairs.executed(load, among, order);
        if next.access.op.stores() {
            pairs.pair(load, next, between, times, order);
        }
    }

    /// SWIFT's filter on the line's request log.
    fn follow_log(&mut self, served: &Served, pairs: &mut PairRecords, order: &OrderFacts) {
        let Some(request) = served.request else {
            return;
        };
        if let Some(before) = self.requested.replace(*served)
            && (before.request, request) == (Some(Request::ReadShar), Request::ReadPriv)
            && before.access.cpu == served.access.cpu
            && before.is_known_request()
            && served.access.op.stores()
        {
            pairs.adjacent(&before, served, order);
        }
    }
}
