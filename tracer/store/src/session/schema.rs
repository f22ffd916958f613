//! The files of a session: tables, columns, types, units. Schema version 7.
//!
//! Every table is a folder of `part-NNNNN.parquet`; parts of equal number are one segment, a stretch of
//! time. A table without rows in a segment has no part there, except `accesses`. Parts hold one row group,
//! zstd, no nulls unless marked `null`. Rows are in stream order; `seq` and `batch` restore it after any sort.
//!
//! `accesses`: one row per memory access.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq | u64 | | number of the access in the session, from 0 |
//! | batch | u64 | | number of the batch it came in; context of a batch applies by time within it |
//! | time_ns | u64 | ns | CLOCK_MONOTONIC |
//! | cpu | u32 | | logical CPU |
//! | pid, tid | u32 | | process and thread, initial pid namespace |
//! | ip | u64 | address | the accessing instruction |
//! | addr | u64 | address | first byte accessed, virtual |
//! | size | u16 | bytes | bytes touched; by all executions together, where `repeats` says that there are more |
//! | op | u8 | code | 0 load, 1 store, 2 read-modify-write, 3 prefetch, 4 not known, 5 prefetch for ownership |
//! | basis | u8 | code | 0 stalled, 1 decoded, 2 harvested, 3 trapped, 4 sampled by a PMU, 5 emulated |
//! | locked | bool | | bus-locked or implicitly locked |
//! | kernel | bool | | executed in kernel mode |
//! | cost_ns | u32 | ns or cycles | sampled time it stands for, 0 where another access of the sample has it; or, by `cost_unit` in `meta.json`, the latency of a sampled load; 0 of an emulated access, whose messages follow from the order |
//! | data_source | u64, null | | `perf_mem_data_src` of include/uapi/linux/perf_event.h; null where none was recorded |
//! | latency | u32, null | cycles | of a sampled access, issue to completion; null where not measured |
//! | phys_addr | u64, null | address | physical address of the first byte; null where not recorded |
//! | repeats | u32, null | executions | further executions of the same instruction on bytes among these by the same thread that this row stands for, before another CPU asked for the line (of 64 bytes, or of 128, as `exact_line_bytes` in `meta.json` says); null for none |
//! | within | u8, null | bytes | of an access whose own address is not known: it lies somewhere in so many bytes from `addr` on; null where `addr` is its first byte |
//! | wait | u8, null | code | of a stalled access: 1 the CPU stood at a full barrier after it, 2 in a loop that reads it until another thread stores; null at the instruction itself |
//! | instead | u8, null | | of a stalled access: the row of the same sample, counted from 1, that was waited for if nobody stores to this one's line; null for none |
//!
//! `mappings`: one row per range of memory that appeared in a process.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq | u64 | | number among all context rows (mappings, tasks, local_storage, memory) of the session, from 0 |
//! | batch | u64 | | as above |
//! | time_ns | u64 | ns | CLOCK_MONOTONIC |
//! | pid | u32 | | process |
//! | start | u64 | address | first address |
//! | len | u64 | bytes | length |
//! | file_offset | u64 | bytes | offset in the file |
//! | dev | u64 | | `major << 32 \| minor`, 0 for anonymous private memory; all ones where a file's was not recorded, which an import may not have |
//! | inode | u64 | | 0 for anonymous private memory; with `dev` all ones, a number by which equal files are equal |
//! | shared, executable, writable | bool | | of the mapping |
//! | name | text | | path (bytes that are not UTF-8 as U+10FE00 + byte), `[heap]`, `[stack]`, `//anon`, .. or empty |
//! | build_id | text, null | | of the file, hexadecimal; null where not recorded |
//! | file_bytes | u64, null | bytes | length of the file when it was seen mapped; null where nobody looked, or it was gone |
//! | modified_unix_ns, changed_unix_ns | u64, null | ns | its `mtime` and `ctime` then, since 1970-01-01 UTC; null with `file_bytes` |
//!
//! `tasks`: one row per event of a thread.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq, batch, time_ns | u64 | | as in `mappings` |
//! | kind | u8 | code | 0 comm, 1 comm by exec, 2 fork, 3 exit, 4 thread's stack and thread pointer |
//! | pid, tid | u32 | | process and thread |
//! | parent_pid | u32, null | | process of the thread that forked; null unless kind 2 |
//! | comm | text, null | | thread name; null unless kind 0 or 1 |
//! | sp | u64, null | address | stack pointer; null unless kind 4 |
//! | tp | u64, null | address | thread pointer; null unless kind 4 and known |
//!
//! `local_storage`: one row per block of thread-local variables that was found: a thread's copy of one module's.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq, batch, time_ns | u64 | | as in `mappings` |
//! | pid, tid | u32 | | process and thread |
//! | start | u64 | address | first address of the block |
//! | len | u64 | bytes | length |
//! | dev, inode | u64 | | the module's file, as in `mappings` |
//!
//! `memory`: one row per stretch of memory that was read for the sake of names: functions of the kernel, and pointers of
//! programs.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq, batch, time_ns | u64 | | as in `mappings` |
//! | pid | u32, null | | process; null for the kernel's own memory |
//! | start | u64 | address | of the first byte |
//! | bytes | text | | what was there, hexadecimal |
//!
//! `windows`: one row per watch window that is over; its accesses are those of `basis` 3 to its line from
//! `open_ns` to `end_ns`. It comes in the batch of its last access or in a later one.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq | u64 | | number of the row in the session, from 0 |
//! | batch | u64 | | as above |
//! | number | u64 | | number of the window in the run, from 0 |
//! | open_ns | u64 | ns | CLOCK_MONOTONIC; from here on all was armed |
//! | end_ns | u64 | ns | up to here every access was trapped; not before `open_ns` |
//! | hits | u64 | | breakpoint hits of targets |
//! | lost | u64 | | of those, hits that found no room in their ring |
//! | inferred | u64 | | accesses that are known to lie within some bytes only |
//! | cost_ns | u64 | ns | time that the traps took from the targets |
//! | everyone | bool | | hits of every target were taken, not only of the words' processes |
//! | breadth | u8 | code | 0 armed on every CPU, 1 on each thread |
//! | ended_by | u8 | code | 0 hits, 1 time, 2 asked, 3 the process is gone, 4 a CPU went offline or came online |
//! | addr0 .. addr3 | u64, null | address | watched words, a multiple of the length; null after the last |
//! | pid0 .. pid3 | u32, null | | process of each |
//! | len0 .. len3 | u8, null | bytes | 1, 2, 4 or 8 |
//! | unresolved_REASON | u64, null | | of `hits`, those without an access for this reason; null where none was counted |
//!
//! A window is one row and not one here, four in a table of words and some in a table of reasons: it is read
//! and lost as a whole, all of it is seen by `SELECT *`, and a sum over a reason needs no join. Windows are few
//! (some hundred a second), so that columns of nulls cost nothing. Four is what x86-64 can watch at once.
//! A new reason is a new column, so a new version; it would be one anyway, since the tally names reasons too.
//!
//! `allocations`: one row per event of a heap.
//!
//! | column | type | unit | meaning |
//! |---|---|---|---|
//! | seq | u64 | | number of the row in the session, from 0 |
//! | batch | u64 | | as above; applies to accesses by time within the batch, after context |
//! | time_ns | u64 | ns | CLOCK_MONOTONIC |
//! | kind | u8 | code | 0 allocated, 1 freed, 2 from here on unseen, 3 from here on seen, 4 mapped (`mmap`), 5 unmapped, 6 from here on allocations and frees unseen, 7 seen, 8 mappings unseen, 9 seen |
//! | pid, tid | u32 | | process and thread; 0 where it concerns all, or none did it |
//! | addr | u64, null | address | first byte; null unless kind 0, 1, 4 or 5 |
//! | size | u64, null | bytes | asked for, or unmapped; null unless kind 0, 4 or 5 |
//! | stack | text, null | | an address in the allocating function, then return addresses, innermost first, hexadecimal with `;` in between; null unless kind 0 or 4 |
//!
//! Each part carries two facts in its footer: `cohtrace.segment` (JSON: segment number; in `accesses` also the
//! row counts and the tally of the segment) and `cohtrace.seal` (see the `seal` module's comment). For other readers,
//! who may have parts of many sessions, it also says where it is from, as far as known: `cohtrace.host`,
//! `cohtrace.boot_id`, `cohtrace.schema_version`, `cohtrace.started_unix_ns`, as in `meta.json`.
//!
//! Version 1 had no `windows`, and no `basis` 3; versions 1 and 2 had no `local_storage` and no `allocations`; versions
//! before 5 had no `repeats`, no `op` 5 and no `basis` 5; versions before 6 had no `within`, `wait` and `instead`, and no
//! `memory`; versions before 7 had no `file_bytes`, `modified_unix_ns` and
//! `changed_unix_ns`, and no `ended_by` 4.

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    errors::ParquetError,
    schema::types::{Type, TypePtr},
};

