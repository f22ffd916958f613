//! Which pairs of CPUs are measured, and how thoroughly: a short look at each, which tells the classes, and all costs of some
//! pairs of each class.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io,
    time::{Duration, Instant, SystemTime},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::{
    machine::{Distance, Topology},
    sys::{affinity::OnCpu, line_loops::Operation},
};

use crate::{
    clocks::Clocks,
    contention::LineCosts,
    costs::{Doubt, MachineCosts, PairClass, PairCosts, Passage, SCHEMA},
    pair::{Setting, Sitting, State, WARM_UP, sit},
    pair_classes::classes,
    same_core::{ONE_CORE, same_core_ratio},
    sweep,
};

/// Blocks of a short look, and how long the CPUs are busy before: they were a moment ago.
const LOOK_ROUNDS: u32 = 8;
const LOOK_WARM_UP: Duration = Duration::from_millis(2);
/// Sittings of a pair that is measured thoroughly, for each home of the lines, and their blocks.
const SITTINGS: u32 = 6;
const ROUNDS: u32 = 10;
/// Blocks of a thousand hand-overs.
const HAND_OVERS: u32 = 60;
/// Pairs besides one of each distance, to find out whether the kernel's words are true.
const MORE_PAIRS: usize = 3;
/// Of the time there is, what looks at all pairs may take.
const LOOKING: f64 = 0.6;
/// Loads of lines of another CPU that take less than this, as multiples of own ones, are no loads of another's.
const DIFFERENCE: f64 = 1.3;

