//! What the emulated program has mapped, out of what the emulator's process has; pure.

use std::sync::Arc;

use crate::{event::Mapping, sys::proc_snapshot::parse_mapping};

/// Smallest page.
const PAGE: u64 = 4096;

/// The program's mappings as they were last told.
#[derive(Clone, Debug, Default)]
pub(super) struct GuestMaps {
    /// The emulator's own, from before the program was loaded.
    own: Vec<Mapping>,
    /// In order of addresses.
    told: Vec<Arc<Mapping>>,
    /// Start and end of the heap that `brk` moves.
    heap: Option<(u64, u64)>,
    /// A stack pointer of the first thread.
    stack: Option<u64>,
}

impl GuestMaps {
    /// Takes `/proc/PID/maps` of before the program was loaded.
    pub(super) fn baseline(&mut self, text: &str) {
        self.own = text.lines().filter_map(parse_mapping).collect();
    }

    /// Takes `/proc/PID/maps`; returns what is new.
    pub(super) fn update(&mut self, text: &str) -> Vec<Arc<Mapping>> {
        let mappings = text.lines().filter_map(parse_mapping);
        let theirs = mappings.filter(|mapping| !self.is_own(mapping));
        let mut now: Vec<Arc<Mapping>> = Vec::new();
        let mut new = Vec::new();
        for mut mapping in theirs {
            let known = self.told.iter().find(|told| is_same(told, &mapping));
            if let Some(known) = known {
                now.push(known.clone());
                continue;
            }
            // Code was seen to run in a part of it that was cut or grew.
            let ran = |told: &&Arc<Mapping>| told.executable && overlap(told, &mapping);
            mapping.executable |= mapping.is_file() && self.told.iter().any(|told| ran(&told));
            if is_anonymous(&mapping) && self.stack.is_some_and(|sp| mapping.contains(sp)) {
                "[stack]".clone_into(&mut mapping.name);
            }
            let mapping = Arc::new(mapping);
            now.push(mapping.clone());
            new.push(mapping);
        }
        self.told = now;
        // Below its name, the heap is anonymous memory like any other.
        if let Some((start, end)) = self.heap
            && new
                .iter()
                .any(|mapping| mapping.start < end && start < mapping.end())
        {
            new.extend(heap(start, end));
        }
        new
    }

    /// The program's heap ends here now; the first end is its start.
    pub(super) fn moved_break(&mut self, end: u64) -> Option<Arc<Mapping>> {
        let (start, before) = *self.heap.get_or_insert((end, end));
        if end <= start || end == before {
            return None;
        }
        self.heap = Some((start, end));
        heap(start, end)
    }

    /// Code ran at this address. Returns the mapping, if it was not known to be code.
    pub(super) fn mark_executable(&mut self, ip: u64) -> Option<Arc<Mapping>> {
        let mapping = self.told.iter_mut().find(|mapping| mapping.contains(ip))?;
        if mapping.executable {
            return None;
        }
        let executable = Mapping {
            executable: true,
            ..(**mapping).clone()
        };
        *mapping = Arc::new(executable);
        Some(mapping.clone())
    }

    /// The first thread's stack pointer was about here. Returns its stack.
    pub(super) fn name_stack(&mut self, sp: u64) -> Option<Arc<Mapping>> {
        self.stack = Some(sp);
        let mapping = self.told.iter_mut().find(|mapping| mapping.contains(sp))?;
        if !is_anonymous(mapping) {
            return None;
        }
        let named = Mapping {
            name: "[stack]".to_owned(),
            ..(**mapping).clone()
        };
        *mapping = Arc::new(named);
        Some(mapping.clone())
    }

    fn is_own(&self, mapping: &Mapping) -> bool {
        // The kernel's names are for the emulator's stack and heap, which grow; ours are nobody's.
        mapping.name.starts_with('[')
            || mapping.name.starts_with("/memfd:cohtrace-")
            || self.own.iter().any(|own| {
                let same = (own.dev, own.inode) == (mapping.dev, mapping.inode);
                same && own.start <= mapping.start && mapping.end() <= own.end()
            })
    }
}

fn heap(start: u64, end: u64) -> Option<Arc<Mapping>> {
    let start = start & !(PAGE - 1);
    let end = end.checked_next_multiple_of(PAGE)?;
    Some(Arc::new(Mapping {
        start,
        len: end - start,
        file_offset: 0,
        dev: 0,
        inode: 0,
        shared: false,
        executable: false,
        writable: true,
        name: "[heap]".to_owned(),
        build_id: None,
        stamp: None,
    }))
}

