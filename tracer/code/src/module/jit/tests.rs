use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::*;

/// A process in a tree: its number here and in its own namespace, its user.
fn process(root: &Path, pid: u32, own: u32, user: u32) {
    let directory = root.join(format!("proc/{pid}"));
    fs::create_dir_all(directory.join("root/tmp")).unwrap();
    let status =
        format!("Name:\tnode\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{pid}\t{own}\n");
    fs::write(directory.join("status"), status).unwrap();
}

/// The user who runs the tests, who owns what they write.
fn user() -> u32 {
    fs::metadata("/proc/self").unwrap().uid()
}

/// Looks at files each time, however long a look took on a busy machine.
fn store(root: &Path) -> JitStore {
    JitStore {
        reread: Duration::ZERO,
        long: Duration::MAX,
        ..JitStore::new(Some(root.to_owned()))
    }
}

/// The first and only process of that number.
pub(super) fn last(pid: u32) -> Compiled {
    Compiled {
        pid: Pid(pid),
        space: SpaceId(0),
        is_last: true,
    }
}

fn symbol(store: &JitStore, pid: u32, addr: u64) -> Result<String, JitMissing> {
    store
        .find(last(pid), addr, std::iter::empty())
        .map(|code| code.symbol)
}

#[test]
fn a_map_is_found_by_the_number_in_the_process_own_namespace_and_read_on_as_it_grows() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 500, 7, user());
    let store = store(root.path());
    assert_eq!(symbol(&store, 500, 0x1000), Err(JitMissing::NoMap));
    let map = root.path().join("proc/500/root/tmp/perf-7.map");
    fs::write(&map, "1000 10 first\n").unwrap();
    assert_eq!(symbol(&store, 500, 0x1008), Ok("first".into()));
    assert_eq!(symbol(&store, 500, 0x2000), Err(JitMissing::NotCovered(0)));
    fs::write(
        &map,
        "1000 10 first\nbad\n0x2000 0x10 _ZN3foo3barEv\n1000 10 again\n",
    )
    .unwrap();
    assert_eq!(symbol(&store, 500, 0x2000), Ok("foo::bar()".into()));
    assert_eq!(symbol(&store, 500, 0x1000), Ok("again".into()));
    assert_eq!(symbol(&store, 500, 0x3000), Err(JitMissing::NotCovered(1)));
    // A shorter file is a new one.
    fs::write(&map, "3000 10 new\n").unwrap();
    assert_eq!(symbol(&store, 500, 0x3000), Ok("new".into()));
    assert_eq!(symbol(&store, 500, 0x2000), Err(JitMissing::NotCovered(0)));
    // When the process ends, what was read stays.
    fs::remove_dir_all(root.path().join("proc/500")).unwrap();
    assert_eq!(symbol(&store, 500, 0x3000), Ok("new".into()));
}

#[test]
fn a_map_of_another_user_a_link_or_an_old_one_is_refused_with_the_reason() {
    if user() != 0 {
        // Only root can give files away; the rest of this needs that.
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let map = root.path().join("proc/500/root/tmp/perf-500.map");
    process(root.path(), 500, 500, 1000);
    fs::write(&map, "1000 10 first\n").unwrap();
    assert_eq!(symbol(&store(root.path()), 500, 0x1000), Ok("first".into()));
    std::os::unix::fs::chown(&map, Some(1000), None).unwrap();
    assert_eq!(symbol(&store(root.path()), 500, 0x1000), Ok("first".into()));
    std::os::unix::fs::chown(&map, Some(1001), None).unwrap();
    let refused = symbol(&store(root.path()), 500, 0x1000).unwrap_err();
    assert!(
        matches!(refused, JitMissing::Owner { owner: 1001, .. }),
        "{refused}"
    );
    std::os::unix::fs::chown(&map, Some(0), None).unwrap();
    // Up for 100 s, the process for 10 s, the file older than that.
    fs::write(root.path().join("proc/uptime"), "100.00 50.00\n").unwrap();
    let fields = vec!["0"; 19].join(" ");
    fs::write(
        root.path().join("proc/500/stat"),
        format!("500 (a) b) {fields} 9000 0\n"),
    )
    .unwrap();
    assert_eq!(symbol(&store(root.path()), 500, 0x1000), Ok("first".into()));
    let file = fs::File::options().write(true).open(&map).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_mins(1))
        .unwrap();
    let stale = symbol(&store(root.path()), 500, 0x1000).unwrap_err();
    assert!(matches!(stale, JitMissing::Stale(_)), "{stale}");
    let elsewhere = root.path().join("elsewhere");
    fs::rename(&map, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &map).unwrap();
    let link = symbol(&store(root.path()), 500, 0x1000).unwrap_err();
    assert!(matches!(link, JitMissing::Unreadable(..)), "{link}");
}

#[test]
fn under_another_boot_process_numbers_mean_nothing() {
    let store = JitStore::new(None);
    assert_eq!(
        symbol(&store, std::process::id(), 0x1000),
        Err(JitMissing::NoMap)
    );
}

