//! Watch windows as the stream tells of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Unresolved;
use crate::access::Pid;

/// An interval in which every access to some words of a line was trapped, so that their order is complete.
///
/// Its accesses are those of [`Basis::Trapped`](crate::access::Basis::Trapped) to the window's line with
/// `open_ns <= time_ns <= end_ns`. Windows do not overlap. A hit after `end_ns` was trapped while the window
/// was closing on another CPU: it is an access that happened, outside of any complete order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Number in the run, from 0.
    pub number: u64,
    /// From here on all CPUs (or threads) were armed; CLOCK_MONOTONIC, nanoseconds.
    pub open_ns: u64,
    /// Up to here every access was trapped.
    pub end_ns: u64,
    /// The watched words, all of one line, at most four; a word that is mapped at several addresses is there
    /// for each.
    pub words: Vec<WatchedWord>,
    /// Hits of every target were taken, as several have the line at the same address; else only those of the
    /// words' own processes.
    pub everyone: bool,
    /// Breakpoint hits of targets. One instruction that touches two watched words hits twice.
    pub hits: u64,
    /// Of those, hits that found no room in their CPU's ring: the order has holes.
    pub lost: u64,
    /// Of those, hits whose instruction could not be told, by reason: the order has holes.
    pub unresolved: BTreeMap<Unresolved, u64>,
    /// Accesses that are known to lie within some bytes only
    /// ([`Access::within`](crate::access::Access::within)), as where the access overwrote its own address registers
    /// (`mov 4(%rax),%eax`).
    pub inferred: u64,
    /// Time that the traps took from the targets: hits times the measured cost of one, nanoseconds.
    pub cost_ns: u64,
    /// What was armed.
    pub breadth: Breadth,
    /// Why it ended.
    pub end: WindowEnd,
}

impl Window {
    /// Whether no access is missing from its order.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.unresolved.is_empty() && self.end != WindowEnd::CpusChanged
    }
}

/// A few bytes that a breakpoint register watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedWord {
    /// A process that has it at this address.
    pub pid: Pid,
    /// Virtual address, a multiple of `len`.
    pub addr: u64,
    /// 1, 2, 4 or 8 bytes.
    pub len: u8,
}

/// Where a window's breakpoints are armed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Breadth {
    /// On every CPU: no thread escapes.
    Cpus,
    /// On each thread that existed when the window opened: a thread born in it is not seen.
    Threads,
}

/// Why a window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowEnd {
    /// It had as many hits as it may.
    Hits,
    /// Its time was over.
    Time,
    /// Closed by the run's end, or for a window that is worth more.
    Asked,
    /// The watched process ended or became another program.
    Gone,
    /// A CPU went offline or came online: what ran on it may have been missed.
    CpusChanged,
}

impl Breadth {
    /// Stable name in JSON and sessions.
    pub fn name(self) -> &'static str {
        match self {
            Breadth::Cpus => "cpus",
            Breadth::Threads => "threads",
        }
    }

    /// The breadth of that name.
    pub fn from_name(name: &str) -> Option<Breadth> {
        [Breadth::Cpus, Breadth::Threads]
            .into_iter()
            .find(|breadth| breadth.name() == name)
    }
}

/// The windows of a run, summed.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct WatchTally {
    /// Windows.
    pub windows: u64,
    /// Of those, with a hole in their order.
    pub incomplete: u64,
    /// Breakpoint hits of targets.
    pub hits: u64,
    /// Hits that found no room in a ring.
    pub lost: u64,
    /// Hits whose instruction could not be told, by reason.
    #[serde(serialize_with = "super::by_name")]
    pub unresolved: BTreeMap<Unresolved, u64>,
    /// Accesses that are known to lie within some bytes only.
    pub inferred: u64,
    /// Time that the traps took from the targets, nanoseconds; not in JSON.
    #[serde(skip)]
    pub cost_ns: u64,
}

impl WatchTally {
    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        self.windows += 1;
        self.incomplete += u64::from(!window.is_complete());
        self.hits = self.hits.saturating_add(window.hits);
        self.lost = self.lost.saturating_add(window.lost);
        for (reason, n) in &window.unresolved {
            let sum = self.unresolved.entry(*reason).or_default();
            *sum = sum.saturating_add(*n);
        }
        self.inferred = self.inferred.saturating_add(window.inferred);
        self.cost_ns = self.cost_ns.saturating_add(window.cost_ns);
    }
}
