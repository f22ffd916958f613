//! What was measured, as it is kept and read by other commands: `machine.json`.

use std::io;

use cohtrace_model::access::Cpu;
use serde::{Deserialize, Serialize};

use crate::{
    clocks::Clocks,
    hand_over::{Way, one_way},
    pair::{Setting, Sitting},
    spread::Spread,
    state::State,
    sweep::Sweep,
};
use cohtrace_platform::sys::line_loops::Operation;

/// Version of the document.
pub const SCHEMA: u32 = 1;

/// The costs of a machine since it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineCosts {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's identifier of this start of the machine: costs of another one may be of another place.
    pub boot_id: String,
    /// When it was begun, seconds since 1970.
    pub begun_unix_s: u64,
    /// Seconds that it took.
    pub took_s: f64,
    /// Everything that was asked for was measured.
    pub complete: bool,
    /// By pair, a load of a line that the other one has modified, nanoseconds: a short look at each pair.
    pub map: Vec<Passage>,
    /// Which of these pairs are alike, nearest first.
    pub classes: Vec<PairClass>,
    /// Of some pairs of each class, in the order in which they were measured: all costs.
    pub pairs: Vec<PairCosts>,
    /// What others' accesses add to one's own.
    pub contention: Vec<Sweep>,
    /// What speaks against some of it.
    pub doubts: Vec<Doubt>,
}

/// From one CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// The CPU that loads.
    pub own: u32,
    /// The CPU that stored before.
    pub other: u32,
    /// Median, nanoseconds per line.
    pub ns: f64,
}

/// Pairs that are alike by what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairClass {
    /// Median of its pairs, nanoseconds.
    pub ns: f64,
    /// Its pairs.
    pub pairs: Vec<(u32, u32)>,
    /// What the kernel says of them: `one-core`, `one-cache`, `one-node`, `one-package`, `two-packages`.
    pub distances: Vec<String>,
}

/// What speaks against what was measured, or against what the kernel says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Doubt {
    /// Sittings of one pair were of several placements: the host moved a CPU meanwhile. All are kept, each by itself.
    Moved {
        /// The CPU that accesses.
        own: u32,
        /// The CPU that had the lines before.
        other: u32,
        /// Medians of a load of a line that the other has modified, nanoseconds.
        ns: Vec<f64>,
    },
    /// Pairs that are equally far by the kernel's words are not by what was measured.
    Unlike {
        /// The kernel's word.
        distance: String,
        /// Medians of the classes that its pairs are in, nanoseconds.
        ns: Vec<f64>,
    },
    /// Two CPUs are one core by the kernel's words and did not slow each other down, or the other way round.
    Cores {
        /// The CPU that accesses.
        own: u32,
        /// The CPU that had the lines before.
        other: u32,
        /// Whether the kernel says that they are one core.
        kernel_says_one: bool,
        /// Time of work that fills a core while the other does the same, as multiples of that alone.
        ratio: f64,
    },
    /// The processors are a program, which has no caches: its times are of another machine.
    Emulated {
        /// The program.
        by: String,
    },
    /// A curve is missing: threads were taken off these CPUs all the time.
    Busy {
        /// The CPU that accesses.
        own: u32,
        /// The CPU that had the lines before.
        other: u32,
    },
    /// Lines of another CPU cost no more than own ones: an emulator without caches, or one CPU behind both.
    NoDifference {
        /// The CPU that accesses.
        own: u32,
        /// The CPU that had the lines before.
        other: u32,
    },
}

/// What one CPU pays for lines that another one had, in one placement of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairCosts {
    /// The CPU that accesses.
    pub own: u32,
    /// The CPU that had the lines before.
    pub other: u32,
    /// A further one, in states that more than two have part in.
    pub third: Option<u32>,
    /// The CPU that touched the lines first: they are in the memory of its node.
    pub home: u32,
    /// Sittings of it.
    pub sittings: u32,
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
    /// Time of work that fills a core while the other does the same, as multiples of that alone: 1 of two cores, 2 of one.
    pub same_core_ratio: Option<f64>,
    /// A locked instruction on a line that the CPU has for itself, one after the other, nanoseconds.
    #[serde(default)]
    pub own_locked_ns: Option<f64>,
    /// Blocks that were dropped because a thread was taken off its CPU, or the host ran something else there.
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

impl MachineCosts {
    /// A locked instruction on a line that a CPU has for itself, one after the other, nanoseconds: the median of those that were
    /// measured; `None` where none was, or the processors are a program.
    pub fn own_locked_ns(&self) -> Option<f64> {
        let emulated = |doubt: &Doubt| matches!(doubt, Doubt::Emulated { .. });
        let mut known: Vec<f64> = self
            .pairs
            .iter()
            .filter_map(|pair| pair.own_locked_ns)
            .collect();
        known.sort_by(f64::total_cmp);
        let believed = !self.doubts.iter().any(emulated);
        known.get(known.len() / 2).copied().filter(|_| believed)
    }
}

impl PairCosts {
    /// Of the sittings of one placement; nothing is known of hand-overs yet.
    pub fn of(
        sitting: &Sitting,
        sittings: u32,
        setting: &Setting<'_>,
        clocks: Clocks,
    ) -> PairCosts {
        let costs = sitting.cells.iter().filter_map(|cell| {
            Some(Cost {
                state: cell.state.name().to_owned(),
                operation: cell.operation.name().to_owned(),
                ns: Quantiles::of(&cell.ticks, clocks)?,
            })
        });
        let addition_ticks = 1.0 / clocks.tick_cycles;
        let restart = sitting.chains.iter().filter_map(|(state, chains)| {
            let knee = chains.knee(addition_ticks)?;
            Some(Restart {
                state: state.name().to_owned(),
                back_to_back_ns: clocks.ns(knee.back_to_back),
                fill_ns: clocks.ns(knee.fill),
                restart_ns: clocks.ns(knee.restart()),
            })
        });
        PairCosts {
            own: setting.own.0,
            other: setting.other.0,
            third: setting.third.map(|cpu| cpu.0),
            home: setting.home.0,
            sittings,
            tick_ns: clocks.tick_ns,
            tick_cycles: clocks.tick_cycles,
            costs: costs.collect(),
            restart: restart.collect(),
            hand_over: Vec::new(),
            same_core_ratio: None,
            own_locked_ns: None,
            disturbed_blocks: sitting.disturbed,
        }
    }

    /// Measures how words are handed over, in blocks of a thousand round trips.
    ///
    /// # Errors
    /// A CPU is offline or not allowed.
    pub fn measure_hand_over(&mut self, blocks: u32, clocks: Clocks) -> io::Result<()> {
        for way in Way::ALL {
            let ticks = one_way(Cpu(self.own), Cpu(self.other), way, blocks)?;
            self.hand_over
                .extend(Quantiles::of(&ticks, clocks).map(|ns| HandOver {
                    way: way.name().to_owned(),
                    ns,
                }));
        }
        Ok(())
    }

    /// Of a state and operation; `None` where it was not measured.
    pub fn cost(&self, state: State, operation: Operation) -> Option<&Cost> {
        let mut costs = self.costs.iter();
        costs.find(|cost| cost.state == state.name() && cost.operation == operation.name())
    }

    /// Median of a state and operation, nanoseconds.
    pub fn median_ns(&self, state: State, operation: Operation) -> Option<f64> {
        Some(self.cost(state, operation)?.ns.median)
    }
}
