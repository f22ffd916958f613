//! What a PMU measured of the accesses to a line, in sums.

use crate::{
    access::{Access, Basis, Cost, Op},
    analysis::line::Slice,
    data_source::{Coherence, DataSource},
    distribution::{Distribution, Distributions, Quantity},
};

/// Sampled accesses by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmuCounts {
    /// Accesses that the PMU sampled.
    pub sampled: u64,
    /// Of those, loads of a line that another CPU of the own node had modified.
    pub local_hitm: u64,
    /// Of those, loads of a line that a CPU of another node had modified.
    pub remote_hitm: u64,
    /// Of those, loads that another CPU's cache served, where it is not said whether it had the line modified.
    pub peer: u64,
    /// Of those, without a data source that tells where they were served.
    pub not_available: u64,
    /// Of those, with a latency.
    pub timed: u64,
    /// Sum of these latencies, core cycles.
    pub latency_cycles: u64,
}

impl PmuCounts {
    /// Loads of lines that another CPU had modified.
    pub fn hitm(&self) -> u64 {
        self.local_hitm + self.remote_hitm
    }

    /// Loads that another CPU's cache served: hand-offs that were seen, not inferred.
    pub fn taken(&self) -> u64 {
        self.hitm() + self.peer
    }

    /// Mean latency, cycles; `None` where none was measured.
    pub fn mean_latency(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.latency_cycles as f64 / self.timed as f64)
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &PmuCounts) {
        self.sampled += other.sampled;
        self.local_hitm += other.local_hitm;
        self.remote_hitm += other.remote_hitm;
        self.peer += other.peer;
        self.not_available += other.not_available;
        self.timed += other.timed;
        self.latency_cycles = self.latency_cycles.saturating_add(other.latency_cycles);
    }

    /// Counts an access that the PMU sampled; others change nothing.
    pub(super) fn count(&mut self, access: &Access) {
        if access.basis != Basis::Sampled {
            return;
        }
        self.sampled += 1;
        match coherence(access) {
            Coherence::HitM { remote: false } => self.local_hitm += 1,
            Coherence::HitM { remote: true } => self.remote_hitm += 1,
            Coherence::PeerHit { .. } => self.peer += 1,
            Coherence::None | Coherence::Unknown => {}
        }
        let available = (access.measured.source).is_some_and(DataSource::is_available);
        self.not_available += u64::from(!available);
        if let Some(latency) = access.measured.latency_cycles {
            self.timed += 1;
            self.latency_cycles = self.latency_cycles.saturating_add(u64::from(latency.get()));
        }
    }
}

/// Whether the PMU sampled the access as a store: by its data source where that says it, since an instruction that
/// reads and writes may be sampled as either.
pub(super) fn is_store_sample(access: &Access) -> bool {
    match access.measured.source {
        Some(source) if source.is_load() || source.is_store() => !source.is_load(),
        _ => access.op == Op::Store,
    }
}

/// How a sampled load met other caches. A store carries no such thing, and a prefetch is no touch.
fn coherence(access: &Access) -> Coherence {
    let asks = access.op.touches() && !is_store_sample(access);
    match access.measured.source {
        Some(source) if asks => source.coherence(),
        _ => Coherence::Unknown,
    }
}

/// Loads that another CPU's cache served, their cost, and that of loads which waited for no other CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) loads: u64,
    pub(super) cost: Cost,
    pub(super) apart_cost: Cost,
}

/// The sums of a line, and of each of its sites; only lines that a PMU sampled have them.
#[derive(Clone, Debug, Default)]
pub(super) struct MeasuredLine {
    /// By the number in the site's record, which counts from 1.
    sites: Vec<PmuCounts>,
    pub(super) loads: PmuCounts,
    pub(super) stores: PmuCounts,
    /// Of its loads, core cycles.
    latencies: Distribution,
    /// Of the open window.
    pub(super) window: Taken,
    taken_in: Option<(Slice, Slice)>,
    stored_in: Option<(Slice, Slice)>,
}

impl MeasuredLine {
    /// Counts a sampled access of the line.
    pub(super) fn count(&mut self, access: &Access, cost: Cost, slice: Slice) {
        let of_line = if is_store_sample(access) {
            &mut self.stores
        } else {
            if let Some(latency) = access.measured.latency_cycles {
                self.latencies.record(latency.get().into());
            }
            &mut self.loads
        };
        of_line.count(access);
        if coherence(access).is_hit() {
            self.window.loads += 1;
            self.window.cost += cost;
            stretch(&mut self.taken_in, slice);
        } else if (access.measured.source).is_some_and(DataSource::waited_for_nobody) {
            self.window.apart_cost += cost;
        }
        if access.op.stores() {
            stretch(&mut self.stored_in, slice);
        }
    }

    /// Counts it for its site. `number` is the site's: 0 before its first.
    pub(super) fn count_site(&mut self, number: &mut u32, access: &Access) {
        if *number == 0 {
            self.sites.push(PmuCounts::default());
            *number = self.sites.len() as u32;
        }
        if let Some(site) = self.sites.get_mut(*number as usize - 1) {
            site.count(access);
        }
    }

    /// The sums of the site with that number.
    pub(super) fn site(&self, number: u32) -> PmuCounts {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.sites.get(at))
            .copied()
            .unwrap_or_default()
    }

    /// Keeps the sites with these numbers and numbers them anew.
    pub(super) fn keep<'a>(&mut self, numbers: impl Iterator<Item = &'a mut u32>) {
        let mut kept = Vec::new();
        for number in numbers.filter(|number| **number != 0) {
            kept.push(self.site(*number));
            *number = kept.len() as u32;
        }
        self.sites = kept;
    }

    /// How the quantities are spread that were measured.
    pub(super) fn distributions(&self) -> Distributions {
        let mut all = Distributions::default();
        all.add(Quantity::LoadLatency, &self.latencies);
        all
    }

    /// Whether stores were sampled in the time from the first to the last load that was served by another cache, so
    /// that they may be what these loads met. Those before are an initialisation.
    pub(super) fn stored_while_taken(&self) -> bool {
        match (self.taken_in, self.stored_in) {
            (Some((from, to)), Some((first, last))) => first <= to && last >= from,
            _ => false,
        }
    }
}

fn stretch(range: &mut Option<(Slice, Slice)>, slice: Slice) {
    let (first, last) = range.get_or_insert((slice, slice));
    *first = slice.min(*first);
    *last = slice.max(*last);
}
