//! The part of the kernel half that runs on a PMU's memory events.

use std::os::fd::{AsFd as _, OwnedFd};

use aya::programs::PerfEvent as MemoryProgram;
use tracer_ebpf::{memory_at, programs};

use super::{BpfError, KernelHalf, program_error};
use crate::{machine::btf::MemoryOffsets, sys::perf_event::PerfEvent};

/// Where [`memory_at::SAMPLE_POINTER`] is, in bytes.
const SAMPLE_POINTER_BYTES: u32 = (memory_at::SAMPLE_POINTER * size_of::<u64>()) as u32;

/// The loaded program for memory events.
#[derive(Debug)]
pub struct OnMemory(OwnedFd);

impl KernelHalf {
    /// Loads the program for memory events, if that was not done yet. Its samples go to the rings of
    /// [`KernelHalf::set_ring`] and are counted in [`KernelHalf::stats`].
    pub fn memory(&mut self) -> Result<OnMemory, BpfError> {
        let failed = |error| program_error(programs::MEMORY, error);
        let program = self.program::<MemoryProgram>(programs::MEMORY)?;
        if program.fd().is_err() {
            program.load().map_err(failed)?;
        }
        let program = program.fd().map_err(failed)?.as_fd();
        let program = program
            .try_clone_to_owned()
            .map_err(|source| BpfError::Call {
                action: format!("duplicating the descriptor of {}", programs::MEMORY),
                source,
            })?;
        Ok(OnMemory(program))
    }
}

impl OnMemory {
    /// Runs the program on each overflow of an event, for as long as the event is open.
    pub fn attach(&self, event: &PerfEvent) -> Result<(), BpfError> {
        event
            .set_bpf(self.0.as_fd())
            .map_err(|source| BpfError::Call {
                action: "attaching the program for memory accesses to an event".to_owned(),
                source,
            })
    }
}

/// The offsets as the program takes them. All absent where the sample itself cannot be found: the program then
/// does with what every context shows.
pub(super) fn offsets(of: &MemoryOffsets) -> [u32; memory_at::COUNT] {
    let mut at = [memory_at::ABSENT; memory_at::COUNT];
    if of.sample != Some(SAMPLE_POINTER_BYTES) {
        return at;
    }
    for (index, offset) in [
        (memory_at::SAMPLE_FLAGS, of.sample_flags),
        (memory_at::ADDR, of.addr),
        (memory_at::DATA_SRC, of.data_src),
        (memory_at::WEIGHT, of.weight),
        (memory_at::PHYS_ADDR, of.phys_addr),
        (memory_at::PERIOD, of.period),
    ] {
        at[index] = offset.unwrap_or(memory_at::ABSENT);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_is_elsewhere_is_not_looked_into() {
        let known = MemoryOffsets {
            sample: Some(8),
            sample_flags: None,
            addr: Some(184),
            data_src: Some(112),
            weight: Some(104),
            phys_addr: Some(192),
            period: Some(8),
        };
        let absent = memory_at::ABSENT;
        assert_eq!(offsets(&known), [absent, 184, 112, 104, 192, 8]);
        for sample in [None, Some(16)] {
            assert_eq!(offsets(&MemoryOffsets { sample, ..known }), [absent; 6]);
        }
    }
}
