//! Where separate debug files lie, as gdb looks for them (gdb manual, "Debugging Information in
//! Separate Files"; gdb/dwarf2/read.c for `.dwo` and `.dwp`, gdb/dwarf2/dwz.c for what dwz shares).

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use symbolizer::{Bytes, DebugFiles, DebugRequest};

use super::opened_files::OpenedFiles;
use crate::sys::{found_file::FoundFile, map_file::map_file};

/// The system's debug directory and the directory of the module, below each root: that of the module's process
/// while it lives, then our own.
pub(super) struct DebugDirectories {
    roots: Vec<PathBuf>,
    module: PathBuf,
    /// Directory of the separate debug file found last: names of files that dwz made are relative to it.
    holder: Mutex<Option<PathBuf>>,
    opened: OpenedFiles,
}

impl DebugDirectories {
    /// For the module at `path` (as its process names it). The first of the `roots` is looked into first; what is found is
    /// one of the `opened`.
    pub(super) fn new(roots: Vec<PathBuf>, path: &Path, opened: OpenedFiles) -> DebugDirectories {
        DebugDirectories {
            roots,
            module: path.to_owned(),
            holder: Mutex::new(None),
            opened,
        }
    }

    /// The places below one root, the likeliest first.
    fn places(&self, root: &Path, request: &DebugRequest<'_>) -> Vec<PathBuf> {
        let debug = root.join("usr/lib/debug");
        let module = relative(&self.module);
        let directory = module.parent().unwrap_or(Path::new(""));
        let by_id = |id: &[u8], ending: &str| {
            let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
            let (first, rest) = (hex(&[*first]), hex(rest));
            Some(debug.join(format!(".build-id/{first}/{rest}.{ending}")))
        };
        match request {
            DebugRequest::BuildId(id) => by_id(id, "debug").into_iter().collect(),
            DebugRequest::DebugLink { file_name, .. } if !file_name.contains('/') => vec![
                root.join(directory).join(file_name),
                root.join(directory).join(".debug").join(file_name),
                debug.join(directory).join(file_name),
            ],
            DebugRequest::AltFile { file_name, .. } => {
                let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
                let mut paths = Vec::new();
                if file_name.starts_with('/') {
                    paths.push(root.join(relative(Path::new(file_name))));
                } else {
                    paths.extend(holder.as_ref().map(|holder| holder.join(file_name)));
                    paths.push(root.join(directory).join(file_name));
                }
                // Where distributions keep them, when the file that names it was moved.
                if let Some((_, shared)) = file_name.rsplit_once(".dwz/")
                    && !shared.contains("..")
                {
                    paths.push(debug.join(".dwz").join(shared));
                }
                paths
            }
            DebugRequest::Dwp { build_id } => {
                let mut name = module.as_os_str().to_owned();
                name.push(".dwp");
                let name = Path::new(&name);
                let mut paths = vec![root.join(name), debug.join(name)];
                paths.extend(name.file_name().map(|file| debug.join(file)));
                paths.extend(build_id.and_then(|id| by_id(id, "dwp")));
                paths
            }
            DebugRequest::Dwo {
                directory: compiled_in,
                file_name,
                ..
            } => {
                let recorded = Path::new(compiled_in).join(file_name);
                let mut paths = Vec::new();
                // A directory that is itself relative (a reproducible build's) says nothing of where.
                if recorded.has_root() {
                    paths.push(root.join(relative(&recorded)));
                }
                if !file_name.starts_with('/') {
                    paths.push(root.join(directory).join(file_name));
                    paths.push(debug.join(file_name));
                }
                let plain = Path::new(file_name).file_name();
                paths.extend(plain.map(|file| root.join(directory).join(file)));
                paths
            }
            _ => Vec::new(),
        }
    }
}

impl DebugFiles for DebugDirectories {
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes> {
        self.candidates(request).next()
    }

    fn candidates<'a>(
        &'a self,
        request: &DebugRequest<'a>,
    ) -> Box<dyn Iterator<Item = Bytes> + 'a> {
        let request = *request;
        let paths = self.roots.iter().flat_map(move |root| {
            let places = self.places(root, &request).into_iter();
            places.map(move |path| (root, path))
        });
        Box::new(paths.filter_map(move |(root, path)| {
            // The program says where they are: links of its own file system lead nowhere else.
            let inside = path.strip_prefix(root).ok()?;
            let file = FoundFile::below(root, inside).ok()?.open().ok()?;
            let bytes = map_file(file).ok()?;
            self.opened.add(&bytes);
            if matches!(
                request,
                DebugRequest::BuildId(_) | DebugRequest::DebugLink { .. }
            ) {
                // Files by build-id are links into the tree that relative names are meant for. The link is followed
                // by hand: the whole path may lead through another mount namespace, which its text does not tell.
                let directory = path.parent().map(Path::to_owned).unwrap_or_default();
                let real = path
                    .read_link()
                    .map_or(path, |link| match link.strip_prefix("/") {
                        Ok(absolute) => root.join(absolute),
                        Err(_) => directory.join(link),
                    });
                let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
                *holder = real.parent().map(Path::to_owned);
            }
            let bytes: Bytes = bytes;
            Some(bytes)
        }))
    }
}

