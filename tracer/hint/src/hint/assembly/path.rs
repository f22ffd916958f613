//! Paths of source files as text: joined, normal, and moved from one place to another.

use std::str::FromStr;

/// Paths that begin with `from` begin with `to` in the build, as compilers' `-ffile-prefix-map=FROM=TO` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// How the hints' paths begin: whole names of directories.
    pub from: String,
    /// How the build's do.
    pub to: String,
}

impl FromStr for PathMap {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PathMap, Self::Err> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() => Ok(PathMap {
                from: from.to_owned(),
                to: to.to_owned(),
            }),
            _ => Err("say FROM=TO: how the hints' paths begin, and how the build's do"),
        }
    }
}

/// The path as it is in the build, by the map with the longest beginning that it has; unchanged where none fits.
pub(super) fn mapped(path: &str, maps: &[PathMap]) -> String {
    let path = normal(path);
    let fits = |map: &&PathMap| {
        let from = normal(&map.from);
        let rest = path.strip_prefix(&from);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || from.ends_with('/'))
    };
    let map = maps
        .iter()
        .filter(fits)
        .max_by_key(|map| normal(&map.from).len());
    match map {
        None => path,
        Some(map) => {
            let rest = path[normal(&map.from).len()..].trim_start_matches('/');
            join(&map.to, rest)
        }
    }
}

/// `path` seen from `directory`, without `.` and `..` as far as the text tells.
pub(super) fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') || directory.is_empty() {
        normal(path)
    } else {
        normal(&format!("{directory}/{path}"))
    }
}

/// Without `.`, and without `..` as far as the text tells.
pub(super) fn normal(path: &str) -> String {
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

/// Directories and name of a normal path. What it climbs at its start is not known, and left out.
pub(super) fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != "..")
}

/// The last part.
pub(super) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// How many last parts two normal paths have in common.
pub(super) fn common(one: &str, other: &str) -> usize {
    let pairs = parts(one).rev().zip(parts(other).rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// `--map` that makes one normal path of the other.
pub(super) fn map_between(hinted: &str, built: &str) -> PathMap {
    let same = common(hinted, built);
    let before = |path: &str| {
        let all: Vec<&str> = path.split('/').collect();
        let kept = all[..all.len().saturating_sub(same)].join("/");
        match (kept.is_empty(), path.starts_with('/')) {
            (true, true) => "/".to_owned(),
            (true, false) => ".".to_owned(),
            _ => kept,
        }
    };
    PathMap {
        from: before(hinted),
        to: before(built),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> PathMap {
        text.parse().unwrap()
    }

    #[test]
    fn a_map_moves_whole_directories_and_the_longest_that_fits_counts() {
        let maps = [map("/old=/new"), map("/old/lib/=/elsewhere"), map("/x=y=z")];
        let moved = |path: &str| mapped(path, &maps);
        assert_eq!(moved("/old/a/t.c"), "/new/a/t.c");
        assert_eq!(moved("/old/lib/t.c"), "/elsewhere/t.c");
        assert_eq!(moved("/older/t.c"), "/older/t.c");
        assert_eq!(moved("/x/t.c"), "y=z/t.c");
        assert_eq!(moved("/old/lib/../t.c"), "/new/t.c");
        assert_eq!(mapped("/a/t.c", &[map("/=/top")]), "/top/a/t.c");
        assert_eq!(mapped("/a/t.c", &[map("/a=")]), "t.c");
        assert!("/old".parse::<PathMap>().is_err() && "=/new".parse::<PathMap>().is_err());
    }

    #[test]
    fn the_map_that_is_proposed_brings_the_paths_together() {
        for (hinted, built) in [
            ("/old/a/t.c", "/new/x/a/t.c"),
            ("/t.c", "/new/t.c"),
            ("/old/t.c", "t.c"),
            ("src/t.c", "/new/src/t.c"),
            ("/old/t.c", "/old/lib/t.c"),
        ] {
            let map = map_between(hinted, built);
            if hinted.starts_with('/') {
                assert_eq!(mapped(hinted, std::slice::from_ref(&map)), built, "{map:?}");
            }
        }
    }

    #[test]
    fn common_ends_are_counted_in_whole_names() {
        assert_eq!(common("/a/b/t.c", "/x/b/t.c"), 2);
        assert_eq!(common("/a/bb/t.c", "/x/b/t.c"), 1);
        assert_eq!(common("/a/t.c", "/a/u.c"), 0);
        assert_eq!(common(&normal("../b/t.c"), "/a/b/t.c"), 2);
    }
}
