//! The Rust files of the repository, each with the lines of it that are tests.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use cohtrace_tests::{repository, rust_text::words};
use serde::Deserialize;

use super::test_code::{self, Ranges};
use crate::bench::cargo;

/// A Rust file.
pub(super) struct Source {
    /// Relative to the repository.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
    /// Lines that are tests, from 1.
    pub tests: Ranges,
}

/// Reads all of them.
pub(super) fn read(root: &Path) -> Result<Vec<Source>> {
    let files = repository::files(root).context("listing the repository")?;
    let rust = files
        .into_iter()
        .filter(|path| path.extension() == Some(OsStr::new("rs")));
    let texts = rust.map(|path| {
        let text = fs::read_to_string(root.join(&path));
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        Ok((path, text))
    });
    Ok(mark(texts.collect::<Result<_>>()?))
}

/// Finds which lines are tests: by what the files say of themselves and of each other, and by their names.
pub(super) fn mark(files: Vec<(PathBuf, String)>) -> Vec<Source> {
    let mut modules: Vec<PathBuf> = Vec::new();
    let mut sources: Vec<Source> = Vec::with_capacity(files.len());
    for (path, text) in files {
        let marked = test_code::marked(&words(&text));
        let below = directory_of_modules(&path);
        modules.extend(marked.modules.iter().map(|module| below.join(module)));
        let tests = if is_test_by_name(&path) {
            Ranges::all()
        } else {
            marked.ranges
        };
        sources.push(Source { path, text, tests });
    }
    for source in &mut sources {
        let path = source.path.with_extension("");
        if modules.iter().any(|module| path.starts_with(module)) {
            source.tests = Ranges::all();
        }
    }
    sources
}

/// Where a file's `mod x;` is looked for.
fn directory_of_modules(path: &Path) -> PathBuf {
    let stem = path.with_extension("");
    let is_root = ["mod", "lib", "main"]
        .iter()
        .any(|name| stem.file_name() == Some(OsStr::new(name)));
    match stem.parent() {
        Some(parent) if is_root => parent.to_path_buf(),
        _ => stem,
    }
}

fn is_test_by_name(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("tests.rs"))
        || path.components().any(|part| part.as_os_str() == "tests")
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
}

/// Directories of the workspace's crates, relative to the root, in order.
pub(super) fn crates(root: &Path) -> Result<Vec<PathBuf>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let mut crates: Vec<PathBuf> = metadata
        .packages
        .iter()
        .filter_map(|package| package.manifest_path.parent()?.strip_prefix(root).ok())
        .map(Path::to_path_buf)
        .collect();
    crates.sort();
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which lines of each file are tests.
    fn check(files: &[(&str, &str)], expected: &[&[usize]]) {
        let owned = files
            .iter()
            .map(|&(path, text)| (path.into(), text.to_owned()));
        let found: Vec<Vec<usize>> = mark(owned.collect())
            .iter()
            .map(|source| {
                let lines = 1..=source.text.lines().count();
                lines.filter(|&line| source.tests.contain(line)).collect()
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_module_that_is_declared_for_tests_is_one_with_all_below_it() {
        let declared = "#[cfg(test)]\nmod shapes;\nmod shape;";
        check(
            &[
                ("a/src/line.rs", declared),
                ("a/src/line/shapes.rs", "x"),
                ("a/src/line/shapes/deep.rs", "x"),
                ("a/src/line/shape.rs", "x"),
                ("a/src/shapes.rs", "x"),
            ],
            &[&[1, 2], &[1], &[1], &[], &[]],
        );
        check(
            &[
                ("a/src/mod.rs", declared),
                ("a/src/shapes/mod.rs", "x"),
                ("a/src/mod/shapes.rs", "x"),
            ],
            &[&[1, 2], &[1], &[]],
        );
    }

    #[test]
    fn names_make_tests_and_like_names_do_not() {
        check(
            &[
                ("a/src/tests.rs", "x"),
                ("a/tests/b/c.rs", "x"),
                ("a/src/contests.rs", "x"),
                ("a/src/test.rs", "x"),
            ],
            &[&[1], &[1], &[], &[]],
        );
    }
}
