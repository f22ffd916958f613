//! Records about tasks and mappings, from bytes to context.

use std::{collections::HashMap, hash::Hasher as _, sync::Arc};

use super::fields::Fields;
use crate::{
    access::{Pid, Tid},
    event::{ContextKind, Mapping},
    module::hex,
    perf_format::{
        mapping::{MAP_SHARED, PROT_EXEC, PROT_WRITE},
        record::{self as kind, flag},
    },
    space::KERNEL_START,
};

/// The process of mappings that are the kernel's.
const NO_PROCESS: u32 = u32::MAX;

/// What a record comes to.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Context of a process.
    Context(ContextKind),
    /// Of the kernel or a guest: of no process.
    NoProcess,
    /// Shorter than its fields.
    Malformed,
}

/// Reads a mapping. A file's build-id is looked up by its name where the record has none.
pub(super) fn mapping(
    record: u32,
    misc: u16,
    fields: Fields<'_>,
    build_ids: &HashMap<String, String>,
) -> Meaning {
    let read = if record == kind::MMAP2 {
        mapping_2(misc, fields)
    } else {
        mapping_1(misc, fields)
    };
    let Some((pid, mut mapping)) = read else {
        return Meaning::Malformed;
    };
    let mode = misc & flag::CPU_MODE;
    let elsewhere = matches!(
        mode,
        flag::KERNEL | flag::HYPERVISOR | flag::GUEST_KERNEL | flag::GUEST_USER
    );
    if elsewhere || pid == NO_PROCESS || mapping.start >= KERNEL_START {
        return Meaning::NoProcess;
    }
    if mapping.build_id.is_none() {
        mapping.build_id = build_ids.get(&mapping.name).cloned();
    }
    let names_file = mapping.name.starts_with('/') && !mapping.name.starts_with("//");
    if (mapping.dev, mapping.inode) == (0, 0) && names_file {
        (mapping.dev, mapping.inode) = identity(&mapping);
    }
    Meaning::Context(ContextKind::Mapping {
        pid: Pid(pid),
        mapping: Arc::new(mapping),
    })
}

fn mapping_1(misc: u16, mut fields: Fields<'_>) -> Option<(u32, Mapping)> {
    let pid = fields.u32()?;
    let _tid = fields.u32()?;
    let (start, len, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let data = misc & flag::MMAP_DATA != 0;
    let mapping = Mapping {
        start,
        len,
        file_offset,
        dev: 0,
        inode: 0,
        shared: false,
        executable: !data,
        writable: data,
        name: fields.string(),
        build_id: None,
        stamp: None,
    };
    Some((pid, mapping))
}

fn mapping_2(misc: u16, mut fields: Fields<'_>) -> Option<(u32, Mapping)> {
    let pid = fields.u32()?;
    let _tid = fields.u32()?;
    let (start, len, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut identity = Fields::new(fields.take(24)?, fields.order());
    let (mut dev, mut inode, mut build_id) = (0, 0, None);
    if misc & flag::MMAP_BUILD_ID != 0 {
        let len = u64::from(identity.u8()?.min(20));
        identity.take(3)?;
        let id = identity.take(len)?;
        build_id = (!id.is_empty()).then(|| hex(id));
    } else {
        let (major, minor) = (identity.u32()?, identity.u32()?);
        dev = u64::from(major) << 32 | u64::from(minor);
        inode = identity.u64()?;
    }
    let (protection, flags) = (fields.u32()?, fields.u32()?);
    let mapping = Mapping {
        start,
        len,
        file_offset,
        dev,
        inode,
        shared: flags & MAP_SHARED != 0,
        executable: protection & PROT_EXEC != 0,
        writable: protection & PROT_WRITE != 0,
        name: fields.string(),
        build_id,
        stamp: None,
    };
    Some((pid, mapping))
}

/// Device and inode of a file of which only the name and perhaps the build-id are recorded: a device that
/// there is none of, and a number by which equal names with equal build-ids are equal files.
fn identity(mapping: &Mapping) -> (u64, u64) {
    let mut hash = rustc_hash::FxHasher::default();
    hash.write(mapping.name.as_bytes());
    hash.write_u8(0xff);
    hash.write(mapping.build_id.as_deref().unwrap_or_default().as_bytes());
    (Mapping::UNKNOWN_DEVICE, hash.finish().max(1))
}

/// Reads `COMM`, `FORK` or `EXIT`; with the record's own time, where it has one.
pub(super) fn task(record: u32, misc: u16, mut fields: Fields<'_>) -> (Meaning, Option<u64>) {
    let read = if record == kind::COMM {
        comm(misc, &mut fields).map(|comm| (comm, None))
    } else {
        birth_or_end(record, &mut fields)
    };
    match read {
        None => (Meaning::Malformed, None),
        Some((
            ContextKind::Comm { pid, .. }
            | ContextKind::Fork { pid, .. }
            | ContextKind::Exit { pid, .. },
            time,
        )) if pid.0 == NO_PROCESS => (Meaning::NoProcess, time),
        Some((context, time)) => (Meaning::Context(context), time),
    }
}

fn comm(misc: u16, fields: &mut Fields<'_>) -> Option<ContextKind> {
    Some(ContextKind::Comm {
        pid: Pid(fields.u32()?),
        tid: Tid(fields.u32()?),
        comm: fields.string(),
        exec: misc & flag::COMM_EXEC != 0,
    })
}

fn birth_or_end(record: u32, fields: &mut Fields<'_>) -> Option<(ContextKind, Option<u64>)> {
    let (pid, parent_pid) = (Pid(fields.u32()?), Pid(fields.u32()?));
    let (tid, _parent_tid) = (Tid(fields.u32()?), fields.u32()?);
    let time = fields.u64();
    let context = if record == kind::FORK {
        ContextKind::Fork {
            pid,
            tid,
            parent_pid,
        }
    } else {
        ContextKind::Exit { pid, tid }
    };
    Some((context, time))
}
