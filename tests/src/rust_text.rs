//! Rust source as words, for the tidy tests and the figures of `cargo xtask house`: comments and literals are no code, and `use a::{b, c::d}` names
//! `a::b` and `a::c::d`.
//!
//! Good enough for checks on our own formatted code, not a parser: macros are read as if they were plain code.

/// A token of code with the line it is on, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// An identifier, `::`, or one other character.
    pub text: &'a str,
    /// From 1.
    pub line: usize,
}

/// What a piece of source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, `::`, or one other character.
    Word,
    /// A string or character, with its quotes; it may have several lines.
    Literal,
    /// From `//` to the end of its line, or from `/*` to `*/`.
    Comment,
}

/// A part of the source that is no white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text, as written.
    pub text: &'a str,
    /// The line where it begins, from 1.
    pub line: usize,
}

/// All of the source but white space, in order.
pub fn pieces(source: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut line = 1;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let (kind, length) = if let Some(length) = literal_or_comment(rest) {
            let is_comment = rest.starts_with('/');
            let kind = if is_comment {
                Kind::Comment
            } else {
                Kind::Literal
            };
            (kind, length)
        } else {
            let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let length = match name {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                _ => name,
            };
            (Kind::Word, length)
        };
        let text = &rest[..length];
        if !first.is_whitespace() {
            pieces.push(Piece { kind, text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    pieces
}

/// The code's words, without comments, strings, characters and white space.
pub fn words(source: &str) -> Vec<Word<'_>> {
    pieces(source)
        .into_iter()
        .filter(|piece| piece.kind == Kind::Word)
        .map(|Piece { text, line, .. }| Word { text, line })
        .collect()
}

/// Bytes of the comment or literal that the text starts with.
fn literal_or_comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    });
    if let Some(prefix) = prefix {
        let hashes = text[prefix.len()..]
            .bytes()
            .take_while(|&b| b == b'#')
            .count();
        if prefix.ends_with('r') {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = prefix.len() + hashes + 1;
            return Some(
                text[open..]
                    .find(&close)
                    .map_or(text.len(), |end| open + end + close.len()),
            );
        }
        if hashes == 0 {
            return Some(quoted(text, prefix.len(), '"'));
        }
    }
    let quote = usize::from(text.starts_with("b'"));
    let mut chars = text[quote..].chars();
    if chars.next() == Some('\'') {
        // 'a is a lifetime, 'a' and '\n' are characters.
        let inner = chars.next()?;
        return (inner == '\\' || chars.next() == Some('\'')).then(|| quoted(text, quote, '\''));
    }
    None
}

/// Bytes up to the end of a literal whose opening quote is at `open`; a backslash hides the next character.
fn quoted(text: &str, open: usize, quote: char) -> usize {
    let mut hidden = false;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at <= open) {
        match c {
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// A path that code names, with the line its last part is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath<'a> {
    /// Its parts: `std`, `fs`, `read`.
    pub parts: Vec<&'a str>,
    /// From 1.
    pub line: usize,
}

impl NamedPath<'_> {
    /// Whether the path begins with these parts.
    pub fn starts_with(&self, parts: &[&str]) -> bool {
        self.parts.starts_with(parts)
    }
}

/// Every path of the code; a lone identifier is a path of one part.
pub fn paths<'a>(words: &[Word<'a>]) -> Vec<NamedPath<'a>> {
    let mut paths = Vec::new();
    // What stands before each brace that is open; a brace that does not follow `::` starts afresh.
    let mut prefixes: Vec<Vec<&str>> = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let next = words.get(n + 1).map_or("", |word| word.text);
        match word.text {
            "::" => {}
            "{" => prefixes.push(std::mem::take(&mut path)),
            "}" => {
                prefixes.pop();
                path.clear();
            }
            name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                if path.is_empty() {
                    path.extend(prefixes.last().into_iter().flatten());
                }
                path.push(name);
                if next != "::" {
                    paths.push(NamedPath {
                        parts: std::mem::take(&mut path),
                        line: word.line,
                    });
                }
            }
            _ => path.clear(),
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        words(source).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn comments_and_literals_are_no_words() {
        assert_eq!(texts("a // unsafe\nb"), ["a", "b"]);
        assert_eq!(texts("a /* x /* unsafe */ y */ b"), ["a", "b"]);
        assert_eq!(texts(r#"a "un\"safe" b"#), ["a", "b"]);
        assert_eq!(
            texts(r##"a r#"un"safe"# b br"x" c"x" b"y" d"##),
            ["a", "b", "d"]
        );
        assert_eq!(texts(r"a '\'' 'x' b'y' '\u{1f}' b"), ["a", "b"]);
        assert_eq!(
            texts("fn f<'a>(x: &'a str)"),
            [
                "fn", "f", "<", "'", "a", ">", "(", "x", ":", "&", "'", "a", "str", ")"
            ]
        );
        assert_eq!(texts("r#unsafe"), ["r", "#", "unsafe"]);
    }

    #[test]
    fn pieces_are_the_source_without_its_white_space() {
        let source = "a /* b\n */ \"c\n\"\n'd' // e";
        let pieces: Vec<(Kind, &str, usize)> = pieces(source)
            .into_iter()
            .map(|piece| (piece.kind, piece.text, piece.line))
            .collect();
        assert_eq!(
            pieces,
            [
                (Kind::Word, "a", 1),
                (Kind::Comment, "/* b\n */", 1),
                (Kind::Literal, "\"c\n\"", 2),
                (Kind::Literal, "'d'", 4),
                (Kind::Comment, "// e", 4),
            ]
        );
    }

    #[test]
    fn words_know_their_lines() {
        let source = "a\n/* \n */ b \"\n\"\nc";
        let lines: Vec<usize> = words(source).iter().map(|word| word.line).collect();
        assert_eq!(lines, [1, 3, 5]);
    }

    #[test]
    fn a_use_tree_names_each_of_its_leaves() {
        let words = words("use std::{env, io::{self, Read}};\nfn f() { fs::read(x) }");
        let paths = paths(&words);
        let joined: Vec<String> = paths.iter().map(|path| path.parts.join("::")).collect();
        assert_eq!(
            joined,
            [
                "use",
                "std::env",
                "std::io::self",
                "std::io::Read",
                "fn",
                "f",
                "fs::read",
                "x"
            ]
        );
        assert!(paths[1].starts_with(&["std", "env"]));
        assert!(!paths[1].starts_with(&["std", "fs"]));
        assert_eq!(paths[6].line, 2);
    }
}
