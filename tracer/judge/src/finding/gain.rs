//! What ending false sharing would gain: how many times as fast a thread would be.
//!
//! In three grades, each from more than the one before. Samples say which share `s` of the time is waited for a line, but a
//! processor that runs ahead waits at later instructions too, or nowhere that is told: where an instruction waits in place
//! (locked, or a full barrier behind a store) the gain is between 1 and `1 / (1 - s)`, else only that there is one. With the
//! rate of the thread's own word and what its operation costs on an own line the new time follows. Where the others were held
//! for a moment, it was seen.

use super::Judgement;
use crate::{
    access::{Cost, LineKey, Pid, Tid},
    analysis::{Paces, SiteCounts, WordPaces},
    event::{Growth, HoldEnd, Pace},
};

/// Least part of the cost of a line, 0..=1, that must be waited for in place for an upper bound.
const IN_PLACE: f64 = 0.8;
/// Fewer holds tell nothing.
const LEAST_HOLDS: usize = 3;
/// A gain below is none: two runs of one program differ by as much.
pub const WORTH: f64 = 1.02;

/// What a gain is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// From the share of samples.
    Estimated,
    /// From the rate of a word and what the machine charges.
    Rated,
    /// From the rate of a word while the other threads were held.
    Held,
}

impl Grade {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Estimated => "estimated",
            Grade::Rated => "rated",
            Grade::Held => "held",
        }
    }
}

/// How many times as fast threads would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// From what.
    pub grade: Grade,
    /// At least, of all threads that are known.
    pub low: f64,
    /// At most; `None` where that cannot be told.
    pub high: Option<f64>,
    /// By thread; none where only all together are known.
    pub threads: Vec<ThreadGain>,
}

/// How many times as fast one thread would be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadGain {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Most likely.
    pub times: f64,
    /// At least: of ten readings, nine are not below.
    pub low: f64,
    /// At most: of ten readings, nine are not above.
    pub high: f64,
    /// Readings that it rests on.
    pub readings: u32,
    /// The word that was read, virtual address.
    pub addr: u64,
    /// The line that the word is on.
    pub line: LineKey,
    /// What was added to it per second of its thread's run time, beside the others.
    pub beside_per_s: f64,
    /// The others hardly ran at the same time, so that this is less than it would be if they did.
    pub apart: bool,
}

impl Gain {
    fn of(grade: Grade, threads: Vec<ThreadGain>) -> Option<Gain> {
        let least = threads.iter().map(|thread| thread.low);
        let most = threads.iter().map(|thread| thread.high);
        Some(Gain {
            grade,
            low: least.reduce(f64::min)?,
            high: Some(most.reduce(f64::max)?),
            threads,
        })
    }

    /// From samples: `None` where no time was sampled on the line.
    pub fn estimated(judgement: &Judgement) -> Option<Gain> {
        let share = judgement
            .shared_share
            .filter(|_| judgement.order.is_none())?;
        let high = (waits_in_place(&judgement.sites, judgement.cost) && share < 1.0)
            .then(|| 1.0 / (1.0 - share));
        Some(Gain {
            grade: Grade::Estimated,
            low: 1.0,
            high,
            threads: Vec::new(),
        })
    }

    /// From holds; `None` where too few of them tell.
    pub fn held(judgement: &Judgement, paces: &Paces) -> Option<Gain> {
        let words = paces.of(judgement.key).iter();
        Gain::of(Grade::Held, words.filter_map(held).collect())
    }

    /// From rates: `costs` says, for a thread's word, what share of the thread's time is waited for the line, 0..=1, and how
    /// long a turn takes with the line its own, as part of the time that a turn takes now.
    pub fn rated(
        judgement: &Judgement,
        paces: &Paces,
        mut costs: impl FnMut(&Rate) -> Option<(f64, f64)>,
    ) -> Option<Gain> {
        let threads = paces.of(judgement.key).iter().filter_map(|word| {
            let rate = Rate::of(word)?;
            let (share, own) = costs(&rate)?;
            let times = 1.0 / (1.0 - share + own).max(0.01);
            let times = times.max(1.0);
            Some(ThreadGain {
                pid: rate.pid,
                tid: rate.tid,
                times,
                low: times / RATED_WITHIN,
                high: times * RATED_WITHIN,
                readings: rate.readings,
                addr: rate.addr,
                line: rate.line,
                beside_per_s: rate.per_s,
                apart: false,
            })
        });
        Gain::of(Grade::Rated, threads.collect())
    }
}

/// Rated gains are within this factor of real ones (docs/gains.md).
const RATED_WITHIN: f64 = 1.25;

