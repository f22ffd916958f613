use std::{fs, path::Path, process::Command};

use super::*;

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

/// A library of this build-id, at the path below a root.
fn library(root: &Path, build_id: &str) -> u64 {
    let path = root.join("usr/lib/libbuilt.so");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let source = root.join("built.c");
    fs::write(&source, "int answer(void) { return 42; }").unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-nostdlib", "-o"])
        .arg(&path)
        .arg(format!("-Wl,--build-id=0x{build_id}"))
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
