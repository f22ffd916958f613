//! Source files of this machine, for their digests.

use std::{cell::RefCell, collections::HashMap, fs, path::Path, time::SystemTime};

use crate::{
    cli::source_files,
    hint::{assembly::Tree, digest::md5},
};

/// Reads files, each once.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// What was written later is not what was compiled.
    built: Option<SystemTime>,
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
        if let Some(built) = self.built {
            let written = fs::metadata(path).and_then(|metadata| metadata.modified());
            written.ok().filter(|written| *written <= built)?;
        }
        Some(md5(&source_files::read(Path::new(path)).ok()?))
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
