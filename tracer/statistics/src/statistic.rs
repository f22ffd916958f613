//! What a statistic is, and all that there are.

mod accesses;
mod kernel_share;
mod messages;
mod requests;
mod run_counts;
mod sampled_time;
mod samples;
mod shared_waits;
mod threads;
mod threads_seen;
mod trapped;
mod waits;

use crate::{access::Cpu, event::Tally, event_of::Event};

/// What a value is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted: `samples`, `accesses`, `requests`, ..
    Count(&'static str),
    /// Nanoseconds.
    Nanoseconds,
    /// Percent, from two counts.
    Percent,
}

impl Unit {
    /// Its name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count(things) => things,
            Unit::Nanoseconds => "ns",
            Unit::Percent => "%",
        }
    }
}

/// How the values of slices, or of keys, make that of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// They add up, exactly.
    Add,
    /// A part of a whole: parts add up, wholes add up, and the value is the one over the other.
    Share,
    /// Different threads are counted: one that is in two slices is in both, and once in the whole.
    Different,
    /// Counted for the run and its CPUs only: no slice has a value.
    Run,
}

impl Sums {
    /// In a word or two, for lists and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Sums::Add => "adds-up",
            Sums::Share => "share",
            Sums::Different => "different",
            Sums::Run => "run-only",
        }
    }
}

/// Who must have observed the run for a statistic to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The timer: samples that stand for time.
    Timer,
    /// The timer or a PMU.
    Samples,
    /// An emulator, which sees every access.
    Emulator,
    /// Windows of data breakpoints.
    Windows,
    /// Whatever source there was.
    Any,
}

/// What an event adds to a statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// In the statistic's unit; of shares the part.
    pub amount: u64,
    /// Of shares the whole; else 0.
    pub whole: u64,
    /// Samples that this rests on, from which the interval follows; 0 of what is counted and not sampled.
    pub samples: u64,
}

impl Amount {
    /// So many of something that is counted.
    pub fn count(amount: u64) -> Amount {
        Amount {
            amount,
            ..Amount::default()
        }
    }

    /// Adds; sums stay at the most that there is.
    pub fn add(&mut self, other: Amount) {
        self.amount = self.amount.saturating_add(other.amount);
        self.whole = self.whole.saturating_add(other.whole);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// One statistic. All but `counts` is words for it.
pub trait Statistic: Sync {
    /// What it is asked for by; dots group.
    fn name(&self) -> &'static str;
    /// Unit of its values.
    fn unit(&self) -> Unit;
    /// One sentence.
    fn about(&self) -> &'static str;
    /// Who must have observed the run.
    fn needs(&self) -> Needs;
    /// How values add up.
    fn sums(&self) -> Sums {
        Sums::Add
    }
    /// What an event adds; `None` of one that it has nothing to do with.
    fn counts(&self, event: &Event<'_>) -> Option<Amount>;
    /// Of those that only the run has ([`Sums::Run`]): what the counts of the run say, of a CPU or of all; `None` where
    /// nobody counts it by CPU.
    fn of_run(&self, _: &Tally, _: Option<Cpu>) -> Option<u64> {
        None
    }
    /// Whether its events are on a CPU. Those that are not count for all CPUs together only.
    fn is_on_cpus(&self) -> bool {
        true
    }
    /// Whether it looks at what the directory protocol makes of each access.
    fn asks_the_directory(&self) -> bool {
        false
    }
    /// Whether it looks at [`Event::Wait`].
    fn asks_who_shares(&self) -> bool {
        false
    }
}

/// All, in the order of lists. A new one is a file, and its line here.
pub const ALL: &[&dyn Statistic] = &[
    &samples::Samples,
    &sampled_time::SampledTime,
    &kernel_share::KernelShare,
    &waits::Waits::AT_INSTRUCTION,
    &waits::Waits::AT_BARRIER,
    &waits::Waits::SPINNING,
    &shared_waits::SharedWaits::SHARED,
    &shared_waits::SharedWaits::PRIVATE,
    &accesses::Accesses::SAMPLED_LOADS,
    &accesses::Accesses::SAMPLED_STORES,
    &accesses::Accesses::SAMPLED_READ_WRITES,
    &accesses::Accesses::SAMPLED_LOCKED,
    &accesses::Accesses::EXECUTED_LOADS,
    &accesses::Accesses::EXECUTED_STORES,
    &accesses::Accesses::EXECUTED_READ_WRITES,
    &accesses::Accesses::EXECUTED_LOCKED,
    &requests::Requests::READ,
    &requests::Requests::READ_OWNING,
    &requests::Requests::UPGRADES,
    &requests::Requests::INTERVENTIONS,
    &requests::Requests::INVALIDATIONS,
    &requests::Requests::HAND_OFFS,
    &messages::Messages,
    &trapped::Trapped::ALL,
    &trapped::Trapped::STORES,
    &threads_seen::ThreadsSeen,
    &threads::Threads::STARTED,
    &threads::Threads::ENDED,
    &threads::Threads::PROCESSES,
    &run_counts::RunCounts::TAKEN,
    &run_counts::RunCounts::UNRESOLVED,
    &run_counts::RunCounts::LOST,
    &run_counts::RunCounts::BLIND,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_there_once_and_every_statistic_says_what_it_is() {
        let names: BTreeSet<&str> = ALL.iter().map(|statistic| statistic.name()).collect();
        assert_eq!(names.len(), ALL.len());
        for statistic in ALL {
            let (name, about) = (statistic.name(), statistic.about());
            let plain = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
            assert!(name.chars().all(plain), "{name}");
            assert!(about.len() > 20 && about.ends_with('.'), "{name}: {about}");
        }
    }
}
