//! What the report has of the run.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Coherence, Heap, named};
use crate::{
    access::{CostUnit, Cpu},
    analysis::OrderTotals,
    event::{Breadth, Unresolved, WatchTally},
    names::Coverage,
};

/// What was observed, and how much of it.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Run {
    /// How it was observed.
    #[serde(flatten)]
    pub observed: Observed,
    /// Bytes of a line in this report.
    pub line_size: u64,
    /// Lines touched; `None` where the source does not keep them all.
    pub lines: Option<u64>,
    /// Of those, touched by more than one thread.
    pub shared_lines: Option<u64>,
    /// Samples of the targets that the kernel half took.
    pub produced: u64,
    /// Samples that reached the tool; `produced == samples + lost`.
    pub samples: u64,
    /// Of those, in kernel mode.
    pub kernel_samples: u64,
    /// Accesses decoded from them.
    pub accesses: u64,
    /// Samples that found no room in a ring.
    pub lost: u64,
    /// The same, by CPU.
    #[serde(serialize_with = "named::cpus")]
    pub lost_per_cpu: BTreeMap<Cpu, u64>,
    /// Mapping and task records that found no room.
    pub lost_context: u64,
    /// Times that threads were held to see how fast another one is without them (`--hold`).
    pub holds: u64,
    /// For how long in all, seconds; several that were held at once count once.
    pub held_s: f64,
    /// Time in which CPUs were online and not sampled, in sum over CPUs, seconds.
    pub blind_s: f64,
    /// Samples of other processes, dropped in the kernel half.
    pub filtered: u64,
    /// Samples attributed to an access.
    pub attributed: u64,
    /// Samples not attributed, by reason.
    #[serde(serialize_with = "crate::event::by_name")]
    pub unresolved: BTreeMap<Unresolved, u64>,
    /// Operands of sampled code whose address could not be computed.
    pub operands_unknown: u64,
    /// Share of the cost, 0..1, that was waited for lines which threads share, whether they are findings or not; `None`
    /// where nothing was measured.
    pub shared_share: Option<f64>,
    /// Significance threshold: share of the cost.
    pub threshold: f64,
    /// Share of the sampled time that threads spent in loops that only wait for memory to change, 0..1.
    pub spinning_share: f64,
    /// Share of the sampled time, 0..1, that was seen at loads of memory that nobody was seen to store to: what the CPU waited for
    /// there is not known.
    pub undecided_share: f64,
    /// What costs are in: `sampled_ns`, nanoseconds of the targets' sampled time, or `latency_cycles`, cycles that
    /// sampled loads took, or `transactions`, messages of the coherence protocol. Shares called "of the sampled time" are of the sum of it.
    pub cost_unit: CostUnit,
    /// Where all sampled loads were served; `None` where no PMU sampled any.
    pub coherence: Option<Coherence>,
    /// What instructions told of memory that has no name (heap, other threads' stacks).
    pub typing: Coverage,
    /// Watch windows; `None` when nothing could be watched, or was to be.
    pub watch: Option<Watch>,
    /// The heap; `None` when it was not followed.
    pub heap: Option<Heap>,
    /// What an emulator saw, which is every access of the program, in order: `samples` and `accesses` are executions then, and
    /// shares of the cost are of its messages. `None` where accesses were sampled.
    pub order: Option<OrderTotals>,
    /// The program that the machine's processors are, where they are one (`QEMU TCG`): such ones wait for no line.
    pub software_emulation: Option<String>,
    /// It is unlikely that a finding was missed.
    pub conclusive: bool,
    /// Why it is not; `None` where it is.
    pub doubt: Option<Doubt>,
}

/// How a run was observed, as whoever observed it says.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct Observed {
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Its start, CLOCK_MONOTONIC nanoseconds, where known; not in JSON.
    #[serde(skip)]
    pub started_ns: Option<u64>,
    /// From the first to the last moment of sampling, nanoseconds; in JSON seconds, as `duration_s`.
    #[serde(rename = "duration_s", serialize_with = "named::seconds")]
    pub duration_ns: u64,
    /// Samples per second and CPU that were asked for.
    pub frequency_hz: Option<u64>,
    /// What was watched; one without a pid for "everything".
    pub targets: Vec<Target>,
    /// CPUs sampled.
    pub cpus: u32,
}

impl Observed {
    /// From the first to the last moment of sampling, seconds.
    pub fn duration_s(&self) -> f64 {
        named::as_seconds(self.duration_ns)
    }

    /// From the start to that moment, seconds; `None` where the start is not known, or later.
    pub(in crate::report) fn since_start_s(&self, ns: u64) -> Option<f64> {
        ns.checked_sub(self.started_ns?).map(named::as_seconds)
    }
}

/// Why a finding may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// There were no samples.
    NoSamples,
    /// The machine's processors are a program, which waits for no line.
    SoftwareEmulation,
    /// It could not be read what most samples waited for.
    Unread,
    /// Lines move between CPUs, and which of their bytes threads use was not seen.
    BytesUnknown,
    /// CPUs were not sampled for much of the time.
    Blind,
    /// A line at the threshold would have given too few samples.
    TooFewSamples,
}

/// Watch windows of a run.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Watch {
    /// What they saw, and what was lost in them.
    #[serde(flatten)]
    pub tally: WatchTally,
    /// Words watched at once, at most.
    pub slots: u32,
    /// Where breakpoints were armed.
    #[serde(serialize_with = "named::breadth")]
    pub breadth: Breadth,
    /// What one hit takes, nanoseconds.
    pub hit_cost_ns: u64,
    /// Time that the windows took from the targets, seconds, summed over threads.
    pub spent_s: f64,
    /// The same as a share of the run's duration.
    pub spent_share: f64,
    /// What it was allowed to be.
    pub budget_share: f64,
}

/// A process that was watched.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Target {
    /// Process id; `None` for "everything".
    pub pid: Option<u32>,
    /// Its name or command line.
    pub command: Option<String>,
}
