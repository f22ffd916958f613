//! The processes to watch: given by pid, or started here.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    process::{Command, Stdio},
};

use super::{ObserveError, started::Started};
use crate::{
    access::Pid,
    printable::words,
    source::{SourceError, Target},
    sys::pidfd::PidFd,
};

/// What to observe, as it was asked for.
pub enum What {
    /// Every process.
    Everything,
    /// These processes and what they start.
    Processes(Vec<u32>),
    /// A command that is started for it.
    Command(Box<Starting>),
}

/// A command to start.
pub struct Starting {
    /// As it was typed.
    pub words: Vec<OsString>,
    /// What runs it in something else, an emulator.
    pub wrapped: Option<Command>,
    /// Its standard output goes to standard error.
    pub output_to_stderr: bool,
    /// It stays when the observation is over.
    pub leave_running: bool,
}

/// A target for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// `None` for every process.
    pub pid: Option<u32>,
    /// Command line, where known.
    pub command: Option<String>,
}

/// What is being watched, and whether it is still there.
pub struct Targets {
    /// For the source.
    pub target: Target,
    /// The targets as the progress line and the report name them.
    pub described: Vec<Described>,
    watched: Vec<PidFd>,
    command: Option<Started>,
}

impl Targets {
    /// Finds or forks the targets. A command waits until [`Targets::release`].
    pub fn open(what: What) -> Result<Targets, ObserveError> {
        match what {
            What::Everything => Ok(Targets {
                target: Target::Everything,
                described: vec![Described {
                    pid: None,
                    command: Some("all processes".into()),
                }],
                watched: Vec::new(),
                command: None,
            }),
            What::Processes(pids) => Targets::of_processes(&pids),
            What::Command(starting) => Targets::of_command(*starting),
        }
    }

    fn of_command(starting: Starting) -> Result<Targets, ObserveError> {
        let words = starting.words;
        let mut command = starting.wrapped.unwrap_or_else(|| {
            let mut words = words.iter();
            let mut command = Command::new(words.next().cloned().unwrap_or_default());
            command.args(words);
            command
        });
        if starting.output_to_stderr {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let started = Started::hold(command, &words, starting.leave_running)?;
        let pid = started.pid();
        Ok(Targets {
            target: Target::Trees(vec![Pid(pid)]),
            described: vec![Described {
                pid: Some(pid),
                command: Some(spoken(&words)),
            }],
            watched: Vec::new(),
            command: Some(started),
        })
    }

    fn of_processes(pids: &[u32]) -> Result<Targets, ObserveError> {
        let mut targets = Targets {
            target: Target::Trees(pids.iter().copied().map(Pid).collect()),
            described: Vec::new(),
            watched: Vec::new(),
            command: None,
        };
        for &pid in pids {
            if pid == std::process::id() {
                return Err(ObserveError::Itself(pid));
            }
            let fd = PidFd::open(Pid(pid)).map_err(|source| match source.raw_os_error() {
                // A thread that leads no group is EINVAL (or ENOENT since 6.15): not a process either.
                Some(libc::ESRCH | libc::EINVAL | libc::ENOENT) => {
                    SourceError::NoSuchProcess(pid).into()
                }
                _ => ObserveError::Process { pid, source },
            })?;
            targets.watched.push(fd);
            targets.described.push(Described {
                pid: Some(pid),
                command: command_line(pid),
            });
        }
        Ok(targets)
    }

    /// What becomes readable when a process ends that we were asked to watch. A started command is there once it was released.
    pub fn processes(&self) -> Vec<PidFd> {
        let watched = self.watched.iter().filter_map(|fd| fd.try_clone().ok());
        let command = self.command.as_ref().and_then(Started::process);
        watched.chain(command).collect()
    }

    /// Lets a started command run.
    pub fn release(&mut self) -> Result<(), ObserveError> {
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
pub(super) fn spoken(command: &[OsString]) -> String {
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
