//! Records of the data section: which of perf's stands for what of ours.

use std::num::NonZeroU64;

use super::{
    attr::{Event, SAMPLE_TYPE},
    description::KernelText,
};
use crate::{
    access::Access,
    data_source::stated::{OP_LOAD, OP_STORE, perf_word},
    event::{Context, ContextKind, Mapping},
    perf_format::{
        bytes::c_string,
        frame::put_record,
        mapping::{MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE},
        record::{self as kind, flag},
        sample::Sample,
        side_band::{Details, FileIdentity, MappingRecord, SideBand, Task},
        trailer::Trailer,
    },
    space::KERNEL_START,
};

/// `PATH_MAX` with its zero byte; perf's buffers end there.
const MOST_NAME: usize = 4095;
/// `TASK_COMM_LEN` without its zero byte.
const MOST_COMM: usize = 15;

/// Whose a record is, and when it was; nobody knows the CPU.
fn trailer(pid: u32, tid: u32, time_ns: u64) -> Trailer {
    Trailer {
        task: Some((pid, tid)),
        time: Some(time_ns),
        id: Some(Event::Loads.id()),
        cpu: None,
    }
}

/// Appends an access.
pub(super) fn put_access(out: &mut Vec<u8>, access: &Access, period: u64, exact_ip: bool) {
    let word = perf_word(access);
    let op = word & (OP_LOAD | OP_STORE);
    let event = if op == OP_STORE {
        Event::Stores
    } else {
        Event::Loads
    };
    let mode = if access.kernel {
        flag::KERNEL
    } else {
        flag::USER
    };
    let misc = mode | if exact_ip { flag::EXACT_IP } else { 0 };
    let measured = &access.measured;
    let sample = Sample {
        ip: Some(access.ip),
        task: Some((access.pid.0, access.tid.0)),
        time: Some(access.time_ns),
        addr: Some(access.addr),
        id: Some(event.id()),
        cpu: Some(access.cpu.0),
        period: Some(period),
        weight: measured
            .latency_cycles
            .map(|cycles| u64::from(cycles.get())),
        data_src: Some(word),
        phys_addr: measured.phys_addr.map(NonZeroU64::get),
    };
    sample.put(out, misc, SAMPLE_TYPE);
}

/// Appends what the format knows of a context event; `false` for what it does not.
pub(super) fn put_context(out: &mut Vec<u8>, context: &Context) -> bool {
    let time_ns = context.time_ns;
    match &context.kind {
        ContextKind::Mapping { pid, mapping } => put_mapping(out, pid.0, mapping, time_ns),
        ContextKind::Comm {
            pid,
            tid,
            comm,
            exec,
        } => {
            let record = SideBand::Comm {
                pid: pid.0,
                tid: tid.0,
                name: c_string(comm, MOST_COMM),
                exec: *exec,
            };
            record.put(out, 0, &trailer(pid.0, tid.0, time_ns), SAMPLE_TYPE);
        }
        ContextKind::Fork {
            pid,
            tid,
            parent_pid,
        } => {
            let task = task([pid.0, parent_pid.0, tid.0], time_ns);
            SideBand::Fork(task).put(out, 0, &trailer(pid.0, tid.0, time_ns), SAMPLE_TYPE);
        }
        ContextKind::Exit { pid, tid } => {
            let task = task([pid.0, pid.0, tid.0], time_ns);
            SideBand::Exit(task).put(out, 0, &trailer(pid.0, tid.0, time_ns), SAMPLE_TYPE);
        }
        ContextKind::Thread { .. }
        | ContextKind::LocalStorage { .. }
        | ContextKind::Memory { .. }
        | ContextKind::Pace(_) => return false,
    }
    true
}

/// Which thread made the new one is not known: the first of its process stands for it.
fn task([pid, parent_pid, tid]: [u32; 3], time_ns: u64) -> Task {
    Task {
        pid,
        parent_pid,
        tid,
        parent_tid: parent_pid,
        time: Some(time_ns),
    }
}

fn put_mapping(out: &mut Vec<u8>, pid: u32, mapping: &Mapping, time_ns: u64) {
    let misc = flag::USER
        | if mapping.executable {
            0
        } else {
            flag::MMAP_DATA
        };
    let (dev, inode) = match mapping.dev {
        Mapping::UNKNOWN_DEVICE => (0, 0),
        dev => (dev, mapping.inode),
    };
    let may = |allowed: bool, bit: u32| if allowed { bit } else { 0 };
    let name = match mapping.name.as_str() {
        "" => "//anon",
        name => name,
    };
    let record = SideBand::Mapping(MappingRecord {
        pid,
        tid: pid,
        start: mapping.start,
        len: mapping.len,
        file_offset: mapping.file_offset,
        details: Details::New {
            file: FileIdentity::Inode {
                major: (dev >> 32) as u32,
                minor: dev as u32,
                inode,
                generation: 0,
            },
            // Whether it may be read is not recorded; what is accessed may be.
            protection: PROT_READ
                | may(mapping.writable, PROT_WRITE)
                | may(mapping.executable, PROT_EXEC),
            flags: if mapping.shared {
                MAP_SHARED
            } else {
                MAP_PRIVATE
            },
        },
        name: c_string(name, MOST_NAME),
    });
    record.put(out, misc, &trailer(pid, pid, time_ns), SAMPLE_TYPE);
}

/// The kernel as one mapping of its whole half: where its data is was not recorded.
pub(super) fn put_kernel(out: &mut Vec<u8>, text: Option<&KernelText>) {
    let symbol = text.map_or("_text", |text| text.symbol);
    let name = format!("[kernel.kallsyms]{symbol}");
    let record = SideBand::Mapping(MappingRecord {
        pid: u32::MAX,
        tid: 0,
        start: KERNEL_START,
        len: u64::MAX - KERNEL_START,
        file_offset: text.map_or(0, |text| text.address),
        details: Details::Old { data: false },
        name: name.as_bytes(),
    });
    record.put(out, flag::KERNEL, &trailer(0, 0, 0), SAMPLE_TYPE);
}

/// Lets readers give out what they hold back.
pub(super) fn put_round(out: &mut Vec<u8>) {
    put_record(out, kind::FINISHED_ROUND, 0, |_| ());
}
