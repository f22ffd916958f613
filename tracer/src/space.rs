//! Address spaces over time: which mapping an address lies in, and which memory that is.
//!
//! Built by applying [`Context`] events in time order, by the source (to find code) and again by the
//! analysis (to find lines): both see the same events and so number spaces alike.

use std::{collections::BTreeMap, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    access::{Access, Pid, Place, SpaceId, Tid},
    event::{Context, ContextKind, LocalBlock, Mapping},
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
    spaces: Vec<Space>,
    current: FxHashMap<Pid, SpaceId>,
    threads: FxHashMap<Tid, ThreadState>,
    recent: Recent,
}

impl AddressSpaces {
    /// Applies one event.
    pub fn apply(&mut self, context: &Context) {
        if !matches!(
            context.kind,
            ContextKind::Thread { .. } | ContextKind::LocalStorage { .. }
        ) {
            self.recent.clear();
        }
        match &context.kind {
            ContextKind::Mapping { pid, mapping } => {
                let id = self.space(*pid);
                Arc::make_mut(&mut self.spaces[id.0 as usize].mappings).insert(mapping.clone());
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
                    let mappings = self.spaces[parent.0 as usize].mappings.clone();
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
        }
    }

    /// The space that the process runs in now; a process never heard of gets an empty one.
    pub fn space(&mut self, pid: Pid) -> SpaceId {
        match self.current.get(&pid) {
            Some(id) => *id,
            None => self.start(pid, Arc::default()),
        }
    }

    /// The space that the process runs in now, if it was heard of.
    pub fn current(&self, pid: Pid) -> Option<SpaceId> {
        self.current.get(&pid).copied()
    }

    fn start(&mut self, pid: Pid, mappings: Arc<Mappings>) -> SpaceId {
        let id = SpaceId(self.spaces.len() as u32);
        self.spaces.push(Space {
            pid,
            mappings,
            used: false,
            left: false,
        });
        self.current.insert(pid, id);
        id
    }

    /// The process left its space: without accesses nobody will ask for its names.
    fn leave(&mut self, pid: Pid) {
        if let Some(id) = self.current.get(&pid) {
            let space = &mut self.spaces[id.0 as usize];
            space.left = true;
            if !space.used {
                space.mappings = Arc::default();
            }
        }
    }

    /// Resolves an address of a process to the memory it stands for, and marks the space as used.
    pub fn place(&mut self, pid: Pid, addr: u64) -> (SpaceId, Place) {
        if let Some(known) = self.recent.get(pid, addr) {
            return known.place(addr);
        }
        let id = self.space(pid);
        let space = &mut self.spaces[id.0 as usize];
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
        self.spaces.get(space.0 as usize)?.mappings.find(addr)
    }

    /// All mappings of a space, by address.
    pub fn mappings(&self, space: SpaceId) -> impl Iterator<Item = &Arc<Mapping>> {
        self.spaces
            .get(space.0 as usize)
            .into_iter()
            .flat_map(|s| s.mappings.0.values())
    }

    /// The process of a space.
    pub fn pid(&self, space: SpaceId) -> Option<Pid> {
        self.spaces.get(space.0 as usize).map(|s| s.pid)
    }

    /// Where the memory can be reached now: the processes that run and have it mapped, with the address. Of
    /// a shared place, those in whose spaces accesses were resolved. Nobody reaches a kernel place by an
    /// address of its own, and of a physical one no virtual address is known.
    pub fn addresses(&self, place: Place) -> Vec<(Pid, u64)> {
        let runs = |space: &&Space| !space.left;
        match place {
            Place::Private { space, addr } => {
                let space = self.spaces.get(space.0 as usize).filter(runs);
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
            Some((SpaceId(id as u32), addr))
        })
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
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::access::{Basis, Cpu, Measured, Op};

    fn mapping(start: u64, len: u64, name: &str) -> Mapping {
        Mapping {
            start,
            len,
            file_offset: 0,
            dev: 0,
            inode: 0,
            shared: false,
            executable: false,
            writable: true,
            name: name.into(),
            build_id: None,
        }
    }

    fn apply(spaces: &mut AddressSpaces, kind: ContextKind) {
        spaces.apply(&Context { time_ns: 0, kind });
    }

    fn map(spaces: &mut AddressSpaces, pid: u32, m: Mapping) {
        apply(
            spaces,
            ContextKind::Mapping {
                pid: Pid(pid),
                mapping: Arc::new(m),
            },
        );
    }

    #[test]
    fn a_new_mapping_cuts_the_old_one_and_keeps_both_ends() {
        let mut spaces = AddressSpaces::default();
        let file = Mapping {
            inode: 9,
            ..mapping(0x1000, 0x5000, "/lib/a")
        };
        map(&mut spaces, 1, file);
        map(&mut spaces, 1, mapping(0x3000, 0x1000, "//anon"));
        let id = spaces.space(Pid(1));
        let at = |addr| {
            spaces
                .mapping(id, addr)
                .map(|m| (m.name.as_str(), m.start, m.len, m.file_offset))
        };
        assert_eq!(at(0x1fff), Some(("/lib/a", 0x1000, 0x2000, 0)));
        assert_eq!(at(0x3000), Some(("//anon", 0x3000, 0x1000, 0)));
        assert_eq!(at(0x4000), Some(("/lib/a", 0x4000, 0x2000, 0x3000)));
        assert_eq!(at(0x6000), None);
    }

    #[test]
    fn shared_memory_at_two_addresses_is_one_place_and_private_memory_is_not() {
        let mut spaces = AddressSpaces::default();
        let shm = |start| Mapping {
            inode: 42,
            dev: 1,
            shared: true,
            ..mapping(start, 0x1000, "/dev/zero (deleted)")
        };
        map(&mut spaces, 1, shm(0x10_0000));
        map(&mut spaces, 2, shm(0x70_0000));
        map(&mut spaces, 1, mapping(0x20_0000, 0x1000, "[heap]"));
        map(&mut spaces, 2, mapping(0x20_0000, 0x1000, "[heap]"));
        assert_eq!(
            spaces.place(Pid(1), 0x10_0040).1,
            spaces.place(Pid(2), 0x70_0040).1
        );
        assert_ne!(
            spaces.place(Pid(1), 0x20_0040).1,
            spaces.place(Pid(2), 0x20_0040).1
        );
    }

    #[test]
    fn a_physical_address_places_what_no_mapping_does_and_nothing_else() {
        let mut spaces = AddressSpaces::default();
        map(&mut spaces, 1, mapping(0x20_0000, 0x1000, "[heap]"));
        let mut at = |pid, addr, physical| {
            let access = Access {
                time_ns: 1,
                addr,
                ip: 0x401000,
                cost_ns: 0,
                pid: Pid(pid),
                tid: Tid(pid),
                cpu: Cpu(0),
                size: 8,
                op: Op::Load,
                basis: Basis::Sampled,
                locked: false,
                kernel: false,
                measured: Measured {
                    phys_addr: NonZeroU64::new(physical),
                    ..Measured::default()
                },
            };
            spaces.place_of(&access).1
        };
        let physical = Place::Physical { addr: 0x9000 };
        assert_eq!(at(2, 0x30_0000, 0x9000), physical);
        assert_eq!(at(3, 0x70_0000, 0x9000), physical);
        assert!(matches!(at(2, 0x30_0000, 0), Place::Private { .. }));
        assert!(matches!(at(1, 0x20_0040, 0x9000), Place::Private { .. }));
        assert!(matches!(at(2, u64::MAX - 7, 0x9000), Place::Kernel { .. }));
    }

    #[test]
    fn a_mapping_put_over_another_is_seen_by_the_very_next_access() {
        let mut spaces = AddressSpaces::default();
        let shm = |start, inode| Mapping {
            inode,
            dev: 1,
            shared: true,
            ..mapping(start, 0x2000, "/dev/shm/a")
        };
        map(&mut spaces, 1, shm(0x10_0000, 42));
        let shared = |offset, inode| Place::Shared {
            dev: 1,
            inode,
            offset,
        };
        for _ in 0..2 {
            assert_eq!(spaces.place(Pid(1), 0x10_1040).1, shared(0x1040, 42));
        }
        map(&mut spaces, 1, shm(0x10_1000, 43));
        for _ in 0..2 {
            assert_eq!(spaces.place(Pid(1), 0x10_1040).1, shared(0x40, 43));
            assert_eq!(spaces.place(Pid(1), 0x10_0040).1, shared(0x40, 42));
        }
        let exec = ContextKind::Comm {
            pid: Pid(1),
            tid: Tid(1),
            comm: "new".into(),
            exec: true,
        };
        apply(&mut spaces, exec);
        let (space, place) = spaces.place(Pid(1), 0x10_0040);
        let addr = 0x10_0040;
        assert_eq!(place, Place::Private { space, addr });
    }

    #[test]
    fn a_fork_copies_mappings_and_an_exec_forgets_them() {
        let mut spaces = AddressSpaces::default();
        map(&mut spaces, 1, mapping(0x1000, 0x1000, "parent"));
        apply(
            &mut spaces,
            ContextKind::Fork {
                pid: Pid(2),
                tid: Tid(2),
                parent_pid: Pid(1),
            },
        );
        let child = spaces.space(Pid(2));
        assert_eq!(spaces.mapping(child, 0x1000).unwrap().name, "parent");
        let before = spaces.place(Pid(2), 0x1000);
        let exec = ContextKind::Comm {
            pid: Pid(2),
            tid: Tid(2),
            comm: "new".into(),
            exec: true,
        };
        apply(&mut spaces, exec);
        let after = spaces.space(Pid(2));
        assert_ne!(child, after);
        assert!(spaces.mapping(after, 0x1000).is_none());
        assert_eq!(spaces.mapping(before.0, 0x1000).unwrap().name, "parent");
    }

    #[test]
    fn a_reused_pid_gets_a_space_of_its_own() {
        let mut spaces = AddressSpaces::default();
        map(&mut spaces, 5, mapping(0x1000, 0x1000, "first"));
        let first = spaces.place(Pid(5), 0x1000);
        apply(
            &mut spaces,
            ContextKind::Exit {
                pid: Pid(5),
                tid: Tid(5),
            },
        );
        apply(
            &mut spaces,
            ContextKind::Fork {
                pid: Pid(5),
                tid: Tid(5),
                parent_pid: Pid(1),
            },
        );
        let second = spaces.place(Pid(5), 0x1000);
        assert_ne!(first, second);
        assert_eq!(spaces.mapping(first.0, 0x1000).unwrap().name, "first");
    }

    #[test]
    fn blocks_of_thread_local_storage_go_with_their_thread_pointer() {
        let mut spaces = AddressSpaces::default();
        let (pid, tid) = (Pid(1), Tid(2));
        let thread = |tp| ContextKind::Thread {
            pid,
            tid,
            sp: 0x9000,
            tp,
        };
        let block = |start, inode| ContextKind::LocalStorage {
            pid,
            tid,
            block: LocalBlock {
                start,
                len: 64,
                dev: 1,
                inode,
            },
        };
        let starts = |spaces: &AddressSpaces| -> Vec<u64> {
            let blocks = &spaces.thread(tid).expect("told of").local_storage;
            blocks.iter().map(|block| block.start).collect()
        };
        apply(&mut spaces, thread(Some(0x7000)));
        apply(&mut spaces, block(0x6f00, 8));
        apply(&mut spaces, block(0x5000, 9));
        // A stack that moves, and a sample without the pointer, change nothing.
        apply(&mut spaces, thread(Some(0x7000)));
        apply(&mut spaces, thread(None));
        assert_eq!(starts(&spaces), [0x6f00, 0x5000]);
        // A library that was closed and opened again has another block.
        apply(&mut spaces, block(0x5800, 9));
        assert_eq!(starts(&spaces), [0x6f00, 0x5800]);
        apply(&mut spaces, thread(Some(0x17000)));
        assert_eq!(starts(&spaces), [0u64; 0]);
    }

    #[test]
    fn a_space_without_accesses_lets_its_mappings_go_at_exit() {
        let mut spaces = AddressSpaces::default();
        map(&mut spaces, 5, mapping(0x1000, 0x1000, "gone"));
        let id = spaces.space(Pid(5));
        apply(
            &mut spaces,
            ContextKind::Exit {
                pid: Pid(5),
                tid: Tid(5),
            },
        );
        assert!(spaces.mapping(id, 0x1000).is_none());
    }
}
