//! The `ibs` source: micro-operations that AMD CPUs sample, of which those that touch memory are kept
//! (instruction-based sampling).

use std::sync::Arc;

use super::{
    Evidence, Source, SourceError, SourceKind, SourceOptions, Target,
    memory::{self, needs_types, plan},
};
use crate::{access::CostUnit, machine::Machine, module::ModuleStore};

/// The registered kind.
pub static KIND: Kind = Kind;

/// Describes and opens the source.
pub struct Kind;

impl SourceKind for Kind {
    fn name(&self) -> &'static str {
        "ibs"
    }

    fn about(&self) -> &'static str {
        "AMD's PMU: sampled instructions with address, latency and data source"
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
        let events = plan::ibs(machine, options.frequency_hz, options.memory)?;
        needs_types(machine)?;
        let source = memory::open(target, options, machine, &modules, events)?;
        Ok(Box::new(source))
    }
}
