//! A bound on the work and memory one file can cause.
//!
//! A hostile file can make a small table refer to a large one from many places, so that decoding all of
//! it takes time and memory far beyond the file's size. Everything that is decoded once and kept
//! pays here; honest files use a small part of the allowance.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::missing::Missing;

/// Units of decoding work left: about one per entry, row or range. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicU64>);

impl Budget {
    /// For a file (or sections) of this many bytes. Each entry is encoded in at least one byte and read
    /// by at most a few passes, so that eight per byte is generous.
    pub(crate) fn for_bytes(bytes: usize) -> Budget {
        let units = (bytes as u64).saturating_mul(8) + (1 << 16);
        Budget(Arc::new(AtomicU64::new(units)))
    }

    /// Adds what [`Budget::for_bytes`] gives: for a further file.
    pub(crate) fn allow(&self, bytes: usize) {
        let more = (bytes as u64).saturating_mul(8);
        let add = |left: u64| Some(left.saturating_add(more));
        // The closure never refuses.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Gives back what was paid for something that is no longer kept.
    pub(crate) fn refund(&self, amount: u64) {
        // No more than was taken, so that it cannot overflow.
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Pays for `amount` units; the file is called malformed when nothing is left.
    pub(crate) fn charge(&self, amount: u64) -> Result<(), Missing> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(amount)
            })
            .map(|_| ())
            .map_err(|_| Missing::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn a_file_cannot_cause_more_work_than_its_size_allows() {
        let budget = Budget::for_bytes(1000);
        assert!(budget.charge(8000).is_ok());
        assert!(budget.charge(1 << 16).is_ok());
        assert!(budget.charge(1).is_err());
        assert!(budget.charge(0).is_ok());
    }
}
