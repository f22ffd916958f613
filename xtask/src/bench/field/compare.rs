//! A report held against what is known: by what it means, not by its figures.

#[cfg(test)]
mod tests;

use cohtrace_tests::report::{Finding, Report};
use serde::Deserialize;

use super::answer::{Answer, Expected};

/// How right a report is. In the order of the table's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    /// All that must be said is said, and nothing that is wrong.
    Right,
    /// The kind is right; a name is missing, or something is said that nobody expected.
    Partly,
    /// Something is missing, of a wrong kind, or advised wrongly.
    #[default]
    Wrong,
}

/// A grade with what is not right.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The worst of the reasons.
    pub grade: Grade,
    /// Sentences.
    pub reasons: Vec<String>,
    /// The kind that the costliest finding about each expected thing has; `None` where there is none. In the answer's order.
    pub kinds: Vec<Option<String>>,
}

impl Verdict {
    /// Without a reason.
    pub(super) fn of(grade: Grade) -> Verdict {
        Verdict {
            grade,
            reasons: Vec::new(),
            kinds: Vec::new(),
        }
    }

    fn add(&mut self, grade: Grade, reason: String) {
        self.grade = self.grade.max(grade);
        // Two lines of one thing are told alike.
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// Words of advice that only one language has.
const WORDS: [(&str, &[&str]); 5] = [
    ("c", &["_Alignas"]),
    ("c++", &["alignas(", "hardware_destructive"]),
    ("rust", &["repr(align", "CachePadded"]),
    ("go", &["CacheLinePad"]),
    ("java", &["@Contended"]),
];

/// Judges a report by the answer.
pub(super) fn compare(answer: &Answer, report: &Report, text: &str) -> Verdict {
    let mut verdict = Verdict::of(Grade::Right);
    let findings: Vec<Shown> = Shown::all(report);
    let mut explained = vec![false; findings.len()];
    for expected in &answer.findings {
        one(expected, &findings, &mut explained, report, &mut verdict);
    }
    for (shown, explained) in findings.iter().zip(&explained) {
        if !explained && !answer.others.iter().any(|other| shown.has(other)) {
            let grade = if answer.findings.is_empty() {
                Grade::Wrong
            } else {
                Grade::Partly
            };
            verdict.add(grade, format!("also said: {}", shown.described()));
        }
        for (language, words) in WORDS {
            let foreign = words
                .iter()
                .filter(|word| shown.finding.advice.contains(**word));
            for word in foreign.filter(|_| language != answer.language) {
                verdict.add(
                    Grade::Wrong,
                    format!("advice for {language} ({word}) on {}", shown.described()),
                );
            }
        }
    }
    let prefetch = "__builtin_prefetch";
    if !["c", "c++"].contains(&&*answer.language) && text.contains(prefetch) {
        verdict.add(
            Grade::Partly,
            format!("load hints in the words of C ({prefetch})"),
        );
    }
    for word in answer.never.iter().filter(|word| text.contains(&***word)) {
        verdict.add(Grade::Wrong, format!("the report says {word:?}"));
    }
    verdict
}

/// Judges what is said of one thing that must be found, in each finding about it.
fn one(
    expected: &Expected,
    findings: &[Shown],
    explained: &mut [bool],
    report: &Report,
    verdict: &mut Verdict,
) {
    let anything = expected.names.is_empty() && expected.functions.is_empty();
    let by_code = |shown: &Shown| {
        expected
            .functions
            .iter()
            .any(|name| shown.is_touched_by(name))
    };
    let which = |about: &dyn Fn(&Shown) -> bool| -> Vec<usize> {
        (0..findings.len())
            .filter(|&n| about(&findings[n]))
            .collect()
    };
    let named = which(&|shown| shown.is_named(&expected.names));
    let is_named = !named.is_empty();
    let about = if is_named {
        named
    } else {
        which(&|shown| anything || by_code(shown))
    };
    for &n in &about {
        explained[n] = true;
        said(expected, &findings[n], verdict);
    }
    let kind = about.first().map(|&n| findings[n].finding.kind.clone());
    verdict.kinds.push(kind);
    let wanted = expected.kinds.join(" or ");
    match about.first() {
        None if expected.missing == Grade::Right => {}
        None => {
            let below: Vec<&str> = (report.insignificant.iter())
                .filter(|name| expected.names.iter().any(|wanted| name.contains(&**wanted)))
                .map(|name| &**name)
                .collect();
            let names = match [&expected.names[..], &expected.functions].concat() {
                names if names.is_empty() => "anything".to_owned(),
                names => names.join(", "),
            };
            let below = if below.is_empty() {
                String::new()
            } else {
                format!(" (below the bar: {})", below.join(", "))
            };
            verdict.add(
                expected.missing,
                format!("missing: {wanted} of {names}{below}"),
            );
        }
        Some(&chief) => {
            let has = |name: &&String| findings[chief].is_named(std::slice::from_ref(*name));
            let missing: Vec<&str> = (expected.names.iter())
                .filter(|name| !has(name))
                .map(|name| &**name)
                .collect();
            let all_there = !expected.all_names || missing.is_empty();
            let is_right = expected.names.is_empty() || is_named && all_there;
            if !is_right {
                let described = findings[chief].described();
                verdict.add(
                    Grade::Partly,
                    format!("not named ({}): {described}", missing.join(", ")),
                );
            }
        }
    }
}

/// Judges one finding about an expected thing: its kind, its place, its advice.
fn said(expected: &Expected, shown: &Shown, verdict: &mut Verdict) {
    let described = shown.described();
    let is_kind = expected.kinds.contains(&shown.finding.kind);
    if !is_kind {
        verdict.add(
            Grade::Wrong,
            format!("not {}: {described}", expected.kinds.join(" or ")),
        );
    }
    if expected.not_on.contains(&shown.finding.object_kind) {
        verdict.add(
            Grade::Wrong,
            format!("not on the {}: {described}", shown.finding.object_kind),
        );
    }
    for word in expected
        .advice_never
        .iter()
        .filter(|word| shown.finding.advice.contains(&***word))
    {
        verdict.add(Grade::Wrong, format!("advises {word:?} on {described}"));
    }
    let says = &expected.advice_says;
    if is_kind
        && !says.is_empty()
        && !says
            .iter()
            .any(|word| shown.finding.advice.contains(&**word))
    {
        verdict.add(
            Grade::Partly,
            format!("advises nothing like {} on {described}", says.join(", ")),
        );
    }
}

/// A finding as a reader sees it.
struct Shown<'a> {
    finding: &'a Finding,
}

impl Shown<'_> {
    fn all(report: &Report) -> Vec<Shown<'_>> {
        let findings = report.findings.iter();
        findings.map(|finding| Shown { finding }).collect()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let object = [&self.finding.object_name, &self.finding.object_type];
        let fields = self.finding.accesses.iter().map(|access| &access.field);
        object
            .into_iter()
            .chain(fields)
            .flatten()
            .map(|name| &**name)
    }

    fn is_named(&self, any: &[String]) -> bool {
        self.names()
            .any(|name| any.iter().any(|wanted| name.contains(&**wanted)))
    }

    /// By code whose function, one inlined there, or module has the word in its name.
    fn is_touched_by(&self, word: &str) -> bool {
        self.finding.accesses.iter().any(|access| {
            let code = &access.code;
            let mut names = code.inlined.iter().chain(&code.symbol).chain(&code.module);
            names.any(|name| name.contains(word))
        })
    }

    /// Whether the word is in any name, or is the kind of the object.
    fn has(&self, word: &str) -> bool {
        self.finding.object_kind == word
            || self.is_touched_by(word)
            || self.names().any(|name| name.contains(word))
    }

    fn described(&self) -> String {
        let finding = self.finding;
        let name = self.names().next().unwrap_or("without name");
        let mut code: Vec<&str> = (finding.accesses.iter())
            .filter_map(|access| access.code.symbol.as_deref())
            .map(|symbol| symbol.rsplit_once("::").map_or(symbol, |(_, last)| last))
            .collect();
        code.sort_unstable();
        code.dedup();
        code.truncate(2);
        // Without figures: runs that say the same are counted together.
        format!(
            "{} of {name} ({}) by {}",
            finding.kind,
            finding.object_kind,
            if code.is_empty() {
                "code without names".to_owned()
            } else {
                code.join(" and ")
            }
        )
    }
}
