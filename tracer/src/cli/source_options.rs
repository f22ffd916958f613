//! Options of what samples, and what a session says of them.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::{
    args::{TargetArgs, WatchArgs},
    heap_options::HeapArgs,
};
use crate::{
    access::CostUnit,
    source::{
        MemoryOptions,
        emulate::{EmulationError, Emulator},
    },
};

/// What else was asked for, of which some does not go with every source.
pub(super) struct Asked<'a> {
    /// Which processes.
    pub target: &'a TargetArgs,
    /// A sampling frequency was given.
    pub frequency: bool,
    /// What to watch.
    pub watch: &'a WatchArgs,
    /// What of the heap.
    pub heap: &'a HeapArgs,
}

/// What samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SourceName {
    /// The first that can run, in the order pebs, ibs, timer.
    Auto,
    /// Intel's PMU: loads and stores with address, latency and data source.
    Pebs,
    /// AMD's PMU: sampled instructions with address, latency and data source.
    Ibs,
    /// A timer and the code around each sample. Needs no PMU.
    Timer,
    /// Runs the COMMAND in the emulator QEMU, and sees every access of its threads, in order. Needs no rights; the
    /// program takes 25 to 450 times the CPU time, its children too, and what they become (`execve`).
    Emulate,
}

/// Which source, and which accesses a PMU leaves out.
#[derive(Debug, Clone, Args)]
pub(super) struct SourceArgs {
    /// What samples accesses; `cohtrace doctor` says which PMU there is.
    #[arg(long, value_enum, default_value_t = SourceName::Auto)]
    pub source: SourceName,
    /// PMUs: sample only loads of at least this many cycles [Intel's default: 30; AMD's: all, else 128 to 2048].
    #[arg(long, value_name = "CYCLES")]
    pub ldlat: Option<u16>,
    /// AMD from Zen 4 on: sample only what misses the last-level cache. Hides sharing within one.
    #[arg(long)]
    pub l3_misses_only: bool,
    /// The emulator qemu-x86_64, for `--source emulate` [default: COHTRACE_QEMU, else the first in PATH].
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
}

impl SourceArgs {
    /// As if nothing was given.
    pub(super) fn standard() -> SourceArgs {
        SourceArgs {
            source: SourceName::Auto,
            ldlat: None,
            l3_misses_only: false,
            qemu: None,
        }
    }

    /// The emulator with the command in it, where that is what was asked for. Refuses what has no meaning then.
    pub(super) fn emulator(&self, asked: &Asked<'_>) -> Result<Option<Arc<Emulator>>> {
        if self.source != SourceName::Emulate {
            if self.qemu.is_some() {
                bail!("--qemu names the emulator of `--source emulate`, which was not asked for");
            }
            return Ok(None);
        }
        if asked.target.command.is_empty() {
            return Err(EmulationError::NeedsCommand.into());
        }
        let senseless = [
            (
                asked.frequency,
                "-F, --frequency",
                "no access is sampled, all are seen",
            ),
            (self.ldlat.is_some(), "--ldlat", "there are no latencies"),
            (
                self.l3_misses_only,
                "--l3-misses-only",
                "there are no caches",
            ),
            (
                !asked.watch.watch.is_empty(),
                "--watch",
                "every access is seen, of all words",
            ),
            (
                asked.heap.heap,
                "--heap",
                "allocations of emulated programs are not followed",
            ),
        ];
        for (given, option, why) in senseless {
            if given {
                bail!("{option} does not go with --source emulate: {why}");
            }
        }
        let emulator = Emulator::prepare(&asked.target.command, self.qemu.clone())?;
        Ok(Some(Arc::new(emulator)))
    }

    /// The source's name; `None`: whichever is best.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self.source {
            SourceName::Auto => None,
            SourceName::Pebs => Some("pebs"),
            SourceName::Ibs => Some("ibs"),
            SourceName::Timer => Some("timer"),
            SourceName::Emulate => Some("emulate"),
        }
    }

    /// As sources take them.
    pub(super) fn memory(&self) -> MemoryOptions {
        MemoryOptions {
            ldlat: self.ldlat,
            l3_misses_only: self.l3_misses_only,
        }
    }

    /// What a session says of them; nothing where no PMU was at work.
    pub(super) fn record(&self, unit: CostUnit) -> Vec<(String, String)> {
        if unit != CostUnit::LatencyCycles {
            return Vec::new();
        }
        let ldlat = self.ldlat.map(|cycles| cycles.to_string());
        let ldlat = ldlat.unwrap_or_else(|| "default".to_owned());
        vec![
            ("ldlat".to_owned(), ldlat),
            ("l3_misses_only".to_owned(), self.l3_misses_only.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SOURCES, memory::plan::DEFAULT_LDLAT};

    #[test]
    fn every_source_can_be_asked_for_by_its_name() {
        let names: Vec<&str> = SourceName::value_variants()
            .iter()
            .filter_map(|source| {
                let args = SourceArgs {
                    source: *source,
                    ..SourceArgs::standard()
                };
                args.name()
            })
            .collect();
        let known: Vec<&str> = SOURCES.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, known);
        assert_eq!(SourceArgs::standard().name(), None);
    }

    #[test]
    fn the_documented_threshold_is_the_one_taken() {
        assert_eq!(DEFAULT_LDLAT, 30);
    }
}
