//! The report as plain data: JSON schema 1. The text form prints from the same values.
//!
//! Absent is `None` (`null`), never 0 or "". Values of enums are named, and addresses are hex strings, in JSON only.

mod gain;
mod lines;
mod pairs;
mod run;

use std::fmt;

use serde::Serialize;

use super::named;
use crate::{
    access::{Basis, LineKey, Op},
    distribution::Quantity,
    finding::{Confidence, Verdict},
    hint::AdviceKind,
    names::ObjectKind,
};

pub use crate::{
    analysis::{Kinds, Left, OrderTotals},
    finding::Pieces,
    hint::WordAdvice,
    names::{CodeFrame, Coverage},
};
pub use gain::{Gain, ThreadGain, WordRate};
pub use lines::{Lines, Share};
pub use pairs::{LoadHint, Pair, PairSide, Taken};
pub use run::{Doubt, Observed, Run, Target, Watch};

pub use super::{
    allocation::{Allocation, Heap},
    caveat::{Caveat, Weight},
    latent::{
        LatentBasis, LatentCost, LatentLine, LatentSharing, MovingBlock, OneMoreThread, OneMoves,
    },
    named::{FindingId, Hex},
};

/// Version of this schema.
pub const SCHEMA: u32 = 1;

/// The whole report.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// What was observed.
    pub run: Run,
    /// Ranked by cost.
    pub findings: Vec<Finding>,
    /// Lines that several threads share but below a threshold, after those that move between CPUs but not for
    /// bytes that are known ([`Finding::moves`]); the same shape, with the reason.
    pub insignificant: Vec<Finding>,
    /// Read-then-write pairs, those with a hint first; empty where no line was watched.
    pub pairs: Vec<Pair>,
    /// How fast words of threads grow, fastest first: of those whose gain is told, and of others that grow steadily. Empty
    /// where none was read (`--hold`).
    pub rates: Vec<WordRate>,
    /// What threads would fight for if memory began elsewhere, or if lines were longer; no findings. `None` where nobody
    /// asked for it (`--latent`).
    pub latent: Option<Vec<LatentSharing>>,
    /// What could not be seen or named, in sentences.
    pub caveats: Vec<Caveat>,
}

/// Name and version of the tool.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Tool {
    /// `cohtrace`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One line that CPUs fight over.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Finding {
    /// Its rank.
    pub id: FindingId,
    /// How it is shared; among the insignificant also `None` (`undecided` in JSON), where no conflict was seen or its
    /// kind could not be told.
    #[serde(serialize_with = "named::kind")]
    pub kind: Option<Verdict>,
    /// How sure that is.
    #[serde(serialize_with = "named::confidence")]
    pub confidence: Confidence,
    /// Seconds from the start of the run to the window that confirmed the verdict.
    pub confirmed_after_s: Option<f64>,
    /// Watch windows on the line.
    pub windows: u64,
    /// Why it is not a finding; `None` for findings.
    pub insignificant_because: Option<String>,
    /// Not a finding, because the samples do not tell who writes which bytes; but it was seen to move between CPUs, at a
    /// cost above the threshold.
    pub moves: bool,
    /// The line itself.
    pub line: Line,
    /// The lines that the finding is about, where they are several: all of `cost`, `handoffs` and `accesses` is of them
    /// together, and `line`, `object` and `groups` show the costliest. `None` of one line.
    pub lines: Option<Lines>,
    /// Whose memory.
    pub object: Object,
    /// The objects of the heap on the line whose allocations were seen, in address order.
    pub allocations: Vec<Allocation>,
    /// What it costs.
    pub cost: Cost,
    /// Ownership moves; `None` where the source cannot count them.
    pub handoffs: Option<Handoffs>,
    /// What its hand-offs are for; `None` where neither samples nor a complete order tell.
    pub kinds: Option<Kinds>,
    /// Where its sampled accesses were served; `None` where no PMU sampled any.
    pub coherence: Option<Coherence>,
    /// Mean latency of its sampled loads, cycles; `None` where none was measured.
    pub load_latency_cycles: Option<f64>,
    /// How the quantities are spread that were measured of it.
    pub distributions: Vec<Distribution>,
    /// Who touches which bytes, costliest first.
    pub accesses: Vec<AccessRow>,
    /// The touched bytes, grouped by the threads that use them, by first byte. Bytes of different
    /// groups should not be on one line; bytes of one group may.
    pub groups: Vec<Group>,
    /// What to change.
    pub advice: Advice,
    /// What that gains; `None` where nobody waited, or what was waited for it is no time.
    pub gain: Option<Gain>,
    /// Why this verdict, in sentences with their numbers.
    pub facts: Vec<String>,
}

