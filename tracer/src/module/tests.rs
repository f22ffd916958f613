use std::fs;

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
