//! What the run's own counts say: they have no times, so no slice has them.

use super::{Amount, Needs, Statistic, Sums, Unit};
use crate::{access::Cpu, event::Tally, event_of::Event};

/// One of the run's counts.
#[derive(Debug)]
pub(super) struct RunCounts {
    name: &'static str,
    unit: Unit,
    about: &'static str,
    needs: Needs,
    of: fn(&Tally, Option<Cpu>) -> Option<u64>,
}

impl RunCounts {
    pub(super) const TAKEN: RunCounts = RunCounts {
        name: "run.samples",
        unit: Unit::Count("samples"),
        about: "Samples that arrived, with an access or without.",
        needs: Needs::Samples,
        of: |tally, cpu| cpu.is_none().then_some(tally.samples),
    };
    pub(super) const UNRESOLVED: RunCounts = RunCounts {
        name: "run.unresolved",
        unit: Unit::Count("samples"),
        about: "Samples that arrived and in which no access was found.",
        needs: Needs::Samples,
        of: |tally, cpu| {
            let all = tally.unresolved.values();
            cpu.is_none()
                .then(|| all.fold(0, |sum: u64, n| sum.saturating_add(*n)))
        },
    };
    pub(super) const LOST: RunCounts = RunCounts {
        name: "run.lost",
        unit: Unit::Count("samples"),
        about: "Samples, or executions in an emulator, that found no room and are in nothing else here.",
        needs: Needs::Any,
        of: |tally, cpu| {
            Some(match cpu {
                Some(cpu) => tally.lost.get(&cpu).copied().unwrap_or(0),
                None => tally.lost_total(),
            })
        },
    };
    pub(super) const BLIND: RunCounts = RunCounts {
        name: "run.blind",
        unit: Unit::Nanoseconds,
        about: "Time in which a CPU was online and not sampled.",
        needs: Needs::Samples,
        of: |tally, cpu| {
            let all = tally.blind_ns.values();
            Some(match cpu {
                Some(cpu) => tally.blind_ns.get(&cpu).copied().unwrap_or(0),
                None => all.fold(0, |sum: u64, n| sum.saturating_add(*n)),
            })
        },
    };
}

impl Statistic for RunCounts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn sums(&self) -> Sums {
        Sums::Run
    }

    fn counts(&self, _: &Event<'_>) -> Option<Amount> {
        None
    }

    fn of_run(&self, tally: &Tally, cpu: Option<Cpu>) -> Option<u64> {
        (self.of)(tally, cpu)
    }
}