/// The quantiles of a measured quantity, within 7 %.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Distribution {
    /// Which; in JSON its name, and as `unit` what the quantiles are in.
    #[serde(flatten, serialize_with = "named::quantity")]
    pub quantity: Quantity,
    /// Values measured.
    pub count: u64,
    /// Half of them are not above.
    pub p50: u64,
    /// 90 % of them are not above.
    pub p90: u64,
    /// 99 % of them are not above.
    pub p99: u64,
}

/// A cache line.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Line {
    /// Key; equal keys are the same memory.
    pub key: LineKey,
    /// A virtual address of it.
    pub address: Option<Hex>,
    /// 64 or 128.
    pub bytes: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => address.fmt(f),
            None => self.key.fmt(f),
        }
    }
}

/// The object on the line with the most cost.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct Object {
    /// What kind of memory.
    #[serde(serialize_with = "named::object")]
    pub kind: ObjectKind,
    /// Variable.
    pub name: Option<String>,
    /// How the source comes to it from a variable, for memory without a name: `recs[3]`, `*current`.
    pub called: Option<String>,
    /// Of a thread-local variable: whose it is, in words: `worker 4242`.
    pub thread: Option<String>,
    /// Type; `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Declared in.
    pub file: Option<String>,
    /// Declared at.
    pub line: Option<u32>,
    /// Offset of the line's first touched byte in the object.
    pub offset_in_object: Option<u64>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Where it was allocated, for an object of the heap whose allocation was seen.
    pub allocation: Option<Allocation>,
}

impl Object {
    /// What stands before a field in sentences: the variable, or how the source comes to memory without a name, or its
    /// type. The name of an allocation tells only where it is from.
    pub(super) fn spoken(&self) -> Option<&str> {
        let (name, type_name) = (self.name.as_deref(), self.type_name.as_deref());
        let reached = self.called.as_deref().or(type_name);
        if self.allocation.is_some() {
            reached.or(name)
        } else {
            name.or(reached)
        }
    }
}

/// What a line costs.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Cost {
    /// Share of the targets' sampled time stalled on the line while it was shared, 0..1.
    pub share: f64,
    /// Share of the targets' sampled time stalled on the line at all, 0..1.
    pub stalled_share: f64,
    /// Samples stalled on the line; of an emulated program, requests for it since a second thread came.
    pub samples: u64,
}

/// Sampled accesses, by how they met other CPUs' caches.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct Coherence {
    /// All that a PMU sampled.
    pub sampled: u64,
    /// Of those, loads that found the line modified in another cache of the own node.
    pub local_hitm: u64,
    /// Of those, loads that found the line modified in a cache of another node.
    pub remote_hitm: u64,
    /// Of those, loads that another CPU's cache served, modified or not: the PMU does not say.
    pub peer: u64,
    /// Of those, without a data source that tells where they were served.
    pub not_available: u64,
}

/// Ownership moves.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct Handoffs {
    /// Seen in windows, or in a whole emulated run; where there was none, loads that a PMU saw served by another CPU's
    /// cache.
    pub observed: u64,
    /// Of those, hand-offs of bytes that others had changed and the taker used; `None` where no window saw it.
    pub truly: Option<u64>,
    /// Of those, hand-offs of nothing that the taker used; `None` where no window saw it.
    pub falsely: Option<u64>,
    /// Of the ones in `truly`, hand-offs that also took along bytes which the taker used and nobody had changed: its copy
    /// of them left for nothing. `None` where no window saw it.
    pub dragged: Option<u64>,
    /// Per second of the time in which the threads ran freely; `None` where traps fill most of the windows, or an
    /// emulator ran them.
    pub per_s: Option<f64>,
    /// Per second of the windows' time, traps included: there are at least as many at full speed.
    pub at_least_per_s: Option<f64>,
}

