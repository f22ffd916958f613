//! Which loads of a complete order should fetch their line for ownership.
//!
//! [`super::hint`] judges one pair of a line by shares of what watch windows saw, in each thread's own order; the report
//! shows that. Here a load is judged as a whole, over all lines and stores, by the messages of the protocol, with
//! processors as caches have them. The two may differ: a load that is stored on one line and only read on others has a
//! pair that deserves a hint, and is left alone here when the others cost more. What the compiler is told comes from
//! here.
//!
//! They cannot be one rule: a pair is judged by its executions, in the order of one thread, since traps disturb the order
//! between threads and windows cannot tell what a hint would save; a load here by its misses, in the order of the line,
//! whose messages are known exactly. What share of the one is what share of the other depends on the program, so each
//! has limits of its own. Both leave alone what stores itself, and what takes lines from readers.
//!
//! Whether the store behind a load is plain or one that the processor waits for changes how much time a hint gains
//! and not how many messages, so it does not decide; it is told beside each hint.

mod choose;
mod landscape;

#[cfg(test)]
mod tests;

pub use choose::{Chosen, Counts, HintedLoad, LeftAlone, choose, keeping};

use crate::analysis::Load;

/// Which loads get a hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// The paper's: every load that a request for ownership by the same processor ever followed as the line's next one
    /// (SWIFT, section 4.1).
    Swift,
    /// Those that save messages, less those that cost more: [`LoadThresholds`].
    #[default]
    Ours,
}

/// The limits of [`Filter::Ours`], each with its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadThresholds {
    /// Least requests of the load.
    pub requests: u64,
    /// A load with fewer requests is a *one-off*, unless it saves [`one_off_share`](Self::one_off_share): the start of the
    /// C library, what the dynamic linker looks up once, what each thread does once. The next run may have it or not, and
    /// the few messages are not worth an instruction in the way of all executions.
    pub one_off_requests: u64,
    /// Share of the order's messages, 0..=1, from which a load is no one-off however few its requests are: where little
    /// runs, few requests are much of it.
    pub one_off_share: f64,
    /// The same in messages: [`LoadThresholds::of_order`] sets it.
    pub one_off_saves: u64,
    /// Least share of the requests that the store must follow, as the line's next request for ownership, 0..=1. Of others
    /// most misses would take a line that is not written next.
    pub stored: f64,
    /// Least messages saved, net, per request. A pair saves two or four.
    pub saved_per_request: f64,
    /// Most readers hurt per request. A reader that loses its copy waits for it, and nothing hides that; the upgrade that
    /// is saved is mostly hidden by the store buffer.
    pub readers: f64,
    /// Most that the messages serving loads may grow by, all hints together, 0..=1. A hint moves messages from stores,
    /// whose latency is hidden, to loads, whose latency is not.
    pub load_growth: f64,
    /// Where the paper's set takes fewer messages than the loads within these limits do, start from it: then limits on
    /// single loads give way.
    pub at_least_papers: bool,
    /// Most rounds in which loads that save beside the others join the candidates.
    pub rounds: usize,
    /// What counts where there are several orders.
    pub policy: Policy,
}

/// How a set of hints is judged by several orders, each of a run of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// No hint may cost messages in one of them, beside the others, nor may an order go beyond the limits.
    #[default]
    Each,
    /// What counts is the sum.
    Sum,
}

impl LoadThresholds {
    /// For an order of all accesses of a program: it is no sample, so whatever saves messages again and again counts.
    ///
    /// Eight requests: threads of a small machine run what runs once a thread as often as that at most, and what runs in a
    /// loop that matters at all exceeds it by far.
    pub fn complete() -> LoadThresholds {
        LoadThresholds {
            requests: 1,
            one_off_requests: 8,
            one_off_share: 0.01,
            one_off_saves: 0,
            stored: 0.5,
            saved_per_request: 0.0,
            readers: 0.5,
            load_growth: 0.01,
            at_least_papers: true,
            rounds: 6,
            policy: Policy::Each,
        }
    }

    /// For watch windows: a sample, in which a load must show itself as often as a pair must
    /// ([`PairThresholds::executions`](super::PairThresholds)), and save one message in two of what a pair saves at
    /// least.
    pub fn windows() -> LoadThresholds {
        LoadThresholds {
            requests: 16,
            one_off_requests: 0,
            saved_per_request: 1.0,
            readers: 0.1,
            at_least_papers: false,
            ..LoadThresholds::complete()
        }
    }

