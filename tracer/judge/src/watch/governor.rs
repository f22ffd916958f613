//! How much watching the targets can bear: a budget of trap time, spent by windows.
//!
//! A hit stops the thread that made it for the time of a trap, microseconds that the program did not
//! ask for. The sum over all threads is held to a share of the wall time. That is cautious: threads that
//! are trapped side by side lose that time together, and a program with threads to spare loses less; but
//! where one thread's progress holds up all others, the sum is what the program loses.

/// Seconds of budget that may be saved up: what a run may spend at its start, and after a pause.
const SAVED_S: f64 = 0.25;

/// Fewer hits than this show no order worth arming for.
pub(super) const LEAST_HITS: u64 = 64;

/// More hits than this in one window bring no more proof than a second window would.
pub(super) const MOST_HITS: u64 = 400;

/// What watching costs on this machine, nanoseconds; measured when the source is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// One hit.
    pub hit_ns: u64,
    /// Arming and disarming all breakpoints once, as far as it interrupts the targets.
    pub window_ns: u64,
}

/// Keeps the cost of windows within a share of the time.
#[derive(Clone, Debug)]
pub struct Governor {
    share: f64,
    prices: Prices,
    started_ns: u64,
    /// Budget that was not spent in time, and is not saved up.
    forgone_ns: f64,
}

impl Governor {
    /// `share` of the wall time, 0..=1, from `started_ns` (CLOCK_MONOTONIC) on.
    pub fn new(share: f64, prices: Prices, started_ns: u64) -> Governor {
        Governor {
            share,
            prices,
            started_ns,
            forgone_ns: 0.0,
        }
    }

    /// Hits that a window opened now may have, when all windows before took `spent_ns` from the targets;
    /// `None` while there is not enough for a window that shows an order.
    pub fn allowance(&mut self, now_ns: u64, spent_ns: u64) -> Option<u64> {
        let elapsed_ns = now_ns.saturating_sub(self.started_ns) as f64;
        let saved_ns = SAVED_S * 1e9 * self.share;
        let mut left_ns = saved_ns + elapsed_ns * self.share - spent_ns as f64 - self.forgone_ns;
        // A small share saves up for at least one window.
        let window_ns = self.prices.window_ns as f64;
        let hit_ns = self.prices.hit_ns.max(1) as f64;
        let most_ns = saved_ns.max(window_ns + LEAST_HITS as f64 * hit_ns);
        if left_ns > most_ns {
            self.forgone_ns += left_ns - most_ns;
            left_ns = most_ns;
        }
        let hits = (left_ns - window_ns) / hit_ns;
        (hits >= LEAST_HITS as f64).then(|| (hits as u64).min(MOST_HITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices {
        hit_ns: 10_000,
        window_ns: 50_000,
    };

    /// Spends all it may for ten seconds, asking every millisecond; gives the share that was spent.
    fn spend(share: f64, hits_had: impl Fn(u64) -> u64) -> f64 {
        let mut governor = Governor::new(share, PRICES, 5_000);
        let mut spent_ns = 0;
        for ms in 0..10_000u64 {
            if let Some(hits) = governor.allowance(5_000 + ms * 1_000_000, spent_ns) {
                assert!((LEAST_HITS..=MOST_HITS).contains(&hits));
                spent_ns += PRICES.window_ns + hits_had(hits) * PRICES.hit_ns;
            }
        }
        spent_ns as f64 / 1e10
    }

    #[test]
    fn windows_take_their_share_of_the_time_and_no_more() {
        for share in [0.01, 0.02, 0.05, 0.1] {
            let spent = spend(share, |hits| hits);
            let most = share * (1.0 + SAVED_S / 10.0);
            assert!(spent <= most && spent > 0.9 * share, "{share}: {spent}");
        }
    }

    #[test]
    fn hits_beyond_the_limit_are_paid_for_by_later_windows() {
        let spent = spend(0.02, |hits| hits * 3);
        assert!(spent < 0.025, "{spent}");
    }

    #[test]
    fn a_quiet_line_costs_only_its_arming() {
        let mut governor = Governor::new(0.02, PRICES, 0);
        for second in 1..100u64 {
            let spent_ns = second * PRICES.window_ns;
            assert!(
                governor
                    .allowance(second * 1_000_000_000, spent_ns)
                    .is_some()
            );
        }
    }

    #[test]
    fn a_pause_does_not_save_up_a_storm() {
        let mut governor = Governor::new(0.02, PRICES, 0);
        let mut spent_ns = 0;
        while let Some(hits) = governor.allowance(3_600_000_000_000, spent_ns) {
            spent_ns += PRICES.window_ns + hits * PRICES.hit_ns;
        }
        assert!(spent_ns as f64 <= SAVED_S * 1e9 * 0.02, "{spent_ns}");
    }

    #[test]
    fn a_budget_of_one_in_a_thousand_still_affords_a_window_now_and_then() {
        let spent = spend(0.001, |hits| hits);
        assert!(spent > 0.0005 && spent < 0.0015, "{spent}");
    }

    #[test]
    fn no_budget_allows_nothing() {
        let mut governor = Governor::new(0.0, PRICES, 0);
        assert_eq!(governor.allowance(1, 0), None);
        assert_eq!(governor.allowance(u64::MAX, 0), None);
    }
}
