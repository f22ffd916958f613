//! Thread-local variables by address: whose block it is, and which variable is at the offset.
//!
//! Blocks of libraries come with the context. That of the program itself follows from the thread pointer alone, so it
//! is known of processes that are gone, too.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use crate::{
    access::{Pid, SpaceId, Tid},
    module::{LoadedModule, ModuleStore},
    space::{AddressSpaces, ThreadState},
};

/// A thread's block of one module.
pub(super) struct Block {
    pub(super) module: Arc<LoadedModule>,
    pub(super) thread: Tid,
    /// First address.
    pub(super) start: u64,
}

/// A program and the distance of its block to the thread pointer.
type Program = Option<(Arc<LoadedModule>, u64)>;

/// The programs of the spaces that were asked about, and what their modules take of each thread.
#[derive(Default)]
pub(super) struct Programs {
    programs: RefCell<HashMap<SpaceId, Program>>,
    sizes: RefCell<HashMap<SpaceId, u64>>,
}

impl Programs {
    fn of(&self, spaces: &AddressSpaces, modules: &ModuleStore, space: SpaceId) -> Program {
        if let Some(known) = self.programs.borrow().get(&space) {
            return known.clone();
        }
        let find = || {
            let pid = spaces.pid(space)?;
            spaces.code(space).into_iter().find_map(|mapping| {
                let module = modules.open_to_name(pid, mapping).ok()?;
                let template = module.elf.thread_local_template()?;
                let is_program = module.elf.is_program();
                let distance = is_program.then(|| template.distance_of_program())??;
                Some((module, distance))
            })
        };
        let found = find();
        self.programs.borrow_mut().insert(space, found.clone());
        found
    }

    /// Bytes of static thread-local storage of a space's modules, for each of its threads.
    pub(super) fn storage_size(
        &self,
        spaces: &AddressSpaces,
        modules: &ModuleStore,
        space: SpaceId,
    ) -> u64 {
        let Some(pid) = spaces.pid(space) else {
            return 0;
        };
        let sum = || {
            let code = spaces
                .mappings(space)
                .filter(|m| m.is_file() && m.executable);
            code.filter_map(|m| modules.open_to_name(pid, m).ok())
                .filter_map(|module| module.elf.thread_local_segment())
                .map(|(size, _)| size)
                .sum()
        };
        *self.sizes.borrow_mut().entry(space).or_insert_with(sum)
    }

    /// The block of one of these threads that holds an address of their space.
    pub(super) fn block_at(
        &self,
        spaces: &AddressSpaces,
        modules: &ModuleStore,
        (space, threads): (SpaceId, &[(Tid, &ThreadState)]),
        addr: u64,
    ) -> Option<Block> {
        threads.iter().find_map(|&(thread, state)| {
            let listed = state
                .local_storage
                .iter()
                .find(|block| block.overlaps(addr, addr.saturating_add(1)));
            if let Some(block) = listed {
                let module = module(
                    spaces,
                    modules,
                    (state.pid, space),
                    (block.dev, block.inode),
                )?;
                return Some(Block {
                    module,
                    thread,
                    start: block.start,
                });
            }
            let (module, distance) = self.of(spaces, modules, space)?;
            let start = state.tp?.checked_sub(distance)?;
            let size = module.elf.thread_local_template()?.size;
            (addr.checked_sub(start)? < size).then_some(Block {
                module,
                thread,
                start,
            })
        })
    }
}

/// The threads of a space that have local storage. Memory that several of them had one after the other is the last one's:
/// that which was told of last comes first.
pub(super) fn threads(spaces: &AddressSpaces, space: SpaceId) -> Vec<(Tid, &ThreadState)> {
    let pid = spaces.pid(space);
    let mut threads: Vec<(Tid, &ThreadState)> = spaces
        .threads()
        .filter(|(_, state)| Some(state.pid) == pid && state.tp.is_some())
        .collect();
    threads.sort_by_key(|(tid, state)| (std::cmp::Reverse(state.told_ns), tid.0));
    threads
}

fn module(
    spaces: &AddressSpaces,
    modules: &ModuleStore,
    (pid, space): (Pid, SpaceId),
    file: (u64, u64),
) -> Option<Arc<LoadedModule>> {
    let mut of_file =
        (spaces.code(space).into_iter()).filter(|mapping| (mapping.dev, mapping.inode) == file);
    modules.open_to_name(pid, of_file.next()?).ok()
}

