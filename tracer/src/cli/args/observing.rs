//! Options of what observes programs.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgGroup, Args};

use super::{
    AnalysisArgs, OutputArgs, PairArgs,
    values::{held, memory_bytes, overhead, ring_kib, seconds},
};
use crate::cli::{heap_options::HeapArgs, source_options::SourceArgs};

/// Samples per second and CPU unless asked otherwise.
pub(super) const DEFAULT_FREQUENCY_HZ: u64 = 1000;
/// Sample ring of each CPU unless asked otherwise: 11,000 samples.
pub(crate) const DEFAULT_RING_KIB: usize = 2048;
/// Share of the targets' time for watch windows unless asked otherwise, percent.
pub(crate) const DEFAULT_OVERHEAD_PERCENT: f64 = 2.0;

/// Breakpoint registers of an x86-64 CPU.
const MOST_SLOTS: u8 = 4;

/// Which processes.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "all", "command"])))]
pub(crate) struct TargetArgs {
    /// Processes to watch, with their children.
    #[arg(short, long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Watch every process.
    #[arg(short, long)]
    pub all: bool,
    /// Command to start and watch, after `--`. Watching ends with it, at the latest. Then all that it started ends, also
    /// daemons that detached themselves: by SIGTERM, and after 2 s by SIGKILL.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Leave a started COMMAND running after --duration, and all that it started. (Where this tool itself is killed, it
    /// ends nothing either.)
    #[arg(long, requires = "command")]
    pub leave_running: bool,
}

/// How to sample.
#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Samples per second on each CPU [default: 1000].
    #[arg(short = 'F', long = "frequency", value_name = "HZ", value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub asked_frequency: Option<u64>,
    /// Size of each CPU's sample ring, a power of two; larger rides out longer stalls of this tool.
    #[arg(long, value_name = "KIB", default_value_t = DEFAULT_RING_KIB, value_parser = ring_kib)]
    pub ring_kib: usize,
    /// Memory for what names and code are read from: symbols, debug info, decompressed sections, tables of just-in-time
    /// compilers, decoded instructions, of all processes together. What was longest unused goes first; the report says when
    /// something was left out. [default: a twentieth of the machine's memory, at least 256M]
    #[arg(long, value_name = "SIZE", value_parser = memory_bytes)]
    pub memory: Option<u64>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

impl SamplingArgs {
    /// Samples per second on each CPU.
    pub(crate) fn frequency(&self) -> u64 {
        self.asked_frequency.unwrap_or(DEFAULT_FREQUENCY_HZ)
    }
}

/// How to confirm by watch windows.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Sample only: no data breakpoints, so no confirmed verdicts, no pairs.
    #[arg(long)]
    pub no_watch: bool,
    /// Share of the targets' time, in percent, that watch windows may take.
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_OVERHEAD_PERCENT, value_parser = overhead)]
    pub overhead: f64,
    /// Breakpoint registers that windows may take, of the four that x86-64 has. A debugger of a target is left two anyway.
    #[arg(long, value_name = "N", default_value_t = MOST_SLOTS, value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_SLOTS)),
        conflicts_with = "no_watch")]
    pub slots: u8,
    /// Watch this memory instead of what samples suspect: an address with 1, 2, 4 or 8 bytes (0x7f3a40,8),
    /// or a variable and what is in it (counters, table.slots[1].served). Repeat for more.
    #[arg(
        long,
        value_name = "ADDRESS[,LEN]|VARIABLE[.FIELD]",
        conflicts_with = "no_watch"
    )]
    pub watch: Vec<String>,
}

/// How to find out what a change would gain.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// See what ending false sharing would gain: stop the other threads of a line for 2 ms, and read how much faster the own
    /// word of a thread grows meanwhile; ten times for each thread, for at most this share of the time, in percent. Threads
    /// that wait in system calls are not touched, and all run on whatever happens to this tool.
    #[arg(long, value_name = "PERCENT", value_parser = held)]
    pub hold: Option<f64>,
}

/// What all that observes takes.
#[derive(Debug, Args)]
pub(crate) struct ObservingArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub sampling: SamplingArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
    #[command(flatten)]
    pub hold: HoldArgs,
    #[command(flatten)]
    pub heap: HeapArgs,
}

impl ObservingArgs {
    /// Of that target, as if nothing else was given.
    pub(crate) fn standard(target: TargetArgs) -> ObservingArgs {
        ObservingArgs {
            target,
            sampling: SamplingArgs {
                duration: None,
                asked_frequency: None,
                ring_kib: DEFAULT_RING_KIB,
                memory: None,
                source: SourceArgs::standard(),
                quiet: false,
            },
            watch: WatchArgs {
                no_watch: false,
                overhead: DEFAULT_OVERHEAD_PERCENT,
                slots: MOST_SLOTS,
                watch: Vec::new(),
            },
            hold: HoldArgs { hold: None },
            heap: HeapArgs::standard(),
        }
    }
}

/// `attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub observing: ObservingArgs,
    /// Keep everything in a session as well, for later reports.
    #[arg(long, value_name = "NAME.coh")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub analysis: AnalysisArgs,
    #[command(flatten)]
    pub pairs: PairArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub observing: ObservingArgs,
    /// Session directory to write.
    #[arg(short, long, value_name = "NAME.coh")]
    pub output: PathBuf,
    /// Replace an existing session.
    #[arg(long)]
    pub force: bool,
}
