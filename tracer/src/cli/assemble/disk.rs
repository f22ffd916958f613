//! Source files of this machine, for their digests.

use std::{cell::RefCell, collections::HashMap, fs, path::Path, time::SystemTime};

use crate::hint::{assembly::Tree, digest::md5};

/// Largest source that is read: generated ones are smaller.
const MOST_BYTES: u64 = 64 << 20;

/// Reads files, each once.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// What was written later is not what was compiled.
    pub(super) built: Option<SystemTime>,
    digests: RefCell<HashMap<String, Option<String>>>,
}

impl Disk {
    /// Files that a program of that time may have been compiled from.
    pub(super) fn before(built: Option<SystemTime>) -> Disk {
        Disk {
            built,
            ..Disk::default()
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        let metadata = fs::metadata(path).ok()?;
        let written = || metadata.modified().ok();
        let later = self
            .built
            .is_some_and(|built| written().is_none_or(|written| written > built));
        if !metadata.is_file() || metadata.len() > MOST_BYTES || later {
            return None;
        }
        Some(md5(&fs::read(path).ok()?))
    }
}

impl Tree for Disk {
    fn md5(&self, path: &str) -> Option<String> {
        let mut digests = self.digests.borrow_mut();
        let read = || self.read(path);
        digests.entry(path.to_owned()).or_insert_with(read).clone()
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).is_file()
    }
}
