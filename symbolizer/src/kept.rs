//! Decoded tables that are dropped when a module holds too many of them, and decoded again when asked for.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use crate::{allowance::Allowance, budget::Budget, missing::Missing};

/// What the tables of a module may hold unless [`crate::Module::set_memory_limit`] says otherwise, bytes. A program
/// of 150 MB, most of it debug info, takes less than 100 MB in all when all of its code was asked for.
const DEFAULT_LIMIT: usize = 512 << 20;

/// What the tables of a module hold.
#[derive(Debug)]
pub(crate) struct Memory {
    bytes: AtomicUsize,
    /// Demangled names of symbols: they are not dropped, and have a quarter of the limit.
    name_bytes: AtomicUsize,
    /// Of what is read once and not dropped: sections that were decompressed, symbols.
    fixed_bytes: AtomicUsize,
    /// For all modules together, all that the above count.
    all: Allowance,
    limit: AtomicUsize,
    /// Counts decodings: a table is as old as the last decoding before its last use.
    clock: AtomicU64,
    trimming: Mutex<()>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            bytes: AtomicUsize::new(0),
            name_bytes: AtomicUsize::new(0),
            fixed_bytes: AtomicUsize::new(0),
            all: Allowance::default(),
            limit: AtomicUsize::new(DEFAULT_LIMIT),
            clock: AtomicU64::new(0),
            trimming: Mutex::new(()),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.all.release(self.held_bytes());
    }
}

impl Memory {
    /// Of a module that shares a budget with others.
    pub(crate) fn within(all: &Allowance) -> Memory {
        let mut memory = Memory::default();
        memory.all = all.clone();
        memory
    }

    /// The budget that is shared.
    pub(crate) fn all(&self) -> &Allowance {
        &self.all
    }

    /// All bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes() + self.fixed_bytes.load(Ordering::Relaxed)
    }

    /// Accounts for something that is read once and kept.
    pub(crate) fn hold_fixed(&self, bytes: usize) {
        self.fixed_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all.hold(bytes);
    }

    /// It is kept no longer.
    pub(crate) fn release_fixed(&self, bytes: usize) {
        self.fixed_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all.release(bytes);
    }

    fn hold(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all.hold(bytes);
    }

    fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all.release(bytes);
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) + self.name_bytes.load(Ordering::Relaxed)
    }

    /// Whether a name of so many bytes may be kept for good.
    pub(crate) fn takes_name(&self, bytes: usize) -> bool {
        let before = self.name_bytes.fetch_add(bytes, Ordering::Relaxed);
        let takes = before + bytes <= self.limit() / 4 && !self.all.is_over();
        if takes {
            self.all.hold(bytes);
        } else {
            self.name_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        takes
    }

    /// Drops tables, the longest unused first, until a quarter of the limit is free: the next few find room. Where all
    /// modules together hold too much, likewise.
    pub(crate) fn trim<'t>(&self, tables: impl FnOnce() -> Vec<&'t dyn Droppable>) {
        if self.bytes() <= self.limit() && !self.all.is_over() {
            return;
        }
        let Ok(_alone) = self.trimming.try_lock() else {
            return;
        };
        let mut tables = tables();
        tables.sort_by_key(|table| table.used());
        let enough = self.limit() / 4 * 3;
        let enough_of_all = self.all.limit() / 4 * 3;
        let is_over = self.all.is_over();
        for table in tables {
            if self.bytes() <= enough && !(is_over && self.all.bytes() > enough_of_all) {
                break;
            }
            table.drop_it();
        }
    }
}

/// What one table costs, given back when it is dropped: memory, and the work that decoding it was.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Arc<Memory>,
    budget: Budget,
    bytes: AtomicUsize,
    work: AtomicU64,
}

impl Share {
    pub(crate) fn new(memory: &Arc<Memory>, budget: &Budget) -> Share {
        Share {
            memory: Arc::clone(memory),
            budget: budget.clone(),
            bytes: AtomicUsize::new(0),
            work: AtomicU64::new(0),
        }
    }

    /// Accounts for bytes that the table holds, and for work that was charged to the budget.
    pub(crate) fn add(&self, bytes: usize, work: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.work.fetch_add(work, Ordering::Relaxed);
        self.memory.hold(bytes);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.memory.release(bytes);
        self.budget.refund(*self.work.get_mut());
    }
}

/// Something whose size is known once it is decoded.
pub(crate) trait Sizeable {
    /// Bytes on the heap.
    fn bytes(&self) -> usize;
}

/// A table and what it costs.
pub(crate) struct Held<T> {
    pub(crate) table: T,
    pub(crate) share: Share,
}

impl<T> std::ops::Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.table
    }
}

/// A place for a table.
pub(crate) struct Kept<T> {
    held: Mutex<Option<Result<Arc<Held<T>>, Missing>>>,
    used: AtomicU64,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept {
            held: Mutex::new(None),
            used: AtomicU64::new(0),
        }
    }
}

impl<T: Sizeable> Kept<T> {
    /// The table, read unless it is there. `read` returns it, and the work it was.
    pub(crate) fn get_or_read(
        &self,
        memory: &Arc<Memory>,
        budget: &Budget,
        read: impl FnOnce() -> (Result<T, Missing>, u64),
    ) -> Result<Arc<Held<T>>, Missing> {
        let now = memory.clock.load(Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = &*held {
            return held.clone();
        }
        memory.clock.fetch_add(1, Ordering::Relaxed);
        let (table, work) = read();
        let made = table.map(|table| {
            let share = Share::new(memory, budget);
            share.add(table.bytes() + size_of::<Held<T>>(), work);
            Arc::new(Held { table, share })
        });
        *held = Some(made.clone());
        made
    }
}

/// A table that can be made anew.
pub(crate) trait Droppable {
    /// When it was last used.
    fn used(&self) -> u64;
    /// Drops it; who uses it keeps it as long.
    fn drop_it(&self);
}

impl<T> Droppable for Kept<T> {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn drop_it(&self) {
        // Whoever holds the lock is decoding: what is being made now is not the longest unused.
        if let Ok(mut held) = self.held.try_lock()
            && matches!(*held, Some(Ok(_)))
        {
            *held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sizeable for Vec<u8> {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn the_longest_unused_tables_go_and_give_back_what_they_cost() {
        let memory = Arc::new(Memory::default());
        memory.set_limit(4000);
        let budget = Budget::for_bytes(0, memory.all());
        let tables: Vec<Kept<Vec<u8>>> = (0..6).map(|_| Kept::default()).collect();
        let mut decoded = 0;
        let mut ask = |index: usize| {
            let kept: &Kept<Vec<u8>> = &tables[index];
            let read = || {
                decoded += 1;
                // Half of all the budget: without refunds the third would fail.
                let work = 1 << 15;
                (budget.charge(work).map(|()| vec![index as u8; 900]), work)
            };
            let table = kept.get_or_read(&memory, &budget, read).unwrap();
            assert_eq!(table[0], index as u8);
            drop(table);
            memory.trim(|| tables.iter().map(|kept| kept as &dyn Droppable).collect());
            assert!(memory.bytes() <= 4000, "{}", memory.bytes());
            decoded
        };
        memory.set_limit(1500);
        assert_eq!((ask(0), ask(0)), (1, 1));
        assert_eq!(ask(1), 2);
        // Both were too many: the older one went, and is made again.
        assert_eq!(ask(1), 2);
        assert_eq!(ask(0), 3);
        for round in 0..20 {
            ask(round % 6);
        }
    }
}
