//! Address spaces over time: which mapping an address lies in, and which memory that is.
//!
//! Built by applying [`Context`] events in time order, by the source (to find code) and again by the
//! analysis (to find lines): both see the same events and so number spaces alike.

mod known_memory;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use rustc_hash::FxHashMap;

use self::known_memory::KnownMemory;
use crate::{
    access::{Access, Pid, Place, SpaceId, Tid},
    event::{Allocation, Context, ContextKind, Due, LocalBlock, Mapping},
};

/// First address of the kernel's half on x86-64 and aarch64 (48-bit and larger).
pub const KERNEL_START: u64 = 0xff00_0000_0000_0000;

/// Mappings by start address; never overlapping.
#[derive(Clone, Debug, Default)]
struct Mappings(BTreeMap<u64, Arc<Mapping>>);

impl Mappings {
    fn find(&self, addr: u64) -> Option<&Arc<Mapping>> {
        let (_, mapping) = self.0.range(..=addr).next_back()?;
        mapping.contains(addr).then_some(mapping)
    }

    /// Where a shared place is mapped first.
    fn address(&self, place: Place) -> Option<u64> {
        let Place::Shared { dev, inode, offset } = place else {
            return None;
        };
        self.0.values().find_map(|m| {
            let inside = offset.checked_sub(m.file_offset).filter(|o| *o < m.len)?;
            (m.shared && m.dev == dev && m.inode == inode).then_some(m.start + inside)
        })
    }

    /// Puts the mapping over whatever was there; what sticks out on either side stays.
    fn insert(&mut self, new: Arc<Mapping>) {
        if new.len == 0 {
            return;
        }
        let overlapping: Vec<u64> = self
            .0
            .range(..new.end())
            .rev()
            .take_while(|(_, old)| old.end() > new.start)
            .map(|(start, _)| *start)
            .collect();
        for start in overlapping {
            let Some(old) = self.0.remove(&start) else {
                continue;
            };
            if old.start < new.start {
                let left = Mapping {
                    len: new.start - old.start,
                    ..(*old).clone()
                };
                self.0.insert(left.start, Arc::new(left));
            }
            if old.end() > new.end() {
                let cut = new.end() - old.start;
                let right = Mapping {
                    start: new.end(),
                    len: old.len - cut,
                    file_offset: old.file_offset.wrapping_add(cut),
                    ..(*old).clone()
                };
                self.0.insert(right.start, Arc::new(right));
            }
        }
        self.0.insert(new.start, new);
    }
}

/// One process image.
#[derive(Debug)]
struct Space {
    pid: Pid,
    // Shared with the parent until either changes: most forked children exec at once.
    mappings: Arc<Mappings>,
    /// What was read of its memory.
    memory: KnownMemory,
    /// An access was resolved in it, so its names may be asked for after its end.
    used: bool,
    /// Its process ended or became another program.
    left: bool,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadState {
    /// Its process.
    pub pid: Pid,
    /// The kernel's name of it.
    pub comm: Option<String>,
    /// A stack pointer it had.
    pub sp: Option<u64>,
    /// Its thread pointer.
    pub tp: Option<u64>,
    /// When that was last told, CLOCK_MONOTONIC nanoseconds: of threads that had the same memory one after the other,
    /// the last one has it.
    pub told_ns: u64,
    /// Its blocks of thread-local variables, in the order in which they were found.
    pub local_storage: Vec<LocalBlock>,
}

/// Blocks of thread-local variables kept of one thread; there is one for each module that has any.
const MOST_BLOCKS: usize = 1024;

impl ThreadState {
    /// The thread pointer moved, or its program is another: what hung on it is elsewhere.
    fn forget_storage(&mut self) {
        self.tp = None;
        self.local_storage.clear();
    }

    fn add_block(&mut self, block: LocalBlock) {
        let same = |known: &LocalBlock| (known.dev, known.inode) == (block.dev, block.inode);
        self.local_storage.retain(|known| !same(known));
        if self.local_storage.len() < MOST_BLOCKS {
            self.local_storage.push(block);
        }
    }
}

/// What a mapping makes of the addresses in it.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    pid: Pid,
    space: SpaceId,
    start: u64,
    end: u64,
    shared: Option<SharedMapping>,
}

