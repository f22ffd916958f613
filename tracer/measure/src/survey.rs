//! Which pairs of CPUs are measured, and how thoroughly: a short look at each, which tells the classes, and all costs of some
//! pairs of each class.

mod doubt;
#[cfg(test)]
mod fixture;
mod pairs;

use std::{
    io,
    time::{Duration, Instant, SystemTime},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::{
    machine::Topology,
    sys::{affinity::OnCpu, line_loops::Operation},
};

use crate::{
    clocks::Clocks,
    contention::LineCosts,
    costs::{Doubt, MachineCosts, PairCosts, Passage, SCHEMA},
    own_locked::own_locked,
    pair::{Setting, Sitting, WARM_UP, sit},
    pair_classes::classes,
    same_core::same_core_ratio,
    state::State,
    sweep,
};
use doubt::{doubt, found_classes};
pub use pairs::Pairs;
use pairs::third;

/// Blocks of a short look, and the least time that CPUs are busy before it. Of few pairs all are warmed up as long as for
/// anything else: a look at CPUs that had rested took 46 ns for 31.
const LOOK_ROUNDS: u32 = 8;
const LOOK_WARM_UP: Duration = Duration::from_millis(2);
/// So many pairs are few.
const FEW_PAIRS: u32 = 64;
/// Sittings of a pair that is measured thoroughly, for each home of the lines, and their blocks.
const SITTINGS: u32 = 6;
const ROUNDS: u32 = 10;
/// Blocks of a thousand hand-overs.
const HAND_OVERS: u32 = 60;
/// Of the time there is, what looks at all pairs may take.
const LOOKING: f64 = 0.6;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Which pairs.
    pub pairs: Pairs,
    /// States of lines.
    pub states: Vec<State>,
    /// Whether curves are measured too, of what others' accesses add.
    pub contention: bool,
    /// Time for all of it; none: as long as it takes.
    pub time: Option<Duration>,
    /// Threads that measure run before all ordinary ones.
    pub real_time: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub what: What,
    /// Of these, how many are done.
    pub done: usize,
    /// How many there are.
    pub of: usize,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Each pair is looked at.
    Looking,
    /// Some are measured thoroughly.
    Measuring,
    /// Curves are measured.
    Loading,
}

impl Survey {
    /// Measures. What `known` has of the same start of the machine is not measured again. Ends early, and says so, when
    /// `stop` says so; `step` is told how far it is.
    ///
    /// # Errors
    /// Fewer than two CPUs; a CPU that is asked for and is offline, or not allowed; or there is no memory.
    pub fn run(
        &self,
        topology: &Topology,
        boot_id: &str,
        known: Option<&MachineCosts>,
        stop: &dyn Fn() -> bool,
        step: &mut dyn FnMut(Step),
    ) -> io::Result<MachineCosts> {
        let begun = Instant::now();
        let known = known.filter(|known| known.boot_id == boot_id && known.schema == SCHEMA);
        let mut costs = MachineCosts {
            schema: SCHEMA,
            boot_id: boot_id.to_owned(),
            begun_unix_s: unix_s(),
            took_s: 0.0,
            complete: true,
            map: known.map(|known| known.map.clone()).unwrap_or_default(),
            classes: Vec::new(),
            pairs: known.map(|known| known.pairs.clone()).unwrap_or_default(),
            contention: Vec::new(),
            doubts: known.map(|known| known.doubts.clone()).unwrap_or_default(),
        };
        costs
            .doubts
            .retain(|doubt| matches!(doubt, Doubt::Moved { .. }));
        let late = |part: f64| {
            self.time
                .is_some_and(|time| begun.elapsed() > time.mul_f64(part))
        };
        let looked_at = self.pairs.of(topology);
        self.look(&mut costs, &looked_at, &|| stop() || late(LOOKING), step)?;
        costs.classes = found_classes(&costs.map, topology);
        let chosen = self.chosen(&costs, &looked_at);
        let stop = || stop() || late(1.0);
        for (done, (own, other)) in chosen.iter().enumerate() {
            let what = What::Measuring;
            step(Step {
                what,
                done,
                of: chosen.len(),
            });
            if costs.of(*own, *other).next().is_some() {
                continue;
            }
            if stop() {
                costs.complete = false;
                break;
            }
            self.measure(&mut costs, topology, (*own, *other), &stop)?;
        }
        if self.contention {
            let pairs = chosen.iter().take(costs.classes.len().max(1));
            for (done, (own, other)) in pairs.enumerate() {
                step(Step {
                    what: What::Loading,
                    done,
                    of: costs.classes.len().max(1),
                });
                if stop() {
                    costs.complete = false;
                    break;
                }
                load(&mut costs, *own, *other)?;
            }
        }
        doubt(&mut costs, topology);
        costs.took_s = begun.elapsed().as_secs_f64();
        Ok(costs)
    }

