//! Paths of hints beside those of a build, where they do not go together.

use std::collections::HashSet;

use super::{
    path::{PathMap, common, map_between, name},
    sources::{Built, Sources},
};

/// A file of the hints that is none of the build's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Its path in the hints, after `--map`.
    pub hinted: String,
    /// Paths of the build with the same base name, those first that end most alike.
    pub built: Vec<String>,
}

impl Compared {
    /// The map that makes the first of the build's paths of the hints'.
    pub fn map(&self) -> Option<PathMap> {
        Some(map_between(&self.hinted, self.built.first()?))
    }

    /// Both paths and the map in words; the hints' one alone where the build has no such name.
    pub fn phrase(&self) -> String {
        let Some(PathMap { from, to }) = self.map() else {
            return format!("{}: no file of that name", self.hinted);
        };
        let built = self.built.join(", ");
        format!(
            "{}, and here {built} (the same file? --map {from}={to})",
            self.hinted
        )
    }
}

/// Files with hints, but for those that were `found`, beside the files of a build.
pub(super) fn compared(
    sources: &Sources,
    built: &[Built],
    found: &HashSet<usize>,
) -> Vec<Compared> {
    let missing = sources
        .looked_for()
        .filter(|(number, _)| !found.contains(number));
    let mut all: Vec<Compared> = missing
        .map(|(_, hinted)| {
            let paths = built.iter().map(|file| &file.path);
            let mut paths: Vec<String> = paths
                .filter(|path| name(path) == name(hinted))
                .cloned()
                .collect();
            paths.sort_by_key(|path| std::cmp::Reverse(common(hinted, path)));
            Compared {
                hinted: hinted.to_owned(),
                built: paths,
            }
        })
        .collect();
    all.sort_by_key(|file| file.built.is_empty());
    all
}
