//! `cargo xtask house`: figures of the source itself. They judge nothing; two checkouts are compared by them.

mod build;
mod functions;
mod lines;
mod source;
mod test_code;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cohtrace_tests::{figures::Table, rooms};

use self::source::Source;
use crate::root;

/// Files that are longer, tests aside, are named.
const LONG: usize = 400;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Also time a clean build of the tool and a rebuild after a touch of `report`; takes minutes, and up to 2 GB in
    /// target/ meanwhile
    #[arg(long)]
    build: bool,
    /// Name each arrow and each function instead of counting them
    #[arg(long)]
    list: bool,
}

/// The task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = root();
    let sources = source::read(&root)?;
    print_crates(&root, &sources)?;
    print_rooms(&root, options.list)?;
    print_long_files(&sources);
    print_functions(&sources, options.list);
    if options.build {
        println!("\n{}", build::measure(&root)?);
    }
    Ok(())
}

/// The crate that a file is of: the deepest directory of a crate above it.
fn crate_of<'a>(path: &Path, crates: &'a [PathBuf]) -> Option<&'a Path> {
    let above = crates
        .iter()
        .filter(|directory| path.starts_with(directory));
    above
        .max_by_key(|directory| directory.components().count())
        .map(PathBuf::as_path)
}

fn print_crates(root: &Path, sources: &[Source]) -> Result<()> {
    let crates = source::crates(root).context("asking cargo for the workspace's crates")?;
    let heading = [
        "crate",
        "files",
        "code",
        "comments",
        "tests",
        "unsafe blocks",
        "in tests",
    ];
    let mut table = Table::new(&heading);
    let mut total = lines::Counts::default();
    for directory in &crates {
        let mut counts = lines::Counts::default();
        let own = sources
            .iter()
            .filter(|source| crate_of(&source.path, &crates) == Some(directory));
        own.for_each(|source| counts.add(&lines::count(source)));
        total.add(&counts);
        table.row(row(directory.display().to_string(), &counts));
    }
    table.row(row("all".to_owned(), &total));
    println!(
        "Lines of Rust that are not blank. Tests: what is below #[cfg(test)], in tests.rs, or below tests/.\n\n{table}"
    );
    Ok(())
}

fn row(name: String, counts: &lines::Counts) -> [String; 7] {
    [
        name,
        counts.files.to_string(),
        counts.code.to_string(),
        counts.comments.to_string(),
        counts.tests.to_string(),
        counts.unsafe_blocks.to_string(),
        counts.unsafe_in_tests.to_string(),
    ]
}

fn print_rooms(root: &Path, list: bool) -> Result<()> {
    let rooms = rooms::rooms(root).context("reading the manifests of the rooms")?;
    let arrows: usize = rooms.values().map(std::collections::BTreeSet::len).sum();
    println!(
        "{} rooms, crates below tracer/: {arrows} arrows, by their manifests; cargo lets none go both ways.",
        rooms.len()
    );
    if list {
        for (room, uses) in &rooms {
            let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
            println!("  {room} -> {}", uses.join(", "));
        }
    }
    Ok(())
}

fn print_long_files(sources: &[Source]) {
    let mut long: Vec<(usize, &Path)> = sources
        .iter()
        .map(|source| (lines::outside_tests(source), source.path.as_path()))
        .filter(|(lines, _)| *lines > LONG)
        .collect();
    long.sort_by_key(|&(lines, path)| (std::cmp::Reverse(lines), path));
    println!(
        "\nFiles over {LONG} lines, blank ones too, tests aside: {}.",
        long.len()
    );
    for (lines, path) in long {
        println!("  {lines}  {}", path.display());
    }
}

fn print_functions(sources: &[Source], list: bool) {
    let functions = functions::little_used(sources);
    println!(
        "\n`pub` functions by where else their name is written; one that shares its name with anything is taken for used:"
    );
    for (words, wanted) in [
        ("nowhere", functions::Use::Nowhere),
        ("in tests only", functions::Use::Tests),
        ("in their own file only", functions::Use::OwnFile),
    ] {
        let found: Vec<_> = functions
            .iter()
            .filter(|function| function.used == wanted)
            .collect();
        println!("  {words}: {}", found.len());
        for function in found.iter().filter(|_| list) {
            println!(
                "    {}:{} {}",
                function.path.display(),
                function.line,
                function.name
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_deepest_crate_above_it() {
        let crates = ["tracer", "tracer/qemu-plugin"].map(PathBuf::from);
        let of = |path: &str| crate_of(Path::new(path), &crates);
        assert_eq!(
            of("tracer/qemu-plugin/src/lib.rs"),
            Some(crates[1].as_path())
        );
        assert_eq!(of("tracer/qemu/lib.rs"), Some(crates[0].as_path()));
        assert_eq!(of("fuzz/lib.rs"), None);
    }
}
