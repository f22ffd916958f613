//! What is counted, by whom, and how many are predicted.
//!
//! To add an event: its loop in `asked/*.s`, between `event_x` and `event_x_end`, and its entry in `events/table.rs`.

mod table;

pub use table::{EVENTS, MOST, NOT_COUNTED, SHARE_PERCENT};

use crate::decode::RealOperation;
use crate::sys::perf_event::counting::HardwareEvent;

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// The emulated source, and the directory or the caches that its order of accesses is replayed through.
    Emulate,
    /// A watch window: data breakpoints.
    Watch,
    /// The read-then-write pairs of a watch window.
    Pairs,
    /// An event that the kernel itself counts.
    Software,
    /// Probes on user code.
    Uprobes,
    /// Timer samples.
    Timer,
    /// The time stamp counter, and the clocks that [`cohtrace_measure`] measures.
    Clock,
    /// The PMU of a core, which counts and does not sample.
    Pmu,
}

impl Counter {
    /// All.
    pub const ALL: [Counter; 8] = [
        Counter::Emulate,
        Counter::Watch,
        Counter::Pairs,
        Counter::Software,
        Counter::Uprobes,
        Counter::Timer,
        Counter::Clock,
        Counter::Pmu,
    ];

    /// As in `--source`.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Emulate => "emulate",
            Counter::Watch => "watch",
            Counter::Pairs => "pairs",
            Counter::Software => "software",
            Counter::Uprobes => "uprobes",
            Counter::Timer => "timer",
            Counter::Clock => "clock",
            Counter::Pmu => "pmu",
        }
    }
}

/// What of a complete order of accesses is counted: of those that the event's loop makes to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// Executions that read.
    Loads,
    /// Executions that write.
    Stores,
    /// Executions of locked instructions.
    Locked,
    /// Executions that read into a vector register.
    RealLoads,
    /// Loads that find the line dirty in another cache.
    Interventions,
    /// Stores that take the line from another cache.
    Invalidations,
    /// Stores of a Shared copy that ask for ownership, under the paper's protocol.
    Upgrades,
    /// Stores of an Exclusive copy that ask for nothing, where the first reader gets such a copy.
    CleanWrites,
    /// Pages that were not accessed before.
    Pages,
    /// Executions of the instructions between the labels `turns_x`, whether or not they access memory.
    Executions(Executions),
    /// Misses of a first level of 32 KiB and 8 ways, and of a second of 256 KiB and 8 ways.
    Misses(Level),
}

/// Which executions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executions {
    /// All.
    All,
    /// Of branches.
    Branches,
    /// Of instructions with this floating-point operation.
    Reals(RealOperation),
}

/// A level of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The first.
    First,
    /// The second.
    Second,
}

/// An event that can be counted.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// As in `--event`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// From what the count follows.
    pub predicted_from: &'static str,
    /// Who counts it.
    pub counter: Counter,
    /// What of an order of accesses; `None`: of a window, all.
    pub ordered: Option<Ordered>,
    /// What a PMU counts.
    pub hardware: Option<HardwareEvent>,
    /// Which loop of the program does it.
    pub letter: char,
    /// The label of the memory that its accesses are to, with its length in bytes.
    pub memory: (&'static str, u64),
    /// Events of one that is asked for.
    pub each: f64,
    /// The sizes that it can be asked for.
    pub sizes: (u64, u64),
}

/// The event of a name, as its first source counts it.
pub fn named(name: &str) -> Option<&'static Event> {
    EVENTS.iter().find(|event| event.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_counts_an_event_once_and_has_what_it_takes() {
        for event in EVENTS {
            let same = |other: &&Event| (other.name, other.counter) == (event.name, event.counter);
            assert_eq!(EVENTS.iter().filter(same).count(), 1, "{}", event.name);
            let has_order = matches!(event.counter, Counter::Emulate | Counter::Watch);
            assert!(has_order || event.ordered.is_none(), "{}", event.name);
            let is_emulated = event.counter == Counter::Emulate;
            assert!(!is_emulated || event.ordered.is_some(), "{}", event.name);
            let is_pmu = event.counter == Counter::Pmu;
            assert_eq!(is_pmu, event.hardware.is_some(), "{}", event.name);
            assert!(event.sizes.0 <= event.sizes.1 && event.sizes.1 <= MOST);
            assert!(event.each > 0.0);
        }
        assert_eq!(named("loads").map(|event| event.letter), Some('a'));
        assert!(named("nothing").is_none());
    }
}
