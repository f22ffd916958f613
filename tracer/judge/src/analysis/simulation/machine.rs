//! One machine, for the scenarios that hint the same loads so far.

use super::{super::simulated::SimulatedCosts, Hinted, counts::row};
use crate::coherence::{Intent, Line, ModelError, Multiprocessor, Served, SystemModel};

/// A machine, and what its lines took.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Bit n for scenario n.
    pub(super) scenarios: u8,
    pub(super) caches: Multiprocessor,
    /// By number of the line.
    lines: Vec<SimulatedCosts>,
}

impl Machine {
    /// Empty caches, for the first so many scenarios, 1 to 8.
    pub(super) fn new(model: &SystemModel, scenarios: usize) -> Result<Machine, ModelError> {
        Ok(Machine {
            scenarios: u8::MAX >> (8 - scenarios.clamp(1, 8)),
            caches: Multiprocessor::new(model)?,
            lines: Vec::new(),
        })
    }

    /// Whether it is that of the scenario.
    pub(super) fn is_of(&self, scenario: usize) -> bool {
        self.scenarios & (1 << scenario) != 0
    }

    /// Whether its scenarios hint a load, of which they all do the same.
    pub(super) fn hints(&self, hinted: Hinted) -> bool {
        self.scenarios & hinted.0 != 0
    }

    /// A machine for those of its scenarios that hint a load, where others do not: these stay here.
    pub(super) fn part(&mut self, hinted: Hinted) -> Option<Machine> {
        let (with, without) = (self.scenarios & hinted.0, self.scenarios & !hinted.0);
        if with == 0 || without == 0 {
            return None;
        }
        self.scenarios = without;
        Some(Machine {
            scenarios: with,
            ..self.clone()
        })
    }

    /// Brings what is kept of the line near to the processor that simulates. What it gives means nothing.
    pub(super) fn look_at(&self, line: Line) -> u64 {
        self.caches.look_at(line) ^ self.line(line.id).transactions
    }

    /// What the line of that number took.
    pub(super) fn line(&self, id: u32) -> SimulatedCosts {
        self.lines.get(id as usize).copied().unwrap_or_default()
    }

    /// Counts what the line took for a request.
    pub(super) fn count(&mut self, served: &Served, line: Line, intent: Intent) {
        row(&mut self.lines, line.id).add(served, intent != Intent::Store);
    }
}
