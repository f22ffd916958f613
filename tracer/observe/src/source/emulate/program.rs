//! The program that shall run, before it runs: where it is, and whether the emulator can run it.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::EmulationError;

/// The program that a command's first word means: a path, or a name in one of the directories of `path`.
pub(super) fn find(word: impl AsRef<OsStr>, path: Option<&OsStr>) -> Option<PathBuf> {
    let word = word.as_ref();
    if word.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(word));
    }
    std::env::split_paths(path?)
        .map(|directory| directory.join(word))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Refuses what the emulator would not run. What it says of the rest is its own.
pub(super) fn check(file: &Path) -> Result<(), EmulationError> {
    let name = file.display().to_string();
    let mut start = Vec::new();
    let opened = File::open(file).and_then(|opened| {
        if opened.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        opened.take(HEADER as u64).read_to_end(&mut start)
    });
    if let Err(why) = opened {
        return Err(EmulationError::Program { name, why });
    }
    if !is_executable(file) {
        let why = std::io::ErrorKind::PermissionDenied.into();
        return Err(EmulationError::Program { name, why });
    }
    match unfit(&start) {
        None => Ok(()),
        Some(what) => Err(EmulationError::Unfit { name, what }),
    }
}

/// Bytes of an ELF header up to its machine.
const HEADER: usize = 20;

/// Why a file that begins so is no program for x86-64.
fn unfit(start: &[u8]) -> Option<String> {
    if start.starts_with(b"#!") {
        return Some(
            "is a script, and its interpreter is the program: put the interpreter before it".into(),
        );
    }
    if !start.starts_with(b"\x7fELF") || start.len() < HEADER {
        return Some("is not an ELF program".into());
    }
    let machine = u16::from_le_bytes([start[18], start[19]]);
    match (start[4], start[5], machine) {
        (2, 1, 62) => None,
        (1, 1, 3) => Some("is a 32-bit x86 program".into()),
        (2, 1, 183) => Some("is a program for aarch64".into()),
        (_, 2, _) => Some("is a program for a big-endian machine".into()),
        (1, _, 62) => Some("is a program with 32-bit pointers (x32)".into()),
        _ => Some(format!(
            "is a program for another machine (ELF number {machine})"
        )),
    }
}

/// Whether the file gives rights that an emulated program does not get.
pub(super) fn gains_rights(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o6000 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, order: u8, machine: u16) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([class, order]);
        bytes.resize(18, 0);
        bytes.extend(machine.to_le_bytes());
        bytes
    }

    #[test]
    fn a_64_bit_x86_program_fits_and_each_other_file_is_called_what_it_is() {
        assert_eq!(unfit(&header(2, 1, 62)), None);
        for (start, word) in [
            (header(1, 1, 3), "32-bit"),
            (header(2, 1, 183), "aarch64"),
            (header(2, 2, 0x1600), "big-endian"),
            (header(1, 1, 62), "x32"),
            (header(2, 1, 243), "243"),
            (b"#!/bin/sh\n".to_vec(), "script"),
            (b"hello, world, this is text".to_vec(), "not an ELF"),
            (Vec::new(), "not an ELF"),
            (b"\x7fELF".to_vec(), "not an ELF"),
        ] {
            let what = unfit(&start).unwrap();
            assert!(what.contains(word), "{what}");
        }
    }

    #[test]
    fn a_name_is_looked_up_and_a_path_is_taken_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("prog");
        std::fs::write(&file, b"").unwrap();
        let path = Some(directory.path().as_os_str());
        assert_eq!(find("prog", path), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("prog", path), Some(file));
        assert_eq!(find("other", path), None);
        assert_eq!(find("./prog", None), Some("./prog".into()));
    }
}