/// Version of the tables and of `meta.json` that this build writes.
pub const SCHEMA_VERSION: u32 = 7;

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

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// One bit.
    Bool,
    /// Up to 255; Parquet INT32 annotated UINT_8.
    U8,
    /// Up to 65535; Parquet INT32 annotated UINT_16.
    U16,
    /// Parquet INT32 annotated UINT_32.
    U32,
    /// Parquet INT64 annotated UINT_64.
    U64,
    /// UTF-8; Parquet BYTE_ARRAY annotated STRING.
    Text,
}

/// How a column's values are laid out before zstd. Chosen by measurement; readers do not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// As they are.
    Plain,
    /// Distinct values once, then indices; plain from where the dictionary exceeds its limit.
    Dictionary,
    /// Differences, bit-packed in blocks.
    Delta,
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub null: bool,
    pub coding: Coding,
}

/// One table: the name of its folder and its columns in file order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub name: &'static str,
    /// Rows in one segment.
    pub max_rows: usize,
    pub columns: &'static [Column],
    /// How many of the last columns parts of older versions lack, by version; they may be null.
    pub added: &'static [usize],
}

const fn column(name: &'static str, kind: Kind, coding: Coding) -> Column {
    Column {
        name,
        kind,
        null: false,
        coding,
    }
}

