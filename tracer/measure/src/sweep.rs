//! What another CPU's accesses add to one's own, measured as it asks more and more often, beside what two models say.

use std::{
    hint, io,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use cohtrace_model::access::{Cpu, Tid};
use cohtrace_platform::sys::{
    disturbance::{kept_from_running, this_thread},
    line_loops::{Block, Operation, Turns, additions, ticks},
};
use serde::{Deserialize, Serialize};

use crate::{
    beside::beside,
    clocks::Clocks,
    contention::{LineCosts, Point, fit_closed_md1},
    stolen::Stolen,
};

/// Additions between the other one's accesses, at each step: from never resting to hardly there.
const RESTS: [u64; 16] = [
    60_000, 30_000, 16_000, 8_000, 5_000, 3_200, 2_200, 1_600, 1_200, 900, 700, 500, 350, 200, 100,
    0,
];
/// Additions beside which counting takes time.
const SHORT_REST: u64 = 1_000;
/// Additions between own accesses.
const OWN_REST: u64 = 200;
/// Whose turn was the last, in the word that both exchange.
const OURS: u64 = 1;
const OTHERS: u64 = 2;
/// Own accesses that are timed at once.
const OWN_TIMES: u64 = 4_000;
/// The sweep is run so often.
const SWEEPS: usize = 3;
/// Lines of a block of memory, and what the other one has: more than a second-level cache.
const MEMORY_LINES: usize = 2_048;
/// Passes over the own block of memory that are timed.
const MEMORY_TIMES: u64 = 16;
/// Between two loads of memory the other one rests for a 64th of a step's additions; these come in thousands.
const MEMORY_REST: u64 = 64_000;
/// A point that was disturbed is measured again, so many times; then it is left out of the sweep.
const TRIES: usize = 8;
/// After each change of pace.
const SETTLE: Duration = Duration::from_millis(1);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contended {
    /// Both exchange one word.
    Line,
    /// Both load lines that are in no cache.
    Memory,
}

/// A curve and its models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The CPU that is timed.
    pub own: u32,
    /// The other one.
    pub other: u32,
    /// What both ask for.
    pub contended: Contended,
    /// An access, with the rest after it, while the other one does nothing, nanoseconds.
    pub alone_ns: f64,
    /// By how often the other one asks, least first.
    pub points: Vec<Loaded>,
    /// Error of the line model, nanoseconds (root of the mean of squares); none for memory.
    pub line_model_rms_ns: Option<f64>,
    /// The queue that fits best; `None` where latency rose by less than a tenth: it was not loaded.
    pub queue: Option<QueueFit>,
}

/// The best fit of the closed queue with deterministic service (M/D/1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueFit {
    /// Service time, nanoseconds.
    pub service_ns: f64,
    /// Error, nanoseconds (root of the mean of squares).
    pub rms_ns: f64,
}

/// A point: medians of the sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// Requests of the other one, per microsecond.
    pub others_per_us: f64,
    /// What an access takes longer than alone, nanoseconds.
    pub added_ns: f64,
    /// Share of own accesses that found the line gone, 0 to 1, as counted.
    pub share_gone: f64,
    /// The same as it follows from the rates: 0 to 1.
    #[serde(default)]
    pub share_by_rates: f64,
    /// What the line model says that it adds, nanoseconds; `None` for memory.
    pub modelled_ns: Option<f64>,
}

