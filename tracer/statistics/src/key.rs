//! Whose statistics they are.

use crate::access::{Cpu, LineKey, Pid, SpaceId, Tid};

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
    /// Function that accesses, by names.
    Function,
    /// Source line that accesses, by names.
    Line,
    /// Variable or allocation that is accessed, by names.
    Object,
}

impl Per {
    /// Stable name, in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Per::All => "all",
            Per::Cpu => "cpu",
            Per::Thread => "thread",
            Per::Process => "process",
            Per::Function => "function",
            Per::Line => "line",
            Per::Object => "object",
        }
    }

    /// Whether keys are addresses until somebody names them ([`Fold::name`](crate::Fold::name)).
    pub fn is_by_name(self) -> bool {
        matches!(self, Per::Function | Per::Line | Per::Object)
    }

    /// The key of an event; `None` where it is on no CPU, or is no access.
    pub(crate) fn key(self, who: Who) -> Option<Key> {
        match self {
            Per::All => None,
            Per::Cpu => who.cpu.map(Key::Cpu),
            Per::Thread => Some(Key::Thread(who.pid, who.tid)),
            Per::Process => Some(Key::Process(who.pid)),
            Per::Function | Per::Line => who.code,
            Per::Object => who.memory.map(Key::Memory),
        }
    }
}

/// Whose event it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) cpu: Option<Cpu>,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    /// A [`Key::Code`], where that is asked for.
    pub(crate) code: Option<Key>,
    /// Where that is asked for.
    pub(crate) memory: Option<LineKey>,
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
    /// An instruction, until it is named.
    Code {
        /// Address space of its code.
        space: SpaceId,
        /// Its address.
        ip: u64,
        /// It ran in kernel mode.
        kernel: bool,
    },
    /// A cache line, until it is named.
    Memory(LineKey),
    /// Everything of one name: its number in the order of names.
    Named(u32),
}

impl Key {
    /// Words for it: `cpu 0`, `thread 11 worker`, where its name is known.
    pub fn label(self, name: Option<&str>) -> String {
        let text = match self {
            Key::All => return "all".to_owned(),
            Key::Cpu(cpu) => return format!("cpu {}", cpu.0),
            Key::Thread(_, tid) => format!("thread {}", tid.0),
            Key::Process(pid) => format!("process {}", pid.0),
            Key::Code { ip, .. } => format!("{ip:#x}"),
            Key::Memory(line) => line.to_string(),
            Key::Named(_) => return name.unwrap_or_default().to_owned(),
        };
        match name {
            Some(name) => format!("{text} {name}"),
            None => text,
        }
    }

    /// The threads whose name is its own, the better first.
    pub(crate) fn named_by(self) -> [Option<Tid>; 2] {
        match self {
            // A thread that never took a name has its process's.
            Key::Thread(pid, tid) => [Some(tid), Some(Tid(pid.0))],
            Key::Process(pid) => [Some(Tid(pid.0)), None],
            _ => [None, None],
        }
    }
}
