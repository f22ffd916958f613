//! Names like the one that was asked for in vain.

use std::collections::BTreeSet;

use super::{
    path::{Query, components},
    plain_name,
};
use crate::{Module, demangle::demangle, object::without_brackets};

/// Longer names are not compared.
const LONGEST: usize = 64;
/// Names compared.
const MOST_NAMES: usize = 1 << 18;

impl Module {
    /// At most `most` variables with names like that of `text`, nearest first, each with the number of letters that
    /// differ in its last component. Nothing when none comes near.
    pub fn similar_variables(&self, text: &str, most: usize) -> Vec<(usize, String)> {
        let Ok(query) = Query::parse(text.trim()) else {
            return Vec::new();
        };
        let name = query.cuts.first().map_or("", |(name, _)| name);
        let wanted = components(name).pop().unwrap_or(name);
        let mut near = Near::new(wanted, most);
        let mut compared = 0;
        self.each_described(|view, variable, _| {
            compared += 1;
            if compared > MOST_NAMES {
                return;
            }
            if let Some(plain) = plain_name(view, variable.die) {
                let whole = || view.qualified_name(variable.die);
                near.offer(&plain, || whole().unwrap_or_else(|| plain.clone()));
            }
        });
        if compared == 0 {
            let symbols = self.symbols();
            let all = symbols.objects.iter().chain(symbols.thread_locals.iter());
            for span in all.take(MOST_NAMES) {
                let path = without_brackets(demangle(&self.symbol_text(span.value)));
                let last = components(&path).pop().unwrap_or(&path);
                near.offer(last, || path.clone());
            }
        }
        near.all()
    }

    /// At most `most` functions with names like that of `text`, by the symbols, nearest first, each with the number of
    /// letters that differ in its last component; 0 for one that is called so but for the case of its letters. Names are
    /// without parameters.
    pub fn similar_functions(&self, text: &str, most: usize) -> Vec<(usize, String)> {
        let wanted = components(text.trim()).pop().unwrap_or(text);
        let mut near = Near::new(wanted, most);
        let symbols = self.symbols();
        let all = symbols.functions.iter().chain(symbols.labels.iter());
        for span in all.take(MOST_NAMES) {
            let path = without_parameters(&demangle(&self.symbol_text(span.value))).to_owned();
            let last = components(&path).pop().unwrap_or(&path);
            // Of an instance of a template.
            let last = last.split('<').next().unwrap_or(last);
            near.offer(last, || path.clone());
        }
        near.all()
    }
}

/// The names that came nearest.
struct Near<'w> {
    wanted: &'w str,
    most: usize,
    found: BTreeSet<(usize, String)>,
}

impl Near<'_> {
    fn new(wanted: &str, most: usize) -> Near<'_> {
        Near {
            wanted,
            most,
            found: BTreeSet::new(),
        }
    }

    /// Compares the last component of a name.
    fn offer(&mut self, last: &str, whole: impl FnOnce() -> String) {
        if let Some(distance) = distance(self.wanted, last) {
            self.found.insert((distance, whole()));
            // The set is sorted: what is cut off is farther than all that stays.
            if self.found.len() > self.most {
                self.found.pop_last();
            }
        }
    }

    /// Nearest first.
    fn all(self) -> Vec<(usize, String)> {
        self.found.into_iter().collect()
    }
}

/// The name of a function without its parameters: `ns::f` of `ns::f(int)`.
pub fn without_parameters(name: &str) -> &str {
    let opens =
        |at: usize| at > 0 && !name[..at].ends_with("::") && !name[..at].ends_with("operator");
    let mut parentheses = name.match_indices('(').map(|(at, _)| at);
    parentheses
        .find(|at| opens(*at))
        .map_or(name, |at| &name[..at])
}

/// Letters to change, insert or remove to make one name of the other, case aside; `None` for names that are too
/// different to be meant. A name that holds the other is near, however much longer it is.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    if wanted.is_empty() || wanted.len() > LONGEST || name.len() > LONGEST {
        return None;
    }
    let lower = |text: &str| text.to_ascii_lowercase().into_bytes();
    let (wanted, name) = (lower(wanted), lower(name));
    let limit = (wanted.len() / 3).max(1);
    let distance = edits(&wanted, &name);
    if distance <= limit {
        return Some(distance);
    }
    let holds = wanted.len() >= 3 && name.windows(wanted.len()).any(|part| part == wanted);
    holds.then_some(limit + 1)
}

/// The Levenshtein distance, a row at a time.
fn edits(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, other) in to.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = change.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, edits, without_parameters};

    #[test]
    fn a_function_is_called_what_stands_before_its_parameters() {
        for (name, expected) in [
            ("main", "main"),
            ("ns::f(int, char (*)[3])", "ns::f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("a::(anonymous namespace)::f", "a::(anonymous namespace)::f"),
            ("call::operator()(int) const", "call::operator()"),
            ("", ""),
        ] {
            assert_eq!(without_parameters(name), expected);
        }
    }

    #[test]
    fn edits_are_counted_as_by_hand() {
        let edits = |from: &str, to: &str| edits(from.as_bytes(), to.as_bytes());
        assert_eq!(edits("", ""), 0);
        assert_eq!(edits("abc", ""), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("counter", "counters"), 1);
        assert_eq!(edits("flaw", "lawn"), 2);
    }

    #[test]
    fn only_names_that_could_be_meant_are_near() {
        assert_eq!(distance("counter", "counters"), Some(1));
        assert_eq!(distance("COUNTERS", "counters"), Some(0));
        assert_eq!(distance("hits", "total_hits_by_cpu"), Some(2));
        assert_eq!(distance("ab", "xaby"), None);
        assert_eq!(distance("counters", "table"), None);
        assert_eq!(distance("x", "y"), Some(1));
        assert_eq!(distance("", "y"), None);
    }
}