/// Whether enough of a cost was waited for in place: at the instruction itself, or at a barrier behind it.
pub fn waits_in_place<'a>(sites: impl IntoIterator<Item = &'a SiteCounts>, cost: Cost) -> bool {
    let in_place = |site: &SiteCounts| {
        if site.site.locked {
            site.cost.0
        } else {
            site.waits.at_barrier.0
        }
    };
    let in_place: u64 = sites.into_iter().map(in_place).sum();
    in_place as f64 >= IN_PLACE * cost.0 as f64
}

/// How fast a thread is beside the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Process.
    pub pid: Pid,
    /// The word's thread.
    pub tid: Tid,
    /// The word, virtual address.
    pub addr: u64,
    /// The line that it is on.
    pub line: LineKey,
    /// What was added to it per second of the thread's run time.
    pub per_s: f64,
    /// Readings that it rests on.
    pub readings: u32,
    /// Part of the wall time in which it ran, 0..=1.
    pub running: f64,
}

impl Rate {
    /// Of a word, where it is steady: five readings, of which the middle ones are within a fifth.
    pub fn of(word: &WordPaces) -> Option<Rate> {
        let growing = word.readings.iter().filter(|read| read.beside.added > 0);
        let growing: Vec<&Pace> = growing.collect();
        let rates = sorted(growing.iter().filter_map(|read| read.beside.rate()));
        let (low, high) = (quantile(&rates, 0.25)?, quantile(&rates, 0.75)?);
        if rates.len() < 5 || high > low * 1.2 {
            return None;
        }
        let all = growing
            .iter()
            .fold(Growth::default(), |all, read| all.and(read.beside));
        let wall: u64 = growing.iter().map(|read| read.beside_ns).sum();
        Some(Rate {
            pid: growing[0].pid,
            tid: word.tid,
            addr: word.addr,
            line: word.line,
            per_s: all.rate()? * 1e9,
            readings: rates.len() as u32,
            running: (all.run_ns as f64 / wall.max(1) as f64).min(1.0),
        })
    }
}

/// Of one thread's readings.
fn held(word: &WordPaces) -> Option<ThreadGain> {
    let readings = &word.readings;
    let is_hold = |read: &&Pace| read.end == HoldEnd::Held;
    let together: Vec<&Pace> = readings.iter().filter(|read| read.is_together()).collect();
    let apart = together.iter().copied().filter(is_hold).count() < LEAST_HOLDS;
    let told = if apart {
        readings.iter().collect()
    } else {
        together
    };
    let holds: Vec<&Pace> = told.iter().copied().filter(is_hold).collect();
    let alone = sorted(holds.iter().filter_map(|read| read.alone.rate()));
    if alone.len() < LEAST_HOLDS {
        return None;
    }
    let alone = quantile(&alone, 0.5)?;
    let beside = told.iter().fold((0.0, 0.0), |(added, ran), read| {
        let (more, longer) = beside_all(read, alone, apart);
        (added + more, ran + longer)
    });
    let beside = Some(beside.0 / beside.1).filter(|rate| rate.is_finite() && *rate > 0.0)?;
    let times = alone / beside;
    // What a thread does beside the others may differ from one moment to the next, so each hold is held against its own.
    let each = holds.iter().filter_map(|read| {
        let (added, ran) = beside_all(read, alone, apart);
        Some(read.alone.rate()? * ran / added)
    });
    let each = sorted(each.filter(|times| times.is_finite() && *times > 0.0));
    Some(ThreadGain {
        pid: readings[0].pid,
        tid: word.tid,
        times,
        low: times.min(quantile(&each, 0.1)?),
        high: times.max(quantile(&each, 0.9)?),
        readings: holds.len() as u32,
        addr: word.addr,
        line: word.line,
        beside_per_s: beside * 1e9,
        apart,
    })
}

/// What was added while the others ran too, and for how long the thread ran then: where none of them was on a CPU it was as
/// fast as alone, and with a gain of six, a tenth of such time is half of all that was added. They were taken off their CPUs at
/// other moments than the thread was, as far as possible. `apart`: all of the time, since they hardly ran.
fn beside_all(read: &Pace, alone: f64, apart: bool) -> (f64, f64) {
    let (added, ran) = (read.beside.added as f64, read.beside.run_ns as f64);
    if apart {
        return (added, ran);
    }
    let without = read.beside_ns.saturating_sub(read.others_run_ns);
    let without = (without as f64).min(ran);
    ((added - alone * without).max(0.0), ran - without)
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Of sorted values, the one that a part of them, 0..=1, is not above; between two of them for an even half.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = part * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

#[cfg(test)]
mod tests;
