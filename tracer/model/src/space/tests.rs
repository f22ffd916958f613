use std::num::NonZeroU64;

use super::*;
use crate::{
    access::{Basis, Cpu, Measured, Op},
    event::AllocationKind,
};

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
        stamp: None,
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
            ..Access::BLANK
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

#[test]
fn an_event_of_a_heap_numbers_its_processs_space_and_one_of_all_heaps_none() {
    let event = |pid| Allocation {
        time_ns: 0,
        pid: Pid(pid),
        tid: Tid(pid),
        kind: AllocationKind::Freed { addr: 0x1000 },
    };
    let mut spaces = AddressSpaces::default();
    assert_eq!(spaces.of_allocation(&event(0)), None);
    assert_eq!(spaces.of_allocation(&event(7)), Some(SpaceId(0)));
    assert_eq!(spaces.space(Pid(8)), SpaceId(1));
    assert_eq!(spaces.of_allocation(&event(7)), Some(SpaceId(0)));
}
