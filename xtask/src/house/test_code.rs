//! What `#[cfg(test)]` covers in a file.

use std::ops::RangeInclusive;

use cohtrace_tests::rust_text::Word;

/// Lines, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Vec<RangeInclusive<usize>>);

impl Ranges {
    /// Every line.
    pub(super) fn all() -> Ranges {
        Ranges(vec![1..=usize::MAX])
    }

    /// Whether the line is among them.
    pub(super) fn contain(&self, line: usize) -> bool {
        self.0.iter().any(|range| range.contains(&line))
    }
}

/// What a file says of tests.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// Items with the attribute, from the attribute to the item's end.
    pub ranges: Ranges,
    /// Modules that are declared here for tests, and are files of their own.
    pub modules: Vec<String>,
}

/// Finds the items that are compiled for tests only.
pub(super) fn marked(words: &[Word<'_>]) -> Marked {
    let mut marked = Marked::default();
    let mut at = 0;
    while at < words.len() {
        let Some(attribute) = attribute(&words[at..]) else {
            at += 1;
            continue;
        };
        let start = at;
        at += attribute.length;
        if !attribute.is_for_tests {
            continue;
        }
        if attribute.is_inner {
            marked.ranges = Ranges::all();
            return marked;
        }
        let item = &words[at..];
        let length = item_length(item);
        let item = &item[..length];
        let end = item.last().map_or(words[start].line, |word| word.line);
        marked.ranges.0.push(words[start].line..=end);
        let declared = item
            .windows(3)
            .find(|three| three[0].text == "mod" && three[2].text == ";");
        if item.last().is_some_and(|word| word.text == ";") {
            marked
                .modules
                .extend(declared.map(|three| three[1].text.to_owned()));
        }
        at += length;
    }
    marked
}

struct Attribute {
    /// In words, with its brackets.
    length: usize,
    /// `#![..]`: of all that it stands in.
    is_inner: bool,
    is_for_tests: bool,
}

/// The attribute that the words begin with.
fn attribute(words: &[Word<'_>]) -> Option<Attribute> {
    let text = |at: usize| words.get(at).map_or("", |word| word.text);
    if text(0) != "#" {
        return None;
    }
    let is_inner = text(1) == "!";
    let open = 1 + usize::from(is_inner);
    if text(open) != "[" {
        return None;
    }
    let length = open + bracketed(&words[open..]);
    let inside = &words[open + 1..length];
    let is_for_tests = text(open + 1) == "cfg"
        && inside
            .iter()
            .enumerate()
            .any(|(at, word)| word.text == "test" && !(at >= 2 && inside[at - 2].text == "not"));
    Some(Attribute {
        length,
        is_inner,
        is_for_tests,
    })
}

/// Words up to the bracket that closes the first.
fn bracketed(words: &[Word<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate() {
        match word.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// Words of an item: up to its semicolon, or to the end of its braces.
fn item_length(words: &[Word<'_>]) -> usize {
    let mut at = 0;
    while at < words.len() {
        match words[at].text {
            ";" => return at + 1,
            "{" => {
                let end = at + bracketed(&words[at..]);
                // `use a::{b};` goes on to its semicolon.
                let goes_on = words.get(end).is_some_and(|word| word.text == ";");
                return end + usize::from(goes_on);
            }
            "(" | "[" => at += bracketed(&words[at..]),
            // An item that stands in a list, such as a field, ends before the bracket that closes the list.
            "," | "}" | ")" | "]" => return at,
            _ => at += 1,
        }
    }
    words.len()
}

#[cfg(test)]
mod tests {
    use cohtrace_tests::rust_text::words;

    use super::*;

    fn check(source: &str, lines: &[usize], modules: &[&str]) {
        let marked = marked(&words(source));
        let found: Vec<usize> = (1..=source.lines().count())
            .filter(|&line| marked.ranges.contain(line))
            .collect();
        assert_eq!(
            (found.as_slice(), &marked.modules[..]),
            (
                lines,
                &modules.iter().map(|&m| m.to_owned()).collect::<Vec<_>>()[..]
            )
        );
    }

    #[test]
    fn a_module_is_test_code_up_to_its_last_brace() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { }\n}\nfn c() {}";
        check(source, &[2, 3, 4, 5], &[]);
    }

    #[test]
    fn a_file_of_tests_is_named_and_another_is_not() {
        check("#[cfg(test)]\nmod a;\nmod b;", &[1, 2], &["a"]);
        check("#[cfg(test)]\npub(crate) mod a;\nmod b;", &[1, 2], &["a"]);
        check(
            "#[cfg(test)]\n#[path = \"x\"]\nmod a;\nmod b;",
            &[1, 2, 3],
            &["a"],
        );
    }

    #[test]
    fn functions_and_uses_end_where_they_end() {
        check(
            "#[cfg(test)]\nfn a(x: [u8; 2]) -> u8 {\n}\nfn b() {}",
            &[1, 2, 3],
            &[],
        );
        check(
            "#[cfg(test)]\nuse a::{\nb,\n};\nfn b() {}",
            &[1, 2, 3, 4],
            &[],
        );
        check("struct A {\n#[cfg(test)]\nx: u8,\ny: u8,\n}", &[2, 3], &[]);
    }

    #[test]
    fn what_is_left_out_of_tests_is_none_of_them() {
        check("#[cfg(not(test))]\nmod a;\n#[test]\nfn b() {}", &[], &[]);
        check("#[cfg(all(test, unix))]\nmod a;", &[1, 2], &["a"]);
        check("#![cfg(test)]\nfn a() {}", &[1, 2], &[]);
        check("#![cfg(bpf)]\nfn test() {}", &[], &[]);
    }
}
