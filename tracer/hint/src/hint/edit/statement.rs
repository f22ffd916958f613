//! Whether a statement of its own may stand on a line before the one that holds an expression, and means the same there.

use super::{
    Refused,
    lvalue::{Lvalue, is_keyword},
    tokens::{Kind, Token, Tokens},
};

/// A statement, by its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement {
    /// First token.
    pub from: usize,
    /// One past the last token that belongs to it, without the body that it controls.
    pub to: usize,
    /// The brace around it.
    brace: usize,
}

/// First words of what cannot have a statement before it, or is run more often than that statement would be.
const NO_START: [&str; 16] = [
    "while",
    "for",
    "do",
    "else",
    "case",
    "default",
    "goto",
    "catch",
    "static",
    "typedef",
    "using",
    "template",
    "extern",
    "asm",
    "__asm__",
    "namespace",
];

/// Operators that look at an operand's type only, or choose by it.
const NOT_EVALUATED: [&str; 9] = [
    "sizeof",
    "typeof",
    "__typeof__",
    "decltype",
    "alignof",
    "_Alignof",
    "offsetof",
    "_Generic",
    "noexcept",
];

/// Operators that store.
const ASSIGN: [&str; 11] = [
    "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=",
];

/// The statement that the token is in.
pub(super) fn around(tokens: &Tokens<'_>, anchor: usize) -> Result<Statement, Refused> {
    let all = &tokens.all;
    let mut brace = all[anchor].parent;
    while let Some(open) = brace
        && !all[open].is("{")
    {
        let end = all[open].partner.unwrap_or(all.len());
        let has_clauses = (open + 1..end).any(|at| all[at].parent == Some(open) && all[at].is(";"));
        if has_clauses {
            return Err(Refused::LoopHeader);
        }
        brace = all[open].parent;
    }
    let brace = brace.ok_or(Refused::NoFunction)?;
    if !is_block(all, brace) {
        return Err(Refused::NoFunction);
    }
    let ends_before = |at: &usize| {
        let token = &all[*at];
        let is_end = token.is(";") || token.is("}");
        is_end && token.parent == Some(brace)
    };
    let before = (brace + 1..anchor).rev().find(ends_before).unwrap_or(brace);
    if let Some(open) = all[before].partner
        && before != brace
        && !is_block(all, open)
    {
        return Err(Refused::Declaration);
    }
    let from = before + 1;
    let ends = |at: &usize| {
        let token = &all[*at];
        token.parent == Some(brace) && (token.is(";") || token.is("{") || token.is("}"))
    };
    let to = (anchor..all.len()).find(ends).unwrap_or(all.len());
    Ok(Statement { from, to, brace })
}

