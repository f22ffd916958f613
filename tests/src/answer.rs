//! The answer key: what a workload's source says the tool must find in it.
//!
//! The leading comment of each source file holds one JSON object after `ANSWER:` for each variant that can be
//! built. Lines are named by tags (`"line": "@hits"` means the line that ends in `// @hits`), so that
//! editing a workload does not break its key. An unknown word in a key is an error, not a wish unheard.

use anyhow::{Context, bail};
use serde::Deserialize;

/// Which build of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// As a programmer first writes it.
    Plain,
    /// The same source with what is written apart on lines of its own.
    Padded,
    /// The same source without the store that makes a pair of a load, or without the load; the line is still shared.
    Unpaired,
    /// The same source with each read-modify-write as a load, an addition and a store.
    Split,
    /// The same source with `mfence` as its barrier.
    Mfence,
    /// The same source with an `xchg` with private memory as its barrier.
    Xchg,
    /// The same source with the shared memory as the barrier's own operand.
    Operand,
    /// The same source with private memory in the place of what is shared.
    Private,
    /// The same source without a pause in its loops that wait.
    Unpaused,
    /// The same source with work in its loops that wait.
    Busy,
    /// The same source with a store to what is only read.
    Stored,
    /// The same source with a pointer that stays in its register.
    Kept,
    /// The same source where both threads use one part.
    Common,
}

impl Variant {
    /// As the key spells it.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::Padded => "padded",
            Variant::Unpaired => "unpaired",
            Variant::Split => "split",
            Variant::Mfence => "mfence",
            Variant::Xchg => "xchg",
            Variant::Operand => "operand",
            Variant::Private => "private",
            Variant::Unpaused => "unpaused",
            Variant::Busy => "busy",
            Variant::Stored => "stored",
            Variant::Kept => "kept",
            Variant::Common => "common",
        }
    }
}

/// What must have seen an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Observer {
    /// Samples, and windows where the machine has breakpoints.
    #[default]
    Samples,
    /// Windows: a run that had none has not given the answer.
    Windows,
    /// Samples of threads that spin in the kernel for a lock, which must be found.
    KernelLocks,
    /// `--heap`, whose allocations a test of its own compares (`tests/tests/heap.rs`).
    Allocations,
}

/// How to build one variant and what the tool must say about it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Which one this is.
    pub variant: Variant,
    /// What must have seen it.
    #[serde(default)]
    pub observer: Observer,
    /// Compiler flags besides the usual `-O2 -g`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// When there, the source is compiled a second time with these flags as a shared library beside the program.
    pub library_flags: Option<Vec<String>>,
    /// Whether symbols and debug information are removed.
    #[serde(default)]
    pub strip: bool,
    /// Whether the code that runs is known by name only (a compiler made it at run time, or a library is without debug information), so that no line may be told.
    #[serde(default)]
    pub no_lines: bool,
    /// Arguments the tool needs besides the usual ones.
    #[serde(default)]
    pub tool_arguments: Vec<String>,
    /// Seconds that the tool looks; many threads take more windows to tell.
    #[serde(default = "two")]
    pub seconds: u64,
    /// Processes that must take part in each finding.
    #[serde(default = "one")]
    pub processes: usize,
    /// All that must be found, and nothing else may.
    pub findings: Vec<ExpectedFinding>,
    /// Why there may be findings besides, where there may.
    pub other_findings_because: Option<String>,
    /// Globals whose line is shared too rarely to be a finding. Says why `findings` is empty.
    #[serde(default)]
    pub insignificant: Vec<String>,
    /// Globals that are not even listed as insignificant.
    #[serde(default)]
    pub not_listed: Vec<String>,
    /// Read-then-write pairs that must be listed; no other pair may have a hint. Other pairs without one are free.
    #[serde(default)]
    pub pairs: Vec<ExpectedPair>,
    /// Tags of loads that no pair may begin with, hint or not.
    #[serde(default)]
    pub no_pair: Vec<String>,
    /// Why a window may leave a finding unconfirmed, where one may.
    pub unconfirmed_because: Option<String>,
}

