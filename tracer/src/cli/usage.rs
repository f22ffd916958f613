//! What is said of a command line that is none, or that asks for help.

use std::{ffi::OsString, io, process::ExitCode};

use clap::Parser as _;

use super::{EXIT_FAILURE, args::Cli, output};
use crate::{
    printable::{printable, words},
    sys::standard_streams,
};

/// Prints what the parser says. Arguments in it are as they were typed, but for what a terminal could act on.
pub(super) fn tell(error: clap::Error) -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let safe: Vec<OsString> = (typed.iter())
        .map(|word| printable(&words(word), false).into_owned().into())
        .collect();
    // Parsed again, so that the layout stays the parser's.
    let error = match Cli::try_parse_from(&safe) {
        _ if safe == typed => error,
        Err(error) => error,
        Ok(_) => {
            output::say(&error.render().to_string());
            return ExitCode::from(EXIT_FAILURE);
        }
    };
    if error.use_stderr() {
        // Nobody is left to tell.
        let _ = error.print();
        return ExitCode::from(EXIT_FAILURE);
    }
    if standard_streams::output_was_closed() {
        output::say("cohtrace: standard output is closed");
        return ExitCode::from(EXIT_FAILURE);
    }
    match error.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            output::say(&format!("cohtrace: writing to standard output: {error}"));
            ExitCode::from(EXIT_FAILURE)
        }
        _ => ExitCode::SUCCESS,
    }
}
