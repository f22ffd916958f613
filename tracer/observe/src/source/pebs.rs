//! The `pebs` source: loads and stores that Intel CPUs sample with their data addresses (precise event-based sampling).

use std::sync::Arc;

use super::{
    Evidence, Source, SourceError, SourceKind, SourceOptions, Target,
    memory::{self, plan},
};
use crate::{access::CostUnit, machine::Machine, module::ModuleStore};

/// The registered kind.
pub static KIND: Kind = Kind;

/// Describes and opens the source.
pub struct Kind;

impl SourceKind for Kind {
    fn name(&self) -> &'static str {
        "pebs"
    }

    fn about(&self) -> &'static str {
        "Intel's PMU: loads and stores with address, latency and data source"
    }

    fn evidence(&self) -> Evidence {
        memory::evidence()
    }

    fn cost_unit(&self) -> CostUnit {
        CostUnit::LatencyCycles
    }

    fn open(
        &self,
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        modules: Arc<ModuleStore>,
    ) -> Result<Box<dyn Source>, SourceError> {
        let events = plan::pebs(machine, options.frequency_hz, options.memory)?;
        let source = memory::open(target, options, machine, &modules, events)?;
        Ok(Box::new(source))
    }
}
