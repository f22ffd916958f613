//! Between the pipeline and who holds threads: has those read that are worth it, within what that may cost.

use std::{io, time::Duration};

use super::suspects::{JUDGED_NS, Suspects};
use crate::{
    access::{LineKey, Pid},
    analysis::OwnWord,
    event::{Batch, Context, ContextKind},
    pipeline::Pipeline,
    sys::{
        clock,
        hold::{Asked, Holder, MOST_HELD},
    },
    watch::HoldPlanner,
};

/// How long the others are held: a hundred thousand turns of a loop, and less than a scheduler's turn.
const HOLD: Duration = Duration::from_millis(2);
/// How long a thread is read beside them before, and again after: what they do to it changes from one millisecond to the
/// next, and reading costs nothing.
const BESIDE: Duration = Duration::from_millis(10);

/// Words are looked for after so long, and again whenever the run is twice as old: all lines are looked through.
const WORDS_NS: u64 = 500_000_000;

/// A reading takes 23 ms, and longer where a thread that is held stays in the kernel; one that takes so long may never end,
/// as where somebody killed the process that holds.
const PATIENCE_NS: u64 = 300_000_000;

/// Whether threads are held, and what for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldPlan {
    /// Share of the time, 0..=1, for which threads may be held: 0 holds nobody, and only reads how fast they are.
    pub share: f64,
}

/// Has threads read during a run.
pub(super) struct Holds {
    holder: Holder,
    planner: HoldPlanner,
    share: f64,
    started_ns: u64,
    /// For which threads were held so far.
    spent_ns: u64,
    /// Words of all threads, and when they are looked up again.
    words: Vec<OwnWord>,
    words_due_ns: u64,
    /// Whose line is being read, and since when.
    reading: Option<(LineKey, u64)>,
    /// There was nothing to read; until then it is not looked for again.
    idle_until_ns: u64,
    /// Answers that are newer than what the stream has.
    waiting: Vec<Context>,
    /// Time of the newest event that was passed on.
    newest_ns: u64,
}

impl Holds {
    /// `None` where nobody is to be held, and no process can be had to read how fast threads are; an error where somebody is.
    pub(super) fn start(plan: HoldPlan) -> io::Result<Option<Holds>> {
        let holder = match Holder::start() {
            Ok(holder) => holder,
            Err(_) if plan.share == 0.0 => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Holds {
            holder,
            planner: HoldPlanner::sparing(Pid(std::process::id())),
            share: plan.share,
            started_ns: clock::monotonic_ns(),
            spent_ns: 0,
            words: Vec::new(),
            words_due_ns: clock::monotonic_ns() + WORDS_NS,
            reading: None,
            idle_until_ns: 0,
            waiting: Vec::new(),
            newest_ns: 0,
        }))
    }

    /// Whether a thread is being read: then nothing else may disturb it. Of an answer that does not come, nobody waits.
    pub(super) fn is_reading(&self) -> bool {
        let since = |(_, since_ns)| clock::monotonic_ns().saturating_sub(since_ns);
        self.reading
            .is_some_and(|reading| since(reading) < PATIENCE_NS)
    }

    /// Takes an answer that has come, and has the next thread read where that is worth it and may be.
    pub(super) fn turn(&mut self, pipeline: &Pipeline, suspects: &mut Suspects) {
        if let Some((line, _)) = self.reading {
            let Some((time_ns, read)) = self.holder.answer() else {
                return;
            };
            self.reading = None;
            self.spent_ns += read.held_ns;
            self.planner.done(line, &read);
            self.waiting.push(Context {
                time_ns,
                kind: ContextKind::Pace(read),
            });
        }
        let now_ns = clock::monotonic_ns();
        if now_ns < self.idle_until_ns {
            return;
        }
        let hold = if self.share > 0.0 {
            HOLD
        } else {
            Duration::ZERO
        };
        let elapsed_ns = now_ns.saturating_sub(self.started_ns) as f64;
        if self.spent_ns as f64 + hold.as_nanos() as f64 > self.share * elapsed_ns {
            return;
        }
        let judgements = suspects.at(now_ns, pipeline);
        let line_size = pipeline.line_size();
        if now_ns >= self.words_due_ns {
            let age_ns = now_ns.saturating_sub(self.started_ns);
            (self.words, self.words_due_ns) = (pipeline.own_words(), now_ns + age_ns.max(WORDS_NS));
        }
        let spaces = &pipeline.spaces;
        let next = (self.planner).next(judgements, &self.words, spaces, line_size, MOST_HELD);
        let Some(next) = next else {
            self.idle_until_ns = now_ns + JUDGED_NS;
            return;
        };
        self.reading = Some((next.line, now_ns));
        self.holder.ask(Asked {
            pid: next.pid,
            tid: next.tid,
            addr: next.addr,
            len: next.len,
            line_addr: next.line_addr,
            others: next.others,
            beside: BESIDE,
            hold,
        });
    }

    /// Puts what was read where its time is in the stream; with `last`, all of it.
    pub(super) fn deliver(&mut self, batch: &mut Batch, last: bool) {
        let context = batch.context.last().map(|event| event.time_ns);
        let access = batch.accesses.last().map(|access| access.time_ns);
        let reached_ns = context.max(access).unwrap_or(0);
        self.waiting.retain_mut(|event| {
            // What is older was passed on already.
            event.time_ns = event.time_ns.max(self.newest_ns);
            let is_due = last || event.time_ns <= reached_ns;
            if is_due {
                let at = (batch.context).partition_point(|other| other.time_ns <= event.time_ns);
                batch.context.insert(at, event.clone());
            }
            !is_due
        });
        self.newest_ns = self.newest_ns.max(reached_ns);
    }
}
