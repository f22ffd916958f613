//! Words of C and C++ source, as far as finding an expression and its statement needs: comments, literals and
//! directives are told apart, brackets are matched. Nothing is expanded.

use std::collections::BTreeMap;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Identifier or keyword.
    Word,
    /// Number.
    Number,
    /// String or character.
    Literal,
    /// Operator or bracket.
    Sign,
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As written.
    pub text: &'a str,
    /// Offset of its first byte.
    pub at: usize,
    /// Innermost bracket that is open around it, by index.
    pub parent: Option<usize>,
    /// Of a bracket: the index of its other half.
    pub partner: Option<usize>,
}

impl Token<'_> {
    /// Whether it is this operator, bracket or word.
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// A source file in tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens<'a> {
    /// All but directives, in order.
    pub all: Vec<Token<'a>>,
    /// Names that the file `#define`s, with what they stand for.
    pub macros: BTreeMap<&'a str, &'a str>,
    /// Files that it `#include`s by a name in quotes.
    pub includes: Vec<&'a str>,
}

/// Operators of more than one character, longest first.
const LONG: [&str; 24] = [
    "<<=", ">>=", "...", "->*", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::",
];

/// Cuts the text up.
pub(super) fn tokens(text: &str) -> Tokens<'_> {
    let mut out = Tokens::default();
    let mut open: Vec<usize> = Vec::new();
    let (mut at, mut starts_line) = (0, true);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c == '\n' {
            starts_line = true;
            at += 1;
        } else if c.is_whitespace() || rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
            at += c.len_utf8();
        } else if rest.starts_with("//") {
            at += logical_line(rest);
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if c == '#' && starts_line {
            let length = logical_line(rest);
            directive(&rest[..length], &mut out);
            at += length;
        } else {
            let (kind, length) = token(rest);
            push(&mut out.all, &mut open, kind, &rest[..length], at);
            starts_line = false;
            at += length;
        }
    }
    out
}

fn push<'a>(all: &mut Vec<Token<'a>>, open: &mut Vec<usize>, kind: Kind, text: &'a str, at: usize) {
    let closes = match text {
        ")" => Some("("),
        "]" => Some("["),
        "}" => Some("{"),
        _ => None,
    };
    let mut partner = None;
    // A half that does not match is left without a partner: macros may hold the other one.
    if let Some(half) = closes
        && let Some(&top) = open.last()
        && all[top].text == half
    {
        open.pop();
        all[top].partner = Some(all.len());
        partner = Some(top);
    }
    let parent = open.last().copied();
    if kind == Kind::Sign && matches!(text, "(" | "[" | "{") {
        open.push(all.len());
    }
    all.push(Token {
        kind,
        text,
        at,
        parent,
        partner,
    });
}

/// Length up to the newline that no backslash takes away.
fn logical_line(rest: &str) -> usize {
    let mut from = 0;
    loop {
        let Some(end) = rest[from..].find('\n').map(|end| end + from) else {
            return rest.len();
        };
        let line = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
        if !line.ends_with('\\') {
            return end;
        }
        from = end + 1;
    }
}

fn directive<'a>(line: &'a str, out: &mut Tokens<'a>) {
    let line = line[1..].trim_start();
    if let Some(rest) = line.strip_prefix("define") {
        let rest = rest.trim_start();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end > 0 {
            out.macros.insert(&rest[..end], rest[end..].trim());
        }
    } else if let Some(rest) = line.strip_prefix("include")
        && let Some(name) = rest.split('"').nth(1)
    {
        out.includes.push(name);
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// What the next token is, and its bytes.
fn token(rest: &str) -> (Kind, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_ascii_digit() {
        let mut before = first;
        let end = rest.find(|c| {
            let exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P');
            before = c;
            !(is_word(c) || c == '.' || c == '\'' || exponent)
        });
        return (Kind::Number, end.unwrap_or(rest.len()));
    }
    if is_word(first) {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let raw = matches!(&rest[..end], "R" | "LR" | "uR" | "UR" | "u8R");
        if raw && rest[end..].starts_with('"') {
            return (Kind::Literal, end + raw_string(&rest[end..]));
        }
        return (Kind::Word, end);
    }
    if first == '"' || first == '\'' {
        return (Kind::Literal, quoted(rest, first));
    }
    let long = LONG.iter().find(|sign| rest.starts_with(**sign));
    (Kind::Sign, long.map_or(first.len_utf8(), |sign| sign.len()))
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `"x(..)x"`, from the quote on.
fn raw_string(rest: &str) -> usize {
    let Some(open) = rest.find('(') else {
        return rest.len();
    };
    let end = format!("){}\"", &rest[1..open]);
    rest[open..]
        .find(&end)
        .map_or(rest.len(), |at| open + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).all.iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_literals_and_directives_are_no_code() {
        let text = "#define N 4 \\\n  + x\na /* b; */ = \"c;\" + 'd'; // e\nf->g++;";
        let expected = [
            "a", "=", "\"c;\"", "+", "'d'", ";", "f", "->", "g", "++", ";",
        ];
        assert_eq!(texts(text), expected);
        assert_eq!(tokens(text).macros["N"], "4 \\\n  + x");
        assert_eq!(texts("x = R\"a(\")\" ;)a\" + 1e-5;").len(), 6);
    }

    #[test]
    fn brackets_know_their_other_half_and_what_is_around_them() {
        let all = tokens("f(a[1]) { b; }").all;
        assert_eq!((all[1].partner, all[6].partner), (Some(6), Some(1)));
        assert_eq!(
            (all[2].parent, all[4].parent, all[8].parent),
            (Some(1), Some(3), Some(7))
        );
        assert_eq!(
            tokens(") ] }").all.iter().filter_map(|t| t.partner).count(),
            0
        );
    }

    #[test]
    fn text_that_ends_anywhere_is_cut_without_harm() {
        let text = "a \"b\\\" c 'd\\ /* R\"x( #define \u{e4}\u{1f600} 0x1p-3 // \\\n z";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let cut = &text[..end];
            assert!(tokens(cut).all.iter().all(|token| token.at < end.max(1)));
        }
    }
}