fn one() -> usize {
    1
}

fn two() -> u64 {
    2
}

/// One line that must be reported.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFinding {
    /// `false-sharing`, `true-sharing` or `mixed-sharing`.
    pub kind: String,
    /// What lies on the line.
    pub object: ExpectedObject,
    /// Least share of the time, 0..1, that CPUs were seen waiting for it.
    #[serde(default)]
    pub least_stalled: f64,
    /// Parts of the sentences that say why.
    #[serde(default)]
    pub says: Vec<String>,
    /// Who touches what, where.
    pub fields: Vec<ExpectedField>,
}

/// What lies on a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedObject {
    /// `global`, `heap`, `stack`, `tls` or `mapping`.
    pub kind: String,
    /// Variable, where one name is right.
    pub name: Option<String>,
    /// How the source comes to memory without a name: `recs[3]`.
    pub called: Option<String>,
    /// Type, where one name is right; `struct counters` and `counters` are the same.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
}

/// One access that must be part of a finding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedField {
    /// Path from the variable: `table.slots[1].served`. None where nothing can name it.
    pub field: Option<String>,
    /// Bytes from the finding's other fields; any common base will do.
    pub offset: Option<u64>,
    /// `load`, `store` or `rmw`.
    pub op: String,
    /// The function that was compiled.
    pub function: String,
    /// The function that was inlined into it and touches the field.
    pub inlined: Option<String>,
    /// The tag; see [`tagged_line`].
    pub line: String,
    /// Name of a thread that does it.
    pub thread: Option<String>,
    /// Where the CPU stood for much of its cost, where that matters.
    pub wait: Option<ExpectedWait>,
}

/// Where a CPU stands while it waits for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpectedWait {
    /// At the instruction itself, always.
    Instruction,
    /// At a full barrier behind it, for most of it.
    Barrier,
    /// In a loop that reads it again and again, for a tenth of it at least: the rest may be the last read, which
    /// waits for the line.
    Spin,
}

/// A load that is followed by a store to its line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPair {
    /// The load: the only half of the pair that a hint can change.
    pub load: ExpectedCode,
    /// The next access to the line by the same CPU.
    pub store: ExpectedCode,
    /// What the store is: `store`, or `rmw` as in a compare-and-swap.
    pub op: String,
    /// Whether one instruction does both.
    #[serde(default)]
    pub same_instruction: bool,
    /// Whether fetching the line for ownership is advised.
    pub hint: bool,
}

/// Code that touches a field.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCode {
    /// The function that was compiled.
    pub function: String,
    /// The function that was inlined into it and touches the field.
    pub inlined: Option<String>,
    /// The tag; see [`tagged_line`].
    pub line: String,
    /// Path from the variable. None where nothing can name it.
    pub field: Option<String>,
}

impl From<&ExpectedField> for ExpectedCode {
    fn from(field: &ExpectedField) -> ExpectedCode {
        ExpectedCode {
            function: field.function.clone(),
            inlined: field.inlined.clone(),
            line: field.line.clone(),
            field: field.field.clone(),
        }
    }
}

/// The answers in a source's leading comment.
pub fn answers(source: &str) -> anyhow::Result<Vec<Answer>> {
    let comment: String = source
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut answers = Vec::new();
    for json in comment.split("ANSWER:").skip(1) {
        let answer = serde_json::Deserializer::from_str(json)
            .into_iter::<Answer>()
            .next()
            .context("nothing after ANSWER:")?
            .with_context(|| format!("in the answer {}", json.trim()))?;
        for tag in tags(&answer) {
            tagged_line(source, tag)?;
        }
        answers.push(answer);
    }
    if answers.is_empty() {
        bail!("no ANSWER: in the leading comment");
    }
    Ok(answers)
}

