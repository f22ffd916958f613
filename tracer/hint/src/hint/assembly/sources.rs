//! Which source file of the hints a file of the build is, wherever the build is.
//!
//! The rules, the first that says something holds:
//!
//! 1. Same digest and same base name: the same file, unless another one with that digest is nearer to the hints' one.
//! 2. The same path (after `--map`): the same file; with another digest, changed.
//! 3. No digest speaks, or another one: the file of the hints with which it has most last parts of the path in common, if
//!    no other file of the hints has as many, and no other file of the build is as near to that one. At least one directory
//!    must be in common; with another digest it is changed. Or one path is nothing but the name, which is there once, and no
//!    digest speaks against it.
//! 4. Never, by rule 3, where the tree that is built has a file that is nearer to the hints' one.
//!
//! So a name alone does not tell where both sides have directories: `a/util.c` and `b/util.c` are one file by their digests, by a
//! map, or not at all. In a changed file only loads with the recorded operand are taken.

use std::collections::HashMap;

use super::path::{PathMap, common, mapped, name, normal, parts};
use crate::hint::{
    digest::{is_digest, is_same},
    file::{HintFile, HintedCode},
};

/// The files of this machine, which the caller reads.
pub trait Tree {
    /// The digest of a file's text; `None` where it cannot be read, or is not what was compiled.
    fn md5(&self, path: &str) -> Option<String>;
    /// Whether there is such a file.
    fn exists(&self, path: &str) -> bool;
}

/// No file is here: for text alone.
#[derive(Debug, Clone, Copy)]
pub struct NoTree;

impl Tree for NoTree {
    fn md5(&self, _: &str) -> Option<String> {
        None
    }

    fn exists(&self, _: &str) -> bool {
        false
    }
}

/// How a file of the build is one of the hints'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Same {
    /// As far as digests and paths tell.
    Surely,
    /// By its path, and its text is another one.
    Changed,
}

impl Same {
    /// Why a load is not to be taken for being the only one of its place, as a sentence without its full stop.
    pub(super) fn doubt(self) -> Option<&'static str> {
        match self {
            Same::Surely => None,
            Same::Changed => {
                Some("its text is not the recorded one: only loads with the recorded operand count")
            }
        }
    }
}

/// A file of the build.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Built {
    /// Normal.
    pub(super) path: String,
    /// As the debug information has it.
    pub(super) md5: Option<String>,
    /// Where its text may be, the best guess first.
    pub(super) at: Vec<String>,
}

impl Built {
    /// As the debug information has it, else of the text that is there now.
    fn digest(&self, tree: &dyn Tree) -> Option<String> {
        let here = || self.at.iter().find_map(|path| tree.md5(path));
        self.md5.clone().or_else(here)
    }
}

/// Whether two digests are one; `None` where one of them is not known.
fn agree(one: Option<&String>, other: Option<&String>) -> Option<bool> {
    Some(is_same(one?, other?))
}

/// A file that the hints name.
#[derive(Debug)]
struct Hinted {
    path: String,
    /// Where the build has it, if a map says so.
    mapped: String,
    md5: Option<String>,
    /// A hint is of it.
    wanted: bool,
}

/// The files that the hints name, those of stores too.
#[derive(Debug)]
pub(super) struct Sources {
    files: Vec<Hinted>,
    by_path: HashMap<String, usize>,
    by_name: HashMap<String, Vec<usize>>,
}

impl Sources {
    pub(super) fn new(hints: &HintFile, maps: &[PathMap]) -> Sources {
        let mut sources = Sources {
            files: Vec::new(),
            by_path: HashMap::new(),
            by_name: HashMap::new(),
        };
        for hint in &hints.hints {
            sources.add(&hint.load, true, maps);
        }
        let stores = hints.hints.iter().flat_map(|hint| &hint.stores);
        let left = hints.left.iter().map(|left| &left.load);
        for code in left.chain(stores.map(|store| &store.code)) {
            sources.add(code, false, maps);
        }
        sources
    }

    fn add(&mut self, code: &HintedCode, wanted: bool, maps: &[PathMap]) {
        let Some(path) = code.file.as_deref().map(normal) else {
            return;
        };
        let md5 = code.md5.clone().filter(|md5| is_digest(md5));
        let number = *self.by_path.entry(path.clone()).or_insert_with(|| {
            let mapped = mapped(&path, maps);
            let of_name = self.by_name.entry(name(&mapped).to_owned()).or_default();
            of_name.push(self.files.len());
            self.files.push(Hinted {
                path,
                mapped,
                md5: None,
                wanted: false,
            });
            self.files.len() - 1
        });
        let file = &mut self.files[number];
        file.wanted |= wanted;
        file.md5 = file.md5.take().or(md5);
    }

