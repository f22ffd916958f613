//! Address spaces over time: which mapping an address lies in, and which memory that is.
//!
//! Built by applying [`Context`] events in time order, by the source (to find code) and again by the
//! analysis (to find lines): both see the same events and so number spaces alike.

mod files;
mod known_memory;
mod mappings;
mod recent;
mod retire;

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use rustc_hash::FxHashMap;

pub use self::files::MappedFiles;
pub use self::retire::{Held, Kept, Retired};
use self::{
    known_memory::KnownMemory,
    mappings::Mappings,
    recent::{Recent, Resolved, SharedMapping},
};
use crate::{
    access::{Access, Pid, Place, SpaceId, Tid},
    event::{Allocation, Context, ContextKind, Due, LocalBlock, Mapping},
};

/// First address of the kernel's half on x86-64 and aarch64 (48-bit and larger).
pub const KERNEL_START: u64 = 0xff00_0000_0000_0000;

/// One process image.
#[derive(Debug, Default)]
struct Space {
    pid: Pid,
    // Shared with the parent until either changes: most forked children exec at once.
    mappings: Arc<Mappings>,
    /// What was read of its memory.
    memory: KnownMemory,
    /// An access was resolved in it, so its names may be asked for after its end.
    used: bool,
    /// When its process ended or became another program, CLOCK_MONOTONIC nanoseconds.
    left_ns: Option<u64>,
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
    /// When it ended, CLOCK_MONOTONIC nanoseconds, if it did.
    ended_ns: Option<u64>,
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

/// All address spaces seen so far.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    /// Number of the first space.
    first: u32,
    /// Numbers given out; a number is never given out twice.
    given: u32,
    /// Those that are kept, in the order of their numbers.
    spaces: BTreeMap<SpaceId, Space>,
    current: FxHashMap<Pid, SpaceId>,
    threads: FxHashMap<Tid, ThreadState>,
    recent: Recent,
    /// What was read of the kernel's memory.
    kernel: KnownMemory,
    /// Bytes of what was read of all processes' memory.
    memory_bytes: usize,
    /// Of spaces that are kept, those that were left; of threads, those that ended.
    held: Held,
}

impl AddressSpaces {
    /// Spaces whose numbers follow those of other ones, so that several streams can be told apart.
    pub fn after(others: &AddressSpaces) -> AddressSpaces {
        AddressSpaces {
            first: others.first + others.given,
            ..AddressSpaces::default()
        }
    }

    /// Whether a space is one of these.
    pub fn has(&self, space: SpaceId) -> bool {
        self.known(space).is_some()
    }

    fn known(&self, space: SpaceId) -> Option<&Space> {
        self.spaces.get(&space)
    }

    /// One that is kept; of one that is not, a new one that nobody runs in.
    fn of(&mut self, space: SpaceId) -> &mut Space {
        self.spaces.entry(space).or_default()
    }

    /// Applies one event.
    pub fn apply(&mut self, context: &Context) {
        if !matches!(
            context.kind,
            ContextKind::Thread { .. }
                | ContextKind::LocalStorage { .. }
                | ContextKind::Memory { .. }
                | ContextKind::Pace(_)
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
                    self.leave(*pid, context.time_ns);
                    self.start(*pid, Arc::default());
                }
                let thread = self.running(*tid);
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
                *self.running(*tid) = ThreadState {
                    pid: *pid,
                    comm,
                    ..ThreadState::default()
                };
                if pid != parent_pid {
                    let parent = self.space(*parent_pid);
                    let mappings = self.of(parent).mappings.clone();
                    self.leave(*pid, context.time_ns);
                    self.start(*pid, mappings);
                }
            }
            ContextKind::Exit { pid, tid } => {
                // The leader's exit may come before its siblings'; only an unused space is let go,
                // and the pid keeps pointing at it until it is reused.
                if pid.0 == tid.0 {
                    self.leave(*pid, context.time_ns);
                }
                self.end(*tid, context.time_ns);
            }
            ContextKind::Thread { pid, tid, sp, tp } => {
                let thread = self.running(*tid);
                thread.pid = *pid;
                thread.sp = Some(*sp);
                if tp.is_some() && *tp != thread.tp {
                    thread.forget_storage();
                    thread.tp = *tp;
                }
                thread.told_ns = context.time_ns;
            }
            ContextKind::LocalStorage { pid, tid, block } => {
                let thread = self.running(*tid);
                thread.pid = *pid;
                thread.add_block(*block);
            }
            ContextKind::Memory { pid, start, bytes } => match pid {
                Some(pid) => {
                    let id = self.space(*pid);
                    let memory = &mut self.spaces.entry(id).or_default().memory;
                    let others = self.memory_bytes - memory.bytes();
                    memory.insert(*start, bytes, others);
                    self.memory_bytes = others + memory.bytes();
                }
                None => self.kernel.insert(*start, bytes, 0),
            },
            // Of how fast a program is, not of what its addresses mean.
            ContextKind::Pace(_) => {}
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
        let id = SpaceId(self.first + self.given);
        self.given += 1;
        let space = Space {
            pid,
            mappings,
            ..Space::default()
        };
        self.spaces.insert(id, space);
        self.current.insert(pid, id);
        id
    }

    /// The process left its space: without accesses nobody will ask for its names.
    fn leave(&mut self, pid: Pid, time_ns: u64) {
        let Some(space) = self.current(pid).and_then(|id| self.spaces.get_mut(&id)) else {
            return;
        };
        if space.left_ns.is_none() {
            self.held.spaces += 1;
        }
        space.left_ns = Some(space.left_ns.unwrap_or(time_ns));
        if !space.used {
            space.mappings = Arc::default();
            self.memory_bytes -= space.memory.bytes();
            space.memory = KnownMemory::default();
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
        self.known(space).into_iter().flat_map(|s| s.mappings.all())
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
        let runs = |space: &&Space| space.left_ns.is_none();
        match place {
            Place::Private { space, addr } => {
                let space = self.known(space).filter(runs);
                space.map(|space| (space.pid, addr)).into_iter().collect()
            }
            Place::Shared { .. } => self
                .spaces
                .values()
                .filter(|space| space.used)
                .filter(runs)
                .filter_map(|space| Some((space.pid, space.mappings.address(place)?)))
                .collect(),
            Place::Kernel { .. } | Place::Physical { .. } => Vec::new(),
        }
    }

    /// A space and address at which the shared place is mapped.
    pub fn find_shared(&self, place: Place) -> Option<(SpaceId, u64)> {
        self.spaces.iter().find_map(|(id, space)| {
            let addr = space.mappings.address(place)?;
            Some((*id, addr))
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
