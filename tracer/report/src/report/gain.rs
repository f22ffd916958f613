//! What a change would gain, from judgements, rates and costs, and its sentence.

use super::{
    caveat::Caveat,
    model::{Gain, Hex, Run, ThreadGain, WordRate},
    run_facts::RunFacts,
};
use crate::{
    access::{Cost, CostUnit, LineKey},
    analysis::SiteCounts,
    event::{HoldEnd, Pace},
    finding::{self, Grade, Judgement, Rate, Verdict},
    names::{Names, WordUse},
    number::{count, list, percent},
};

/// What the machine charges for operations on a line that nobody else has, nanoseconds each, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnCosts {
    /// A locked instruction, which is also what most compilers make of a full barrier.
    pub locked_ns: f64,
}

/// Bytes of the shortest word that is read.
const LEAST_WORD: u16 = 4;
/// Threads that the sentence names.
const NAMED: usize = 4;

/// The best that is known; `None` where nobody waited, or what was waited is no time.
pub(super) fn gain(judgement: &Judgement, names: &dyn Names, run: &RunFacts) -> Option<Gain> {
    judgement.verdict?;
    if run.cost_unit != CostUnit::SampledTime || run.order.is_some() {
        return None;
    }
    let paces = &run.paces;
    let known = finding::Gain::held(judgement, paces)
        .or_else(|| {
            let costs = run.own_costs?;
            finding::Gain::rated(judgement, paces, |rate| {
                shares(judgement, names, run, costs, rate)
            })
        })
        .or_else(|| finding::Gain::estimated(judgement))?;
    let per_thread = known.threads.iter().map(|thread| ThreadGain {
        pid: thread.pid.0,
        tid: thread.tid.0,
        comm: names.thread(thread.tid).comm,
        times: thread.times,
        low: thread.low,
        high: thread.high,
        readings: thread.readings,
        word: word(names, run, thread.line, thread.addr),
        address: Hex(thread.addr),
        beside_per_s: thread.beside_per_s,
    });
    Some(Gain {
        grade: known.grade,
        low: known.low,
        high: known.high,
        per_thread: per_thread.collect(),
        basis: basis(&known, judgement, run),
    })
}

/// How fast words grow that were read, fastest first.
pub(super) fn rates(names: &dyn Names, run: &RunFacts) -> Vec<WordRate> {
    let known = run.paces.words().filter_map(Rate::of);
    let mut rates: Vec<WordRate> = known
        .map(|rate| WordRate {
            word: word(names, run, rate.line, rate.addr),
            address: Hex(rate.addr),
            pid: rate.pid.0,
            tid: rate.tid.0,
            comm: names.thread(rate.tid).comm,
            per_s: rate.per_s,
            readings: rate.readings,
        })
        .collect();
    rates.sort_by(|a, b| b.per_s.total_cmp(&a.per_s).then(a.tid.cmp(&b.tid)));
    rates
}

/// Of a thread's time, the share that it waits for the line, and what a turn would take at least, as part of what it takes
/// now; `None` where its word is not counted up by a constant, it does not wait in place, or does more than that in a turn.
fn shares(
    judgement: &Judgement,
    names: &dyn Names,
    run: &RunFacts,
    costs: OwnCosts,
    rate: &Rate,
) -> Option<(f64, f64)> {
    let own = |site: &&SiteCounts| site.site.tid == rate.tid;
    let offset = rate.addr & (run.line_size.bytes() - 1);
    let is_here = rate.line == judgement.key;
    let counts = |site: &&SiteCounts| is_here && u64::from(site.site.offset) == offset;
    let sites = || judgement.sites.iter().filter(own);
    let step = sites().filter(counts).find_map(|site| {
        let WordUse::Add { step, .. } =
            names.word_use(site.site.space, site.site.ip, site.site.kernel)?
        else {
            return None;
        };
        step.filter(|step| *step > 0)
    })?;
    let cost: Cost = sites().map(|site| site.cost).sum();
    if !finding::waits_in_place(sites(), cost) {
        return None;
    }
    let ran_ns = rate.running * run.observed.duration_ns as f64;
    let turn_ns = 1e9 * step as f64 / rate.per_s;
    let share = (cost.0 as f64 / ran_ns.max(1.0)).min(1.0);
    let own = costs.locked_ns / turn_ns;
    // What the thread does besides may run while the instruction waits, and then ending the wait does not save all of it.
    (1.0 - share <= own).then_some((share, own))
}

/// The word as rows name it.
fn word(names: &dyn Names, run: &RunFacts, line: LineKey, addr: u64) -> Option<String> {
    let offset = (addr & (run.line_size.bytes() - 1)) as u8;
    let objects = names.objects(line, run.line_size, &[]);
    let field = names.field(line, run.line_size, offset, LEAST_WORD)?;
    let object = objects.get(field.object)?.name.clone()?;
    Some(object + field.path.as_deref().unwrap_or_default())
}

