//! Reading `/proc` and `/sys` below a root, so that a recorded tree can stand for a machine.
//!
//! Every read is bounded and every failure is `None`: whoever asks decides what not knowing means.

use std::{fs, io::Read, path::Path, str::FromStr};

use crate::{access::Cpu, sys::found_file::FoundFile};

/// Longest text that is looked at. `/proc/cpuinfo` and `/proc/kallsyms` are longer on big machines,
/// but say what is asked of them at their beginning.
const TEXT_BYTES: u64 = 64 * 1024;
/// Most entries of a directory that are looked at.
const ENTRIES: usize = 16 * 1024;
/// The largest `CONFIG_NR_CPUS` that x86-64 and arm64 allow; a greater CPU number is garbage.
const CPUS: u32 = 8192;

/// The files of one machine.
pub(super) struct Tree<'a> {
    root: &'a Path,
}

impl<'a> Tree<'a> {
    /// `/` for the running machine.
    pub(super) fn new(root: &'a Path) -> Self {
        Tree { root }
    }

    /// The beginning of a file. Only regular files are opened: a pipe would block.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let found = FoundFile::at(&self.root.join(path)).ok()?;
        let mut bytes = Vec::new();
        found
            .open()
            .ok()?
            .take(TEXT_BYTES)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, trimmed, without control characters; `None` when nothing is left.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line: String = text
            .lines()
            .next()?
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let line = line.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// A file that holds one number.
    pub(super) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.line(path)?.parse().ok()
    }

    /// A file that holds a list of CPUs.
    pub(super) fn cpus(&self, path: &str) -> Option<Vec<Cpu>> {
        parse_cpu_list(&self.line(path)?)
    }

    /// Names in a directory, sorted; empty when it cannot be read.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .take(ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Where a symbolic link points.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.root.join(path)).ok()?;
        target.into_os_string().into_string().ok()
    }

    /// Whether a path exists; `None` when `within`, the mount that would hold it, is not there either
    /// or access is refused.
    pub(super) fn present(&self, path: &str, within: &str) -> Option<bool> {
        match self.root.join(path).try_exists() {
            Ok(true) => Some(true),
            Ok(false) => self.root.join(within).exists().then_some(false),
            Err(_) => None,
        }
    }
}

/// The kernel's list format, `0-3,8`; `None` for anything else, and for an empty list.
pub(super) fn parse_cpu_list(text: &str) -> Option<Vec<Cpu>> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|cpu| *cpu < CPUS);
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return None;
        }
        cpus.extend((first..=last).map(Cpu));
        // Overlapping ranges do not occur; refusing them bounds the list.
        if cpus.len() > CPUS as usize {
            return None;
        }
    }
    Some(cpus)
}

/// The value of `key` in text of lines `key<separator>value`; the first one counts.
pub(super) fn field<'t>(text: &'t str, key: &str, separator: char) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_list_is_ranges_and_single_numbers_and_nothing_else() {
        let cpus = |list: &[u32]| Some(list.iter().copied().map(Cpu).collect::<Vec<_>>());
        assert_eq!(parse_cpu_list("0"), cpus(&[0]));
        assert_eq!(parse_cpu_list("0-2,8,10-11\n"), cpus(&[0, 1, 2, 8, 10, 11]));
        for garbage in [
            "",
            ",",
            "3-1",
            "0-",
            "-1",
            "0-4294967295",
            "a",
            "0;1",
            "9000",
        ] {
            assert_eq!(parse_cpu_list(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn overlapping_ranges_cannot_grow_without_bound() {
        let list = vec!["0-8191"; 1000].join(",");
        assert_eq!(parse_cpu_list(&list), None);
    }

    #[test]
    fn a_directory_in_a_files_place_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("file")).unwrap();
        std::fs::write(dir.path().join("text"), "  a\u{7}b \nsecond").unwrap();
        let tree = Tree::new(dir.path());
        assert_eq!(tree.text("file"), None);
        assert_eq!(tree.line("text").as_deref(), Some("ab"));
        assert_eq!(tree.line("missing"), None);
    }
}
