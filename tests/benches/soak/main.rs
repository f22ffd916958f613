//! A day of processes, threads and files that come and go, through the code that keeps what is known of them:
//! `soak [--session NAME.coh] [--processes N]`. Each process has two threads; every tenth one runs a program of its own,
//! which is a new file. What was recorded gives mappings and accesses; without, this very process does.
//!
//! `cargo xtask bench soak` runs it. It fails where resident memory grows after the first quarter, or descriptors at all.
#![expect(
    clippy::print_stdout,
    reason = "a table on standard output is its purpose"
)]

mod churn;
mod recorded;

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use churn::{Churn, Life, Tool};
use cohtrace::{
    event::{Batch, Mapping},
    session::{Meta, SessionWriter, WriterOptions},
};

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;
/// Of so many processes one has a file of its own.
const FILES: u64 = 10;
/// Processes between two polls.
const A_POLL: u64 = 5;
/// Looks at memory.
const LOOKS: u64 = 20;
/// Of them, while tables grow to their size.
const WARM_UP: u64 = LOOKS / 4;
/// What resident memory may grow by after that.
const FLAT: f64 = 0.1;

fn main() -> Result<()> {
    let (mut session, mut processes) = (None::<PathBuf>, 1_000_000_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What `cargo bench` adds to every call.
            "--bench" => {}
            "--session" => {
                let path = arguments.next().context("--session takes a directory")?;
                session = Some(path.into());
            }
            "--processes" => {
                let number = arguments.next().unwrap_or_default();
                processes = number.parse().context("--processes takes a number")?;
            }
            other => bail!("unknown argument {other}"),
        }
    }
    ensure!(
        processes >= 10 * LOOKS,
        "--processes takes at least {}",
        10 * LOOKS
    );
    let lives = match &session {
        Some(session) => recorded::lives(session)?,
        None => vec![Life::of_this_process()],
    };
    println!(
        "{} lives of processes, {} mappings in the middle",
        lives.len(),
        lives[lives.len() / 2].mappings.len()
    );
    run(lives, processes)
}

fn run(lives: Vec<Life>, processes: u64) -> Result<()> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut programs = Programs::new(directory.path())?;
    let options = WriterOptions {
        segment_time: Duration::from_millis(500),
        ..WriterOptions::default()
    };
    let folder = directory.path().join("soak.coh");
    let mut writer = SessionWriter::create(&folder, Meta::new(), &options)?;
    let mut tool = Tool::new(true);
    let mut churn = Churn::new(lives, DAY_NS / processes);
    // Row by row: a day takes its time.
    println!(
        "{:>10} {:>8} {:>7} {:>14} {:>12} {:>13}",
        "processes", "threads", "files", "resident, MiB", "descriptors", "entries kept"
    );
    let (mut warm, mut most) = (None, (0.0_f64, 0));
    let start = Instant::now();
    let mut batch = Batch::default();
    for look in 1..=LOOKS {
        while churn.processes < processes / LOOKS * look {
            batch.clear();
            for _ in 0..A_POLL {
                let file = churn
                    .processes
                    .is_multiple_of(FILES)
                    .then(|| programs.next())
                    .transpose()?;
                churn.next(file.as_ref(), &mut batch);
            }
            tool.feed(&batch, churn.now_ns());
            programs.remove()?;
            writer.append(&batch)?;
        }
        // On disk is what a session is for; here it only takes room.
        remove_parts(&folder)?;
        let (resident, descriptors) = (resident_mib()?, descriptors()?);
        let entries = tool.entries();
        println!(
            "{:>10} {:>8} {:>7} {resident:>14.1} {descriptors:>12} {:>13}",
            churn.processes,
            2 * churn.processes,
            programs.made,
            entries.values().sum::<usize>()
        );
        if look == WARM_UP {
            warm = Some((resident, descriptors));
        } else if look > WARM_UP {
            most = (most.0.max(resident), most.1.max(descriptors));
        }
    }
    println!("{:.0} s for a day", start.elapsed().as_secs_f64());
    let (resident, descriptors) = warm.context("there was a first quarter")?;
    ensure!(
        most.1 <= descriptors,
        "descriptors grew from {descriptors} to {}",
        most.1
    );
    ensure!(
        most.0 <= resident * (1.0 + FLAT),
        "resident memory grew from {resident:.1} to {:.1} MiB",
        most.0
    );
    println!(
        "Flat: at most {:.1} MiB after {resident:.1} MiB after the first quarter.",
        most.0
    );
    Ok(())
}

/// Programs that are there for one poll each.
struct Programs {
    directory: PathBuf,
    program: Vec<u8>,
    there: Vec<PathBuf>,
    made: u64,
}

impl Programs {
    fn new(directory: &Path) -> Result<Programs> {
        // Small, and on every machine.
        let program = ["/bin/true", "/usr/bin/true"]
            .iter()
            .find_map(|path| fs::read(path).ok());
        Ok(Programs {
            directory: directory.to_owned(),
            program: program.context("reading /bin/true")?,
            there: Vec::new(),
            made: 0,
        })
    }

    fn next(&mut self) -> Result<Mapping> {
        self.made += 1;
        let path = fs::canonicalize(&self.directory)?.join(format!("program{}", self.made));
        fs::write(&path, &self.program)?;
        let file = fs::metadata(&path)?;
        let mapping = Mapping {
            start: 0,
            len: 0,
            file_offset: 0,
            // As in /proc/PID/maps, which the kernel's records agree with.
            dev: u64::from(libc::major(file.dev())) << 32 | u64::from(libc::minor(file.dev())),
            inode: file.ino(),
            shared: false,
            executable: true,
            writable: false,
            name: path.to_string_lossy().into_owned(),
            build_id: None,
            stamp: None,
        };
        self.there.push(path);
        Ok(mapping)
    }

    fn remove(&mut self) -> Result<()> {
        for path in self.there.drain(..) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// Segments that are written.
fn remove_parts(session: &Path) -> Result<()> {
    for table in fs::read_dir(session)? {
        let table = table?.path();
        if table.is_dir() {
            for part in fs::read_dir(&table)? {
                fs::remove_file(part?.path())?;
            }
        }
    }
    Ok(())
}

fn resident_mib() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("no VmRSS")?.parse::<f64>()? / 1024.0)
}

fn descriptors() -> Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count())
}
