//! A directory to build in.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use cohtrace::hint::file::{CallPlace, HintFile, HintedCode, LeftLoad, LoadClass, LoadHint};
use cohtrace_tests::{
    disassembly::{self, Prefetched},
    llvm_plugin::{for_clang, for_rustc},
    tool,
};
use serde_json::Value;

/// The plugin for `clang++`; says what is not tested where that cannot be.
pub(super) fn clang_plugin() -> Option<PathBuf> {
    for_clang("a build with load hints")
}

/// The plugin for rustc's linker.
pub(super) fn rust_plugin() -> Option<PathBuf> {
    for_rustc("a build with load hints")
}

/// A directory with source files.
pub(super) struct Bench {
    directory: tempfile::TempDir,
    plugin: PathBuf,
}

impl Bench {
    pub(super) fn new(plugin: PathBuf, files: &[(&str, &str)]) -> Bench {
        let bench = Bench {
            directory: tempfile::tempdir().expect("a temporary directory"),
            plugin,
        };
        for (file, text) in files {
            bench.write(file, text);
        }
        bench
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        let path = self.at(file);
        fs::create_dir_all(path.parent().expect("it is below")).expect("it is writable");
        fs::write(path, text).expect("it is writable");
    }

    /// A path in it, as compilers write it down.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        let directory = self.directory.path().canonicalize();
        directory.expect("it is there").join(name)
    }

    pub(super) fn plugin(&self) -> &Path {
        &self.plugin
    }

    /// Runs a command here.
    pub(super) fn run(&self, command: &mut Command) -> Output {
        let output = command.current_dir(self.at("")).output();
        output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Compiles with `hints.json` of this directory, and gives what was said.
    pub(super) fn clang(&self, arguments: &[&str]) -> String {
        self.built(self.with_plugin(arguments).env_remove("COHTRACE_HINTS_LOG"))
    }

    /// The same into a log; what the tool says of that, and its exit code.
    pub(super) fn clang_summary(&self, arguments: &[&str]) -> (i32, String) {
        let log = self.at("hints.log");
        self.built(self.with_plugin(arguments).env("COHTRACE_HINTS_LOG", log));
        self.tool(&["--check", "--summary", "hints.log"])
    }

    fn with_plugin(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("clang++");
        command
            .arg(format!("-fpass-plugin={}", self.plugin.display()))
            .args(arguments)
            .env("COHTRACE_HINTS", self.at("hints.json"));
        command
    }

    /// Compiles without the plugin.
    pub(super) fn plainly(&self, arguments: &[&str]) {
        self.built(Command::new("clang++").args(arguments));
    }

    /// Runs a compiler, which must succeed, and gives what it said.
    pub(super) fn built(&self, command: &mut Command) -> String {
        let output = self.run(command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}\n{said}");
        said
    }

    /// Writes `hints.json`.
    pub(super) fn hints(&self, hints: &[LoadHint]) {
        self.hints_beside(hints, &[]);
    }

    /// The same, with loads to leave alone.
    pub(super) fn hints_beside(&self, hints: &[LoadHint], left: &[HintedCode]) {
        let leave = |load: &HintedCode| LeftLoad {
            load: load.clone(),
            class: LoadClass::Integer,
            expected: hints[0].expected,
            reason: "costs-more-than-it-saves".to_owned(),
            text: String::new(),
        };
        let file = HintFile {
            hints: hints.to_vec(),
            left: left.iter().map(leave).collect(),
            ..HintFile::default()
        };
        self.write("hints.json", &file.render());
    }

    /// Says of the first hint's file what it contained.
    pub(super) fn digest(&self, md5: &str) {
        let text = fs::read_to_string(self.at("hints.json")).expect("it was written");
        let mut json: Value = serde_json::from_str(&text).expect("JSON");
        json["hints"][0]["load"]["md5"] = Value::from(md5);
        self.write("hints.json", &json.to_string());
    }

    /// What the tool says of a program, and its exit code.
    pub(super) fn verify(&self, program: &str) -> (i32, String) {
        self.tool(&["--check", "--verify", program])
    }

    fn tool(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = tool::cohtrace(["as", "--hints", "hints.json"]);
        let output = self.run(command.args(arguments));
        let text = [output.stdout, output.stderr].concat();
        let code = output.status.code().expect("it exits");
        (code, String::from_utf8_lossy(&text).into_owned())
    }

    pub(super) fn prefetches(&self, program: &str) -> Vec<Prefetched> {
        disassembly::prefetches(&self.at(program)).expect("objdump")
    }

    /// What a program prints, and its exit code.
    pub(super) fn result(&self, program: &str) -> (String, Option<i32>) {
        let output = self.run(&mut Command::new(self.at(program)));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        (text, output.status.code())
    }

    /// A load of a file of this directory.
    pub(super) fn load(&self, file: &str, line: u32, column: u32, operand: &str) -> HintedCode {
        HintedCode {
            ip: "0x1".to_owned(),
            file: Some(self.at(file).display().to_string()),
            line: Some(line),
            column: Some(column),
            instruction: Some(format!("movq {operand}, %rax")),
            operand: Some(operand.to_owned()),
            ..HintedCode::default()
        }
    }

    /// A call in a file of this directory.
    pub(super) fn call(&self, file: &str, line: u32, column: u32) -> CallPlace {
        CallPlace {
            file: Some(self.at(file).display().to_string()),
            line: Some(line),
            column: Some(column),
        }
    }
}

/// A hint for an integer load each execution of which misses.
pub(super) fn hint(id: &str, load: HintedCode) -> LoadHint {
    let mut hint = LoadHint::new(id.to_owned(), load);
    hint.class = LoadClass::Integer;
    hint.expected.executions = 1000;
    hint.expected.requests = 1000;
    hint
}

/// Where text begins in a source: line and column, from 1.
pub(super) fn position(source: &str, text: &str) -> (u32, u32) {
    let (line, column) = source
        .lines()
        .enumerate()
        .find_map(|(line, of_line)| Some((line, of_line.find(text)?)))
        .unwrap_or_else(|| panic!("no {text}"));
    (line as u32 + 1, column as u32 + 1)
}
