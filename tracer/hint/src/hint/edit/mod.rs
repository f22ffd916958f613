//! Where in C and C++ source a prefetch for ownership can be written: from a load's file, line and column to the
//! expression that it reads, where that can be told for certain and its address can be taken before the statement.
//!
//! Compilers give a load the place of its member, of its operator, or, once it is folded into another instruction,
//! of what uses it. So the place narrows the choice, the names of the field and the variable do too, and what is left must be one
//! expression; else nothing is proposed. Nothing is expanded: a line that is not literally there has no expression.

mod loops;
mod lvalue;
mod statement;
mod tokens;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use loops::in_loop;
use lvalue::{Lvalue, lvalues};
use tokens::{Kind, Tokens};

/// Which load.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: Option<u32>,
    /// Variable that is read, where known.
    pub object: Option<&'a str>,
    /// Field of it, as reports name it: `.hits`, `[3].count`.
    pub field: Option<&'a str>,
}

/// A line to add to a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// Line before which it goes, from 1.
    pub line: u32,
    /// Offset of that line's first byte.
    pub offset: usize,
    /// The new line, with its indentation and its end.
    pub text: String,
    /// The expression whose address is prefetched.
    pub expression: String,
}

/// Why nothing can be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The file is shorter.
    #[error("the file has no such line")]
    NoLine,
    /// Nothing but a comment, a directive or nothing.
    #[error("the line holds no code: a directive, a comment, or a macro's definition")]
    NoCode,
    /// No candidate.
    #[error("no simple expression there names the memory; it may be in a call, a macro or a cast")]
    NoExpression,
    /// Several candidates.
    #[error("which of {} is loaded cannot be told", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// A bit-field has no address.
    #[error("{0} is a bit-field, which has no address")]
    BitField(String),
    /// The name may stand for something else.
    #[error("{0} is, or may be, a macro")]
    Macro(String),
    /// Evaluated only by what is called.
    #[error("it is an argument of {0}, which may be a macro that does not evaluate it")]
    Argument(String),
    /// Outside of functions, or in a list of values.
    #[error("the line is not among the statements of a function")]
    NoFunction,
    /// In the header of a loop.
    #[error("it is in the header of a loop, and a statement before it would run once only")]
    LoopHeader,
    /// Behind a label.
    #[error("a label or case stands before it")]
    Label,
    /// Behind a type's definition.
    #[error("it is part of a declaration of types")]
    Declaration,
    /// Its own declaration.
    #[error("the statement declares a name that the address needs")]
    DeclaredHere,
    /// No statement may stand there.
    #[error(
        "no statement can be put before it: it is the body of a condition or a loop without braces, or part of one"
    )]
    Unfit,
    /// More on its line.
    #[error("the statement does not start the line of the load")]
    NotAlone,
    /// Not always evaluated.
    #[error("it is evaluated under a condition only")]
    Conditional,
    /// What comes before changes it, or may.
    #[error("what the statement does before may change the address")]
    Ordered,
}

/// Whether the file is C or C++ by its name.
pub fn is_c(file: &str) -> bool {
    let extension = file.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| {
        [
            "c", "h", "cc", "cpp", "cxx", "c++", "C", "H", "hh", "hpp", "hxx", "inl", "ipp", "tcc",
        ]
        .contains(&extension)
    })
}

/// Names of the bit-fields that a text declares.
pub fn bit_fields(text: &str) -> BTreeSet<String> {
    let tokens = tokens::tokens(text);
    let all = &tokens.all;
    let declares = |four: &&[tokens::Token<'_>]| {
        let typed = four[0].kind == Kind::Word && four[0].text != "case" && !four[0].is("?");
        let ends = four[3].kind != Kind::Sign || four[3].is("(");
        typed && four[1].kind == Kind::Word && four[2].is(":") && ends
    };
    let first = all.windows(4).filter(declares).map(|four| four[1].text);
    // `unsigned a : 3, b : 4;`
    let next = all.windows(4).filter(|four| {
        four[0].is(",")
            && four[1].kind == Kind::Word
            && four[2].is(":")
            && four[3].kind == Kind::Number
    });
    first
        .chain(next.map(|four| four[1].text))
        .map(str::to_owned)
        .collect()
}

/// Files that a text includes by a name in quotes.
pub fn includes(text: &str) -> Vec<String> {
    let tokens = tokens::tokens(text);
    tokens
        .includes
        .iter()
        .map(|&name| name.to_owned())
        .collect()
}

