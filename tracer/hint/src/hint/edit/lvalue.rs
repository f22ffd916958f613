//! Expressions in source that name memory, and whose address can be taken without doing anything else:
//! identifiers, `.`, `->`, `[simple index]` and `*p`.

use super::tokens::{Kind, Token, Tokens};

/// An lvalue in the tokens of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lvalue {
    /// First token.
    pub from: usize,
    /// One past the last token.
    pub to: usize,
    /// As it is to be written.
    pub text: String,
    /// Last member; `None` of a plain variable.
    pub member: Option<String>,
    /// Name at the start.
    pub root: String,
    /// Ends with an index.
    pub indexed: bool,
    /// Pointers and arrays that are gone through.
    pub steps: usize,
    /// No longer expression starts with it.
    pub whole: bool,
    /// Tokens whose place compilers give to the load of it.
    pub points: Vec<usize>,
}

/// Words that are no names.
const KEYWORDS: [&str; 40] = [
    "return",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "goto",
    "break",
    "continue",
    "sizeof",
    "alignof",
    "_Alignof",
    "typeof",
    "__typeof__",
    "decltype",
    "throw",
    "new",
    "delete",
    "co_await",
    "co_return",
    "co_yield",
    "and",
    "or",
    "not",
    "true",
    "false",
    "nullptr",
    "NULL",
    "operator",
    "template",
    "typename",
    "asm",
    "__asm__",
    "catch",
    "try",
    "using",
    "namespace",
];

/// Whether the word is part of the language, so that no name stands there.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

fn is_name(token: &Token<'_>) -> bool {
    token.kind == Kind::Word && !is_keyword(token.text)
}

/// Every lvalue that begins in the range of tokens, and each shorter one that it starts with.
pub(super) fn lvalues(tokens: &Tokens<'_>, from: usize, to: usize) -> Vec<Lvalue> {
    let mut out = Vec::new();
    let mut at = from;
    while at < to {
        if starts(tokens, at) {
            at = chain(tokens, at, to, &mut out);
        } else {
            at += 1;
        }
    }
    out
}

/// Whether a name that is used, not declared, starts here.
fn starts(tokens: &Tokens<'_>, at: usize) -> bool {
    let all = &tokens.all;
    if !is_name(&all[at]) {
        return false;
    }
    // A name before a name is its type.
    if all.get(at + 1).is_some_and(is_name) {
        return false;
    }
    let Some(before) = at.checked_sub(1).map(|before| &all[before]) else {
        return true;
    };
    let continues = [".", "->", "::", "->*"].iter().any(|sign| before.is(sign));
    // A name behind a name is declared there, and one behind a cast or a call's end is no start either.
    !continues && !is_name(before)
}

/// Adds what starts at a name; the index of the first token that belongs to none of it.
fn chain(tokens: &Tokens<'_>, start: usize, limit: usize, out: &mut Vec<Lvalue>) -> usize {
    let all = &tokens.all;
    let mut to = start + 1;
    while to + 1 < limit && all[to].is("::") && is_name(&all[to + 1]) {
        to += 2;
    }
    let root = all[to - 1].text.to_owned();
    if all.get(to).is_some_and(|next| next.is("(")) {
        return to;
    }
    let first = out.len();
    let mut now = Lvalue {
        from: start,
        to,
        text: joined(&all[start..to]),
        member: None,
        root,
        indexed: false,
        steps: 0,
        whole: false,
        points: vec![start],
    };
    // What has members is no load itself.
    let is_whole_of = |to: usize| all.get(to).is_some_and(|next| next.is("."));
    if !is_whole_of(to) {
        out.push(now.clone());
    }
    let mut simple = true;
    while to + 1 < limit {
        if (all[to].is("->") || all[to].is(".")) && is_name(&all[to + 1]) {
            now.steps += usize::from(all[to].is("->"));
            now.member = Some(all[to + 1].text.to_owned());
            now.indexed = false;
            // Of a member of a whole, the place may be that of the whole.
            if all[to].is("->") {
                now.points.clear();
            }
            now.points.extend([to, to + 1]);
            to += 2;
        } else if all[to].is("[")
            && let Some(end) = all[to].partner
            && end < limit
            && is_simple_index(&all[to + 1..end])
        {
            // clang gives an element the place of what is indexed.
            now.points.extend([start, to]);
            now.steps += 1;
            now.indexed = true;
            to = end + 1;
        } else {
            simple = !(all[to].is("[") || all[to].is("->") || all[to].is(".") || all[to].is("->*"));
            break;
        }
        now.to = to;
        now.text = joined(&all[start..to]);
        if !is_whole_of(to) {
            out.push(now.clone());
        }
    }
    // What is called is code, and the address of a variable is no load of it.
    let called = all.get(to).is_some_and(|next| next.is("("));
    if called && out.len() > first {
        out.pop();
    }
    let whole = simple && !called;
    // `&x` where the sign is no operator between two values.
    let addressed = is_unary(all, start, "&");
    if addressed || all.get(to).is_some_and(|next| next.is("=")) {
        if whole && out.len() > first {
            out.pop();
        }
    } else if whole && let Some(last) = out[first..].last_mut() {
        last.whole = true;
        let mut last = last.clone();
        let postfix = all
            .get(to)
            .is_some_and(|next| next.is("++") || next.is("--"));
        if is_unary(all, start, "*") && !postfix {
            last.from -= 1;
            last.text = format!("*{}", last.text);
            last.steps += 1;
            last.member = None;
            last.indexed = true;
            last.points = vec![start - 1];
            out.push(last);
        }
    }
    to
}

/// Whether the token before is this sign, and applies to what starts here alone.
fn is_unary(all: &[Token<'_>], start: usize, sign: &str) -> bool {
    let Some(before) = start.checked_sub(1) else {
        return false;
    };
    if !all[before].is(sign) {
        return false;
    }
    let Some(earlier) = before.checked_sub(1).map(|earlier| &all[earlier]) else {
        return true;
    };
    let is_value = is_name(earlier)
        || matches!(earlier.kind, Kind::Number | Kind::Literal)
        || earlier.is(")")
        || earlier.is("]");
    !is_value
}

fn is_simple_index(tokens: &[Token<'_>]) -> bool {
    let plain = |token: &Token<'_>| {
        is_name(token)
            || token.kind == Kind::Number
            || ["+", "-", "*", "&", "<<", ">>"]
                .iter()
                .any(|sign| token.is(sign))
    };
    let is_value = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Number);
    let by_turns = (tokens.iter().enumerate()).all(|(at, token)| (at % 2 == 0) == is_value(token));
    !tokens.is_empty() && tokens.len() % 2 == 1 && by_turns && tokens.iter().all(plain)
}

fn joined(tokens: &[Token<'_>]) -> String {
    tokens.iter().map(|token| token.text).collect()
}
