//! Where separate debug files lie, as gdb looks for them (gdb manual, "Debugging Information in
//! Separate Files").

use std::{
    fmt::Write as _,
    fs::File,
    path::{Path, PathBuf},
};

use symbolizer::{Bytes, DebugFiles, DebugRequest};

use crate::sys;

/// The system's debug directory below a root, and the directory of the module itself.
pub struct DebugDirectories {
    root: PathBuf,
    module_directory: PathBuf,
}

impl DebugDirectories {
    /// For the module at `path` (as its process names it).
    pub fn new(root: &Path, path: &str) -> DebugDirectories {
        let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
        DebugDirectories {
            root: root.to_owned(),
            module_directory: directory.to_owned(),
        }
    }

    fn candidates(&self, request: &DebugRequest<'_>) -> Vec<PathBuf> {
        let debug = self.root.join("usr/lib/debug");
        match request {
            DebugRequest::BuildId(id) if id.len() > 1 => {
                let (directory, file) = (hex(&id[..1]), hex(&id[1..]));
                vec![debug.join(format!(".build-id/{directory}/{file}.debug"))]
            }
            DebugRequest::DebugLink { file_name, .. } if !file_name.contains('/') => {
                let relative = self
                    .module_directory
                    .strip_prefix("/")
                    .unwrap_or(Path::new(""));
                vec![
                    self.root.join(relative).join(file_name),
                    self.root.join(relative).join(".debug").join(file_name),
                    debug.join(relative).join(file_name),
                ]
            }
            _ => Vec::new(),
        }
    }
}

impl DebugFiles for DebugDirectories {
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes> {
        self.candidates(request)
            .into_iter()
            .find_map(|path| sys::map_file::map_file(&File::open(path).ok()?).ok())
    }
}

/// Two lower-case digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
