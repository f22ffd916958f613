//! How long a word takes from one CPU to another and back, as the programs do it that are known for these numbers: by
//! compare-and-swap (core-to-core-latency) and by stores that the other waits for with loads (c2clat).

use std::{
    hint, io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{affinity::OnCpu, line_loops::ticks};

use crate::spread::Spread;

/// Round trips of a block.
const ROUND_TRIPS: u64 = 1000;
/// Both CPUs are busy for so long before anything is timed.
const WARM_UP: Duration = Duration::from_millis(50);

/// How the word is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each waits by compare-and-swap, which hands it on when it succeeds.
    CompareSwap,
    /// Each waits by loads, and stores then.
    StoreLoad,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::CompareSwap, Way::StoreLoad];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Way::CompareSwap => "compare-swap",
            Way::StoreLoad => "store-load",
        }
    }
}

/// A word by itself on two lines, since pairs of lines are fetched together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Word(AtomicU64);

impl Word {
    /// Waits for a number, and puts the next one. `false` when it is over.
    fn pass(&self, way: Way, number: u64, over: &AtomicBool) -> bool {
        let mut looks = 0_u32;
        loop {
            let passed = match way {
                Way::CompareSwap => {
                    let swap = |from, to| {
                        self.0
                            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                    };
                    swap(number, number + 1).is_ok()
                }
                Way::StoreLoad => {
                    let is_there = self.0.load(Ordering::Acquire) == number;
                    if is_there {
                        self.0.store(number + 1, Ordering::Release);
                    }
                    is_there
                }
            };
            if passed {
                return true;
            }
            // Looked at seldom, so that it costs nothing.
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 12) && over.load(Ordering::Relaxed) {
                return false;
            }
        }
    }
}

/// Ticks of the time stamp counter that a word takes one way, of so many blocks of a thousand round trips.
///
/// # Errors
/// A CPU is offline or not allowed.
pub fn one_way(own: Cpu, other: Cpu, way: Way, blocks: u32) -> io::Result<Spread> {
    let (word, over, ready) = (
        Word::default(),
        AtomicBool::new(false),
        AtomicBool::new(false),
    );
    let _here = OnCpu::move_to(own)?;
    thread::scope(|scope| {
        let answering = thread::Builder::new()
            .name("other".to_owned())
            .spawn_scoped(scope, || {
                let there = OnCpu::move_to(other);
                over.store(there.is_err(), Ordering::Relaxed);
                ready.store(true, Ordering::Release);
                let _there = there?;
                let mut number = 1;
                while word.pass(way, number, &over) {
                    number += 2;
                }
                Ok::<(), io::Error>(())
            })?;
        while !ready.load(Ordering::Acquire) {
            hint::spin_loop();
        }
        let mut spread = Spread::default();
        let mut number = 0;
        let warm = Instant::now();
        while spread.count() < u64::from(blocks) && !over.load(Ordering::Relaxed) {
            let start = ticks();
            for _ in 0..ROUND_TRIPS {
                if !word.pass(way, number, &over) {
                    break;
                }
                number += 2;
            }
            let took = ticks().saturating_sub(start);
            if warm.elapsed() >= WARM_UP {
                spread.record(took as f64 / (2 * ROUND_TRIPS) as f64);
            }
        }
        over.store(true, Ordering::Relaxed);
        let ended = answering.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the other thread ended")))?;
        Ok(spread)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_there_is_not_is_an_error_and_no_hang() {
        for way in Way::ALL {
            assert!(one_way(Cpu(0), Cpu(1 << 30), way, 3).is_err());
        }
    }
}
