//! Chooses whose word is read next while the other threads of its line are held.
//!
//! What ending false sharing would gain is how much faster a thread is while nobody takes its line. A thread whose own word
//! on the line only grows tells how fast it is, and only false sharing is ended by padding: where the same threads share data
//! elsewhere too, holding them would end that as well, so nobody is held.

use rustc_hash::FxHashMap;

use crate::{
    access::{LineKey, LineSize, Pid, Tid},
    analysis::{OwnWord, own_words},
    event::{HoldEnd, Pace},
    finding::{Judgement, Verdict},
    space::AddressSpaces,
};

/// Holds of a thread on a line that are enough: their quartiles are 1 % apart where a program is steady.
const ENOUGH_HOLDS: u32 = 10;
/// Readings of a word without anybody held that are enough to know its rate.
const ENOUGH_RATES: u32 = 5;
/// Readings after which a thread is left alone, whatever came of them.
const MOST_READINGS: u32 = 60;
/// Lines whose threads are held, costliest first, and threads of each.
const MOST_LINES: usize = 8;
/// Threads whose turns are kept in mind; beyond, all are forgotten, and read again.
const MOST_TURNS: usize = 1 << 13;
const MOST_THREADS: usize = 4;

/// What to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Whose line.
    pub line: LineKey,
    /// An address of it in the process.
    pub line_addr: u64,
    /// Process of the thread.
    pub pid: Pid,
    /// The thread whose word it is.
    pub tid: Tid,
    /// Address of the word.
    pub addr: u64,
    /// Its bytes, 4 or 8.
    pub len: u8,
    /// The other threads of the line.
    pub others: Vec<(Pid, Tid)>,
}

#[derive(Clone, Debug, Default)]
struct Turns {
    held: u32,
    read: u32,
    /// Words, by their addresses, that did not grow.
    still: Vec<u64>,
}

/// Remembers who was held for whom.
#[derive(Debug, Default)]
pub struct HoldPlanner {
    turns: FxHashMap<(LineKey, Tid), Turns>,
    /// Who is never held.
    spared: Option<Pid>,
}

impl HoldPlanner {
    /// One that holds no thread of this process: who holds would wait for itself.
    pub fn sparing(spared: Pid) -> HoldPlanner {
        HoldPlanner {
            spared: Some(spared),
            ..HoldPlanner::default()
        }
    }

    /// The next reading, with at most so many other threads; `None` where nothing is left to read. `words` are those of all
    /// threads, wherever they are.
    pub fn next(
        &mut self,
        judgements: &[Judgement],
        words: &[OwnWord],
        spaces: &AddressSpaces,
        line_size: LineSize,
        most_others: usize,
    ) -> Option<Reading> {
        let lines = judgements.iter().filter(|line| is_false_sharing(line));
        let mut best: Option<(u32, Reading)> = None;
        for line in lines.take(MOST_LINES) {
            for thread in line.threads.iter().take(MOST_THREADS) {
                let (others, least) = (others(line, thread.tid), best.as_ref().map(|best| best.0));
                if others.iter().any(|(pid, _)| self.spared == Some(*pid))
                    || !self.is_due(line.key, thread.tid, ENOUGH_HOLDS, least)
                    || !(1..=most_others).contains(&others.len())
                    || share_elsewhere(judgements, line.key, thread.tid, &others)
                {
                    continue;
                }
                let own = own_words::of_line(line.key, &line.sites, thread.tid, line_size);
                let elsewhere = words.iter().filter(|word| word.tid == thread.tid).copied();
                let words = own.chain(elsewhere);
                best = self.reading(line.key, words, others, spaces).or(best);
            }
        }
        if best.is_none() {
            for word in words {
                let least = best.as_ref().map(|best| best.0);
                if self.is_due(word.line, word.tid, ENOUGH_RATES, least) {
                    let own = std::iter::once(*word);
                    best = self.reading(word.line, own, Vec::new(), spaces).or(best);
                }
            }
        }
        best.map(|(_, reading)| reading)
    }

    /// Whether there is too little of a thread yet, and less than `least`.
    fn is_due(&self, line: LineKey, tid: Tid, enough: u32, least: Option<u32>) -> bool {
        let turns = self.turns.get(&(line, tid));
        let (held, read) = turns.map_or((0, 0), |turns| (turns.held, turns.read));
        held < enough && read < MOST_READINGS && least.is_none_or(|least| read < least)
    }

    /// A reading of the first of a thread's words that is not known to stand still.
    fn reading(
        &self,
        line: LineKey,
        words: impl Iterator<Item = OwnWord>,
        others: Vec<(Pid, Tid)>,
        spaces: &AddressSpaces,
    ) -> Option<(u32, Reading)> {
        let home = |line: LineKey, pid: Pid| {
            let homes = spaces.addresses(line.0);
            homes
                .into_iter()
                .find(|home| home.0 == pid)
                .map(|home| home.1)
        };
        for word in words {
            let turns = self.turns.get(&(line, word.tid));
            let addr = home(word.line, word.pid)? + u64::from(word.offset);
            if turns.is_some_and(|turns| turns.still.contains(&addr)) {
                continue;
            }
            let reading = Reading {
                line,
                line_addr: home(line, word.pid)?,
                pid: word.pid,
                tid: word.tid,
                addr,
                len: word.len,
                others,
            };
            return Some((turns.map_or(0, |turns| turns.read), reading));
        }
        None
    }

    /// What came of a reading.
    pub fn done(&mut self, line: LineKey, read: &Pace) {
        if self.turns.len() >= MOST_TURNS {
            self.turns.clear();
        }
        let turns = self.turns.entry((line, read.tid)).or_default();
        turns.read += 1;
        match read.end {
            HoldEnd::Held => turns.held += u32::from(read.is_together()),
            HoldEnd::Beside => turns.held += 1,
            HoldEnd::Slow => turns.still.push(read.addr),
            HoldEnd::Refused | HoldEnd::Gone => turns.read = MOST_READINGS,
            HoldEnd::Stuck | HoldEnd::OffCpu | HoldEnd::NotStopped => {}
        }
    }
}

fn is_false_sharing(line: &Judgement) -> bool {
    line.is_finding() && line.verdict == Some(Verdict::FalseSharing) && line.order.is_none()
}

/// The threads of the line besides one.
fn others(line: &Judgement, tid: Tid) -> Vec<(Pid, Tid)> {
    let threads = line.threads.iter().map(|thread| (thread.pid, thread.tid));
    threads.filter(|(_, other)| *other != tid).collect()
}

/// Whether the thread shares data with one of the others on another line that is a finding.
fn share_elsewhere(
    judgements: &[Judgement],
    line: LineKey,
    tid: Tid,
    others: &[(Pid, Tid)],
) -> bool {
    let truly = judgements.iter().filter(|other| {
        other.is_finding()
            && other.key != line
            && matches!(
                other.verdict,
                Some(Verdict::TrueSharing | Verdict::MixedSharing)
            )
    });
    truly.into_iter().any(|other| {
        let has = |tid: Tid| other.threads.iter().any(|thread| thread.tid == tid);
        has(tid) && others.iter().any(|(_, other)| has(*other))
    })
}

#[cfg(test)]
mod tests;
