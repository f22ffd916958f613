//! A run's time, cut into slices of one length.

use crate::Refusal;

/// Slices of a run from its start on. Each time is in exactly one: what is before the start in the first, what is after
/// the end in the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// All in nanoseconds, on the stream's clock.
    start: u64,
    end: Option<u64>,
    interval: Option<u64>,
}

/// Most slices of a run that is going on; what comes later is in the last.
const MOST: u64 = 1_000_000;

impl Slices {
    /// Slices of `interval_ns` nanoseconds, or the whole run as one. `start_ns` and `end_ns` are on the clock of the
    /// stream; a run that is still going on has no end.
    ///
    /// # Errors
    /// An interval of 0, and one that is longer than the run.
    pub fn new(
        start_ns: u64,
        end_ns: Option<u64>,
        interval_ns: Option<u64>,
    ) -> Result<Slices, Refusal> {
        let slices = Slices {
            start: start_ns,
            end: end_ns.map(|end_ns| end_ns.max(start_ns)),
            interval: interval_ns,
        };
        match (interval_ns, slices.duration_ns()) {
            (Some(0), _) => return Err(Refusal::NoInterval),
            (Some(interval_ns), Some(run_ns)) if interval_ns > run_ns => {
                return Err(Refusal::LongerThanRun {
                    interval_ns,
                    run_ns,
                });
            }
            _ => {}
        }
        Ok(slices)
    }

    /// Length of the run, nanoseconds, where it has ended.
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.end? - self.start)
    }

    /// Length of a slice, nanoseconds; `None` where the run is one.
    pub fn interval_ns(&self) -> Option<u64> {
        self.interval
    }

    /// Start of the run on the stream's clock, nanoseconds.
    pub fn start_ns(&self) -> u64 {
        self.start
    }

    /// The slice of a time, from 0.
    pub fn of(&self, time_ns: u64) -> u32 {
        let Some(interval_ns) = self.interval else {
            return 0;
        };
        let since = time_ns.saturating_sub(self.start);
        let last = self.known_count().map_or(MOST, u64::from).saturating_sub(1);
        (since / interval_ns.max(1)).min(last) as u32
    }

    /// How many there are, where the run has ended.
    pub fn known_count(&self) -> Option<u32> {
        match self.interval {
            None => Some(1),
            Some(interval_ns) => {
                let count = self.duration_ns()?.div_ceil(interval_ns.max(1));
                Some(count.clamp(1, u64::from(u32::MAX)) as u32)
            }
        }
    }

    /// First nanosecond of a slice and the one after its last, from the start of the run. The last slice ends with the
    /// run; that of a run without an end has none.
    pub fn bounds_ns(&self, slice: u32) -> (u64, Option<u64>) {
        let Some(interval_ns) = self.interval else {
            return (0, self.duration_ns());
        };
        let from = u64::from(slice).saturating_mul(interval_ns);
        let to = from.saturating_add(interval_ns);
        (from, Some(self.duration_ns().map_or(to, |end| to.min(end))))
    }
}

/// The next length that people would ask for: 1, 2 or 5 and zeros.
pub(crate) fn round_up(ns: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 5] {
            let length = unit.saturating_mul(step);
            if length >= ns {
                return length;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// `100 ms`, `2 s`, `50 us`: as `--interval` takes it, but for the blank.
pub(crate) fn words(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let fits = units
        .iter()
        .find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    fits.map_or(format!("{ns}ns"), |(unit, name)| {
        format!("{}{name}", ns / unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_time_is_in_the_slice_that_begins_at_or_before_it() {
        let slices = Slices::new(1000 * MS, Some(1250 * MS), Some(100 * MS)).unwrap();
        assert_eq!(slices.known_count(), Some(3));
        let of = |ms: u64| slices.of(ms * MS);
        assert_eq!([of(1000), of(1100), of(1249)], [0, 1, 2]);
        assert_eq!(slices.of(1100 * MS - 1), 0);
        assert_eq!(slices.bounds_ns(2), (200 * MS, Some(250 * MS)));
    }

    #[test]
    fn what_is_before_the_start_or_after_the_end_is_in_the_first_or_last() {
        let slices = Slices::new(1000 * MS, Some(1250 * MS), Some(100 * MS)).unwrap();
        assert_eq!([slices.of(0), slices.of(u64::MAX)], [0, 2]);
        let going_on = Slices::new(0, None, Some(1)).unwrap();
        assert_eq!(going_on.of(u64::MAX), 999_999);
    }

    #[test]
    fn an_interval_that_cannot_be_is_refused() {
        let run = |interval| Slices::new(0, Some(1_000 * MS), Some(interval)).unwrap_err();
        assert_eq!(run(0), Refusal::NoInterval);
        assert!(matches!(run(1001 * MS), Refusal::LongerThanRun { .. }));
        assert!(Slices::new(0, Some(1_000 * MS), Some(1_000 * MS)).is_ok());
    }

    #[test]
    fn lengths_are_said_in_the_largest_unit_that_divides_them() {
        let all = [0, 1, 1500, 100 * MS, 2_000 * MS].map(words);
        assert_eq!(all, ["0ns", "1ns", "1500ns", "100ms", "2s"]);
        assert_eq!([round_up(1), round_up(3), round_up(51)], [1, 5, 100]);
    }
}
