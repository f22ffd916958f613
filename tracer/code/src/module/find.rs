//! Finds the very file that a process mapped.

use std::{path::Path, sync::Arc};

use super::Unavailable;
use crate::{
    access::Pid,
    event::Mapping,
    sys::{
        self,
        found_file::FoundFile,
        map_file::{FileBytes, map_file},
    },
};

/// The kernel's name for the code it maps into every process.
pub(super) const VDSO: &str = "[vdso]";

/// A file of the inode number that was mapped.
pub(super) struct Candidate {
    pub file: FoundFile,
    /// It is what the process still has mapped, or runs. Otherwise only its name and number are known, and inode
    /// numbers are used again.
    pub is_held: bool,
}

/// The files that may be behind a mapping, the likeliest first. The process's own view of the file system comes first; ours
/// serves when it is gone. A deleted or replaced file is still reachable through the mapping itself (needs privileges).
pub(super) fn candidates(
    root: &Path,
    pid: Pid,
    mapping: &Mapping,
) -> impl Iterator<Item = Candidate> + use<> {
    let inode = mapping.inode;
    let named = named(root, pid, mapping).filter(move |file| file.inode() == inode);
    named.map(Candidate::named).chain(held(root, pid, mapping))
}

/// What has the mapping's name.
fn named(root: &Path, pid: Pid, mapping: &Mapping) -> impl Iterator<Item = FoundFile> + use<> {
    let path = mapping.path();
    let roots = [root.join(format!("proc/{}/root", pid.0)), root.to_owned()];
    roots
        .into_iter()
        .filter_map(move |root| FoundFile::below(&root, &path).ok())
}

/// What the process has mapped there, or runs, if it is of that inode.
fn held(root: &Path, pid: Pid, mapping: &Mapping) -> impl Iterator<Item = Candidate> + use<> {
    let process = root.join(format!("proc/{}", pid.0));
    let (start, end, inode) = (mapping.start, mapping.end(), mapping.inode);
    let links = [format!("map_files/{start:x}-{end:x}"), "exe".to_owned()];
    links.into_iter().filter_map(move |link| {
        let file = FoundFile::at(&process.join(link)).ok();
        let file = file.filter(|file| file.inode() == inode)?;
        let is_held = true;
        Some(Candidate { file, is_held })
    })
}

impl Candidate {
    fn named(file: FoundFile) -> Candidate {
        let is_held = false;
        Candidate { file, is_held }
    }

    /// Whether it is what was mapped, as far as that can be said without reading it. One of unknown identity is, unless it
    /// changed after a time (nanoseconds since 1970-01-01 UTC).
    fn is_mapped(&self, mapping: &Mapping, unchanged_since: Option<u64>) -> bool {
        let now = self.file.stamp();
        match &mapping.stamp {
            // Reading tells.
            _ if mapping.build_id.is_some() => true,
            // A held file may lose its names meanwhile.
            Some(then) if self.is_held => now.same_bytes(then),
            Some(then) => now == *then,
            None => unchanged_since.is_none_or(|since| now.changed_ns <= since),
        }
    }
}

/// Tries to make something of each file that may be the one behind a mapping, until it succeeds; else says what was wrong with
/// the first.
pub(super) fn first<T>(
    root: &Path,
    pid: Pid,
    mapping: &Mapping,
    unchanged_since: Option<u64>,
    mut open: impl FnMut(Arc<FileBytes>) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    if mapping.name == VDSO {
        return open(vdso(pid, mapping)?);
    }
    let mut wrong = None;
    let (same, others): (Vec<_>, Vec<_>) =
        named(root, pid, mapping).partition(|file| file.inode() == mapping.inode);
    let candidates = same.into_iter().map(Candidate::named);
    for candidate in candidates.chain(held(root, pid, mapping)) {
        let opened = if candidate.is_mapped(mapping, unchanged_since) {
            read(&candidate.file).and_then(&mut open)
        } else {
            Err(Unavailable::Changed)
        };
        match opened {
            Ok(opened) => return Ok(opened),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    // Another inode of its name: installed again, or on another file system. Reading it tells whether it is the same build.
    for found in others {
        let opened = match &mapping.build_id {
            Some(_) => read(&found).and_then(&mut open),
            None => Err(Unavailable::Changed),
        };
        match opened {
            Ok(opened) => return Ok(opened),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    Err(wrong.unwrap_or(Unavailable::Gone))
}

/// Bytes of the file that has the mapping's name here, whoever mapped it where.
pub(super) fn by_path(root: &Path, mapping: &Mapping) -> Result<Arc<FileBytes>, Unavailable> {
    if !mapping.is_file() {
        return Err(Unavailable::Gone);
    }
    let found = FoundFile::below(root, &mapping.path()).map_err(|_| Unavailable::Gone)?;
    read(&found)
}

fn read(found: &FoundFile) -> Result<Arc<FileBytes>, Unavailable> {
    let file = found.open();
    file.and_then(map_file)
        .map_err(|e| Unavailable::Unreadable(e.to_string()))
}

fn vdso(pid: Pid, mapping: &Mapping) -> Result<Arc<FileBytes>, Unavailable> {
    // A few pages on every kernel; anything larger is not a vdso.
    let mut image = vec![0; mapping.len.min(1 << 20) as usize];
    match sys::process_memory::read(pid, mapping.start, &mut image) {
        Ok(got) if got > 0 => {
            image.truncate(got);
            Ok(Arc::new(FileBytes::from(image)))
        }
        Ok(_) => Err(Unavailable::Gone),
        Err(e) => Err(Unavailable::Unreadable(e.to_string())),
    }
}
