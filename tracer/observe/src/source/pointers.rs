//! What the variables of a live process point to, told for the names of memory that has none.
//!
//! An array of locks on the heap is called by the variable that leads to it, whoever handed one of its locks to a library:
//!
//! ```text
//!   item_locks, in the program's data ──► an allocation, 64 times 40 bytes
//!                                         pthread_mutex_lock accesses byte 120 of it: item_locks[3]
//! ```
//!
//! A process is looked at from time to time. Told are pointers into anonymous memory, and how far the allocation reaches
//! that one points to, where the C library's allocator says it in front of it. A variable that leads elsewhere each time
//! says nothing of an address: what was told of it is taken back.

use std::{ops::Range, sync::Arc};

use rustc_hash::FxHashMap;

use super::{live::Live, pace::Pace};
use crate::{
    access::{Pid, SpaceId},
    event::{Batch, Context, ContextKind},
    heap::Chunk,
    module::ModuleStore,
    space::AddressSpaces,
    sys::process_memory,
};

/// Bytes of variables that are read of one process.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes that are read at once.
const PIECE: u64 = 1 << 20;
/// Pointers told of one process.
const MOST_POINTERS: usize = 1 << 14;
/// Processes that are kept in mind; beyond, all start again.
const MOST_PROCESSES: usize = 1 << 12;
/// Pointers that are kept in mind of all processes together, some 30 bytes each; beyond, all start again.
const MOST_WORDS: usize = 1 << 20;
/// No pointer points below this: nothing is mapped there (`vm.mmap_min_addr`).
const LOWEST: u64 = 1 << 16;

const WORD: usize = size_of::<u64>();

/// What was told of a variable's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It points there.
    To(u64),
    /// It pointed to several places, one after the other.
    Nothing,
}

/// A process that was looked at.
struct Looked {
    space: SpaceId,
    pace: Pace,
    words: FxHashMap<u64, Told>,
}

/// What the variables of all processes point to.
pub(super) struct Pointers {
    modules: Arc<ModuleStore>,
    processes: FxHashMap<Pid, Looked>,
    /// Kept in mind of all of them.
    words: usize,
}

impl Pointers {
    /// Nothing told yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> Pointers {
        Pointers {
            modules,
            processes: FxHashMap::default(),
            words: 0,
        }
    }

    /// Processes ended.
    pub(super) fn forget(&mut self, ended: &[Pid]) {
        for pid in ended {
            if let Some(looked) = self.processes.remove(pid) {
                self.words -= looked.words.len();
            }
        }
    }

    /// Tells what is news of a process, if it is time to look at it.
    pub(super) fn tell(&mut self, time_ns: u64, pid: Pid, live: &mut Live, batch: &mut Batch) {
        let Some(space) = live.spaces.current(pid) else {
            return;
        };
        if !self.is_due(time_ns, pid, space) {
            return;
        }
        for (start, word) in self.look(pid, space, &live.spaces) {
            let kind = ContextKind::Memory {
                pid: Some(pid),
                start,
                bytes: word.to_le_bytes().as_slice().into(),
            };
            live.tell(Context { time_ns, kind }, batch);
        }
    }

    /// Whether it is time to look at a process. A new one is let run for a while: most are short, or set their variables
    /// first.
    fn is_due(&mut self, time_ns: u64, pid: Pid, space: SpaceId) -> bool {
        let is_full = self.processes.len() >= MOST_PROCESSES || self.words >= MOST_WORDS;
        if is_full && !self.processes.contains_key(&pid) {
            self.processes.clear();
            self.words = 0;
        }
        let new = || Looked {
            space,
            pace: Pace::later(time_ns),
            words: FxHashMap::default(),
        };
        let looked = self.processes.entry(pid).or_insert_with(new);
        if looked.space != space {
            self.words -= looked.words.len();
            *looked = new();
        }
        let is_due = looked.pace.is_due(time_ns);
        if is_due {
            looked.pace.look(time_ns);
        }
        is_due
    }

    /// Words of memory that were not told yet, or are other ones now.
    fn look(&mut self, pid: Pid, space: SpaceId, spaces: &AddressSpaces) -> Vec<(u64, u64)> {
        let (variables, loaded) = self.variables(pid, space, spaces);
        let Some(looked) = self.processes.get_mut(&pid) else {
            return Vec::new();
        };
        let leads = |value: u64| {
            value >= LOWEST
                && value.is_multiple_of(WORD as u64)
                && !loaded.iter().any(|module| module.contains(&value))
                && spaces
                    .mapping(space, value)
                    .is_some_and(|mapping| mapping.inode == 0 && !mapping.shared)
        };
        let words_before = looked.words.len();
        let mut news = Vec::new();
        let mut left = MOST_BYTES;
        let mut buffer = vec![0; PIECE as usize];
        for range in variables {
            let end = range.end.min(range.start.saturating_add(left));
            left -= end.saturating_sub(range.start);
            let mut at = range.start.next_multiple_of(WORD as u64);
            while at < end {
                let length = PIECE.min(end - at) as usize;
                let read = process_memory::read(pid, at, &mut buffer[..length]);
                let length = read.unwrap_or_default();
                for (word, number) in words(&buffer[..length]).zip(0..) {
                    let address = at + number * WORD as u64;
                    looked.take(address, word, &leads, &mut news);
                }
                at += PIECE;
            }
        }
        self.words += looked.words.len() - words_before;
        let word = |address| process_memory::read_word(pid, address);
        let sizes: Vec<(u64, u64)> = news
            .iter()
            .filter_map(|(_, pointer)| {
                let at = Chunk::size_at(*pointer)?;
                let size = word(at)?;
                Chunk::confirmed(*pointer, size, word)?;
                Some((at, size))
            })
            .collect();
        news.extend(sizes);
        news
    }

    /// Where variables of a process may be, and all that its modules were loaded to.
    fn variables(
        &self,
        pid: Pid,
        space: SpaceId,
        spaces: &AddressSpaces,
    ) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        let (mut variables, mut loaded) = (Vec::new(), Vec::new());
        for mapping in spaces.code(space) {
            let Ok(module) = self.modules.open(pid, mapping) else {
                continue;
            };
            let at = |svmas| module.addresses(mapping, svmas);
            variables.extend(module.elf.writable().filter_map(at));
            loaded.extend(at(module.elf.memory()));
        }
        (variables, loaded)
    }
}

impl Looked {
    /// Takes note of what a variable's word holds now.
    fn take(
        &mut self,
        address: u64,
        word: u64,
        leads: &impl Fn(u64) -> bool,
        news: &mut Vec<(u64, u64)>,
    ) {
        match self.words.get(&address) {
            Some(Told::To(before)) if *before == word => {}
            Some(Told::To(_)) => {
                self.words.insert(address, Told::Nothing);
                news.push((address, 0));
            }
            None if word != 0 && self.words.len() < MOST_POINTERS && leads(word) => {
                self.words.insert(address, Told::To(word));
                news.push((address, word));
            }
            Some(Told::Nothing) | None => {}
        }
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .as_chunks::<WORD>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests;
