//! The workloads: every source file in `tests/workloads`, and its builds.
//!
//! Programs are built once into the target directory and again only when the source, what it includes, or
//! the command changes. Several test processes may ask at once: a file lock makes them take turns.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail};

use crate::answer::{Answer, Variant, answers};

/// A source file with known answers.
#[derive(Clone, Debug)]
pub struct Workload {
    /// File name without extension.
    pub name: String,
    /// The source.
    pub source: PathBuf,
    /// Its text.
    pub text: String,
    /// One for each variant.
    pub answers: Vec<Answer>,
}

/// A built variant.
#[derive(Clone, Debug)]
pub struct Program {
    /// What to run.
    pub path: PathBuf,
    /// The same code with symbols; `path` itself unless the variant is stripped.
    pub with_symbols: PathBuf,
    /// The shared library it opens, if any; a copy with its lines where the program's own is without.
    pub library: Option<PathBuf>,
}

/// Where the sources are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads")
}

/// The command that makes a copy of a file without some of its symbols.
fn strip(what: &str, from: &Path, to: &Path) -> Command {
    let mut strip = Command::new("strip");
    strip.arg(what).arg("-o").arg(to).arg(from);
    strip
}

/// Every workload, by name.
pub fn all() -> anyhow::Result<Vec<Workload>> {
    let mut workloads = Vec::new();
    for entry in fs::read_dir(directory()).context("listing the workloads")? {
        let source = entry?.path();
        if source.is_file() {
            workloads.push(read(source)?);
        }
    }
    workloads.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(workloads)
}

/// The workload of that name.
pub fn named(name: &str) -> anyhow::Result<Workload> {
    for extension in ["c", "cpp", "rs"] {
        let source = directory().join(name).with_extension(extension);
        if source.is_file() {
            return read(source);
        }
    }
    bail!("no workload is called {name}")
}

fn read(source: PathBuf) -> anyhow::Result<Workload> {
    let text =
        fs::read_to_string(&source).with_context(|| format!("reading {}", source.display()))?;
    let answers = answers(&text).with_context(|| format!("the key of {}", source.display()))?;
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Workload {
        name: name.into_owned(),
        source,
        text,
        answers,
    })
}

impl Workload {
    /// The key of a variant.
    pub fn answer(&self, variant: Variant) -> anyhow::Result<&Answer> {
        self.answers
            .iter()
            .find(|a| a.variant == variant)
            .with_context(|| format!("{} has no {} variant", self.name, variant.name()))
    }

    /// Builds a variant, unless it is there already.
    pub fn build(&self, variant: Variant) -> anyhow::Result<Program> {
        let answer = self.answer(variant)?;
        let directory = target_directory()?.join(variant.name());
        fs::create_dir_all(&directory)?;
        let _turn = turn(&directory.join("build.lock"))?;

        let path = directory.join(&self.name);
        let with_symbols = if answer.strip {
            path.with_extension("unstripped")
        } else {
            path.clone()
        };
        let opened = path.with_extension("so");
        let with_lines = if answer.no_lines {
            path.with_extension("described")
        } else {
            opened.clone()
        };
        let library = answer.library_flags.as_ref().map(|_| with_lines);
        let mut steps = vec![self.compiler(&answer.flags, &with_symbols)?];
        if let (Some(flags), Some(library)) = (&answer.library_flags, &library) {
            let mut compiler = self.compiler(&[&answer.flags[..], flags].concat(), library)?;
            compiler.args(["-shared", "-fPIC"]);
            steps.push(compiler);
            if *library != opened {
                steps.push(strip("--strip-debug", library, &opened));
            }
        }
        if answer.strip {
            steps.push(strip("--strip-all", &with_symbols, &path));
        }

        let recipe = format!("{steps:?}\n{}\n{}", self.text, stage_text()?);
        let stamp = path.with_extension("recipe");
        if !path.exists() || fs::read_to_string(&stamp).ok().as_ref() != Some(&recipe) {
            for step in &mut steps {
                run(step)
                    .with_context(|| format!("building {} ({})", self.name, variant.name()))?;
            }
            fs::write(&stamp, recipe)?;
        }
        Ok(Program {
            path,
            with_symbols,
            library,
        })
    }

    /// The command that compiles the source, as users compile theirs: optimised, with debug information.
    fn compiler(&self, flags: &[String], output: &Path) -> anyhow::Result<Command> {
        let warnings = ["-Wall", "-Wextra", "-Werror"];
        let (program, usual): (&str, &[&str]) =
            match self.source.extension().and_then(|e| e.to_str()) {
                Some("c") => ("cc", &["-std=gnu11", "-O2", "-g", "-pthread"]),
                Some("cpp") => ("c++", &["-std=c++17", "-O2", "-g", "-pthread"]),
                Some("rs") => (
                    "rustc",
                    &[
                        "--edition=2024",
                        "-O",
                        "-g",
                        "-Dwarnings",
                        "--check-cfg=cfg(padded, unpaired)",
                    ],
                ),
                _ => bail!("{} is neither C, C++ nor Rust", self.source.display()),
            };
        let mut command = Command::new(program);
        command
            .args(usual)
            .args(flags)
            .arg(&self.source)
            .arg("-o")
            .arg(output);
        if program != "rustc" {
            command.args(warnings).arg("-ldl");
        }
        Ok(command)
    }
}

/// What the sources include, as one text: a change rebuilds everything.
fn stage_text() -> anyhow::Result<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory().join("stage"))? {
        texts.push(fs::read_to_string(entry?.path())?);
    }
    texts.sort();
    Ok(texts.concat())
}

fn run(step: &mut Command) -> anyhow::Result<()> {
    let output = step.output().with_context(|| {
        format!(
            "starting {}; gcc, g++, rustc and binutils must be installed",
            step.get_program().display()
        )
    })?;
    if !output.status.success() {
        bail!(
            "{step:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Where builds and reports go: beside the running test's own profile directory.
pub fn target_directory() -> anyhow::Result<PathBuf> {
    let directory = profile_directory()?
        .parent()
        .context("the profile directory has a parent")?
        .join("workloads");
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// The `target/PROFILE` directory that the running executable was built into.
pub fn profile_directory() -> anyhow::Result<PathBuf> {
    let executable = std::env::current_exe().context("finding the running executable")?;
    let directory = executable
        .parent()
        .context("an executable has a directory")?;
    // Tests are in `deps`, binaries beside it.
    let profile = if directory.ends_with("deps") {
        directory.parent()
    } else {
        Some(directory)
    };
    Ok(profile.context("`deps` has a parent")?.to_path_buf())
}

/// Waits until no other process holds the lock file; holds it until dropped.
pub fn turn(path: &Path) -> anyhow::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))?;
    file.lock()
        .with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}
