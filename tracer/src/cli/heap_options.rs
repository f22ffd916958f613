//! Options of following the heap, and what a session says of it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use clap::Args;

use super::args::TargetArgs;
use crate::{
    report::HeapFacts,
    session::{Meta, SourceRecord},
    source::heap::{self, HeapOptions, HeapTracker},
};

/// Share of the targets' time for probes on allocators unless asked otherwise, percent.
pub(super) const DEFAULT_OVERHEAD_PERCENT: f64 = 5.0;

/// Whether and how to follow the heap.
#[derive(Debug, Clone, Args)]
pub(super) struct HeapArgs {
    /// Name heap memory by where it was allocated: source line, size, call stack. Puts probes on malloc, free,
    /// operator new, mmap, munmap and their kin in glibc, musl, jemalloc, tcmalloc, mimalloc and static programs; each
    /// call then takes a trap, some microseconds. What is allocated before the tool starts has no name: start the program
    /// with it (`-- COMMAND`). Not with --all, where every process of the machine would take the traps.
    #[arg(long, conflicts_with = "all")]
    pub heap: bool,
    /// Follow only allocations and mappings of at least this many bytes. Falsely shared ones are often small.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1,
        requires = "heap",
        value_parser = clap::value_parser!(u64).range(1..=1 << 40)
    )]
    pub heap_min: u64,
    /// Share of the time, in percent, that the probes may take; beyond, they come out for a while, and the report
    /// says for how long.
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_OVERHEAD_PERCENT, requires = "heap", value_parser = super::args::heap_overhead)]
    pub heap_overhead: f64,
}

impl HeapArgs {
    /// As if nothing was given.
    pub(super) fn standard() -> HeapArgs {
        HeapArgs {
            heap: false,
            heap_min: 1,
            heap_overhead: DEFAULT_OVERHEAD_PERCENT,
        }
    }

    /// As the source takes them; `None` where the heap is not to be followed.
    pub(super) fn options(&self, target: &TargetArgs) -> Option<HeapOptions> {
        self.heap.then(|| HeapOptions {
            least_bytes: self.heap_min,
            share: self.heap_overhead / 100.0,
            files: target.command.first().map_or_else(Vec::new, |program| {
                let preloaded = std::env::var("LD_PRELOAD").unwrap_or_default();
                let preloaded = preloaded.split([':', ' ']).map(PathBuf::from);
                let preloaded = preloaded.filter(|path| path.is_absolute());
                program_path(program).into_iter().chain(preloaded).collect()
            }),
        })
    }

    /// What the report says of it.
    pub(super) fn facts(&self, tracker: &HeapTracker) -> HeapFacts {
        let costs = tracker.costs();
        HeapFacts {
            budget_share: tracker.share(),
            least_bytes: self.heap_min,
            allocation_ns: costs.allocation_ns,
            free_ns: costs.free_ns,
        }
    }
}

/// The file that a command is, as `execvp` looks for it.
fn program_path(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = program.as_ref();
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| Path::is_file(candidate))
}

const BUDGET: &str = "overhead_percent";
const LEAST: &str = "least_bytes";
const ALLOCATION_COST: &str = "allocation_cost_ns";
const FREE_COST: &str = "free_cost_ns";

/// The heap's entry in `meta.json`.
pub(super) fn record(facts: &HeapFacts) -> SourceRecord {
    let options: BTreeMap<String, String> = [
        (BUDGET, (facts.budget_share * 100.0).to_string()),
        (LEAST, facts.least_bytes.to_string()),
        (ALLOCATION_COST, facts.allocation_ns.to_string()),
        (FREE_COST, facts.free_ns.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    SourceRecord {
        name: heap::NAME.to_owned(),
        options,
        evidence: heap::evidence()
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

/// What that entry says; `None` where the heap was not followed.
pub(super) fn facts(meta: &Meta) -> Option<HeapFacts> {
    let source = (meta.sources.iter()).find(|source| source.name == heap::NAME)?;
    let option = |name: &str| source.options.get(name);
    Some(HeapFacts {
        budget_share: option(BUDGET)?.parse::<f64>().ok()? / 100.0,
        least_bytes: option(LEAST)?.parse().ok()?,
        allocation_ns: option(ALLOCATION_COST)?.parse().ok()?,
        free_ns: option(FREE_COST)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_says_of_the_heap_is_what_it_was() {
        let facts = HeapFacts {
            budget_share: 0.5,
            least_bytes: 16,
            allocation_ns: 2400,
            free_ns: 700,
        };
        let mut meta = Meta::new();
        assert_eq!(super::facts(&meta), None);
        meta.sources.push(record(&facts));
        assert_eq!(super::facts(&meta), Some(facts));
    }

    #[test]
    fn a_command_is_found_as_the_shell_finds_it() {
        assert_eq!(program_path("./a"), Some(PathBuf::from("./a")));
        let found = program_path("sh").expect("every system has one");
        assert!(found.is_absolute() && found.is_file());
        assert_eq!(program_path("no-such-program-anywhere"), None);
    }
}
