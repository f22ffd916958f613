//! The part of the kernel half that runs on data breakpoints.

use std::{
    fmt,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};

use aya::{
    maps::{Map, MapData, PerCpuArray, RingBuf},
    programs::PerfEvent as WatchProgram,
};
use tracer_ebpf::{HITS, WATCH_CONTROL, WATCH_LIMITS, WATCH_STATS, WatchStats, programs};

use super::{BpfError, KernelHalf, map_data, map_error, program_error, update_element};
use crate::{
    access::Cpu,
    sys::{perf_event::PerfEvent, watch_control::ControlMemory},
};

/// [`WatchStats`] as aya can read it.
const STATS_WORDS: usize = size_of::<WatchStats>() / size_of::<u64>();

/// The loaded watch program and its maps. There is one control for all of a [`KernelHalf`]'s: only one
/// may be used at a time.
#[derive(Debug)]
pub struct Watch {
    /// What runs on each hit.
    pub program: OnHit,
    /// What counts as a hit.
    pub control: Arc<ControlMemory>,
    /// What tells that a window has its hits.
    pub limits: WatchLimits,
    stats: Map,
}

/// Readable when a window has its hits.
pub struct WatchLimits(RingBuf<MapData>);

impl fmt::Debug for WatchLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchLimits({:?})", self.0.as_fd())
    }
}

impl WatchLimits {
    /// What was told is known.
    pub fn clear(&mut self) {
        while self.0.next().is_some() {}
    }
}

impl AsFd for WatchLimits {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl KernelHalf {
    /// Loads the watch program, if that was not done yet.
    pub fn watch(&mut self) -> Result<Watch, BpfError> {
        let failed = |error| program_error(programs::WATCH, error);
        let program = self.program::<WatchProgram>(programs::WATCH)?;
        if program.fd().is_err() {
            program.load().map_err(failed)?;
        }
        let own = |what: &str, source| BpfError::Call {
            action: format!("duplicating the descriptor of {what}"),
            source,
        };
        let program = program.fd().map_err(failed)?.as_fd();
        let program = program
            .try_clone_to_owned()
            .map_err(|error| own(programs::WATCH, error))?;
        let control = map_data(&self.ebpf, WATCH_CONTROL)?.fd().as_fd();
        let control = ControlMemory::map(control).map_err(|source| BpfError::Call {
            action: "mapping the control of watch windows".to_owned(),
            source,
        })?;
        let duplicate = |name: &'static str| {
            let map = map_data(&self.ebpf, name)?.fd().as_fd();
            let map = map.try_clone_to_owned().map_err(|error| own(name, error))?;
            MapData::from_fd(map)
                .and_then(Map::from_map_data)
                .map_err(|error| map_error(name, error))
        };
        let (stats, limits) = (duplicate(WATCH_STATS)?, duplicate(WATCH_LIMITS)?);
        let failed = |error| map_error(WATCH_LIMITS, error);
        Ok(Watch {
            limits: WatchLimits(limits.try_into().map_err(failed)?),
            program: OnHit(Arc::new(program)),
            control: Arc::new(control),
            stats,
        })
    }

    /// Sends the hits on a CPU to the ring of a `bpf_output` event of the same CPU. Without one, the
    /// hits of that CPU count as dropped.
    pub fn set_hits_ring(&self, cpu: Cpu, event: &PerfEvent) -> Result<(), BpfError> {
        let hits = map_data(&self.ebpf, HITS)?;
        update_element(hits.fd().as_fd(), cpu.0, event.as_fd().as_raw_fd()).map_err(|source| {
            BpfError::Call {
                action: format!("giving CPU {} its ring of hits", cpu.0),
                source,
            }
        })
    }
}

/// The watch program, to be attached from any thread.
#[derive(Debug, Clone)]
pub struct OnHit(Arc<OwnedFd>);

impl OnHit {
    /// Runs the program on each hit of a breakpoint, for as long as the event is open.
    pub fn attach(&self, event: &PerfEvent) -> Result<(), BpfError> {
        event
            .set_bpf(self.0.as_fd())
            .map_err(|source| BpfError::Call {
                action: "attaching the watch program to a breakpoint".to_owned(),
                source,
            })
    }
}

impl Watch {
    /// The program's own counts, per possible CPU. Exact once the breakpoints are disabled; before, a hit
    /// under way may be counted and not yet emitted or dropped.
    pub fn stats(&self) -> Result<Vec<(Cpu, WatchStats)>, BpfError> {
        let failed = |error| map_error(WATCH_STATS, error);
        let stats: PerCpuArray<_, [u64; STATS_WORDS]> = (&self.stats).try_into().map_err(failed)?;
        let words = stats.get(&0, 0).map_err(failed)?;
        Ok((0..)
            .map(Cpu)
            .zip(words.iter().map(|words| zerocopy::transmute!(*words)))
            .collect())
    }
}
