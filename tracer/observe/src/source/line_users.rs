//! Who used which lines lately, as far as samples tell; within a bound on memory.

use rustc_hash::FxHashMap;

use crate::access::{Cpu, LineKey, Tid};

/// Lines in one generation; there are two. What a thread waits for is among those sampled most.
const MOST_LINES: usize = 8192;
/// Threads told apart by the bytes that they store.
const MOST_STORING: usize = 4;

/// The users of lines. The last lines are known, and those before as long as they keep being used.
#[derive(Debug, Default)]
pub(super) struct LineUsers {
    young: FxHashMap<LineKey, Users>,
    old: FxHashMap<LineKey, Users>,
}

/// The users of one line.
#[derive(Clone, Copy, Debug)]
struct Users {
    first: (Tid, Cpu),
    threads: bool,
    cpus: bool,
    /// By thread, the bytes of the line that it stores, bit n for byte n.
    stores: [(Tid, u64); MOST_STORING],
    storing: u8,
    /// Bytes that further threads store.
    others_store: u64,
}

impl LineUsers {
    /// Notes an access of a thread to bytes of a line.
    pub(super) fn note(&mut self, line: LineKey, tid: Tid, cpu: Cpu, stored: u64) {
        if !self.young.contains_key(&line) && self.young.len() >= MOST_LINES {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &self.old;
        let users = self.young.entry(line).or_insert_with(|| {
            let known = old.get(&line).copied();
            known.unwrap_or_else(|| Users::new(tid, cpu))
        });
        users.threads |= users.first.0 != tid;
        users.cpus |= users.first.1 != cpu;
        if stored != 0 {
            users.store(tid, stored);
        }
    }

    fn get(&self, line: LineKey) -> Option<&Users> {
        self.young.get(&line).or_else(|| self.old.get(&line))
    }

    /// Whether several threads use it, on several CPUs: threads of one CPU have one cache.
    pub(super) fn several(&self, line: LineKey) -> bool {
        self.get(line)
            .is_some_and(|users| users.threads && users.cpus)
    }

    /// The bytes of the line that threads other than this one store.
    pub(super) fn stored_by_others(&self, line: LineKey, tid: Tid) -> u64 {
        self.get(line)
            .map_or(0, |users| users.stored(|other| other != tid))
    }

    /// Whether any thread stores there.
    pub(super) fn is_stored(&self, line: LineKey) -> bool {
        self.get(line)
            .is_some_and(|users| users.stored(|_| true) != 0)
    }
}

impl Users {
    fn new(tid: Tid, cpu: Cpu) -> Users {
        Users {
            first: (tid, cpu),
            threads: false,
            cpus: false,
            stores: [(Tid(0), 0); MOST_STORING],
            storing: 0,
            others_store: 0,
        }
    }

    fn store(&mut self, tid: Tid, bytes: u64) {
        let storing = usize::from(self.storing);
        if let Some((_, known)) = self.stores[..storing]
            .iter_mut()
            .find(|(other, _)| *other == tid)
        {
            *known |= bytes;
        } else if let Some(free) = self.stores.get_mut(storing) {
            *free = (tid, bytes);
            self.storing += 1;
        } else {
            self.others_store |= bytes;
        }
    }

    /// Of more threads than are told apart, the rest counts as others.
    fn stored(&self, by: impl Fn(Tid) -> bool) -> u64 {
        let known = &self.stores[..usize::from(self.storing)];
        let known = known.iter().filter(|(tid, _)| by(*tid));
        known.fold(self.others_store, |all, (_, bytes)| all | bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Place;

    fn line(number: u64) -> LineKey {
        LineKey(Place::Kernel { addr: number * 64 })
    }

    #[test]
    fn a_line_is_used_by_several_when_threads_and_cpus_are() {
        let mut users = LineUsers::default();
        let mut several = |tid, cpu| {
            users.note(line(1), Tid(tid), Cpu(cpu), 0);
            users.several(line(1))
        };
        assert!(!several(1, 0));
        // One thread that moved, then another one on the same CPU as the first.
        assert!(!several(1, 0));
        assert!(!several(2, 0));
        assert!(several(2, 1));
        assert!(!users.several(line(2)));
    }

    #[test]
    fn what_others_store_is_told_by_bytes() {
        let mut users = LineUsers::default();
        users.note(line(1), Tid(1), Cpu(0), 0x0f);
        users.note(line(1), Tid(2), Cpu(1), 0xf0);
        assert_eq!(users.stored_by_others(line(1), Tid(1)), 0xf0);
        assert_eq!(users.stored_by_others(line(1), Tid(2)), 0x0f);
        assert_eq!(users.stored_by_others(line(1), Tid(3)), 0xff);
        assert!(users.is_stored(line(1)) && !users.is_stored(line(2)));
        // Beyond the threads that are told apart, nobody's stores get lost.
        for tid in 3..20 {
            users.note(line(1), Tid(tid), Cpu(0), 1 << 60);
        }
        assert_eq!(users.stored_by_others(line(1), Tid(1)) >> 60, 1);
    }

    #[test]
    fn memory_is_bounded_and_lines_in_use_stay_known() {
        let mut users = LineUsers::default();
        for number in 0..10 * MOST_LINES as u64 {
            users.note(
                line(0),
                Tid((number % 2) as u32),
                Cpu((number % 2) as u32),
                1,
            );
            users.note(line(1 + number), Tid(1), Cpu(0), 1);
        }
        assert!(users.young.len() <= MOST_LINES && users.old.len() <= MOST_LINES);
        assert!(users.several(line(0)));
        assert!(!users.is_stored(line(1)));
    }
}
