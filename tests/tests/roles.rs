//! What the shared words of programs are for, as their code says and their sources know: a lock, an index, an end of a queue.

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Duration};

use cohtrace_tests::{
    live::{GRACE, has_emulator, ready, skipped_core},
    tool::{cohtrace, run},
    workload,
};
use serde_json::Value;

/// What a source says of its words: field and role. A field without a name is any.
struct Key {
    roles: BTreeMap<String, String>,
    /// Roles that none of its words has.
    never: Vec<String>,
}

impl Key {
    fn of(source: &str) -> Key {
        let line = |mark: &str| {
            let found = source.lines().find_map(|line| line.strip_prefix(mark));
            found.unwrap_or_else(|| panic!("no {mark} in the source"))
        };
        Key {
            roles: serde_json::from_str(line("// ROLES: ")).expect("the key is JSON"),
            never: line("// NEVER: ")
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Checks the words of all findings of a report.
    fn check(&self, report: &Value, what: &str) {
        let findings = report["findings"].as_array().expect("there is a list");
        let words: Vec<(&str, &str)> = findings
            .iter()
            .flat_map(|finding| {
                finding["advice"]["words"]
                    .as_array()
                    .expect("there is a list")
            })
            .map(|word| {
                let text = |key: &str| word[key].as_str().expect("it is text");
                assert!(text("text").len() > 40, "{what}: {word}");
                (text("field"), text("role"))
            })
            .collect();
        for (field, role) in &self.roles {
            let found = words.iter().any(|(name, given)| {
                let is_field = name.split(['.', ',']).any(|part| part.trim() == field);
                given == role && (field.is_empty() || is_field)
            });
            assert!(found, "{what}: {field} is no {role} in {words:?}");
        }
        for (field, role) in &words {
            assert!(
                !self.never.iter().any(|never| never == role),
                "{what}: {field} is a {role}"
            );
        }
    }
}

/// Compiles a source with each compiler that there is for it; the programs' paths.
fn build(name: &str, directory: &Path) -> Vec<std::path::PathBuf> {
    let source = workload::directory().join("roles").join(name);
    let compilers: &[(&str, &[&str])] = match source.extension().and_then(|e| e.to_str()) {
        Some("c") => &[("gcc", &["-O2"]), ("clang", &["-O2"]), ("gcc", &["-O1"])],
        Some("cpp") => &[("g++", &["-O2"]), ("clang++", &["-O2"])],
        _ => &[("rustc", &["-O", "--edition=2024", "-Adead_code"])],
    };
    let mut programs = Vec::new();
    for (n, (compiler, flags)) in compilers.iter().enumerate() {
        let program = directory.join(format!("{compiler}{n}"));
        let mut command = Command::new(compiler);
        command
            .args(*flags)
            .args(["-g", "-o"])
            .arg(&program)
            .arg(&source);
        if *compiler != "rustc" {
            command.arg("-pthread");
        }
        match command.output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{said}");
                programs.push(program);
            }
            Err(_) => skipped_core(format_args!("no {compiler}: {name} is not built by it")),
        }
    }
    programs
}

fn key(name: &str) -> Key {
    let source = workload::directory().join("roles").join(name);
    Key::of(&fs::read_to_string(source).expect("the source is there"))
}

fn report(program: &Path, options: &[&str], ms: &str) -> Value {
    let mut tool = cohtrace(["attach", "--quiet", "--json"]);
    tool.args(options).arg("--").arg(program).arg(ms);
    let ended = run(&mut tool, GRACE + Duration::from_secs(20)).expect_code(0);
    serde_json::from_str(&ended.stdout).expect("it is JSON")
}

/// In an emulator, which sees every access, so that nothing hangs on what was sampled.
/// Long enough that on a busy machine both threads are there for most of it.
const EMULATED_MS: &str = "400";

fn emulated(name: &str) {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for program in build(name, directory.path()) {
        let report = report(&program, &["--source", "emulate"], EMULATED_MS);
        let file = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        key(name).check(&report, &format!("{name} by {file}"));
    }
}

/// Sampled and watched, as it runs on the machine.
fn live(name: &str) {
    let Some(_turn) = ready() else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let programs = build(name, directory.path());
    let report = report(&programs[0], &["--duration", "2"], "2500");
    key(name).check(&report, name);
}

#[test]
fn an_index_that_is_moved_by_compare_and_swap_is_no_lock() {
    emulated("work_list.c");
}

#[test]
fn both_ends_of_a_queue_have_one_writer_and_one_reader() {
    emulated("one_to_one_queue.c");
}

#[test]
fn the_head_of_a_list_is_not_counted_in() {
    emulated("free_list.c");
}

#[test]
fn tickets_are_told_from_what_they_guard() {
    emulated("ticket_lock.c");
}

#[test]
fn a_version_is_compared_before_and_after() {
    emulated("versions.c");
}

#[test]
fn a_lock_its_data_and_a_counter_beside_them() {
    emulated("spin_lock.c");
}

#[test]
fn a_mutex_of_the_library_is_known_by_the_librarys_code() {
    emulated("mutex.c");
}

#[test]
fn references_of_a_shared_pointer_are_counted_up_and_down() {
    emulated("shared_pointer.cpp");
}

#[test]
fn references_of_an_arc_are_counted_up_and_down() {
    emulated("references.rs");
}

#[test]
fn a_live_index_that_is_moved_by_compare_and_swap_is_no_lock() {
    live("work_list.c");
}

#[test]
fn a_live_lock_its_data_and_a_counter_beside_them() {
    live("spin_lock.c");
}

#[test]
fn a_lock_of_many_on_many_lines_is_known_by_all_of_them() {
    emulated("lock_table.c");
}

#[test]
fn words_of_one_writer_each_on_many_lines_have_one_writer() {
    emulated("own_places.c");
}

#[test]
fn a_live_lock_of_many_on_many_lines_is_known_by_all_of_them() {
    live("lock_table.c");
}
