//! The files of the repository.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Every file below the root, relative to it and in order. Builds, sessions, what a fuzzer found and what is git's own are
/// not part of the repository.
pub fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            let is_session = path.extension().is_some_and(|extension| extension == "coh");
            let is_fuzzed = name == "corpus" || name == "artifacts";
            if name == "target" || name == ".git" || is_session || is_fuzzed {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if path.is_file() {
                found.extend(path.strip_prefix(root).map(Path::to_path_buf));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_and_sessions_are_not_listed_and_their_neighbours_are() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "b/target/x.rs",
            "b/targets/x.rs",
            "run.coh/part",
            "fuzz/corpus/z",
            ".git/y",
            "a",
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let expected = ["a", "b/targets/x.rs"].map(PathBuf::from);
        assert_eq!(files(root.path()).unwrap(), expected);
    }
}
