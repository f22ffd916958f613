//! What shares are of, in words.

use crate::access::CostUnit;

/// Continues "12 %".
pub fn of(unit: CostUnit) -> &'static str {
    match unit {
        CostUnit::SampledTime => "of the time",
        CostUnit::LatencyCycles => "of the load latency",
        CostUnit::Transactions => "of the coherence transactions",
    }
}

/// What a run counts. An emulator takes no samples: it tells each execution.
pub fn counted(unit: CostUnit) -> &'static str {
    match unit {
        CostUnit::SampledTime | CostUnit::LatencyCycles => "samples",
        CostUnit::Transactions => "executions",
    }
}

/// Whether a finding of this cost is made of stores whose latency nobody measured.
pub(super) fn is_unmeasured(unit: CostUnit, share: f64) -> bool {
    unit == CostUnit::LatencyCycles && share == 0.0
}

/// Continues "12 %" in the long form, for the first use in a text.
pub(super) fn of_sampled(unit: CostUnit) -> &'static str {
    match unit {
        CostUnit::SampledTime => "of the sampled time",
        CostUnit::LatencyCycles => "of the sampled load latency",
        CostUnit::Transactions => "of the coherence transactions",
    }
}

/// The head of the column of shares.
pub(super) fn column(unit: CostUnit) -> &'static str {
    match unit {
        CostUnit::SampledTime => "time",
        CostUnit::LatencyCycles => "latency",
        CostUnit::Transactions => "transactions",
    }
}
