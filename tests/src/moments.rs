//! Moments that a test does not choose, and that are the same in each run of it.

use std::time::Duration;

/// Pseudo-random milliseconds below a bound (xorshift64, Marsaglia 2003).
#[derive(Debug)]
pub struct Moments(u64);

impl Default for Moments {
    fn default() -> Moments {
        Moments(0x2545_f491_4f6c_dd1d)
    }
}

impl Moments {
    /// The next one.
    pub fn next_below(&mut self, ms: u64) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(self.0 % ms)
    }
}
