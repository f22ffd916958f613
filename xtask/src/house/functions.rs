//! `pub` functions that little or nothing uses, by their names alone.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use cohtrace_tests::rust_text::{Kind, Piece, pieces};

use super::source::Source;

/// Where a name is written besides definitions of functions of that name; the widest use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    /// Nowhere.
    Nowhere,
    /// In code of tests.
    Tests,
    /// In the file that defines the function, outside tests.
    OwnFile,
    /// In another file, outside tests.
    Elsewhere,
}

/// A `pub` function that is used in no other file, tests aside.
pub(super) struct Function {
    /// Where it is defined.
    pub path: PathBuf,
    /// Of its name, from 1.
    pub line: usize,
    /// Its name, without types or modules.
    pub name: String,
    /// The widest use.
    pub used: Use,
}

/// All of them, in the order of the files.
pub(super) fn little_used(sources: &[Source]) -> Vec<Function> {
    let pieces: Vec<Vec<Piece<'_>>> = sources
        .iter()
        .map(|source| {
            let mut pieces = pieces(&source.text);
            pieces.retain(|piece| piece.kind != Kind::Comment);
            pieces
        })
        .collect();
    // Of each name, the files that write it.
    let mut uses: HashMap<&str, Vec<(&Path, bool)>> = HashMap::new();
    for (source, pieces) in sources.iter().zip(&pieces) {
        for (before, piece) in std::iter::once("")
            .chain(pieces.iter().map(|p| p.text))
            .zip(pieces)
        {
            if before != "fn" {
                let place = (source.path.as_path(), source.tests.contain(piece.line));
                uses.entry(named(piece)).or_default().push(place);
            }
        }
    }
    let mut found = Vec::new();
    for (source, pieces) in sources.iter().zip(&pieces) {
        for at in 0..pieces.len() {
            let Some(name) = public_function(&pieces[at..]) else {
                continue;
            };
            if source.tests.contain(name.line) {
                continue;
            }
            let places = uses.get(name.text).into_iter().flatten();
            let widest = places.map(|&(path, is_test)| match (is_test, path == source.path) {
                (true, _) => Use::Tests,
                (false, true) => Use::OwnFile,
                (false, false) => Use::Elsewhere,
            });
            let used = widest.max().unwrap_or(Use::Nowhere);
            if used < Use::Elsewhere {
                found.push(Function {
                    path: source.path.clone(),
                    line: name.line,
                    name: name.text.to_owned(),
                    used,
                });
            }
        }
    }
    found
}

/// What a piece may name: a word itself; a literal the last part of the path that it is, as attributes name functions and
/// loaders programs.
fn named<'a>(piece: &Piece<'a>) -> &'a str {
    match piece.kind {
        Kind::Literal => piece
            .text
            .trim_matches('"')
            .rsplit("::")
            .next()
            .unwrap_or_default(),
        _ => piece.text,
    }
}

/// The name of the `pub` function whose definition the pieces begin with.
fn public_function<'p, 'a>(pieces: &'p [Piece<'a>]) -> Option<&'p Piece<'a>> {
    let mut rest = pieces
        .strip_prefix(&pieces[..1])
        .filter(|_| pieces[0].text == "pub")?;
    if rest.first()?.text == "(" {
        let close = rest.iter().position(|piece| piece.text == ")")?;
        rest = &rest[close + 1..];
    }
    let qualifies = |piece: &Piece<'_>| {
        piece.kind == Kind::Literal || matches!(piece.text, "const" | "async" | "unsafe" | "extern")
    };
    let qualifiers = rest.iter().take_while(|piece| qualifies(piece)).count();
    let [function, name, ..] = &rest[qualifiers..] else {
        return None;
    };
    (function.text == "fn").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::source::mark;

    fn check(files: &[(&str, &str)], expected: &[(&str, Use)]) {
        let owned = files
            .iter()
            .map(|&(path, text)| (path.into(), text.to_owned()));
        let sources = mark(owned.collect());
        let found = little_used(&sources);
        let found: Vec<(&str, Use)> = found
            .iter()
            .map(|function| (function.name.as_str(), function.used))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_widest_use_counts_and_comments_are_none() {
        let defined = "pub fn a() {}\npub(crate) const fn b() {}\npub unsafe extern \"C\" fn c() { b() }\nfn d() {}\n// a c";
        let test = "#[cfg(test)]\nmod tests { fn t() { c(); b() } }";
        check(
            &[("x/src/a.rs", defined), ("x/src/b.rs", test)],
            &[("a", Use::Nowhere), ("b", Use::OwnFile), ("c", Use::Tests)],
        );
        check(
            &[("x/src/a.rs", defined), ("x/src/b.rs", "use x::{a, b, c};")],
            &[],
        );
    }

    #[test]
    fn literals_name_functions_and_sentences_do_not() {
        let defined = "pub fn a() {}\npub fn b() {}\npub fn c() {}";
        let named = "#[serde(default = \"x::a\")]\nload(\"b\"); print(\"so is c\")";
        check(
            &[("x/src/a.rs", defined), ("x/src/b.rs", named)],
            &[("c", Use::Nowhere)],
        );
    }

    #[test]
    fn functions_of_tests_are_none_of_ours() {
        check(
            &[("x/src/a.rs", "#[cfg(test)]\nmod tests { pub fn a() {} }")],
            &[],
        );
    }
}
