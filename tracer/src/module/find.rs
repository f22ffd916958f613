//! Finds the very file that a process mapped.

use std::path::Path;

use symbolizer::Bytes;

use super::Unavailable;
use crate::{
    access::Pid,
    event::Mapping,
    sys::{self, found_file::FoundFile},
};

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
    for root in [&*process.join("root"), root] {
        match FoundFile::below(root, Path::new(path)) {
            Ok(found) if found.inode() == mapping.inode => return read(&found),
            Ok(_) => changed = true,
            Err(_) => {}
        }
    }
    // A deleted or replaced file is still reachable through the mapping itself (needs privileges).
    let by_mapping = process.join(format!("map_files/{:x}-{:x}", mapping.start, mapping.end()));
    for candidate in [by_mapping, process.join("exe")] {
        let found = FoundFile::at(&candidate).ok();
        if let Some(found) = found.filter(|found| found.inode() == mapping.inode) {
            return read(&found);
        }
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
    let path = path.trim_start_matches('/');
    let found = FoundFile::below(root, Path::new(path)).map_err(|_| Unavailable::Gone)?;
    read(&found)
}

fn read(found: &FoundFile) -> Result<Bytes, Unavailable> {
    let file = found.open();
    file.and_then(|file| sys::map_file::map_file(&file))
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
