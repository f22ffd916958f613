//! The files of a unit.

use std::collections::HashMap;

use super::{path::join, sources::Built};

/// The `.file` directives of a unit.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// As the unit writes them, and the whole.
    by_number: HashMap<u32, (String, Built)>,
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
            let built = self.built(&name, digest(rest));
            self.by_number.insert(0, (name, built));
            return Some(0);
        }
        let written = join(&folder, &name);
        let built = self.built(&written, digest(rest));
        self.by_number.insert(number, (written, built));
        Some(number)
    }

    /// A file as the unit writes it.
    fn built(&self, written: &str, md5: Option<String>) -> Built {
        let path = join(&self.directory, written);
        // The compiler ran where the assembler does, whatever options have made of the directory's name.
        let mut at = vec![join(&self.start, written)];
        if at[0] != path {
            at.push(path.clone());
        }
        Built { path, md5, at }
    }

    /// As the unit writes it.
    pub(super) fn written(&self, number: u32) -> Option<&str> {
        self.by_number.get(&number).map(|(written, _)| &**written)
    }

    /// The whole file.
    pub(super) fn get(&self, number: u32) -> Option<&Built> {
        self.by_number.get(&number).map(|(_, built)| built)
    }

    /// All files, each once.
    pub(super) fn all(&self) -> Vec<Built> {
        let mut all: Vec<Built> = self
            .by_number
            .values()
            .map(|(_, built)| built.clone())
            .collect();
        all.extend(self.main());
        all.sort();
        all.dedup_by(|one, other| one.path == other.path);
        all
    }

    /// The file that the unit was made of.
    pub(super) fn main(&self) -> Option<Built> {
        let unit = self.unit.as_deref()?;
        let main = self.built(unit, None);
        let known = self
            .by_number
            .values()
            .find(|(_, built)| built.path == main.path);
        Some(known.map_or(main, |(_, built)| built.clone()))
    }
}

/// The digest behind the names: `md5 0x..`.
fn digest(rest: &str) -> Option<String> {
    let digits = rest
        .trim_start()
        .strip_prefix("md5")?
        .trim()
        .strip_prefix("0x")?;
    let value = u128::from_str_radix(digits, 16).ok()?;
    // Compilers that have no digest of one file among others write zeros.
    (value != 0).then(|| format!("{value:032x}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_both_compilers_and_both_versions_of_dwarf_name_files() {
        let mut files = Files::new("/build");
        assert_eq!(files.directive("\"t.c\""), None);
        assert_eq!(files.main().unwrap().path, "/build/t.c");
        assert_eq!(files.directive("1 \"src/t.c\""), Some(1));
        assert_eq!(files.written(1), Some("src/t.c"));
        assert_eq!(files.get(1).unwrap().path, "/build/src/t.c");
        assert!(
            files
                .directive("0 \"/home/me\" \"t.c\" md5 0xc8288166150c40b158472cfa98b38519")
                .is_some()
        );
        let main = files.main().unwrap();
        assert_eq!(
            (main.path.as_str(), &main.at[..]),
            (
                "/home/me/t.c",
                &["/build/t.c".to_owned(), "/home/me/t.c".to_owned()][..]
            )
        );
        assert_eq!(
            main.md5.as_deref(),
            Some("c8288166150c40b158472cfa98b38519")
        );
        assert!(files.directive("2 \"../inc\" \"a \\\"b\\\".h\"").is_some());
        assert_eq!(files.get(2).unwrap().path, "/home/inc/a \"b\".h");
        assert!(files.directive("3 \"/usr/include\" \"x.h\"").is_some());
        assert_eq!(files.get(3).unwrap().path, "/usr/include/x.h");
        for bad in ["", "x", "4", "4 \"open", "99999999999 \"a\"", "\"open"] {
            assert_eq!(files.directive(bad), None, "{bad}");
        }
    }
}