const fn nullable(name: &'static str, kind: Kind, coding: Coding) -> Column {
    Column {
        name,
        kind,
        null: true,
        coding,
    }
}

/// Accesses. Of the codings tried, these take the least time per byte saved: an access comes with others of
/// the same sample, so that ids and ips repeat and zstd alone does well; the dictionary's hashing would cost a
/// fifth of all time for ids, 5 % of bytes.
pub(super) static ACCESSES: Table = Table {
    name: "accesses",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        column("cpu", Kind::U32, Coding::Plain),
        column("pid", Kind::U32, Coding::Plain),
        column("tid", Kind::U32, Coding::Plain),
        column("ip", Kind::U64, Coding::Delta),
        column("addr", Kind::U64, Coding::Dictionary),
        column("size", Kind::U16, Coding::Dictionary),
        column("op", Kind::U8, Coding::Dictionary),
        column("basis", Kind::U8, Coding::Dictionary),
        column("locked", Kind::Bool, Coding::Plain),
        column("kernel", Kind::Bool, Coding::Plain),
        column("cost_ns", Kind::U32, Coding::Dictionary),
        nullable("data_source", Kind::U64, Coding::Dictionary),
        nullable("latency", Kind::U32, Coding::Dictionary),
        nullable("phys_addr", Kind::U64, Coding::Plain),
        nullable("repeats", Kind::U32, Coding::Dictionary),
        nullable("within", Kind::U8, Coding::Dictionary),
        nullable("wait", Kind::U8, Coding::Dictionary),
        nullable("instead", Kind::U8, Coding::Dictionary),
    ],
    // Before version 4; of version 4; of version 5.
    added: &[7, 4, 3],
};

