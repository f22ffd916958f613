//! The files of a session: tables, columns, types, units. Schema version 8.
//!
//! Every table is a folder of `part-NNNNN.parquet`; parts of equal number are one segment, a stretch of
//! time. A table without rows in a segment has no part there, except `accesses`. Parts hold one row group,
//! zstd, no nulls unless marked `null`. Rows are in stream order; `seq` and `batch` restore it after any sort.
//!
//! All tables begin with `seq` and `batch`. `seq` is the number of the row in the session, from 0; in `mappings`, `tasks`,
//! `local_storage`, `memory` and `paces`, which are the context, its number among the rows of all five. `batch` is the number of the
//! batch that it came in; context of a batch applies by time within it, and `allocations` do after context.
//!
//! Below, each other column is declared once: its unit and meaning, its name and type, how its values are laid out, and
//! after `=` what a row has there.
//!
//! Each part carries two facts in its footer: `cohtrace.segment` (JSON: segment number; in `accesses` also the
//! row counts and the tally of the segment) and `cohtrace.seal` (see the `seal` module's comment). For other readers,
//! who may have parts of many sessions, it also says where it is from, as far as known: `cohtrace.host`,
//! `cohtrace.boot_id`, `cohtrace.schema_version`, `cohtrace.started_unix_ns`, as in `meta.json`.
//!
//! Version 1 had no `windows`, and no `basis` 3; versions 1 and 2 had no `local_storage` and no `allocations`; versions
//! before 5 had no `repeats`, no `op` 5 and no `basis` 5; versions before 6 had no `within`, `wait` and `instead`, and no
//! `memory`; versions before 7 had no `file_bytes`, `modified_unix_ns` and
//! `changed_unix_ns`, and no `ended_by` 4; versions before 8 had no `paces`.

use std::{collections::BTreeMap, sync::Arc};

use parquet::errors::ParquetError;

use super::{
    access_table::{Values, access_columns, fill},
    allocation_table::{self, AllocationRow, Stacks},
    cell::{Cell, load},
    columns::{of_kind, rows, table},
    context_tables::{self, BlockRow, MappingRow, MemoryRow, PaceRow, TaskRow},
    error::Damage,
    part_reader::ColumnSource,
    part_writer::ColumnSink,
};
use crate::{
    access::{Access, Pid, Tid},
    event::{
        Allocation, Context, ContextKind, FileStamp, Growth, HoldEnd, LocalBlock, Mapping, Pace,
        Window,
    },
};

pub use super::columns::Table;
pub(super) use super::columns::{Coding, Column, Kind, Placed, Run};

/// Version of the tables and of `meta.json` that this build writes.
pub const SCHEMA_VERSION: u32 = 8;

/// Rows of one table in one segment: the reader refuses more, the writer never makes more.
pub(super) const MAX_SEGMENT_ROWS: usize = 1 << 20;

/// Windows in one segment. Fewer, because a window takes some hundred bytes in memory and in a part.
pub(super) const MAX_SEGMENT_WINDOWS: usize = 1 << 16;

/// Bytes of names in one segment. Small, because a dictionary makes a repeated name nearly free on
/// disk but not in memory.
pub(super) const MAX_SEGMENT_TEXT_BYTES: usize = 32 << 20;

/// Bytes of one part. A row of random bits needs at most 79 bytes (a window 300), so that a part of the most
/// rows and the most text stays below.
pub(super) const MAX_PART_BYTES: u64 = 160 << 20;

/// Footer key of the segment's number and counts.
pub(super) const SEGMENT_KEY: &str = "cohtrace.segment";

