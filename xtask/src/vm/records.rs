//! What the guest wrote of each command: exit code, output, errors.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::report::Report;
use serde_json::Value;

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Exit code, 128 and the signal's number, or 124 where it took longer than it may.
    pub code: i32,
    pub output: String,
    pub errors: String,
}

/// All that came from a guest, which may have died on the way.
#[derive(Debug, Default)]
pub(super) struct Records {
    records: BTreeMap<String, Record>,
    /// Why the guest did not end by itself, if so.
    pub trouble: Option<String>,
}

/// What begins the lines between records; no line of a report does.
const MARK: &str = "@@ ";

impl Records {
    /// Whether nothing was written.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Reads what `init.sh` writes. A record without its end is left out.
    pub(super) fn parse(text: &str) -> Records {
        let mut records = BTreeMap::new();
        let mut open: Option<(&str, Record, bool)> = None;
        for line in text.lines() {
            match (line.strip_prefix(MARK), &mut open) {
                (Some("errors"), Some((_, _, errors))) => *errors = true,
                (Some("end"), _) => {
                    let ended = open.take();
                    records.extend(ended.map(|(name, record, _)| (name.to_owned(), record)));
                }
                (Some(heading), _) => open = begin(heading),
                (None, Some((_, record, errors))) => {
                    let text = if *errors {
                        &mut record.errors
                    } else {
                        &mut record.output
                    };
                    text.push_str(line);
                    text.push('\n');
                }
                (None, None) => {}
            }
        }
        Records {
            records,
            trouble: None,
        }
    }

    /// A command by its name in `init.sh`.
    pub(super) fn get(&self, name: &str) -> Result<&Record> {
        let trouble = self.trouble.as_deref().unwrap_or("its record is not there");
        let record = self.records.get(name);
        record.with_context(|| format!("the guest did not come to the end of `{name}`: {trouble}"))
    }

    /// A command that must have succeeded.
    pub(super) fn succeeded(&self, name: &str) -> Result<&Record> {
        let record = self.get(name)?;
        record.ended(name, 0)?;
        Ok(record)
    }

    /// The JSON that a command printed, which must have succeeded.
    pub(super) fn json(&self, name: &str) -> Result<Value> {
        let output = &self.succeeded(name)?.output;
        serde_json::from_str(output).with_context(|| format!("`{name}` printed {output}"))
    }

    /// The report that a command printed, under `--check`: its exit code must be what the report says.
    pub(super) fn checked(&self, name: &str) -> Result<Report> {
        let record = self.get(name)?;
        let report = record.report(name)?;
        let conclusive = report.json["run"]["conclusive"] == true;
        let code = match (report.findings.is_empty(), conclusive) {
            (false, _) => 1,
            (true, true) => 0,
            (true, false) => 3,
        };
        record.ended(name, code)?;
        Ok(report)
    }

    /// The report that a command printed, which must have succeeded.
    pub(super) fn report(&self, name: &str) -> Result<Report> {
        self.succeeded(name)?.report(name)
    }
}

impl Record {
    fn report(&self, name: &str) -> Result<Report> {
        let said = || format!("`{name}` ended with {}: {}", self.code, self.errors.trim());
        Report::parse(&self.output).with_context(said)
    }

    fn ended(&self, name: &str, code: i32) -> Result<()> {
        ensure!(
            self.code == code,
            "`{name}` ended with {} and not {code}: {}",
            self.code,
            self.errors.trim()
        );
        Ok(())
    }
}

/// `NAME CODE`.
fn begin(heading: &str) -> Option<(&str, Record, bool)> {
    let (name, code) = heading.split_once(' ')?;
    let record = Record {
        code: code.parse().ok()?,
        output: String::new(),
        errors: String::new(),
    };
    Some((name, record, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        @@ release 0\n6.12.117\n\n@@ errors\n\n@@ end\n\
        @@ doctor 2\n\n@@ errors\ncohtrace: no\n@@ end\n\
        @@ attach 0\n{\"schema\"";

    #[test]
    fn commands_are_told_apart_and_their_errors_from_their_output() {
        let records = Records::parse(TEXT);
        assert_eq!(
            records.succeeded("release").unwrap().output.trim(),
            "6.12.117"
        );
        let doctor = records.get("doctor").unwrap();
        assert_eq!((doctor.code, &*doctor.errors), (2, "cohtrace: no\n"));
        let error = records.json("doctor").unwrap_err().to_string();
        assert_eq!(error, "`doctor` ended with 2 and not 0: cohtrace: no");
    }

    #[test]
    fn a_command_that_the_guest_died_in_has_no_record_and_the_reason_is_said() {
        let records = Records {
            trouble: Some("QEMU ended after 9 s".to_owned()),
            ..Records::parse(TEXT)
        };
        let error = records.get("attach").unwrap_err().to_string();
        assert_eq!(
            error,
            "the guest did not come to the end of `attach`: QEMU ended after 9 s"
        );
    }

    #[test]
    fn under_check_the_exit_code_must_be_what_the_report_says() {
        let text = |code: i32, conclusive: bool| {
            format!(
                "@@ a {code}\n{{\"schema\": 1, \"run\": {{\"conclusive\": {conclusive}}}, \
                 \"findings\": [], \"insignificant\": [], \"pairs\": [], \"caveats\": []}}\n@@ errors\n@@ end\n"
            )
        };
        let checked = |code, conclusive| Records::parse(&text(code, conclusive)).checked("a");
        assert!(checked(0, true).is_ok());
        assert!(checked(3, false).is_ok());
        assert!(checked(0, false).is_err());
        assert!(checked(1, true).is_err());
    }
}
