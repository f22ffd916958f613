//! The lines of a part of memory, folded as their accesses come.

use std::hint::black_box;

use super::{
    LoadOptions, LoadTotals,
    load::Counted,
    streaks::{Gathering, Patterns, Streak},
    worlds::{Asked, Effect, Worlds},
};
use crate::{
    access::{LineKey, Op},
    analysis::{Instruction, parts::Part, served::OnLine},
    coherence::{LastRead, Lines, Outcome, Request},
};

/// One access to a line, before it is served in the line's worlds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) key: LineKey,
    pub(super) asked: Asked,
    pub(super) instruction: Instruction,
    /// As in [`Measured::repeats`](crate::access::Measured::repeats).
    pub(super) repeats: u32,
    pub(super) op: Op,
    pub(super) locked: bool,
    pub(super) offset: u8,
    pub(super) size: u8,
    /// It is counted; else only the state that it leaves is of interest, and its load is not hinted.
    pub(super) counts: bool,
}

impl Step {
    /// What counts here of an access: one that takes no more room than it must, since there are chunks of them on their way
    /// to each shard.
    #[inline]
    pub(super) fn new(key: LineKey, asked: Asked, access: &OnLine) -> Step {
        Step {
            key,
            asked,
            instruction: access.instruction,
            repeats: access.repeats,
            op: access.op,
            locked: access.locked,
            offset: access.offset,
            size: access.size,
            counts: true,
        }
    }
}

/// A line.
#[derive(Clone, Debug)]
struct LineState {
    worlds: Worlds,
    read: LastRead,
    /// Empty where none are kept.
    streaks: Vec<Streak>,
}

/// Which lines' streaks are kept.
#[derive(Clone, Debug)]
struct Keeping {
    /// Streaks there is room for, of all orders.
    room: usize,
    kept: usize,
    /// Lines of this rank or a higher one are kept: one in 2^level.
    level: u32,
    /// Streaks were left out of lines that have too many.
    cut: bool,
}

/// Lines that accesses are given to.
#[derive(Debug)]
pub(super) struct Shard {
    options: LoadOptions,
    lines: Lines,
    states: Vec<LineState>,
    /// The last streak of each line.
    latest: Vec<Streak>,
    keeping: Option<Keeping>,
    /// Finished lines of this order, with their ranks.
    ended: Vec<(u32, Vec<Streak>)>,
    /// Those of the orders before.
    orders: Vec<Vec<(u32, Vec<Streak>)>>,
}

/// What an access changes of its line's last streak.
enum Change {
    /// It asks for nothing, whichever loads are hinted.
    Nothing,
    /// It is the first store.
    Stores,
    /// It begins another one.
    Begins,
}

/// What was found of loads, in all shards of a group.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// By number of the load.
    pub(super) loads: Vec<Counted>,
    pub(super) effects: Vec<Effect>,
    pub(super) totals: LoadTotals,
}

/// The streaks of a shard's lines.
#[derive(Debug, Default)]
pub(super) struct ShardStreaks {
    orders: Vec<Vec<(u32, Vec<Streak>)>>,
    pub(super) level: u32,
    pub(super) cut: bool,
}

