//! Between the source and the pipeline: opens the windows that are worth their cost.

use std::time::Duration;

use super::{ObserveError, suspects::Suspects};
use crate::{
    access::Pid,
    module::ModuleStore,
    names::{self, LookupError, WatchSpec},
    pipeline::Pipeline,
    source::{
        Source, Target,
        watch::{Limits, Subject},
    },
    space::AddressSpaces,
    sys::clock,
    watch::{Asked, Governor, Planner, View},
};

/// A window without enough hits is over after so long: what is rarely touched is not hot.
const WINDOW: Duration = Duration::from_millis(100);
/// A name that is not found so long after the program's code is there, is a mistake; a library that the
/// program opens by itself may take its time.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Opens windows during a run.
pub(super) struct Windows {
    share: f64,
    specs: Vec<(String, WatchSpec)>,
    pids: Vec<Pid>,
    /// Ranges of the specs that were found so far, by number of the spec.
    found: Vec<Option<Asked>>,
    /// Since when there is code to find names in, and why a name is not in it.
    missing: Option<(u64, String)>,
    planner: Planner,
    governor: Option<Governor>,
    caveats: Vec<String>,
}

impl Windows {
    /// Of what these texts name, or else of what samples suspect; `share` of the time may be spent.
    pub(super) fn new(
        texts: Vec<String>,
        share: f64,
        target: &Target,
    ) -> Result<Windows, ObserveError> {
        let specs = texts
            .into_iter()
            .map(|text| {
                let spec = names::parse_watch(&text)?;
                Ok((text, spec))
            })
            .collect::<Result<Vec<_>, ObserveError>>()?;
        let pids = match target {
            Target::Trees(pids) => pids.clone(),
            Target::Everything if specs.is_empty() => Vec::new(),
            Target::Everything => return Err(ObserveError::WatchOfNobody),
        };
        Ok(Windows {
            share,
            found: vec![None; specs.len()],
            missing: None,
            specs,
            pids,
            planner: Planner::default(),
            governor: None,
            caveats: Vec::new(),
        })
    }

    /// Opens the next window when none is open, there is something to watch, and the budget allows it. An error when a name
    /// that was given is of nothing.
    pub(super) fn turn(
        &mut self,
        source: &mut dyn Source,
        pipeline: &Pipeline,
        modules: &ModuleStore,
        suspects: &mut Suspects,
    ) -> Result<(), ObserveError> {
        let started_ns = source.started_ns();
        let Some(watcher) = source.watcher() else {
            return Ok(());
        };
        if let Some(error) = watcher.refusal() {
            // Once is enough: the same refusal would come for every window.
            let text = format!("a watch window could not be opened: {error}");
            if !self.caveats.contains(&text) {
                self.caveats.push(text);
            }
        }
        if watcher.is_open() {
            return Ok(());
        }
        let now_ns = clock::monotonic_ns();
        self.look_up(pipeline, modules, now_ns)?;
        let (share, prices) = (self.share, watcher.prices());
        let governor = self
            .governor
            .get_or_insert_with(|| Governor::new(share, prices, started_ns));
        let Some(hits) = governor.allowance(now_ns, watcher.spent_ns()) else {
            return Ok(());
        };
        let slots = watcher.slots();
        let request = if self.specs.is_empty() {
            let view = View {
                judgements: suspects.at(now_ns, pipeline),
                watched: pipeline.watched(),
                spaces: &pipeline.spaces,
                line_size: pipeline.line_size(),
                cost_share: pipeline.thresholds().cost_share,
                whole: pipeline.tally.whole_cost(),
            };
            self.planner.next(&view, slots, now_ns)
        } else {
            let asked: Vec<Asked> = self.found.iter().flatten().copied().collect();
            let line_size = pipeline.line_size();
            self.planner.next_asked(&asked, line_size, slots)
        };
        let Some(request) = request else {
            return Ok(());
        };
        let subject = Subject {
            words: &request.words,
            everyone: request.everyone,
            packed: request.packed,
        };
        let limits = Limits {
            hits: hits.min(request.enough_hits),
            ns: WINDOW.as_nanos() as u64,
        };
        watcher.arm(subject, limits);
        Ok(())
    }

    /// Finds the named memory, as soon as a target has mapped it. A name that is not there soon after the
    /// program is, is a mistake.
    fn look_up(
        &mut self,
        pipeline: &Pipeline,
        modules: &ModuleStore,
        now_ns: u64,
    ) -> Result<(), ObserveError> {
        for (n, (text, spec)) in self.specs.iter().enumerate() {
            if self.found[n].is_some() {
                continue;
            }
            let mut known = None;
            for pid in &self.pids {
                match locate(&pipeline.spaces, modules, *pid, spec) {
                    Ok(asked) => {
                        self.found[n] = Some(asked);
                        break;
                    }
                    // It did not start yet.
                    Err(LookupError::NoModules { .. }) => {}
                    Err(error) => known = Some(format!("{text}: {error}")),
                }
            }
            if self.found[n].is_some() {
                self.missing = None;
            } else if let Some(why) = known {
                let since_ns = self
                    .missing
                    .as_ref()
                    .map_or(now_ns, |(since_ns, _)| *since_ns);
                self.missing = Some((since_ns, why));
            }
        }
        match &self.missing {
            Some((since_ns, why)) if now_ns - since_ns >= PATIENCE_NS => {
                Err(ObserveError::NothingToWatch(why.clone()))
            }
            _ => Ok(()),
        }
    }

    /// What could not be watched; an error when a name that was given is of nothing.
    pub(super) fn finish(&self) -> Result<Vec<String>, ObserveError> {
        match &self.missing {
            Some((_, why)) => Err(ObserveError::NothingToWatch(why.clone())),
            None => Ok(self.caveats.clone()),
        }
    }
}

/// Bytes watched at an address without a length.
const DEFAULT_LEN: u8 = 8;

fn locate(
    spaces: &AddressSpaces,
    modules: &ModuleStore,
    pid: Pid,
    spec: &WatchSpec,
) -> Result<Asked, LookupError> {
    match spec {
        WatchSpec::Address { addr, len } => {
            let len = u64::from(len.unwrap_or(DEFAULT_LEN));
            Ok(Asked {
                pid,
                addr: addr & !(len - 1),
                len,
            })
        }
        WatchSpec::Variable(name) => {
            let found = names::find_variable(spaces, modules, pid, name)?;
            Ok(Asked {
                pid,
                addr: found.addr,
                len: found.len,
            })
        }
    }
}
