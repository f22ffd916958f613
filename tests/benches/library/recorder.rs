//! How fast accesses are written to a session, and how much room they take.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use cohtrace::{
    event::Batch,
    session::{Meta, SessionReader, SessionWriter, WriterOptions},
};
use cohtrace_tests::figures::{Table, spread};

use crate::input::Input;

/// Figures of one input.
#[derive(Clone, Default)]
struct Figures {
    written: Vec<f64>,
    read: Vec<f64>,
    bytes: Vec<f64>,
}

/// Writes and reads the inputs in turns, `rounds` times, and prints the table.
pub(crate) fn run(rounds: usize, inputs: &[Input]) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.coh");
    let mut figures = vec![Figures::default(); inputs.len()];
    for _ in 0..rounds {
        for (input, figures) in inputs.iter().zip(&mut figures) {
            let accesses = input.accesses as f64;
            let time = write(&path, &input.batches)?;
            figures.written.push(accesses / time.as_secs_f64() / 1e6);
            figures.bytes.push(size(&path)? as f64 / accesses);
            let (read_back, time) = read(&path)?;
            figures.read.push(accesses / time.as_secs_f64() / 1e6);
            anyhow::ensure!(
                read_back == input.accesses,
                "{read_back} of {} accesses read back",
                input.accesses
            );
        }
    }
    println!("session in {}; one thread", directory.path().display());
    let mut table = Table::new(&[
        "recorder",
        "written, M accesses/s",
        "read, M accesses/s",
        "bytes per access, all files",
    ]);
    for (input, figures) in inputs.iter().zip(&figures) {
        table.row([
            input.name.to_owned(),
            spread(&figures.written, 2),
            spread(&figures.read, 2),
            spread(&figures.bytes, 2),
        ]);
    }
    print!("{table}");
    Ok(())
}

fn write(path: &Path, batches: &[Batch]) -> anyhow::Result<Duration> {
    let options = WriterOptions {
        force: true,
        ..WriterOptions::default()
    };
    let start = Instant::now();
    let mut writer = SessionWriter::create(path, Meta::new(), &options)?;
    for batch in batches {
        writer.append(batch)?;
    }
    writer.finish(Meta::new())?;
    Ok(start.elapsed())
}

/// Accesses read, and how long it took.
fn read(path: &Path) -> anyhow::Result<(u64, Duration)> {
    let start = Instant::now();
    let mut reader = SessionReader::open(path)?;
    let mut batch = Batch::default();
    let mut accesses = 0;
    while reader.next_batch(&mut batch)? {
        accesses += batch.accesses.len() as u64;
        batch.clear();
    }
    Ok((accesses, start.elapsed()))
}

/// Bytes of all files below a directory.
pub(crate) fn size(directory: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            size(&entry.path())?
        } else {
            metadata.len()
        };
    }
    Ok(bytes)
}
