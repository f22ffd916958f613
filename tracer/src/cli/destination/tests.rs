use cohtrace_skips::skipped_core;
use std::{
    io::Read as _,
    os::unix::fs::{chown, symlink},
    thread,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

/// Somebody else: `nobody`, who owns nothing.
const OTHER: u32 = 65534;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// What is in it.
    fn count(&self) -> usize {
        fs::read_dir(self.0.path()).unwrap().count()
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped_core("files of other users can be made by root only");
    }
    root
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_new_file_has_the_mode_that_any_new_file_has_and_a_replaced_one_keeps_its_own() {
    let folder = Folder::new();
    fs::write(folder.path("plain"), "").unwrap();
    write(&folder.path("new"), b"text").unwrap();
    assert_eq!(folder.text("new"), "text");
    assert_eq!(mode(&folder.path("new")), mode(&folder.path("plain")));
    fs::set_permissions(folder.path("new"), Permissions::from_mode(0o600)).unwrap();
    write(&folder.path("new"), b"other").unwrap();
    assert_eq!(folder.text("new"), "other");
    assert_eq!(mode(&folder.path("new")), 0o600);
    assert_eq!(folder.count(), 2, "nothing is left beside");
}

#[test]
fn our_own_link_leads_to_its_file_and_stays() {
    let folder = Folder::new();
    fs::write(folder.path("target"), "old and longer").unwrap();
    symlink("target", folder.path("link")).unwrap();
    write(&folder.path("link"), b"new").unwrap();
    assert_eq!(folder.text("target"), "new");
    assert!(folder.path("link").is_symlink());
    symlink("dangling", folder.path("nowhere")).unwrap();
    write(&folder.path("nowhere"), b"made").unwrap();
    assert_eq!(folder.text("dangling"), "made");
    symlink("loop", folder.path("loop")).unwrap();
    assert!(write(&folder.path("loop"), b"").is_err());
}

#[test]
fn a_link_of_somebody_else_is_not_followed() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    fs::write(folder.path("precious"), "kept").unwrap();
    symlink("precious", folder.path("report")).unwrap();
    std::os::unix::fs::lchown(folder.path("report"), Some(OTHER), None).unwrap();
    for said in [
        check(&folder.path("report")),
        write(&folder.path("report"), b"x"),
        append(&folder.path("report")).map(drop),
    ] {
        let said = format!("{:#}", said.unwrap_err());
        assert!(said.contains("symbolic link of user 65534"), "{said}");
        assert!(said.contains("choose another name"), "{said}");
    }
    assert_eq!(folder.text("precious"), "kept");
}

#[test]
fn a_folder_is_not_reached_by_a_link_of_somebody_else_where_everybody_writes() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    fs::create_dir(folder.path("real")).unwrap();
    symlink("real", folder.path("link")).unwrap();
    std::os::unix::fs::lchown(folder.path("link"), Some(OTHER), None).unwrap();
    // In a directory of one's own, links are the business of those who write there.
    write(&folder.path("link/report"), b"x").unwrap();
    fs::set_permissions(folder.0.path(), Permissions::from_mode(0o1777)).unwrap();
    let said = write(&folder.path("link/other"), b"x").unwrap_err();
    assert!(
        format!("{said:#}").contains("choose another directory"),
        "{said:#}"
    );
    assert!(!folder.path("real/other").exists());
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    fs::write(folder.path("theirs"), "theirs").unwrap();
    chown(folder.path("theirs"), Some(OTHER), None).unwrap();
    let said = write(&folder.path("theirs"), b"ours").unwrap_err();
    assert!(
        format!("{said:#}").contains("belongs to user 65534"),
        "{said:#}"
    );
    assert_eq!(folder.text("theirs"), "theirs");
}

#[test]
fn what_hangs_on_another_name_of_the_file_is_not_changed() {
    let folder = Folder::new();
    fs::write(folder.path("first"), "first").unwrap();
    fs::hard_link(folder.path("first"), folder.path("second")).unwrap();
    write(&folder.path("second"), b"new").unwrap();
    assert_eq!(folder.text("first"), "first");
    assert_eq!(folder.text("second"), "new");
}

#[test]
fn streams_take_what_is_written_and_stay_what_they_are() {
    write(Path::new("/dev/null"), b"gone").unwrap();
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut text = String::new();
            File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
            text
        }
    });
    write(&pipe, b"through").unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn what_is_no_place_for_a_file_is_refused_before_there_is_one() {
    let folder = Folder::new();
    for path in [
        folder.0.path().to_owned(),
        folder.path("no such/report"),
        PathBuf::from("/"),
        folder.path(".."),
    ] {
        assert!(check(&path).is_err(), "{}", path.display());
        assert!(write(&path, b"").is_err(), "{}", path.display());
    }
    check(&folder.path("report")).unwrap();
    assert_eq!(folder.count(), 0, "looking makes nothing");
}

#[test]
fn appending_goes_on() {
    let folder = Folder::new();
    for word in ["one ", "two"] {
        append(&folder.path("log"))
            .unwrap()
            .write_all(word.as_bytes())
            .unwrap();
    }
    assert_eq!(folder.text("log"), "one two");
}
