//! What a breakpoint hit costs on this machine, and what the kernel does with an event's limit.
//!
//! Measured on a word of our own and on our own thread, while no window is open: the hits are no one's.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    bpf::OnHit,
    breakpoints::BreakpointError,
    clock::thread_ns,
    perf_event::{self, PerfEvent, Scope},
};
use crate::access::Tid;

/// Odd, so that the median is one of them.
const ROUNDS: usize = 9;
const TOUCHES: u64 = 64;

/// What the measurement found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HitCost {
    /// Time that one hit takes from the thread that made it, nanoseconds. Nearly all is the trap itself; the
    /// record of a hit in a window comes on top, about a tenth of it where this was measured.
    pub hit_ns: u64,
    /// Only a program that returns 1 counts an event's limit down (since about Linux 6.10), so that a
    /// limit can end a breakpoint with its window. Before, every hit does.
    pub limit_by_program: bool,
}

/// The calling thread, in `perf_event_open`'s words.
pub(super) const OWN_THREAD: Scope = Scope::Thread(Tid(0));

/// Measures; some 600 hits, so about 10 ms where one costs 15 us.
pub(super) fn measure(program: &OnHit) -> Result<HitCost, BreakpointError> {
    let word = AtomicU64::new(0);
    let attributes = perf_event::data_breakpoint(word.as_ptr() as u64, 8);
    let event = perf_event::open(&attributes, OWN_THREAD)?;
    program.attach(&event)?;
    let failed = |source| BreakpointError::System {
        what: "measuring the cost of a breakpoint",
        source,
    };
    let limit_by_program = program_has_the_limit(&event, &word).map_err(failed)?;
    let mut costs = [0; ROUNDS];
    for cost in &mut costs {
        let without = touch(&word);
        event.enable().map_err(failed)?;
        let with = touch(&word);
        event.disable().map_err(failed)?;
        *cost = with.saturating_sub(without) / TOUCHES;
    }
    costs.sort_unstable();
    Ok(HitCost {
        hit_ns: costs[ROUNDS / 2],
        limit_by_program,
    })
}

/// Whether an event with a limit of one goes on as long as the program returns 0.
fn program_has_the_limit(event: &PerfEvent, word: &AtomicU64) -> io::Result<bool> {
    const HITS: u64 = 3;
    let before = event.count()?;
    event.refresh(1)?;
    for _ in 0..HITS {
        word.fetch_add(1, Ordering::Relaxed);
    }
    event.disable()?;
    Ok(event.count()? - before >= HITS)
}

/// Time that touching the word takes, nanoseconds.
fn touch(word: &AtomicU64) -> u64 {
    let start = thread_ns();
    for _ in 0..TOUCHES {
        word.fetch_add(1, Ordering::Relaxed);
    }
    thread_ns() - start
}
