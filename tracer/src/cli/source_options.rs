//! Options of what samples, and what a session says of them.

use clap::{Args, ValueEnum};

use crate::{access::CostUnit, source::MemoryOptions};

/// What samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SourceName {
    /// The first that can run, in the order pebs, ibs, timer.
    Auto,
    /// Intel's PMU: loads and stores with address, latency and data source.
    Pebs,
    /// AMD's PMU: sampled instructions with address, latency and data source.
    Ibs,
    /// A timer and the code around each sample. Needs no PMU.
    Timer,
}

/// Which source, and which accesses a PMU leaves out.
#[derive(Debug, Clone, Args)]
pub struct SourceArgs {
    /// What samples accesses; `cohtrace doctor` says which PMU there is.
    #[arg(long, value_enum, default_value_t = SourceName::Auto)]
    pub source: SourceName,
    /// PMUs: sample only loads of at least this many cycles [Intel's default: 30; AMD's: all, else 128 to 2048].
    #[arg(long, value_name = "CYCLES")]
    pub ldlat: Option<u16>,
    /// AMD from Zen 4 on: sample only what misses the last-level cache. Hides sharing within one.
    #[arg(long)]
    pub l3_misses_only: bool,
}

impl SourceArgs {
    /// As if nothing was given.
    pub fn standard() -> SourceArgs {
        SourceArgs {
            source: SourceName::Auto,
            ldlat: None,
            l3_misses_only: false,
        }
    }

    /// The source's name; `None`: whichever is best.
    pub fn name(&self) -> Option<&'static str> {
        match self.source {
            SourceName::Auto => None,
            SourceName::Pebs => Some("pebs"),
            SourceName::Ibs => Some("ibs"),
            SourceName::Timer => Some("timer"),
        }
    }

    /// As sources take them.
    pub fn memory(&self) -> MemoryOptions {
        MemoryOptions {
            ldlat: self.ldlat,
            l3_misses_only: self.l3_misses_only,
        }
    }

    /// What a session says of them; nothing where no PMU was at work.
    pub fn record(&self, unit: CostUnit) -> Vec<(String, String)> {
        if unit == CostUnit::SampledTime {
            return Vec::new();
        }
        let ldlat = self.ldlat.map(|cycles| cycles.to_string());
        let ldlat = ldlat.unwrap_or_else(|| "default".to_owned());
        vec![
            ("ldlat".to_owned(), ldlat),
            ("l3_misses_only".to_owned(), self.l3_misses_only.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SOURCES, memory::plan::DEFAULT_LDLAT};

    #[test]
    fn every_source_can_be_asked_for_by_its_name() {
        let names: Vec<&str> = SourceName::value_variants()
            .iter()
            .filter_map(|source| {
                let args = SourceArgs {
                    source: *source,
                    ..SourceArgs::standard()
                };
                args.name()
            })
            .collect();
        let known: Vec<&str> = SOURCES.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, known);
        assert_eq!(SourceArgs::standard().name(), None);
    }

    #[test]
    fn the_documented_threshold_is_the_one_taken() {
        assert_eq!(DEFAULT_LDLAT, 30);
    }
}