/// A jitdump file with one function of two lines at 0x1000, its code `90 c3`.
fn dump() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0x4a69_5444_u32, 1, 40, 62, 0, 500, 0, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    let lines = [0x1000_u64, 2, 0x1000, 0x7_0000_0003];
    let mut payload: Vec<u8> = lines.iter().flat_map(|word| word.to_le_bytes()).collect();
    payload.extend(b"app.js\0");
    payload.extend([0x1001_u64, 4].iter().flat_map(|word| word.to_le_bytes()));
    payload.extend(b"\xff\0");
    let mut code: Vec<u8> = [0x1f4_0000_01f4, 0x1000_u64, 0x1000, 2, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    code.extend(b"left\0\x90\xc3");
    for (id, payload) in [(2_u32, payload), (0, code)] {
        bytes.extend(id.to_le_bytes());
        bytes.extend((16 + payload.len() as u32).to_le_bytes());
        bytes.extend(1_u64.to_le_bytes());
        bytes.extend(payload);
    }
    bytes
}

#[test]
fn a_dump_is_found_by_its_executable_mapping_and_gives_lines_and_code() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 500, 7, user());
    let path = root.path().join("proc/500/root/tmp/jit-7.dump");
    fs::write(&path, dump()).unwrap();
    let mapping = |name: &str, executable| {
        Arc::new(Mapping {
            start: 0x7000,
            len: 0x1000,
            file_offset: 0,
            dev: 1,
            inode: fs::metadata(&path).unwrap().ino(),
            shared: false,
            executable,
            writable: false,
            name: name.into(),
            build_id: None,
            stamp: None,
        })
    };
    let find = |mapping: Arc<Mapping>, addr| {
        let found = store(root.path()).find(last(500), addr, [mapping].iter());
        found.map(|code| (code.symbol, code.file, code.line))
    };
    let good = mapping("/tmp/jit-7.dump", true);
    let at = |line| Ok(("left".to_owned(), Some("app.js".to_owned()), Some(line)));
    assert_eq!(find(good.clone(), 0x1000), at(3));
    assert_eq!(find(good.clone(), 0x1001), at(4));
    assert_eq!(find(good.clone(), 0x1002), Err(JitMissing::NotCovered(0)));
    for other in [
        mapping("/tmp/jit-7.dump", false),
        mapping("/tmp/jit-8.dump", true),
        mapping("/tmp/jit-7.so", true),
    ] {
        assert_eq!(find(other, 0x1000), Err(JitMissing::NoMap));
    }
    // No process 500 runs that code, or it has none at 0x1000: the dump has it.
    let text = store(root.path()).text(last(500), 0x1001, 4096, [good].iter());
    assert_eq!(text, Some((0x1000, b"\x90\xc3".to_vec())));
}

#[test]
fn a_later_process_of_the_same_number_has_tables_of_its_own_and_the_earlier_one_keeps_its() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 500, 500, user());
    let map = root.path().join("proc/500/root/tmp/perf-500.map");
    fs::write(&map, "1000 10 first\n").unwrap();
    let store = store(root.path());
    let ask = |space, is_last| {
        let of = Compiled {
            space: SpaceId(space),
            is_last,
            ..last(500)
        };
        let found = store.find(of, 0x1000, std::iter::empty());
        found.map(|code| code.symbol)
    };
    assert_eq!(ask(0, true), Ok("first".into()));
    fs::write(&map, "1000 10 second\n").unwrap();
    assert_eq!(ask(1, true), Ok("second".into()));
    assert_eq!(ask(0, false), Ok("first".into()));
    // Of one that nobody asked for while it was the last, nothing is known.
    assert_eq!(ask(2, false), Err(JitMissing::NoMap));
}

#[test]
fn after_a_recording_neither_a_later_process_nor_what_one_left_behind_is_believed() {
    let root = tempfile::tempdir().unwrap();
    let map = root.path().join("tmp/perf-500.map");
    fs::create_dir_all(map.parent().unwrap()).unwrap();
    fs::create_dir_all(root.path().join("proc/self")).unwrap();
    let own = fs::read("/proc/self/status").unwrap();
    fs::write(root.path().join("proc/self/status"), own).unwrap();
    fs::write(&map, "1000 10 left_behind\n").unwrap();
    let now = super::super::stamps::unix_ns(std::time::SystemTime::now());
    let second = 1_000_000_000;
    let ask = |until: u64| {
        let store = store(root.path()).recorded_until(until);
        symbol(&store, 500, 0x1000)
    };
    // Gone, and the file was there before the recording ended, or not.
    assert_eq!(ask(now + second), Ok("left_behind".into()));
    let shown = map.display().to_string();
    assert_eq!(ask(now - 10 * second), Err(JitMissing::Later(shown)));
    // Alive, and started 100 seconds after the machine, which started 200 seconds ago.
    process(root.path(), 500, 500, user());
    let map = root.path().join("proc/500/root/tmp/perf-500.map");
    fs::write(map, "1000 10 of_a_process\n").unwrap();
    let zeros = "0 ".repeat(17);
    let stat = format!("500 (a) b) S {zeros} 1 10000 0\n");
    fs::write(root.path().join("proc/500/stat"), stat).unwrap();
    fs::write(root.path().join("proc/uptime"), "200.00 1.00\n").unwrap();
    assert_eq!(ask(now - 50 * second), Ok("of_a_process".into()));
    let other = Err(JitMissing::OtherProcess(500));
    assert_eq!(ask(now - 150 * second), other);
}
