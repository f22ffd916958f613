//! A disk that fills up while recording. Needs a file system that can be filled, so root and a tmpfs.

use cohtrace_skips::skipped_core;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use super::*;

/// A small tmpfs, unmounted when dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn path(&self) -> PathBuf {
        self.directory.path().join("s.coh")
    }

    /// `None`, loudly, where mounting is not allowed.
    fn mount(size: &str) -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "cohtrace-test",
            ])
            .arg(directory.path())
            .stdout(Stdio::null())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk { directory }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                skipped_core(format_args!(
                    "a full disk cannot be tested, mount says: {why}"
                ));
                None
            }
            Err(error) => {
                skipped_core(format_args!(
                    "a full disk cannot be tested, mount does not run: {error}"
                ));
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.directory.path()).status();
    }
}

fn files(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in [
        "",
        "accesses",
        "mappings",
        "tasks",
        "local_storage",
        "memory",
        "windows",
        "allocations",
    ] {
        for entry in fs::read_dir(path.join(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_file() {
                names.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    names
}

/// Fills the disk up to `pages` free pages of 4 KiB.
fn fill(disk: &SmallDisk, pages: usize) {
    let page = |n: usize| disk.directory.path().join(format!("page-{n}"));
    let mut count = 0;
    while fs::write(page(count), [1; 4096]).is_ok() {
        count += 1;
        assert!(count < 10_000, "the disk does not fill");
    }
    for n in count.saturating_sub(pages)..=count {
        fs::remove_file(page(n)).expect("was there, whole or empty");
    }
}

/// A segment per batch of any size.
fn at_once() -> WriterOptions {
    WriterOptions {
        segment_time: Duration::ZERO,
        ..WriterOptions::default()
    }
}

/// A batch whose accesses take some hundred KiB.
fn large_batch() -> Batch {
    let mut large = batch(9);
    let access = large.accesses[0];
    let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    large.accesses = (0..50_000)
        .map(|n| Access {
            addr: spread(n),
            ..access
        })
        .collect();
    large
}

#[test]
fn a_full_disk_ends_the_recording_and_keeps_what_is_on_it() {
    let Some(disk) = SmallDisk::mount("256k") else {
        return;
    };
    let path = disk.path();
    let mut writer = SessionWriter::create(&path, Meta::new(), &at_once()).expect("a new session");
    let small: Vec<Batch> = (0..4).map(batch).collect();
    for batch in &small {
        writer.append(batch).expect("room");
    }
    let before = files(&path);
    let message = writer
        .append(&large_batch())
        .expect_err("no room")
        .to_string();
    assert!(
        message.contains("accesses/part-00004.parquet: No space left on device"),
        "{message}"
    );
    assert!(message.contains("is kept and reads"), "{message}");
    assert_eq!(files(&path), before, "nothing of the lost segment stays");

    let stopped = writer.append(&batch(0)).expect_err("no gaps").to_string();
    assert!(stopped.contains("takes no more"), "{stopped}");
    writer.finish(Meta::new()).expect("meta.json still fits");

    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&small));
    assert_eq!(caveats.len(), 1, "{caveats:?}");
    assert!(caveats[0].contains("stopped early"), "{caveats:?}");
    assert!(
        caveats[0].contains("50000 accesses, 5 context events, 1 watch windows"),
        "{caveats:?}"
    );
}

#[test]
fn a_disk_with_room_for_a_segment_but_not_for_meta_keeps_the_segment() {
    let Some(disk) = SmallDisk::mount("256k") else {
        return;
    };
    let path = disk.path();
    let mut writer = SessionWriter::create(&path, Meta::new(), &at_once()).expect("a new session");
    writer.append(&batch(0)).expect("room");
    fill(&disk, 9);
    let message = writer
        .append(&batch(1))
        .expect_err("no room for meta.json")
        .to_string();
    assert!(
        message.contains("meta.json: No space left on device"),
        "{message}"
    );
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&[batch(0), batch(1)]));
    assert!(caveats[0].contains("did not end normally"), "{caveats:?}");
    fs::remove_file(disk.directory.path().join("page-0")).expect("was there");
    writer.finish(Meta::new()).expect("there is room again");
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, joined(&[batch(0), batch(1)]));
    assert!(caveats[0].contains("stopped early"), "{caveats:?}");
}

#[test]
fn a_disk_too_full_for_the_last_meta_leaves_an_unfinished_session() {
    let Some(disk) = SmallDisk::mount("256k") else {
        return;
    };
    let path = disk.path();
    let mut writer = SessionWriter::create(&path, Meta::new(), &at_once()).expect("a new session");
    writer.append(&batch(0)).expect("room");
    fill(&disk, 0);
    let error = writer.finish(Meta::new()).expect_err("no room").to_string();
    assert!(
        error.contains("meta.json: No space left on device"),
        "{error}"
    );
    let (back, caveats) = read(&path).expect("reads");
    assert_eq!(back, batch(0));
    assert!(caveats[0].contains("did not end normally"), "{caveats:?}");
}

#[test]
fn no_room_at_all_is_an_error_at_once() {
    let Some(disk) = SmallDisk::mount("64k") else {
        return;
    };
    fill(&disk, 0);
    let error = SessionWriter::create(&disk.path(), Meta::new(), &WriterOptions::default())
        .expect_err("no room")
        .to_string();
    assert!(error.contains("No space left on device"), "{error}");
}