/// The path without the leading root, so that it can be looked for below another one.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Two lower-case digits a byte, as build-ids are written.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::{
        path::{Path, PathBuf},
        sync::Arc,
    };

    use symbolizer::{DebugFiles, DebugRequest};

    use super::{super::opened_files::OpenedFiles, DebugDirectories};

    fn finder(roots: Vec<PathBuf>, module: &str) -> DebugDirectories {
        let opened = OpenedFiles::new(&Arc::new(Vec::new().into()));
        DebugDirectories::new(roots, Path::new(module), opened)
    }

    /// What is asked for by each kind of request, from a module at `/opt/app/bin/tool`.
    fn requests() -> Vec<(&'static str, DebugRequest<'static>)> {
        vec![
            (
                "usr/lib/debug/.build-id/ab/cdef.debug",
                DebugRequest::BuildId(&[0xab, 0xcd, 0xef]),
            ),
            ("opt/app/bin/tool.dwp", DebugRequest::Dwp { build_id: None }),
            (
                "usr/lib/debug/tool.dwp",
                DebugRequest::Dwp { build_id: None },
            ),
            (
                "usr/lib/debug/.build-id/ab/cd.dwp",
                DebugRequest::Dwp {
                    build_id: Some(&[0xab, 0xcd]),
                },
            ),
            ("src/build/a.dwo", dwo("/src", "build/a.dwo")),
            ("abs/a.dwo", dwo("/src", "/abs/a.dwo")),
            ("opt/app/bin/build/a.dwo", dwo("/src", "build/a.dwo")),
            ("opt/app/bin/a.dwo", dwo(".", "build/a.dwo")),
            (
                "usr/lib/debug/.dwz/x/shared",
                alt("/usr/lib/debug/.dwz/x/shared"),
            ),
            ("usr/lib/debug/.dwz/shared", alt("../../../.dwz/shared")),
            ("opt/app/bin/shared", alt("shared")),
        ]
    }

    fn dwo(directory: &'static str, file_name: &'static str) -> DebugRequest<'static> {
        DebugRequest::Dwo {
            directory,
            file_name,
            dwo_id: 1,
        }
    }

    fn alt(file_name: &'static str) -> DebugRequest<'static> {
        DebugRequest::AltFile {
            file_name,
            build_id: &[1, 2],
        }
    }

    #[test]
    fn each_kind_of_file_is_found_where_gdb_finds_it_in_the_process_root_before_ours() {
        for (path, request) in requests() {
            let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let roots = vec![theirs.path().to_owned(), ours.path().to_owned()];
            let finder = finder(roots, "/opt/app/bin/tool");
            let found = |finder: &DebugDirectories| -> Vec<Vec<u8>> {
                let all = finder.candidates(&request);
                all.map(|bytes| (*bytes).as_ref().to_vec()).collect()
            };
            assert_eq!(found(&finder), Vec::<Vec<u8>>::new(), "{path}");
            for (root, content) in [(&ours, "ours"), (&theirs, "theirs")] {
                let path: PathBuf = root.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
                let best = finder.find(&request).expect(content);
                assert_eq!((*best).as_ref(), content.as_bytes(), "{request:?}");
            }
            assert_eq!(found(&finder)[0], b"theirs", "{path}");
            assert_eq!(found(&finder).last().unwrap(), b"ours", "{path}");
        }
    }

    #[test]
    fn a_shared_file_is_looked_for_beside_the_debug_file_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join("usr/lib/debug").join(name);
        std::fs::create_dir_all(path(".build-id/ab")).unwrap();
        std::fs::create_dir_all(path("opt/app")).unwrap();
        std::fs::write(path("opt/app/tool.debug"), "debug").unwrap();
        std::fs::write(path("opt/shared"), "shared").unwrap();
        let link = path(".build-id/ab/cd.debug");
        std::os::unix::fs::symlink("../../opt/app/tool.debug", link).unwrap();
        let finder = finder(vec![root.path().to_owned()], "/opt/app/tool");
        assert!(finder.find(&alt("../shared")).is_none());
        assert!(finder.find(&DebugRequest::BuildId(&[0xab, 0xcd])).is_some());
        assert!(finder.find(&alt("../shared")).is_some());
    }
}
