//! What the library costs per access, without the kernel: `library [recorder|analysis|simulation].. [--rounds N]
//! [--session NAME.coh]`. The session is measured beside the made-up streams. `library generate --output NAME.coh
//! [--samples N] [--lines N] [--threads N] [--seed N]` makes a session as long as asked.
//!
//! `cargo xtask bench recorder analysis scale` runs it; built with the release settings.
#![expect(
    clippy::print_stdout,
    reason = "tables on standard output are its purpose"
)]

mod analysis;
mod decode;
mod emulated;
mod generate;
mod input;
mod recorder;
mod simulation;
mod stream;

use std::path::PathBuf;

use anyhow::{Context, bail};
use input::Input;

/// Eight segments of a session's default size.
const MADE_UP_ACCESSES: u64 = 8 << 18;

fn main() -> anyhow::Result<()> {
    let mut rounds = 5;
    let mut session: Option<PathBuf> = None;
    let mut names = Vec::new();
    let mut shape = generate::Shape::default();
    let mut output: Option<PathBuf> = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What `cargo bench` adds to every call.
            "--bench" => {}
            "--rounds" => {
                let number = arguments.next().context("--rounds takes a number")?;
                rounds = number.parse().context("--rounds takes a number")?;
            }
            "--session" => {
                let path = arguments.next().context("--session takes a directory")?;
                session = Some(path.into());
            }
            "--output" => {
                let path = arguments.next().context("--output takes a directory")?;
                output = Some(path.into());
            }
            "--samples" | "--lines" | "--threads" | "--seed" => {
                let number = arguments.next().unwrap_or_default();
                let number: u64 = number
                    .parse()
                    .with_context(|| format!("{argument} takes a number"))?;
                match &*argument {
                    "--samples" => shape.samples = number,
                    "--lines" => shape.lines = number,
                    "--threads" => shape.threads = number.try_into()?,
                    _ => shape.seed = number,
                }
            }
            _ => names.push(argument),
        }
    }
    if names == ["generate"] {
        return generate::run(shape, &output.context("generate needs --output")?);
    }
    if names.is_empty() {
        names = vec!["recorder".to_owned(), "analysis".to_owned()];
    }
    let mut inputs = vec![
        Input::made_up(MADE_UP_ACCESSES),
        Input::emulated(MADE_UP_ACCESSES),
    ];
    if let Some(session) = session {
        inputs.push(Input::recorded(&session)?);
    }
    for input in &inputs {
        println!("{}", input.describe());
    }
    for name in names {
        match name.as_str() {
            "recorder" => recorder::run(rounds, &inputs)?,
            "analysis" => {
                analysis::run(rounds, &inputs)?;
                println!();
                decode::run(rounds)?;
            }
            "simulation" => simulation::run(rounds)?,
            other => bail!("{other} is none of recorder, analysis, simulation, generate"),
        }
    }
    Ok(())
}
