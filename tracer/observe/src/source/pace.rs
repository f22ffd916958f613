//! When something that changes ever less is looked at again.

/// Until the second time. Doubles each time.
const FIRST_DELAY_NS: u64 = 20_000_000;
const LAST_DELAY_NS: u64 = 4_000_000_000;

/// When one such thing is looked at, CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    next_ns: u64,
    delay_ns: u64,
}

impl Pace {
    /// Of something that is looked at at once.
    pub(super) fn at_once(now_ns: u64) -> Pace {
        Pace {
            next_ns: now_ns,
            delay_ns: FIRST_DELAY_NS,
        }
    }

    /// Of something that is let be for the first delay.
    pub(super) fn later(now_ns: u64) -> Pace {
        Pace::at_once(now_ns.saturating_add(FIRST_DELAY_NS))
    }

    /// Whether it is time.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// It is looked at.
    pub(super) fn look(&mut self, now_ns: u64) {
        self.next_ns = now_ns.saturating_add(self.delay_ns);
        self.delay_ns = (self.delay_ns * 2).min(LAST_DELAY_NS);
    }
}
