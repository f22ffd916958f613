//! The costs between two CPUs: a thread on one of them times blocks of lines, after a thread on the other has brought the
//! lines into a state; a third one, where there is a CPU for it, for states that more than two CPUs have part in.
//!
//! What is measured at once is a *sitting*: short, since the CPUs of a guest may be moved between two of them, so that each is
//! of one placement.

mod others;
pub mod shown;

use std::{io, sync::atomic::Ordering, time::Duration};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{
    disturbance::involuntary_switches,
    line_loops::{Block, Operation},
};

use crate::{
    restart::Chains,
    spread::Spread,
    state::{Act, State},
    stolen::Stolen,
};
use others::{Pushing, Wires, bring, with_others};

/// Lines of a block: as many as a first-level cache has sets, and its translations of pages.
const LINES: usize = 64;
/// CPUs are busy for so long before anything is timed: cold ones took twice as long.
pub const WARM_UP: Duration = Duration::from_millis(50);
/// What was measured of one state and operation.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Before each block.
    pub state: State,
    /// In it.
    pub operation: Operation,
    /// Ticks of the time stamp counter, per line.
    pub ticks: Spread,
}

/// Who takes part, and how much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The CPU that times.
    pub own: Cpu,
    /// The CPU that has the lines before.
    pub other: Cpu,
    /// A further one, for states that take one.
    pub third: Option<Cpu>,
    /// The CPU that touches the lines first: they are in the memory of its node.
    pub home: Cpu,
    /// States to measure; those that take a third CPU are left out without one.
    pub states: &'a [State],
    /// Chains with growing work are measured too.
    pub chains: bool,
    /// Blocks of each state and operation.
    pub rounds: u32,
    /// How long the CPUs are busy before.
    pub warm_up: Duration,
    /// All threads run before ordinary ones of their CPUs.
    pub real_time: bool,
}

/// What was measured in one go.
#[derive(Clone, Debug, Default)]
pub struct Sitting {
    /// By state, then by operation.
    pub cells: Vec<Cell>,
    /// Chains of loads with work between them, by state.
    pub chains: Vec<(State, Chains)>,
    /// Blocks that were dropped because a thread was taken off its CPU meanwhile, or the host ran something else there.
    pub disturbed: u64,
}

impl Sitting {
    /// The median of a state and operation, ticks per line.
    pub fn median(&self, state: State, operation: Operation) -> Option<f64> {
        let mut cells = self.cells.iter();
        let cell = cells.find(|cell| (cell.state, cell.operation) == (state, operation));
        cell?.ticks.median()
    }

    /// Adds what another one of the same setting measured.
    pub fn add(&mut self, other: &Sitting) {
        if self.cells.is_empty() && self.chains.is_empty() {
            self.cells.clone_from(&other.cells);
            self.chains.clone_from(&other.chains);
        } else {
            for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
                cell.ticks.add(&more.ticks);
            }
            for ((_, chains), (_, more)) in self.chains.iter_mut().zip(&other.chains) {
                chains.add(more);
            }
        }
        self.disturbed += other.disturbed;
    }
}

/// Measures in one go. Fewer rounds than asked for when `stop` says so.
///
/// # Errors
/// A CPU is offline or not allowed; or there is no memory.
pub fn sit(setting: &Setting<'_>, stop: &dyn Fn() -> bool) -> io::Result<Sitting> {
    with_others(setting, |block, wires| timed(setting, block, wires, stop))
}

fn timed(
    setting: &Setting<'_>,
    block: &Block,
    wires: Wires<'_>,
    stop: &dyn Fn() -> bool,
) -> Sitting {
    let mut pushing = Pushing::default();
    let states =
        (setting.states.iter()).filter(|state| wires.third.is_some() || !state.takes_a_third());
    let all = states.flat_map(|state| Operation::ALL.map(|operation| (*state, operation)));
    let cells = all.map(|(state, operation)| Cell {
        state,
        operation,
        ticks: Spread::default(),
    });
    let chained = [State::OwnL1, State::OtherModified, State::Memory];
    let chained =
        (chained.into_iter()).filter(|state| setting.chains && setting.states.contains(state));
    let mut sitting = Sitting {
        cells: cells.collect(),
        chains: chained.map(|state| (state, Chains::default())).collect(),
        disturbed: 0,
    };
    let cpus: Vec<Cpu> = [Some(setting.own), Some(setting.other), setting.third]
        .into_iter()
        .flatten()
        .collect();
    // Interleaved, so that what changes meanwhile changes all alike.
    for _ in 0..setting.rounds {
        if stop() || wires.is_over() {
            break;
        }
        let before = Stolen::now(&cpus);
        let mut round = sitting.clone_empty();
        round.time(block, wires, &mut pushing);
        if Stolen::now(&cpus) == before {
            sitting.add(&round);
        } else {
            sitting.disturbed += round.blocks();
        }
    }
    sitting
}

