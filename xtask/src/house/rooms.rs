//! Which top-level modules of a crate name which.

use std::{collections::BTreeSet, path::Path};

use cohtrace_tests::rust_text::{paths, words};

use super::source::Source;

/// From a room to one that it names.
pub type Arrow = (String, String);

/// The room that a file is in; the crate's own root files are in none.
fn room_of<'a>(path: &'a Path, crate_source: &Path) -> Option<&'a str> {
    let below = path.strip_prefix(crate_source).ok()?;
    let first = Path::new(below.components().next()?.as_os_str());
    let name = first.file_stem()?.to_str()?;
    (!matches!(name, "lib" | "main")).then_some(name)
}

/// All distinct arrows, by paths that begin with `crate::`, outside tests.
pub fn arrows(sources: &[Source], crate_source: &Path) -> BTreeSet<Arrow> {
    let room = |source: &Source| room_of(&source.path, crate_source).map(str::to_owned);
    let rooms: BTreeSet<String> = sources.iter().filter_map(room).collect();
    let mut arrows = BTreeSet::new();
    for source in sources {
        let Some(from) = room(source) else { continue };
        for path in paths(&words(&source.text)) {
            let [first, to, ..] = path.parts[..] else {
                continue;
            };
            let is_arrow = first == "crate" && to != from && rooms.contains(to);
            if is_arrow && !source.tests.contain(path.line) {
                arrows.insert((from.clone(), to.to_owned()));
            }
        }
    }
    arrows
}

/// Pairs of rooms that name each other, each pair once.
pub fn circles(arrows: &BTreeSet<Arrow>) -> Vec<Arrow> {
    let both_ways = arrows
        .iter()
        .filter(|(from, to)| from < to && arrows.contains(&(to.clone(), from.clone())));
    both_ways.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::source::mark;

    fn found(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let owned = files
            .iter()
            .map(|&(path, text)| (path.into(), text.to_owned()));
        let arrows = arrows(&mark(owned.collect()), Path::new("t/src"));
        let text = |arrow: &Arrow| format!("{}>{}", arrow.0, arrow.1);
        let circles = circles(&arrows).iter().map(text).collect();
        (arrows.iter().map(text).collect(), circles)
    }

    #[test]
    fn a_use_and_a_path_are_arrows_and_each_is_counted_once() {
        let (arrows, circles) = found(&[
            ("t/src/a.rs", "use crate::{b::X, c};\nuse crate::b::Y;"),
            ("t/src/b/deep.rs", "fn f() { crate::a::g() }"),
            ("t/src/c/mod.rs", ""),
        ]);
        assert_eq!(arrows, ["a>b", "a>c", "b>a"]);
        assert_eq!(circles, ["a>b"]);
    }

    #[test]
    fn tests_own_rooms_other_crates_and_the_root_make_no_arrows() {
        let (arrows, _) = found(&[
            ("t/src/lib.rs", "use crate::a::X;"),
            (
                "t/src/a.rs",
                "use crate::a::X; use other::b; use crate::Unknown;\n#[cfg(test)]\nmod tests { use crate::b::X; }",
            ),
            ("t/src/b.rs", "// crate::a"),
            ("u/src/b.rs", "use crate::a;"),
        ]);
        assert_eq!(arrows, [""; 0]);
    }
}
