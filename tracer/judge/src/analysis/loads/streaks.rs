//! What happened to a line, as far as it can cost messages, whichever loads are hinted.
//!
//! While one processor has a line to itself, only its first access can miss and only its first store can ask for
//! ownership, under any set of hints. So an order is kept as *streaks*, each the accesses of one processor between those of
//! others, which is a few bytes for each time that the line may have moved. Any set of hints is then counted without the
//! order:
//!
//! ```text
//!   accesses   1: load p, load r, store q   2: load p   1: store q
//!   streaks    (1, load p, stores)          (2, load p)  (1, stores)
//! ```
//!
//! Which processor is which changes no count: processors are numbered anew on each line, and lines with equal streaks are
//! kept once, with their number.

use std::{collections::BTreeSet, ops::Range, thread};

use rustc_hash::FxHashMap;

use super::worlds::{Asked, Effect, Worlds};
use crate::{
    access::Cpu,
    analysis::Instruction,
    coherence::{Directory, Intent, Protocol},
};

/// The accesses of one processor between those of others, in a word: processor, whether it stores, whether it counts, and
/// its first access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Streak(u64);

const CPU_SHIFT: u32 = 32;
const STORES: u64 = 1 << 31;
/// Of the streak only the state that it leaves counts.
const UNCOUNTED: u64 = 1 << 30;
const FIRST: u64 = UNCOUNTED - 1;
const FIRST_STORES: u64 = 0;
const FIRST_OWNS: u64 = 1;
const FIRST_LOADS: u64 = 2;
/// A load that is counted; its number is added.
const FIRST_COUNTED: u64 = 3;
/// Lines of a part of an order that one thread runs.
const LINES_PER_THREAD: usize = 1 << 12;
/// Lines with more streaks are not looked for among others: no two are equal.
const LONG: usize = 64;

impl Streak {
    /// Of no processor.
    pub(super) const NONE: Streak = Streak(u64::MAX);

    /// Begins with an access; `number` is of a load that is counted.
    pub(super) fn beginning(cpu: Cpu, intent: Intent, number: Option<u32>) -> Streak {
        let first = match (intent, number) {
            (Intent::Store, _) => FIRST_STORES | STORES,
            (Intent::BiasedLoad, _) => FIRST_OWNS,
            (Intent::Load, None) => FIRST_LOADS,
            (Intent::Load, Some(number)) => FIRST_COUNTED + u64::from(number),
        };
        Streak(u64::from(cpu.0) << CPU_SHIFT | first)
    }

    fn cpu(self) -> Cpu {
        Cpu((self.0 >> CPU_SHIFT) as u32)
    }

    /// Whether an access of the processor, which counts or not, goes on with it.
    pub(super) fn goes_on(self, cpu: Cpu, counts: bool) -> bool {
        self != Streak::NONE && self.cpu() == cpu && self.counts() == counts
    }

    fn counts(self) -> bool {
        self.0 & UNCOUNTED == 0
    }

    /// Whether an access of the streak's processor asks for nothing, whichever loads are hinted.
    pub(super) fn covers(self, intent: Intent) -> bool {
        intent != Intent::Store || self.0 & STORES != 0
    }

    /// The same, with a store.
    pub(super) fn storing(self) -> Streak {
        Streak(self.0 | STORES)
    }

    /// The same, of which nobody knows what it cost.
    pub(super) fn uncounted(self) -> Streak {
        Streak(self.0 | UNCOUNTED)
    }

    /// The number of the load that it begins with.
    fn load(self) -> Option<u32> {
        let number = (self.0 & FIRST).checked_sub(FIRST_COUNTED)?;
        Some(number as u32)
    }

    /// Its accesses that can cost messages: the first, and the first store behind it.
    fn asks(self, is_hinted: &impl Fn(u32) -> bool) -> [Option<Asked>; 2] {
        let cpu = self.cpu();
        let load = |intent, number: Option<u32>| Asked {
            cpu,
            intent,
            number,
            hinted: number.is_some_and(is_hinted),
            for_load: true,
        };
        let first = match self.0 & FIRST {
            FIRST_STORES => None,
            FIRST_OWNS => Some(load(Intent::BiasedLoad, None)),
            FIRST_LOADS => Some(load(Intent::Load, None)),
            _ => Some(load(Intent::Load, self.load())),
        };
        let store = (self.0 & STORES != 0).then_some(Asked {
            cpu,
            intent: Intent::Store,
            number: None,
            hinted: false,
            for_load: false,
        });
        [first, store]
    }
}

/// Lines by their streaks: each kind once, with how many lines are so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Patterns {
    lines: Vec<(Box<[Streak]>, u64)>,
}

