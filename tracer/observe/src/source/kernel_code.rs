//! The kernel's code, told of for the names of what it accesses: it is in no file.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{live::Live, sampled_code::ReadKernel};
use crate::{
    event::{Batch, Context, ContextKind},
    machine::btf::GETS_CURRENT,
    module::ModuleStore,
};

/// Longest kernel function that is read, bytes; longer ones are cut.
pub(super) const LONGEST_FUNCTION: u64 = 64 * 1024;
/// Bytes that are told of in all: some ten thousand functions.
const MOST_TOLD: usize = 8 << 20;

/// What was read of it.
pub(super) struct KernelCode {
    modules: Arc<ModuleStore>,
    known: FxHashSet<u64>,
    untold: Vec<(u64, Arc<[u8]>)>,
    bytes: usize,
}

impl KernelCode {
    /// Nothing read yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> KernelCode {
        KernelCode {
            modules,
            known: FxHashSet::default(),
            untold: Vec::new(),
            bytes: 0,
        }
    }

    /// The code of the function at an address, and where it starts; it will be told of.
    pub(super) fn function(&mut self, ip: u64, read: ReadKernel<'_>) -> Option<(u64, Vec<u8>)> {
        let (start, end, _) = self.modules.kernel().ok()?.function(ip)?;
        let bytes = read(
            start,
            end.saturating_sub(start).min(LONGEST_FUNCTION) as usize,
        )?;
        if self.known.insert(start) && self.bytes + bytes.len() <= MOST_TOLD {
            let is_first = self.bytes == 0;
            self.bytes += bytes.len();
            self.untold.push((start, bytes.as_slice().into()));
            // Where a CPU's own variables are follows from this one.
            let current = self.modules.kernel().ok()?.own_function(GETS_CURRENT);
            if let Some(current) = current.filter(|_| is_first) {
                self.function(current, read);
            }
        }
        Some((start, bytes))
    }

    /// Has the function at an address told of, if it was not.
    pub(super) fn notice(&mut self, ip: u64, read: ReadKernel<'_>) {
        let function = self.modules.kernel().ok().and_then(|k| k.function(ip));
        if function.is_some_and(|(start, ..)| !self.known.contains(&start)) {
            self.function(ip, read);
        }
    }

    /// Tells of what was read since the last time.
    pub(super) fn tell(&mut self, time_ns: u64, live: &mut Live, batch: &mut Batch) {
        for (start, bytes) in self.untold.drain(..) {
            let kind = ContextKind::Memory {
                pid: None,
                start,
                bytes,
            };
            live.tell(Context { time_ns, kind }, batch);
        }
    }
}