    /// Looks at each pair that is not known yet.
    fn look(
        &self,
        costs: &mut MachineCosts,
        pairs: &[(Cpu, Cpu)],
        stop: &dyn Fn() -> bool,
        step: &mut dyn FnMut(Step),
    ) -> io::Result<()> {
        let mut clocks = None;
        let many = u32::try_from(pairs.len()).unwrap_or(u32::MAX) / FEW_PAIRS;
        let warm_up = (WARM_UP / many.max(1)).max(LOOK_WARM_UP);
        for (done, (own, other)) in pairs.iter().enumerate() {
            step(Step {
                what: What::Looking,
                done,
                of: pairs.len(),
            });
            let known = |passage: &Passage| (passage.own, passage.other) == (own.0, other.0);
            if costs.map.iter().any(known) {
                continue;
            }
            if stop() {
                costs.complete = false;
                break;
            }
            let clocks = match clocks {
                Some(clocks) => clocks,
                None => *clocks.insert(clocks_of(*own)?),
            };
            let setting = Setting {
                own: *own,
                other: *other,
                third: None,
                home: *own,
                states: &[State::OtherModified],
                chains: false,
                rounds: LOOK_ROUNDS,
                warm_up,
                real_time: self.real_time,
            };
            // A pair that is disturbed all the time is not known; it is tried again by the next run.
            let sitting = sit(&setting, stop)?;
            let ticks = sitting.median(State::OtherModified, Operation::ChainedLoad);
            costs.map.extend(ticks.map(|ticks| Passage {
                own: own.0,
                other: other.0,
                ns: clocks.ns(ticks),
            }));
        }
        Ok(())
    }

    /// The pairs that are measured thoroughly: those that were named, else the first of each class, and of each distance.
    fn chosen(&self, costs: &MachineCosts, looked_at: &[(Cpu, Cpu)]) -> Vec<(Cpu, Cpu)> {
        if self.pairs != Pairs::All {
            return looked_at.to_vec();
        }
        let firsts = costs.classes.iter().filter_map(|class| class.pairs.first());
        firsts
            .map(|(own, other)| (Cpu(*own), Cpu(*other)))
            .collect()
    }

    /// Measures a pair thoroughly, in several sittings, each placement by itself.
    fn measure(
        &self,
        costs: &mut MachineCosts,
        topology: &Topology,
        (own, other): (Cpu, Cpu),
        stop: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let clocks = clocks_of(own)?;
        let third = third(topology, own, other);
        let node = |cpu: Cpu| topology.cpus.get(&cpu).and_then(|place| place.node);
        let homes: &[Cpu] = if node(own) == node(other) {
            &[own]
        } else {
            &[own, other]
        };
        for home in homes {
            let mut setting = Setting {
                own,
                other,
                third,
                home: *home,
                states: &self.states,
                chains: true,
                rounds: ROUNDS,
                warm_up: WARM_UP,
                real_time: self.real_time,
            };
            let mut sittings = Vec::new();
            for _ in 0..SITTINGS {
                sittings.push(sit(&setting, stop)?);
                setting.warm_up = LOOK_WARM_UP;
            }
            let placements = placements(&sittings);
            if placements.len() > 1 {
                costs.doubts.push(Doubt::Moved {
                    own: own.0,
                    other: other.0,
                    ns: (placements.iter())
                        .filter_map(|(sitting, _)| {
                            sitting.median(State::OtherModified, Operation::ChainedLoad)
                        })
                        .map(|ticks| clocks.ns(ticks))
                        .collect(),
                });
            }
            // The placement that was there longest is the first of the pair.
            for (n, (sitting, count)) in placements.into_iter().enumerate() {
                let mut measured = PairCosts::of(&sitting, count, &setting, clocks);
                if n == 0 && !stop() {
                    measured.measure_hand_over(HAND_OVERS, clocks)?;
                    measured.same_core_ratio = Some(same_core_ratio(own, other)?);
                    measured.own_locked_ns = Some(clocks.ns(own_locked(own)?));
                }
                costs.pairs.push(measured);
            }
        }
        costs.complete &= !stop();
        Ok(())
    }
}

fn unix_s() -> u64 {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    unix.unwrap_or_default().as_secs()
}

impl MachineCosts {
    /// Seconds since it was begun.
    pub fn age_s(&self) -> u64 {
        unix_s().saturating_sub(self.begun_unix_s)
    }

