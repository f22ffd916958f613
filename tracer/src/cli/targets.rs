//! The processes to watch: given by pid, or started here.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::{Command, Stdio},
};

use anyhow::{Result, bail};

use super::{args::TargetArgs, started::Started};
use crate::{
    access::Pid,
    printable::words,
    report::model,
    source::{SourceError, Target},
    sys::pidfd::PidFd,
};

/// What is being watched, and whether it is still there.
pub struct Targets {
    /// For the source.
    pub target: Target,
    /// For the report.
    pub described: Vec<model::Target>,
    watched: Vec<PidFd>,
    command: Option<Started>,
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
            let started = Started::hold(command, &args.command, args.leave_running)?;
            let pid = started.pid();
            targets.target = Target::Trees(vec![Pid(pid)]);
            targets.described = vec![model::Target {
                pid: Some(pid),
                command: Some(spoken(&args.command)),
            }];
            targets.command = Some(started);
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
        self.command.as_mut().map_or(Ok(()), Started::release)
    }

    /// Whether all that we were asked to watch has ended. Never for "everything".
    pub fn ended(&mut self) -> bool {
        match (&mut self.command, self.target == Target::Everything) {
            (_, true) => false,
            (Some(command), _) => command.ended(),
            (None, _) => self.watched.iter().all(|fd| fd.has_ended().unwrap_or(true)),
        }
    }

    /// Ends what we started, unless it shall stay. Returns what is worth telling about how it ended.
    pub fn finish(&mut self) -> Vec<String> {
        self.command
            .take()
            .map_or_else(Vec::new, |mut command| command.finish())
    }
}

/// A command for people to read.
pub fn spoken(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| words(word)).collect();
    words.join(" ")
}

/// The command line of a running process, or its name where it has none (kernel threads).
fn command_line(pid: u32) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<String> = bytes
        .split(|b| *b == 0)
        .filter(|word| !word.is_empty())
        .map(|word| words(OsStr::from_bytes(word)))
        .collect();
    if arguments.is_empty() {
        let comm = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
        let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
        return Some(words(OsStr::from_bytes(comm)));
    }
    Some(arguments.join(" "))
}
