//! What a locked instruction takes on a line that nobody else has, one after the other: the least that a turn of a loop takes
//! which waits for other CPUs there.
//!
//! The table's `exchange-add` stands alone, with a fence behind it, so that it can be told from its neighbours; in a loop of
//! a program two of them overlap in part.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{affinity::OnCpu, line_loops::ticks};

/// Additions of a block, some microseconds; and blocks.
const ADDITIONS: u64 = 1000;
const BLOCKS: usize = 101;

/// Two lines to itself, since pairs of lines are fetched together.
#[repr(align(128))]
struct Word(AtomicU64);

/// Ticks of the time stamp counter that one takes, the median of blocks.
///
/// # Errors
/// The CPU is offline or not allowed.
pub fn own_locked(own: Cpu) -> io::Result<f64> {
    let _here = OnCpu::move_to(own)?;
    let word = Word(AtomicU64::new(0));
    let mut blocks: Vec<u64> = (0..2 * BLOCKS)
        .map(|_| {
            let start = ticks();
            for _ in 0..ADDITIONS {
                word.0.fetch_add(1, Ordering::SeqCst);
            }
            ticks().saturating_sub(start)
        })
        .skip(BLOCKS)
        .collect();
    blocks.sort_unstable();
    Ok(blocks[BLOCKS / 2] as f64 / ADDITIONS as f64)
}
