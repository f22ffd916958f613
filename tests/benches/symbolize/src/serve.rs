//! A library as a process: reads `ask FROM TO` or `answer FROM TO` a line, does it, and says `done`.

use std::{
    io::{BufRead as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::{addresses, libraries};

pub fn run(name: &str, file: &Path, list: &Path) -> Result<()> {
    let addresses = addresses::read(list)?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(output, "ready")?;
    output.flush()?;
    let mut library = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let [verb, from, to] = words[..] else {
            bail!("not a request: {line}");
        };
        let range = from.parse::<usize>()?..to.parse::<usize>()?;
        let addresses = addresses.get(range).context("out of the list")?;
        let library = match &mut library {
            Some(library) => library,
            none => none.insert(libraries::open(name, file)?),
        };
        if verb == "ask" {
            library.ask(addresses)?;
        } else {
            for (address, answer) in addresses.iter().zip(library.answers(addresses)?) {
                writeln!(output, "{address:#x}")?;
                for place in answer {
                    writeln!(output, "{}\n{}:{}", place.function, place.file, place.line)?;
                }
            }
        }
        writeln!(output, "done")?;
        output.flush()?;
    }
    Ok(())
}
