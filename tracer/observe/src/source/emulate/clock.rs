//! From the CPU's time stamp counter to CLOCK_MONOTONIC: one straight line for a run.

use std::time::Duration;

use crate::sys::{clock::monotonic_ns, emulator_memory::time_stamp};

/// How long the rate is measured; a reading is good to some 50 ns, so the rate is to 5 parts in a million.
const MEASURED: Duration = Duration::from_millis(10);
/// Bits after the point of [`StampClock::rate`].
const SHIFT: u32 = 32;

/// The line.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampClock {
    stamp: u64,
    ns: u64,
    /// Nanoseconds for a tick, times 2^[`SHIFT`].
    rate: u64,
}

impl StampClock {
    /// Measures the rate; takes 10 ms.
    pub(super) fn calibrate() -> StampClock {
        let first = both();
        std::thread::sleep(MEASURED);
        StampClock::through(first, both())
    }

    /// The line through two readings of (stamp, nanoseconds).
    fn through((stamp, ns): (u64, u64), (later, later_ns): (u64, u64)) -> StampClock {
        let ticks = later.saturating_sub(stamp).max(1);
        let passed = u128::from(later_ns.saturating_sub(ns));
        let rate = ((passed << SHIFT) / u128::from(ticks)) as u64;
        StampClock { stamp, ns, rate }
    }

    /// Nanoseconds at a stamp; never before the first reading.
    pub(super) fn ns(&self, stamp: u64) -> u64 {
        let ticks = u128::from(stamp.saturating_sub(self.stamp));
        self.ns + ((ticks * u128::from(self.rate)) >> SHIFT) as u64
    }

    /// Ticks in a stretch of time.
    pub(super) fn ticks(&self, time: Duration) -> u64 {
        ((time.as_nanos() << SHIFT) / u128::from(self.rate.max(1))) as u64
    }
}

/// The stamp in the middle of two readings of which the nanoseconds are between.
fn both() -> (u64, u64) {
    let before = time_stamp();
    let ns = monotonic_ns();
    let after = time_stamp();
    (before + (after - before) / 2, ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_on_the_line_through_both_readings() {
        let clock = StampClock::through((1_000, 50_000), (4_000, 51_000));
        assert_eq!(clock.ns(1_000), 50_000);
        assert!(clock.ns(4_000).abs_diff(51_000) <= 1);
        assert!(clock.ns(31_000).abs_diff(60_000) <= 1);
        assert_eq!(clock.ns(0), 50_000);
        assert!(clock.ticks(Duration::from_micros(1)).abs_diff(3_000) <= 1);
    }

    #[test]
    fn now_is_now_on_both_clocks() {
        let clock = StampClock::calibrate();
        let before = monotonic_ns();
        let now = clock.ns(time_stamp());
        // A wide margin: the machine may stop us in between.
        assert!(now + 1_000_000 >= before && now <= monotonic_ns() + 1_000_000);
    }
}