/// A number of a line by which its streaks are kept or not, or of a stretch of memory by which it goes to its shard.
fn mixed(key: LineKey) -> u64 {
    use std::hash::BuildHasher as _;
    let hash = rustc_hash::FxBuildHasher.hash_one(key);
    // The finalizer of MurmurHash3 (Appleby, 2011): FxHash leaves patterns of addresses in the low bits.
    let hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// Of 2^n lines, one has the rank n or a higher one.
fn rank(key: LineKey) -> u32 {
    mixed(key).trailing_zeros()
}

/// A shard's part of what there is in all.
fn part(options: &LoadOptions, all: usize) -> usize {
    all.div_ceil(options.shards.max(1))
}

fn no_lines(options: &LoadOptions) -> Lines {
    Lines::up_to(options.line_size, part(options, options.bounds.lines))
}

impl Found {
    /// Counts the access, and looks what it changes of the line's last streak.
    fn go_on(&mut self, latest: &mut Streak, step: &Step) -> Change {
        let asked = &step.asked;
        if step.counts {
            self.totals.accesses += 1 + u64::from(step.repeats);
        }
        let goes_on = latest.goes_on(asked.cpu, step.counts);
        if goes_on && latest.covers(asked.intent) {
            return Change::Nothing;
        }
        if let Some(number) = asked.number.map(|number| number as usize) {
            if number >= self.loads.len() {
                self.loads.resize_with(number + 1, Counted::default);
                self.effects.resize(number + 1, Effect::default());
            }
            self.effects[number].hinted = asked.hinted;
        }
        if goes_on {
            *latest = latest.storing();
            return Change::Stores;
        }
        *latest = Streak::beginning(asked.cpu, asked.intent, asked.number);
        if !step.counts {
            *latest = latest.uncounted();
        }
        Change::Begins
    }
}

impl Shard {
    /// With room for a part of what there is in all.
    pub(super) fn new(options: &LoadOptions) -> Shard {
        Shard {
            lines: no_lines(options),
            states: Vec::new(),
            latest: Vec::new(),
            keeping: (options.bounds.streaks > 0).then(|| Keeping {
                room: part(options, options.bounds.streaks),
                kept: 0,
                level: 0,
                cut: false,
            }),
            ended: Vec::new(),
            orders: Vec::new(),
            options: *options,
        }
    }

    /// Takes a window's accesses: a stretch of its line that starts from an unknown state, which the first store makes
    /// known. Up to and with it, nothing counts.
    fn serve_window(&mut self, steps: Vec<Step>, found: &mut Found) {
        let mut line = LineState::new(self.options);
        let mut latest = Streak::NONE;
        let mut known = false;
        let Some(key) = steps.first().map(|step| step.key) else {
            return;
        };
        for mut step in steps {
            if !known {
                step.counts = false;
                step.asked.number = None;
                step.asked.hinted = false;
                known = step.op.stores();
            }
            let begun = line.take(&step, &mut latest, self.options, found);
            line.streaks.extend(begun);
        }
        let count = line.streaks.len();
        self.end_line(key, line, found);
        self.make_room(count);
    }

    fn keep(&mut self, at: usize, key: LineKey, streak: Streak) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        if keeping.level > 0 && rank(key) < keeping.level {
            return;
        }
        let streaks = &mut self.states[at].streaks;
        if streaks.len() >= self.options.bounds.streaks_per_line {
            keeping.cut = true;
            return;
        }
        if streaks.is_empty() {
            // Most lines are one processor's.
            streaks.reserve_exact(1);
        }
        streaks.push(streak);
        self.make_room(1);
    }

    /// Counts streaks that were added, and keeps half of the lines where there is no more room.
    fn make_room(&mut self, added: usize) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        keeping.kept += added;
        while keeping.kept > keeping.room && keeping.level < u64::BITS {
            keeping.level += 1;
            keeping.kept = 0;
            for (key, id) in self.lines.iter() {
                let streaks = &mut self.states[id as usize].streaks;
                if rank(key) < keeping.level {
                    *streaks = Vec::new();
                }
                keeping.kept += streaks.len();
            }
            for order in self.orders.iter_mut().chain([&mut self.ended]) {
                order.retain(|(rank, _)| *rank >= keeping.level);
                keeping.kept += order
                    .iter()
                    .map(|(_, streaks)| streaks.len())
                    .sum::<usize>();
            }
        }
    }

    fn end_line(&mut self, key: LineKey, line: LineState, found: &mut Found) {
        line.worlds.finish(&mut found.effects);
        let rank = rank(key);
        if self
            .keeping
            .as_ref()
            .is_some_and(|keeping| rank >= keeping.level)
        {
            self.ended.push((rank, line.streaks));
        }
    }

    /// The order is over: what comes next is another one, on lines of its own.
    fn end_order(&mut self, found: &mut Found) {
        let mut keys: Vec<(u32, LineKey)> = self.lines.iter().map(|(key, id)| (id, key)).collect();
        keys.sort_unstable();
        let states = std::mem::take(&mut self.states);
        for ((_, key), line) in keys.into_iter().zip(states) {
            self.end_line(key, line, found);
        }
        self.latest.clear();
        self.lines = no_lines(&self.options);
        self.orders.push(std::mem::take(&mut self.ended));
    }

    pub(super) fn finish(self) -> ShardStreaks {
        ShardStreaks {
            orders: self.orders,
            level: (self.keeping.as_ref()).map_or(0, |keeping| keeping.level),
            cut: self.keeping.is_some_and(|keeping| keeping.cut),
        }
    }
}