/// Measures the curve of one line; `None` where all was disturbed. `placements` are costs of an exchange-and-add that finds the
/// line here and there, for each placement of the two CPUs that was met: the model has those that fit best, since the host may
/// have moved them before the curve was measured.
///
/// # Errors
/// A CPU is offline or not allowed; or there is no memory.
pub fn of_line(
    own: Cpu,
    other: Cpu,
    placements: &[LineCosts],
    clocks: Clocks,
) -> io::Result<Option<Sweep>> {
    let block = Block::new(&[0])?;
    let pace = |rest: u64, count: &AtomicU64| {
        // Counting takes a little itself; where that is much, it is done less often.
        let at_once = if rest < SHORT_REST { 8 } else { 1 };
        block.take_turns(OTHERS, rest, at_once);
        count.fetch_add(at_once, Ordering::Relaxed);
    };
    let time = || {
        let Turns { ticks, gone } = block.take_turns(OURS, OWN_REST, OWN_TIMES);
        Timed {
            ticks,
            accesses: OWN_TIMES,
            gone,
        }
    };
    let Some(raw) = sweep(own, other, clocks, time, pace)? else {
        return Ok(None);
    };
    let squares = |costs: &LineCosts| -> f64 {
        let error = |point: &Raw| point.ns - raw.alone_ns - costs.added_ns(point.share_gone);
        raw.points.iter().map(|point| error(point).powi(2)).sum()
    };
    let closest = |a: &&LineCosts, b: &&LineCosts| squares(a).total_cmp(&squares(b));
    let Some(costs) = placements.iter().min_by(closest) else {
        return Ok(None);
    };
    let loaded = |point: &Raw| Loaded {
        others_per_us: point.others_per_ns * 1000.0,
        added_ns: point.ns - raw.alone_ns,
        share_gone: point.share_gone,
        share_by_rates: costs.share_gone(point.others_per_ns, point.ns),
        modelled_ns: Some(costs.added_ns(point.share_gone)),
    };
    let points: Vec<Loaded> = raw.points.iter().map(loaded).collect();
    let squares = squares(costs);
    // What is queued for is the line, without the rest.
    let queue = raw.queue(costs.own_ns);
    Ok(Some(Sweep {
        own: own.0,
        other: other.0,
        contended: Contended::Line,
        alone_ns: raw.alone_ns,
        line_model_rms_ns: Some((squares / points.len().max(1) as f64).sqrt()),
        queue,
        points,
    }))
}

/// Measures the curve of memory; `None` where all was disturbed.
///
/// # Errors
/// A CPU is offline or not allowed; or there is no memory.
pub fn of_memory(own: Cpu, other: Cpu, clocks: Clocks) -> io::Result<Option<Sweep>> {
    let order = crate::pair::permutation(MEMORY_LINES);
    let (ours, theirs) = (Block::new(&order)?, Block::new(&order)?);
    let pace = |rest: u64, count: &AtomicU64| {
        theirs.flush();
        theirs.time(Operation::IndependentLoad);
        count.fetch_add(MEMORY_LINES as u64, Ordering::Relaxed);
        additions(rest * MEMORY_LINES as u64 / MEMORY_REST);
    };
    let time = || {
        let pass = || {
            ours.flush();
            ours.time(Operation::ChainedLoad)
        };
        let took = (0..MEMORY_TIMES).map(|_| pass()).sum();
        Timed {
            ticks: took,
            accesses: MEMORY_TIMES * MEMORY_LINES as u64,
            gone: 0,
        }
    };
    let Some(raw) = sweep(own, other, clocks, time, pace)? else {
        return Ok(None);
    };
    let point = |point: &Raw| Loaded {
        others_per_us: point.others_per_ns * 1000.0,
        added_ns: point.ns - raw.alone_ns,
        share_gone: 0.0,
        share_by_rates: 0.0,
        modelled_ns: None,
    };
    Ok(Some(Sweep {
        own: own.0,
        other: other.0,
        contended: Contended::Memory,
        alone_ns: raw.alone_ns,
        points: raw.points.iter().map(point).collect(),
        line_model_rms_ns: None,
        queue: raw.queue(raw.alone_ns),
    }))
}

/// As measured.
#[derive(Clone, Copy, Debug)]
struct Raw {
    others_per_ns: f64,
    ns: f64,
    share_gone: f64,
}

/// Own accesses, timed together.
#[derive(Clone, Copy, Debug)]
struct Timed {
    ticks: u64,
    accesses: u64,
    /// Before which the other one had one.
    gone: u64,
}

struct Curve {
    alone_ns: f64,
    points: Vec<Raw>,
}

impl Curve {
    /// The queue for what takes `unloaded_ns` where nobody else asks.
    fn queue(&self, unloaded_ns: f64) -> Option<QueueFit> {
        let point = |raw: &Raw| Point {
            rate: raw.others_per_ns,
            latency_ns: unloaded_ns + raw.ns - self.alone_ns,
        };
        let points: Vec<Point> = self.points.iter().map(point).collect();
        let fit = fit_closed_md1(unloaded_ns, &points)?;
        Some(QueueFit {
            service_ns: fit.service_ns,
            rms_ns: fit.rms_ns,
        })
    }
}

/// The other one's pace.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Pace {
    rest: AtomicU64,
    over: AtomicBool,
    /// Which thread goes at it, once it is on its CPU.
    tid: AtomicU32,
}

/// What the other one has done, on a line of its own: looking at it seldom disturbs it little.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Done(AtomicU64);

/// The other one does nothing.
const STILL: u64 = u64::MAX;

