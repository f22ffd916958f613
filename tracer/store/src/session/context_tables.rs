//! Context as columns and back: mappings in one table, threads' events in another, their common order in `seq`.

use std::sync::Arc;

use super::error::Damage;
use crate::{
    access::{Pid, Tid},
    event::{Context, ContextKind, LocalBlock, Mapping, Pace},
};

pub(super) use super::schema::{
    decode_blocks, decode_mappings, decode_memory, decode_paces, decode_tasks,
};

/// A row of `mappings`.
#[derive(Debug)]
pub(super) struct MappingRow<'a> {
    pub time_ns: u64,
    pub pid: Pid,
    pub mapping: &'a Mapping,
}

/// A row of `tasks`.
#[derive(Debug)]
pub(super) struct TaskRow<'a> {
    pub time_ns: u64,
    pub kind: u32,
    pub pid: Pid,
    pub tid: Tid,
    pub parent_pid: Option<Pid>,
    pub comm: Option<&'a str>,
    pub sp: Option<u64>,
    pub tp: Option<u64>,
}

/// A row of `local_storage`.
#[derive(Debug)]
pub(super) struct BlockRow {
    pub time_ns: u64,
    pub pid: Pid,
    pub tid: Tid,
    pub block: LocalBlock,
}

/// A row of `paces`.
#[derive(Debug)]
pub(super) struct PaceRow {
    pub time_ns: u64,
    pub read: Pace,
}

/// A row of `memory`.
#[derive(Debug)]
pub(super) struct MemoryRow {
    pub time_ns: u64,
    pub pid: Option<Pid>,
    pub start: u64,
    pub bytes: String,
}

const COMM: u32 = 0;
const EXEC: u32 = 1;
const FORK: u32 = 2;
const EXIT: u32 = 3;
const THREAD: u32 = 4;

/// The row that an event becomes, of one of the tables.
pub(super) enum Row<'a> {
    /// In `mappings`.
    Mapping(MappingRow<'a>),
    /// In `tasks`.
    Task(TaskRow<'a>),
    /// In `local_storage`.
    Block(BlockRow),
    /// In `memory`.
    Memory(MemoryRow),
    /// In `paces`.
    Pace(PaceRow),
}

impl Row<'_> {
    pub(super) fn of(event: &Context) -> Row<'_> {
        let time_ns = event.time_ns;
        let task = |kind, pid, tid| TaskRow {
            time_ns,
            kind,
            pid,
            tid,
            parent_pid: None,
            comm: None,
            sp: None,
            tp: None,
        };
        match event.kind {
            ContextKind::Mapping { pid, ref mapping } => Row::Mapping(MappingRow {
                time_ns,
                pid,
                mapping,
            }),
            ContextKind::Comm {
                pid,
                tid,
                ref comm,
                exec,
            } => Row::Task(TaskRow {
                comm: Some(comm),
                ..task(if exec { EXEC } else { COMM }, pid, tid)
            }),
            ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            } => Row::Task(TaskRow {
                parent_pid: Some(parent_pid),
                ..task(FORK, pid, tid)
            }),
            ContextKind::LocalStorage { pid, tid, block } => Row::Block(BlockRow {
                time_ns,
                pid,
                tid,
                block,
            }),
            ContextKind::Memory {
                pid,
                start,
                ref bytes,
            } => Row::Memory(MemoryRow {
                time_ns,
                pid,
                start,
                bytes: hex(bytes),
            }),
            ContextKind::Pace(read) => Row::Pace(PaceRow { time_ns, read }),
            ContextKind::Exit { pid, tid } => Row::Task(task(EXIT, pid, tid)),
            ContextKind::Thread { pid, tid, sp, tp } => Row::Task(TaskRow {
                sp: Some(sp),
                tp,
                ..task(THREAD, pid, tid)
            }),
        }
    }
}

/// The event of a thread that a row of `tasks` is. A kind comes with its own columns and no others; all else is not what was
/// written.
pub(super) fn task(
    row: usize,
    kind: u32,
    (pid, tid): (Pid, Tid),
    parent_pid: Option<u32>,
    comm: Option<String>,
    sp: Option<u64>,
    tp: Option<u64>,
) -> Result<ContextKind, Damage> {
    Ok(match (kind, parent_pid, comm, sp, tp) {
        (COMM | EXEC, None, Some(comm), None, None) => ContextKind::Comm {
            pid,
            tid,
            comm,
            exec: kind == EXEC,
        },
        (FORK, Some(parent_pid), None, None, None) => ContextKind::Fork {
            pid,
            tid,
            parent_pid: Pid(parent_pid),
        },
        (EXIT, None, None, None, None) => ContextKind::Exit { pid, tid },
        (THREAD, None, None, Some(sp), tp) => ContextKind::Thread { pid, tid, sp, tp },
        _ => return Err(Damage::value("kind", row, kind)),
    })
}

/// Bytes of texts in an event.
pub(super) fn text_bytes(kind: &ContextKind) -> usize {
    match kind {
        ContextKind::Mapping { mapping, .. } => {
            mapping.name.len() + mapping.build_id.as_ref().map_or(0, String::len)
        }
        ContextKind::Comm { comm, .. } => comm.len(),
        ContextKind::Memory { bytes, .. } => 2 * bytes.len(),
        ContextKind::Fork { .. }
        | ContextKind::Exit { .. }
        | ContextKind::Thread { .. }
        | ContextKind::LocalStorage { .. }
        | ContextKind::Pace(_) => 0,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(super) fn unhex(text: &str) -> Option<Arc<[u8]>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
