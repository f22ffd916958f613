//! What lines are called where no module is behind them.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::*;
use crate::{
    access::{Pid, Tid},
    event::{Allocation, AllocationKind, Context, ContextKind},
};

const PID: Pid = Pid(7);
/// Where the mapping is, and how far into its file.
const START: u64 = 0x7f00_0000_0000;
const FILE_OFFSET: u64 = 0x1000;

fn spaces(name: &str, shared: bool) -> AddressSpaces {
    let mut spaces = AddressSpaces::default();
    let mapping = Mapping {
        start: START,
        len: 0x4000,
        file_offset: FILE_OFFSET,
        dev: 1,
        inode: 42,
        shared,
        executable: false,
        writable: true,
        name: name.to_owned(),
        build_id: None,
        stamp: None,
    };
    spaces.apply(&Context {
        time_ns: 1,
        kind: ContextKind::Mapping {
            pid: PID,
            mapping: Arc::new(mapping),
        },
    });
    spaces
}

/// The only object of the line at an offset of the mapping.
fn named(spaces: &mut AddressSpaces, heap: &HeapIndex, offset: u64) -> ObjectName {
    let (_, place) = spaces.place(PID, START + offset);
    let modules = ModuleStore::new("/nonexistent".into(), true);
    let resolver = Resolver::new(spaces, &modules).with_heap(heap);
    let mut objects = resolver.objects(LineKey(place), LineSize::B64, &[]);
    assert_eq!(objects.len(), 1, "{objects:?}");
    objects.remove(0)
}

#[test]
fn shared_memory_is_called_by_its_file_and_the_place_in_it() {
    for (file, name) in [
        ("/dev/zero (deleted)", "/dev/zero+0x1240"),
        ("/memfd:ring (deleted)", "/memfd:ring+0x1240"),
        ("/SYSV00000000 (deleted)", "/SYSV00000000+0x1240"),
        ("/dev/shm/ring", "/dev/shm/ring+0x1240"),
    ] {
        let object = named(&mut spaces(file, true), &HeapIndex::default(), 0x240);
        assert_eq!(object.name.as_deref(), Some(name));
        assert_eq!(object.kind, ObjectKind::Mapping);
    }
    // A file of one's own is called so, too; memory without a file by nothing.
    let own = named(&mut spaces("/var/db", false), &HeapIndex::default(), 0x240);
    assert_eq!(own.name.as_deref(), Some("/var/db+0x1240"));
    let anonymous = named(&mut spaces("", false), &HeapIndex::default(), 0x240);
    assert_eq!((anonymous.name, anonymous.kind), (None, ObjectKind::Heap));
}

#[test]
fn shared_memory_that_was_seen_to_be_mapped_is_an_object_from_its_first_byte_on() {
    for (file, name) in [
        ("/dev/zero (deleted)", "mmap of 16384 bytes"),
        ("/dev/shm/ring", "/dev/shm/ring+0x1240"),
    ] {
        let mut spaces = spaces(file, true);
        let (space, _) = spaces.place(PID, START);
        let mut heap = HeapIndex::default();
        let kind = AllocationKind::Mapped {
            addr: START,
            size: 0x4000,
            stack: Arc::new([]),
        };
        let event = Allocation {
            time_ns: 2,
            pid: PID,
            tid: Tid(8),
            kind,
        };
        heap.apply(Some(space), &event);
        heap.touch(space, START + 0x240);
        let object = named(&mut spaces, &heap, 0x240);
        assert_eq!(
            object
                .name
                .as_deref()
                .map(|n| n.replace("an allocation", "mmap"))
                .as_deref(),
            Some(name)
        );
        assert_eq!(
            (object.kind, object.start),
            (ObjectKind::Mapping, Some(FILE_OFFSET))
        );
        assert_eq!(object.allocation.map(|made| made.tid), Some(Tid(8)));
    }
}

/// Names of this very test, as the report asks for them, after a request to stop that leaves so much time; and what is told of it.
fn named_after_a_stop(grace: Duration) -> (Option<String>, Vec<String>) {
    let own = Pid(std::process::id());
    let mut spaces = AddressSpaces::default();
    for context in crate::sys::proc_snapshot::process(Path::new("/proc"), own, 1) {
        spaces.apply(&context);
    }
    let here = named_after_a_stop as fn(Duration) -> _ as usize as u64;
    let (space, _) = spaces.place(own, here);
    let modules = ModuleStore::new("/".into(), true);
    let asked = Arc::new(AtomicBool::new(false));
    modules.heed(asked.clone(), grace);
    let before = Resolver::new(&spaces, &modules).code(Some(space), here, false);
    assert!(
        before
            .symbol
            .is_some_and(|name| name.ends_with("named_after_a_stop"))
    );
    asked.store(true, Ordering::Relaxed);
    let resolver = Resolver::new(&spaces, &modules);
    let after = resolver.code(Some(space), here, false);
    assert_eq!(after.module, before.module);
    (after.symbol, resolver.caveats())
}

#[test]
fn after_a_request_to_stop_names_are_given_for_a_while_and_then_their_absence_is_told() {
    let (symbol, told) = named_after_a_stop(Duration::ZERO);
    assert_eq!(symbol, None);
    let no_time = format!("1 instruction in 1 file: {}", Missing::NoTime);
    assert_eq!(told, [no_time]);
    let (symbol, told) = named_after_a_stop(Duration::from_hours(1));
    assert!(symbol.is_some_and(|name| name.ends_with("named_after_a_stop")));
    assert_eq!(told, Vec::<String>::new());
}
