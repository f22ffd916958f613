//! The programs that are watched while something is measured.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::target_directory;
use crate::root;

/// Work of `tests/benches/two_threads.c` that does not end while anybody measures.
const ENDLESS: u64 = u64::MAX;

/// What the contended form's threads fight over.
pub(super) const CONTENDED: &str = "counters";

/// The built `two_threads`, in one of its forms.
pub(super) struct TwoThreads {
    path: PathBuf,
    is_contended: bool,
}

/// What one run of it took, by its own clocks.
#[derive(Clone, Copy)]
pub(super) struct Took {
    /// By the clock.
    pub wall: Duration,
    /// Of processor time, both threads.
    pub cpu: Duration,
}

impl TwoThreads {
    /// The form whose threads share nothing, built as users build theirs.
    pub(super) fn build() -> Result<TwoThreads> {
        TwoThreads::build_as("two_threads", false)
    }

    /// The form whose threads count on one line, that of the global [`CONTENDED`].
    pub(super) fn build_contended() -> Result<TwoThreads> {
        TwoThreads::build_as("two_threads_contended", true)
    }

    fn build_as(name: &str, is_contended: bool) -> Result<TwoThreads> {
        let directory = target_directory()?.join("bench");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(name);
        let status = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-g", "-pthread"])
            .args(is_contended.then_some("-DCONTENDED"))
            .arg("-o")
            .arg(&path)
            .arg(source())
            .status()
            .context("starting cc; a C compiler must be installed")?;
        ensure!(status.success(), "building two_threads failed");
        Ok(TwoThreads { path, is_contended })
    }

    /// Rounds of work that take about that long on this machine, alone.
    pub(super) fn rounds_for(&self, time: Duration) -> Result<u64> {
        const PROBE: u64 = 100_000;
        let mut took = Vec::new();
        for _ in 0..3 {
            // Processor time, because a busy machine makes the clock's time longer; two threads share it.
            took.push(self.ready(PROBE)?.go()?.cpu / 2);
        }
        // What disturbs a run of the one form makes it longer. It makes one of the other shorter, as the threads then
        // meet less.
        let undisturbed = if self.is_contended {
            took.into_iter().max()
        } else {
            took.into_iter().min()
        };
        let undisturbed = undisturbed.unwrap_or(time).as_nanos().max(1);
        let nanoseconds = time.as_nanos() * u128::from(PROBE) / undisturbed;
        Ok((nanoseconds as u64).max(1))
    }

    /// Starts it with that much work, and returns once both threads wait for the word.
    pub(super) fn ready(&self, rounds: u64) -> Result<Ready> {
        let mut child = Command::new(&self.path)
            .arg(rounds.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting two_threads")?;
        let stdin = child.stdin.take().context("its input was asked for")?;
        let stdout = child.stdout.take().context("its output was asked for")?;
        let mut ready = Ready {
            child: Killed(child),
            stdin,
            stdout: BufReader::new(stdout),
        };
        let said = ready.line()?;
        ensure!(said == "ready", "two_threads said {said:?}");
        Ok(ready)
    }

    /// Starts it with work that does not end; it works until dropped.
    pub(super) fn working(&self) -> Result<Ready> {
        let mut ready = self.ready(ENDLESS)?;
        ready.begin()?;
        Ok(ready)
    }
}

fn source() -> PathBuf {
    root().join("tests/benches/two_threads.c")
}

/// A started `two_threads`; killed when dropped.
pub(super) struct Ready {
    child: Killed,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Ready {
    /// Process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Gives the word, and waits until the work is done.
    pub(super) fn go(mut self) -> Result<Took> {
        self.begin()?;
        let said = self.line()?;
        let mut numbers = said.split(' ').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(wall)), Some(Ok(cpu))) => Ok(Took {
                wall: Duration::from_nanos(wall),
                cpu: Duration::from_nanos(cpu),
            }),
            _ => anyhow::bail!("two_threads said {said:?}"),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.stdin.write_all(b"\n").context("two_threads is gone")
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

/// A child that does not outlive this.
pub(super) struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Nothing to do about a child that cannot be killed or reaped: it has been measured.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Short processes, one after the other, as a build makes them: a compiler of a small file, again and again.
pub(super) struct Compiling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Compiling {
    /// Begins.
    pub(super) fn start() -> Compiling {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::spawn(move || {
            let mut runs = 0;
            while !told.load(Ordering::Relaxed) {
                let status = Command::new("cc")
                    .args(["-O2", "-c", "-o", "/dev/null"])
                    .arg(source())
                    .status();
                // cc is there: it built the program above. A failed run is one that made no processes.
                runs += u64::from(status.is_ok_and(|status| status.success()));
            }
            runs
        });
        Compiling {
            stop,
            thread: Some(thread),
        }
    }

    /// Ends, and tells how many files were compiled.
    pub(super) fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or(0)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
