//! A program at work, with all that its script started; ended when dropped.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::program::Built;

/// How long a program may take until it is at work: a database is made first.
const STARTING: Duration = Duration::from_secs(90);
/// How long it may take to end in order.
const ENDING: Duration = Duration::from_secs(15);

/// A program under load, in a process group of its own. Scripts end what leaves the group.
pub(super) struct UnderLoad {
    child: Child,
    pid: u32,
    /// Vanishes with it.
    _state: tempfile::TempDir,
}

impl UnderLoad {
    /// Starts it and waits until it says `ready PID`.
    pub(super) fn start(built: &Built) -> Result<UnderLoad> {
        let state = tempfile::tempdir().context("making a directory for its state")?;
        let mut command = built.command();
        command.env("FIELD_STATE", state.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let errors = std::fs::File::create(built.directory.join("stderr"))?;
        let mut child = command.stderr(errors).spawn().context("starting it")?;
        let stdout = child.stdout.take();
        let mut under_load = UnderLoad {
            child,
            pid: 0,
            _state: state,
        };
        let (send, told) = mpsc::channel();
        let stdout = stdout.context("its output was asked for")?;
        thread::spawn(move || {
            // Nobody listens once it is ready; what it says then is thrown away.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(pid) = line.strip_prefix("ready ") {
                    send.send(pid.trim().parse::<u32>()).ok();
                }
            }
        });
        let pid = told.recv_timeout(STARTING).map_err(|_| {
            let said = std::fs::read_to_string(built.directory.join("stderr")).unwrap_or_default();
            anyhow::anyhow!("it did not say that it is ready: {}", said.trim())
        })?;
        under_load.pid = pid.context("it said another thing than `ready PID`")?;
        Ok(under_load)
    }

    /// The process to look at.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the group, if there is one.
    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.child.id());
        let mut kill = Command::new("kill");
        let kill = kill.args([signal, "--", &group]).stderr(Stdio::null());
        kill.status().ok();
    }

    /// Whether nobody lives in the group.
    fn is_alone(&self) -> bool {
        let group = self.child.id().to_string();
        let mut ps = Command::new("ps");
        let output = ps.args(["-e", "-o", "pgid=,stat="]).output();
        let text = output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).into_owned(),
        );
        !text.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(&group)
                && words.next().is_some_and(|state| !state.starts_with('Z'))
        })
    }
}

impl Drop for UnderLoad {
    fn drop(&mut self) {
        let asked = Instant::now();
        self.signal("-TERM");
        // The child is reaped last: until then nobody else can have its group's number.
        while asked.elapsed() < ENDING && !self.is_alone() {
            thread::sleep(Duration::from_millis(50));
        }
        self.signal("-KILL");
        self.child.wait().ok();
    }
}