    /// The number of a file by its path in the hints.
    pub(super) fn number(&self, path: &str) -> Option<usize> {
        self.by_path.get(&normal(path)).copied()
    }

    /// Files with hints: their numbers, and their paths where a map puts them.
    pub(super) fn looked_for(&self) -> impl Iterator<Item = (usize, &str)> {
        let files = self.files.iter().enumerate();
        let hinted = files.filter(|(_, file)| file.wanted);
        hinted.map(|(number, file)| (number, file.mapped.as_str()))
    }

    /// Whether a file with a hint has this base name.
    pub(super) fn names(&self, path: &str) -> bool {
        let of_name = self.by_name.get(name(path));
        of_name.is_some_and(|of_name| of_name.iter().any(|&number| self.files[number].wanted))
    }

    /// The files of the hints that a file of the build is. `beside` are all files of the build that are known.
    pub(super) fn of(
        &self,
        built: &Built,
        beside: &[Built],
        tree: &dyn Tree,
    ) -> Vec<(usize, Same)> {
        let Some(candidates) = self.by_name.get(name(&built.path)) else {
            return Vec::new();
        };
        let here = built.digest(tree);
        let agrees = |md5: Option<String>| agree(md5.as_ref(), here.as_ref());
        let end = |number: usize| common(&self.files[number].mapped, &built.path);
        // A file that was copied within its tree is not the copy.
        let has_nearer_twin = |number: usize| {
            let is_twin = |md5: Option<String>| agrees(md5) == Some(true);
            let (file, most) = (&self.files[number], end(number));
            let nearer_ones = beside
                .iter()
                .filter(|other| common(&file.mapped, &other.path) > most);
            nearer_ones.map(|other| other.digest(tree)).any(is_twin)
                || nearer(&built.path, file, most).any(|path| is_twin(tree.md5(&path)))
        };
        // `None` where no file has the digest.
        let with_digest = |of: &dyn Fn(&Hinted) -> Option<String>| {
            let same = |number: &usize| agrees(of(&self.files[*number])) == Some(true);
            let mut same: Vec<usize> = candidates.iter().copied().filter(same).collect();
            let nearest = same.iter().map(|&number| end(number)).max()?;
            same.retain(|&number| end(number) == nearest && !has_nearer_twin(number));
            let surely = |number| (number, Same::Surely);
            Some(same.into_iter().map(surely).collect())
        };
        if let Some(same) = with_digest(&|file| file.md5.clone()) {
            return same;
        }
        let differs = |md5: Option<String>| agrees(md5) == Some(false);
        let very = |&&number: &&usize| self.files[number].mapped == built.path;
        if let Some(&number) = candidates.iter().find(very) {
            let same = if differs(self.files[number].md5.clone()) {
                Same::Changed
            } else {
                Same::Surely
            };
            return vec![(number, same)];
        }
        // Without a digest, a file that is still where the hints have it stands for itself.
        let now = |file: &Hinted| match file.md5 {
            Some(_) => None,
            None => tree.md5(&file.path),
        };
        if let Some(same) = with_digest(&now) {
            return same;
        }
        self.by_end(built, candidates, beside, tree, &|file| {
            differs(file.md5.clone().or_else(|| now(file)))
        })
    }

    /// By the ends of their paths.
    fn by_end(
        &self,
        built: &Built,
        candidates: &[usize],
        beside: &[Built],
        tree: &dyn Tree,
        differs: &dyn Fn(&Hinted) -> bool,
    ) -> Vec<(usize, Same)> {
        let end = |number: &usize| common(&self.files[*number].mapped, &built.path);
        let most = candidates.iter().map(end).max().unwrap_or(0);
        let mut nearest = candidates.iter().filter(|number| end(number) == most);
        let (Some(&number), None) = (nearest.next(), nearest.next()) else {
            return Vec::new();
        };
        let file = &self.files[number];
        let others = || beside.iter().filter(|other| other.path != built.path);
        let is_taken = others().any(|other| common(&file.mapped, &other.path) >= most);
        let lengths = [&file.mapped, &built.path].map(|path| parts(path).count());
        let whole = lengths.contains(&most);
        let once =
            candidates.len() == 1 && !others().any(|other| name(&other.path) == name(&built.path));
        let differs = differs(file);
        let same = match most {
            2.. if differs => Same::Changed,
            2.. => Same::Surely,
            1 if whole && once && !differs => Same::Surely,
            _ => return Vec::new(),
        };
        if is_taken || nearer(&built.path, file, most).any(|path| tree.exists(&path)) {
            return Vec::new();
        }
        vec![(number, same)]
    }
}

