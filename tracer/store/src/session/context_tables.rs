//! Context as columns and back: mappings in one table, threads' events in another, their common order in `seq`.

use std::sync::Arc;

use parquet::errors::ParquetError;

use super::{error::Damage, part_reader::ColumnSource, part_writer::ColumnSink};
use crate::{
    access::{Pid, Tid},
    event::{Context, ContextKind, FileStamp, LocalBlock, Mapping},
};

/// A context event and its place in the stream.
#[derive(Debug)]
pub(super) struct Placed<T> {
    /// Number among all context events of the session.
    pub seq: u64,
    /// Number of its batch.
    pub batch: u64,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// What the table holds of it.
    pub row: T,
}

/// A row of `mappings`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappingRow<'a> {
    pid: Pid,
    mapping: &'a Mapping,
}

/// A row of `tasks`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskRow<'a> {
    kind: u32,
    pid: Pid,
    tid: Tid,
    parent_pid: Option<Pid>,
    comm: Option<&'a str>,
    sp: Option<u64>,
    tp: Option<u64>,
}

/// A row of `local_storage`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRow {
    pid: Pid,
    tid: Tid,
    block: LocalBlock,
}

/// A row of `memory`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryRow<'a> {
    pid: Option<Pid>,
    start: u64,
    bytes: &'a [u8],
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
    Memory(MemoryRow<'a>),
}

impl Row<'_> {
    pub(super) fn of(kind: &ContextKind) -> Row<'_> {
        let task = |kind, pid, tid| TaskRow {
            kind,
            pid,
            tid,
            parent_pid: None,
            comm: None,
            sp: None,
            tp: None,
        };
        match kind {
            ContextKind::Mapping { pid, mapping } => {
                Row::Mapping(MappingRow { pid: *pid, mapping })
            }
            ContextKind::Comm {
                pid,
                tid,
                comm,
                exec,
            } => Row::Task(TaskRow {
                comm: Some(comm),
                ..task(if *exec { EXEC } else { COMM }, *pid, *tid)
            }),
            ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            } => Row::Task(TaskRow {
                parent_pid: Some(*parent_pid),
                ..task(FORK, *pid, *tid)
            }),
            ContextKind::LocalStorage { pid, tid, block } => Row::Block(BlockRow {
                pid: *pid,
                tid: *tid,
                block: *block,
            }),
            ContextKind::Memory { pid, start, bytes } => Row::Memory(MemoryRow {
                pid: *pid,
                start: *start,
                bytes,
            }),
            ContextKind::Exit { pid, tid } => Row::Task(task(EXIT, *pid, *tid)),
            ContextKind::Thread { pid, tid, sp, tp } => Row::Task(TaskRow {
                sp: Some(*sp),
                tp: *tp,
                ..task(THREAD, *pid, *tid)
            }),
        }
    }
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
        | ContextKind::LocalStorage { .. } => 0,
    }
}

fn encode_places<T>(rows: &[Placed<T>], sink: &mut ColumnSink<'_>) -> Result<(), ParquetError> {
    sink.u64s("seq", rows.iter().map(|placed| placed.seq))?;
    sink.u64s("batch", rows.iter().map(|placed| placed.batch))?;
    sink.u64s("time_ns", rows.iter().map(|placed| placed.time_ns))
}

