//! Lines of code, of comments and of tests.

use cohtrace_tests::rust_text::{Kind, pieces};

use super::source::Source;

/// What files hold; lines that are not blank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Files.
    pub files: usize,
    /// Lines with code, a comment behind it or not; outside tests.
    pub code: usize,
    /// Lines with a comment alone; outside tests.
    pub comments: usize,
    /// Lines of tests, their comments too.
    pub tests: usize,
    /// `unsafe { .. }`, outside tests.
    pub unsafe_blocks: usize,
    /// `unsafe { .. }`, in tests.
    pub unsafe_in_tests: usize,
}

impl Counts {
    /// Adds those of other files.
    pub(super) fn add(&mut self, other: &Counts) {
        self.files += other.files;
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
        self.unsafe_blocks += other.unsafe_blocks;
        self.unsafe_in_tests += other.unsafe_in_tests;
    }
}

/// Counts a file.
pub(super) fn count(source: &Source) -> Counts {
    let mut counts = Counts {
        files: 1,
        ..Counts::default()
    };
    let pieces = pieces(&source.text);
    let lines: Vec<&str> = source.text.lines().collect();
    // Of each line, whether it has code.
    let mut has_code = vec![false; lines.len()];
    for piece in pieces.iter().filter(|piece| piece.kind != Kind::Comment) {
        let last = piece.line + piece.text.matches('\n').count();
        has_code[piece.line - 1..last].fill(true);
    }
    for (number, (text, has_code)) in (1..).zip(lines.iter().zip(has_code)) {
        if text.trim().is_empty() {
            continue;
        }
        match (source.tests.contain(number), has_code) {
            (true, _) => counts.tests += 1,
            (false, true) => counts.code += 1,
            (false, false) => counts.comments += 1,
        }
    }
    let words: Vec<_> = pieces
        .iter()
        .filter(|piece| piece.kind == Kind::Word)
        .collect();
    for pair in words.windows(2) {
        if pair[0].text == "unsafe" && pair[1].text == "{" {
            if source.tests.contain(pair[0].line) {
                counts.unsafe_in_tests += 1;
            } else {
                counts.unsafe_blocks += 1;
            }
        }
    }
    counts
}

/// How long a file is without its tests, blank lines counted.
pub(super) fn outside_tests(source: &Source) -> usize {
    let lines = 1..=source.text.lines().count();
    lines.filter(|&line| !source.tests.contain(line)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::source::mark;

    fn counted(path: &str, text: &str) -> Counts {
        let sources = mark(vec![(path.into(), text.to_owned())]);
        count(&sources[0])
    }

    const TEXT: &str = "\
//! A comment.

/* and
   another */
fn a() { // Code, with a comment behind.
    let x = \"two lines,

// and no comment\";
    unsafe { b() }
}

#[cfg(test)]
mod tests {
    // In tests.
    fn c() { unsafe { b() } }
}
";

    #[test]
    fn each_line_is_one_thing_and_blank_ones_nothing() {
        let expected = Counts {
            files: 1,
            code: 5,
            comments: 3,
            tests: 5,
            unsafe_blocks: 1,
            unsafe_in_tests: 1,
        };
        assert_eq!(counted("a/src/lib.rs", TEXT), expected);
    }

    #[test]
    fn in_a_file_of_tests_all_lines_are_tests() {
        let expected = Counts {
            files: 1,
            tests: 13,
            unsafe_in_tests: 2,
            ..Counts::default()
        };
        assert_eq!(counted("a/tests/it.rs", TEXT), expected);
    }

    #[test]
    fn unsafe_functions_and_words_are_no_blocks() {
        let text = "unsafe fn a() {}\nunsafe impl A for B {}\n// unsafe { }\nlet x = \"unsafe {\";";
        assert_eq!(counted("a/src/lib.rs", text).unsafe_blocks, 0);
    }

    #[test]
    fn a_files_length_has_its_blank_lines_and_not_its_tests() {
        let sources = mark(vec![("a/src/lib.rs".into(), TEXT.to_owned())]);
        assert_eq!(outside_tests(&sources[0]), 11);
    }
}
