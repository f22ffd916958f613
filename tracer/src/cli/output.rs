//! Where a report goes: standard output or a file, plain or coloured.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{Color, OutputArgs},
    destination,
};
use crate::{
    printable::printable,
    report::{
        json,
        model::Report,
        text::{self, TextOptions},
    },
    sys::standard_streams,
};

/// There are findings.
const EXIT_FINDINGS: u8 = 1;
/// There are none, and it could not be told that there is no sharing.
const EXIT_DOUBT: u8 = 3;

/// Prints the report and gives the exit code that `--check` asks for.
pub(super) fn print(report: &Report, args: &OutputArgs) -> Result<ExitCode> {
    print_as(report, args.json, args)
}

/// The same, as JSON or as text.
pub(super) fn print_as(report: &Report, json: bool, args: &OutputArgs) -> Result<ExitCode> {
    let rendered = if json {
        json::render(report, true)
    } else {
        let options = TextOptions {
            verbose: args.verbose,
            ..text_options(args.color, args.output.as_deref())
        };
        text::render(report, options)
    };
    write(&rendered, report, args)
}

/// Writes what was rendered of a report to where it shall go; the exit code is that of `--check`.
pub(super) fn write(rendered: &str, report: &Report, args: &OutputArgs) -> Result<ExitCode> {
    write_text(rendered, args.output.as_deref())?;
    Ok(if !args.check {
        ExitCode::SUCCESS
    } else if !report.findings.is_empty() {
        ExitCode::from(EXIT_FINDINGS)
    } else if report.run.conclusive {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_DOUBT)
    })
}

/// Writes to a file, or to standard output.
pub(super) fn write_text(text: &str, file: Option<&Path>) -> Result<()> {
    match file {
        Some(path) => destination::write(path, text.as_bytes()),
        None => write_stdout(text),
    }
}

/// Whether what there will be to write has somewhere to go: to a file, or to standard output.
pub(super) fn check(file: Option<&Path>) -> Result<()> {
    match file {
        Some(path) => destination::check(path),
        None => stdout_is_there(),
    }
}

fn stdout_is_there() -> Result<()> {
    if standard_streams::output_was_closed() {
        bail!("standard output is closed: give it somewhere to go, or write to a file (-o)");
    }
    Ok(())
}

/// How text goes to standard output, or to `file`.
pub(super) fn text_options(color: Color, file: Option<&Path>) -> TextOptions {
    TextOptions {
        colour: colour(color, file),
        unicode: unicode(),
        verbose: false,
    }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
pub(super) fn write_stdout(text: &str) -> Result<()> {
    stdout_is_there()?;
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("writing to standard output")
        }
        _ => Ok(()),
    }
}

/// Says one line on standard error, whatever is in it: nothing acts on the terminal, and no name makes a line of its own.
pub(super) fn say(line: &str) {
    say_all(&[line]);
}

/// Says some lines, by one write, so that processes that speak at once do not mix theirs. A closed stream is no reason to
/// fail.
pub(super) fn say_all(lines: &[impl AsRef<str>]) {
    let ascii = !unicode();
    let text = (lines.iter()).fold(String::new(), |text, line| {
        text + &printable(line.as_ref(), ascii) + "\n"
    });
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether to colour what goes to standard output, or to `file`.
pub(super) fn colour(choice: Color, file: Option<&Path>) -> bool {
    match choice {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            file.is_none()
                && io::stdout().is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

/// Whether who reads it sees more than ASCII.
pub(super) fn unicode() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_some_and(|value| value.to_ascii_lowercase().replace('-', "").contains("utf8"))
}
