//! The processes to watch: given by pid, or started here.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::args::TargetArgs;
use crate::{
    access::Pid,
    report::model,
    source::{SourceError, Target},
    sys::{launch::Held, pidfd::PidFd, terminate},
};

/// How long a command that we started may take to end after SIGTERM.
const TERMINATION_PATIENCE: Duration = Duration::from_secs(2);

/// What is being watched, and whether it is still there.
pub struct Targets {
    /// For the source.
    pub target: Target,
    /// For the report.
    pub described: Vec<model::Target>,
    watched: Vec<PidFd>,
    command: Option<Started>,
    leave_running: bool,
}

enum Started {
    Held(Held),
    Running(Child),
}

impl Targets {
    /// Finds or forks the targets. A command waits until [`Targets::release`]; `wrapped` is the command that runs it
    /// in something else.
    pub fn open(
        args: &TargetArgs,
        wrapped: Option<Command>,
        output_to_stderr: bool,
    ) -> Result<Targets> {
        let mut targets = Targets {
            target: Target::Everything,
            described: vec![model::Target {
                pid: None,
                command: Some("all processes".into()),
            }],
            watched: Vec::new(),
            command: None,
            leave_running: args.leave_running,
        };
        if let Some((program, arguments)) = args.command.split_first() {
            let mut command = wrapped.unwrap_or_else(|| {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            });
            if output_to_stderr {
                command.stdout(Stdio::from(std::io::stderr()));
            }
            let held = Held::new(command).with_context(|| format!("starting {program}"))?;
            let pid = held.pid();
            targets.target = Target::Trees(vec![Pid(pid)]);
            targets.described = vec![model::Target {
                pid: Some(pid),
                command: Some(args.command.join(" ")),
            }];
            targets.command = Some(Started::Held(held));
        } else if !args.pid.is_empty() {
            targets.described.clear();
            for pid in &args.pid {
                if *pid == std::process::id() {
                    bail!("pid {pid} is cohtrace itself");
                }
                let fd = PidFd::open(Pid(*pid)).map_err(|error| match error.raw_os_error() {
                    // A thread that leads no group is EINVAL (or ENOENT since 6.15): not a process either.
                    Some(libc::ESRCH | libc::EINVAL | libc::ENOENT) => {
                        anyhow::Error::from(SourceError::NoSuchProcess(*pid))
                    }
                    _ => anyhow::Error::from(error).context(format!("watching process {pid}")),
                })?;
                targets.watched.push(fd);
                targets.described.push(model::Target {
                    pid: Some(*pid),
                    command: command_line(*pid),
                });
            }
            targets.target = Target::Trees(args.pid.iter().copied().map(Pid).collect());
        }
        Ok(targets)
    }

    /// Lets a started command run.
    pub fn release(&mut self) -> Result<()> {
        self.command = match self.command.take() {
            Some(Started::Held(held)) => {
                let name = self.described[0].command.clone().unwrap_or_default();
                let child = held.release().with_context(|| format!("running {name}"))?;
                Some(Started::Running(child))
            }
            other => other,
        };
        Ok(())
    }

    /// Whether all that we were asked to watch has ended. Never for "everything".
    pub fn ended(&mut self) -> bool {
        match (&mut self.command, self.target == Target::Everything) {
            (_, true) | (Some(Started::Held(_)), _) => false,
            (Some(Started::Running(child)), _) => !matches!(child.try_wait(), Ok(None)),
            (None, _) => self.watched.iter().all(|fd| fd.has_ended().unwrap_or(true)),
        }
    }

    /// Ends a command that we started, unless it ended itself or shall stay. Returns what is worth
    /// telling about how it ended.
    pub fn finish(&mut self) -> Option<String> {
        let Some(Started::Running(child)) = &mut self.command else {
            return None;
        };
        match child.try_wait() {
            Ok(Some(status)) if status.success() => None,
            Ok(Some(status)) => Some(format!("the command ended with {status}")),
            _ if self.leave_running => None,
            _ => {
                end(child);
                None
            }
        }
    }
}

fn end(child: &mut Child) {
    let _ = terminate::terminate(Pid(child.id()));
    let deadline = Instant::now() + TERMINATION_PATIENCE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The command line of a running process, or its name where it has none (kernel threads).
fn command_line(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = bytes
        .split(|b| *b == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    if words.is_empty() {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        return Some(comm.trim_end().to_owned());
    }
    Some(words.join(" "))
}
