//! A set of processors, as a directory keeps it.

use crate::access::Cpu;

/// Processors that have a bit each; a machine of more has the rest in a list.
const BITS: u32 = u64::BITS;

/// Processors, each once. 16 bytes, and nothing elsewhere unless there are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Processors {
    /// Bit n for processor n.
    low: u64,
    /// Those from 64 on, if there are any.
    high: Option<Box<High>>,
}

/// Sorted, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct High(Vec<Cpu>);

impl Processors {
    fn high(&self) -> &[Cpu] {
        self.high.as_ref().map_or(&[], |high| &high.0)
    }

    fn bit(cpu: Cpu) -> Option<u64> {
        (cpu.0 < BITS).then(|| 1 << cpu.0)
    }

    pub(super) fn contains(&self, cpu: Cpu) -> bool {
        match Processors::bit(cpu) {
            Some(bit) => self.low & bit != 0,
            None => self.high().binary_search(&cpu).is_ok(),
        }
    }

    pub(super) fn insert(&mut self, cpu: Cpu) {
        if let Some(bit) = Processors::bit(cpu) {
            self.low |= bit;
            return;
        }
        let High(high) = &mut **self.high.get_or_insert_default();
        if let Err(at) = high.binary_search(&cpu) {
            high.insert(at, cpu);
        }
    }

    pub(super) fn remove(&mut self, cpu: Cpu) {
        if let Some(bit) = Processors::bit(cpu) {
            self.low &= !bit;
            return;
        }
        if let Some(High(high)) = self.high.as_deref_mut() {
            high.retain(|other| *other != cpu);
        }
        self.high.take_if(|high| high.0.is_empty());
    }

    pub(super) fn clear(&mut self) {
        *self = Processors::default();
    }

    pub(super) fn len(&self) -> usize {
        self.low.count_ones() as usize + self.high().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_none()
    }

    /// In order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        let mut left = self.low;
        let low = std::iter::from_fn(move || {
            let cpu = (left != 0).then(|| Cpu(left.trailing_zeros()))?;
            left &= left - 1;
            Some(cpu)
        });
        low.chain(self.high().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_processors_is_a_set(changes in prop::collection::vec((any::<bool>(), 0..80u32), 0..100)) {
            let mut set = Processors::default();
            let mut plain = BTreeSet::new();
            for (insert, cpu) in changes {
                if insert {
                    set.insert(Cpu(cpu));
                    plain.insert(Cpu(cpu));
                } else {
                    set.remove(Cpu(cpu));
                    plain.remove(&Cpu(cpu));
                }
                prop_assert_eq!(set.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((set.len(), set.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!(set.contains(Cpu(cpu)), insert);
            }
        }
    }
}