/// The coding of a column of accesses that are all of an emulator. They are many, of few kinds, and their addresses
/// lie near those of the accesses before: no dictionary, whose hashing took a third of the time.
pub(super) fn emulated_coding(column: &Column) -> Coding {
    match column.kind {
        Kind::Bool | Kind::Text => column.coding,
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Coding::Delta,
    }
}

/// Mappings.
pub(super) static MAPPINGS: Table = Table {
    name: "mappings",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        column("pid", Kind::U32, Coding::Dictionary),
        column("start", Kind::U64, Coding::Delta),
        column("len", Kind::U64, Coding::Dictionary),
        column("file_offset", Kind::U64, Coding::Dictionary),
        column("dev", Kind::U64, Coding::Dictionary),
        column("inode", Kind::U64, Coding::Dictionary),
        column("shared", Kind::Bool, Coding::Plain),
        column("executable", Kind::Bool, Coding::Plain),
        column("writable", Kind::Bool, Coding::Plain),
        column("name", Kind::Text, Coding::Dictionary),
        nullable("build_id", Kind::Text, Coding::Dictionary),
        nullable("file_bytes", Kind::U64, Coding::Dictionary),
        nullable("modified_unix_ns", Kind::U64, Coding::Dictionary),
        nullable("changed_unix_ns", Kind::U64, Coding::Dictionary),
    ],
    // Before version 4; of versions 4 to 6.
    added: &[4, 3],
};

/// Threads' names, births, ends, stacks.
pub(super) static TASKS: Table = Table {
    name: "tasks",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        column("kind", Kind::U8, Coding::Dictionary),
        column("pid", Kind::U32, Coding::Dictionary),
        column("tid", Kind::U32, Coding::Dictionary),
        nullable("parent_pid", Kind::U32, Coding::Dictionary),
        nullable("comm", Kind::Text, Coding::Dictionary),
        nullable("sp", Kind::U64, Coding::Plain),
        nullable("tp", Kind::U64, Coding::Plain),
    ],
    added: &[],
};

/// Blocks of thread-local variables.
pub(super) static LOCAL_STORAGE: Table = Table {
    name: "local_storage",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        column("pid", Kind::U32, Coding::Dictionary),
        column("tid", Kind::U32, Coding::Dictionary),
        column("start", Kind::U64, Coding::Plain),
        column("len", Kind::U64, Coding::Dictionary),
        column("dev", Kind::U64, Coding::Dictionary),
        column("inode", Kind::U64, Coding::Dictionary),
    ],
    added: &[],
};

/// What memory held.
pub(super) static MEMORY: Table = Table {
    name: "memory",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        nullable("pid", Kind::U32, Coding::Dictionary),
        column("start", Kind::U64, Coding::Plain),
        column("bytes", Kind::Text, Coding::Plain),
    ],
    added: &[],
};