/// Which pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// One of each distance that the kernel tells, and three more.
    Classes,
    /// All.
    All,
    /// These.
    These(Vec<(Cpu, Cpu)>),
}

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
        let looked_at = self.pairs(topology);
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

    /// The pairs that are looked at, in an order that comes everywhere early.
    fn pairs(&self, topology: &Topology) -> Vec<(Cpu, Cpu)> {
        let cpus: Vec<Cpu> = topology.cpus.keys().copied().collect();
        let pairs = (cpus.iter().enumerate())
            .flat_map(|(n, own)| cpus[n + 1..].iter().map(|other| (*own, *other)));
        let all = match &self.pairs {
            Pairs::These(pairs) => return pairs.clone(),
            Pairs::All | Pairs::Classes => spread_out(&pairs.collect::<Vec<_>>()),
        };
        if self.pairs == Pairs::All {
            return all;
        }
        let mut first: BTreeMap<Option<Distance>, (Cpu, Cpu)> = BTreeMap::new();
        let mut more = Vec::new();
        for (own, other) in all {
            let distance = topology.distance(own, other);
            match first.entry(distance) {
                Entry::Occupied(_) => more.push((own, other)),
                Entry::Vacant(place) => {
                    place.insert((own, other));
                }
            }
        }
        more.truncate(MORE_PAIRS);
        first.into_values().chain(more).collect()
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
                warm_up: LOOK_WARM_UP,
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

/// A CPU on a core of its own, as near to both as there is.
fn third(topology: &Topology, own: Cpu, other: Cpu) -> Option<Cpu> {
    let cpus = topology.cpus.keys().copied();
    let far = |cpu: &Cpu| {
        let of = |from| topology.distance(from, *cpu);
        of(own).max(of(other))
    };
    let apart = |cpu: &Cpu| {
        let one_core = |from| topology.distance(from, *cpu) == Some(Distance::Core);
        *cpu != own && *cpu != other && !one_core(own) && !one_core(other)
    };
    cpus.filter(apart).min_by_key(far)
}

/// All of them, neighbours in the list far apart in the new one, so that the first ones are of all kinds.
fn spread_out<T: Copy>(all: &[T]) -> Vec<T> {
    // The golden section leaves no rhythm; a step without a common divisor comes everywhere.
    let golden = (all.len() as f64 * 0.618) as usize;
    let mut steps = golden.max(1)..=all.len();
    let step = steps.find(|step| common_divisor(*step, all.len()) <= 1);
    let step = step.unwrap_or(1);
    (0..all.len()).map(|n| all[n * step % all.len()]).collect()
}

fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn found_classes(map: &[Passage], topology: &Topology) -> Vec<PairClass> {
    let ns: Vec<f64> = map.iter().map(|passage| passage.ns).collect();
    let class = |numbers: Vec<usize>| {
        let pairs: Vec<(u32, u32)> = (numbers.iter())
            .map(|n| (map[*n].own, map[*n].other))
            .collect();
        let distances =
            (pairs.iter()).filter_map(|(own, other)| topology.distance(Cpu(*own), Cpu(*other)));
        let mut distances: Vec<Distance> = distances.collect();
        distances.sort_unstable();
        distances.dedup();
        PairClass {
            // They are in the order of their latencies.
            ns: ns[numbers[numbers.len() / 2]],
            pairs,
            distances: distances
                .iter()
                .map(|distance| distance.name().to_owned())
                .collect(),
        }
    };
    classes(&ns).into_iter().map(class).collect()
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
    let median = |state| pair.median_ns(state, Operation::ExchangeAdd);
    let line = median(State::OwnL1).zip(median(State::OtherModified));
    let mut sweeps = Vec::new();
    if let Some((own_ns, taken_ns)) = line {
        let line = LineCosts { own_ns, taken_ns };
        sweeps.push(sweep::of_line(own, other, line, clocks)?);
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

/// Notes what speaks against what was measured.
fn doubt(costs: &mut MachineCosts, topology: &Topology) {
    let mut by_distance: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for class in &costs.classes {
        for distance in &class.distances {
            by_distance.entry(distance).or_default().push(class.ns);
        }
    }
    let unlike = by_distance.into_iter().filter(|(_, ns)| ns.len() > 1);
    let mut doubts: Vec<Doubt> = unlike
        .map(|(distance, ns)| Doubt::Unlike {
            distance: distance.to_owned(),
            ns,
        })
        .collect();
    for pair in &costs.pairs {
        let (own, other) = (pair.own, pair.other);
        if let Some(ratio) = pair.same_core_ratio
            && let Some(distance) = topology.distance(Cpu(own), Cpu(other))
            && (distance == Distance::Core) != (ratio >= ONE_CORE)
        {
            doubts.push(Doubt::Cores {
                own,
                other,
                kernel_says_one: distance == Distance::Core,
                ratio,
            });
        }
        let median = |state| pair.median_ns(state, Operation::ChainedLoad);
        let both = median(State::OwnL1).zip(median(State::OtherModified));
        if both.is_some_and(|(own, other)| other < DIFFERENCE * own) {
            doubts.push(Doubt::NoDifference { own, other });
        }
    }
    costs.doubts.extend(doubts);
}

#[cfg(test)]
mod tests {
    use cohtrace_platform::machine::CpuPlace;

    use super::*;

    /// Two packages, each of a node with two caches, each of two cores with two threads.
    fn large() -> Topology {
        let place = |cpu: u32| CpuPlace {
            node: Some(cpu / 8),
            package: Some(cpu / 8),
            core: Some(Cpu(cpu / 2 * 2)),
            last_cache: Some(Cpu(cpu / 4 * 4)),
        };
        Topology {
            cpus: (0..16).map(|cpu| (Cpu(cpu), place(cpu))).collect(),
        }
    }

    fn survey(pairs: Pairs) -> Survey {
        Survey {
            pairs,
            states: State::ALL.to_vec(),
            contention: false,
            time: None,
            real_time: false,
        }
    }

    /// A map that agrees with the kernel, but for the pairs of a CPU that is in truth in the other package.
    fn map(topology: &Topology, lies: Option<u32>) -> Vec<Passage> {
        let pairs = survey(Pairs::All).pairs(topology).into_iter();
        pairs
            .map(|(own, other)| {
                let lied = lies.is_some_and(|cpu| (own.0 == cpu) != (other.0 == cpu));
                let ns = match topology.distance(own, other) {
                    _ if lied => 200.0,
                    Some(Distance::Core) => 5.0,
                    Some(Distance::Cache) => 20.0,
                    Some(Distance::Node) => 70.0,
                    _ => 200.0,
                };
                Passage {
                    own: own.0,
                    other: other.0,
                    ns,
                }
            })
            .collect()
    }

    fn measured(map: Vec<Passage>, topology: &Topology) -> MachineCosts {
        MachineCosts {
            schema: SCHEMA,
            boot_id: "this".to_owned(),
            begun_unix_s: 0,
            took_s: 0.0,
            complete: true,
            classes: found_classes(&map, topology),
            map,
            pairs: Vec::new(),
            contention: Vec::new(),
            doubts: Vec::new(),
        }
    }

    #[test]
    fn classes_are_one_pair_of_each_distance_and_three_more_and_all_are_all() {
        let topology = large();
        let pairs = survey(Pairs::Classes).pairs(&topology);
        assert_eq!(pairs.len(), 4 + MORE_PAIRS);
        let distances = pairs.iter().map(|(a, b)| topology.distance(*a, *b));
        let mut distances: Vec<_> = distances.take(4).collect();
        distances.dedup();
        assert_eq!(distances.len(), 4);
        let mut all = survey(Pairs::All).pairs(&topology);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16 * 15 / 2);
        // Whoever looks at a tenth of them has seen all kinds.
        let mut early: Vec<_> = survey(Pairs::All).pairs(&topology)[..24]
            .iter()
            .map(|(a, b)| topology.distance(*a, *b))
            .collect();
        early.sort_unstable();
        early.dedup();
        assert_eq!(early.len(), 4);
    }

    #[test]
    fn a_third_cpu_is_on_a_core_of_its_own_and_near() {
        let topology = large();
        assert_eq!(third(&topology, Cpu(0), Cpu(2)), Some(Cpu(4)));
        assert_eq!(third(&topology, Cpu(0), Cpu(1)), Some(Cpu(2)));
        let two = Topology {
            cpus: large().cpus.into_iter().take(2).collect(),
        };
        assert_eq!(third(&two, Cpu(0), Cpu(1)), None);
    }

    #[test]
    fn what_contradicts_the_kernel_is_said_and_what_agrees_is_not() {
        let topology = large();
        let mut honest = measured(map(&topology, None), &topology);
        assert_eq!(honest.classes.len(), 4);
        doubt(&mut honest, &topology);
        assert_eq!(honest.doubts, []);
        let mut lied = measured(map(&topology, Some(3)), &topology);
        doubt(&mut lied, &topology);
        let unlike = |doubt: &Doubt| match doubt {
            Doubt::Unlike { distance, ns } => Some((distance.clone(), ns.clone())),
            _ => None,
        };
        let unlike: Vec<_> = lied.doubts.iter().filter_map(unlike).collect();
        let expected = [
            ("one-cache", vec![20.0, 200.0]),
            ("one-core", vec![5.0, 200.0]),
            ("one-node", vec![70.0, 200.0]),
        ];
        assert_eq!(unlike, expected.map(|(name, ns)| (name.to_owned(), ns)));
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
