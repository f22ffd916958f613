//! How long a line stays before another processor takes it.

use super::served::{OrderFacts, Served, Statistic};
use crate::distribution::Distribution;

/// Times from one time that a processor takes the line from another to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct HandOffIntervals {
    last_ns: Option<u64>,
    intervals: Distribution,
}

impl HandOffIntervals {
    /// Nanoseconds.
    pub(super) fn intervals(&self) -> &Distribution {
        &self.intervals
    }
}

impl Statistic for HandOffIntervals {
    fn see(&mut self, served: &Served, _: &OrderFacts) {
        if !(served.known && served.takes()) {
            return;
        }
        let now_ns = served.access.time_ns;
        if let Some(last_ns) = self.last_ns.replace(now_ns) {
            self.intervals.record(now_ns.saturating_sub(last_ns));
        }
    }

    fn end_window(&mut self, _: &OrderFacts) {
        self.last_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Access, ByteSet, Cpu, LineSize, Op, SpaceId},
        analysis::served::{Home, OnLine},
    };

    /// Sees stores to a word of a line by these CPUs at these times, in two windows.
    fn intervals(windows: [&[(u32, u64)]; 2]) -> Vec<u64> {
        let order = OrderFacts {
            line_size: LineSize::B64,
            complete: true,
            watched: ByteSet(0xff),
            most_loads: 1,
            endless: false,
        };
        let mut intervals = HandOffIntervals::default();
        for window in windows {
            let mut home = Home::unknown();
            for &(cpu, time_ns) in window {
                let access = Access {
                    time_ns,
                    cpu: Cpu(cpu),
                    op: Op::Store,
                    size: 8,
                    ..Access::BLANK
                };
                let served = home.serve(OnLine::new(&access, SpaceId(0), 0, 8));
                intervals.see(&served.expect("a store asks for something"), &order);
            }
            intervals.end_window(&order);
        }
        let of = intervals.intervals();
        let count = of.count();
        let at = |rank| of.quantile(rank as f64 / count as f64);
        (1..=count).filter_map(at).collect()
    }

    #[test]
    fn from_one_hand_off_to_the_next_it_is_an_interval_and_between_windows_it_is_none() {
        // Where the line was before its first store is not known, and the owner's next store takes it from nobody.
        let first = [(0, 10), (1, 100), (0, 250), (0, 260), (1, 1000)];
        assert_eq!(intervals([&first, &[]]), [150, 750]);
        let second = [(0, 5000), (1, 5010), (0, 5030)];
        assert_eq!(intervals([&first, &second]), [20, 150, 750]);
    }

    #[test]
    fn a_line_that_one_processor_has_to_itself_has_no_interval() {
        assert_eq!(
            intervals([&[(0, 10), (0, 20), (0, 30)], &[]]),
            Vec::<u64>::new()
        );
    }
}
