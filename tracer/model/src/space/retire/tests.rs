use super::*;
use crate::event::{Context, ContextKind};

fn apply(spaces: &mut AddressSpaces, time_ns: u64, kind: ContextKind) {
    spaces.apply(&Context { time_ns, kind });
}

fn fork(spaces: &mut AddressSpaces, time_ns: u64, pid: u32, tid: u32, parent: u32) {
    let (pid, tid, parent_pid) = (Pid(pid), Tid(tid), Pid(parent));
    let kind = ContextKind::Fork {
        pid,
        tid,
        parent_pid,
    };
    apply(spaces, time_ns, kind);
}

fn exit(spaces: &mut AddressSpaces, time_ns: u64, pid: u32, tid: u32) {
    let (pid, tid) = (Pid(pid), Tid(tid));
    apply(spaces, time_ns, ContextKind::Exit { pid, tid });
}

fn anonymous(start: u64) -> Mapping {
    Mapping {
        start,
        len: 0x1000,
        file_offset: 0,
        dev: 0,
        inode: 0,
        shared: false,
        executable: false,
        writable: true,
        name: String::new(),
        build_id: None,
        stamp: None,
    }
}

fn map(spaces: &mut AddressSpaces, pid: u32, mapping: Mapping) -> Arc<Mapping> {
    let mapping = Arc::new(mapping);
    let kind = ContextKind::Mapping {
        pid: Pid(pid),
        mapping: mapping.clone(),
    };
    apply(spaces, 0, kind);
    mapping
}

#[test]
fn a_process_goes_after_its_last_thread_and_a_moment_later() {
    let mut spaces = AddressSpaces::default();
    fork(&mut spaces, 1, 7, 7, 1);
    fork(&mut spaces, 2, 7, 8, 7);
    let (space, _) = spaces.place(Pid(7), 0x5000);
    // The first thread ends before the second.
    exit(&mut spaces, 10, 7, 7);
    let retired = spaces.retire(100, &Kept::default());
    assert_eq!((retired.threads, retired.processes), (vec![Tid(7)], vec![]));
    assert_eq!(spaces.current(Pid(7)), Some(space));
    exit(&mut spaces, 20, 7, 8);
    // Not yet: late samples may come.
    assert_eq!(spaces.retire(19, &Kept::default()).processes, []);
    assert!(spaces.has(space));
    assert_eq!(spaces.retire(20, &Kept::default()).processes, [Pid(7)]);
    assert!(!spaces.has(space) && spaces.current(Pid(7)).is_none());
    assert_eq!(spaces.held(), Held::default());
}

#[test]
fn what_is_kept_stays_and_a_number_is_never_given_twice() {
    let mut spaces = AddressSpaces::default();
    let mut kept = Kept::default();
    let mut numbers = FxHashSet::default();
    for round in 0..100 {
        fork(&mut spaces, round, 7, 7, 1);
        map(&mut spaces, 7, anonymous(0x5000));
        let (space, _) = spaces.place(Pid(7), 0x5000);
        assert!(numbers.insert(space));
        if round % 10 == 0 {
            kept.spaces.insert(space);
        }
        exit(&mut spaces, round, 7, 7);
        spaces.retire(round, &kept);
    }
    assert_eq!(spaces.held().spaces, 10);
    assert!(
        kept.spaces
            .iter()
            .all(|space| spaces.mapping(*space, 0x5000).is_some())
    );
    // Without anything kept, all go.
    spaces.retire(1000, &Kept::default());
    assert_eq!(spaces.held(), Held::default());
}

#[test]
fn an_exec_leaves_a_space_and_the_process_stays() {
    let mut spaces = AddressSpaces::default();
    fork(&mut spaces, 1, 7, 7, 1);
    let (before, _) = spaces.place(Pid(7), 0x5000);
    let exec = ContextKind::Comm {
        pid: Pid(7),
        tid: Tid(7),
        comm: "new".into(),
        exec: true,
    };
    apply(&mut spaces, 2, exec);
    let retired = spaces.retire(3, &Kept::default());
    assert_eq!((retired.spaces.len(), retired.processes.len()), (1, 0));
    assert!(!spaces.has(before) && spaces.current(Pid(7)).is_some());
    assert_eq!(
        spaces
            .thread(Tid(7))
            .and_then(|thread| thread.comm.as_deref()),
        Some("new")
    );
}

#[test]
fn a_million_processes_and_threads_leave_nothing_and_without_retiring_they_do() {
    let churn = |retires: bool| {
        let mut spaces = AddressSpaces::default();
        let mut most = 0;
        for n in 0..20_000_u32 {
            let (time_ns, pid) = (u64::from(n), 100 + n % 30_000);
            fork(&mut spaces, time_ns, pid, pid, 1);
            map(&mut spaces, pid, anonymous(0x5000));
            fork(&mut spaces, time_ns, pid, 50_000 + pid, pid);
            spaces.place(Pid(pid), 0x5000);
            exit(&mut spaces, time_ns, pid, 50_000 + pid);
            exit(&mut spaces, time_ns, pid, pid);
            if retires && n % 100 == 0 {
                spaces.retire(time_ns, &Kept::default());
            }
            if n % 1000 == 0 {
                most = most.max(spaces.entries());
            }
        }
        most
    };
    assert!(churn(true) < 1000);
    assert!(churn(false) > 20_000);
}

#[test]
fn mappings_that_are_gone_go_but_for_the_image_of_what_is_kept() {
    let mut spaces = AddressSpaces::default();
    let file = |start, inode| Mapping {
        inode,
        name: format!("/lib/{inode}"),
        ..anonymous(start)
    };
    let code = map(&mut spaces, 7, file(0x10_0000, 5));
    let data = map(&mut spaces, 7, file(0x10_1000, 5));
    let bss = map(&mut spaces, 7, anonymous(0x10_2000));
    // Right behind it, another one.
    let other = map(&mut spaces, 7, file(0x10_3000, 6));
    let apart = map(&mut spaces, 7, anonymous(0x20_0000));
    let space = spaces.space(Pid(7));
    let mut kept = Kept::default();
    kept.addresses.insert((space, 0x10_2040));
    let gone = [code, data, bss, other, apart];
    spaces.unmap(space, &gone, &kept);
    let known = |spaces: &AddressSpaces, at| spaces.mapping(space, at).is_some();
    for (at, stays) in [
        (0x10_0000, true),
        (0x10_1000, true),
        (0x10_2000, true),
        (0x10_3000, false),
        (0x20_0000, false),
    ] {
        assert_eq!(known(&spaces, at), stays, "{at:#x}");
    }
    // What came to its place meanwhile is another one.
    map(
        &mut spaces,
        7,
        Mapping {
            len: 0x800,
            ..anonymous(0x10_0000)
        },
    );
    spaces.unmap(space, &gone, &Kept::default());
    assert!(known(&spaces, 0x10_0000) && !known(&spaces, 0x10_1000));
}