/// A variable's name as the source has it: `thread_local!` of Rust's standard library declares `HITS` by a variable
/// deep inside of a constant called so.
pub(super) fn source_name(name: String) -> String {
    const INSIDE: [&str; 2] = ["::{constant#", "::{{constant}}"];
    let is_value = name.ends_with("::__RUST_STD_INTERNAL_VAL") || name.ends_with("::VAL");
    let at = INSIDE.iter().filter_map(|inside| name.find(inside)).min();
    match at {
        Some(at) if is_value => name[..at].to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, os::unix::thread::JoinHandleExt, path::Path, sync::mpsc, thread};

    use super::source_name;
    use crate::{
        access::{LineKey, LineSize, Pid, Place, Tid},
        event::{Context, ContextKind, LocalBlock},
        module::ModuleStore,
        names::{Names, ObjectKind, ObjectName, Resolver},
        space::AddressSpaces,
        sys::proc_snapshot,
    };

    thread_local! {
        static COUNTS: Cell<[u64; 4]> = const { Cell::new([1, 2, 3, 4]) };
    }

    /// What is at an address of this process, with this context besides its mappings.
    fn objects_at(addr: u64, kinds: Vec<ContextKind>) -> Vec<ObjectName> {
        let own = Pid(std::process::id());
        let mut spaces = AddressSpaces::default();
        for context in proc_snapshot::process(Path::new("/proc"), own, 0) {
            spaces.apply(&context);
        }
        for (time_ns, kind) in (1..).zip(kinds) {
            spaces.apply(&Context { time_ns, kind });
        }
        let modules = ModuleStore::new("/".into(), true);
        let space = spaces.space(own);
        let place = Place::Private {
            space,
            addr: addr & !63,
        };
        Resolver::new(&spaces, &modules).objects(LineKey(place), LineSize::B64, &[])
    }

    fn told(tid: u32, tp: u64) -> ContextKind {
        let pid = Pid(std::process::id());
        ContextKind::Thread {
            pid,
            tid: Tid(tid),
            sp: 0,
            tp: Some(tp),
        }
    }

    /// A variable of another thread of this process, by the address that the thread itself has for it. With glibc
    /// a thread's handle is its thread pointer.
    #[test]
    fn another_threads_variable_is_named_from_the_thread_pointer_alone() {
        if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
            cohtrace_skips::skipped("thread handles are thread pointers on x86-64 with glibc only");
            return;
        }
        let (tell, told_address) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            COUNTS
                .with(|counts| tell.send(std::ptr::from_ref(counts).addr() as u64))
                .unwrap();
            let _ = ended.recv();
        });
        let addr = told_address.recv().unwrap();
        let tp = other.as_pthread_t() as u64;
        let is_ours = |object: &ObjectName| object.start == Some(addr);

        let objects = objects_at(addr, vec![told(777, tp)]);
        let found = objects
            .iter()
            .find(|object| is_ours(object))
            .unwrap_or_else(|| panic!("{objects:?}"));
        assert_eq!(
            (found.kind, found.thread, found.size),
            (ObjectKind::Tls, Some(Tid(777)), Some(32))
        );
        assert!(
            found.name.as_deref().unwrap().ends_with("::COUNTS"),
            "{found:?}"
        );

        // Of two threads that had the memory, the last one told of has it.
        let objects = objects_at(addr, vec![told(1, tp), told(9, tp), told(5, tp)]);
        assert_eq!(
            objects
                .iter()
                .find(|object| is_ours(object))
                .unwrap()
                .thread,
            Some(Tid(5))
        );

        // Nothing is named where no thread pointer is known, or another.
        for kinds in [vec![], vec![told(777, tp - 4096)]] {
            let objects = objects_at(addr, kinds);
            assert!(!objects.iter().any(is_ours), "{objects:?}");
        }

        // A block that belongs to a file that is not mapped here names nothing.
        let block = LocalBlock {
            start: addr & !63,
            len: 64,
            dev: 1,
            inode: 1,
        };
        let (pid, tid) = (Pid(std::process::id()), Tid(777));
        let objects = objects_at(
            addr,
            vec![told(777, tp), ContextKind::LocalStorage { pid, tid, block }],
        );
        assert!(!objects.iter().any(is_ours), "{objects:?}");
        drop(end);
        other.join().unwrap();
    }

    #[test]
    fn a_rust_thread_local_has_the_name_that_its_macro_was_given() {
        let name = |text: &str| source_name(text.to_owned());
        assert_eq!(
            name("demo::HITS::{constant#0}::{closure#1}::__RUST_STD_INTERNAL_VAL"),
            "demo::HITS"
        );
        assert_eq!(
            name("demo::HITS::{{constant}}::{{closure}}::VAL"),
            "demo::HITS"
        );
        assert_eq!(name("demo::VAL"), "demo::VAL");
        assert_eq!(
            name("demo::HITS::{constant#0}::other"),
            "demo::HITS::{constant#0}::other"
        );
    }
}
