//! Records of the data section, as `union perf_event` has them.

use std::num::NonZeroU64;

use super::{
    attr::Event,
    bytes::{PutBytes, c_string},
    description::KernelText,
};
use crate::{
    access::Access,
    data_source::stated::{OP_LOAD, OP_STORE, perf_word},
    event::{Context, ContextKind, Mapping},
    perf_format::{
        mapping::{MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE},
        record::{self as kind, flag},
    },
    space::KERNEL_START,
};

/// `PATH_MAX` with its zero byte; perf's buffers end there.
const MOST_NAME: usize = 4095;
/// `TASK_COMM_LEN` without its zero byte.
const MOST_COMM: usize = 15;

const HEADER_BYTES: usize = 8;
/// A sample is this long.
pub(super) const SAMPLE_BYTES: usize = 88;

fn header(out: &mut Vec<u8>, kind: u32, misc: u16, size: usize) {
    out.u32(kind);
    out.u16(misc);
    out.u16(u16::try_from(size).unwrap_or(u16::MAX));
}

/// Appends a record; its size is known once its body is there.
fn record(out: &mut Vec<u8>, kind: u32, misc: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    header(out, kind, misc, 0);
    body(out);
    // Names are bounded, so records are far shorter than 64 KiB.
    let size = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    out[start + 6..start + HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
}

/// What `sample_id_all` puts behind all records but samples: TID, TIME, ID, CPU.
fn sample_id(out: &mut Vec<u8>, pid: u32, tid: u32, time_ns: u64) {
    out.u32(pid);
    out.u32(tid);
    out.u64(time_ns);
    out.u64(Event::Loads.id());
    out.u64(0);
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
    header(out, kind::SAMPLE, misc, SAMPLE_BYTES);
    out.u64(access.ip);
    out.u32(access.pid.0);
    out.u32(access.tid.0);
    out.u64(access.time_ns);
    out.u64(access.addr);
    out.u64(event.id());
    out.u32(access.cpu.0);
    out.u32(0);
    out.u64(period);
    out.u64(
        measured
            .latency_cycles
            .map_or(0, |cycles| u64::from(cycles.get())),
    );
    out.u64(word);
    out.u64(measured.phys_addr.map_or(0, NonZeroU64::get));
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
            let misc = if *exec { flag::COMM_EXEC } else { 0 };
            record(out, kind::COMM, misc, |out| {
                out.u32(pid.0);
                out.u32(tid.0);
                out.text(c_string(comm, MOST_COMM), 8);
                sample_id(out, pid.0, tid.0, time_ns);
            });
        }
        ContextKind::Fork {
            pid,
            tid,
            parent_pid,
        } => task(out, kind::FORK, [pid.0, parent_pid.0, tid.0], time_ns),
        ContextKind::Exit { pid, tid } => task(out, kind::EXIT, [pid.0, pid.0, tid.0], time_ns),
        ContextKind::Thread { .. }
        | ContextKind::LocalStorage { .. }
        | ContextKind::Memory { .. } => return false,
    }
    true
}

/// FORK and EXIT. Which thread made the new one is not known: the first of its process stands for it.
fn task(out: &mut Vec<u8>, kind: u32, [pid, parent_pid, tid]: [u32; 3], time_ns: u64) {
    record(out, kind, 0, |out| {
        out.u32(pid);
        out.u32(parent_pid);
        out.u32(tid);
        out.u32(parent_pid);
        out.u64(time_ns);
        sample_id(out, pid, tid, time_ns);
    });
}

fn put_mapping(out: &mut Vec<u8>, pid: u32, mapping: &Mapping, time_ns: u64) {
    let misc = flag::USER
        | if mapping.executable {
            0
        } else {
            flag::MMAP_DATA
        };
    record(out, kind::MMAP2, misc, |out| {
        out.u32(pid);
        out.u32(pid);
        out.u64(mapping.start);
        out.u64(mapping.len);
        out.u64(mapping.file_offset);
        let (dev, inode) = match mapping.dev {
            Mapping::UNKNOWN_DEVICE => (0, 0),
            dev => (dev, mapping.inode),
        };
        out.u32((dev >> 32) as u32);
        out.u32(dev as u32);
        out.u64(inode);
        out.u64(0); // generation of the inode
        let may = |allowed: bool, bit: u32| if allowed { bit } else { 0 };
        // Whether it may be read is not recorded; what is accessed may be.
        out.u32(PROT_READ | may(mapping.writable, PROT_WRITE) | may(mapping.executable, PROT_EXEC));
        out.u32(if mapping.shared {
            MAP_SHARED
        } else {
            MAP_PRIVATE
        });
        let name = match mapping.name.as_str() {
            "" => "//anon",
            name => name,
        };
        out.text(c_string(name, MOST_NAME), 8);
        sample_id(out, pid, pid, time_ns);
    });
}

/// The kernel as one mapping of its whole half: where its data is was not recorded.
pub(super) fn put_kernel(out: &mut Vec<u8>, text: Option<&KernelText>) {
    record(out, kind::MMAP, flag::KERNEL, |out| {
        out.u32(u32::MAX);
        out.u32(0);
        out.u64(KERNEL_START);
        out.u64(u64::MAX - KERNEL_START);
        out.u64(text.map_or(0, |text| text.address));
        let symbol = text.map_or("_text", |text| text.symbol);
        out.text(format!("[kernel.kallsyms]{symbol}").as_bytes(), 8);
        sample_id(out, 0, 0, 0);
    });
}

/// Lets readers give out what they hold back.
pub(super) fn put_round(out: &mut Vec<u8>) {
    header(out, kind::FINISHED_ROUND, 0, HEADER_BYTES);
}
