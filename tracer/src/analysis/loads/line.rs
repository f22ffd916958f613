//! One line in several worlds: as it was, and with one load deciding otherwise.

use super::{
    LoadTotals,
    load::Counted,
    streaks::{Room, Streaks},
};
use crate::{
    access::{Access, LineKey, Op},
    analysis::Instruction,
    coherence::{Directory, Intent, LastRead, Outcome, Protocol, Request, State},
};

/// One access, as far as it touches the line.
pub(super) struct Step<'a> {
    pub(super) access: &'a Access,
    pub(super) instruction: Instruction,
    pub(super) intent: Intent,
    /// Of a load that is counted.
    pub(super) number: Option<u32>,
    pub(super) key: LineKey,
    pub(super) offset: u8,
    pub(super) size: u8,
}

/// What an access changes besides its line.
pub(super) struct World<'a> {
    pub(super) loads: &'a mut [Counted],
    pub(super) totals: &'a mut LoadTotals,
    /// Most shadows of a line.
    pub(super) shadows: usize,
    /// Room for streaks; `None` where none are kept.
    pub(super) room: &'a mut Option<Room>,
}

/// The line where one load decides otherwise, since a miss of that load.
#[derive(Clone, Debug)]
struct Shadow {
    number: u32,
    directory: Directory,
    /// Messages that the hint saved in this episode so far; negative where it added some.
    net: i64,
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct LineState {
    directory: Directory,
    read: LastRead,
    shadows: Vec<Shadow>,
    streaks: Streaks,
}

impl Step<'_> {
    /// For the messages that serve loads: a prefetch for ownership stands for the load behind it.
    fn serves_a_load(&self) -> bool {
        matches!(self.access.op, Op::Load | Op::PrefetchOwn)
    }

    fn intent_of(&self, hinted: bool) -> Intent {
        if hinted {
            Intent::BiasedLoad
        } else {
            self.intent
        }
    }
}

impl LineState {
    pub(super) fn new(protocol: Protocol) -> LineState {
        LineState {
            directory: Directory::under(protocol),
            read: LastRead::default(),
            shadows: Vec::new(),
            streaks: Streaks::default(),
        }
    }

    /// Serves an access of which only the state that it leaves is of interest. No load is hinted there: of a window,
    /// the first store makes the state the same in any case.
    pub(super) fn warm_up(&mut self, step: &Step, room: &mut Option<Room>) {
        let cpu = step.access.cpu;
        self.directory.access(cpu, step.intent);
        keep(room, |room| {
            self.streaks.take_uncounted(cpu, step.intent, room)
        });
    }

    /// Serves an access in all worlds.
    pub(super) fn serve(&mut self, step: &Step, world: &mut World) {
        world.totals.accesses += 1 + u64::from(step.access.measured.repeats);
        let cpu = step.access.cpu;
        keep(world.room, |room| {
            self.streaks.take(cpu, step.intent, step.number, room)
        });
        let counted = step.number.map(|number| &mut world.loads[number as usize]);
        let hinted = counted.as_ref().is_some_and(|load| load.hinted);
        if let Some(number) = step.number
            && self.directory.state(cpu) == State::Invalid
        {
            self.fork(number, world);
        }
        let outcome = self.directory.access(cpu, step.intent_of(hinted));
        if !self.shadows.is_empty() {
            self.serve_shadows(step, hinted, &outcome, world.loads);
        }
        if let Some(request) = outcome.request {
            self.count(step, request, &outcome, world);
        }
    }

    /// Starts the shadow of a load that is about to miss.
    fn fork(&mut self, number: u32, world: &mut World) {
        if world.shadows == 0 || self.shadows.iter().any(|shadow| shadow.number == number) {
            return;
        }
        if self.shadows.len() >= world.shadows {
            world.loads[number as usize].facts.unknown += 1;
            return;
        }
        if self.shadows.is_empty() {
            // Most lines are forked once, by the load that touches them first.
            self.shadows.reserve_exact(1);
        }
        self.shadows.push(Shadow {
            number,
            directory: self.directory.clone(),
            net: 0,
        });
    }

    fn serve_shadows(
        &mut self,
        step: &Step,
        hinted: bool,
        outcome: &Outcome,
        loads: &mut [Counted],
    ) {
        let real = outcome.transactions.total() as i64;
        let directory = &self.directory;
        self.shadows.retain_mut(|shadow| {
            let own = step.number == Some(shadow.number);
            let intent = step.intent_of(hinted != own);
            let other = shadow.directory.access(step.access.cpu, intent);
            let load = &mut loads[shadow.number as usize];
            let other_total = other.transactions.total() as i64;
            let (without, with) = if load.hinted {
                (other_total, real)
            } else {
                (real, other_total)
            };
            shadow.net += without - with;
            if step.serves_a_load() {
                load.facts.load_messages_added += with - without;
                let missed = if load.hinted { &other } else { outcome };
                // Where the load itself misses without its hint, what it pays is the price of the hint.
                let is_price = own && missed.request.is_some();
                load.facts.readers_hurt += u64::from(with > without && !is_price);
            }
            let goes_on = shadow.directory != *directory;
            if !goes_on {
                load.close(shadow.net);
            }
            goes_on
        });
        if self.shadows.is_empty() && self.shadows.capacity() > 1 {
            self.shadows = Vec::new();
        }
    }

    fn count(&mut self, step: &Step, request: Request, outcome: &Outcome, world: &mut World) {
        let messages = outcome.transactions.total();
        world.totals.transactions += messages;
        if step.serves_a_load() {
            world.totals.load_transactions += messages;
        }
        let read = self.read.observe(step.access.cpu, step.number, request);
        if let Some(read) = read {
            world.loads[read as usize].followed_by(step);
        }
        if let Some(number) = step.number {
            world.loads[number as usize].request(step, outcome.found);
        }
    }

    /// Closes what is open, and gives the streaks.
    pub(super) fn finish(self, loads: &mut [Counted]) -> Streaks {
        for shadow in self.shadows {
            loads[shadow.number as usize].close(shadow.net);
        }
        self.streaks
    }
}

/// Keeps a streak where there is room; where there is none any more, none are kept.
fn keep(room: &mut Option<Room>, take: impl FnOnce(&mut Room) -> bool) {
    if let Some(left) = room
        && !take(left)
    {
        *room = None;
    }
}