/// What a shard is told besides the accesses of the order.
pub(super) enum Told {
    /// The accesses of a window.
    Window(Vec<Step>),
    /// What comes next is another order.
    EndOrder,
}

impl Part for Shard {
    type Common = Found;
    type Step = Step;
    type Told = Told;
    type Line = usize;

    fn line(&mut self, step: &Step) -> Option<usize> {
        let at = self.lines.line(step.key)?.id as usize;
        if at == self.states.len() {
            self.states.push(LineState::new(self.options));
            self.latest.push(Streak::NONE);
        }
        Some(at)
    }

    fn look_at(&self, _: &[Step], lines: &[Option<usize>]) {
        let known = lines.iter().flatten();
        black_box(known.fold(0, |seen, line| {
            seen + usize::from(self.latest[*line] == Streak::NONE)
                + self.states[*line].streaks.len()
        }));
    }

    fn serve(&mut self, step: &Step, line: Option<usize>, found: &mut Found) {
        let Some(at) = line else {
            found.totals.beyond += u64::from(step.counts);
            return;
        };
        let (line, latest) = (&mut self.states[at], &mut self.latest[at]);
        if let Some(streak) = line.take(step, latest, self.options, found) {
            self.keep(at, step.key, streak);
        }
    }

    fn told(&mut self, what: Told, found: &mut Found) {
        match what {
            Told::Window(steps) => self.serve_window(steps, found),
            Told::EndOrder => self.end_order(found),
        }
    }
}

/// Bytes of memory whose lines are in one shard: numbers of neighbours are found together.
const NEIGHBOURS: u64 = 2048;

/// The shard of a line.
pub(super) fn shard_of(key: LineKey, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    let neighbours = LineKey(key.0.at(key.0.position() & !(NEIGHBOURS - 1)));
    (mixed(neighbours) >> 48) as usize % shards
}

impl ShardStreaks {
    /// The streaks of an order, of the lines that a level keeps.
    pub(super) fn patterns(&mut self, order: usize, level: u32) -> Patterns {
        let mut gathering = Gathering::default();
        let lines = self.orders.get_mut(order).map(std::mem::take);
        for (rank, streaks) in lines.unwrap_or_default() {
            if rank >= level {
                gathering.add(streaks.into_boxed_slice(), 1);
            }
        }
        gathering.finish()
    }
}

impl LineState {
    fn new(options: LoadOptions) -> LineState {
        LineState {
            worlds: Worlds::new(options.protocol),
            read: LastRead::default(),
            streaks: Vec::new(),
        }
    }

    /// Takes the next access, and gives the streak that it begins, if it begins one. `latest` is the line's last streak,
    /// kept or not.
    fn take(
        &mut self,
        step: &Step,
        latest: &mut Streak,
        options: LoadOptions,
        found: &mut Found,
    ) -> Option<Streak> {
        let before = *latest;
        let begun = match found.go_on(latest, step) {
            Change::Nothing => return None,
            Change::Stores => {
                let last = self.streaks.last_mut();
                if let Some(last) = last.filter(|last| **last == before) {
                    *last = *latest;
                }
                None
            }
            Change::Begins => Some(*latest),
        };
        self.serve(step, options, found);
        begun
    }

    /// Serves an access in all worlds.
    fn serve(&mut self, step: &Step, options: LoadOptions, found: &mut Found) {
        if !step.counts {
            self.worlds.warm_up(step.asked.cpu, step.asked.intent);
            return;
        }
        let most = options.bounds.shadows_per_line;
        let outcome = self.worlds.serve(&step.asked, most, &mut found.effects);
        if let Some(request) = outcome.request {
            self.count(step, request, &outcome, found);
        }
    }

    fn count(&mut self, step: &Step, request: Request, outcome: &Outcome, found: &mut Found) {
        let messages = outcome.transactions.total();
        found.totals.transactions += messages;
        if step.asked.for_load {
            found.totals.load_transactions += messages;
        }
        let read = self
            .read
            .observe(step.asked.cpu, step.asked.number, request);
        if let Some(read) = read {
            found.loads[read as usize].followed_by(step);
        }
        if let Some(number) = step.asked.number {
            found.loads[number as usize].request(step, outcome.found);
        }
    }
}