access_columns! {
    /// `accesses`: one row per memory access.
    ///
    /// Of the codings tried, these take the least time per byte saved: an access comes with others of the same sample, so
    /// that ids and ips repeat and zstd alone does well; the dictionary's hashing would cost a fifth of all time for ids,
    /// 5 % of bytes.
    // Lacking before version 4; of version 4; of version 5.
    ACCESSES: "accesses", MAX_SEGMENT_ROWS, [7, 4, 3];
    {
        /// ns | CLOCK_MONOTONIC
        time_ns: U64 Delta = time_ns,
        /// | logical CPU
        cpu: U32 Plain = cpu.0,
        /// | process, initial pid namespace
        pid: U32 Plain = pid.0,
        /// | thread, initial pid namespace
        tid: U32 Plain = tid.0,
        /// address | the accessing instruction
        ip: U64 Delta = ip,
        /// address | first byte accessed, virtual
        addr: U64 Dictionary = addr,
    }
    {
        /// bytes | bytes touched; by all executions together, where `repeats` says that there are more
        size: U16 Dictionary = size,
        /// code | 0 load, 1 store, 2 read-modify-write, 3 prefetch, 4 not known, 5 prefetch for ownership
        op: U8 Dictionary = op,
        /// code | 0 stalled, 1 decoded, 2 harvested, 3 trapped, 4 sampled by a PMU, 5 emulated
        basis: U8 Dictionary = basis,
        /// | bus-locked or implicitly locked
        locked: Bool Plain = locked,
        /// | executed in kernel mode
        kernel: Bool Plain = kernel,
        /// ns or cycles | sampled time it stands for, 0 where another access of the sample has it; or, by `cost_unit` in
        /// `meta.json`, the latency of a sampled load; 0 of an emulated access, whose messages follow from the order
        cost_ns: U32 Dictionary = cost.0,
    }
    {
        /// | `perf_mem_data_src` of include/uapi/linux/perf_event.h; null where none was recorded
        data_source: U64 Dictionary null = measured.source,
    }
    {
        /// cycles | of a sampled access, issue to completion; null where not measured
        latency: U32 Dictionary null = measured.latency_cycles,
    }
    {
        /// address | physical address of the first byte; null where not recorded
        phys_addr: U64 Plain null = measured.phys_addr,
    }
    {
        /// executions | further executions of the same instruction on bytes among these by the same thread that this row
        /// stands for, before another CPU asked for the line (of 64 bytes, or of 128, as `exact_line_bytes` in `meta.json`
        /// says; with `exact_elsewhere`, for either neighbour too); null for none
        repeats: U32 Dictionary null = measured.repeats,
    }
    {
        /// bytes | of an access whose own address is not known: it lies somewhere in so many bytes from `addr` on; null
        /// where `addr` is its first byte
        within: U8 Dictionary null = within,
    }
    {
        /// code | of a stalled access: 1 the CPU stood at a full barrier after it, 2 in a loop that reads it until another
        /// thread stores; null at the instruction itself
        wait: U8 Dictionary null = wait,
    }
    {
        /// | of a stalled access: the row of the same sample, counted from 1, that was waited for if nobody stores to this
        /// one's line; null for none
        instead: U8 Dictionary null = instead,
    }
}

/// The coding of a column of accesses that are all of an emulator. They are many, of few kinds, and their addresses
/// lie near those of the accesses before: no dictionary, whose hashing took a third of the time.
pub(super) fn emulated_coding(column: &Column) -> Coding {
    match column.kind {
        Kind::Bool | Kind::Text => column.coding,
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Coding::Delta,
    }
}

