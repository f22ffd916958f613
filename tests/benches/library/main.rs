//! What the library costs per access, without the kernel: `library [recorder|analysis].. [--rounds N]`.
//!
//! `cargo xtask bench recorder analysis` runs it; built with the release settings.
#![expect(
    clippy::print_stdout,
    reason = "tables on standard output are its purpose"
)]

mod analysis;
mod decode;
mod recorder;
mod stream;

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let mut rounds = 5;
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
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = vec!["recorder".to_owned(), "analysis".to_owned()];
    }
    for name in names {
        match name.as_str() {
            "recorder" => recorder::run(rounds)?,
            "analysis" => {
                analysis::run(rounds)?;
                println!();
                decode::run(rounds)?;
            }
            other => bail!("{other} is neither recorder nor analysis"),
        }
    }
    Ok(())
}
