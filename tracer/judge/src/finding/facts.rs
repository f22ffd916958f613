//! What to say of a judged line besides its verdict.

use crate::{
    access::{ByteSet, Cost, LineSize, Tid},
    analysis::{Evidence, SiteCounts},
    finding::{Verdict, WindowVerdict},
};

/// Something worth saying about a judged line; the words are the report's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fact {
    /// How often neighbouring samples were a hand-off, and how often they would be by chance.
    HandOffs {
        /// Seen.
        seen: f64,
        /// Of a random order.
        expected: f64,
    },
    /// Bytes that one thread stores and another touches, over the whole run.
    CommonBytes(ByteSet),
    /// Bytes that a thread stores and no other touches, over the whole run.
    PrivateBytes(ByteSet),
    /// The part of the shared cost, 0..=1, that is not about bytes which others had changed.
    Separable(f64),
    /// Without harvested accesses, which are weaker evidence, there would be no conflict.
    HarvestedOnly,
    /// No store was sampled. That is not "read-only": the writer may not have been sampled.
    NoStoreSeen,
    /// Loads found the line modified by another CPU, but no store that they could have met was sampled: somebody
    /// writes, and nobody knows which bytes.
    WriterUnknown,
    /// The same, and loads of different threads that found it modified are of different bytes. That fits false sharing
    /// and proves nothing.
    LoadedApart,
    /// Stores that a PMU sampled without a latency: what they waited is in no cost.
    UntimedStores(u64),
    /// Some accesses have no known size; they were taken for one byte, and for what is left of their aligned
    /// word, with the same result unless the significance says otherwise.
    UnknownSizes,
    /// What was waited in windows of several threads in which no store was sampled; not part
    /// of the shared cost.
    StalledWithoutStore(Cost<f64>),
    /// Accesses that are counted but no longer listed by site.
    Folded(u64),
    /// Samples alone would have said this; the windows show another kind.
    SampledAs(Verdict),
    /// Samples alone would have made it a finding; the windows show this.
    ShownInstead(WindowVerdict),
}

/// All but what windows changed. `weak`: rests on harvested accesses.
pub(super) fn facts(
    evidence: &Evidence,
    sites: &[SiteCounts],
    weak: bool,
    line_size: LineSize,
) -> Vec<Fact> {
    let sharing = &evidence.sharing;
    let mut facts = Vec::new();
    if sharing.expected_hand_offs > 0.0 {
        facts.push(Fact::HandOffs {
            seen: sharing.hand_offs,
            expected: sharing.expected_hand_offs,
        });
    }
    let (common, private) = stored_bytes(sites, line_size);
    if !common.is_empty() {
        facts.push(Fact::CommonBytes(common));
    }
    if !private.is_empty() {
        facts.push(Fact::PrivateBytes(private));
    }
    if let Some(kinds) = evidence.kinds {
        facts.push(Fact::Separable(1.0 - kinds.truly));
    }
    if weak {
        facts.push(Fact::HarvestedOnly);
    }
    let emulated = sites.iter().any(|site| site.emulated > 0);
    if evidence.stores == 0 && evidence.pmu_loads.hitm() == 0 && !emulated {
        facts.push(Fact::NoStoreSeen);
    }
    if sharing.unstored_cost > Cost(0.0) {
        facts.push(Fact::StalledWithoutStore(sharing.unstored_cost));
    }
    if evidence.folded > 0 {
        facts.push(Fact::Folded(evidence.folded));
    }
    facts.extend(pmu_facts(evidence, sites, line_size));
    facts
}

/// What only a PMU's samples can show or lack.
fn pmu_facts(evidence: &Evidence, sites: &[SiteCounts], line_size: LineSize) -> Vec<Fact> {
    let mut facts = Vec::new();
    if evidence.pmu_loads.hitm() > 0 && evidence.sharing.unmet > 0.0 {
        facts.push(Fact::WriterUnknown);
        if loaded_apart(sites, line_size) {
            facts.push(Fact::LoadedApart);
        }
    }
    if evidence.untimed_stores() > 0 {
        facts.push(Fact::UntimedStores(evidence.untimed_stores()));
    }
    if evidence.unknown_sizes {
        facts.push(Fact::UnknownSizes);
    }
    facts
}

/// Whether several threads' loads found the line modified, and no byte is of two of them.
fn loaded_apart(sites: &[SiteCounts], line_size: LineSize) -> bool {
    let mut loads: Vec<(Tid, u128)> = sites
        .iter()
        .filter(|site| site.pmu.hitm() > 0)
        .map(|site| (site.site.tid, site.site.bytes(line_size).0))
        .collect();
    loads.sort_unstable();
    let mut by_thread = loads
        .chunk_by(|a, b| a.0 == b.0)
        .map(|one| one.iter().fold(0, |all, (_, bytes)| all | bytes));
    let mut threads = 0;
    let mut seen = 0;
    let apart = by_thread.all(|bytes| {
        threads += 1;
        let apart = seen & bytes == 0;
        seen |= bytes;
        apart
    });
    apart && threads > 1
}

/// Stored bytes that several threads touch, and stored bytes of one thread alone.
fn stored_bytes(sites: &[SiteCounts], line_size: LineSize) -> (ByteSet, ByteSet) {
    let mut stored = 0;
    let mut by_several = 0;
    let mut toucher: [Option<Tid>; 128] = [None; 128];
    for site in sites.iter().filter(|s| s.site.op.touches()) {
        let bytes = site.site.bytes(line_size).0;
        if site.site.op.stores() {
            stored |= bytes;
        }
        for (n, first) in toucher.iter_mut().enumerate() {
            if bytes >> n & 1 == 1 && *first.get_or_insert(site.site.tid) != site.site.tid {
                by_several |= 1 << n;
            }
        }
    }
    (ByteSet(stored & by_several), ByteSet(stored & !by_several))
}