/// Whether the brace holds statements: not members, values or names.
fn is_block(all: &[Token<'_>], brace: usize) -> bool {
    let Some(before) = brace.checked_sub(1) else {
        return false;
    };
    let token = &all[before];
    if token.is(")") {
        let Some(head) = token.partner.and_then(|open| open.checked_sub(1)) else {
            return false;
        };
        let head = &all[head];
        // `(type) {..}` is a value; a function, a condition and a lambda have something before the parenthesis.
        let is_named = head.kind == Kind::Word && !matches!(head.text, "return" | "sizeof");
        return is_named || head.is("]") || head.is(">");
    }
    if matches!(
        token.text,
        "else" | "do" | "try" | "const" | "override" | "final" | "noexcept" | "mutable"
    ) {
        return true;
    }
    let is_bare = token.is(";") || token.is("{") || token.is("}") || token.is(":");
    is_bare
        && all[brace]
            .parent
            .is_some_and(|outer| all[outer].is("{") && is_block(all, outer))
}

/// Whether a statement can stand before this one, on a line of its own.
pub(super) fn may_precede(
    tokens: &Tokens<'_>,
    text: &str,
    statement: Statement,
) -> Result<(), Refused> {
    let all = &tokens.all;
    let first = &all[statement.from];
    let starts = match first.kind {
        Kind::Word => !NO_START.contains(&first.text),
        Kind::Sign => matches!(first.text, "*" | "(" | "++" | "--"),
        Kind::Number | Kind::Literal => false,
    };
    let labelled = all
        .get(statement.from + 1)
        .is_some_and(|second| second.is(":"));
    if labelled || matches!(first.text, "case" | "default") {
        return Err(Refused::Label);
    }
    if matches!(first.text, "while" | "for" | "do") {
        return Err(Refused::LoopHeader);
    }
    if !starts {
        return Err(Refused::Unfit);
    }
    let line = text[..first.at].rfind('\n').map_or(0, |at| at + 1);
    let previous = &all[statement.from - 1];
    let alone = previous.at + previous.text.len() <= line && text[line..first.at].trim().is_empty();
    if !alone {
        return Err(Refused::NotAlone);
    }
    // A directive that goes on over lines, or a comment, would swallow the new line.
    let above = text[..line].trim_end_matches(['\r', '\n']);
    if above.ends_with('\\') {
        return Err(Refused::NotAlone);
    }
    Ok(())
}

/// Whether the address means the same before the statement as within, and is taken in any case.
pub(super) fn means_the_same(
    tokens: &Tokens<'_>,
    statement: Statement,
    found: &Lvalue,
) -> Result<(), Refused> {
    let all = &tokens.all;
    if matches!(all[statement.from].text, "if" | "switch") {
        let open = (statement.from + 1..statement.to).find(|at| all[*at].is("("));
        let end = open.and_then(|open| all[open].partner);
        if end.is_none_or(|end| found.from >= end) {
            return Err(Refused::Conditional);
        }
    }
    let mut assigned = 0;
    for at in statement.from..found.from {
        let token = &all[at];
        if token.kind != Kind::Sign {
            continue;
        }
        let before = at.checked_sub(1).map(|before| &all[before]);
        match token.text {
            "&&" | "||" | "?" => return Err(Refused::Conditional),
            "++" | "--" if at + 1 != found.from => return Err(Refused::Ordered),
            "(" if token.partner.is_some_and(|end| end < found.from) => {
                let called = before.is_some_and(|before| {
                    let is_word = before.kind == Kind::Word && !is_keyword(before.text);
                    is_word || before.is(")") || before.is("]")
                });
                if called {
                    return Err(Refused::Ordered);
                }
            }
            "," if token.parent == Some(statement.brace) && declared(all, statement).is_empty() => {
                return Err(Refused::Ordered);
            }
            sign if ASSIGN.contains(&sign) => {
                assigned += 1;
                let inside = token.parent != Some(statement.brace);
                if (inside || assigned > 1) && declared(all, statement).is_empty() {
                    return Err(Refused::Ordered);
                }
            }
            _ => {}
        }
    }
    let names = &all[found.from..found.to];
    let declared = declared(all, statement);
    if names.iter().any(|token| declared.contains(&token.text)) {
        return Err(Refused::DeclaredHere);
    }
    within_calls(tokens, statement, found)
}

/// What is around the expression in parentheses: macros may not evaluate it, or not where it stands.
fn within_calls(tokens: &Tokens<'_>, statement: Statement, found: &Lvalue) -> Result<(), Refused> {
    let all = &tokens.all;
    let mut around = all[found.from].parent;
    while let Some(open) = around
        && open > statement.brace
    {
        let head = open.checked_sub(1).map(|head| &all[head]);
        if let Some(head) = head
            && all[open].is("(")
            && head.kind == Kind::Word
        {
            if NOT_EVALUATED.contains(&head.text) {
                return Err(Refused::NoExpression);
            }
            if looks_like_macro(head.text) || tokens.macros.contains_key(head.text) {
                return Err(Refused::Macro(head.text.to_owned()));
            }
            if !is_keyword(head.text) && found.steps > 1 {
                return Err(Refused::Argument(head.text.to_owned()));
            }
        }
        around = all[open].parent;
    }
    // `sizeof x` needs no parentheses.
    let before = &all[found.from - 1];
    if before.kind == Kind::Word && NOT_EVALUATED.contains(&before.text) {
        return Err(Refused::NoExpression);
    }
    Ok(())
}

/// Names of macros are written so by custom; those of other files cannot be seen.
pub(super) fn looks_like_macro(name: &str) -> bool {
    name.len() > 1
        && name.chars().any(|c| c.is_ascii_uppercase())
        && !name.chars().any(|c| c.is_ascii_lowercase())
}

/// Names that the statement declares; none where it is no declaration.
fn declared<'a>(all: &[Token<'a>], statement: Statement) -> Vec<&'a str> {
    let mut names = Vec::new();
    let inside = |at: usize| all[at].parent == Some(statement.brace);
    let is_name = |at: usize| all[at].kind == Kind::Word && !is_keyword(all[at].text);
    if !is_name(statement.from) {
        return names;
    }
    let own: Vec<usize> = (statement.from..statement.to)
        .filter(|at| inside(*at))
        .collect();
    let head = own.iter().position(|at| {
        all[*at].is("=")
            || all[*at].is("(")
            || all[*at].is("[")
            || all[*at].is(",")
            || all[*at].is("{")
    });
    let head = &own[..head.unwrap_or(own.len())];
    let is_type = |at: usize| {
        is_name(at)
            || ["*", "&", "&&", "::", "<", ">"]
                .iter()
                .any(|sign| all[at].is(sign))
    };
    // At least a type and a name, and nothing that a type cannot hold.
    let fits = head.len() > 1 && head.iter().all(|at| is_type(*at));
    let Some(&last) = head.last().filter(|last| fits && is_name(**last)) else {
        return names;
    };
    if all[last - 1].is("::") {
        return names;
    }
    names.push(all[last].text);
    for at in own.iter().filter(|at| all[**at].is(",")) {
        let next = (at + 1..statement.to).find(|next| !all[*next].is("*") && !all[*next].is("&"));
        names.extend(
            next.filter(|next| is_name(*next))
                .map(|next| all[next].text),
        );
    }
    names
}
