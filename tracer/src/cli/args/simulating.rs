//! Arguments of `simulate`.

use std::path::PathBuf;

use clap::Args;

use super::{
    AfterArgs, Color, HintFilter, HintPolicy, LimitArgs, ProtocolArgs, YourCodeArgs,
    values::{cache_bytes, line_size, log_buffer},
};
use crate::{
    access::LineSize,
    coherence::{CacheGeometry, LogBuffer, SystemModel},
};

/// `simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Session directories of `record --source emulate`; a row in each table for each.
    #[arg(value_name = "SESSION.coh", required = true)]
    pub sessions: Vec<PathBuf>,
    /// Hint the loads of this file.
    #[arg(long, value_name = "HINTS.json", conflicts_with_all = ["train", "filter"])]
    pub hints: Option<PathBuf>,
    /// Hint the loads that this session shows, which then has a row of its own. Repeat for several runs of the program, that
    /// decide together.
    #[arg(long, value_name = "TRAIN.coh")]
    pub train: Vec<PathBuf>,
    /// How to decide which loads to hint.
    #[arg(long, value_enum, default_value_t = HintFilter::Ours, default_value_if("model", "swift2005", "swift"))]
    pub filter: HintFilter,
    /// Of several training sessions, what a hint must do.
    #[arg(long, value_enum, default_value_t = HintPolicy::Each)]
    pub policy: HintPolicy,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub your_code: YourCodeArgs,
    #[command(flatten)]
    pub after: AfterArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Instructions and lines to list, those with most messages first.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Print JSON (schema 1).
    #[arg(long)]
    pub json: bool,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// No progress on the terminal.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The machine to simulate.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// Bytes that travel together.
    #[arg(long, value_name = "BYTES", default_value_t = 64, default_value_if("model", "swift2005", "128"), value_parser = line_size)]
    pub line_size: u64,
    /// Size of each processor's second-level cache.
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = cache_bytes)]
    pub l2: u64,
    /// Ways of the second level.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub l2_ways: u32,
    /// Size of each processor's third-level cache, which has all that the second has.
    #[arg(long, value_name = "SIZE", default_value = "3M", value_parser = cache_bytes)]
    pub l3: u64,
    /// Ways of the third level.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub l3_ways: u32,
    #[command(flatten)]
    pub protocol: ProtocolArgs,
    /// Requests that the paper's filter sees: the last KEPT of each EVERY, as of a monitor's buffer that is read now and
    /// then [default: all].
    #[arg(long, value_name = "KEPT/EVERY", value_parser = log_buffer)]
    pub log_buffer: Option<LogBuffer>,
}

impl MachineArgs {
    /// The machine that was asked for.
    pub(crate) fn model(&self) -> SystemModel {
        let cache = |bytes, ways| CacheGeometry { bytes, ways };
        SystemModel {
            line: LineSize::new(self.line_size).unwrap_or(LineSize::B64),
            l2: cache(self.l2, self.l2_ways),
            l3: cache(self.l3, self.l3_ways),
            protocol: self.protocol.protocol(),
            log: self.log_buffer.unwrap_or_default(),
        }
    }
}
