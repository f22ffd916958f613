//! Finds and runs the cohtrace binary; nothing that a test starts outlives it.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::OnceLock,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use crate::workload::profile_directory;

/// The binary under test: `COHTRACE_BIN`, or what cargo builds from this workspace, or, where there is no cargo,
/// what lies beside the running test.
pub fn path() -> anyhow::Result<PathBuf> {
    static PATH: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PATH.get_or_init(|| find().map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(anyhow::Error::msg)
}

fn find() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("COHTRACE_BIN") {
        return Ok(path.into());
    }
    let profile = profile_directory()?;
    // A binary that is there may be older than the sources, and testing it would test the past.
    if let Some(cargo) = std::env::var_os("CARGO") {
        let name = profile
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or("debug");
        let build = Command::new(cargo)
            .args([
                "build",
                "--quiet",
                "--package",
                "cohtrace",
                "--bin",
                "cohtrace",
            ])
            .args(["--profile", if name == "debug" { "dev" } else { name }])
            .arg("--target-dir")
            .arg(
                profile
                    .parent()
                    .context("the profile directory has a parent")?,
            )
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .context("starting cargo")?;
        if !build.status.success() {
            bail!(
                "building cohtrace:\n{}",
                String::from_utf8_lossy(&build.stderr)
            );
        }
    }
    let path = profile.join("cohtrace");
    if !path.exists() {
        bail!(
            "no {}; build it, or name one in COHTRACE_BIN",
            path.display()
        );
    }
    Ok(path)
}

/// The tool with these arguments.
pub fn cohtrace<I: IntoIterator<Item: AsRef<OsStr>>>(arguments: I) -> Command {
    let mut command = Command::new(path().unwrap_or_else(|error| panic!("{error:#}")));
    command.args(arguments);
    command
}

/// A process that has ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From start to end.
    pub took: Duration,
}

impl Ended {
    /// The exit code; panics with everything it said when a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| {
            panic!(
                "ended by signal {:?}\n{}",
                self.status.signal(),
                self.said()
            )
        })
    }

    /// Panics with everything it said unless the exit code is this one.
    #[expect(
        clippy::return_self_not_must_use,
        reason = "the assertion alone is a use"
    )]
    pub fn expect_code(self, code: i32) -> Ended {
        assert_eq!(self.code(), code, "exit code\n{}", self.said());
        self
    }

    /// Both streams, for messages.
    pub fn said(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr)
    }
}

/// A running process; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    started: Instant,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a command with both streams collected.
    pub fn start(command: &mut Command) -> anyhow::Result<Running> {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(Running {
            stdout: child.stdout.take().map(collect),
            stderr: child.stderr.take().map(collect),
            child,
            started,
        })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill takes two integers; the child is not reaped before `self` is gone, so the id is its own.
        let result = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(result, 0, "signalling {}", self.child.id());
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends; an error when it has not after the limit (a hang, not a slow machine).
    pub fn wait(mut self, limit: Duration) -> anyhow::Result<Ended> {
        let deadline = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break Some(status);
            }
            if Instant::now() >= deadline {
                break None;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let took = self.started.elapsed();
        if status.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        let text = |stream: Option<JoinHandle<String>>| {
            stream
                .map(|s| s.join().unwrap_or_default())
                .unwrap_or_default()
        };
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        match status {
            Some(status) => Ok(Ended {
                status,
                stdout,
                stderr,
                took,
            }),
            None => bail!("still running after {limit:?}\nstdout:\n{stdout}\nstderr:\n{stderr}"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            // Nothing to do about a child that cannot be killed or reaped: the test has its verdict by now.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        stream.read_to_end(&mut bytes).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a command to its end, or panics when that takes longer than the limit.
pub fn run(command: &mut Command, limit: Duration) -> Ended {
    Running::start(command)
        .and_then(|running| running.wait(limit))
        .unwrap_or_else(|error| panic!("{command:?}: {error:#}"))
}
