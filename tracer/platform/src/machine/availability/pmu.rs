//! Whether the PMU's sources can run: `pebs` where the processor is Intel's, `ibs` where it is AMD's. They need what
//! the timer needs, and a unit whose events open.

use super::{LiveProbe, Machine, Obstacle, SourceStatus, Status};
use crate::machine::{Hardware, MemoryUnitKind, Refusal};

/// The source for this processor's maker; of neither maker, none.
pub(super) fn status(timer: &Status, machine: &Machine, live: &LiveProbe) -> Option<SourceStatus> {
    let (name, kind) = if machine.processor.is_intel() {
        ("pebs", MemoryUnitKind::IntelPebs)
    } else if machine.processor.is_amd() {
        ("ibs", MemoryUnitKind::AmdIbs)
    } else {
        return None;
    };
    Some(SourceStatus {
        name,
        about: "the PMU's own samples of memory accesses; preferred to the timer where it is there",
        evidence: "address, load or store, latency, what served it; the instruction itself",
        status: unit_status(timer, kind, &Hardware::of(machine, live)),
        limits: Vec::new(),
    })
}

fn unit_status(timer: &Status, kind: MemoryUnitKind, hardware: &Hardware) -> Status {
    let one = |reason: String, fix: &[&str]| {
        Status::Unavailable(vec![Obstacle {
            reason,
            fix: fix.iter().map(|line| (*line).to_owned()).collect(),
        }])
    };
    match timer {
        Status::Available => {}
        Status::Unavailable(_) => {
            return one(
                "it needs what the timer source needs, which cannot run".into(),
                &[],
            );
        }
        Status::NotBuilt { reason } => {
            return Status::NotBuilt {
                reason: reason.clone(),
            };
        }
    }
    let mut units = (hardware.memory_units.iter()).filter(|unit| unit.kind == kind);
    let mut attempts = units.clone().flat_map(|unit| &unit.attempts).peekable();
    if units.next().is_none() {
        let why = hardware.no_memory_units.as_deref();
        let why = why.unwrap_or("those that the kernel lists sample no accesses with addresses");
        return one(format!("no PMU for memory accesses: {why}"), &[]);
    }
    let opened = attempts.peek().is_none() || attempts.clone().any(|a| a.outcome.is_ok());
    if opened {
        return Status::Available;
    }
    let refused = |errno| {
        attempts
            .clone()
            .any(|a| matches!(&a.outcome, Err(Refusal { errno: e, .. }) if *e == errno))
    };
    if refused(libc::EBUSY) {
        return one(
            "another user holds the PMU's memory events".into(),
            &["# end the other profiler, or the guests that were given the PMU"],
        );
    }
    let said: Vec<String> = attempts
        .filter_map(|a| Some(format!("{}: {}", a.event, a.outcome.as_ref().err()?)))
        .collect();
    one(
        format!("its events cannot be opened ({})", said.join("; ")),
        &[],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{MemoryAttempt, fixture};

    fn of(fixture: &fixture::Fixture, live: &LiveProbe) -> Option<SourceStatus> {
        let machine = Machine::probe(fixture.root());
        super::status(&Status::Available, &machine, live)
    }

    #[test]
    fn a_guest_without_a_pmu_is_told_so() {
        let found = of(&fixture::kvm_amd(), &LiveProbe::default()).unwrap();
        assert_eq!(found.name, "ibs");
        let Status::Unavailable(why) = found.status else {
            panic!("{:?}", found.status);
        };
        assert!(why[0].reason.contains("hypervisor passes none"), "{why:?}");
    }

    #[test]
    fn a_unit_counts_when_one_of_its_events_opens_and_not_when_none_does() {
        let machine = fixture::intel_sapphire_rapids();
        let pmu = Machine::probe(machine.root()).pmus;
        let pmu = pmu
            .iter()
            .find(|pmu| !pmu.memory_events.is_empty())
            .unwrap();
        let attempt = |event: &str, errno: Option<i32>| MemoryAttempt {
            pmu: pmu.name.clone(),
            event: event.into(),
            outcome: errno.map_or(Ok(()), |errno| {
                Err(Refusal {
                    errno,
                    what: "perf_event_open",
                })
            }),
        };
        let tried = |attempts: Vec<MemoryAttempt>| {
            let live = LiveProbe {
                memory_events: attempts,
                ..LiveProbe::default()
            };
            of(&machine, &live).unwrap().status
        };
        let some = tried(vec![
            attempt("mem-loads", None),
            attempt("mem-stores", Some(2)),
        ]);
        assert_eq!(some, Status::Available);
        let Status::Unavailable(why) = tried(vec![attempt("mem-loads", Some(libc::EBUSY))]) else {
            panic!("it is busy");
        };
        assert!(why[0].reason.contains("another user"), "{why:?}");
        assert!(matches!(
            tried(vec![attempt("mem-loads", Some(2))]),
            Status::Unavailable(_)
        ));
    }
}