/// One instruction's accesses to one range of the line.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct AccessRow {
    /// Bytes from the line's start.
    pub offset: u8,
    /// Length of the access in bytes.
    pub size: u16,
    /// Whether the size is known; else it is the one byte that is certain.
    pub size_known: bool,
    /// Where they lie somewhere in so many bytes from `offset` on, because the access overwrote its own address:
    /// nothing is concluded from which of them it may have touched.
    pub within: Option<u8>,
    /// `.hits`, `[3]`, or the variable's name where the line holds several.
    pub field: Option<String>,
    /// Its direction; `null` in JSON where the source does not say.
    #[serde(serialize_with = "named::op")]
    pub op: Op,
    /// Times seen in samples; of an emulated program, executions.
    pub count: u64,
    /// Times trapped in watch windows.
    pub trapped: u64,
    /// Share of the targets' sampled time, 0..1.
    pub cost_share: f64,
    /// The part of it in which the CPU stood at a full barrier behind the store.
    pub at_barrier_share: f64,
    /// The part of it in which the thread went round in a loop that waits for it to change.
    pub spinning_share: f64,
    /// How samples know it, by the strongest; trapped when only windows do.
    pub basis: Basis,
    /// Where its sampled accesses were served; `None` where no PMU sampled any.
    pub coherence: Option<Coherence>,
    /// Their mean latency, cycles; `None` where none was measured.
    pub latency_cycles: Option<f64>,
    /// Threads that accessed it.
    pub threads: Vec<Thread>,
    /// Where in the program.
    pub code: Code,
}

/// Bytes of the line that the same threads use.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Group {
    /// The bytes, ascending.
    pub bytes: Vec<ByteRange>,
    /// Of those, bytes that its writers store to; they only read the others.
    pub stored: Vec<ByteRange>,
    /// What they are, as the rows name it.
    pub fields: Vec<String>,
    /// Ids of the threads that store there.
    pub writers: Vec<u32>,
    /// Ids of the threads that only load there.
    pub readers: Vec<u32>,
}

/// A run of bytes.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq)]
pub struct ByteRange {
    /// Bytes from the line's start.
    pub offset: u8,
    /// Length in bytes.
    pub size: u16,
}

/// A thread that touched the line.
#[derive(Debug, Clone, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name.
    pub comm: Option<String>,
    /// CPUs it ran on while touching the line.
    pub cpus: Vec<u32>,
}

/// An instruction.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Code {
    /// File.
    pub module: Option<String>,
    /// Hex.
    pub build_id: Option<String>,
    /// Address in the module.
    pub ip: Hex,
    /// Function that holds the instruction.
    pub symbol: Option<String>,
    /// Bytes from that function's start, of the kernel's code without lines.
    pub symbol_offset: Option<Hex>,
    /// Inlined functions, innermost first.
    pub inlined: Vec<String>,
    /// Those functions with where in them the instruction is, then the function that holds it; empty without debug info.
    /// `file` and `line` are of the innermost that is the program's own.
    pub inline_chain: Vec<CodeFrame>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Source column.
    pub column: Option<u32>,
}

/// What to change.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct Advice {
    /// The kind of change.
    pub kind: AdviceKind,
    /// In sentences; lines that start with four spaces are code. `None` where nothing needs to change.
    pub text: Option<String>,
    /// Fields to move apart (empty for true sharing).
    pub fields: Vec<String>,
    /// Bytes the change costs; `None` where the type is unknown.
    pub bytes: Option<u64>,
    /// What the words that threads truly share are for, and what to do about each.
    pub words: Vec<WordAdvice>,
}
