//! The programs of `tests/benches/field/`: found, built, and ready to be started.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    answer::{self, Answer},
    install,
};
use crate::root;

/// One program with its answer.
pub(super) struct FieldProgram {
    /// Its file's name without extension.
    pub name: String,
    /// First sentence of its header.
    pub about: String,
    /// What it needs and what is right.
    pub answer: Answer,
    source: PathBuf,
}

/// All, by name.
pub(super) fn all() -> Result<Vec<FieldProgram>> {
    let directory = root().join("tests/benches/field");
    let mut programs = Vec::new();
    for entry in fs::read_dir(&directory).context("reading tests/benches/field")? {
        let source = entry?.path();
        let text = fs::read_to_string(&source)?;
        let read = answer::read(&text).with_context(|| source.display().to_string())?;
        if let Some((about, answer)) = read {
            let stem = source.file_stem().unwrap_or_default();
            programs.push(FieldProgram {
                name: stem.to_string_lossy().into_owned(),
                about,
                answer,
                source,
            });
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// A built program.
pub(super) struct Built {
    /// Where its state and its reports go.
    pub directory: PathBuf,
    command: Vec<PathBuf>,
    /// Where a server that was built from source is.
    sources: PathBuf,
}

impl Built {
    /// Builds it as its users would: optimised, with debug information.
    pub(super) fn new(program: &FieldProgram, directory: &Path) -> Result<Built> {
        let source = &program.source;
        let output = directory.join("bin").join(&program.name);
        fs::create_dir_all(directory.join("bin"))?;
        let language = source.extension().unwrap_or_default().to_string_lossy();
        let command = match &*language {
            "sh" => vec!["bash".into(), source.clone()],
            "py" => vec![install::python(directory), source.clone()],
            "c" | "cpp" => {
                let compiler = if language == "c" { "cc" } else { "c++" };
                let mut compile = Command::new(compiler);
                compile
                    .args(["-O2", "-g", "-pthread"])
                    .arg(source)
                    .arg("-o")
                    .arg(&output);
                run(&mut compile)?;
                vec![output]
            }
            "go" => {
                run(Command::new("go")
                    .args(["build", "-o"])
                    .arg(&output)
                    .arg(source))?;
                vec![output]
            }
            "java" => {
                run(Command::new("javac")
                    .args(["-g", "-d"])
                    .arg(&output)
                    .arg(source))?;
                let name = PathBuf::from(&program.name);
                vec!["java".into(), "-cp".into(), output, name]
            }
            "rs" => vec![crate_of(program, directory)?],
            other => bail!("{} is in an unknown language ({other})", source.display()),
        };
        Ok(Built {
            directory: directory.to_path_buf(),
            command,
            sources: install::sources(program, directory),
        })
    }

    /// What starts it. It says `ready PID` once it is at work.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .env("FIELD_SOURCE", &self.sources);
        command
    }
}

/// A package of its own with the crates that it needs, beside this workspace.
fn crate_of(program: &FieldProgram, directory: &Path) -> Result<PathBuf> {
    let package = directory.join("crates").join(&program.name);
    fs::create_dir_all(package.join("src"))?;
    let needs: Vec<String> = (program.answer.crates.iter())
        .map(|(name, version)| format!("{name} = \"{version}\"\n"))
        .collect();
    let manifest = format!(
        "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n{}\n[profile.release]\ndebug = \
         true\n\n[workspace]\n",
        program.name,
        needs.concat()
    );
    fs::write(package.join("Cargo.toml"), manifest)?;
    fs::copy(&program.source, package.join("src/main.rs"))?;
    let target = directory.join("crates/target");
    let mut build = super::super::cargo();
    build
        .args(["build", "--quiet", "--release"])
        .arg("--target-dir")
        .arg(&target);
    run(build.current_dir(&package))?;
    Ok(target.join("release").join(&program.name))
}

/// Runs a step of a build; the error has what it said.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("starting {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{name}: {}\n{}",
        output.status,
        said.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_sentence_and_an_answer_of_known_kinds() {
        let programs = all().unwrap();
        assert!(programs.len() >= 18, "{}", programs.len());
        for program in programs {
            assert!(
                program.about.ends_with('.'),
                "{}: {}",
                program.name,
                program.about
            );
            for kind in program
                .answer
                .findings
                .iter()
                .flat_map(|finding| &finding.kinds)
            {
                let known = ["false-sharing", "true-sharing", "mixed-sharing"];
                assert!(known.contains(&&**kind), "{}: {kind}", program.name);
            }
        }
    }
}
