//! What goes once it has ended: spaces that were left, threads that ended, mappings that are there no more.
//!
//! The kernel tells when a process or thread ends, and late samples of it come for a moment yet. What is then forgotten is
//! what nobody who calls still needs ([`Kept`]).

use std::{collections::BTreeSet, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{AddressSpaces, ThreadState, mappings::Mappings};
use crate::{
    access::{Pid, SpaceId, Tid},
    event::Mapping,
};

/// How much is kept of what has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Spaces whose process ended or became another program.
    pub spaces: usize,
    /// Threads that ended.
    pub threads: usize,
}

/// What is needed still.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// Whole spaces.
    pub spaces: FxHashSet<SpaceId>,
    /// What is known of threads.
    pub threads: FxHashSet<Tid>,
    /// The mappings at these addresses.
    pub addresses: BTreeSet<(SpaceId, u64)>,
}

/// What was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    /// Spaces.
    pub spaces: FxHashSet<SpaceId>,
    /// Processes that run in no space any more.
    pub processes: Vec<Pid>,
    /// Threads.
    pub threads: Vec<Tid>,
}

impl AddressSpaces {
    /// How much is kept of what has ended.
    pub fn held(&self) -> Held {
        self.held
    }

    /// Whether a space is kept whose process ended or became another program.
    pub fn was_left(&self, space: SpaceId) -> bool {
        self.known(space)
            .is_some_and(|space| space.left_ns.is_some())
    }

    /// Everything that is kept, counted: spaces, threads, mappings.
    pub fn entries(&self) -> usize {
        let mut seen = FxHashSet::default();
        let spaces = self.spaces.values();
        // Children share their parent's until either changes.
        let shared = spaces.filter(|space| seen.insert(Arc::as_ptr(&space.mappings)));
        let mappings: usize = shared.map(|space| space.mappings.len()).sum();
        self.spaces.len() + self.current.len() + self.threads.len() + mappings
    }

    /// The thread, which runs now.
    pub(super) fn running(&mut self, tid: Tid) -> &mut ThreadState {
        let thread = self.threads.entry(tid).or_default();
        if thread.ended_ns.take().is_some() {
            self.held.threads -= 1;
        }
        thread
    }

    /// The thread ended.
    pub(super) fn end(&mut self, tid: Tid, time_ns: u64) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && thread.ended_ns.is_none()
        {
            thread.ended_ns = Some(time_ns);
            self.held.threads += 1;
        }
    }

    /// Forgets what ended up to a time, CLOCK_MONOTONIC nanoseconds, but for what is kept. The space of a process goes
    /// when all of its threads have ended: its first one may end before the others.
    pub fn retire(&mut self, upto_ns: u64, kept: &Kept) -> Retired {
        let mut retired = Retired::default();
        if self.held == Held::default() {
            return retired;
        }
        let runs = |thread: &&ThreadState| thread.ended_ns.is_none_or(|end_ns| end_ns > upto_ns);
        let live = self.threads.values().filter(runs);
        let live: FxHashSet<Pid> = live.map(|thread| thread.pid).collect();
        let current = &self.current;
        self.spaces.retain(|id, space| {
            let over = space.left_ns.is_some_and(|left_ns| left_ns <= upto_ns);
            let runs = current.get(&space.pid) == Some(id) && live.contains(&space.pid);
            if !over || runs || kept.spaces.contains(id) {
                return true;
            }
            self.memory_bytes -= space.memory.bytes();
            self.held.spaces -= 1;
            retired.spaces.insert(*id);
            false
        });
        self.current.retain(|pid, id| {
            let stays = !retired.spaces.contains(id);
            if !stays {
                retired.processes.push(*pid);
            }
            stays
        });
        self.threads.retain(|tid, thread| {
            let over = thread.ended_ns.is_some_and(|ended_ns| ended_ns <= upto_ns);
            if !over || kept.threads.contains(tid) {
                return true;
            }
            self.held.threads -= 1;
            retired.threads.push(*tid);
            false
        });
        self.recent.clear();
        retired
    }

    /// Processes that are taken to run, with those of their threads that are.
    pub fn living(&self) -> Vec<(Pid, Vec<Tid>)> {
        let mut threads: FxHashMap<Pid, Vec<Tid>> = FxHashMap::default();
        for (tid, state) in &self.threads {
            if state.ended_ns.is_none() {
                threads.entry(state.pid).or_default().push(*tid);
            }
        }
        let runs = |id: &SpaceId| self.known(*id).is_some_and(|space| space.left_ns.is_none());
        let living = self.current.iter().filter(|(_, id)| runs(id));
        living
            .map(|(pid, _)| (*pid, threads.remove(pid).unwrap_or_default()))
            .collect()
    }

    /// Mappings known of a space.
    pub fn mapping_count(&self, space: SpaceId) -> usize {
        self.known(space).map_or(0, |space| space.mappings.len())
    }

    /// Forgets mappings of a space that are there no more, but for those in which something is kept, with all that was
    /// mapped with them of the same file: of a library that was closed, its code tells what its variables are.
    pub fn unmap(&mut self, space: SpaceId, gone: &[Arc<Mapping>], kept: &Kept) {
        let Some(known) = self.spaces.get_mut(&space) else {
            return;
        };
        if !gone.iter().any(|mapping| known.mappings.has(mapping)) {
            return;
        }
        let needed = needed(space, &known.mappings, kept);
        let mappings = Arc::make_mut(&mut known.mappings);
        for mapping in gone {
            if !needed.contains(&mapping.start) {
                mappings.remove(mapping);
            }
        }
        self.recent.clear();
    }
}

/// First addresses of mappings in which something is kept, or which lie with such a one in the image of one file.
fn needed(space: SpaceId, mappings: &Mappings, kept: &Kept) -> FxHashSet<u64> {
    let mut needed = FxHashSet::default();
    let mut image: Vec<u64> = Vec::new();
    let (mut is_needed, mut file, mut end) = (false, (0, 0), 0);
    for mapping in mappings.all() {
        let own = (mapping.dev, mapping.inode);
        // Anonymous memory behind a file is the end of its variables.
        let continues = mapping.start == end && (own == file || mapping.inode == 0);
        if !continues || file == (0, 0) {
            take(&mut image, is_needed, &mut needed);
            (is_needed, file) = (false, own);
        }
        image.push(mapping.start);
        end = mapping.end();
        let inside = kept.addresses.range((space, mapping.start)..(space, end));
        is_needed |= inside.take(1).count() > 0;
        if own != file {
            file = (0, 0);
        }
    }
    take(&mut image, is_needed, &mut needed);
    needed
}

fn take(image: &mut Vec<u64>, is_needed: bool, needed: &mut FxHashSet<u64>) {
    if is_needed {
        needed.extend(image.iter().copied());
    }
    image.clear();
}

#[cfg(test)]
mod tests;