fn basis(gain: &finding::Gain, judgement: &Judgement, run: &RunFacts) -> String {
    match gain.grade {
        Grade::Held => {
            let apart = gain.threads.iter().any(|thread| thread.apart);
            let holds = gain.threads.iter().map(|thread| thread.readings).min();
            let holds = count(holds.unwrap_or(0).into(), "hold", "holds");
            if apart {
                format!(
                    "seen in {holds} of the other threads, which hardly ran at the same time: while they do, it is more"
                )
            } else {
                format!("seen in {holds} of the other threads; while all run at the same time")
            }
        }
        Grade::Rated => "by the rate of the thread's own word, its waits, and what a locked instruction costs here on an \
             own line"
            .to_owned(),
        Grade::Estimated => {
            let text = if gain.high.is_some() {
                "by samples, which waited in place"
            } else {
                "samples do not tell how much"
            };
            let readings = run.paces.of(judgement.key).iter().flat_map(|word| &word.readings);
            match why_not(readings) {
                Some(why) => format!("{text}; holding threads did not either: {why}"),
                None => format!("{text}, `--hold` does"),
            }
        }
    }
}

/// Why holds of a line did not tell, by what happened most; `None` where there were none.
fn why_not<'a>(readings: impl Iterator<Item = &'a Pace>) -> Option<String> {
    let mut counts = [0_u64; HoldEnd::ALL.len()];
    for read in readings.filter(|read| read.end != HoldEnd::Beside) {
        counts[usize::from(read.end.index())] += 1;
    }
    let tries = counts.iter().sum();
    let (end, _) = HoldEnd::ALL
        .into_iter()
        .zip(counts)
        .max_by_key(|(_, n)| *n)?;
    let why = match end {
        _ if tries == 0 => return None,
        HoldEnd::Held => "too few holds were long enough",
        HoldEnd::Beside => "nobody was to be held",
        HoldEnd::Slow => {
            "the words of its threads do not only grow, or too slowly to be read in 2 ms"
        }
        HoldEnd::Stuck => {
            "a thread stood still while the others were held, as if one had a lock that it waits for"
        }
        HoldEnd::OffCpu => "a thread that was read was taken off its CPU",
        HoldEnd::NotStopped => "the others did not stop",
        HoldEnd::Refused => {
            "the others may not be held: a debugger has them, or ptrace is not permitted (CAP_SYS_PTRACE, \
             kernel.yama.ptrace_scope)"
        }
        HoldEnd::Gone => "the threads ended",
    };
    Some(format!("{why} ({})", count(tries, "reading", "readings")))
}

/// `1.4`, `12`.
fn times(value: f64) -> String {
    match value {
        _ if value >= 9.95 => format!("{value:.0}"),
        _ if (value - 1.0).abs() < 0.095 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// What stands in the finding.
pub(super) fn sentence(gain: &Gain, kind: Option<Verdict>) -> String {
    let apart = match kind {
        Some(Verdict::FalseSharing) => "on lines of their own",
        _ => "if nobody took the line from them",
    };
    let basis = &gain.basis;
    match (gain.grade, gain.high) {
        (Grade::Estimated, Some(high)) => {
            format!("Up to {} times as fast {apart}: {basis}.", times(high))
        }
        (Grade::Estimated, None) => format!("More than nothing {apart}: {basis}."),
        _ if is_none(gain) => {
            format!(
                "Nothing worth a change: {} {apart}, {basis}.",
                threads(gain)
            )
        }
        _ => format!("{} {apart}: {basis}.", threads(gain)),
    }
}

/// `hitter 12 would be 2.2 times as fast (2.1 to 2.4) and misser 13 1.1 times (1.0 to 1.2)`.
fn threads(gain: &Gain) -> String {
    let words: Vec<String> = (gain.per_thread.iter().enumerate())
        .map(|(n, thread)| {
            let name = thread.comm.as_deref().unwrap_or("thread");
            let [verb, fast] = if n == 0 {
                [" would be", " as fast"]
            } else {
                [""; 2]
            };
            format!(
                "{name} {}{verb} {} times{fast} ({} to {})",
                thread.tid,
                times(thread.times),
                times(thread.low),
                times(thread.high),
            )
        })
        .collect();
    list(&words, NAMED)
}

/// What holding may have done to the program besides.
pub(super) fn caveats(run: &Run, facts: &RunFacts) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if run.holds > 0 {
        caveats.push(Caveat::detail(format!(
            "Threads were held {} (--hold), {} of the time.",
            count(run.holds, "time", "times"),
            percent(run.held_s / run.observed.duration_s().max(1e-9))
        )));
    }
    let readings = facts.paces.words().flat_map(|word| &word.readings);
    let interrupted: u64 = readings.map(|read| u64::from(read.in_system_call)).sum();
    if interrupted > 0 {
        caveats.push(Caveat::reading(format!(
            "{} held (--hold) had just entered a system call: one that waits may have returned EINTR there.",
            count(interrupted, "thread that was", "threads that were")
        )));
    }
    caveats
}

/// Whether nothing would be gained that is worth a change.
pub(super) fn is_none(gain: &Gain) -> bool {
    gain.grade != Grade::Estimated && gain.high.is_some_and(|high| high < finding::WORTH)
}
