use std::{fs, path::Path, process::Command};

use super::*;

const PATH: &str = "usr/lib/libbuilt.so";

#[test]
fn a_file_that_is_another_one_here_than_in_its_process_has_no_package_of_ours() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::metadata(path).unwrap().ino()
    };
    write("var/lib/dpkg/info/foo.list", "/usr/lib/libfoo.so\n");
    let here = write("usr/lib/libfoo.so", "ours");
    let inside = write("proc/500/root/usr/lib/libfoo.so", "the container's");
    let advice = |inode| {
        let modules = ModuleStore::new(root.path().to_owned(), true);
        let mapping = Mapping {
            start: 0x1000,
            len: 0x1000,
            file_offset: 0,
            dev: 1,
            inode,
            shared: false,
            executable: true,
            writable: false,
            name: "/usr/lib/libfoo.so".into(),
            build_id: None,
            stamp: None,
        };
        assert!(
            modules.open(Pid(500), &mapping).is_err(),
            "it is no ELF file"
        );
        let mut found = modules.debug_packages(["/usr/lib/libfoo.so"]);
        found.remove("/usr/lib/libfoo.so")
    };
    assert_eq!(advice(here).as_deref(), Some("install foo-dbgsym"));
    assert_eq!(advice(inside), None);
}

/// A library of this build-id (none if that is empty), at the path below a root.
fn library(root: &Path, build_id: &str) -> u64 {
    let path = root.join(PATH);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let note = match build_id {
        "" => "-Wl,--build-id=none".to_owned(),
        id => format!("-Wl,--build-id=0x{id}"),
    };
    let source = root.join("built.c");
    fs::write(&source, "int answer(void) { return 42; }").unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-nostdlib", "-o"])
        .arg(&path)
        .arg(note)
        .arg(&source)
        .status();
    assert!(built.unwrap().success(), "cc builds a library");
    fs::metadata(path).unwrap().ino()
}

#[test]
fn a_file_is_believed_only_when_it_is_the_build_that_was_recorded() {
    const RECORDED: &str = "00112233445566778899aabbccddeeff00112233";
    let root = tempfile::tempdir().unwrap();
    let inode = library(root.path(), RECORDED);
    let mapping = |build_id: Option<&str>, inode| Mapping {
        start: 0x1000,
        len: 0x1000,
        file_offset: 0,
        dev: 1,
        inode,
        shared: false,
        executable: true,
        writable: false,
        name: "/usr/lib/libbuilt.so".into(),
        build_id: build_id.map(str::to_owned),
        stamp: None,
    };
    let here = || ModuleStore::new(root.path().to_owned(), true);
    let elsewhere = || here().recorded_elsewhere();
    let open = |modules: ModuleStore, mapping| modules.open(Pid(500), &mapping).map(|_| ());

    // Of this machine by the inode, of another one by the build-id, whatever the inode.
    assert_eq!(open(here(), mapping(None, inode)), Ok(()));
    assert_eq!(open(here(), mapping(Some(RECORDED), inode)), Ok(()));
    assert_eq!(open(elsewhere(), mapping(Some(RECORDED), 1 << 40)), Ok(()));
    assert_eq!(
        open(elsewhere(), mapping(None, inode)),
        Err(Unavailable::Unidentified)
    );
    let other = "ff".repeat(20);
    let refused = Err(Unavailable::OtherBuild {
        recorded: other.clone(),
        found: RECORDED.to_owned(),
    });
    assert_eq!(open(here(), mapping(Some(&other), inode)), refused);
    assert_eq!(open(elsewhere(), mapping(Some(&other), inode)), refused);
    // One store asked for both builds answers each.
    let modules = elsewhere();
    assert!(modules.open(Pid(500), &mapping(Some(&other), 7)).is_err());
    assert!(modules.open(Pid(500), &mapping(Some(RECORDED), 7)).is_ok());
}

fn mapped(root: &Path) -> Mapping {
    Mapping {
        start: 0x1000,
        len: 0x1000,
        file_offset: 0,
        dev: 1,
        inode: fs::metadata(root.join(PATH)).unwrap().ino(),
        shared: false,
        executable: true,
        writable: false,
        name: format!("/{PATH}"),
        build_id: None,
        stamp: None,
    }
}

/// As a live source sees it mapped now.
fn seen(root: &Path) -> Mapping {
    let mut mapping = mapped(root);
    let now = crate::sys::clock::monotonic_ns();
    Stamps::new(root.to_owned()).complete(Pid(500), now, &mut mapping);
    mapping
}

const FIRST: &str = "00112233445566778899aabbccddeeff00112233";
const SECOND: &str = "ff112233445566778899aabbccddeeff00112233";

