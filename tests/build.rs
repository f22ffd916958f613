//! Writes a test for each variant of each workload, so that a file in `tests/workloads` is one.

use std::{env, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};

#[path = "src/answer.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "who compares with the answer reads all of it"
)]
mod answer;

use answer::{Observer, answers};

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=workloads");
    let mut sources = Vec::new();
    for entry in fs::read_dir("workloads").context("listing the workloads")? {
        let source = entry?.path();
        if source.is_file() {
            sources.push(source);
        }
    }
    sources.sort();
    let mut tests = String::new();
    for source in &sources {
        write_tests(source, &mut tests).with_context(|| source.display().to_string())?;
    }
    let out = env::var_os("OUT_DIR").context("cargo names a directory")?;
    fs::write(Path::new(&out).join("workloads.rs"), tests)?;
    Ok(())
}

/// A module for a workload, and a test in it for each variant; what has a test of its own (`tests/tests/heap.rs`) has none here.
fn write_tests(source: &Path, tests: &mut String) -> Result<()> {
    let mut answers = answers(&fs::read_to_string(source)?)?;
    answers.retain(|answer| answer.observer != Observer::Allocations);
    if answers.is_empty() {
        return Ok(());
    }
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    writeln!(tests, "mod {name} {{")?;
    for answer in answers {
        let (test, variant) = (answer.variant.name(), answer.variant);
        writeln!(tests, "    #[test]")?;
        writeln!(
            tests,
            "    fn {test}() {{ super::check({name:?}, super::Variant::{variant:?}); }}"
        )?;
    }
    writeln!(tests, "}}")?;
    Ok(())
}
