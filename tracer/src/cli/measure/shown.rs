//! States of lines for a test that watches this program in an emulator: what the emulator's directory says is held against what
//! the measurement claims.
//!
//! The thread that times stores to a word before and after each operation, and before lines are flushed, so that the order of
//! accesses has these moments. What they were, where the words are, and where the lines are is printed.

use std::{
    fmt::Write as _,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result};

use crate::{
    access::Cpu,
    cli::output,
    measure::{
        pair::{
            Setting,
            shown::{self, Next},
        },
        state::State,
    },
};

/// More moments than there are.
const MOST: usize = 256;

/// A word on a line of its own: an emulator counts a store to the same word, or to the next one, as a repeat of the one before.
#[repr(C, align(64))]
struct Mark(AtomicU64);

static MARKS: [Mark; MOST] = [const { Mark(AtomicU64::new(0)) }; MOST];

/// Goes through all states, and prints a line for each moment, then one for each line of the block.
pub(super) fn run() -> Result<ExitCode> {
    let mut lines: Vec<u64> = Vec::new();
    // Who takes part shares CPUs where there are fewer than three: nothing is timed.
    let online = crate::machine::Machine::online_now("/".as_ref()).unwrap_or_default();
    let cpu = |n: usize| {
        let known = online.get(n % online.len().max(1));
        known.copied().unwrap_or(Cpu(0))
    };
    let setting = Setting {
        own: cpu(0),
        other: cpu(1),
        third: Some(cpu(2)),
        home: cpu(0),
        states: &State::ALL,
        chains: false,
        rounds: 1,
        warm_up: Duration::ZERO,
        real_time: false,
    };
    let (mut text, mut marks) = (String::new(), MARKS.iter());
    shown::show(&setting, |block, next| {
        if lines.is_empty() {
            lines = block.addresses().collect();
        }
        let Some(Mark(mark)) = marks.next() else {
            return;
        };
        let address = mark.as_ptr() as u64;
        let _ = match next {
            Next::Flush => writeln!(text, "flush {address:#x}"),
            Next::Timed(state, operation) => {
                let (state, operation) = (state.name(), operation.name());
                writeln!(text, "timed {address:#x} {state} {operation}")
            }
            Next::Done(..) => writeln!(text, "done {address:#x}"),
        };
        mark.store(1, Ordering::Relaxed);
    })
    .context("bringing lines into states")?;
    for line in lines {
        let _ = writeln!(text, "line {line:#x}");
    }
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}