/// Where in the tree around a file of the build another one would have more of the hinted file's path. That one itself may
/// be in the same tree, or be what was copied.
fn nearer(built: &str, hinted: &Hinted, most: usize) -> impl Iterator<Item = String> {
    let ends: Vec<&str> = parts(&hinted.mapped).collect();
    let mut folders: Vec<&str> = parts(built).collect();
    folders.pop();
    let ups = (0..=folders.len()).filter(move |_| built.starts_with('/'));
    ups.flat_map(move |up| {
        let above = folders[..folders.len() - up].to_vec();
        let ends = ends.clone();
        (most + 1..=ends.len()).map(move |length| {
            let all = above.iter().chain(&ends[ends.len() - length..]).copied();
            format!("/{}", all.collect::<Vec<_>>().join("/"))
        })
    })
    .filter(move |path| path != built && *path != hinted.path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hint::digest::md5;

    /// Files of a machine by their paths, with their texts.
    struct Machine(BTreeMap<&'static str, &'static str>);

    impl Tree for Machine {
        fn md5(&self, path: &str) -> Option<String> {
            self.0.get(path).map(|text| md5(text.as_bytes()))
        }

        fn exists(&self, path: &str) -> bool {
            self.0.contains_key(path)
        }
    }

    fn sources(files: &[(&str, Option<&str>)], maps: &[PathMap]) -> Sources {
        let load = |(path, text): &(&str, Option<&str>)| HintedCode {
            file: Some((*path).to_owned()),
            md5: text.map(|text| md5(text.as_bytes())),
            ..HintedCode::default()
        };
        let loads = files.iter().map(load).collect();
        Sources::new(&super::super::tests::file(loads, Vec::new()), maps)
    }

    fn built(path: &str, text: Option<&str>) -> Built {
        Built {
            path: path.to_owned(),
            md5: text.map(|text| md5(text.as_bytes())),
            at: vec![path.to_owned()],
        }
    }

    /// The paths of the hints that one file of a build is.
    fn of(
        hinted: &[(&str, Option<&str>)],
        one: (&str, Option<&str>),
        others: &[&str],
        machine: &[(&'static str, &'static str)],
    ) -> Vec<(String, Same)> {
        let sources = sources(hinted, &[]);
        let one = built(one.0, one.1);
        let others = others.iter().map(|path| built(path, None));
        let beside: Vec<Built> = others.chain([one.clone()]).collect();
        let machine = Machine(machine.iter().copied().collect());
        let found = sources.of(&one, &beside, &machine);
        let named = |(number, same): (usize, Same)| (sources.files[number].mapped.clone(), same);
        found.into_iter().map(named).collect()
    }

    fn is(path: &str, same: Same) -> Vec<(String, Same)> {
        vec![(path.to_owned(), same)]
    }

    #[test]
    fn of_two_files_of_one_text_and_name_the_hinted_one_is_meant() {
        let text = Some("same");
        let hinted = sources(&[("/old/src/other/slots.rs", text)], &[]);
        let here = built("/new/src/slots.rs", text);
        let other = built("/new/src/other/slots.rs", text);
        let none = Machine(BTreeMap::new());
        let beside = [here.clone(), other.clone()];
        assert_eq!(hinted.of(&here, &beside, &none), []);
        assert_eq!(hinted.of(&other, &beside, &none), [(0, Same::Surely)]);
        // One unit knows no other, but there is the tree.
        let tree = Machine([("/new/src/other/slots.rs", "same")].into());
        assert_eq!(hinted.of(&here, &[], &tree), []);
        assert_eq!(hinted.of(&other, &[], &tree), [(0, Same::Surely)]);
        // A namesake of another text is no rival.
        let changed = Machine([("/new/src/other/slots.rs", "changed")].into());
        assert_eq!(hinted.of(&here, &[], &changed), [(0, Same::Surely)]);
    }

    #[test]
    fn the_same_text_under_the_same_name_is_the_same_file_wherever_it_is() {
        let hinted = [("/old/x/t.c", Some("text"))];
        let found = of(&hinted, ("/new/y/t.c", Some("text")), &[], &[]);
        assert_eq!(found, is("/old/x/t.c", Same::Surely));
        // By the file, where the debug information has no digest.
        let found = of(&hinted, ("/new/t.c", None), &[], &[("/new/t.c", "text")]);
        assert_eq!(found, is("/old/x/t.c", Same::Surely));
        assert_eq!(of(&hinted, ("/new/y/t.c", Some("other")), &[], &[]), []);
        assert_eq!(of(&hinted, ("/new/y/u.c", Some("text")), &[], &[]), []);
        // Of two copies the one whose directory it has.
        let copies = [("/old/a/t.c", Some("text")), ("/old/b/t.c", Some("text"))];
        let found = of(&copies, ("/new/b/t.c", Some("text")), &[], &[]);
        assert_eq!(found, is("/old/b/t.c", Same::Surely));
    }

    #[test]
    fn another_text_at_the_same_path_is_a_changed_file() {
        let hinted = [("/src/a/t.c", Some("text"))];
        let found = of(&hinted, ("/src/a/t.c", Some("new")), &[], &[]);
        assert_eq!(found, is("/src/a/t.c", Same::Changed));
        let found = of(&hinted, ("/copy/a/t.c", Some("new")), &[], &[]);
        assert_eq!(found, is("/src/a/t.c", Same::Changed));
        let found = of(&hinted, ("/src/a/t.c", None), &[], &[]);
        assert_eq!(found, is("/src/a/t.c", Same::Surely));
    }

    #[test]
    fn without_digests_a_directory_in_common_is_needed_or_a_path_without_any() {
        let one = [("/old/lib/t.c", None)];
        let found = |path, others: &[&str]| of(&one, (path, None), others, &[]);
        assert_eq!(found("/new/lib/t.c", &[]), is("/old/lib/t.c", Same::Surely));
        assert_eq!(found("/new/t.c", &[]), []);
        assert_eq!(found("t.c", &[]), is("/old/lib/t.c", Same::Surely));
        assert_eq!(found("t.c", &["/new/x/t.c"]), []);
        // Nothing but the name speaks for it, and the text against it.
        let known = [("/old/lib/t.c", Some("text"))];
        assert_eq!(of(&known, ("t.c", Some("other")), &[], &[]), []);
        assert_eq!(found("/new/x/t.c", &["/new/lib/t.c"]), []);
        assert_eq!(found("/new/lib/t.c", &["/other/lib/t.c"]), []);
        let found = of(&one, ("/old/lib/t.c", None), &["/new/lib/t.c"], &[]);
        assert_eq!(found, is("/old/lib/t.c", Same::Surely));
    }

    #[test]
    fn files_of_one_name_in_two_directories_are_never_mixed_up() {
        let two = [("/old/a/util.c", None), ("/old/b/util.c", None)];
        let found = |path| of(&two, (path, None), &[], &[]);
        assert_eq!(found("/new/b/util.c"), is("/old/b/util.c", Same::Surely));
        assert_eq!(found("/new/a/util.c"), is("/old/a/util.c", Same::Surely));
        assert_eq!(found("/new/c/util.c"), []);
        assert_eq!(found("util.c"), []);
        // Where the hints name one of them only, the tree that is built has the other.
        let one = [("/old/a/util.c", None)];
        let tree = [("/new/a/util.c", "a"), ("/new/b/util.c", "b")];
        let found = |path| of(&one, (path, None), &[], &tree);
        assert_eq!(found("/new/b/util.c"), []);
        assert_eq!(found("/new/a/util.c"), is("/old/a/util.c", Same::Surely));
        let deep = [("/new/one/src/util.c", "a"), ("/new/two/src/util.c", "b")];
        let hinted = [("/old/one/src/util.c", None)];
        assert_eq!(of(&hinted, ("/new/two/src/util.c", None), &[], &deep), []);
    }

    #[test]
    fn a_file_that_is_still_there_tells_its_copy_from_its_namesake() {
        let hinted = [("/proj/a/t.c", None)];
        let tree = [
            ("/proj/a/t.c", "text"),
            ("/proj/copy/t.c", "text"),
            ("/proj/b/t.c", "other"),
        ];
        let found = |path| of(&hinted, (path, None), &[], &tree);
        assert_eq!(found("/proj/copy/t.c"), is("/proj/a/t.c", Same::Surely));
        assert_eq!(found("/proj/b/t.c"), []);
    }

    #[test]
    fn a_map_makes_two_paths_one() {
        let maps = ["/old/x=/new".parse().unwrap()];
        let sources = sources(&[("/old/x/t.c", None), ("/old/y/t.c", None)], &maps);
        let one = built("/new/t.c", None);
        assert_eq!(sources.of(&one, &[], &NoTree), [(0, Same::Surely)]);
        assert_eq!(sources.of(&built("/x/t.c", None), &[], &NoTree), []);
    }
}
