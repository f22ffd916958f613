//! The fold: accesses in, loads out.

use std::collections::BTreeSet;

use super::{
    LineStreaks, Load, LoadOptions, LoadTotals, Loads,
    load::Counted,
    shard::{Shard, ShardStreaks, Step, Told, shard_of},
    streaks::Gathering,
    worlds::{Asked, Effect},
};
use crate::{
    access::{Access, LineKey, Op, Place, SpaceId},
    analysis::{
        Instruction, instruction_numbers::InstructionNumbers, parts::Parts, served::OnLine,
        split_by_line::split_by_line, window_order::Trapped,
    },
    coherence::Intent,
};

/// What is known of a load without its lines.
#[derive(Clone, Copy, Debug)]
struct Executed {
    hinted: bool,
    executions: u64,
}

/// Folds one order or several, one after the other.
pub struct LoadTable {
    options: LoadOptions,
    hinted: BTreeSet<Instruction>,
    loads: InstructionNumbers<Executed>,
    /// Executions of loads beyond the bound.
    nameless: u64,
    shards: Parts<Shard>,
    counting: bool,
    orders: usize,
    /// Something came since the last order ended.
    open: bool,
}

impl LoadTable {
    /// A world without hints.
    pub fn new(options: LoadOptions) -> LoadTable {
        LoadTable::hinting(options, BTreeSet::new())
    }

    /// A world in which these loads fetch for ownership.
    pub fn hinting(options: LoadOptions, hinted: BTreeSet<Instruction>) -> LoadTable {
        LoadTable {
            hinted,
            loads: InstructionNumbers::default(),
            nameless: 0,
            shards: Parts::new(options.shards, |_| Shard::new(&options)),
            counting: true,
            orders: 0,
            open: false,
            options,
        }
    }

    /// Whether accesses of the order from here on are counted, and its loads hinted, as they are at first. Others change
    /// where lines are, and nothing else: the start of a program, for instance.
    pub fn set_counting(&mut self, counting: bool) {
        self.counting = counting;
    }

    /// Takes the next access of a complete order.
    pub fn observe(&mut self, access: &Access, place: Place, space: SpaceId) {
        let Some(intent) = Intent::of(access.op) else {
            return;
        };
        self.open = true;
        let whole = OnLine::new(access, space, 0, 0);
        let asked = self.asked(&whole, intent);
        let (shards, counts) = (&mut self.shards, self.counting);
        split_by_line(access, place, self.options.line_size, &[], |key, piece| {
            let step = Step {
                offset: piece.offset,
                size: piece.size,
                counts,
                ..Step::new(key, asked, &whole)
            };
            shards.take(shard_of(key, shards.count()), step);
        });
    }

    /// Takes a watch window's accesses, in order: a stretch of its line that starts from an unknown state. Accesses to
    /// other lines are left out.
    pub fn observe_window<'a>(
        &mut self,
        key: LineKey,
        accesses: impl IntoIterator<Item = &'a Trapped>,
    ) {
        self.open = true;
        let mut steps = Vec::new();
        for trapped in accesses {
            let on_line = trapped.on_line(key, self.options.line_size);
            let Some((access, intent)) = on_line.zip(Intent::of(trapped.access.op)) else {
                continue;
            };
            steps.push(Step::new(key, self.asked(&access, intent), &access));
        }
        let shard = shard_of(key, self.shards.count());
        self.shards.tell(shard, Told::Window(steps));
    }

    /// The order is over. What comes next is another one, on lines of its own, whatever their addresses.
    pub fn end_order(&mut self) {
        for shard in 0..self.shards.count() {
            self.shards.tell(shard, Told::EndOrder);
        }
        self.orders += 1;
        self.open = false;
    }

    fn asked(&mut self, access: &OnLine, intent: Intent) -> Asked {
        let load = if self.counting && access.op == Op::Load {
            self.count_load(access)
        } else {
            None
        };
        Asked {
            cpu: access.cpu,
            intent,
            number: load.map(|(number, _)| number),
            hinted: load.is_some_and(|(_, hinted)| hinted),
            for_load: matches!(access.op, Op::Load | Op::PrefetchOwn),
        }
    }

    /// Counts an execution of a load, and says its number, and whether it is hinted; `None` beyond the bound.
    fn count_load(&mut self, access: &OnLine) -> Option<(u32, bool)> {
        let (most, hinted) = (self.options.bounds.loads, &self.hinted);
        let new = || Executed {
            hinted: hinted.contains(&access.instruction),
            executions: 0,
        };
        let Some((number, load)) = self.loads.number(access.instruction, most, new) else {
            self.nameless += access.executions();
            return None;
        };
        load.executions += access.executions();
        Some((number, load.hinted))
    }

    /// What was found, with every episode closed.
    pub fn finish(mut self) -> Loads {
        if self.open || self.orders == 0 {
            self.end_order();
        }
        let (shards, found) = self.shards.finish();
        let mut shards: Vec<ShardStreaks> = shards.into_iter().map(Shard::finish).collect();
        let mut totals = LoadTotals {
            nameless: self.nameless,
            ..LoadTotals::default()
        };
        let mut counted = vec![(Counted::default(), Effect::default()); self.loads.rows().len()];
        for of_group in found {
            totals.add(&of_group.totals);
            let found = of_group.loads.into_iter().zip(&of_group.effects);
            for (all, (found, effect)) in counted.iter_mut().zip(found) {
                all.0.join(found);
                all.1.add(effect, 1);
            }
        }
        let level = shards.iter().map(|shard| shard.level).max().unwrap_or(0);
        let cut = shards.iter().any(|shard| shard.cut);
        let streaks = (self.options.bounds.streaks > 0).then(|| {
            let orders = (0..self.orders).map(|order| {
                let mut gathering = Gathering::default();
                for shard in &mut shards {
                    gathering.join(shard.patterns(order, level));
                }
                gathering.finish()
            });
            let loads = self.loads.rows().iter().map(|(load, _)| *load).collect();
            let shadows = self.options.bounds.shadows_per_line;
            LineStreaks::new(
                orders.collect(),
                loads,
                self.options.protocol,
                shadows,
                level == 0 && !cut,
            )
        });
        let rows = self.loads.rows().iter();
        let mut loads: Vec<Load> = (rows.zip(counted))
            .filter_map(|((instruction, executed), (counted, effect))| {
                let effect = Effect {
                    hinted: executed.hinted,
                    ..effect
                };
                counted.into_load(*instruction, executed.executions, &effect)
            })
            .collect();
        loads.sort_by_key(|load| load.instruction);
        Loads {
            loads,
            totals,
            streaks,
        }
    }
}
