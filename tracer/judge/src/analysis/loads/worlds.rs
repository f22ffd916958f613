//! One line in several worlds: as it was, and with one load deciding otherwise.

use crate::{
    access::Cpu,
    coherence::{Directory, Intent, Outcome, Protocol, State},
};

/// One access, as far as it can cost messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) cpu: Cpu,
    /// Without a hint.
    pub(super) intent: Intent,
    /// Of a load that is counted.
    pub(super) number: Option<u32>,
    /// That load is hinted in the world as it was.
    pub(super) hinted: bool,
    /// Its messages serve a load: a prefetch for ownership stands for the load behind it.
    pub(super) for_load: bool,
}

impl Asked {
    fn intent_of(&self, hinted: bool) -> Intent {
        if hinted {
            Intent::BiasedLoad
        } else {
            self.intent
        }
    }
}

/// What a load's hint changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// The load is hinted in the world as it was.
    pub(super) hinted: bool,
    pub(super) saved: u64,
    pub(super) lost: u64,
    pub(super) load_messages_added: i64,
    pub(super) readers_hurt: u64,
    pub(super) unknown: u64,
}

impl Effect {
    /// Takes in an episode.
    fn close(&mut self, net: i64) {
        let side = if net > 0 {
            &mut self.saved
        } else {
            &mut self.lost
        };
        *side += net.unsigned_abs();
    }

    /// Takes in what the hint changes on other lines, so many times.
    pub(super) fn add(&mut self, other: &Effect, times: u64) {
        self.hinted |= other.hinted;
        self.saved += other.saved * times;
        self.lost += other.lost * times;
        self.load_messages_added += other.load_messages_added * times as i64;
        self.readers_hurt += other.readers_hurt * times;
        self.unknown += other.unknown * times;
    }
}

/// The line where one load decides otherwise, since a miss of that load.
#[derive(Clone, Debug)]
struct Shadow {
    number: u32,
    directory: Directory,
    /// Messages that the hint saved in this episode so far; negative where it added some.
    net: i64,
}

/// The worlds of a line.
#[derive(Clone, Debug)]
pub(super) struct Worlds {
    directory: Directory,
    shadows: Vec<Shadow>,
}

impl Worlds {
    pub(super) fn new(protocol: Protocol) -> Worlds {
        Worlds {
            directory: Directory::under(protocol),
            shadows: Vec::new(),
        }
    }

    /// Serves an access of which only the state that it leaves is of interest.
    pub(super) fn warm_up(&mut self, cpu: Cpu, intent: Intent) {
        self.directory.access(cpu, intent);
    }

    /// Serves an access in all worlds; `effects` are those of the loads by their numbers, and `most` shadows run at a time.
    pub(super) fn serve(&mut self, asked: &Asked, most: usize, effects: &mut [Effect]) -> Outcome {
        if let Some(number) = asked.number
            && self.directory.state(asked.cpu) == State::Invalid
        {
            self.fork(number, most, effects);
        }
        let intent = asked.intent_of(asked.hinted);
        let outcome = self.directory.access(asked.cpu, intent);
        if !self.shadows.is_empty() {
            self.serve_shadows(asked, &outcome, effects);
        }
        outcome
    }

    /// Starts the shadow of a load that is about to miss.
    fn fork(&mut self, number: u32, most: usize, effects: &mut [Effect]) {
        if most == 0 || self.shadows.iter().any(|shadow| shadow.number == number) {
            return;
        }
        if self.shadows.len() >= most {
            effects[number as usize].unknown += 1;
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

    fn serve_shadows(&mut self, asked: &Asked, outcome: &Outcome, effects: &mut [Effect]) {
        let real = outcome.transactions.total() as i64;
        let directory = &self.directory;
        self.shadows.retain_mut(|shadow| {
            let own = asked.number == Some(shadow.number);
            let intent = asked.intent_of(asked.hinted != own);
            let other = shadow.directory.access(asked.cpu, intent);
            let effect = &mut effects[shadow.number as usize];
            let other_total = other.transactions.total() as i64;
            let (without, with) = if effect.hinted {
                (other_total, real)
            } else {
                (real, other_total)
            };
            shadow.net += without - with;
            if asked.for_load {
                effect.load_messages_added += with - without;
                let missed = if effect.hinted { &other } else { outcome };
                // Where the load itself misses without its hint, what it pays is the price of the hint.
                let is_price = own && missed.request.is_some();
                effect.readers_hurt += u64::from(with > without && !is_price);
            }
            let goes_on = shadow.directory != *directory;
            if !goes_on {
                effect.close(shadow.net);
            }
            goes_on
        });
        if self.shadows.is_empty() && self.shadows.capacity() > 1 {
            self.shadows = Vec::new();
        }
    }

    /// Closes what is open.
    pub(super) fn finish(self, effects: &mut [Effect]) {
        for shadow in self.shadows {
            effects[shadow.number as usize].close(shadow.net);
        }
    }
}