    /// For an order of so many messages.
    #[must_use]
    pub fn of_order(&self, messages: u64) -> LoadThresholds {
        LoadThresholds {
            one_off_saves: (self.one_off_share * messages as f64).ceil() as u64,
            ..*self
        }
    }
}

/// Why a load is left as it is; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeftBecause {
    /// Its hint adds more messages than it saves: the veto.
    CostsMoreThanItSaves,
    /// No store follows in time: its hint changes no number of messages.
    SavesNothing,
    /// The store is the same instruction. A hint right before it would be the store's own request.
    SameInstruction,
    /// Fewer requests than [`LoadThresholds::one_off_requests`], which save next to nothing.
    OneOff,
    /// The store follows fewer of its requests than [`LoadThresholds::stored`].
    SeldomStored,
    /// Fewer requests than [`LoadThresholds::requests`].
    TooFewRequests,
    /// It saves less than [`LoadThresholds::saved_per_request`].
    SavesTooLittle,
    /// So many readers hurt per request, more than [`LoadThresholds::readers`].
    HurtsReaders(f64),
    /// It saves messages, and moves so many to loads that all hints together would exceed
    /// [`LoadThresholds::load_growth`].
    MovesMessagesToLoads,
    /// It would save alone, but not beside the other hints.
    CostsBesideOthers,
    /// It saves in all orders together, and costs in one of them.
    CostsInOneRun,
    /// The paper's filter does not name it.
    NoPair,
}

impl LeftBecause {
    /// Stable name in hints files.
    pub fn name(self) -> &'static str {
        match self {
            LeftBecause::CostsMoreThanItSaves => "costs-more-than-it-saves",
            LeftBecause::SavesNothing => "saves-nothing",
            LeftBecause::SameInstruction => "same-instruction",
            LeftBecause::OneOff => "one-off",
            LeftBecause::SeldomStored => "seldom-stored",
            LeftBecause::TooFewRequests => "too-few-requests",
            LeftBecause::SavesTooLittle => "saves-too-little",
            LeftBecause::HurtsReaders(_) => "hurts-readers",
            LeftBecause::MovesMessagesToLoads => "moves-messages-to-loads",
            LeftBecause::CostsBesideOthers => "costs-beside-others",
            LeftBecause::CostsInOneRun => "costs-in-one-run",
            LeftBecause::NoPair => "no-pair",
        }
    }
}

/// Why no set of hints may have a load, the paper's corrected one neither.
fn never_hinted(load: &Load, limits: &LoadThresholds) -> Option<LeftBecause> {
    let stored = load.followed_by_store as f64;
    if load.stores_itself() {
        Some(LeftBecause::SameInstruction)
    } else if load.requests < limits.one_off_requests && load.net() < limits.one_off_saves as i64 {
        Some(LeftBecause::OneOff)
    } else if stored < limits.stored * load.requests as f64 {
        Some(LeftBecause::SeldomStored)
    } else {
        None
    }
}

/// Judges a load by itself: `Ok` when it deserves a hint.
pub fn judge_load(load: &Load, limits: &LoadThresholds) -> Result<(), LeftBecause> {
    judge_beside(load, &Beside::of(load), limits)
}

/// What a load's hint changes beside some others.
#[derive(Clone, Copy, Debug)]
struct Beside {
    requests: u64,
    net: i64,
    lost: u64,
    readers_hurt: u64,
}

impl Beside {
    /// Beside none.
    fn of(load: &Load) -> Beside {
        Beside {
            requests: load.requests,
            net: load.net(),
            lost: load.lost,
            readers_hurt: load.readers_hurt,
        }
    }
}

/// The same beside other hints.
fn judge_beside(load: &Load, beside: &Beside, limits: &LoadThresholds) -> Result<(), LeftBecause> {
    if beside.net < 0 || (beside.net == 0 && beside.lost > 0) {
        return Err(LeftBecause::CostsMoreThanItSaves);
    }
    if beside.net == 0 {
        return Err(LeftBecause::SavesNothing);
    }
    if let Some(never) = never_hinted(load, limits) {
        return Err(never);
    }
    if load.requests < limits.requests {
        return Err(LeftBecause::TooFewRequests);
    }
    let requests = beside.requests.max(1) as f64;
    if (beside.net as f64) < limits.saved_per_request * requests {
        return Err(LeftBecause::SavesTooLittle);
    }
    let hurt = beside.readers_hurt as f64 / requests;
    if hurt > limits.readers {
        return Err(LeftBecause::HurtsReaders(hurt));
    }
    Ok(())
}
