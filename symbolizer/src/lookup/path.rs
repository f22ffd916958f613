//! The text that names a variable, or a part of one: `counters.hits`, `ns::table.slots[1]`, `a.c:calls`.

use super::VariableError;

/// A text longer than this names nothing.
const LONGEST: usize = 4096;

/// One step from a variable into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'t> {
    /// `.hits`, `.0`.
    Field(&'t str),
    /// `[3]`.
    Index(u64),
}

/// What a text asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query<'t> {
    /// `a.c` of `a.c:counters`.
    pub(super) file: Option<&'t str>,
    /// All ways to cut the rest into a variable and its steps, the shortest name first: a symbol may have dots
    /// in it (`calls.0`).
    pub(super) cuts: Vec<(&'t str, &'t str)>,
}

impl<'t> Query<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Query<'t>, VariableError> {
        let wrong = |problem| VariableError::Syntax {
            text: text.chars().take(80).collect(),
            problem,
        };
        let whole = text;
        if whole.len() > LONGEST {
            return Err(wrong("it is too long"));
        }
        let arrow = |(at, character)| character == '-' && whole[at..].starts_with("->");
        if outside(whole).any(arrow) {
            return Err(wrong(
                "`->` follows a pointer, and what a pointer points to is no part of the variable: give its address",
            ));
        }
        let colon = outside(whole).find(|&(at, character)| {
            character == ':' && !whole[at + 1..].starts_with(':') && !whole[..at].ends_with(':')
        });
        let (file, text) = match colon {
            Some((at, _)) => (Some(&whole[..at]), &whole[at + 1..]),
            None => (None, whole),
        };
        let ends =
            outside(text).filter(|&(at, character)| at > 0 && matches!(character, '.' | '['));
        let ends = ends.map(|(at, _)| at).chain([text.len()]);
        let cuts: Vec<_> = ends.map(|at| text.split_at(at)).collect();
        match cuts.first() {
            Some((name, _)) if name.is_empty() || name.starts_with(['.', '[']) => {
                Err(wrong("it does not start with the name of a variable"))
            }
            _ if file == Some("") => Err(wrong("there is no file before the colon")),
            _ => Ok(Query { file, cuts }),
        }
    }
}

/// The steps after the variable's name.
pub(super) fn steps(text: &str) -> Result<Vec<Step<'_>>, VariableError> {
    let wrong = |problem| VariableError::Syntax {
        text: text.to_owned(),
        problem,
    };
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (digits, behind) = after
                .split_once(']')
                .ok_or_else(|| wrong("a `[` has no `]`"))?;
            let index = digits.trim().parse();
            steps.push(Step::Index(
                index.map_err(|_| wrong("an index is a number: [0], [1], .."))?,
            ));
            rest = behind;
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (field, behind) = after.split_at(end);
            if field.is_empty() {
                return Err(wrong("there is no field after a dot"));
            }
            steps.push(Step::Field(field));
            rest = behind;
        } else {
            return Err(wrong("after `]` there can be a `.` or a `[`"));
        }
    }
    Ok(steps)
}

/// The names between the `::` of a path.
pub(super) fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, character) in outside(path) {
        if character == ':' && at >= start && path[at..].starts_with("::") {
            parts.push(&path[start..at]);
            start = at + 2;
        }
    }
    parts.push(&path[start..]);
    parts
}

/// How a wanted path fits a variable's: as a whole (`true`), or without some of its outer scopes.
pub(super) fn fits(wanted: &[&str], candidate: &str) -> Option<bool> {
    const UNNAMED: &str = "(anonymous namespace)";
    let mut parts = components(candidate);
    if !wanted.contains(&UNNAMED) {
        parts.retain(|part| *part != UNNAMED);
    }
    let outer = parts.len().checked_sub(wanted.len())?;
    let same = parts[outer..]
        .iter()
        .zip(wanted)
        .all(|(part, wanted)| is_called(part, wanted));
    same.then_some(outer == 0)
}

