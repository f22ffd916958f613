//! DuckDB, where this machine has it: a Python with the module.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use cohtrace_tests::{
    live::{GRACE, skipped},
    tool::run,
};
use serde_json::{Map, Value};

/// A Python that can import duckdb; `None`, said loudly, where there is none.
pub(super) fn python() -> Option<PathBuf> {
    let named = std::env::var_os("COHTRACE_DUCKDB_PYTHON").filter(|name| !name.is_empty());
    let python = PathBuf::from(named.unwrap_or_else(|| "python3".into()));
    let imports = Command::new(&python)
        .args(["-c", "import duckdb"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !imports {
        skipped(
            "no DuckDB: `pip install duckdb` into a virtual environment, and name its python in COHTRACE_DUCKDB_PYTHON",
        );
        return None;
    }
    Some(python)
}

/// What the queries of `docs/sql` say of a session.
#[derive(Debug)]
pub(super) struct Answers(Map<String, Value>);

/// Runs every query of `docs/sql` in the session's directory.
pub(super) fn ask(python: &Path, session: &Path) -> Answers {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python);
    command
        .arg(tests.join("tests/sql/run_queries.py"))
        .arg(tests.join("../docs/sql"))
        .current_dir(session);
    let ended = run(&mut command, GRACE).expect_code(0);
    let answers = serde_json::from_str(&ended.stdout);
    Answers(answers.unwrap_or_else(|error| panic!("{error}\n{}", ended.said())))
}

impl Answers {
    /// The rows of a query.
    pub(super) fn rows(&self, query: &str) -> Vec<Row> {
        let rows = self.0.get(query).and_then(Value::as_array);
        let rows = rows.unwrap_or_else(|| panic!("no query {query}"));
        rows.iter().map(|row| Row(row.clone())).collect()
    }

    /// An entry of the parts' footers.
    pub(super) fn footer(&self, key: &str) -> Option<&str> {
        self.0["footer"].get(key)?.as_str()
    }
}

/// One row of a query.
#[derive(Clone, Debug)]
pub(super) struct Row(Value);

impl Row {
    pub(super) fn text(&self, column: &str) -> String {
        let text = self.0[column].as_str();
        text.unwrap_or_else(|| panic!("{column} of {self:?} is no text"))
            .to_owned()
    }

    pub(super) fn number(&self, column: &str) -> u64 {
        let number = self.0[column].as_u64();
        number.unwrap_or_else(|| panic!("{column} of {self:?} is no number"))
    }

    /// A number that may be null.
    pub(super) fn number_or_none(&self, column: &str) -> Option<u64> {
        (!self.0[column].is_null()).then(|| self.number(column))
    }
}