/// Times own accesses while the other one asks, at each pace; `None` where all was disturbed.
fn sweep(
    own: Cpu,
    other: Cpu,
    clocks: Clocks,
    time: impl Fn() -> Timed,
    pace: impl Fn(u64, &AtomicU64) + Sync,
) -> io::Result<Option<Curve>> {
    let (wanted, done) = (Pace::default(), Done::default());
    wanted.rest.store(STILL, Ordering::Relaxed);
    let work = || {
        wanted.tid.store(this_thread().0, Ordering::Release);
        while !wanted.over.load(Ordering::Relaxed) {
            match wanted.rest.load(Ordering::Relaxed) {
                STILL => hint::spin_loop(),
                rest => pace(rest, &done.0),
            }
        }
    };
    beside(own, other, &wanted.over, work, || {
        while wanted.tid.load(Ordering::Acquire) == 0 && !wanted.over.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
        let own_tid = this_thread();
        let kept = || {
            let other_tid = Tid(wanted.tid.load(Ordering::Relaxed));
            let both = [own_tid, other_tid].map(kept_from_running);
            (both, Stolen::now(&[own, other]))
        };
        let measure = |rest: u64| {
            wanted.rest.store(rest, Ordering::Relaxed);
            let settled = ticks();
            while clocks.ns((ticks() - settled) as f64) < SETTLE.as_nanos() as f64 {
                hint::spin_loop();
            }
            let undisturbed = kept();
            let (before, start) = (done.0.load(Ordering::Relaxed), ticks());
            let timed = time();
            let (all, asked) = (ticks() - start, done.0.load(Ordering::Relaxed) - before);
            let raw = Raw {
                others_per_ns: asked as f64 / clocks.ns(all.max(1) as f64),
                ns: clocks.ns(timed.ticks as f64) / timed.accesses.max(1) as f64,
                share_gone: timed.gone as f64 / timed.accesses.max(1) as f64,
            };
            let was_there = rest == STILL || asked > 0;
            (was_there && kept() == undisturbed).then_some(raw)
        };
        let measure = |rest: u64| {
            let mut tries = (0..TRIES).filter(|_| !wanted.over.load(Ordering::Relaxed));
            tries.find_map(|_| measure(rest))
        };
        measure(0);
        let mut alone = Vec::new();
        let mut by_rest: Vec<Vec<Raw>> = vec![Vec::new(); RESTS.len()];
        for _ in 0..SWEEPS {
            for (rest, raws) in RESTS.iter().zip(&mut by_rest) {
                alone.extend(measure(STILL));
                raws.extend(measure(*rest));
            }
        }
        middle(&alone).map(|alone| Curve {
            alone_ns: alone.ns,
            points: by_rest.iter().filter_map(|raws| middle(raws)).collect(),
        })
    })
}

/// The medians; `None` of none.
fn middle(raws: &[Raw]) -> Option<Raw> {
    if raws.is_empty() {
        return None;
    }
    let median = |of: fn(&Raw) -> f64| {
        let mut all: Vec<f64> = raws.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Some(Raw {
        others_per_ns: median(|raw| raw.others_per_ns),
        ns: median(|raw| raw.ns),
        share_gone: median(|raw| raw.share_gone),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: Clocks = Clocks {
        tick_ns: 0.5,
        tick_cycles: 1.0,
    };

    #[test]
    fn a_cpu_that_there_is_not_is_an_error_and_no_hang() {
        let costs = LineCosts {
            own_ns: 1.0,
            taken_ns: 2.0,
        };
        assert!(of_line(Cpu(0), Cpu(1 << 30), &[costs], CLOCKS).is_err());
        assert!(of_memory(Cpu(0), Cpu(1 << 30), CLOCKS).is_err());
    }

    #[test]
    fn a_curve_that_does_not_rise_has_no_queue_and_one_that_does_has_its_service_time() {
        let rates = [0.0, 0.001, 0.002, 0.003];
        let curve = |latency: &dyn Fn(f64) -> f64| Curve {
            alone_ns: 300.0,
            points: rates
                .map(|rate| Raw {
                    share_gone: 0.0,
                    others_per_ns: rate,
                    ns: latency(rate),
                })
                .to_vec(),
        };
        assert_eq!(curve(&|_| 310.0).queue(300.0), None);
        let md1 = |rate| crate::contention::closed_md1(200.0, 300.0, rate).expect("in balance");
        let fit = curve(&md1).queue(300.0).expect("loaded");
        assert!(
            (fit.service_ns - 200.0).abs() < 0.1 && fit.rms_ns < 0.01,
            "{fit:?}"
        );
    }
}
