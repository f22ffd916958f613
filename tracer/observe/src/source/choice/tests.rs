//! Choosing among sources that open or do not, as told.

use super::{super::Evidence, *};
use crate::{machine::fixture, source::SourceError};

fn machine() -> Machine {
    Machine::probe(fixture::kvm_amd().root())
}

fn no_unit() -> SourceError {
    NoPlan::NoUnit {
        unit: "no unit",
        why: "none here".to_owned(),
        instead: "timer",
    }
    .into()
}

/// A source that does nothing.
struct Silent;

impl Source for Silent {
    fn take(&mut self, _: &mut crate::event::Batch) -> Result<super::super::Progress, SourceError> {
        Ok(super::super::Progress::End)
    }

    fn idle(&mut self) -> Result<std::time::Duration, SourceError> {
        Ok(std::time::Duration::ZERO)
    }
    fn stop(&mut self) {}
    fn started_ns(&self) -> u64 {
        0
    }
    fn cpus(&self) -> u32 {
        1
    }
    fn caveats(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The chosen source's name and caveat, where only some open.
fn choose(
    name: Option<&str>,
    open: impl Fn(&str) -> Result<(), SourceError>,
) -> Result<(&'static str, Option<String>), String> {
    first_that_opens(SOURCES, name, &machine(), |kind| {
        open(kind.name()).map(|()| Box::new(Silent) as Box<dyn Source>)
    })
    .map(|chosen| (chosen.kind.name(), chosen.caveat))
    .map_err(|error| error.to_string())
}

#[test]
fn the_first_that_opens_is_taken_and_needs_no_excuse_when_it_measures() {
    assert_eq!(choose(None, |_| Ok(())), Ok(("pebs", None)));
    let only_amd = |name: &str| {
        if name == "pebs" {
            Err(no_unit())
        } else {
            Ok(())
        }
    };
    assert_eq!(choose(None, only_amd), Ok(("ibs", None)));
}

#[test]
fn the_timer_says_why_no_pmu_runs() {
    let only_timer = |name: &str| {
        if name == "timer" {
            Ok(())
        } else {
            Err(no_unit())
        }
    };
    let (name, caveat) = choose(None, only_timer).unwrap();
    assert_eq!(name, "timer");
    let caveat = caveat.unwrap();
    assert!(
        caveat.contains("the hypervisor passes none on to this guest"),
        "{caveat}"
    );
    let broken = |name: &str| match name {
        "timer" => Ok(()),
        "ibs" => Err(SourceError::TypesNeeded),
        _ => Err(no_unit()),
    };
    let caveat = choose(None, broken).unwrap().1.unwrap();
    assert!(
        caveat.contains("ibs: Linux 6.1 and 6.2 need BTF"),
        "{caveat}"
    );
    assert!(!caveat.contains("pebs"), "{caveat}");
}

#[test]
fn who_asked_for_a_source_gets_it_or_its_own_error() {
    assert_eq!(choose(Some("timer"), |_| Ok(())), Ok(("timer", None)));
    assert_eq!(choose(Some("ibs"), |_| Ok(())), Ok(("ibs", None)));
    let error = choose(Some("pebs"), |_| Err(no_unit())).unwrap_err();
    assert_eq!(error, "no unit: none here; sample by `--source timer`");
    let error = choose(Some("other"), |_| Ok(())).unwrap_err();
    assert!(error.contains("doctor"), "{error}");
}

#[test]
fn when_nothing_opens_the_error_is_that_of_the_source_that_needs_the_least() {
    let error = choose(None, |name| {
        Err(if name == "timer" {
            SourceError::NoCpus
        } else {
            no_unit()
        })
    });
    assert!(
        error
            .unwrap_err()
            .contains("no online CPU could be sampled")
    );
}

#[test]
fn only_pmus_measure() {
    let measuring: Vec<&str> = SOURCES
        .iter()
        .filter(|kind| kind.evidence().has(Evidence::SERVED_FROM))
        .map(|kind| kind.name())
        .collect();
    assert_eq!(measuring, ["pebs", "ibs"]);
}
