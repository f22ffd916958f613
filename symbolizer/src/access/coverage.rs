//! How many accesses got a name.

use super::Untraced;

/// Counts of named accesses, and of each reason why others were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Accesses with a name.
    pub named: u64,
    /// In the order of [`Untraced::ALL`].
    pub untraced: [u64; Untraced::ALL.len()],
}

impl Coverage {
    /// Counts one answer of [`crate::Module::access`] or [`crate::Prototyped::access`].
    pub fn count(&mut self, answer: Result<(), Untraced>) {
        match answer {
            Ok(()) => self.named += 1,
            Err(reason) => {
                let place = Untraced::ALL.iter().position(|known| *known == reason);
                if let Some(count) = place.and_then(|place| self.untraced.get_mut(place)) {
                    *count += 1;
                }
            }
        }
    }

    /// Adds the counts of other accesses.
    pub fn add(&mut self, other: &Coverage) {
        self.named += other.named;
        for (count, more) in self.untraced.iter_mut().zip(other.untraced) {
            *count += more;
        }
    }

    /// All accesses counted.
    pub fn total(&self) -> u64 {
        self.named + self.untraced.iter().sum::<u64>()
    }

    /// Named accesses of all, 0 to 1; nothing where there are none.
    pub fn named_share(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.named as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, Untraced};

    #[test]
    fn shares_are_of_all_accesses_and_of_none_there_is_no_share() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.named_share(), None);
        for reason in Untraced::ALL {
            coverage.count(Err(reason));
        }
        assert_eq!(coverage.untraced, [1; Untraced::ALL.len()]);
        assert_eq!(coverage.named_share(), Some(0.0));
        let mut sum = Coverage {
            named: 14,
            ..Coverage::default()
        };
        sum.add(&coverage);
        assert_eq!((sum.total(), sum.named_share()), (28, Some(0.5)));
    }
}