/// Every tag that an answer names.
fn tags(answer: &Answer) -> impl Iterator<Item = &String> {
    let fields = answer.findings.iter().flat_map(|finding| &finding.fields);
    let pairs = answer.pairs.iter();
    fields
        .map(|field| &field.line)
        .chain(pairs.flat_map(|pair| [&pair.load.line, &pair.store.line]))
        .chain(&answer.no_pair)
}

/// Number of the one line that ends in the comment `// @tag`, from 1.
pub fn tagged_line(source: &str, tag: &str) -> anyhow::Result<u32> {
    let ending = format!("// {tag}");
    let mut lines = (1u32..)
        .zip(source.lines())
        .filter(|(_, line)| line.trim_end().ends_with(&ending));
    match (lines.next(), lines.next()) {
        (Some((number, _)), None) if tag.starts_with('@') => Ok(number),
        (Some(_), Some(_)) => bail!("more than one line ends in `{ending}`"),
        _ => bail!("no line ends in `{ending}`, or the tag has no @"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"// Two counters.
//
// ANSWER: {"variant": "plain", "findings": [
//   {"kind": "false-sharing", "object": {"kind": "global", "name": "c"}, "fields": [
//     {"field": "c.a", "op": "rmw", "function": "f", "line": "@a"}]}]}
// ANSWER: {"variant": "padded", "flags": ["-DPADDED"], "findings": []}

// ANSWER: not in the leading comment
void f() {
    c.a++; // @a
}
"#;

    #[test]
    fn every_answer_of_the_leading_comment_is_read() {
        let answers = answers(SOURCE).unwrap();
        assert_eq!(answers.len(), 2);
        assert_eq!(answers[0].variant, Variant::Plain);
        assert_eq!(
            answers[0].findings[0].fields[0].field.as_deref(),
            Some("c.a")
        );
        assert_eq!(answers[1].flags, ["-DPADDED"]);
        assert!(answers[1].findings.is_empty());
    }

    #[test]
    fn a_tag_names_its_line_wherever_it_moves() {
        assert_eq!(tagged_line(SOURCE, "@a").unwrap(), 10);
        assert_eq!(tagged_line(&format!("\n{SOURCE}"), "@a").unwrap(), 11);
        assert!(tagged_line(SOURCE, "@b").is_err());
        assert!(tagged_line(&SOURCE.replace('}', "// @a"), "@a").is_err());
    }

    #[test]
    fn pairs_are_read_and_their_lines_anchored() {
        let pair = r#""findings": [], "no_pair": ["@a"], "pairs": [{"hint": true, "op": "store",
//   "load": {"function": "f", "line": "@a", "field": "c.a"}, "store": {"function": "f", "line": "@a"}}]}"#;
        let source = SOURCE.replace("\"findings\": []}", pair);
        assert_ne!(source, SOURCE);
        let padded = &answers(&source).unwrap()[1];
        assert_eq!(padded.pairs[0].load.field.as_deref(), Some("c.a"));
        assert!(padded.pairs[0].hint && !padded.pairs[0].same_instruction);
        for (from, to) in [
            (
                "\"load\": {\"function\": \"f\", \"line\": \"@a\"",
                "\"load\": {\"function\": \"f\", \"line\": \"@b\"",
            ),
            ("[\"@a\"]", "[\"@b\"]"),
            ("\"hint\": true, ", ""),
        ] {
            let broken = source.replace(from, to);
            assert_ne!(broken, source);
            assert!(answers(&broken).is_err(), "{to} was taken");
        }
    }

    #[test]
    fn a_misspelt_or_unanchored_key_is_refused() {
        assert!(answers(&SOURCE.replace("\"function\"", "\"functoin\"")).is_err());
        assert!(answers(&SOURCE.replace("// @a", "")).is_err());
        assert!(answers(&SOURCE.replace("ANSWER:", "")).is_err());
    }
}
