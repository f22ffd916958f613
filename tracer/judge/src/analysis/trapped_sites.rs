//! Which instructions of which threads the windows on a line trapped, and how often.

use std::collections::BTreeMap;

use super::{
    conflict::Touch,
    served::{OrderFacts, Served, Statistic},
    site::SiteKey,
    small_map::SmallMap,
};
use crate::{
    access::{Pid, Tid},
    analysis::{CpuSet, Site, SiteCounts},
};

/// Sites kept per line; accesses of later ones are [`folded`](TrappedSites::folded).
const MAX_SITES: usize = 4096;

/// A site with its trapped accesses; joins with [`SiteCounts`](crate::analysis::SiteCounts) by the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrappedSite {
    /// Instruction, thread and bytes.
    pub site: Site,
    /// Accesses in the orders of windows.
    pub trapped: u64,
    /// Where it ran.
    pub cpus: CpuSet,
}

impl From<TrappedSite> for SiteCounts {
    fn from(trapped: TrappedSite) -> SiteCounts {
        SiteCounts {
            trapped: trapped.trapped,
            cpus: trapped.cpus,
            ..SiteCounts::unseen(trapped.site)
        }
    }
}

/// One thread's part in the windows of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedThread {
    /// Its process.
    pub pid: Pid,
    /// Which of the process' threads.
    pub tid: Tid,
    /// Accesses in the orders of windows.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Where it ran.
    pub cpus: CpuSet,
}

#[derive(Clone, Debug, Default)]
struct Count {
    trapped: u64,
    /// Of those, not in superseded windows.
    telling: u64,
    cpus: CpuSet,
}

/// The sites of a line, with their trapped accesses.
#[derive(Clone, Debug, Default)]
pub(super) struct TrappedSites {
    counts: SmallMap<SiteKey, Count>,
    folded: u64,
}

impl TrappedSites {
    /// Leaves the windows so far out of what is judged.
    pub(super) fn supersede(&mut self) {
        for count in self.counts.values_mut() {
            count.telling = 0;
        }
    }

    /// Accesses of sites that found no room.
    pub(super) fn folded(&self) -> u64 {
        self.folded
    }

    /// Most frequent first.
    pub(super) fn ranked(&self) -> Vec<TrappedSite> {
        let mut sites: Vec<TrappedSite> = (self.counts.iter())
            .map(|(key, count)| TrappedSite {
                site: key.site(),
                trapped: count.trapped,
                cpus: count.cpus.clone(),
            })
            .collect();
        sites.sort_by(|a, b| (b.trapped.cmp(&a.trapped)).then_with(|| a.site.cmp(&b.site)));
        sites
    }

    fn telling(&self) -> impl Iterator<Item = &(SiteKey, Count)> {
        self.counts.iter().filter(|(_, count)| count.telling > 0)
    }

    /// What each did to the bytes of the line, as far as windows were not superseded. `size` says how many bytes it
    /// touched.
    pub(super) fn touches(&self, size: fn(SiteKey) -> u8) -> Vec<Touch> {
        let touch = |(key, count): &(SiteKey, Count)| Touch {
            tid: key.tid,
            offset: key.offset,
            size: size(*key),
            stores: key.op().stores(),
            accesses: count.telling,
        };
        self.telling().map(touch).collect()
    }

    /// Threads, most frequent first, as far as windows were not superseded.
    pub(super) fn threads(&self) -> Vec<WatchedThread> {
        let mut threads: BTreeMap<(Pid, Tid), WatchedThread> = BTreeMap::new();
        for (key, count) in self.telling() {
            let site = key.site();
            let entry = threads.entry((site.pid, site.tid));
            let thread = entry.or_insert_with(|| WatchedThread {
                pid: site.pid,
                tid: site.tid,
                accesses: 0,
                stores: 0,
                cpus: CpuSet::default(),
            });
            thread.accesses += count.telling;
            thread.stores += if site.op.stores() { count.telling } else { 0 };
            thread.cpus.merge(&count.cpus);
        }
        let mut threads: Vec<WatchedThread> = threads.into_values().collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.accesses));
        threads
    }
}

impl Statistic for TrappedSites {
    fn see(&mut self, served: &Served, _: &OrderFacts) {
        match self.counts.slot(SiteKey::of(&served.access), MAX_SITES) {
            Some(count) => {
                count.trapped += 1;
                count.telling += 1;
                count.cpus.insert(served.access.cpu);
            }
            None => self.folded += 1,
        }
    }
}
