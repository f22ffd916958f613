//! Finds the very file that a process mapped.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use symbolizer::Bytes;

use super::Unavailable;
use crate::{access::Pid, event::Mapping, sys};

/// The kernel's name for the code it maps into every process.
pub const VDSO: &str = "[vdso]";

/// Content of the mapped file. A path is believed only when its inode is the mapped one: the file may
/// have been replaced (a rebuild), and in another mount namespace the same path is another file.
pub fn bytes(root: &Path, pid: Pid, mapping: &Mapping) -> Result<Bytes, Unavailable> {
    if mapping.name == VDSO {
        return vdso(pid, mapping);
    }
    let process = root.join(format!("proc/{}", pid.0));
    let path = mapping
        .name
        .trim_end_matches(" (deleted)")
        .trim_start_matches('/');
    let mut changed = false;
    // The process's own view of the file system comes first; ours serves when it is gone.
    for candidate in [process.join("root").join(path), root.join(path)] {
        match fs::metadata(&candidate) {
            Ok(found) if found.ino() == mapping.inode => return read(&candidate),
            Ok(_) => changed = true,
            Err(_) => {}
        }
    }
    // A deleted or replaced file is still reachable through the mapping itself (needs privileges).
    let by_mapping = process.join(format!("map_files/{:x}-{:x}", mapping.start, mapping.end()));
    if fs::metadata(&by_mapping).is_ok_and(|found| found.ino() == mapping.inode) {
        return read(&by_mapping);
    }
    let executable = process.join("exe");
    if fs::metadata(&executable).is_ok_and(|found| found.ino() == mapping.inode) {
        return read(&executable);
    }
    Err(if changed {
        Unavailable::Changed
    } else {
        Unavailable::Gone
    })
}

/// Content of the file of the mapping's name, whichever it is.
pub fn by_path(root: &Path, mapping: &Mapping) -> Result<Bytes, Unavailable> {
    if mapping.name == VDSO {
        return Err(Unavailable::Gone);
    }
    let path = mapping.name.trim_end_matches(" (deleted)");
    let path = root.join(path.trim_start_matches('/'));
    if path.is_file() {
        read(&path)
    } else {
        Err(Unavailable::Gone)
    }
}

fn read(path: &PathBuf) -> Result<Bytes, Unavailable> {
    File::open(path)
        .and_then(|file| sys::map_file::map_file(&file))
        .map_err(|e| Unavailable::Unreadable(e.to_string()))
}

fn vdso(pid: Pid, mapping: &Mapping) -> Result<Bytes, Unavailable> {
    // A few pages on every kernel; anything larger is not a vdso.
    let mut image = vec![0; mapping.len.min(1 << 20) as usize];
    match sys::process_memory::read(pid, mapping.start, &mut image) {
        Ok(got) if got > 0 => {
            image.truncate(got);
            Ok(std::sync::Arc::new(image))
        }
        Ok(_) => Err(Unavailable::Gone),
        Err(e) => Err(Unavailable::Unreadable(e.to_string())),
    }
}
