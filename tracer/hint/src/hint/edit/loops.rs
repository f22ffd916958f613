//! Whether a place in C and C++ source is in the body of a loop.

use super::tokens::{Token, tokens};

/// Whether the first token from `offset` on, in bytes, is run repeatedly by a loop of its function.
pub fn in_loop(text: &str, offset: usize) -> bool {
    let tokens = tokens(text);
    let all = &tokens.all;
    let anchor = all.iter().position(|token| token.at >= offset);
    let mut open = anchor.and_then(|at| all[at].parent);
    while let Some(brace) = open {
        if is_body(all, brace) {
            return true;
        }
        open = all[brace].parent;
    }
    false
}

/// Whether a brace opens the body of `for`, `while` or `do`, or, inside of a function, of a macro that is used as those.
fn is_body(all: &[Token<'_>], brace: usize) -> bool {
    let Some(before) = brace.checked_sub(1).filter(|_| all[brace].is("{")) else {
        return false;
    };
    if all[before].is("do") {
        return true;
    }
    let head = all[before].partner.filter(|_| all[before].is(")"));
    let Some(word) = head.and_then(|open| open.checked_sub(1)).map(|at| all[at]) else {
        return false;
    };
    let inside = all[brace].parent.is_some();
    let is_macro = ["for_each", "FOREACH"]
        .iter()
        .any(|part| word.text.contains(part));
    word.is("for") || word.is("while") || inside && is_macro
}
