//! The real assembler: never this tool.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// Second line of the scripts that [`super::install`] writes.
pub(super) const MARK: &str = "# Written by cohtrace as --install.";

/// What was asked for, else `COHTRACE_AS`, else the first `as` in `PATH` that is none of our scripts.
pub(super) fn real(asked: Option<&Path>, script: Option<&Path>) -> Result<PathBuf> {
    let of_environment = || {
        env::var_os("COHTRACE_AS")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(wanted) = asked.map(Path::to_path_buf).or_else(of_environment) {
        let found = if wanted.components().count() > 1 {
            Some(wanted.clone())
        } else {
            in_path(wanted.as_os_str(), script)
        };
        // One that is missing, or ourselves, would fail every unit of the build.
        if let Some(found) = found.filter(|found| is_program(found) && !is_ours(found, script)) {
            return Ok(found);
        }
        super::warn(&format!(
            "{} is no assembler to run; taking `as`",
            wanted.display()
        ));
    }
    in_path(OsStr::new("as"), script)
        .context("no assembler: no `as` in PATH (install binutils, or set COHTRACE_AS)")
}

fn in_path(name: &OsStr, script: Option<&Path>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/bin"), PathBuf::from("/bin")]);
    folders
        .map(|folder| folder.join(name))
        .find(|found| is_program(found) && !is_ours(found, script))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether it is the script that called, another one of its kind, or this very program.
pub(super) fn is_ours(path: &Path, script: Option<&Path>) -> bool {
    let full = |path: &Path| fs::canonicalize(path).ok();
    let this = full(path);
    let same = |other: Option<PathBuf>| this.is_some() && this == other;
    same(script.and_then(full))
        || same(env::current_exe().ok().and_then(|path| full(&path)))
        || is_script(path)
}

/// Whether a file is a script of ours.
pub(super) fn is_script(path: &Path) -> bool {
    let mut start = [0; 128];
    let read = File::open(path)
        .and_then(|mut file| file.read(&mut start))
        .unwrap_or(0);
    String::from_utf8_lossy(&start[..read]).contains(MARK)
}