/// Watch windows.
pub(super) static WINDOWS: Table = Table {
    name: "windows",
    max_rows: MAX_SEGMENT_WINDOWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("number", Kind::U64, Coding::Delta),
        column("open_ns", Kind::U64, Coding::Delta),
        column("end_ns", Kind::U64, Coding::Delta),
        column("hits", Kind::U64, Coding::Plain),
        column("lost", Kind::U64, Coding::Dictionary),
        column("inferred", Kind::U64, Coding::Dictionary),
        column("cost_ns", Kind::U64, Coding::Plain),
        column("everyone", Kind::Bool, Coding::Plain),
        column("breadth", Kind::U8, Coding::Dictionary),
        column("ended_by", Kind::U8, Coding::Dictionary),
        nullable("addr0", Kind::U64, Coding::Dictionary),
        nullable("pid0", Kind::U32, Coding::Dictionary),
        nullable("len0", Kind::U8, Coding::Dictionary),
        nullable("addr1", Kind::U64, Coding::Dictionary),
        nullable("pid1", Kind::U32, Coding::Dictionary),
        nullable("len1", Kind::U8, Coding::Dictionary),
        nullable("addr2", Kind::U64, Coding::Dictionary),
        nullable("pid2", Kind::U32, Coding::Dictionary),
        nullable("len2", Kind::U8, Coding::Dictionary),
        nullable("addr3", Kind::U64, Coding::Dictionary),
        nullable("pid3", Kind::U32, Coding::Dictionary),
        nullable("len3", Kind::U8, Coding::Dictionary),
        nullable(
            "unresolved_no_memory_operand",
            Kind::U64,
            Coding::Dictionary,
        ),
        nullable("unresolved_no_mapping", Kind::U64, Coding::Dictionary),
        nullable("unresolved_no_module", Kind::U64, Coding::Dictionary),
        nullable("unresolved_no_function", Kind::U64, Coding::Dictionary),
        nullable(
            "unresolved_not_an_instruction",
            Kind::U64,
            Coding::Dictionary,
        ),
        nullable("unresolved_ambiguous_path", Kind::U64, Coding::Dictionary),
        nullable(
            "unresolved_register_overwritten",
            Kind::U64,
            Coding::Dictionary,
        ),
        nullable("unresolved_segment_unknown", Kind::U64, Coding::Dictionary),
        nullable("unresolved_kernel_text", Kind::U64, Coding::Dictionary),
        nullable("unresolved_code_32_bit", Kind::U64, Coding::Dictionary),
        nullable(
            "unresolved_no_covering_access",
            Kind::U64,
            Coding::Dictionary,
        ),
        nullable("unresolved_no_data_address", Kind::U64, Coding::Dictionary),
        nullable("unresolved_full_barrier", Kind::U64, Coding::Dictionary),
    ],
    // Before version 4; of versions 4 and 5.
    added: &[2, 1],
};

/// Allocations. Stacks repeat, so that a dictionary makes them small.
pub(super) static ALLOCATIONS: Table = Table {
    name: "allocations",
    max_rows: MAX_SEGMENT_ROWS,
    columns: &[
        column("seq", Kind::U64, Coding::Delta),
        column("batch", Kind::U64, Coding::Delta),
        column("time_ns", Kind::U64, Coding::Delta),
        column("kind", Kind::U8, Coding::Dictionary),
        column("pid", Kind::U32, Coding::Dictionary),
        column("tid", Kind::U32, Coding::Dictionary),
        nullable("addr", Kind::U64, Coding::Plain),
        nullable("size", Kind::U64, Coding::Dictionary),
        nullable("stack", Kind::Text, Coding::Dictionary),
    ],
    added: &[],
};

/// All tables in the order in which a segment's parts become visible: context first, so that accesses never
/// refer to a mapping that a killed recorder did not get to write. The others before accesses too: without its
/// accesses, no part of a segment is read.
pub(super) static TABLES: [&Table; 7] = [
    &MAPPINGS,
    &TASKS,
    &LOCAL_STORAGE,
    &MEMORY,
    &WINDOWS,
    &ALLOCATIONS,
    &ACCESSES,
];

impl Table {
    /// The table as Parquet describes it.
    pub(super) fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let fields = self
            .columns
            .iter()
            .map(Column::parquet_type)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(
            Type::group_type_builder(self.name)
                .with_fields(fields)
                .build()?,
        ))
    }
}

impl Column {
    fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
        let (physical, logical) = match self.kind {
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::U8 => (Physical::INT32, unsigned(8)),
            Kind::U16 => (Physical::INT32, unsigned(16)),
            Kind::U32 => (Physical::INT32, unsigned(32)),
            Kind::U64 => (Physical::INT64, unsigned(64)),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.null {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Ok(Arc::new(
            Type::primitive_type_builder(self.name, physical)
                .with_logical_type(logical)
                .with_repetition(repetition)
                .build()?,
        ))
    }
}