/// Gathers [`Patterns`].
#[derive(Clone, Debug, Default)]
pub(super) struct Gathering {
    lines: Vec<(Box<[Streak]>, u64)>,
    known: FxHashMap<Box<[Streak]>, usize>,
}

impl Gathering {
    /// Adds as many lines of these streaks.
    pub(super) fn add(&mut self, mut streaks: Box<[Streak]>, times: u64) {
        if streaks.is_empty() {
            return;
        }
        number_anew(&mut streaks);
        if streaks.len() > LONG {
            self.lines.push((streaks, times));
            return;
        }
        if let Some(at) = self.known.get(&streaks) {
            self.lines[*at].1 += times;
        } else {
            self.known.insert(streaks.clone(), self.lines.len());
            self.lines.push((streaks, times));
        }
    }

    pub(super) fn join(&mut self, other: Patterns) {
        for (streaks, times) in other.lines {
            self.add(streaks, times);
        }
    }

    pub(super) fn finish(self) -> Patterns {
        Patterns { lines: self.lines }
    }
}

/// Numbers a line's processors by their first streak on it.
fn number_anew(streaks: &mut [Streak]) {
    let mut numbers: FxHashMap<u64, u64> = FxHashMap::default();
    // Most lines have few processors, which come one after the other.
    let mut last = None;
    for streak in streaks {
        let cpu = streak.0 >> CPU_SHIFT;
        let number = match last {
            Some((known, number)) if known == cpu => number,
            _ => {
                let next = numbers.len() as u64;
                *numbers.entry(cpu).or_insert(next)
            }
        };
        last = Some((cpu, number));
        streak.0 = streak.0 & !(u64::MAX << CPU_SHIFT) | number << CPU_SHIFT;
    }
}

/// The streaks of one or more orders, by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineStreaks {
    /// Of all orders, one behind the other.
    lines: Vec<(Box<[Streak]>, u64)>,
    /// Where each order's lines end.
    ends: Vec<usize>,
    /// Loads by their numbers.
    loads: Vec<Instruction>,
    protocol: Protocol,
    shadows_per_line: usize,
    whole: bool,
}

/// Messages of a set of hints, and what each load's hint changes beside the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreakRun {
    /// Messages of all accesses, and of those the messages that serve loads.
    pub messages: (u64, u64),
    loads: Vec<RunLoad>,
}

/// A load in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLoad {
    /// Its requests.
    pub requests: u64,
    effect: Effect,
}

impl RunLoad {
    /// Messages that its hint adds, in episodes that add some.
    pub fn lost(&self) -> u64 {
        self.effect.lost
    }

    /// Messages saved less messages added.
    pub fn net(&self) -> i64 {
        self.effect.saved as i64 - self.effect.lost as i64
    }

    /// Messages that serve loads, with the hint less those without.
    pub fn load_messages_added(&self) -> i64 {
        self.effect.load_messages_added
    }

    /// Loads that cost more because of the hint.
    pub fn readers_hurt(&self) -> u64 {
        self.effect.readers_hurt
    }
}

impl StreakRun {
    fn new(loads: usize, is_hinted: impl Fn(u32) -> bool) -> StreakRun {
        let of = |number| RunLoad {
            effect: Effect {
                hinted: is_hinted(number),
                ..Effect::default()
            },
            ..RunLoad::default()
        };
        StreakRun {
            messages: (0, 0),
            loads: (0..loads as u32).map(of).collect(),
        }
    }

    /// The load of that number.
    pub fn load(&self, number: u32) -> &RunLoad {
        &self.loads[number as usize]
    }

    fn join(&mut self, other: &StreakRun) {
        self.messages.0 += other.messages.0;
        self.messages.1 += other.messages.1;
        for (load, other) in self.loads.iter_mut().zip(&other.loads) {
            load.requests += other.requests;
            load.effect.add(&other.effect, 1);
        }
    }
}

impl LineStreaks {
    pub(super) fn new(
        orders: Vec<Patterns>,
        loads: Vec<Instruction>,
        protocol: Protocol,
        shadows_per_line: usize,
        whole: bool,
    ) -> LineStreaks {
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        for mut order in orders {
            lines.append(&mut order.lines);
            ends.push(lines.len());
        }
        LineStreaks {
            lines,
            ends,
            loads,
            protocol,
            shadows_per_line,
            whole,
        }
    }

    /// Kinds of lines: those with equal streaks are one.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// How many orders there are.
    pub fn orders(&self) -> usize {
        self.ends.len()
    }

    /// The kinds of lines of an order.
    pub fn lines_of_order(&self, order: usize) -> Range<usize> {
        let start = order.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[order]
    }

