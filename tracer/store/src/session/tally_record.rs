//! The tally as sessions store it: names instead of enums, text keys as JSON wants them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::Damage;
use crate::{
    access::{Cost, Cpu},
    event::{HeapTally, Tally, Unresolved},
};

/// Mirror of [`Tally`]; fields mean the same, but for those with words of their own.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented at Tally")]
pub struct TallyRecord {
    pub produced: u64,
    /// Or executions, where costs are messages: the reader, which knows the session's unit, tells them apart.
    pub samples: u64,
    pub kernel_samples: u64,
    pub filtered: u64,
    /// By CPU number.
    pub lost: BTreeMap<u32, u64>,
    /// By CPU number. Before version 7 nobody counted it.
    #[serde(default)]
    pub blind_ns: BTreeMap<u32, u64>,
    pub lost_context: u64,
    /// [`Tally::cost`], in the session's unit.
    pub sampled_ns: u64,
    pub attributed: u64,
    /// By [`Unresolved::name`].
    pub unresolved: BTreeMap<String, u64>,
    pub operands_unknown: u64,
    /// Before version 3 there was none.
    #[serde(default)]
    pub heap: HeapTallyRecord,
}

/// Mirror of [`HeapTally`]; fields mean the same.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "documented at HeapTally")]
pub struct HeapTallyRecord {
    pub allocations: u64,
    pub frees: u64,
    pub lost: u64,
    pub off_ns: u64,
    pub cost_ns: u64,
}

impl TallyRecord {
    /// All counts added up; `None` when that overflows.
    pub(super) fn total(&self) -> Option<u64> {
        let single = [
            self.produced,
            self.samples,
            self.kernel_samples,
            self.filtered,
            self.lost_context,
            self.sampled_ns,
            self.attributed,
            self.operands_unknown,
            self.heap.allocations,
            self.heap.frees,
            self.heap.lost,
            self.heap.off_ns,
            self.heap.cost_ns,
        ];
        let counts = self.lost.values().chain(self.unresolved.values());
        counts
            .chain(self.blind_ns.values())
            .chain(&single)
            .try_fold(0u64, |sum, n| sum.checked_add(*n))
    }
}

impl From<&Tally> for TallyRecord {
    fn from(tally: &Tally) -> TallyRecord {
        TallyRecord {
            produced: tally.produced,
            samples: tally.counted(),
            kernel_samples: tally.kernel_samples,
            filtered: tally.filtered,
            lost: tally.lost.iter().map(|(cpu, n)| (cpu.0, *n)).collect(),
            blind_ns: (tally.blind_ns.iter())
                .map(|(cpu, ns)| (cpu.0, *ns))
                .collect(),
            lost_context: tally.lost_context,
            sampled_ns: tally.cost.0,
            attributed: tally.attributed,
            unresolved: tally
                .unresolved
                .iter()
                .map(|(reason, n)| (reason.name().to_owned(), *n))
                .collect(),
            operands_unknown: tally.operands_unknown,
            heap: HeapTallyRecord {
                allocations: tally.heap.allocations,
                frees: tally.heap.frees,
                lost: tally.heap.lost,
                off_ns: tally.heap.off_ns,
                cost_ns: tally.heap.cost_ns,
            },
        }
    }
}

impl TryFrom<&TallyRecord> for Tally {
    type Error = Damage;

    /// Fails on a reason that this version does not know.
    fn try_from(record: &TallyRecord) -> Result<Tally, Damage> {
        let unresolved = record
            .unresolved
            .iter()
            .map(|(name, n)| Unresolved::from_name(name).map(|reason| (reason, *n)))
            .collect::<Option<_>>()
            .ok_or(Damage::Meta("its tally names an unknown reason"))?;
        Ok(Tally {
            produced: record.produced,
            samples: record.samples,
            executions: 0,
            kernel_samples: record.kernel_samples,
            filtered: record.filtered,
            lost: record.lost.iter().map(|(cpu, n)| (Cpu(*cpu), *n)).collect(),
            blind_ns: (record.blind_ns.iter())
                .map(|(cpu, ns)| (Cpu(*cpu), *ns))
                .collect(),
            lost_context: record.lost_context,
            cost: Cost(record.sampled_ns),
            messages: 0,
            attributed: record.attributed,
            unresolved,
            operands_unknown: record.operands_unknown,
            heap: HeapTally {
                allocations: record.heap.allocations,
                frees: record.heap.frees,
                lost: record.heap.lost,
                off_ns: record.heap.off_ns,
                cost_ns: record.heap.cost_ns,
            },
        })
    }
}
