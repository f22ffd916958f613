//! What a shared word is for: a lock, a counter, the index of a queue. By what the instructions that access it do.
//!
//! Names never decide against the code. Where the code is not known, or fits nothing here, the role is unknown.

mod named;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    access::Tid,
    names::{Outcome, WordUse, Written},
};

pub use named::Named;

/// Stores to a word that are rarer than one in this many are left out: its initialisation, a wrong address.
const RARE: u64 = 200;

/// What a word is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Taken by an atomic, given back by its holder.
    Lock,
    /// Of a lock that is taken in the order of numbers: who is next, or whose turn it is.
    TicketLock,
    /// Added to, and no one looks at the sum.
    Counter,
    /// Counted up, and down to zero.
    #[serde(rename = "reference-count")]
    References,
    /// Added to by threads that use what they get: numbers, slots.
    Numbers,
    /// Moved by compare-and-swap, by a distance from where it was.
    Index,
    /// Moved by compare-and-swap, to the node behind.
    ListHead,
    /// Replaced by compare-and-swap or exchange.
    #[serde(rename = "replaced-value")]
    Replaced,
    /// Set to constants, and tested.
    Flag,
    /// Advanced by one thread, read by others.
    Position,
    /// One of two positions, each of which is advanced by one thread and read by the thread that advances the other.
    QueueEnd,
    /// Advanced around each change of other data, compared by its readers before and after.
    Version,
    /// Written by one thread, read by others.
    #[serde(rename = "published-value")]
    Published,
    /// Written by the threads that take a lock beside it, and no others.
    #[serde(rename = "guarded-data")]
    Guarded,
    /// Written by several threads.
    #[serde(rename = "overwritten-data")]
    Overwritten,
    /// The code does not tell.
    Unknown,
}

/// One instruction of one thread on a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Thread that executed it.
    pub tid: Tid,
    /// It changes the word.
    pub stores: bool,
    /// It reads and changes it at once.
    pub reads_and_writes: bool,
    /// With a lock, or as an exchange.
    pub locked: bool,
    /// Times that it was seen.
    pub count: u64,
    /// What it does; `None` where its code is not known.
    pub does: Option<WordUse>,
}

/// All that is known of one word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Its accesses.
    pub touches: Vec<Touch>,
    /// What a name on the word, or of the function that changes it, says that it is.
    pub named: Option<Named>,
}

impl Touched {
    /// Stores that count.
    fn stores(&self) -> Vec<&Touch> {
        let all = self.stored_times();
        let counts = |touch: &&Touch| touch.stores && touch.count.saturating_mul(RARE) >= all;
        self.touches.iter().filter(counts).collect()
    }

    /// How many stores were seen.
    pub fn stored_times(&self) -> u64 {
        let stores = self.touches.iter().filter(|touch| touch.stores);
        stores.fold(0, |sum, touch| sum.saturating_add(touch.count))
    }

    /// Threads that store.
    pub fn writers(&self) -> BTreeSet<Tid> {
        self.stores().iter().map(|touch| touch.tid).collect()
    }

    /// Threads that only read.
    pub fn readers(&self) -> BTreeSet<Tid> {
        let writers = self.writers();
        let others = self.touches.iter().map(|touch| touch.tid);
        others.filter(|tid| !writers.contains(tid)).collect()
    }

    /// Some thread stores what another touches.
    pub fn is_shared(&self) -> bool {
        let writers = self.writers().len();
        writers > 1 || (writers == 1 && !self.readers().is_empty())
    }

    fn is_read_by(&self, tid: Tid) -> bool {
        let reads = |touch: &&Touch| !touch.stores || touch.reads_and_writes;
        self.touches
            .iter()
            .filter(reads)
            .any(|touch| touch.tid == tid)
    }

    /// No store is atomic.
    fn is_plain(&self) -> bool {
        self.stores().iter().all(|touch| !touch.locked)
    }

    /// Some reader does this with what it read.
    fn is_read_for(&self, outcome: Outcome) -> bool {
        (self.touches.iter()).any(|touch| touch.does == Some(WordUse::Read(outcome)))
    }
}

/// The roles of the words of one line or object, in their order.
pub fn roles(words: &[Touched]) -> Vec<Role> {
    let mut roles: Vec<Role> = words.iter().map(alone).collect();
    turns(words, &mut roles);
    ends(words, &mut roles);
    guarded(words, &mut roles);
    roles
}

