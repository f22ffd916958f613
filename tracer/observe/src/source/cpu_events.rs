//! The two rings that a live source reads on each CPU.

use std::sync::Arc;

use super::SourceError;
use crate::{
    access::Cpu,
    event::ContextKind,
    perf_format::ring_record::RecordKind,
    sys::{
        bpf::KernelHalf,
        perf_event::{self, Scope},
        ring::Ring,
    },
};

/// Data bytes of each CPU's side-band ring. A mapping record is about 120 bytes, so this holds some
/// 8,000 of them between two polls.
const SIDEBAND_RING_BYTES: usize = 1 << 20;

/// One CPU's rings.
pub struct CpuRings {
    /// Which CPU.
    pub cpu: Cpu,
    /// What the kernel half puts out.
    pub samples: Ring,
    /// perf's own records of mappings and tasks.
    pub sideband: Ring,
}

impl CpuRings {
    /// Opens and maps them. The side-band runs at once.
    pub fn open(cpu: Cpu, ring_bytes: usize, kernel: &KernelHalf) -> Result<CpuRings, SourceError> {
        let scope = Scope::Cpu(cpu);
        let map = |attributes, bytes| {
            Ring::map(perf_event::open(&attributes, scope)?, bytes).map_err(|source| {
                SourceError::Ring {
                    cpu: cpu.0,
                    kib: bytes / 1024,
                    source,
                }
            })
        };
        let samples = map(perf_event::bpf_output(ring_bytes as u32 / 2), ring_bytes)?;
        kernel.set_ring(cpu, samples.event())?;
        let sideband = map(
            perf_event::sideband(SIDEBAND_RING_BYTES as u32 / 4),
            SIDEBAND_RING_BYTES,
        )?;
        sideband
            .event()
            .enable()
            .map_err(|source| SourceError::System {
                what: "starting the side-band",
                source,
            })?;
        Ok(CpuRings {
            cpu,
            samples,
            sideband,
        })
    }
}

/// What a side-band record changes, if anything.
pub fn context_of(record: RecordKind<'_>) -> Option<ContextKind> {
    Some(match record {
        RecordKind::Mapping {
            pid, mut mapping, ..
        } => {
            // perf calls anonymous memory `//anon` where `/proc/PID/maps` has no name; one word serves.
            if mapping.name == "//anon" {
                mapping.name.clear();
            }
            ContextKind::Mapping {
                pid,
                mapping: Arc::new(mapping),
            }
        }
        RecordKind::Comm {
            pid,
            tid,
            comm,
            exec,
        } => ContextKind::Comm {
            pid,
            tid,
            comm,
            exec,
        },
        RecordKind::Fork {
            pid,
            tid,
            parent_pid,
            ..
        } => ContextKind::Fork {
            pid,
            tid,
            parent_pid,
        },
        RecordKind::Exit { pid, tid } => ContextKind::Exit { pid, tid },
        RecordKind::Lost(_) | RecordKind::Raw(_) | RecordKind::Other(_) => return None,
    })
}
