//! `meta.json`: everything about a recording that is not a row. Unknown is `null`.
//!
//! These are the stored shapes, filled from the tool's own types at the edge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{schema::SCHEMA_VERSION, tally_record::TallyRecord};
use crate::access::{CostUnit, LineSize};

/// Value of [`Meta::format`]: tells our `meta.json` from any other.
pub(super) const FORMAT: &str = "cohtrace session";

/// The clock of every `time_ns` that this tool takes itself.
const CLOCK: &str = "CLOCK_MONOTONIC";

/// The whole of `meta.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Always `cohtrace session`.
    pub format: String,
    /// Version of the tables and of this file; set by the writer.
    pub schema_version: u32,
    /// Version of cohtrace that recorded.
    pub tool_version: String,
    /// Whether recording ended normally; set by the writer.
    pub complete: bool,
    /// Why recording ended early, if the recorder lived to say so; set by the writer.
    #[serde(default)]
    pub stopped: Option<String>,
    /// Segments on disk; set by the writer.
    pub segments: u32,
    /// Longest time that a segment was to cover, milliseconds: what a killed recorder may miss; set by
    /// the writer.
    pub segment_ms: u64,
    /// Wall clock at the start, nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: Option<u64>,
    /// Clock of all other times: `CLOCK_MONOTONIC`, or that of an imported recording.
    pub clock: String,
    /// Start, nanoseconds of that clock.
    pub start_ns: Option<u64>,
    /// End, nanoseconds of that clock; where the recorder did not say, the newest event on disk.
    pub end_ns: Option<u64>,
    /// Name of the host.
    pub host: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: times of two sessions compare only when these are equal. Null for what
    /// was recorded elsewhere: files here are those of its mappings only by their build-ids.
    pub boot_id: Option<String>,
    /// The machine.
    pub machine: MachineRecord,
    /// Where the accesses come from.
    pub sources: Vec<SourceRecord>,
    /// What was traced.
    pub targets: TargetsRecord,
    /// The command that recorded, by argument; bytes that are no UTF-8 stand as `\xff`.
    pub command_line: Vec<String>,
    /// Line size asked for, bytes; null when the machine's own.
    pub line_size_bytes: Option<u64>,
    /// Samples per second and CPU.
    pub frequency_hz: Option<u64>,
    /// What `cost_ns` of the accesses counts: `sampled_ns`, `latency_cycles`, or `transactions`: messages of the
    /// coherence protocol, which follow from the order of the accesses and are in none of their rows.
    #[serde(default = "sampled_time")]
    pub cost_unit: CostUnit,
    /// Sizes of lines, bytes, for which rows of emulated accesses ask for what all accesses ask for: `repeats` are silent
    /// with each. Recordings that do not say so are of 64 bytes.
    #[serde(default = "smallest_line")]
    pub exact_line_bytes: Vec<u64>,
    /// Whether that holds of lines of 64 bytes wherever they begin, and of lines of 128 bytes at each multiple of 64, so that
    /// the rows tell what the memory would cost elsewhere. Recordings that do not say so do not.
    #[serde(default)]
    pub exact_elsewhere: bool,
    /// Counts of all segments on disk; set by the writer.
    pub tally: TallyRecord,
    /// What a reader of the data must know, as sentences.
    pub caveats: Vec<String>,
    /// How it was measured, as sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The machine that was recorded.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineRecord {
    /// `uname -r`.
    pub kernel_release: Option<String>,
    /// As `/proc/cpuinfo` names it.
    pub cpu_model: Option<String>,
    /// `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// Logical CPUs online at the start.
    pub online_cpus: Option<u32>,
    /// Coherence line, bytes.
    pub line_size_bytes: Option<u64>,
    /// Whether it is a virtual machine.
    pub virtual_machine: Option<bool>,
    /// The program that its processors are, where they are one: `QEMU TCG`.
    pub software_emulation: Option<String>,
}

/// One source of accesses.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRecord {
    /// `timer`, ..
    pub name: String,
    /// Options as set.
    pub options: BTreeMap<String, String>,
    /// What its accesses can prove, by name.
    pub evidence: Vec<String>,
}

/// What was traced.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetsRecord {
    /// Processes given by id.
    pub pids: Vec<u32>,
    /// A command that was started, by argument; bytes that are no UTF-8 stand as `\xff`.
    pub command: Option<Vec<String>>,
    /// Every process.
    pub all: bool,
}

impl Meta {
    /// A recording by this version of which nothing else is known yet; set the public fields.
    pub fn new() -> Meta {
        Meta {
            format: FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            stopped: None,
            segments: 0,
            segment_ms: 0,
            started_unix_ns: None,
            clock: CLOCK.to_owned(),
            start_ns: None,
            end_ns: None,
            host: None,
            boot_id: None,
            machine: MachineRecord::default(),
            sources: Vec::new(),
            targets: TargetsRecord::default(),
            command_line: Vec::new(),
            line_size_bytes: None,
            frequency_hz: None,
            cost_unit: sampled_time(),
            exact_line_bytes: LineSize::ALL.map(LineSize::bytes).to_vec(),
            exact_elsewhere: true,
            tally: TallyRecord::default(),
            caveats: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Whether the order of accesses says what lines of this size cost.
    pub fn answers(&self, line_size: LineSize) -> bool {
        self.cost_unit != CostUnit::Transactions
            || self.exact_line_bytes.contains(&line_size.bytes())
    }

    /// From start to end (or to the newest event, if recording did not end), nanoseconds.
    pub fn duration_ns(&self) -> Option<u64> {
        self.end_ns?.checked_sub(self.start_ns?)
    }
}

fn smallest_line() -> Vec<u64> {
    vec![LineSize::B64.bytes()]
}

/// What costs are in where an older version did not say: there was no other unit then.
fn sampled_time() -> CostUnit {
    CostUnit::SampledTime
}

impl Default for Meta {
    fn default() -> Meta {
        Meta::new()
    }
}
