//! Function, inlined calls and lines of many addresses: our symbolizer beside others.
//!
//! `symbolize [--rounds N] [--count N] [FILE]` starts each contender as a process of its own, asks for one
//! address, for the first thousand, then for all of them twice, and prints processor time and peak memory.
//! `symbolize --serve NAME FILE ADDRESSES` is one contender that is a library: it does what lines on its
//! standard input say (see `serve`).

mod addresses;
mod agreement;
mod contender;
mod libraries;
mod measure;
mod serve;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

fn main() -> Result<()> {
    let mut rounds = 5;
    let mut count = 1_000_000;
    let mut positional: Vec<String> = Vec::new();
    let mut serving = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<usize> {
            let number = arguments.next().context("a number must follow")?;
            number.parse().context("a number must follow")
        };
        match argument.as_str() {
            "--rounds" => rounds = number()?,
            "--count" => count = number()?,
            "--serve" => serving = true,
            other if other.starts_with('-') => bail!("{other} is not an option"),
            _ => positional.push(argument),
        }
    }
    if serving {
        let [name, file, addresses] = &positional[..] else {
            bail!("--serve takes a name, a file and a list of addresses");
        };
        return serve::run(name, file.as_ref(), addresses.as_ref());
    }
    let file = positional.first().context("name a file with debug info")?;
    measure::run(&PathBuf::from(file), rounds.max(1), count.max(2000))
}
