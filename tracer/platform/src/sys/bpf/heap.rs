//! The part of the kernel half that runs on the functions of allocators.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use aya::{
    maps::{Map, MapData, MapError, PerCpuArray, RingBuf},
    programs::UProbe,
};
use tracer_ebpf::{HEAP_EVENTS, HEAP_STATS, HeapFree, HeapRecord, HeapStats, programs};
use zerocopy::FromBytes as _;

use super::{BpfError, KernelHalf, map_data, map_error, program_error};

/// [`HeapStats`] as aya can read it.
const STATS_WORDS: usize = size_of::<HeapStats>() / size_of::<u64>();

/// The loaded heap programs and their maps.
pub struct Heap {
    /// What runs on probes.
    pub programs: HeapPrograms,
    /// Their counts.
    pub stats: HeapStatsMap,
    /// Their records.
    pub ring: HeapRing,
}

/// What the programs told.
pub struct HeapRing(RingBuf<MapData>);

/// The programs, to be attached from any thread.
#[derive(Debug, Clone)]
pub struct HeapPrograms(Arc<[(&'static str, OwnedFd)]>);

/// The programs' own counts.
#[derive(Debug)]
pub struct HeapStatsMap(Map);

impl KernelHalf {
    /// Loads the heap programs. Once only: the ring goes to the caller.
    pub fn heap(&mut self) -> Result<Heap, BpfError> {
        let names = programs::HEAP_ENTRIES
            .into_iter()
            .chain([programs::HEAP_RETURN]);
        let own = |what: &str, source| BpfError::Call {
            action: format!("duplicating the descriptor of {what}"),
            source,
        };
        let mut loaded = Vec::new();
        for name in names {
            let failed = |error| program_error(name, error);
            let program = self.program::<UProbe>(name)?;
            if program.fd().is_err() {
                program.load().map_err(failed)?;
            }
            let fd = program.fd().map_err(failed)?.as_fd();
            let fd = fd.try_clone_to_owned().map_err(|error| own(name, error))?;
            loaded.push((name, fd));
        }
        let stats = map_data(&self.ebpf, HEAP_STATS)?.fd().as_fd();
        let stats = stats
            .try_clone_to_owned()
            .map_err(|error| own(HEAP_STATS, error))?;
        let stats = MapData::from_fd(stats)
            .and_then(Map::from_map_data)
            .map_err(|error| map_error(HEAP_STATS, error))?;
        let failed = |error| map_error(HEAP_EVENTS, error);
        let ring = self
            .ebpf
            .take_map(HEAP_EVENTS)
            .ok_or_else(|| failed(MapError::ElementNotFound))?;
        Ok(Heap {
            programs: HeapPrograms(loaded.into()),
            stats: HeapStatsMap(stats),
            ring: HeapRing(ring.try_into().map_err(failed)?),
        })
    }
}

/// What the ring brings.
#[derive(Debug)]
pub enum HeapEvent {
    /// An allocation. Boxed: it is some forty times a free.
    Allocated(Box<HeapRecord>),
    /// A free or an unmapping.
    Freed(HeapFree),
}

impl AsFd for HeapRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl HeapRing {
    /// Takes what the ring holds, at most `most` records, in the order in which they were made room for.
    pub fn drain(&mut self, most: usize, mut take: impl FnMut(HeapEvent)) {
        for _ in 0..most {
            let Some(item) = self.0.next() else {
                return;
            };
            let bytes: &[u8] = &item;
            // The ring rounds nothing: a record has the length it was reserved with.
            if let Ok(freed) = HeapFree::read_from_bytes(bytes) {
                take(HeapEvent::Freed(freed));
            } else if let Ok(record) = HeapRecord::read_from_bytes(bytes) {
                take(HeapEvent::Allocated(Box::new(record)));
            }
        }
    }
}

impl HeapPrograms {
    /// The program of that name.
    pub fn get(&self, name: &str) -> Option<BorrowedFd<'_>> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, fd)| fd.as_fd())
    }
}

impl HeapStatsMap {
    /// The counts of all CPUs, summed.
    pub fn sum(&self) -> Result<HeapStats, BpfError> {
        let failed = |error| map_error(HEAP_STATS, error);
        let stats: PerCpuArray<_, [u64; STATS_WORDS]> = (&self.0).try_into().map_err(failed)?;
        let words = stats.get(&0, 0).map_err(failed)?;
        let mut sum = HeapStats::default();
        for one in words.iter() {
            let one: HeapStats = zerocopy::transmute!(*one);
            for (sum, one) in sum.entries.iter_mut().zip(one.entries) {
                *sum += one;
            }
            sum.returns += one.returns;
            sum.emitted += one.emitted;
            sum.dropped += one.dropped;
        }
        Ok(sum)
    }
}