fn is_anonymous(mapping: &Mapping) -> bool {
    mapping.inode == 0 && mapping.name.is_empty()
}

fn is_same(told: &Mapping, now: &Mapping) -> bool {
    let what = |m: &Mapping| {
        (
            m.start,
            m.len,
            m.file_offset,
            m.dev,
            m.inode,
            m.shared,
            m.writable,
        )
    };
    let named = told.name == now.name || (told.name == "[stack]" && is_anonymous(now));
    what(told) == what(now) && named
}

fn overlap(told: &Mapping, now: &Mapping) -> bool {
    let same = (told.dev, told.inode) == (now.dev, now.inode);
    same && told.start < now.end() && now.start < told.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
55d0-55d9 r--p 00000000 fe:01 7 /usr/bin/qemu-x86_64
7f00000-7f10000 r--p 00000000 fe:01 9 /lib/libc.so.6
7ff0000-7ff9000 rw-p 00000000 00:00 0 [stack]
";
    const LOADED: &str = "\
400000-401000 r--p 00000000 fe:01 42 /tmp/prog
401000-402000 r--p 00001000 fe:01 42 /tmp/prog
403000-404000 rw-p 00003000 fe:01 42 /tmp/prog
4000000-4800000 rw-p 00000000 00:00 0 
5000000-5010000 r--p 00000000 fe:01 9 /lib/libc.so.6
55d0-55d9 r--p 00000000 fe:01 7 /usr/bin/qemu-x86_64
7f00000-7f10000 r--p 00000000 fe:01 9 /lib/libc.so.6
7f20000-7f30000 rw-s 00000000 00:01 5 /memfd:cohtrace-accesses (deleted)
7ff0000-7ff9000 rw-p 00000000 00:00 0 [stack]
";

    fn loaded() -> GuestMaps {
        let mut maps = GuestMaps::default();
        maps.baseline(BEFORE);
        assert_eq!(maps.update(LOADED).len(), 5);
        maps
    }

    #[test]
    fn the_emulators_own_mappings_are_not_the_programs_though_both_have_the_same_library() {
        let mut maps = GuestMaps::default();
        maps.baseline(BEFORE);
        let starts: Vec<u64> = maps.update(LOADED).iter().map(|m| m.start).collect();
        assert_eq!(
            starts,
            [0x40_0000, 0x40_1000, 0x40_3000, 0x400_0000, 0x500_0000]
        );
    }

    #[test]
    fn only_what_changed_is_told_again() {
        let mut maps = loaded();
        assert_eq!(maps.update(LOADED), []);
        let more = format!("{LOADED}6000000-6001000 rw-s 00000000 00:01 77 /dev/shm/x\n");
        let new = maps.update(&more);
        assert_eq!(new.len(), 1);
        assert!(new[0].shared && new[0].name == "/dev/shm/x");
    }

    #[test]
    fn what_ran_is_code_and_stays_so() {
        let mut maps = loaded();
        let text = maps.mark_executable(0x40_1010).unwrap();
        assert!(text.executable && text.file_offset == 0x1000);
        assert_eq!(maps.mark_executable(0x40_1020), None);
        assert_eq!(maps.mark_executable(0x99), None);
        assert_eq!(maps.update(LOADED), []);
    }

    #[test]
    fn the_heap_has_a_name_once_it_is_not_empty_and_keeps_it_when_its_memory_is_told() {
        let mut maps = loaded();
        assert_eq!(maps.moved_break(0x41_0000), None);
        let heap = maps.moved_break(0x41_2100).unwrap();
        assert_eq!(
            (heap.name.as_str(), heap.start, heap.len),
            ("[heap]", 0x41_0000, 0x3000)
        );
        assert_eq!(maps.moved_break(0x41_2100), None);
        let more = format!("{LOADED}410000-413000 rw-p 00000000 00:00 0 \n");
        let names: Vec<String> = maps.update(&more).iter().map(|m| m.name.clone()).collect();
        assert_eq!(names, ["", "[heap]"]);
    }

    #[test]
    fn the_first_threads_stack_has_a_name_and_a_file_is_no_stack() {
        let mut maps = loaded();
        assert_eq!(maps.name_stack(0x40_0100), None);
        let stack = maps.name_stack(0x47f_fff0).unwrap();
        assert_eq!((stack.name.as_str(), stack.start), ("[stack]", 0x400_0000));
        assert_eq!(maps.update(LOADED), []);
    }
}
