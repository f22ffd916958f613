//! Memory of programs with a Go runtime, which keeps its heap and all stacks of goroutines in arenas of its own.

use std::{cell::RefCell, collections::HashMap};

use super::Resolver;
use crate::{access::SpaceId, event::Mapping};

/// Where the runtime asks for its first arenas: on x86-64 and aarch64 (`mallocinit`, src/runtime/malloc.go).
const ARENAS: [std::ops::Range<u64>; 2] = [0xc0 << 32..0x100 << 32, 0x40 << 32..0x80 << 32];
/// How newer runtimes name them where the kernel lets them (`CONFIG_ANON_VMA_NAME`).
const ARENA_NAME: &str = "[anon: Go: heap";
/// The section that every Go program has, a stripped one too.
const BUILD: &str = ".go.buildinfo";
/// A stack is a power of two of bytes, at least as many, at a multiple of them (`stackMin`, src/runtime/stack.go).
const LEAST_STACK: u64 = 2048;

/// The spaces that were asked about, and whether there is such a runtime.
#[derive(Default)]
pub(super) struct GoSpaces(RefCell<HashMap<SpaceId, bool>>);

/// Whether an address is on the same stack as a stack pointer, for sure.
pub(super) fn is_same_stack(addr: u64, sp: u64) -> bool {
    addr / LEAST_STACK == sp / LEAST_STACK
}

fn is_arena(mapping: &Mapping) -> bool {
    let is_anonymous = !mapping.is_file() && mapping.inode == 0;
    let is_there = ARENAS.iter().any(|arenas| arenas.contains(&mapping.start));
    is_anonymous && (is_there || mapping.name.starts_with(ARENA_NAME))
}

impl Resolver<'_> {
    /// Whether a mapping is an arena of Go's heap. A thread whose stack pointer is in one runs a goroutine: that tells of
    /// one of the stacks there, and nothing of the rest. What two goroutines know of is never on a stack of theirs, as the
    /// compiler moves it to the heap.
    pub(super) fn is_go_arena(&self, space: SpaceId, mapping: &Mapping) -> bool {
        is_arena(mapping) && self.has_go(space)
    }

    fn has_go(&self, space: SpaceId) -> bool {
        if let Some(known) = self.go.0.borrow().get(&space) {
            return *known;
        }
        let mut modules = self.spaces.pid(space).into_iter().flat_map(|pid| {
            let code = self.spaces.code(space).into_iter();
            code.filter_map(move |mapping| self.modules.open_to_name(pid, mapping).ok())
        });
        let found = modules.any(|module| module.elf.section_range(BUILD).is_some());
        self.go.0.borrow_mut().insert(space, found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, name: &str) -> Mapping {
        Mapping {
            start,
            len: 4 << 20,
            file_offset: 0,
            dev: 0,
            inode: 0,
            shared: false,
            executable: false,
            writable: true,
            name: name.to_owned(),
            build_id: None,
            stamp: None,
        }
    }

    #[test]
    fn arenas_are_where_the_runtime_asks_for_them_or_have_its_name() {
        assert!(is_arena(&mapping(0xc0_0000_0000, "")));
        assert!(is_arena(&mapping(0xc0_0400_0000, "//anon")));
        assert!(is_arena(&mapping(0x40_0000_0000, "")));
        assert!(is_arena(&mapping(
            0x7f12_0000_0000,
            "[anon: Go: heap reservation]"
        )));
        // What libc and the kernel map for threads and for malloc.
        assert!(!is_arena(&mapping(0x7fc0_1234_0000, "")));
        assert!(!is_arena(&mapping(0x55c0_1234_0000, "[heap]")));
        let mut file = mapping(0xc0_0000_0000, "/dev/zero (deleted)");
        file.inode = 5;
        assert!(!is_arena(&file));
    }

    #[test]
    fn only_the_smallest_stack_around_a_stack_pointer_is_surely_that_stack() {
        assert!(is_same_stack(0xc0_0001_87f8, 0xc0_0001_8010));
        assert!(!is_same_stack(0xc0_0001_8080, 0xc0_0004_5010));
        assert!(!is_same_stack(0xc0_0001_8800, 0xc0_0001_87f8));
    }
}
