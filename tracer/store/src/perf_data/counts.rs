//! What was met in a file besides accesses and context.

use std::collections::BTreeMap;

use crate::{access::Cpu, event::add_each};

/// Counts over the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Samples that became accesses.
    pub(super) accesses: u64,
    /// Records too short for what their event says they hold.
    pub(super) malformed: u64,
    /// Samples of an event that the file does not describe.
    pub(super) unknown_event: u64,
    /// Times that the kernel held sampling back.
    pub(super) throttled: u64,
    /// Samples of guests of a hypervisor.
    pub(super) guests: u64,
    /// Accesses whose instruction is known exactly.
    pub(super) exact: u64,
    /// Accesses whose size was looked up.
    pub(super) sized: u64,
    /// Samples of an access that another event's sample was of.
    pub(super) repeated: u64,
    /// Accesses known to store.
    pub(super) stores: u64,
    /// Accesses without a CPU, without a thread, without a time.
    pub(super) no_cpu: u64,
    pub(super) no_thread: u64,
    pub(super) no_time: u64,
    /// Bytes of hardware traces that are not read.
    pub(super) other_trace_bytes: u64,
    /// Mappings of files with and without a build-id.
    pub(super) identified_files: u64,
    pub(super) unidentified_files: u64,
    /// Of `PERF_RECORD_LOST`, by CPU where known.
    pub(super) lost: BTreeMap<Cpu, u64>,
    /// Of `PERF_RECORD_LOST_SAMPLES`.
    pub(super) lost_samples: BTreeMap<Cpu, u64>,
    /// First and last time of a sample.
    pub(super) first_ns: Option<u64>,
    pub(super) last_ns: Option<u64>,
}

impl Counts {
    /// Widens the time that samples cover.
    pub(super) fn cover(&mut self, time_ns: u64) {
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(Some(time_ns));
    }

    /// All lost samples, each once. An event that counts its own losses (`PERF_FORMAT_LOST`) has perf write
    /// them at the end as lost samples, which then are those of `PERF_RECORD_LOST` again.
    pub(super) fn lost_once(&self, counted_by_events: bool) -> BTreeMap<Cpu, u64> {
        let sum = |counts: &BTreeMap<Cpu, u64>| {
            counts.values().fold(0u64, |sum, n| sum.saturating_add(*n))
        };
        if counted_by_events && !self.lost_samples.is_empty() {
            return if sum(&self.lost) >= sum(&self.lost_samples) {
                self.lost.clone()
            } else {
                self.lost_samples.clone()
            };
        }
        let mut all = self.lost.clone();
        add_each(&mut all, &self.lost_samples);
        all
    }
}
