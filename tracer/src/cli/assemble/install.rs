//! Writes `DIR/as`.

use std::{
    fs::{self, Permissions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};

use super::{
    super::{args::AsArgs, output},
    program, read_hints,
};
use crate::printable::printable;

/// Writes the script and says how to use it.
pub(super) fn run(directory: &Path, args: &AsArgs) -> Result<ExitCode> {
    let hints = read_hints(&args.hints)?;
    let hints_path = full(&args.hints)?;
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let directory = full(directory)?;
    let script = directory.join("as");
    if script.symlink_metadata().is_ok() && !program::is_script(&script) {
        bail!(
            "{} exists and is not a script of cohtrace; give another directory",
            script.display()
        );
    }
    let assembler = program::real(args.program.as_deref(), Some(&script))?;
    let tool = std::env::current_exe().context("finding this program's own path")?;
    let text = script_text(&tool, &hints_path, &script, &assembler, args)?;
    let mut file = tempfile::Builder::new()
        .prefix(".cohtrace-as-")
        .tempfile_in(&directory)
        .with_context(|| format!("writing in {}", directory.display()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| {
            file.as_file()
                .set_permissions(Permissions::from_mode(0o755))
        })
        .with_context(|| format!("writing {}", script.display()))?;
    // Moved into place whole: a build may be running.
    file.persist(&script)
        .with_context(|| format!("writing {}", script.display()))?;
    output::write_stdout(&said(
        &directory,
        &hints_path,
        &assembler,
        hints.hints.len(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn full(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).with_context(|| path.display().to_string())
}

/// A word of a shell script.
fn quoted(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(word(text))
}

fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn script_text(
    tool: &Path,
    hints: &Path,
    script: &Path,
    assembler: &Path,
    args: &AsArgs,
) -> Result<String> {
    let (tool, hints, script, assembler) = (
        quoted(tool)?,
        quoted(hints)?,
        quoted(script)?,
        quoted(assembler)?,
    );
    let quiet = if args.quiet { " --quiet" } else { "" };
    // Only an assembler that was asked for is fixed: else the one of the day's PATH is right.
    let program = if args.program.is_some() {
        format!(" --as {assembler}")
    } else {
        String::new()
    };
    let everywhere = if args.everywhere { " --everywhere" } else { "" };
    let maps = args.map.iter();
    let maps: Vec<String> = maps
        .map(|map| format!(" --map {}", word(&format!("{}={}", map.from, map.to))))
        .collect();
    let maps = maps.concat();
    Ok(format!(
        "#!/bin/sh\n{}\n\
         if [ -x {tool} ]; then\n  \
         exec {tool} as --hints {hints} --from {script}{program}{maps}{everywhere}{quiet} -- \"$@\"\n\
         fi\n\
         echo \"cohtrace as: assembled without hints: cohtrace is gone\" >&2\n\
         exec {assembler} \"$@\"\n",
        program::MARK
    ))
}

fn said(directory: &Path, hints: &Path, assembler: &Path, count: usize) -> String {
    let shown = |path: &Path| printable(&path.to_string_lossy(), false).into_owned();
    let (directory, hints) = (shown(directory), shown(hints));
    format!(
        "{directory}/as places {count} hint{} and assembles with {}. Compile with -g and\n\n  \
         gcc     gcc -B {directory} -O2 -g -c FILE.c\n  \
         clang   clang -fno-integrated-as -B {directory} -O2 -g -c FILE.c\n  \
         cmake   cmake -DCMAKE_C_FLAGS=\"-g -B {directory}\" -DCMAKE_CXX_FLAGS=\"-g -B {directory}\" DIR\n\n\
         then check the program: cohtrace as --verify PROGRAM --hints {hints}\n\
         rustc assembles by itself and is not reached.\n",
        if count == 1 { "" } else { "s" },
        shown(assembler)
    )
}
