//! The set of CPUs that executed something: one word on nearly every machine.

use std::collections::BTreeSet;

use crate::access::Cpu;

/// Linux on x86-64 has at most this many (`NR_CPUS`, arch/x86/Kconfig); a larger number is damage in
/// the input and is not remembered.
const MOST_CPUS: u32 = 8192;

/// CPUs by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    below_64: u64,
    #[expect(clippy::box_collection, reason = "one word where no CPU is above 63")]
    others: Option<Box<BTreeSet<u32>>>,
}

impl CpuSet {
    /// Adds a CPU.
    pub fn insert(&mut self, cpu: Cpu) {
        match cpu.0 {
            n @ 0..64 => self.below_64 |= 1 << n,
            n @ 64..MOST_CPUS => {
                self.others.get_or_insert_default().insert(n);
            }
            _ => {}
        }
    }

    /// Adds all CPUs of another set.
    pub fn merge(&mut self, other: &CpuSet) {
        self.below_64 |= other.below_64;
        if let Some(others) = &other.others {
            self.others.get_or_insert_default().extend(others.iter());
        }
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.len());
        self.below_64.count_ones() as usize + others
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        let low = (0..64).filter(|n| self.below_64 >> n & 1 == 1);
        low.chain(self.others.iter().flat_map(|others| others.iter().copied()))
            .map(Cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_come_back_ascending_and_once() {
        let mut set = CpuSet::default();
        assert!(set.is_empty());
        for n in [200, 3, 63, 64, 3, 200] {
            set.insert(Cpu(n));
        }
        assert_eq!(
            set.iter().map(|cpu| cpu.0).collect::<Vec<_>>(),
            [3, 63, 64, 200]
        );
        assert_eq!(set.len(), 4);
        let mut all = CpuSet::default();
        all.insert(Cpu(1));
        all.merge(&set);
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn an_impossible_cpu_number_is_not_remembered() {
        let mut set = CpuSet::default();
        set.insert(Cpu(u32::MAX));
        assert!(set.is_empty());
    }
}