#[derive(Clone, Copy, Debug)]
struct SharedMapping {
    dev: u64,
    inode: u64,
    file_offset: u64,
}

impl Resolved {
    fn place(&self, addr: u64) -> (SpaceId, Place) {
        let place = match self.shared {
            Some(SharedMapping {
                dev,
                inode,
                file_offset,
            }) => Place::Shared {
                dev,
                inode,
                offset: (addr - self.start).wrapping_add(file_offset),
            },
            None => Place::Private {
                space: self.space,
                addr,
            },
        };
        (self.space, place)
    }
}

/// Addresses are resolved in the same few mappings again and again: a slot for each process and stretch of memory.
#[derive(Debug, Default)]
struct Recent(Vec<Option<Resolved>>);

/// Slots; 56 KiB of them.
const RECENT_SLOTS: usize = 1 << 10;
/// Bytes of a stretch: smaller than most mappings that programs keep their data in.
const STRETCH_SHIFT: u32 = 16;

impl Recent {
    fn slot(pid: Pid, addr: u64) -> usize {
        let mixed = (addr >> STRETCH_SHIFT) ^ u64::from(pid.0).rotate_right(32);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - RECENT_SLOTS.ilog2())) as usize
    }

    fn get(&self, pid: Pid, addr: u64) -> Option<&Resolved> {
        let known = self.0.get(Recent::slot(pid, addr))?.as_ref()?;
        (known.pid == pid && addr >= known.start && addr < known.end).then_some(known)
    }

    fn put(&mut self, addr: u64, known: Resolved) {
        self.0.resize(RECENT_SLOTS, None);
        self.0[Recent::slot(known.pid, addr)] = Some(known);
    }

    /// Meanings have changed.
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// All address spaces seen so far.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    /// Number of the first space.
    first: u32,
    spaces: Vec<Space>,
    current: FxHashMap<Pid, SpaceId>,
    threads: FxHashMap<Tid, ThreadState>,
    recent: Recent,
    /// What was read of the kernel's memory.
    kernel: KnownMemory,
}

impl AddressSpaces {
    /// Spaces whose numbers follow those of other ones, so that several streams can be told apart.
    pub fn after(others: &AddressSpaces) -> AddressSpaces {
        AddressSpaces {
            first: others.first + others.spaces.len() as u32,
            ..AddressSpaces::default()
        }
    }

    /// Whether a space is one of these.
    pub fn has(&self, space: SpaceId) -> bool {
        self.known(space).is_some()
    }

    fn known(&self, space: SpaceId) -> Option<&Space> {
        let at = space.0.checked_sub(self.first)?;
        self.spaces.get(at as usize)
    }

    /// One that was given out here.
    fn of(&mut self, space: SpaceId) -> &mut Space {
        let at = space.0 - self.first;
        &mut self.spaces[at as usize]
    }

