//! Whose statistics they are.

use crate::access::{Cpu, Pid, Tid};

/// What values are split by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Nothing.
    All,
    /// CPU, or processor of an emulated machine.
    Cpu,
    /// Thread.
    Thread,
    /// Process.
    Process,
}

impl Per {
    /// Stable name, in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Per::All => "all",
            Per::Cpu => "cpu",
            Per::Thread => "thread",
            Per::Process => "process",
        }
    }

    /// The key of an event; `None` where it is on no CPU.
    pub(crate) fn key(self, who: Who) -> Option<Key> {
        match self {
            Per::All => None,
            Per::Cpu => who.cpu.map(Key::Cpu),
            Per::Thread => Some(Key::Thread(who.pid, who.tid)),
            Per::Process => Some(Key::Process(who.pid)),
        }
    }
}

/// Whose event it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) cpu: Option<Cpu>,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
}

/// One of those that values are split by, and the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Everything.
    All,
    /// A CPU.
    Cpu(Cpu),
    /// A thread of a process.
    Thread(Pid, Tid),
    /// A process.
    Process(Pid),
}

impl Key {
    /// Words for it: `cpu 0`, `thread 11 worker`, where its name is known.
    pub fn label(self, name: Option<&str>) -> String {
        let text = match self {
            Key::All => return "all".to_owned(),
            Key::Cpu(cpu) => return format!("cpu {}", cpu.0),
            Key::Thread(_, tid) => format!("thread {}", tid.0),
            Key::Process(pid) => format!("process {}", pid.0),
        };
        match name {
            Some(name) => format!("{text} {name}"),
            None => text,
        }
    }

    /// The thread whose name is its own.
    pub(crate) fn named_by(self) -> Option<Tid> {
        match self {
            Key::All | Key::Cpu(_) => None,
            Key::Thread(_, tid) => Some(tid),
            Key::Process(pid) => Some(Tid(pid.0)),
        }
    }
}