/// Gives all columns of `mappings`.
pub(super) fn encode_mappings(
    placed: &[Placed<MappingRow<'_>>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let mappings = || placed.iter().map(|placed| placed.row.mapping);
    encode_places(placed, sink)?;
    sink.u32s("pid", placed.iter().map(|placed| placed.row.pid.0))?;
    sink.u64s("start", mappings().map(|mapping| mapping.start))?;
    sink.u64s("len", mappings().map(|mapping| mapping.len))?;
    sink.u64s("file_offset", mappings().map(|mapping| mapping.file_offset))?;
    sink.u64s("dev", mappings().map(|mapping| mapping.dev))?;
    sink.u64s("inode", mappings().map(|mapping| mapping.inode))?;
    sink.bools("shared", mappings().map(|mapping| mapping.shared))?;
    sink.bools("executable", mappings().map(|mapping| mapping.executable))?;
    sink.bools("writable", mappings().map(|mapping| mapping.writable))?;
    sink.texts("name", mappings().map(|mapping| mapping.name.as_str()))?;
    sink.optional_texts("build_id", mappings().map(|m| m.build_id.as_deref()))?;
    let stamp = |of: fn(&FileStamp) -> u64| mappings().map(move |m| m.stamp.as_ref().map(of));
    sink.optional_u64s("file_bytes", stamp(|stamp| stamp.bytes))?;
    sink.optional_u64s("modified_unix_ns", stamp(|stamp| stamp.modified_ns))?;
    sink.optional_u64s("changed_unix_ns", stamp(|stamp| stamp.changed_ns))
}

/// Gives all columns of `tasks`.
pub(super) fn encode_tasks(
    placed: &[Placed<TaskRow<'_>>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let rows = || placed.iter().map(|placed| placed.row);
    encode_places(placed, sink)?;
    sink.u32s("kind", rows().map(|row| row.kind))?;
    sink.u32s("pid", rows().map(|row| row.pid.0))?;
    sink.u32s("tid", rows().map(|row| row.tid.0))?;
    sink.optional_u32s(
        "parent_pid",
        rows().map(|row| row.parent_pid.map(|pid| pid.0)),
    )?;
    sink.optional_texts("comm", rows().map(|row| row.comm))?;
    sink.optional_u64s("sp", rows().map(|row| row.sp))?;
    sink.optional_u64s("tp", rows().map(|row| row.tp))
}

/// Gives all columns of `local_storage`.
pub(super) fn encode_blocks(
    placed: &[Placed<BlockRow>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let rows = || placed.iter().map(|placed| placed.row);
    encode_places(placed, sink)?;
    sink.u32s("pid", rows().map(|row| row.pid.0))?;
    sink.u32s("tid", rows().map(|row| row.tid.0))?;
    sink.u64s("start", rows().map(|row| row.block.start))?;
    sink.u64s("len", rows().map(|row| row.block.len))?;
    sink.u64s("dev", rows().map(|row| row.block.dev))?;
    sink.u64s("inode", rows().map(|row| row.block.inode))
}

/// Gives all columns of `memory`.
pub(super) fn encode_memory(
    placed: &[Placed<MemoryRow<'_>>],
    sink: &mut ColumnSink<'_>,
) -> Result<(), ParquetError> {
    let rows = || placed.iter().map(|placed| placed.row);
    encode_places(placed, sink)?;
    sink.optional_u32s("pid", rows().map(|row| row.pid.map(|pid| pid.0)))?;
    sink.u64s("start", rows().map(|row| row.start))?;
    let texts: Vec<String> = rows().map(|row| hex(row.bytes)).collect();
    sink.texts("bytes", texts.iter().map(String::as_str))
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

fn unhex(text: &str) -> Option<Arc<[u8]>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

/// Reads all columns of `memory`.
pub(super) fn decode_memory(source: &mut ColumnSource<'_>) -> Result<Vec<Placed<Context>>, Damage> {
    let places = decode_places(source)?;
    let mut pid = source.optional_u32s("pid")?.into_iter();
    let mut start = source.u64s("start")?.into_iter();
    let mut bytes = source.texts("bytes")?.into_iter();
    let mut next = || Some((pid.next()?, start.next()?, bytes.next()?));
    places
        .into_iter()
        .map(|place| {
            let (pid, start, text) =
                next().ok_or(Damage::Meta("its columns have different lengths"))?;
            let bytes = unhex(&text).ok_or(Damage::Meta("bytes that are not hexadecimal"))?;
            let pid = pid.map(Pid);
            Ok(place.holding(ContextKind::Memory { pid, start, bytes }))
        })
        .collect()
}

/// Reads all columns of `local_storage`.
pub(super) fn decode_blocks(source: &mut ColumnSource<'_>) -> Result<Vec<Placed<Context>>, Damage> {
    let places = decode_places(source)?;
    let mut pid = source.u32s("pid")?.into_iter();
    let mut tid = source.u32s("tid")?.into_iter();
    let mut start = source.u64s("start")?.into_iter();
    let mut len = source.u64s("len")?.into_iter();
    let mut dev = source.u64s("dev")?.into_iter();
    let mut inode = source.u64s("inode")?.into_iter();
    let mut next = || {
        Some(ContextKind::LocalStorage {
            pid: Pid(pid.next()?),
            tid: Tid(tid.next()?),
            block: LocalBlock {
                start: start.next()?,
                len: len.next()?,
                dev: dev.next()?,
                inode: inode.next()?,
            },
        })
    };
    places
        .into_iter()
        .map(|place| next().map(|kind| place.holding(kind)))
        .collect::<Option<_>>()
        .ok_or(Damage::Meta("its columns have different lengths"))
}

fn decode_places(source: &mut ColumnSource<'_>) -> Result<Vec<Placed<()>>, Damage> {
    let places = source.u64s("seq")?.into_iter();
    let places = places
        .zip(source.u64s("batch")?)
        .zip(source.u64s("time_ns")?);
    Ok(places
        .map(|((seq, batch), time_ns)| Placed {
            seq,
            batch,
            time_ns,
            row: (),
        })
        .collect())
}

impl Placed<()> {
    fn holding(self, kind: ContextKind) -> Placed<Context> {
        Placed {
            seq: self.seq,
            batch: self.batch,
            time_ns: self.time_ns,
            row: Context {
                time_ns: self.time_ns,
                kind,
            },
        }
    }
}

/// Reads all columns of `mappings`.
pub(super) fn decode_mappings(
    source: &mut ColumnSource<'_>,
) -> Result<Vec<Placed<Context>>, Damage> {
    let places = decode_places(source)?;
    let mut pid = source.u32s("pid")?.into_iter();
    let mut start = source.u64s("start")?.into_iter();
    let mut len = source.u64s("len")?.into_iter();
    let mut file_offset = source.u64s("file_offset")?.into_iter();
    let mut dev = source.u64s("dev")?.into_iter();
    let mut inode = source.u64s("inode")?.into_iter();
    let mut shared = source.bools("shared")?.into_iter();
    let mut executable = source.bools("executable")?.into_iter();
    let mut writable = source.bools("writable")?.into_iter();
    let mut name = source.texts("name")?.into_iter();
    let mut build_id = source.optional_texts("build_id")?.into_iter();
    let mut bytes = source.optional_u64s("file_bytes")?.into_iter();
    let mut modified = source.optional_u64s("modified_unix_ns")?.into_iter();
    let mut changed = source.optional_u64s("changed_unix_ns")?.into_iter();
    let mut stamp = || {
        let (bytes, modified, changed) = (bytes.next(), modified.next(), changed.next());
        Some(FileStamp {
            bytes: bytes.flatten()?,
            modified_ns: modified.flatten()?,
            changed_ns: changed.flatten()?,
        })
    };
    let mut next = || {
        Some(ContextKind::Mapping {
            pid: Pid(pid.next()?),
            mapping: Arc::new(Mapping {
                start: start.next()?,
                len: len.next()?,
                file_offset: file_offset.next()?,
                dev: dev.next()?,
                inode: inode.next()?,
                shared: shared.next()?,
                executable: executable.next()?,
                writable: writable.next()?,
                name: name.next()?,
                // Older parts do not have the column.
                build_id: build_id.next().flatten(),
                stamp: stamp(),
            }),
        })
    };
    places
        .into_iter()
        .map(|place| next().map(|kind| place.holding(kind)))
        .collect::<Option<_>>()
        .ok_or(Damage::Meta("its columns have different lengths"))
}

/// Reads all columns of `tasks`.
pub(super) fn decode_tasks(source: &mut ColumnSource<'_>) -> Result<Vec<Placed<Context>>, Damage> {
    let places = decode_places(source)?;
    let mut kind = source.u32s("kind")?.into_iter();
    let mut pid = source.u32s("pid")?.into_iter();
    let mut tid = source.u32s("tid")?.into_iter();
    let mut parent_pid = source.optional_u32s("parent_pid")?.into_iter();
    let mut comm = source.optional_texts("comm")?.into_iter();
    let mut sp = source.optional_u64s("sp")?.into_iter();
    let mut tp = source.optional_u64s("tp")?.into_iter();
    let mut next = |row| {
        let kind = kind.next()?;
        let (pid, tid) = (Pid(pid.next()?), Tid(tid.next()?));
        let (parent_pid, comm) = (parent_pid.next()?, comm.next()?);
        let (sp, tp) = (sp.next()?, tp.next()?);
        // A kind comes with its own columns and no others; all else is not what was written.
        Some(match (kind, parent_pid, comm, sp, tp) {
            (COMM | EXEC, None, Some(comm), None, None) => Ok(ContextKind::Comm {
                pid,
                tid,
                comm,
                exec: kind == EXEC,
            }),
            (FORK, Some(parent_pid), None, None, None) => Ok(ContextKind::Fork {
                pid,
                tid,
                parent_pid: Pid(parent_pid),
            }),
            (EXIT, None, None, None, None) => Ok(ContextKind::Exit { pid, tid }),
            (THREAD, None, None, Some(sp), tp) => Ok(ContextKind::Thread { pid, tid, sp, tp }),
            _ => Err(Damage::Value {
                column: "kind",
                row,
                value: u64::from(kind),
            }),
        })
    };
    places
        .into_iter()
        .enumerate()
        .map(|(row, place)| {
            let kind = next(row).ok_or(Damage::Meta("its columns have different lengths"))??;
            Ok(place.holding(kind))
        })
        .collect()
}
