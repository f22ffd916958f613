//! Brings what a program needs from the registries: Debian's packages, PyPI, crates.io. What is here stays as it is.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result};

use super::{
    answer::Source,
    program::{FieldProgram, run},
};

/// Installs what is missing. Crates are fetched by the build.
pub(super) fn install(program: &FieldProgram, directory: &Path) -> Result<()> {
    let answer = &program.answer;
    let missing: Vec<&String> = answer.apt.iter().filter(|package| !has(package)).collect();
    if !missing.is_empty() {
        refresh();
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--no-install-recommends"])
            .args(&missing);
        run(apt.env("DEBIAN_FRONTEND", "noninteractive")).context("installing from Debian")?;
    }
    if !answer.pip.is_empty() {
        let python = python(directory);
        if !python.exists() {
            let home = directory.join("python");
            run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
        }
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet"])
            .args(&answer.pip);
        run(&mut pip).context("installing from PyPI")?;
    }
    if let Some(source) = &answer.source {
        build(source, &sources(program, directory))?;
    }
    Ok(())
}

/// The interpreter that has PyPI's packages.
pub(super) fn python(directory: &Path) -> PathBuf {
    directory.join("python/bin/python")
}

/// Where a program's Debian source is unpacked.
pub(super) fn sources(program: &FieldProgram, directory: &Path) -> PathBuf {
    directory.join("source").join(&program.name)
}

/// Whether a Debian package is installed.
fn has(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    let output = query
        .args(["-W", "-f", "${db:Status-Status}", package])
        .output();
    output.is_ok_and(|output| output.stdout == b"installed")
}

/// Asks Debian once what it has. An old list may do: installing says when not.
fn refresh() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        run(Command::new("apt-get").args(["update", "--quiet"])).ok();
    });
}

/// Unpacks and builds a Debian source package, once. Its lists are kept apart from the machine's, which may have none
/// of sources.
fn build(source: &Source, into: &Path) -> Result<()> {
    let done = into.join("built");
    if fs::read_to_string(&done).is_ok_and(|how| how == source.build) {
        return Ok(());
    }
    fs::remove_dir_all(into).ok();
    fs::create_dir_all(into.join("lists/partial"))?;
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.context("this is no Debian: there are no source packages")?;
    let list = into.join("sources.list");
    let line = format!(
        "deb-src http://deb.debian.org/debian {} main\n",
        name.trim_matches('"')
    );
    fs::write(&list, line)?;
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        for (option, value) in [
            ("Dir::Etc::SourceList", list.display().to_string()),
            ("Dir::Etc::SourceParts", "/nonexistent".to_owned()),
            (
                "Dir::State::Lists",
                into.join("lists").display().to_string(),
            ),
        ] {
            apt.arg("-o").arg(format!("{option}={value}"));
        }
        apt.args(words).current_dir(into);
        apt
    };
    run(&mut apt(&["update", "--quiet"])).context("asking Debian for sources")?;
    run(&mut apt(&["source", "--quiet", &source.package])).context("fetching a source package")?;
    let unpacked = fs::read_dir(into)?.flatten().map(|entry| entry.path());
    let prefix = format!("{}-", source.package);
    let unpacked = unpacked.filter(|path| path.is_dir()).find(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(&prefix)
    });
    let unpacked = unpacked.context("the source package unpacked no directory of its name")?;
    let mut make = Command::new("sh");
    run(make.args(["-c", &source.build]).current_dir(&unpacked)).context("building it")?;
    fs::rename(unpacked, into.join("tree"))?;
    fs::write(done, &source.build)?;
    Ok(())
}
