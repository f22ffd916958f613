//! What was measured, as it is kept and read by other commands: `machine.json`.

use std::io;

use cohtrace_model::access::Cpu;
use serde::{Deserialize, Serialize};

use crate::{
    clocks::Clocks,
    hand_over::{Way, one_way},
    pair::{self, State},
    spread::Spread,
};
use cohtrace_platform::sys::{affinity::OnCpu, line_loops::Operation};

/// Version of the document.
pub const SCHEMA: u32 = 1;

/// The costs of a machine since it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineCosts {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's identifier of this start of the machine: costs of another one may be of another place.
    pub boot_id: String,
    /// By pair, in the order in which they were measured.
    pub pairs: Vec<PairCosts>,
}

/// What one CPU pays for lines that another one had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairCosts {
    /// The CPU that accesses.
    pub own: u32,
    /// The CPU that had the lines before.
    pub other: u32,
    /// Nanoseconds of a tick of the time stamp counter.
    pub tick_ns: f64,
    /// Core cycles of a tick.
    pub tick_cycles: f64,
    /// By state and operation.
    pub costs: Vec<Cost>,
    /// Latency until the word that was asked for is there, by state.
    pub restart: Vec<Restart>,
    /// One way of a word that is handed over, by way.
    pub hand_over: Vec<HandOver>,
    /// Blocks that were dropped because a thread was taken off its CPU.
    pub disturbed_blocks: u64,
}

/// One row and column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// [`State::name`].
    pub state: String,
    /// [`Operation::name`].
    pub operation: String,
    /// Nanoseconds per line.
    pub ns: Quantiles,
}

/// The restart latency of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// [`State::name`].
    pub state: String,
    /// Of a chain of dependent misses, nanoseconds.
    pub back_to_back_ns: f64,
    /// Work that fits behind a miss without making it longer, nanoseconds.
    pub fill_ns: f64,
    /// What is left, nanoseconds.
    pub restart_ns: f64,
}

/// A word's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandOver {
    /// [`Way::name`].
    pub way: String,
    /// Nanoseconds one way.
    pub ns: Quantiles,
}

/// How blocks were spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Blocks.
    pub blocks: u64,
    /// 5 of 100 took no more.
    pub low: f64,
    /// Half of them took no more.
    pub median: f64,
    /// 95 of 100 took no more.
    pub high: f64,
}

impl Quantiles {
    /// Of ticks; `None` of no blocks.
    fn of(ticks: &Spread, clocks: Clocks) -> Option<Quantiles> {
        let at = |part| ticks.quantile(part).map(|ticks| clocks.ns(ticks));
        Some(Quantiles {
            blocks: ticks.count(),
            low: at(0.05)?,
            median: at(0.5)?,
            high: at(0.95)?,
        })
    }
}

impl PairCosts {
    /// Measures two CPUs: so many blocks of each state and operation.
    ///
    /// # Errors
    /// A CPU is offline or not allowed; or there is no memory.
    pub fn measure(own: Cpu, other: Cpu, blocks: u32) -> io::Result<PairCosts> {
        let pair = pair::measure(own, other, blocks)?;
        let clocks = {
            let _here = OnCpu::move_to(own)?;
            Clocks::measure()
        };
        let costs = pair.cells.iter().filter_map(|cell| {
            Some(Cost {
                state: cell.state.name().to_owned(),
                operation: cell.operation.name().to_owned(),
                ns: Quantiles::of(&cell.ticks, clocks)?,
            })
        });
        let addition_ticks = 1.0 / clocks.tick_cycles;
        let restart = pair.chains.iter().filter_map(|(state, chains)| {
            let knee = chains.knee(addition_ticks)?;
            Some(Restart {
                state: state.name().to_owned(),
                back_to_back_ns: clocks.ns(knee.back_to_back),
                fill_ns: clocks.ns(knee.fill),
                restart_ns: clocks.ns(knee.restart()),
            })
        });
        let mut hand_over = Vec::new();
        for way in Way::ALL {
            let ticks = one_way(own, other, way, blocks)?;
            hand_over.extend(Quantiles::of(&ticks, clocks).map(|ns| HandOver {
                way: way.name().to_owned(),
                ns,
            }));
        }
        Ok(PairCosts {
            own: own.0,
            other: other.0,
            tick_ns: clocks.tick_ns,
            tick_cycles: clocks.tick_cycles,
            costs: costs.collect(),
            restart: restart.collect(),
            hand_over,
            disturbed_blocks: pair.disturbed,
        })
    }

    /// Of a state and operation; `None` where it was not measured.
    pub fn cost(&self, state: State, operation: Operation) -> Option<&Cost> {
        let mut costs = self.costs.iter();
        costs.find(|cost| cost.state == state.name() && cost.operation == operation.name())
    }
}
