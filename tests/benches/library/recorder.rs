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

use crate::stream;

/// Eight segments of the default size.
const ACCESSES: u64 = 8 << 18;

/// Writes and reads the stream `rounds` times and prints the table.
pub fn run(rounds: usize) -> anyhow::Result<()> {
    let batches = stream::batches(ACCESSES);
    let count = stream::accesses(&batches);
    let accesses = count as f64;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.coh");
    let (mut written, mut read, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let time = write(&path, &batches)?;
        written.push(accesses / time.as_secs_f64() / 1e6);
        bytes.push(size(&path)? as f64 / accesses);
        let start = Instant::now();
        let mut reader = SessionReader::open(&path)?;
        let mut batch = Batch::default();
        let mut read_back = 0;
        while reader.next_batch(&mut batch)? {
            read_back += batch.accesses.len() as u64;
            batch.clear();
        }
        read.push(accesses / start.elapsed().as_secs_f64() / 1e6);
        anyhow::ensure!(
            read_back == count,
            "{read_back} of {count} accesses read back"
        );
    }
    println!(
        "Session of {accesses} made-up accesses in {}; one thread.",
        directory.path().display()
    );
    let mut table = Table::new(&["recorder", "median (min..max)"]);
    table.row(["written, million accesses/s".into(), spread(&written, 2)]);
    table.row(["read back, million accesses/s".into(), spread(&read, 2)]);
    table.row(["on disk, bytes per access".into(), spread(&bytes, 2)]);
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

/// Bytes of all files below a directory.
fn size(directory: &Path) -> anyhow::Result<u64> {
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
