//! A bound on the work and memory one file can cause.
//!
//! A hostile file can make a small table refer to a large one from many places, so that decoding all of
//! it takes time and memory far beyond the file's size. Everything that is decoded once and kept
//! pays here; honest files use a small part of the allowance.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{allowance::Allowance, missing::Missing};

/// Units of decoding work left: about one per entry, row or range. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    left: Arc<AtomicU64>,
    /// That of all modules together, which may be out of time.
    all: Allowance,
}

impl Budget {
    /// For a file (or sections) of this many bytes. Each entry is encoded in at least one byte and read
    /// by at most a few passes, so that eight per byte is generous.
    pub(crate) fn for_bytes(bytes: usize, all: &Allowance) -> Budget {
        let units = (bytes as u64).saturating_mul(8) + (1 << 16);
        Budget {
            left: Arc::new(AtomicU64::new(units)),
            all: all.clone(),
        }
    }

    /// Adds what [`Budget::for_bytes`] gives: for a further file.
    pub(crate) fn allow(&self, bytes: usize) {
        let more = (bytes as u64).saturating_mul(8);
        let add = |left: u64| Some(left.saturating_add(more));
        // The closure never refuses.
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Gives back what was paid for something that is no longer kept.
    pub(crate) fn refund(&self, amount: u64) {
        // No more than was taken, so that it cannot overflow.
        self.left.fetch_add(amount, Ordering::Relaxed);
    }

    /// Pays for `amount` units; the file is called malformed when nothing is left.
    pub(crate) fn charge(&self, amount: u64) -> Result<(), Missing> {
        self.time()?;
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(amount)
            })
            .map(|_| ())
            .map_err(|_| Missing::Malformed)
    }

    /// Whether there is time for more.
    pub(crate) fn time(&self) -> Result<(), Missing> {
        if self.all.is_out_of_time() {
            return Err(Missing::NoTime);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, time::Duration};

    use super::*;

    #[test]
    fn a_file_cannot_cause_more_work_than_its_size_allows() {
        let budget = Budget::for_bytes(1000, &Allowance::default());
        assert!(budget.charge(8000).is_ok());
        assert!(budget.charge(1 << 16).is_ok());
        assert!(budget.charge(1).is_err());
        assert!(budget.charge(0).is_ok());
    }

    #[test]
    fn after_a_request_to_stop_there_is_no_time_for_more_than_the_grace() {
        for (grace, answer) in [
            (Duration::ZERO, Err(Missing::NoTime)),
            (Duration::from_hours(1), Ok(())),
        ] {
            let (all, asked) = (Allowance::default(), Arc::new(AtomicBool::new(false)));
            all.heed(asked.clone(), grace);
            let budget = Budget::for_bytes(1000, &all);
            assert_eq!(budget.charge(1), Ok(()));
            asked.store(true, Ordering::Relaxed);
            assert_eq!(budget.charge(1), answer);
        }
    }
}
