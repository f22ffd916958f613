//! What a tick of the time stamp counter is, in time and in cycles of the core.

use std::time::Duration;

use cohtrace_platform::sys::{
    clock::monotonic_ns,
    line_loops::{additions, ticks},
};

/// How long the counter is held against the clock.
const WATCHED: Duration = Duration::from_millis(20);
/// Thousands of additions of a run that is timed, and runs.
const THOUSANDS: u64 = 200;
const RUNS: usize = 15;

/// The clocks of a CPU while it is busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clocks {
    /// Nanoseconds of a tick.
    pub tick_ns: f64,
    /// Core cycles of a tick: above 1 where the core runs faster than the counter.
    pub tick_cycles: f64,
}

impl Clocks {
    /// Of the CPU that the calling thread is on, which stays busy meanwhile.
    pub fn measure() -> Clocks {
        let (start_ns, start) = (monotonic_ns(), ticks());
        let mut took: Vec<u64> = Vec::with_capacity(RUNS);
        while took.len() < RUNS || monotonic_ns() - start_ns < WATCHED.as_nanos() as u64 {
            let run = additions(THOUSANDS);
            if took.len() < RUNS {
                took.push(run);
            }
        }
        let (ns, all) = (monotonic_ns() - start_ns, ticks() - start);
        // The fastest run is the one that nothing disturbed.
        let fastest = took.into_iter().min().unwrap_or(1).max(1);
        Clocks {
            tick_ns: ns as f64 / all.max(1) as f64,
            tick_cycles: (THOUSANDS * 1000) as f64 / fastest as f64,
        }
    }

    /// Nanoseconds of so many ticks.
    pub fn ns(self, ticks: f64) -> f64 {
        ticks * self.tick_ns
    }

    /// Core cycles of so many ticks.
    pub fn cycles(self, ticks: f64) -> f64 {
        ticks * self.tick_cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_a_part_of_a_nanosecond_and_about_a_cycle() {
        let clocks = Clocks::measure();
        assert!((0.1..2.0).contains(&clocks.tick_ns), "{clocks:?}");
        assert!((0.1..10.0).contains(&clocks.tick_cycles), "{clocks:?}");
        assert!((clocks.ns(1000.0) / clocks.tick_ns - 1000.0).abs() < 1e-6);
    }
}
