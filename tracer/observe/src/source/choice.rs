//! Which source runs: the one asked for, or the best that this machine has.

use std::sync::Arc;

use super::{
    SOURCES, Source, SourceError, SourceKind, SourceOptions, Target, memory::plan::NoPlan,
};
use crate::{
    machine::{Hardware, LiveProbe, Machine},
    module::ModuleStore,
};

/// A source that runs.
pub struct Chosen {
    /// Which it is.
    pub kind: &'static dyn SourceKind,
    /// What runs.
    pub source: Box<dyn Source>,
    /// Why a better one does not, where that is not what was asked for.
    pub caveat: Option<String>,
}

/// Opens the source of that name; without a name, the first of all that opens. An error of a source that was
/// asked for says what to do; without a name, the last source's error counts, which needs the least.
pub fn open(
    name: Option<&str>,
    target: &Target,
    options: &SourceOptions,
    machine: &Machine,
    modules: &Arc<ModuleStore>,
) -> Result<Chosen, SourceError> {
    first_that_opens(SOURCES, name, machine, |kind| {
        kind.open(target, options, machine, modules.clone())
    })
}

fn first_that_opens(
    sources: &[&'static dyn SourceKind],
    name: Option<&str>,
    machine: &Machine,
    mut open: impl FnMut(&'static dyn SourceKind) -> Result<Box<dyn Source>, SourceError>,
) -> Result<Chosen, SourceError> {
    let mut last = SourceError::NoSource;
    let mut passed = Vec::new();
    for kind in sources {
        let asked_for = name.is_some_and(|name| name == kind.name());
        if !asked_for && (name.is_some() || kind.only_when_asked_for()) {
            continue;
        }
        match open(*kind) {
            Ok(source) => {
                let pmu_failed = is_pmu_missed(*kind, &passed);
                return Ok(Chosen {
                    kind: *kind,
                    source,
                    caveat: pmu_failed.then(|| explain(kind.name(), &passed, machine)),
                });
            }
            Err(error) => {
                last = error;
                passed.push((kind.name(), last.to_string(), is_absent(&last)));
            }
        }
    }
    Err(last)
}

/// A source, what it said, and whether the hardware is just not there.
type Passed = (&'static str, String, bool);

fn is_absent(error: &SourceError) -> bool {
    matches!(error, SourceError::Plan(NoPlan::NoUnit { .. }))
}

/// One maker's unit is never missed where the other's runs.
fn is_pmu_missed(chosen: &dyn SourceKind, passed: &[Passed]) -> bool {
    let measures = chosen.evidence().has(super::Evidence::SERVED_FROM);
    !passed.is_empty() && !measures
}

fn explain(chosen: &str, passed: &[Passed], machine: &Machine) -> String {
    let failed: Vec<String> = passed
        .iter()
        .filter(|(_, _, absent)| !absent)
        .map(|(name, error, _)| format!("{name}: {error}"))
        .collect();
    if failed.is_empty() {
        let why = Hardware::of(machine, &LiveProbe::default()).no_memory_units;
        let why = why.unwrap_or_else(|| "the one it has gives programs no samples".to_owned());
        return format!(
            "Sampled by the {chosen}, without latencies and data sources: no PMU for memory accesses ({why})"
        );
    }
    format!(
        "Sampled by the {chosen}, because a PMU could not be used: {}",
        failed.join("; ")
    )
}

#[cfg(test)]
mod tests;