impl Sitting {
    fn clone_empty(&self) -> Sitting {
        let cell = |cell: &Cell| Cell {
            ticks: Spread::default(),
            ..*cell
        };
        Sitting {
            cells: self.cells.iter().map(cell).collect(),
            chains: (self.chains.iter())
                .map(|(state, _)| (*state, Chains::default()))
                .collect(),
            disturbed: 0,
        }
    }

    /// Blocks, also the disturbed ones.
    fn blocks(&self) -> u64 {
        let cells: u64 = self.cells.iter().map(|cell| cell.ticks.count()).sum();
        let chains: u64 = self.chains.iter().map(|(_, chains)| chains.count()).sum();
        cells + chains + self.disturbed
    }

    /// One block of each state and operation.
    fn time(&mut self, block: &Block, wires: Wires<'_>, pushing: &mut Pushing) {
        for cell in &mut self.cells {
            let watch = Undisturbed::begin(wires);
            bring(cell.state, block, wires, pushing);
            let ticks = block.time(cell.operation);
            if watch.held() {
                cell.ticks.record(ticks as f64 / block.len() as f64);
            } else {
                self.disturbed += 1;
            }
        }
        for (state, chains) in &mut self.chains {
            chains.time(block, |time| {
                let watch = Undisturbed::begin(wires);
                bring(*state, block, wires, pushing);
                let ticks = time();
                let held = watch.held();
                self.disturbed += u64::from(!held);
                ticks.filter(|_| held)
            });
        }
    }
}

/// Whether all threads kept their CPUs since it began.
struct Undisturbed<'w> {
    wires: Wires<'w>,
    switches: u64,
}

impl Undisturbed<'_> {
    fn begin(wires: Wires<'_>) -> Undisturbed<'_> {
        for wire in wires.all() {
            // What was before does not count: it says so with this answer.
            wire.ask(Act::Nothing);
            wire.switched.store(false, Ordering::Relaxed);
        }
        Undisturbed {
            wires,
            switches: involuntary_switches().unwrap_or(0),
        }
    }

    fn held(self) -> bool {
        let others = self.wires.all().all(|wire| {
            // It says so with its next answer.
            wire.ask(Act::Nothing);
            !wire.switched.load(Ordering::Relaxed)
        });
        others && involuntary_switches().unwrap_or(0) == self.switches
    }
}

/// An order without a rhythm: numbers are multiplied by an odd one that is no power of two away from any stride.
pub(crate) fn permutation(lines: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines).collect();
    let mut seed = 0x9e37_79b9_u64;
    for n in (1..lines).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(n, (seed >> 33) as usize % (n + 1));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(own: u32, other: u32, third: Option<u32>) -> Setting<'static> {
        Setting {
            own: Cpu(own),
            other: Cpu(other),
            third: third.map(Cpu),
            home: Cpu(own),
            states: &State::ALL,
            chains: false,
            rounds: 2,
            warm_up: Duration::ZERO,
            real_time: false,
        }
    }

    fn blocks_by_state(sitting: &Sitting) -> Vec<(State, u64)> {
        let cells = sitting.cells.chunks(Operation::ALL.len());
        cells
            .map(|cells| (cells[0].state, cells.iter().map(|c| c.ticks.count()).sum()))
            .collect()
    }

    #[test]
    fn a_cpu_that_there_is_not_is_an_error_and_no_hang() {
        let none = 1 << 30;
        for wrong in [
            setting(none, 0, None),
            setting(0, none, None),
            setting(0, 0, Some(none)),
        ] {
            assert!(sit(&wrong, &|| false).is_err());
        }
    }

    #[test]
    fn states_of_three_cpus_are_measured_where_there_is_a_third_one() {
        // All on one CPU: slow, and each block is disturbed or not, but nothing waits for ever.
        for (third, expected) in [(None, 7), (Some(0), 9)] {
            let sitting = sit(&setting(0, 0, third), &|| false).expect("CPU 0 is there");
            let states = blocks_by_state(&sitting);
            assert_eq!(states.len(), expected);
            let blocks: u64 = states.iter().map(|(_, blocks)| blocks).sum();
            let all = 2 * (expected * Operation::ALL.len()) as u64;
            assert_eq!(blocks + sitting.disturbed, all);
        }
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let sitting = sit(&setting(0, 0, None), &|| true).expect("CPU 0 is there");
        assert_eq!((sitting.blocks(), sitting.cells.len()), (0, 35));
    }
}