    /// All of them.
    pub fn all_lines(&self) -> Range<usize> {
        0..self.lines.len()
    }

    /// Streaks of a kind of line.
    pub fn length(&self, line: usize) -> usize {
        self.lines[line].0.len()
    }

    /// Lines of the kind.
    pub fn times(&self, line: usize) -> u64 {
        self.lines[line].1
    }

    /// Everything is kept; else counts are of a part of the lines, or of the beginning of some.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Loads by the numbers that [`LineStreaks::loads_of`] gives.
    pub fn loads(&self) -> &[Instruction] {
        &self.loads
    }

    /// Numbers of the loads that a streak of the line begins with, as often as they do: no other hint changes anything on
    /// it.
    pub fn loads_of(&self, line: usize) -> impl Iterator<Item = u32> + '_ {
        self.lines[line].0.iter().filter_map(|streak| streak.load())
    }

    /// Messages of all lines of a kind, and of those the messages that serve loads, where these loads are hinted.
    pub fn count(&self, line: usize, is_hinted: impl Fn(u32) -> bool) -> (u64, u64) {
        let (streaks, times) = &self.lines[line];
        let mut directory = Directory::under(self.protocol);
        let (mut all, mut of_loads) = (0, 0);
        for streak in streaks {
            let counts = u64::from(streak.counts());
            for asked in streak.asks(&is_hinted).into_iter().flatten() {
                let intent = if asked.hinted {
                    Intent::BiasedLoad
                } else {
                    asked.intent
                };
                let messages = directory.access(asked.cpu, intent).transactions.total() * counts;
                all += messages;
                of_loads += if asked.for_load { messages } else { 0 };
            }
        }
        (all * times, of_loads * times)
    }

    /// Runs some lines with these loads hinted: as [`LineStreaks::run`].
    pub fn run_hinted(&self, lines: Range<usize>, hinted: &BTreeSet<Instruction>) -> StreakRun {
        let known: Vec<bool> = (self.loads.iter())
            .map(|load| hinted.contains(load))
            .collect();
        self.run(lines, |load| known[load as usize])
    }

    /// Runs some lines with these loads hinted, as a table does that is given the order; on several threads.
    pub fn run(&self, lines: Range<usize>, is_hinted: impl Fn(u32) -> bool + Sync) -> StreakRun {
        let threads = thread::available_parallelism().map_or(1, Into::into);
        let part = lines.len().div_ceil(threads).max(LINES_PER_THREAD);
        let mut parts = Vec::new();
        let mut start = lines.start;
        while start < lines.end {
            let end = (start + part).min(lines.end);
            parts.push(start..end);
            start = end;
        }
        let mut all = StreakRun::new(self.loads.len(), &is_hinted);
        if let [one] = &parts[..] {
            self.run_part(one.clone(), &is_hinted, &mut all);
            return all;
        }
        let is_hinted = &is_hinted;
        thread::scope(|scope| {
            let started: Vec<_> = (parts.into_iter())
                .map(|part| {
                    scope.spawn(move || {
                        let mut run = StreakRun::new(self.loads.len(), is_hinted);
                        self.run_part(part, is_hinted, &mut run);
                        run
                    })
                })
                .collect();
            for thread in started {
                match thread.join() {
                    Ok(run) => all.join(&run),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        all
    }

    fn run_part(&self, lines: Range<usize>, is_hinted: &impl Fn(u32) -> bool, run: &mut StreakRun) {
        let mut effects: Vec<Effect> = run.loads.iter().map(|load| load.effect).collect();
        let mut asking: Vec<u32> = Vec::new();
        for (streaks, times) in &self.lines[lines] {
            let mut worlds = Worlds::new(self.protocol);
            asking.clear();
            for streak in streaks {
                asking.extend(streak.load());
                for asked in streak.asks(is_hinted).into_iter().flatten() {
                    if !streak.counts() {
                        worlds.warm_up(asked.cpu, asked.intent);
                        continue;
                    }
                    let outcome = worlds.serve(&asked, self.shadows_per_line, &mut effects);
                    let messages = outcome.transactions.total() * times;
                    run.messages.0 += messages;
                    run.messages.1 += if asked.for_load { messages } else { 0 };
                    if let Some(number) = asked.number.filter(|_| outcome.request.is_some()) {
                        run.loads[number as usize].requests += times;
                    }
                }
            }
            worlds.finish(&mut effects);
            asking.sort_unstable();
            asking.dedup();
            for number in &asking {
                let hinted = is_hinted(*number);
                let none = Effect {
                    hinted,
                    ..Effect::default()
                };
                let effect = std::mem::replace(&mut effects[*number as usize], none);
                run.loads[*number as usize].effect.add(&effect, *times);
            }
        }
    }
}