/// Whether one component is what was asked for; parameters and template arguments need not be said.
pub(super) fn is_called(part: &str, wanted: &str) -> bool {
    let bare = |opening| match part.find(opening) {
        Some(at) if at > 0 && !wanted.contains(opening) => &part[..at],
        _ => part,
    };
    part == wanted || bare('(') == wanted || bare('<') == wanted
}

/// The characters outside of any brackets but `[]`, with their positions.
fn outside(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut depth = 0usize;
    let mut before = '\0';
    text.char_indices().filter(move |&(_, character)| {
        let arrow = before == '-' && character == '>';
        before = character;
        match character {
            '<' | '(' | '{' => {
                depth += 1;
                false
            }
            '>' | ')' | '}' if !arrow => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(text: &str) -> Vec<(&str, &str)> {
        Query::parse(text).unwrap().cuts
    }

    #[test]
    fn a_text_is_cut_at_dots_and_brackets_outside_of_template_arguments() {
        assert_eq!(cuts("counters"), [("counters", "")]);
        assert_eq!(
            cuts("a.b[1].c"),
            [
                ("a", ".b[1].c"),
                ("a.b", "[1].c"),
                ("a.b[1]", ".c"),
                ("a.b[1].c", "")
            ]
        );
        assert_eq!(
            cuts("ns::Slot<1.5>::total.hits"),
            [
                ("ns::Slot<1.5>::total", ".hits"),
                ("ns::Slot<1.5>::total.hits", "")
            ]
        );
    }

    #[test]
    fn a_single_colon_ends_the_name_of_a_file_and_a_double_one_does_not() {
        let of = |text| {
            let query = Query::parse(text).unwrap();
            (query.file, query.cuts[0])
        };
        assert_eq!(of("src/a.c:calls.n"), (Some("src/a.c"), ("calls", ".n")));
        assert_eq!(of("ns::calls"), (None, ("ns::calls", "")));
        assert_eq!(of("a.cpp:ns::calls"), (Some("a.cpp"), ("ns::calls", "")));
    }

    #[test]
    fn texts_that_name_nothing_say_why() {
        let why = |text: &str| Query::parse(text).unwrap_err().to_string();
        assert!(why("").contains("does not start with the name"));
        assert!(why(".hits").contains("does not start with the name"));
        assert!(why(":x").contains("no file before the colon"));
        assert!(why("p->next").contains("give its address"));
        assert!(why(&"x".repeat(5000)).contains("too long"));
        let why = |text: &str| steps(text).unwrap_err().to_string();
        assert!(why("[1").contains("no `]`"));
        assert!(why("[x]").contains("an index is a number"));
        assert!(why("[-1]").contains("an index is a number"));
        assert!(why(".").contains("no field after a dot"));
        assert!(why("..a").contains("no field after a dot"));
        assert!(why("[1]a").contains("after `]`"));
    }

    #[test]
    fn steps_are_fields_and_indices_in_order() {
        use Step::{Field, Index};
        assert_eq!(steps("").unwrap(), []);
        assert_eq!(
            steps(".slots[1][20].0.served").unwrap(),
            [
                Field("slots"),
                Index(1),
                Index(20),
                Field("0"),
                Field("served")
            ]
        );
    }

    #[test]
    fn outer_scopes_and_arguments_need_not_be_said_but_must_be_right() {
        let fits = |wanted: &str, candidate: &str| fits(&components(wanted), candidate);
        assert_eq!(fits("a::b", "a::b"), Some(true));
        assert_eq!(fits("b", "a::b"), Some(false));
        assert_eq!(fits("c::b", "a::b"), None);
        assert_eq!(fits("a::b::c", "b::c"), None);
        assert_eq!(
            fits("ns::hidden", "ns::(anonymous namespace)::hidden"),
            Some(true)
        );
        assert_eq!(
            fits("Stats::add::calls", "ns::Stats::add(long)::calls"),
            Some(false)
        );
        assert_eq!(fits("Slot::total", "Slot<int>::total"), Some(true));
        assert_eq!(fits("Slot<int>::total", "Slot<int>::total"), Some(true));
        assert_eq!(fits("Slot<long>::total", "Slot<int>::total"), None);
        assert_eq!(fits("cod", "code"), None);
    }
}
