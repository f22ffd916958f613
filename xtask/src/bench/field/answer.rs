//! What a program's header says must be found in it.
//!
//! One JSON object after `FIELD:` in the leading comment. An unknown word is an error, not a wish unheard.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::compare::Grade;

/// What a program needs, and what must be said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// What it is written in: advice in another language is wrong.
    pub language: String,
    /// Debian packages.
    #[serde(default)]
    pub apt: Vec<String>,
    /// PyPI packages.
    #[serde(default)]
    pub pip: Vec<String>,
    /// Crates with their versions.
    #[serde(default)]
    pub crates: std::collections::BTreeMap<String, String>,
    /// A Debian source package that is built with debug information, because the binary one has no symbols.
    pub source: Option<Source>,
    /// Seconds that the tool looks.
    #[serde(default = "five")]
    pub seconds: u64,
    /// Each must be found; none: nothing may be.
    pub findings: Vec<Expected>,
    /// Findings that may be there besides, by a part of any name in them or their object's kind.
    #[serde(default)]
    pub others: Vec<String>,
    /// Parts of the text report that would be wrong.
    #[serde(default)]
    pub never: Vec<String>,
}

/// How to build a program from its Debian source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// Source package.
    pub package: String,
    /// Shell words, run in its directory.
    pub build: String,
}

/// One thing that must be found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Any of these kinds is right, for each finding about it: `false-sharing`, `true-sharing`, `mixed-sharing`.
    pub kinds: Vec<String>,
    /// Parts of the names of its variable, type or fields; one must be there. None: nothing can name it.
    pub names: Vec<String>,
    /// All of the names must be there.
    #[serde(default)]
    pub all_names: bool,
    /// Parts of the names of functions that touch it, or of modules that have them: it is known by these where nothing
    /// names it.
    #[serde(default)]
    pub functions: Vec<String>,
    /// What it is when nothing is said of it: `wrong`, or better where it costs little or is hard to see. What is said must
    /// be right all the same.
    #[serde(default)]
    pub missing: Grade,
    /// Kinds of object that it is not.
    #[serde(default)]
    pub not_on: Vec<String>,
    /// The advice must have one of these words.
    #[serde(default)]
    pub advice_says: Vec<String>,
    /// Words that the advice must not have.
    #[serde(default)]
    pub advice_never: Vec<String>,
}

fn five() -> u64 {
    5
}

/// What leads comments in the languages of the programs.
const MARKS: [&str; 2] = ["//", "#"];

/// The lines of the leading comment, without what marks them. A script's first line may name its interpreter.
fn comment(source: &str) -> Vec<&str> {
    let lines = source.lines().skip_while(|line| line.starts_with("#!"));
    lines
        .map_while(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(str::trim)
        .collect()
}

/// The first sentence and the answer of a source. `None` where it has no answer, as of a header file.
pub(super) fn read(source: &str) -> Result<Option<(String, Answer)>> {
    let comment = comment(source);
    let text = comment.join("\n");
    let Some((words, json)) = text.split_once("FIELD:") else {
        return Ok(None);
    };
    let about = words
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .replace('\n', " ");
    let answer = serde_json::Deserializer::from_str(json)
        .into_iter::<Answer>()
        .next()
        .context("nothing after FIELD:")?
        .context("in the answer after FIELD:")?;
    Ok(Some((about, answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"#!/bin/sh
# A server under
# load.
#
# Known by its source.
#
# FIELD: {"language": "c", "findings": [
#   {"kinds": ["true-sharing"], "names": ["a"]}]}
exit
"#;

    #[test]
    fn the_header_of_a_script_gives_sentence_and_answer() {
        let (about, answer) = read(SOURCE).unwrap().unwrap();
        assert_eq!(about, "A server under load.");
        assert_eq!(answer.findings[0].names, ["a"]);
        assert_eq!(answer.seconds, 5);
    }

    #[test]
    fn a_file_without_an_answer_is_no_program_and_a_misspelt_answer_is_an_error() {
        assert!(read("// Only a header.\nint x;\n").unwrap().is_none());
        assert!(read(&SOURCE.replace("\"names\"", "\"nmaes\"")).is_err());
        assert!(read(&SOURCE.replace("FIELD: {", "FIELD: ")).is_err());
    }
}
