//! What the library costs per access, without the kernel: `library [recorder|analysis].. [--rounds N]
//! [--session NAME.coh]`. The session is measured beside the made-up stream.
//!
//! `cargo xtask bench recorder analysis` runs it; built with the release settings.
#![expect(
    clippy::print_stdout,
    reason = "tables on standard output are its purpose"
)]

mod analysis;
mod decode;
mod input;
mod recorder;
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
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = vec!["recorder".to_owned(), "analysis".to_owned()];
    }
    let mut inputs = vec![Input::made_up(MADE_UP_ACCESSES)];
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
            other => bail!("{other} is neither recorder nor analysis"),
        }
    }
    Ok(())
}
