//! The files of a unit, and whether a hint's file is one of them.

use std::collections::HashMap;

/// The `.file` directives of a unit.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// As the unit writes them, and joined with the directory of the compilation.
    by_number: HashMap<u32, (String, String)>,
    /// Where the compiler runs.
    start: String,
    /// The directory of the compilation, as the unit says, else `start`.
    directory: String,
    /// Name that `.file "name"` gives.
    pub(super) unit: Option<String>,
}

impl Files {
    /// Where the compiler runs, unless the unit says otherwise.
    pub(super) fn new(directory: &str) -> Files {
        Files {
            start: directory.to_owned(),
            directory: directory.to_owned(),
            ..Files::default()
        }
    }

    /// Takes the operands of a `.file` directive, and gives the number that it is about.
    pub(super) fn directive(&mut self, operands: &str) -> Option<u32> {
        let mut rest = operands.trim();
        if rest.starts_with('"') {
            self.unit = quoted(&mut rest).or(self.unit.take());
            return None;
        }
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u32 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let first = quoted(&mut rest)?;
        rest = rest.trim_start();
        let (folder, name) = match quoted(&mut rest) {
            Some(name) => (first, name),
            None => (String::new(), first),
        };
        if number == 0 && !folder.is_empty() {
            self.directory = join(&self.start, &folder);
            self.unit.get_or_insert_with(|| name.clone());
            let full = join(&self.directory, &name);
            self.by_number.insert(0, (name, full));
            return Some(0);
        }
        let written = join(&folder, &name);
        let full = join(&self.directory, &written);
        self.by_number.insert(number, (written, full));
        Some(number)
    }

    /// As the unit writes it, and its full path.
    pub(super) fn get(&self, number: u32) -> Option<(&str, &str)> {
        let (written, full) = self.by_number.get(&number)?;
        Some((written, full))
    }

    /// The full path of the file that the unit was made of.
    pub(super) fn main(&self) -> Option<String> {
        Some(join(&self.directory, self.unit.as_deref()?))
    }
}

/// The string at the start, which it takes off. Escapes are those of C that compilers write into paths.
fn quoted(rest: &mut &str) -> Option<String> {
    let inside = rest.strip_prefix('"')?;
    let mut name = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                *rest = &inside[at + 1..];
                return Some(name);
            }
            '\\' => name.push(characters.next()?.1),
            other => name.push(other),
        }
    }
    None
}

/// `path` seen from `directory`, without `.` and `..` as far as the text tells.
pub(super) fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() {
        normal(path)
    } else {
        normal(&format!("{directory}/{path}"))
    }
}

fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            // Above the root is the root.
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Whether two paths name one file: equal, or, where only one of them starts at the root, the end of it.
pub(super) fn same_file(one: &str, other: &str) -> bool {
    let (one, other) = (normal(one), normal(other));
    let (full, part) = match (one.starts_with('/'), other.starts_with('/')) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        _ => return one == other,
    };
    let part = part.trim_start_matches("../");
    !part.is_empty()
        && full
            .strip_suffix(part)
            .is_some_and(|before| before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_both_compilers_and_both_versions_of_dwarf_name_files() {
        let mut files = Files::new("/build");
        assert_eq!(files.directive("\"t.c\""), None);
        assert_eq!(files.main().as_deref(), Some("/build/t.c"));
        assert_eq!(files.directive("1 \"src/t.c\""), Some(1));
        assert_eq!(files.get(1), Some(("src/t.c", "/build/src/t.c")));
        assert!(
            files
                .directive("0 \"/home/me\" \"t.c\" md5 0xc8288166150c40b158472cfa98b38519")
                .is_some()
        );
        assert_eq!(files.get(0), Some(("t.c", "/home/me/t.c")));
        assert!(files.directive("2 \"../inc\" \"a \\\"b\\\".h\"").is_some());
        assert_eq!(files.get(2).unwrap().1, "/home/inc/a \"b\".h");
        assert!(files.directive("3 \"/usr/include\" \"x.h\"").is_some());
        assert_eq!(files.get(3).unwrap().1, "/usr/include/x.h");
        for bad in ["", "x", "4", "4 \"open", "99999999999 \"a\"", "\"open"] {
            assert_eq!(files.directive(bad), None, "{bad}");
        }
    }

    #[test]
    fn paths_name_one_file_when_they_end_alike_and_only_one_is_full() {
        assert!(same_file("/a/b/t.c", "/a/x/../b/./t.c"));
        assert!(same_file("/a/b/t.c", "b/t.c"));
        assert!(same_file("./t.c", "/a/b/t.c"));
        assert!(same_file("../b/t.c", "/a/b/t.c"));
        assert!(same_file("t.c", "./t.c"));
        assert!(!same_file("/a/b/t.c", "/c/b/t.c"));
        assert!(!same_file("/a/bt.c", "t.c"));
        assert!(!same_file("b/t.c", "t.c"));
        assert!(!same_file("", "/a/t.c"));
    }
}
