//! How long a word takes from one CPU to another and back, as the programs do it that are known for these numbers: by
//! compare-and-swap of one word (core-to-core-latency), and by stores that the other waits for with loads, a word for each
//! direction (c2clat).

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::line_loops::ticks;

use crate::{beside::beside, pair::WARM_UP, spread::Spread};

/// Round trips of a block.
const ROUND_TRIPS: u64 = 1000;

/// How the word is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each waits by compare-and-swap, which hands it on when it succeeds.
    CompareSwap,
    /// Each stores to a word of its own, and waits for the other's by loads.
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

/// What goes there, and what comes back where that is another word.
#[derive(Debug, Default)]
struct Words {
    there: Word,
    back: Word,
    over: AtomicBool,
}

impl Words {
    /// There and back once, by the thread that times. `false` when it is over.
    fn send(&self, way: Way, trip: u64) -> bool {
        match way {
            Way::CompareSwap => self.swap(2 * trip),
            Way::StoreLoad => {
                self.there.0.store(trip + 1, Ordering::Release);
                self.wait(&self.back, trip + 1)
            }
        }
    }

    /// The other thread's part in that.
    fn answer(&self, way: Way, trip: u64) -> bool {
        match way {
            Way::CompareSwap => self.swap(2 * trip + 1),
            Way::StoreLoad => {
                let came = self.wait(&self.there, trip + 1);
                self.back.0.store(trip + 1, Ordering::Release);
                came
            }
        }
    }

    /// Waits for a number by compare-and-swap, which puts the next one.
    fn swap(&self, number: u64) -> bool {
        let next = number + 1;
        let word = &self.there.0;
        self.until(|| {
            word.compare_exchange(number, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Waits for a number by loads.
    fn wait(&self, word: &Word, number: u64) -> bool {
        self.until(|| word.0.load(Ordering::Acquire) == number)
    }

    fn until(&self, passed: impl Fn() -> bool) -> bool {
        let mut looks = 0_u32;
        while !passed() {
            // Looked at seldom, so that it costs nothing.
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 12) && self.over.load(Ordering::Relaxed) {
                return false;
            }
        }
        true
    }
}

/// Ticks of the time stamp counter that a word takes one way, of so many blocks of a thousand round trips.
///
/// # Errors
/// A CPU is offline or not allowed.
pub fn one_way(own: Cpu, other: Cpu, way: Way, blocks: u32) -> io::Result<Spread> {
    let words = Words::default();
    let work = || {
        let mut trips = 0..;
        while trips.next().is_some_and(|trip| words.answer(way, trip)) {}
    };
    beside(own, other, &words.over, work, || {
        let mut spread = Spread::default();
        let mut trips = 0..;
        let warm = Instant::now();
        while spread.count() < u64::from(blocks) && !words.over.load(Ordering::Relaxed) {
            let start = ticks();
            for trip in trips.by_ref().take(ROUND_TRIPS as usize) {
                if !words.send(way, trip) {
                    break;
                }
            }
            let took = ticks().saturating_sub(start);
            if warm.elapsed() >= WARM_UP {
                spread.record(took as f64 / (2 * ROUND_TRIPS) as f64);
            }
        }
        spread
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
