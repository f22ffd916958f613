//! How much following the heap may cost: a share of the time, saved up to a limit; what was spent beyond is a
//! debt that is paid back before the probes come again.

/// Budget that may be saved up, nanoseconds: what a program may allocate in a burst, at its start above all.
const SAVED_NS: f64 = 100e6;
/// Share of that, from which on it is worth while to put the probes in again.
const WORTH_WHILE: f64 = 0.5;

/// Says when the probes come out, and when they come back.
#[derive(Clone, Debug)]
pub(super) struct Governor {
    share: f64,
    left_ns: f64,
}

impl Governor {
    /// `share` of the wall time, 0..=1.
    pub(super) fn new(share: f64) -> Governor {
        Governor {
            share,
            left_ns: SAVED_NS,
        }
    }

    /// So much time went by, in which the probes took so much from the targets.
    pub(super) fn account(&mut self, elapsed_ns: u64, cost_ns: u64) {
        let earned_ns = elapsed_ns as f64 * self.share;
        self.left_ns = (self.left_ns + earned_ns - cost_ns as f64).min(SAVED_NS);
    }

    /// Whether the probes have to come out.
    pub(super) fn is_spent(&self) -> bool {
        self.left_ns <= 0.0
    }

    /// Whether there is enough to put them in again.
    pub(super) fn may_resume(&self) -> bool {
        self.left_ns >= SAVED_NS * WORTH_WHILE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes of a program that costs `rate` of the time while it is followed, and `late_ns` longer than
    /// asked for; gives the share spent.
    fn spend(share: f64, rate: f64, late_ns: u64) -> f64 {
        const STEP_NS: u64 = 5_000_000;
        const WHOLE_NS: u64 = 600_000_000_000;
        let mut governor = Governor::new(share);
        let (mut on, mut spent_ns, mut off_at) = (true, 0, None);
        for now_ns in (0..WHOLE_NS).step_by(STEP_NS as usize) {
            let cost_ns = if on {
                (STEP_NS as f64 * rate) as u64
            } else {
                0
            };
            spent_ns += cost_ns;
            governor.account(STEP_NS, cost_ns);
            if on && off_at.is_none() && governor.is_spent() {
                off_at = Some(now_ns + late_ns);
            }
            if off_at.is_some_and(|at| at <= now_ns) {
                (on, off_at) = (false, None);
            }
            on |= governor.may_resume();
        }
        spent_ns as f64 / WHOLE_NS as f64
    }

    #[test]
    fn what_costs_less_than_the_share_is_followed_all_the_time() {
        let spent = spend(0.05, 0.04, 0);
        assert!((spent - 0.04).abs() < 1e-6, "{spent}");
    }

    #[test]
    fn a_storm_costs_the_share_however_late_the_probes_come_out() {
        for (rate, late_ns) in [
            (0.9, 0),
            (0.9, 250_000_000),
            (1.9, 1_000_000_000),
            (0.06, 0),
        ] {
            let spent = spend(0.05, rate, late_ns);
            // What is spent late at the very end is not paid back within the time.
            let most = 0.051 + rate * late_ns as f64 / 600e9;
            assert!((0.04..=most).contains(&spent), "{rate} {late_ns}: {spent}");
        }
    }
}