/// By the word's own accesses.
fn alone(word: &Touched) -> Role {
    let stores = word.stores();
    let does = |is: &dyn Fn(WordUse) -> bool| stores.iter().any(|s| s.does.is_some_and(is));
    let all = |is: &dyn Fn(WordUse) -> bool| stores.iter().all(|s| s.does.is_some_and(is));
    let writers = word.writers();
    if stores.is_empty() {
        return Role::Unknown;
    }
    if let Some(role) = taken(&stores) {
        return role;
    }
    if does(&drops_reference) && does(&counts_up) {
        return Role::References;
    }
    // Readers in a lock are counted, and it is taken by compare-and-swap of the count: the name tells it from an index. So do
    // references that must not be counted up from none.
    let moves = does(
        &|does| matches!(does, WordUse::CompareAndSwap { expected, .. } if !is_constant(expected)),
    );
    let takes = does(&takes_number);
    if (moves || takes) && writers.len() > 1 {
        match word.named {
            Some(Named::Lock) => return Role::Lock,
            Some(Named::References) => return Role::References,
            None => {}
        }
    }
    if moves
        || does(
            &|does| matches!(does, WordUse::Exchange { new: Written::Other, outcome } if outcome != Outcome::Unused),
        )
    {
        let new = |is: fn(Written) -> bool| {
            does(&move |does| matches!(does, WordUse::CompareAndSwap { new, .. } if is(new)))
        };
        return if new(|new| new == Written::Followed) {
            Role::ListHead
        } else if new(|new| matches!(new, Written::Advanced(_))) {
            Role::Index
        } else {
            Role::Replaced
        };
    }
    if does(&|does| {
        matches!(
            does,
            WordUse::Add {
                outcome: Outcome::Turn,
                ..
            }
        )
    }) {
        return Role::TicketLock;
    }
    if takes {
        return Role::Numbers;
    }
    let advances = |does| match does {
        WordUse::Add { outcome, .. } => outcome == Outcome::Unused,
        WordUse::Write(new) => matches!(new, Written::Advanced(_)),
        _ => false,
    };
    if all(&advances) {
        return match writers.len() {
            // Some reader compares what it read with what it read before.
            _ if word.is_plain() && word.is_read_for(Outcome::Again) => Role::Version,
            1 => Role::Position,
            _ => Role::Counter,
        };
    }
    if all(&raises) {
        return Role::Flag;
    }
    // An atomic that finds it free, or whose code is not known: the name may say that it is given back where nobody saw it.
    let may_take = |store: &&Touch| {
        let takes = |does| sets_constant(does) && !raises(does);
        store.locked && store.does.is_none_or(takes)
    };
    let may_count = |store: &&Touch| store.locked && store.does.is_none_or(counts_up);
    if writers.len() > 1 {
        match word.named {
            Some(Named::Lock) if stores.iter().any(may_take) => return Role::Lock,
            Some(Named::References) if stores.iter().all(may_count) => return Role::References,
            _ => {}
        }
    }
    let only_writes = stores.iter().all(|store| !store.reads_and_writes);
    match writers.len() {
        1 if only_writes => Role::Published,
        _ if only_writes => Role::Overwritten,
        _ => Role::Unknown,
    }
}

/// A word that is taken by an atomic that finds it free, and given back. Where one thread gives what another takes, it is
/// a flag between them.
fn taken(stores: &[&Touch]) -> Option<Role> {
    let mut takers: BTreeSet<Tid> = BTreeSet::new();
    // What is put there at all.
    let mut put: BTreeSet<Option<i64>> = BTreeSet::new();
    let mut is_given_back = false;
    for store in stores {
        let Some(does) = store.does else { continue };
        let (takes, value) = match does {
            WordUse::CompareAndSwap { expected, new } => (is_constant(expected), Some(new)),
            WordUse::Exchange { new, outcome } => {
                let looks = !matches!(outcome, Outcome::Unused | Outcome::Unknown);
                (looks && is_constant(new), Some(new))
            }
            WordUse::Bits(outcome) => {
                is_given_back |= outcome == Outcome::Unused;
                (store.locked && outcome == Outcome::Used, None)
            }
            WordUse::Write(new) => (false, Some(new)),
            WordUse::Add { step, .. } => {
                is_given_back |= step.is_some_and(|step| step < 0);
                (false, None)
            }
            WordUse::Read(_) => continue,
        };
        let constant = match value {
            Some(Written::Constant(value)) => Some(value),
            _ => None,
        };
        if takes {
            takers.insert(store.tid);
        }
        if takes || constant.is_some() {
            put.insert(constant);
        }
    }
    if takers.is_empty() {
        return None;
    }
    is_given_back |= put.len() > 1;
    if !is_given_back {
        return None;
    }
    let others = stores.iter().any(|store| !takers.contains(&store.tid));
    if !others && takers.len() > 1 {
        return Some(Role::Lock);
    }
    let constants = |store: &&Touch| store.does.is_some_and(sets_constant);
    stores.iter().all(constants).then_some(Role::Flag)
}