#[test]
fn what_is_seen_mapped_is_known_by_its_build_id_and_times_however_it_is_rebuilt() {
    for (first, second) in [(FIRST, SECOND), ("", "")] {
        let root = tempfile::tempdir().unwrap();
        library(root.path(), first);
        let seen = seen(root.path());
        assert_eq!(
            seen.build_id.as_deref(),
            Some(first).filter(|id| !id.is_empty())
        );
        assert!(seen.stamp.is_some());
        let open = || {
            let modules = ModuleStore::new(root.path().to_owned(), true);
            modules.open(Pid(500), &seen).map(|_| ())
        };
        assert_eq!(open(), Ok(()));
        // Times of files are as coarse as the kernel's tick.
        std::thread::sleep(Duration::from_millis(20));
        // Into the same inode, as `cp` does; and into whatever inode the linker gets.
        let rebuilt = tempfile::tempdir().unwrap();
        library(rebuilt.path(), second);
        fs::copy(rebuilt.path().join(PATH), root.path().join(PATH)).unwrap();
        assert_eq!(mapped(root.path()).inode, seen.inode);
        assert!(open().is_err(), "{first:?}: {:?}", open());
        library(root.path(), second);
        let wrong = Mapping {
            inode: mapped(root.path()).inode,
            ..seen.clone()
        };
        let modules = ModuleStore::new(root.path().to_owned(), true);
        assert!(modules.open(Pid(500), &wrong).is_err());
    }
}

#[test]
fn the_same_build_in_another_inode_is_the_file_and_without_a_build_id_it_is_not() {
    for (build_id, is_it) in [(FIRST, true), ("", false)] {
        let root = tempfile::tempdir().unwrap();
        library(root.path(), build_id);
        let seen = seen(root.path());
        let path = root.path().join(PATH);
        fs::copy(&path, path.with_extension("new")).unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
        let modules = ModuleStore::new(root.path().to_owned(), true);
        let opened = modules.open(Pid(500), &seen).map(|_| ());
        let expected = if is_it {
            Ok(())
        } else {
            Err(Unavailable::Changed)
        };
        assert_eq!(opened, expected, "{build_id:?}");
    }
}

#[test]
fn of_a_file_that_nobody_looked_at_only_one_that_has_not_changed_since_is_believed() {
    let root = tempfile::tempdir().unwrap();
    let before = SystemTime::now() - Duration::from_secs(1);
    library(root.path(), "");
    let open = |since: SystemTime| {
        let modules = ModuleStore::new(root.path().to_owned(), true).unchanged_since(since);
        modules.open(Pid(500), &mapped(root.path())).map(|_| ())
    };
    assert_eq!(open(SystemTime::now() + Duration::from_secs(1)), Ok(()));
    assert_eq!(open(before), Err(Unavailable::Changed));
}

#[test]
fn a_library_that_is_shortened_while_it_is_read_gives_no_more_names() {
    let root = tempfile::tempdir().unwrap();
    let (library, kept) = ("usr/lib/large.so", "usr/lib/kept.so");
    for name in [library, kept] {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let source = root.path().join("large.c");
        fs::write(
            &source,
            "char large[4 << 20] = {1}; int answer(void) { return large[7]; }",
        )
        .unwrap();
        let built = Command::new("cc")
            .args(["-g", "-shared", "-fPIC", "-nostdlib", "-o"])
            .args([&path, &source])
            .status();
        assert!(built.unwrap().success(), "cc builds a library");
    }
    let modules = ModuleStore::new(root.path().to_owned(), true);
    self::library(root.path(), "");
    let seen_at = mapped(root.path());
    let open = |name: &str| {
        let inode = fs::metadata(root.path().join(name)).unwrap().ino();
        let name = format!("/{name}");
        let mapping = Mapping {
            inode,
            name,
            ..seen_at.clone()
        };
        modules.open(Pid(500), &mapping)
    };
    let (shortened, whole) = (open(library).unwrap(), open(kept).unwrap());
    fs::File::options()
        .write(true)
        .open(root.path().join(library))
        .unwrap()
        .set_len(4096)
        .unwrap();
    // Reading on is survived, and code that may be zeros is none.
    let code = |module: &LoadedModule| {
        let answer = module.elf.functions_named(&["answer"])[0]?;
        let end = module.elf.function(answer)?.end;
        module.code(answer..end)
    };
    assert!(code(&whole).is_some_and(|code| code.iter().any(|byte| *byte != 0)));
    assert_eq!(code(&shortened), None);
    assert!(modules.recheck());
    assert_eq!(open(library).map(|_| ()).unwrap_err(), Unavailable::Changed);
    assert!(open(kept).is_ok());
    assert!(!modules.recheck(), "it is told once");
}