rows! {
    /// `mappings`: one row per range of memory that appeared in a process.
    // Lacking before version 4; of versions 4 to 6.
    MAPPINGS: "mappings", MAX_SEGMENT_ROWS, [4, 3];
    encode_mappings(row: MappingRow<'_>), decode_mappings(_) -> Vec<Placed<Context>>, placed;
    /// ns | CLOCK_MONOTONIC
    time_ns: U64 Delta = row.time_ns,
    /// | process
    pid: U32 Dictionary = row.pid.0,
    /// address | first address
    start: U64 Delta = row.mapping.start,
    /// bytes | length
    len: U64 Dictionary = row.mapping.len,
    /// bytes | offset in the file
    file_offset: U64 Dictionary = row.mapping.file_offset,
    /// | `major << 32 \| minor`, 0 for anonymous private memory; all ones where a file's was not recorded, which an import
    /// may not have
    dev: U64 Dictionary = row.mapping.dev,
    /// | 0 for anonymous private memory; with `dev` all ones, a number by which equal files are equal
    inode: U64 Dictionary = row.mapping.inode,
    /// | of the mapping
    shared: Bool Plain = row.mapping.shared,
    /// | of the mapping
    executable: Bool Plain = row.mapping.executable,
    /// | of the mapping
    writable: Bool Plain = row.mapping.writable,
    /// | path (bytes that are not UTF-8 as U+10FE00 + byte), `[heap]`, `[stack]`, `//anon`, .. or empty
    name: Text Dictionary = row.mapping.name.as_str(),
    /// | of the file, hexadecimal; null where not recorded
    build_id: Text Dictionary null = row.mapping.build_id.as_deref(),
    /// bytes | length of the file when it was seen mapped; null where nobody looked, or it was gone
    file_bytes: U64 Dictionary null = row.mapping.stamp.map(|stamp| stamp.bytes),
    /// ns | its `mtime` then, since 1970-01-01 UTC; null with `file_bytes`
    modified_unix_ns: U64 Dictionary null = row.mapping.stamp.map(|stamp| stamp.modified_ns),
    /// ns | its `ctime` then, since 1970-01-01 UTC; null with `file_bytes`
    changed_unix_ns: U64 Dictionary null = row.mapping.stamp.map(|stamp| stamp.changed_ns),
    => {
        let stamp = file_bytes.zip(modified_unix_ns).zip(changed_unix_ns);
        let stamp = stamp.map(|((bytes, modified_ns), changed_ns)| FileStamp { bytes, modified_ns, changed_ns });
        let mapping = Arc::new(Mapping {
            start, len, file_offset, dev, inode, shared, executable, writable, name, build_id, stamp,
        });
        Context { time_ns, kind: ContextKind::Mapping { pid: Pid(pid), mapping } }
    }
}

rows! {
    /// `tasks`: one row per event of a thread.
    TASKS: "tasks", MAX_SEGMENT_ROWS, [];
    encode_tasks(row: TaskRow<'_>), decode_tasks(n) -> Vec<Placed<Context>>, placed;
    /// ns | CLOCK_MONOTONIC
    time_ns: U64 Delta = row.time_ns,
    /// code | 0 comm, 1 comm by exec, 2 fork, 3 exit, 4 thread's stack and thread pointer
    kind: U8 Dictionary = row.kind,
    /// | process
    pid: U32 Dictionary = row.pid.0,
    /// | thread
    tid: U32 Dictionary = row.tid.0,
    /// | process of the thread that forked; null unless kind 2
    parent_pid: U32 Dictionary null = row.parent_pid.map(|pid| pid.0),
    /// | thread name; null unless kind 0 or 1
    comm: Text Dictionary null = row.comm,
    /// address | stack pointer; null unless kind 4
    sp: U64 Plain null = row.sp,
    /// address | thread pointer; null unless kind 4 and known
    tp: U64 Plain null = row.tp,
    => {
        let kind = context_tables::task(n, kind, (Pid(pid), Tid(tid)), parent_pid, comm, sp, tp)?;
        Context { time_ns, kind }
    }
}

rows! {
    /// `local_storage`: one row per block of thread-local variables that was found: a thread's copy of one module's.
    LOCAL_STORAGE: "local_storage", MAX_SEGMENT_ROWS, [];
    encode_blocks(row: BlockRow), decode_blocks(_) -> Vec<Placed<Context>>, placed;
    /// ns | CLOCK_MONOTONIC
    time_ns: U64 Delta = row.time_ns,
    /// | process
    pid: U32 Dictionary = row.pid.0,
    /// | thread
    tid: U32 Dictionary = row.tid.0,
    /// address | first address of the block
    start: U64 Plain = row.block.start,
    /// bytes | length
    len: U64 Dictionary = row.block.len,
    /// | of the module's file, as in `mappings`
    dev: U64 Dictionary = row.block.dev,
    /// | of the module's file, as in `mappings`
    inode: U64 Dictionary = row.block.inode,
    => {
        let block = LocalBlock { start, len, dev, inode };
        Context { time_ns, kind: ContextKind::LocalStorage { pid: Pid(pid), tid: Tid(tid), block } }
    }
}

rows! {
    /// `memory`: one row per stretch of memory that was read for the sake of names: functions of the kernel, and pointers
    /// of programs.
    MEMORY: "memory", MAX_SEGMENT_ROWS, [];
    encode_memory(row: MemoryRow), decode_memory(_) -> Vec<Placed<Context>>, placed;
    /// ns | CLOCK_MONOTONIC
    time_ns: U64 Delta = row.time_ns,
    /// | process; null for the kernel's own memory
    pid: U32 Dictionary null = row.pid.map(|pid| pid.0),
    /// address | of the first byte
    start: U64 Plain = row.start,
    /// | what was there, hexadecimal
    bytes: Text Plain = row.bytes.as_str(),
    => {
        let bytes = context_tables::unhex(&bytes);
        let bytes = bytes.ok_or(Damage::Meta("bytes that are not hexadecimal"))?;
        Context { time_ns, kind: ContextKind::Memory { pid: pid.map(Pid), start, bytes } }
    }
}

/// Bytes of a word whose growth was read.
fn word_len(row: usize, len: u32) -> Result<u8, Damage> {
    match len {
        4 => Ok(4),
        8 => Ok(8),
        _ => Err(Damage::value("len", row, len)),
    }
}

rows! {
    /// `paces`: one row per reading of how fast a word grew that one thread alone stores to, beside the other threads of
    /// a line and while those were held.
    PACES: "paces", MAX_SEGMENT_ROWS, [];
    encode_paces(row: PaceRow), decode_paces(n) -> Vec<Placed<Context>>, placed;
    /// ns | CLOCK_MONOTONIC, when it had ended
    time_ns: U64 Delta = row.time_ns,
    /// | process
    pid: U32 Dictionary = row.read.pid.0,
    /// | the word's thread
    tid: U32 Dictionary = row.read.tid.0,
    /// address | first byte of the word
    addr: U64 Dictionary = row.read.addr,
    /// bytes | of the word, 4 or 8
    len: U8 Dictionary = u32::from(row.read.len),
    /// address | on the line whose other threads were, or were to be, held
    line_addr: U64 Dictionary = row.read.line_addr,
    /// | what was added to the word beside the others, before and after
    beside_added: U64 Plain = row.read.beside.added,
    /// ns | what its thread ran meanwhile
    beside_run_ns: U64 Plain = row.read.beside.run_ns,
    /// ns | what the others ran meanwhile, together
    others_run_ns: U64 Plain = row.read.others_run_ns,
    /// ns | wall time of it
    beside_ns: U64 Plain = row.read.beside_ns,
    /// | what was added to the word while the others were held; 0 where they were not
    alone_added: U64 Plain = row.read.alone.added,
    /// ns | what its thread ran meanwhile
    alone_run_ns: U64 Plain = row.read.alone.run_ns,
    /// ns | wall time from the first thread that was asked to stop to the last that was let go
    held_ns: U64 Plain = row.read.held_ns,
    /// | threads held
    held: U16 Dictionary = u32::from(row.read.held),
    /// | of those, in a system call when they stopped
    in_system_call: U16 Dictionary = u32::from(row.read.in_system_call),
    /// | the others, held or not
    others: U16 Dictionary = u32::from(row.read.others),
    /// code | 0 held, 1 nobody was to be held, 2 the word grew too slowly, 3 it stood still while they were held, 4 its thread
    /// was off its CPU, 5 the others did not all stop, 6 they may not be held, 7 it could not be read
    ended_by: U8 Dictionary = u32::from(row.read.end.index()),
    => {
        let end = HoldEnd::ALL.get(ended_by as usize).copied();
        let end = end.ok_or(Damage::value("ended_by", n, ended_by))?;
        let len = word_len(n, len)?;
        let threads = |name, value: u32| u16::try_from(value).map_err(|_| Damage::value(name, n, value));
        let (held, others) = (threads("held", held)?, threads("others", others)?);
        let in_system_call = threads("in_system_call", in_system_call)?;
        let read = Pace {
            pid: Pid(pid), tid: Tid(tid), addr, len, line_addr,
            beside: Growth { added: beside_added, run_ns: beside_run_ns },
            others_run_ns, beside_ns,
            alone: Growth { added: alone_added, run_ns: alone_run_ns },
            held_ns, held, in_system_call, others, end,
        };
        Context { time_ns, kind: ContextKind::Pace(read) }
    }
}

rows! {
    /// `windows`: one row per watch window that is over; its accesses are those of `basis` 3 to its line from `open_ns` to
    /// `end_ns`. It comes in the batch of its last access or in a later one.
    ///
    /// A window is one row and not one here, four in a table of words and some in a table of reasons: it is read and lost
    /// as a whole, all of it is seen by `SELECT *`, and a sum over a reason needs no join. Windows are few (some hundred a
    /// second), so that columns of nulls cost nothing. Four is what x86-64 can watch at once. A new reason is a new column,
    /// so a new version; it would be one anyway, since the tally names reasons too.
    // Lacking before version 4; of versions 4 and 5.
    WINDOWS: "windows", MAX_SEGMENT_WINDOWS, [2, 1];
    encode_windows(row: &Window), decode_windows(n) -> Run<Window>, numbered;
    /// | number of the window in the run, from 0
    number: U64 Delta = row.number,
    /// ns | CLOCK_MONOTONIC; from here on all was armed
    open_ns: U64 Delta = row.open_ns,
    /// ns | up to here every access was trapped; not before `open_ns`
    end_ns: U64 Delta = row.end_ns,
    /// | breakpoint hits of targets
    hits: U64 Plain = row.hits,
    /// | of those, hits that found no room in their ring
    lost: U64 Dictionary = row.lost,
    /// | accesses that are known to lie within some bytes only
    inferred: U64 Dictionary = row.inferred,
    /// ns | time that the traps took from the targets
    cost_ns: U64 Plain = row.cost_ns,
    /// | hits of every target were taken, not only of the words' processes
    everyone: Bool Plain = row.everyone,
    /// code | 0 armed on every CPU, 1 on each thread
    breadth: U8 Dictionary = row.breadth.store(),
    /// code | 0 hits, 1 time, 2 asked, 3 the process is gone, 4 a CPU went offline or came online
    ended_by: U8 Dictionary = row.end.store(),
    => {
        if end_ns < open_ns {
            return Err(Damage::value("end_ns", n, end_ns));
        }
        let (words, unresolved) = (Vec::new(), BTreeMap::new());
        let (breadth, end) = (load("breadth", n, breadth)?, load("ended_by", n, ended_by)?);
        Window {
            number, open_ns, end_ns, words, hits, lost, unresolved, inferred, cost_ns, everyone, breadth, end,
        }
    },
    and
    /// address | a watched word, a multiple of its length; null after the last, as are its process and length
    addr0: U64 Dictionary null,
    /// | its process
    pid0: U32 Dictionary null,
    /// bytes | its length: 1, 2, 4 or 8
    len0: U8 Dictionary null,
    // The others likewise.
    addr1: U64 Dictionary null, pid1: U32 Dictionary null, len1: U8 Dictionary null,
    addr2: U64 Dictionary null, pid2: U32 Dictionary null, len2: U8 Dictionary null,
    addr3: U64 Dictionary null, pid3: U32 Dictionary null, len3: U8 Dictionary null,
    /// | of `hits`, those without an access for this reason; null where none was counted
    unresolved_no_memory_operand: U64 Dictionary null,
    // The other reasons likewise.
    unresolved_no_mapping: U64 Dictionary null,
    unresolved_no_module: U64 Dictionary null,
    unresolved_no_function: U64 Dictionary null,
    unresolved_not_an_instruction: U64 Dictionary null,
    unresolved_ambiguous_path: U64 Dictionary null,
    unresolved_register_overwritten: U64 Dictionary null,
    unresolved_segment_unknown: U64 Dictionary null,
    unresolved_kernel_text: U64 Dictionary null,
    unresolved_code_32_bit: U64 Dictionary null,
    unresolved_no_covering_access: U64 Dictionary null,
    unresolved_no_data_address: U64 Dictionary null,
    unresolved_full_barrier: U64 Dictionary null,
}

rows! {
    /// `allocations`: one row per event of a heap. Stacks repeat, so that a dictionary makes them small.
    ALLOCATIONS: "allocations", MAX_SEGMENT_ROWS, [];
    encode_allocations(row: AllocationRow<'_>), decode_allocations(n, stacks: Stacks) -> Run<Allocation>, numbered;
    /// ns | CLOCK_MONOTONIC
    time_ns: U64 Delta = row.event.time_ns,
    /// code | 0 allocated, 1 freed, 2 from here on unseen, 3 from here on seen, 4 mapped (`mmap`), 5 unmapped, 6 from here on
    /// allocations and frees unseen, 7 seen, 8 mappings unseen, 9 seen
    kind: U8 Dictionary = allocation_table::cells(row.event).0,
    /// | process; 0 where it concerns all, or none did it
    pid: U32 Dictionary = row.event.pid.0,
    /// | thread; 0 where it concerns all, or none did it
    tid: U32 Dictionary = row.event.tid.0,
    /// address | first byte; null unless kind 0, 1, 4 or 5
    addr: U64 Plain null = allocation_table::cells(row.event).1,
    /// bytes | asked for, or unmapped; null unless kind 0, 4 or 5
    size: U64 Dictionary null = allocation_table::cells(row.event).2,
    /// | an address in the allocating function, then return addresses, innermost first, hexadecimal with `;` in between;
    /// null unless kind 0 or 4
    stack: Text Dictionary null = row.stack.as_deref(),
    => {
        let kind = allocation_table::kind(n, kind, addr, size, stack, &mut stacks)?;
        Allocation { time_ns, pid: Pid(pid), tid: Tid(tid), kind }
    }
}

/// All tables in the order in which a segment's parts become visible: context first, so that accesses never
/// refer to a mapping that a killed recorder did not get to write. The others before accesses too: without its
/// accesses, no part of a segment is read.
pub(super) static TABLES: [&Table; 8] = [
    &MAPPINGS,
    &TASKS,
    &LOCAL_STORAGE,
    &MEMORY,
    &PACES,
    &WINDOWS,
    &ALLOCATIONS,
    &ACCESSES,
];
