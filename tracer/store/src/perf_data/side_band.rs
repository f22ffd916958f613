//! What records about tasks and mappings mean.

use std::{collections::HashMap, hash::Hasher as _, sync::Arc};

use crate::{
    access::{Pid, Tid},
    event::{ContextKind, Mapping, path_text},
    module::hex,
    perf_format::{
        record::flag,
        ring_record,
        side_band::{Details, FileIdentity, MappingRecord, Task},
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
}

/// A mapping. A file's build-id is looked up by its name where the record has none.
pub(super) fn mapping(
    misc: u16,
    record: &MappingRecord<'_>,
    build_ids: &HashMap<String, String>,
) -> Meaning {
    let elsewhere = matches!(
        misc & flag::CPU_MODE,
        flag::KERNEL | flag::HYPERVISOR | flag::GUEST_KERNEL | flag::GUEST_USER
    );
    if elsewhere || record.pid == NO_PROCESS || record.start >= KERNEL_START {
        return Meaning::NoProcess;
    }
    let mut mapping = ring_record::mapping(record);
    if let Details::New {
        file: FileIdentity::BuildId(id),
        ..
    } = record.details
    {
        mapping.build_id = (!id.is_empty()).then(|| hex(id));
    }
    if mapping.build_id.is_none() {
        mapping.build_id = build_ids.get(&mapping.name).cloned();
    }
    let names_file = mapping.name.starts_with('/') && !mapping.name.starts_with("//");
    if (mapping.dev, mapping.inode) == (0, 0) && names_file {
        (mapping.dev, mapping.inode) = identity(&mapping);
    }
    Meaning::Context(ContextKind::Mapping {
        pid: Pid(record.pid),
        mapping: Arc::new(mapping),
    })
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

/// A name.
pub(super) fn comm(pid: u32, tid: u32, name: &[u8], exec: bool) -> Meaning {
    of_process(
        pid,
        ContextKind::Comm {
            pid: Pid(pid),
            tid: Tid(tid),
            comm: path_text::text(name),
            exec,
        },
    )
}

/// A thread that began.
pub(super) fn fork(task: Task) -> Meaning {
    of_process(
        task.pid,
        ContextKind::Fork {
            pid: Pid(task.pid),
            tid: Tid(task.tid),
            parent_pid: Pid(task.parent_pid),
        },
    )
}

/// A thread that ended.
pub(super) fn exit(task: Task) -> Meaning {
    of_process(
        task.pid,
        ContextKind::Exit {
            pid: Pid(task.pid),
            tid: Tid(task.tid),
        },
    )
}

fn of_process(pid: u32, context: ContextKind) -> Meaning {
    if pid == NO_PROCESS {
        Meaning::NoProcess
    } else {
        Meaning::Context(context)
    }
}