    /// Applies one event.
    pub fn apply(&mut self, context: &Context) {
        if !matches!(
            context.kind,
            ContextKind::Thread { .. }
                | ContextKind::LocalStorage { .. }
                | ContextKind::Memory { .. }
        ) {
            self.recent.clear();
        }
        match &context.kind {
            ContextKind::Mapping { pid, mapping } => {
                let id = self.space(*pid);
                Arc::make_mut(&mut self.of(id).mappings).insert(mapping.clone());
            }
            ContextKind::Comm {
                pid,
                tid,
                comm,
                exec,
            } => {
                if *exec {
                    self.leave(*pid);
                    self.start(*pid, Arc::default());
                }
                let thread = self.threads.entry(*tid).or_default();
                thread.pid = *pid;
                thread.comm = Some(comm.clone());
                if *exec {
                    thread.sp = None;
                    thread.forget_storage();
                }
            }
            ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            } => {
                let comm = self
                    .threads
                    .get(&Tid(parent_pid.0))
                    .and_then(|t| t.comm.clone());
                self.threads.insert(
                    *tid,
                    ThreadState {
                        pid: *pid,
                        comm,
                        ..ThreadState::default()
                    },
                );
                if pid != parent_pid {
                    let parent = self.space(*parent_pid);
                    let mappings = self.of(parent).mappings.clone();
                    self.leave(*pid);
                    self.start(*pid, mappings);
                }
            }
            ContextKind::Exit { pid, tid } => {
                // The leader's exit may come before its siblings'; only an unused space is let go,
                // and the pid keeps pointing at it until it is reused.
                if pid.0 == tid.0 {
                    self.leave(*pid);
                }
            }
            ContextKind::Thread { pid, tid, sp, tp } => {
                let thread = self.threads.entry(*tid).or_default();
                thread.pid = *pid;
                thread.sp = Some(*sp);
                if tp.is_some() && *tp != thread.tp {
                    thread.forget_storage();
                    thread.tp = *tp;
                }
                thread.told_ns = context.time_ns;
            }
            ContextKind::LocalStorage { pid, tid, block } => {
                let thread = self.threads.entry(*tid).or_default();
                thread.pid = *pid;
                thread.add_block(*block);
            }
            ContextKind::Memory { pid, start, bytes } => match pid {
                Some(pid) => {
                    let id = self.space(*pid);
                    self.of(id).memory.insert(*start, bytes);
                }
                None => self.kernel.insert(*start, bytes),
            },
        }
    }

    /// The space that the process runs in now; a process never heard of gets an empty one.
    pub fn space(&mut self, pid: Pid) -> SpaceId {
        match self.current.get(&pid) {
            Some(id) => *id,
            None => self.start(pid, Arc::default()),
        }
    }

    /// The space of an event of a heap; `None` where it concerns all processes. Keys of lines say the numbers of
    /// spaces, so whoever reads a stream asks this of each such event, in its place in the order.
    pub fn of_allocation(&mut self, event: &Allocation) -> Option<SpaceId> {
        (event.pid != Pid(0)).then(|| self.space(event.pid))
    }

    /// Takes in the next of a stream; an access comes back with its space and the memory at its virtual address.
    pub fn follow<'a>(&mut self, due: Due<'a>) -> Option<(&'a Access, SpaceId, Place)> {
        match due {
            Due::Context(context) => self.apply(context),
            Due::Allocation(allocation) => {
                self.of_allocation(allocation);
            }
            Due::Access(access) => {
                let (space, place) = self.place(access.pid, access.addr);
                return Some((access, space, place));
            }
        }
        None
    }

    /// The space that the process runs in now, if it was heard of.
    pub fn current(&self, pid: Pid) -> Option<SpaceId> {
        self.current.get(&pid).copied()
    }

    fn start(&mut self, pid: Pid, mappings: Arc<Mappings>) -> SpaceId {
        let id = SpaceId(self.first + self.spaces.len() as u32);
        self.spaces.push(Space {
            pid,
            mappings,
            memory: KnownMemory::default(),
            used: false,
            left: false,
        });
        self.current.insert(pid, id);
        id
    }

    /// The process left its space: without accesses nobody will ask for its names.
    fn leave(&mut self, pid: Pid) {
        if let Some(id) = self.current(pid) {
            let space = self.of(id);
            space.left = true;
            if !space.used {
                space.mappings = Arc::default();
                space.memory = KnownMemory::default();
            }
        }
    }

    /// Resolves an address of a process to the memory it stands for, and marks the space as used.
    pub fn place(&mut self, pid: Pid, addr: u64) -> (SpaceId, Place) {
        if let Some(known) = self.recent.get(pid, addr) {
            return known.place(addr);
        }
        let id = self.space(pid);
        let space = self.of(id);
        space.used = true;
        if addr >= KERNEL_START {
            return (id, Place::Kernel { addr });
        }
        let Some(mapping) = space.mappings.find(addr) else {
            return (id, Place::Private { space: id, addr });
        };
        let known = Resolved {
            pid,
            space: id,
            start: mapping.start,
            end: mapping.end(),
            shared: (mapping.shared && mapping.inode != 0).then_some(SharedMapping {
                dev: mapping.dev,
                inode: mapping.inode,
                file_offset: mapping.file_offset,
            }),
        };
        self.recent.put(addr, known);
        known.place(addr)
    }

    /// Resolves an access to the memory it touched. Where no mapping is known, as of a process that was there before
    /// and told nothing, its physical address, if it has one, still lets two processes meet. With a mapping the
    /// physical address is not used: the page may have moved between two samples.
    pub fn place_of(&mut self, access: &Access) -> (SpaceId, Place) {
        let (space, place) = self.place(access.pid, access.addr);
        let physical = access.measured.phys_addr.filter(|_| {
            matches!(place, Place::Private { .. }) && self.mapping(space, access.addr).is_none()
        });
        match physical {
            Some(addr) => (space, Place::Physical { addr: addr.get() }),
            None => (space, place),
        }
    }

    /// The mapping of a space at an address.
    pub fn mapping(&self, space: SpaceId, addr: u64) -> Option<&Arc<Mapping>> {
        self.known(space)?.mappings.find(addr)
    }

    /// All mappings of a space, by address.
    pub fn mappings(&self, space: SpaceId) -> impl Iterator<Item = &Arc<Mapping>> {
        self.known(space)
            .into_iter()
            .flat_map(|s| s.mappings.0.values())
    }

    /// The first mapping of each file's code in a space, by address. Two data segments may share a page of the file, so only
    /// the code's mapping tells where the file is loaded.
    pub fn code(&self, space: SpaceId) -> Vec<&Arc<Mapping>> {
        let mut found: Vec<&Arc<Mapping>> = Vec::new();
        for mapping in self.mappings(space) {
            let file = |known: &&Arc<Mapping>| {
                (known.dev, known.inode, &known.name) == (mapping.dev, mapping.inode, &mapping.name)
            };
            if mapping.is_file() && mapping.executable && !found.iter().any(file) {
                found.push(mapping);
            }
        }
        found
    }

    /// The process of a space.
    pub fn pid(&self, space: SpaceId) -> Option<Pid> {
        self.known(space).map(|s| s.pid)
    }

    /// Where the memory can be reached now: the processes that run and have it mapped, with the address. Of
    /// a shared place, those in whose spaces accesses were resolved. Nobody reaches a kernel place by an
    /// address of its own, and of a physical one no virtual address is known.
    pub fn addresses(&self, place: Place) -> Vec<(Pid, u64)> {
        let runs = |space: &&Space| !space.left;
        match place {
            Place::Private { space, addr } => {
                let space = self.known(space).filter(runs);
                space.map(|space| (space.pid, addr)).into_iter().collect()
            }
            Place::Shared { .. } => self
                .spaces
                .iter()
                .filter(|space| space.used)
                .filter(runs)
                .filter_map(|space| Some((space.pid, space.mappings.address(place)?)))
                .collect(),
            Place::Kernel { .. } | Place::Physical { .. } => Vec::new(),
        }
    }

    /// A space and address at which the shared place is mapped.
    pub fn find_shared(&self, place: Place) -> Option<(SpaceId, u64)> {
        self.spaces.iter().enumerate().find_map(|(id, space)| {
            let addr = space.mappings.address(place)?;
            Some((SpaceId(self.first + id as u32), addr))
        })
    }

    /// What was read of a space's memory in stretches that start in a range of addresses.
    pub fn memory(
        &self,
        space: SpaceId,
        addresses: Range<u64>,
    ) -> impl Iterator<Item = (u64, &Arc<[u8]>)> {
        let space = self.known(space);
        let known = space.into_iter();
        known.flat_map(move |space| space.memory.starting_in(addresses.clone()))
    }

    /// The stretch of the kernel's memory around an address that was read, and where it starts.
    pub fn kernel_memory(&self, address: u64) -> Option<(u64, &Arc<[u8]>)> {
        self.kernel.around(address)
    }

    /// What is known of a thread.
    pub fn thread(&self, tid: Tid) -> Option<&ThreadState> {
        self.threads.get(&tid)
    }

    /// All threads heard of.
    pub fn threads(&self) -> impl Iterator<Item = (Tid, &ThreadState)> {
        self.threads.iter().map(|(tid, state)| (*tid, state))
    }
}

#[cfg(test)]
mod tests;