/// Where to write the prefetch of a load. `bit_fields` are names that have no address.
pub fn insertion(
    text: &str,
    wanted: Wanted<'_>,
    bit_fields: &BTreeSet<String>,
) -> Result<Insertion, Refused> {
    let (line_at, line) = line_of(text, wanted.line).ok_or(Refused::NoLine)?;
    let tokens = tokens::tokens(text);
    let all = &tokens.all;
    let line_end = line_at + line.len();
    let point = wanted
        .column
        .map(|column| line_at + (column as usize).saturating_sub(1));
    let at_point = point.and_then(|point| {
        let hit =
            |token: &tokens::Token<'_>| token.at <= point && point < token.at + token.text.len();
        all.iter().position(hit).filter(|_| point < line_end)
    });
    let on_line = all
        .iter()
        .position(|token| (line_at..line_end).contains(&token.at));
    let anchor = at_point.or(on_line).ok_or(Refused::NoCode)?;
    let statement = statement::around(&tokens, anchor)?;
    let candidates = lvalues(&tokens, statement.from, statement.to);
    let candidates: Vec<Lvalue> = candidates
        .into_iter()
        .filter(|found| agrees(found, &wanted) != Agrees::No)
        .collect();
    let found = choose(&candidates, &wanted, at_point)?;
    if !(line_at..line_end).contains(&all[found.from].at) {
        return Err(Refused::NoExpression);
    }
    refuse_macros(&tokens, &found)?;
    if let Some(member) = found
        .member
        .as_ref()
        .filter(|member| bit_fields.contains(*member))
    {
        return Err(Refused::BitField(member.clone()));
    }
    if !found.indexed && bit_fields.contains(&found.root) && found.member.is_none() {
        return Err(Refused::BitField(found.root));
    }
    statement::may_precede(&tokens, text, statement)?;
    if all[statement.from].at < line_at {
        return Err(Refused::NotAlone);
    }
    statement::means_the_same(&tokens, statement, &found)?;
    let indent = &line[..line.len() - line.trim_start().len()];
    let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
    Ok(Insertion {
        line: wanted.line,
        offset: line_at,
        // The cast takes `volatile` away, which C++ does not do by itself.
        text: format!(
            "{indent}__builtin_prefetch((const void *)&({}), 1, 3);{end}",
            found.text
        ),
        expression: found.text,
    })
}

/// The line with its end, and where it starts.
fn line_of(text: &str, number: u32) -> Option<(usize, &str)> {
    let mut at = 0;
    for (n, line) in (1..).zip(text.split_inclusive('\n')) {
        if n == number {
            return Some((at, line));
        }
        at += line.len();
    }
    None
}

/// What the names of the field and the variable say of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agrees {
    Yes,
    Unknown,
    No,
}

fn agrees(found: &Lvalue, wanted: &Wanted<'_>) -> Agrees {
    let plain = |path: &str| {
        let path = path.split('[').next().unwrap_or_default();
        path.to_owned()
    };
    let field = wanted.field.unwrap_or_default();
    // Of `.a[2].b[1]` the member is `b`, of `[3]` there is none.
    let last = plain(field.rsplit('.').next().unwrap_or_default());
    let of_field = field
        .contains('.')
        .then_some(last)
        .filter(|last| !last.is_empty());
    match (&found.member, of_field) {
        (Some(member), Some(field)) => {
            if *member == field {
                Agrees::Yes
            } else {
                Agrees::No
            }
        }
        (Some(_), None) => Agrees::Unknown,
        // A pointer to the member, or a member by its name alone in a method of its class.
        (None, Some(field)) if found.root == field => Agrees::Yes,
        (None, Some(_)) if found.indexed => Agrees::Unknown,
        (None, Some(_)) => Agrees::No,
        (None, None) => match wanted.object {
            Some(object) if plain(object) == found.root => Agrees::Yes,
            _ if found.indexed => Agrees::Unknown,
            // The variable has another name, so this one is on the stack or in a register.
            Some(_) => Agrees::No,
            None => Agrees::Unknown,
        },
    }
}

fn choose(
    candidates: &[Lvalue],
    wanted: &Wanted<'_>,
    at_point: Option<usize>,
) -> Result<Lvalue, Refused> {
    let named = |found: &&Lvalue| agrees(found, wanted) == Agrees::Yes;
    let touches = |found: &&Lvalue| at_point.is_some_and(|at| found.points.contains(&at));
    // A plain name may be in a register; only the variable's own name says that it is memory.
    let is_memory = |found: &&Lvalue| found.steps > 0 || found.member.is_some() || named(found);
    let exact: Vec<&Lvalue> = candidates
        .iter()
        .filter(touches)
        .filter(is_memory)
        .collect();
    let loose: Vec<&Lvalue> = candidates
        .iter()
        .filter(|found| found.whole)
        .filter(is_memory)
        .collect();
    let mut several = Vec::new();
    for group in [&exact, &loose] {
        let mut certain: Vec<&Lvalue> = group.iter().copied().filter(named).collect();
        if let Some(field) = wanted.field.filter(|_| certain.len() > 1) {
            // Of a member that is a pointer, the field is the pointer itself.
            certain.retain(|found| found.indexed == field.ends_with(']'));
        }
        for choice in [&certain, group] {
            let texts: BTreeSet<&str> = choice.iter().map(|found| found.text.as_str()).collect();
            if let (1, Some(found)) = (texts.len(), choice.first()) {
                return Ok((*found).clone());
            }
            if several.is_empty() {
                several = texts.into_iter().map(str::to_owned).collect();
            }
        }
    }
    Err(if several.is_empty() {
        Refused::NoExpression
    } else {
        Refused::Ambiguous(several)
    })
}

fn refuse_macros(tokens: &Tokens<'_>, found: &Lvalue) -> Result<(), Refused> {
    for token in &tokens.all[found.from..found.to] {
        if token.kind != Kind::Word {
            continue;
        }
        let stands_for = tokens.macros.get(token.text);
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let is_index = token.parent != tokens.all[found.from].parent;
        let fits = match stands_for {
            Some(text) => is_index && is_number(text),
            None => is_index || !statement::looks_like_macro(token.text),
        };
        if !fits {
            return Err(Refused::Macro(token.text.to_owned()));
        }
    }
    Ok(())
}