fn is_constant(value: Written) -> bool {
    matches!(value, Written::Constant(_) | Written::Choice)
}

fn sets_constant(does: WordUse) -> bool {
    match does {
        WordUse::Write(new)
        | WordUse::Exchange { new, .. }
        | WordUse::CompareAndSwap { new, .. } => is_constant(new),
        WordUse::Bits(_) => true,
        WordUse::Add { .. } | WordUse::Read(_) => false,
    }
}

/// Sets a constant, whatever was there.
fn raises(does: WordUse) -> bool {
    match does {
        WordUse::Write(new) => is_constant(new),
        WordUse::Exchange { new, outcome } => {
            is_constant(new) && matches!(outcome, Outcome::Unused | Outcome::Unknown)
        }
        WordUse::Bits(outcome) => outcome == Outcome::Unused,
        WordUse::Add { .. } | WordUse::CompareAndSwap { .. } | WordUse::Read(_) => false,
    }
}

fn drops_reference(does: WordUse) -> bool {
    matches!(does, WordUse::Add { step: Some(step), outcome: Outcome::Tested } if step < 0)
}

fn counts_up(does: WordUse) -> bool {
    match does {
        WordUse::Add { step, .. } => step.is_some_and(|step| step > 0),
        WordUse::CompareAndSwap { new, .. } => {
            matches!(new, Written::Advanced(Some(step)) if step > 0)
        }
        _ => false,
    }
}

fn takes_number(does: WordUse) -> bool {
    matches!(does, WordUse::Add { outcome: Outcome::Used, step } if step.is_none_or(|step| step > 0))
}

/// Numbers are tickets where the threads that take them also advance, without an atomic, a word that all of them read.
fn turns(words: &[Touched], roles: &mut [Role]) {
    for (n, numbers) in words.iter().enumerate() {
        if !matches!(roles[n], Role::Numbers | Role::TicketLock) || numbers.is_plain() {
            continue;
        }
        let takers = numbers.writers();
        let may_be = |m: &usize| {
            let turn = &words[*m];
            let writers = turn.writers();
            *m != n
                && roles[*m] == Role::Counter
                && turn.is_plain()
                && writers.is_subset(&takers)
                && takers.iter().all(|&tid| turn.is_read_by(tid))
        };
        let found: Vec<usize> = (0..words.len()).filter(may_be).collect();
        // Whoever waits compares it with a number; what the lock guards is not compared.
        let compared = |m: &&usize| words[**m].is_read_for(Outcome::Turn);
        let turn = match found.as_slice() {
            [one] => Some(*one),
            several => several.iter().find(compared).copied(),
        };
        if let Some(turn) = turn {
            roles[n] = Role::TicketLock;
            roles[turn] = Role::TicketLock;
        }
    }
}

/// Two positions, each read by the one that advances the other.
fn ends(words: &[Touched], roles: &mut [Role]) {
    let one_writer = |role| matches!(role, Role::Position | Role::Published | Role::QueueEnd);
    for n in 0..words.len() {
        for m in n + 1..words.len() {
            let positions = [n, m]
                .iter()
                .any(|&w| matches!(roles[w], Role::Position | Role::QueueEnd));
            if !positions || !one_writer(roles[n]) || !one_writer(roles[m]) {
                continue;
            }
            let (a, b) = (words[n].writers(), words[m].writers());
            let (Some(&a), Some(&b)) = (a.first(), b.first()) else {
                continue;
            };
            if a != b && words[n].is_read_by(b) && words[m].is_read_by(a) {
                roles[n] = Role::QueueEnd;
                roles[m] = Role::QueueEnd;
            }
        }
    }
}

/// Words that only holders of a lock write.
fn guarded(words: &[Touched], roles: &mut [Role]) {
    let holders: Vec<BTreeSet<Tid>> = words
        .iter()
        .zip(&*roles)
        .filter(|(_, role)| matches!(role, Role::Lock | Role::TicketLock))
        .map(|(word, _)| word.writers())
        .collect();
    for (word, role) in words.iter().zip(roles) {
        let may_be = matches!(role, Role::Counter | Role::Overwritten | Role::Unknown);
        let writers = word.writers();
        if may_be
            && word.is_plain()
            && writers.len() > 1
            && holders.iter().any(|holders| writers.is_subset(holders))
        {
            *role = Role::Guarded;
        }
    }
}

#[cfg(test)]
mod tests;
