//! The unit that the costs of a run are in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What [`Access::cost`](super::Access::cost) counts; one for a run. By [name](CostUnit::name) in JSON and in
/// sessions, where any other name is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum CostUnit {
    /// Nanoseconds of the targets' time that a sample stands for.
    SampledTime,
    /// Core cycles that sampled loads took. Their sum over all samples is
    /// [`Tally::cost`](crate::event::Tally::cost).
    LatencyCycles,
    /// Messages of the directory protocol ([`coherence`](crate::coherence)) that served the access, where every
    /// access is known in order. Their sum over all accesses is
    /// [`Tally::messages`](crate::event::Tally::messages).
    Transactions,
}

impl CostUnit {
    /// All there are.
    pub const ALL: [CostUnit; 3] = [
        CostUnit::SampledTime,
        CostUnit::LatencyCycles,
        CostUnit::Transactions,
    ];

    /// Stable name in JSON and sessions.
    pub fn name(self) -> &'static str {
        match self {
            CostUnit::SampledTime => "sampled_ns",
            CostUnit::LatencyCycles => "latency_cycles",
            CostUnit::Transactions => "transactions",
        }
    }

    /// The unit of that name.
    pub fn from_name(name: &str) -> Option<CostUnit> {
        CostUnit::ALL.into_iter().find(|unit| unit.name() == name)
    }
}

impl fmt::Display for CostUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<CostUnit> for &'static str {
    fn from(unit: CostUnit) -> &'static str {
        unit.name()
    }
}

impl TryFrom<String> for CostUnit {
    type Error = UnknownUnit;

    fn try_from(name: String) -> Result<CostUnit, UnknownUnit> {
        CostUnit::from_name(&name).ok_or(UnknownUnit(name))
    }
}

/// A name that no unit of costs has: numbers in it mean nothing to this version of the tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "costs are in {0:?}, a unit that this cohtrace does not know (it knows {known})",
    known = CostUnit::ALL.map(CostUnit::name).join(", ")
)]
pub struct UnknownUnit(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_written_and_read_by_its_name() {
        for unit in CostUnit::ALL {
            let json = serde_json::to_string(&unit).unwrap();
            assert_eq!(json, format!("\"{unit}\""));
            assert_eq!(serde_json::from_str::<CostUnit>(&json).unwrap(), unit);
        }
    }

    #[test]
    fn an_unknown_name_is_no_unit_and_is_told() {
        let error = serde_json::from_str::<CostUnit>("\"furlongs\"").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"furlongs\""), "{text}");
        assert!(
            text.contains("sampled_ns, latency_cycles, transactions"),
            "{text}"
        );
        for other in ["", "Sampled_ns", "sampled_ns ", "SampledTime"] {
            assert_eq!(CostUnit::from_name(other), None, "{other:?}");
        }
    }
}