    /// What was measured of a pair, the placement first that was there longest.
    pub fn of(&self, own: Cpu, other: Cpu) -> impl Iterator<Item = &PairCosts> {
        let pair = (own.0, other.0);
        self.pairs
            .iter()
            .filter(move |costs| (costs.own, costs.other) == pair)
    }
}

/// Sittings by placement, with their number, most of them first: the cost of a line that the other has modified tells it.
fn placements(sittings: &[Sitting]) -> Vec<(Sitting, u32)> {
    let medians: Vec<f64> = (sittings.iter())
        .map(|sitting| {
            sitting
                .median(State::OtherModified, Operation::ChainedLoad)
                .unwrap_or(0.0)
        })
        .collect();
    let mut classes = classes(&medians);
    if classes.is_empty() {
        // That state was not asked for, or all was disturbed.
        classes.push((0..sittings.len()).collect());
    }
    let merged = classes.into_iter().map(|numbers| {
        let mut sum = Sitting::default();
        for number in &numbers {
            sum.add(&sittings[*number]);
        }
        (sum, numbers.len() as u32)
    });
    let mut merged: Vec<(Sitting, u32)> = merged.collect();
    merged.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    merged
}

fn clocks_of(cpu: Cpu) -> io::Result<Clocks> {
    let _here = OnCpu::move_to(cpu)?;
    Ok(Clocks::measure())
}

/// Measures what others' accesses add, between two CPUs whose costs are known.
fn load(costs: &mut MachineCosts, own: Cpu, other: Cpu) -> io::Result<()> {
    let Some(pair) = costs.of(own, other).next() else {
        return Ok(());
    };
    let clocks = Clocks {
        tick_ns: pair.tick_ns,
        tick_cycles: pair.tick_cycles,
    };
    let line = |pair: &PairCosts| {
        let median = |state| pair.median_ns(state, Operation::ExchangeAdd);
        Some(LineCosts {
            own_ns: median(State::OwnL1)?,
            taken_ns: median(State::OtherModified)?,
        })
    };
    let placements: Vec<LineCosts> = costs.of(own, other).filter_map(line).collect();
    let mut sweeps = Vec::new();
    if !placements.is_empty() {
        sweeps.push(sweep::of_line(own, other, &placements, clocks)?);
    }
    sweeps.push(sweep::of_memory(own, other, clocks)?);
    if sweeps.iter().any(Option::is_none) {
        costs.doubts.push(Doubt::Busy {
            own: own.0,
            other: other.0,
        });
    }
    costs.contention.extend(sweeps.into_iter().flatten());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{
        fixture::{large, measured},
        *,
    };

    fn survey(pairs: Pairs) -> Survey {
        Survey {
            pairs,
            states: State::ALL.to_vec(),
            contention: false,
            time: None,
            real_time: false,
        }
    }

    #[test]
    fn sittings_of_two_placements_are_kept_apart() {
        use crate::{pair::Cell, spread::Spread};
        let sitting = |ticks: f64| {
            let mut spread = Spread::default();
            spread.record(ticks);
            Sitting {
                cells: vec![Cell {
                    state: State::OtherModified,
                    operation: Operation::ChainedLoad,
                    ticks: spread,
                }],
                ..Sitting::default()
            }
        };
        let moved = [190.0, 35.0, 33.0, 37.0].map(sitting);
        let apart = placements(&moved);
        let counts: Vec<u32> = apart.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [3, 1]);
        let median = |n: usize| {
            apart[n]
                .0
                .median(State::OtherModified, Operation::ChainedLoad)
                .expect("measured")
        };
        assert!((median(0) - 35.0).abs() < 0.1 && (median(1) - 190.0).abs() < 0.2);
        assert_eq!(placements(&[35.0, 33.0, 40.0].map(sitting)).len(), 1);
    }

    #[test]
    fn an_earlier_run_of_this_start_is_continued_and_one_of_another_is_not() {
        let topology = Topology {
            cpus: large().cpus.into_iter().take(2).collect(),
        };
        let known = |boot: &str| MachineCosts {
            boot_id: boot.to_owned(),
            ..measured(
                vec![Passage {
                    own: 0,
                    other: 1,
                    ns: 77.0,
                }],
                &topology,
            )
        };
        let run = |known: &MachineCosts| {
            survey(Pairs::All)
                .run(&topology, "this", Some(known), &|| true, &mut |_| {})
                .expect("nothing is measured")
        };
        let continued = run(&known("this"));
        assert_eq!(continued.map.len(), 1);
        assert!(!continued.complete);
        assert_eq!(run(&known("another")).map, []);
    }
}
