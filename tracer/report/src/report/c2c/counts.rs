//! What perf counts of a sample, by its data source: `c2c_decode_stats` of tools/perf/util/mem-events.c.

use crate::data_source::{
    DataSource,
    stated::{OP_LOAD, OP_STORE},
};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Sampled records.
    Records,
    /// Locked.
    Locked,
    /// Sampled loads.
    Loads,
    /// Loads of uncacheable memory.
    LoadUncacheable,
    /// Loads from devices.
    LoadIo,
    /// Loads that missed a level.
    LoadMiss,
    /// Loads without a data address.
    LoadNoAddress,
    /// Loads served by a line fill buffer.
    LoadFillBuffer,
    /// Loads served by L1.
    LoadL1,
    /// Loads served by L2.
    LoadL2,
    /// Loads served by the last level, unmodified elsewhere.
    LoadLlc,
    /// Loads of a line modified in a cache of the same socket.
    LocalHitm,
    /// Loads of a line modified in a cache of another socket.
    RemoteHitm,
    /// Loads served by a cache of another socket, unmodified.
    RemoteHit,
    /// Loads served by this node's memory.
    LocalDram,
    /// Loads served by another node's memory.
    RemoteDram,
    /// Loads from memory of lines that no other cache had.
    Exclusive,
    /// Loads from memory of lines that other caches had.
    Shared,
    /// Blocked by data.
    BlockedByData,
    /// Blocked by an address.
    BlockedByAddress,
    /// Loads served by a peer's cache, near.
    LocalPeer,
    /// Loads served by a peer's cache, far.
    RemotePeer,
    /// Sampled stores.
    Stores,
    /// Stores to uncacheable memory.
    StoreUncacheable,
    /// Stores without a data address.
    StoreNoAddress,
    /// Stores that hit L1.
    StoreL1Hit,
    /// Stores that missed L1.
    StoreL1Miss,
    /// Stores of which no level is known.
    StoreNoLevel,
    /// No mapping is known at the data or at the instruction.
    NoMapping,
    /// Neither load nor store.
    Unparsed,
}

/// Number of [`Event`]s.
const EVENTS: usize = Event::Unparsed as usize + 1;

/// A count of each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u64; EVENTS]);

/// `PERF_MEM_*` of include/uapi/linux/perf_event.h.
mod bit {
    pub(super) const HIT: u64 = 0x2;
    pub(super) const MISS: u64 = 0x4;
    pub(super) const L1: u64 = 0x8;
    pub(super) const LFB: u64 = 0x10;
    pub(super) const L2: u64 = 0x20;
    pub(super) const L3: u64 = 0x40;
    pub(super) const LOCAL_RAM: u64 = 0x80;
    pub(super) const REMOTE_RAM: u64 = 0x100 | 0x200;
    pub(super) const REMOTE_CACHE: u64 = 0x400 | 0x800;
    pub(super) const IO: u64 = 0x1000;
    pub(super) const UNCACHED: u64 = 0x2000;
    pub(super) const LEVEL_NA: u64 = 0x1;
    pub(super) const SNOOP_HIT: u64 = 0x4;
    pub(super) const SNOOP_HITM: u64 = 0x10;
    pub(super) const SNOOP_PEER: u64 = 0x2;
    pub(super) const LOCKED: u64 = 0x2;
    pub(super) const BLOCKED_DATA: u64 = 0x2;
    pub(super) const BLOCKED_ADDRESS: u64 = 0x4;
}

impl Counts {
    /// Of one sample. `word` is its data source, `mapped` whether mappings are known at its data and its
    /// instruction.
    pub fn of(word: u64, addr: u64, mapped: bool) -> Counts {
        let mut counts = Counts::default();
        counts.count(Event::Records);
        let Some(source) = DataSource::new(word) else {
            counts.count(Event::Unparsed);
            return counts;
        };
        counts.count_if(source.lock_bits() & bit::LOCKED != 0, Event::Locked);
        let blocked = source.blocked_bits();
        counts.count_if(blocked & bit::BLOCKED_DATA != 0, Event::BlockedByData);
        counts.count_if(blocked & bit::BLOCKED_ADDRESS != 0, Event::BlockedByAddress);
        let op = source.op_bits();
        let (kind, no_address) = if op & OP_LOAD != 0 {
            (Event::Loads, Event::LoadNoAddress)
        } else if op & OP_STORE != 0 {
            (Event::Stores, Event::StoreNoAddress)
        } else {
            counts.count(Event::Unparsed);
            return counts;
        };
        counts.count(kind);
        if addr == 0 {
            counts.count(no_address);
            return counts;
        }
        if kind == Event::Loads {
            counts.load(source);
        } else {
            counts.store(source);
        }
        counts.count_if(!mapped, Event::NoMapping);
        counts
    }

    fn load(&mut self, source: DataSource) {
        let level = |bits: u64| source.level_bits() & bits != 0;
        let snoop = |bits: u64| source.snoop_bits() & bits != 0;
        let peer = source.snoop_extended_bits() & bit::SNOOP_PEER != 0;
        // Skylake says "remote" for an unknown level; with hops it is another core's cache (PowerPC).
        let remote = source.remote() && source.hops() == 0;
        let from_memory = if snoop(bit::SNOOP_HIT) {
            Event::Shared
        } else {
            Event::Exclusive
        };
        if level(bit::HIT) {
            self.count_if(level(bit::UNCACHED), Event::LoadUncacheable);
            self.count_if(level(bit::IO), Event::LoadIo);
            self.count_if(level(bit::LFB), Event::LoadFillBuffer);
            self.count_if(level(bit::L1), Event::LoadL1);
            self.count_if(level(bit::L2), Event::LoadL2);
            self.count_if(level(bit::L2) && peer, Event::LocalPeer);
            if level(bit::L3) {
                self.count(if snoop(bit::SNOOP_HITM) {
                    Event::LocalHitm
                } else {
                    Event::LoadLlc
                });
                self.count_if(peer, Event::LocalPeer);
            }
            if level(bit::LOCAL_RAM) {
                self.count(Event::LocalDram);
                self.count(from_memory);
            }
            if level(bit::REMOTE_RAM) || remote {
                self.count(Event::RemoteDram);
                self.count(from_memory);
            }
        }
        if level(bit::REMOTE_CACHE) || remote {
            if snoop(bit::SNOOP_HIT) {
                self.count(Event::RemoteHit);
            } else if snoop(bit::SNOOP_HITM) {
                self.count(Event::RemoteHitm);
            } else if peer {
                self.count(Event::RemoteHit);
                self.count(Event::RemotePeer);
            }
        }
        self.count_if(level(bit::MISS), Event::LoadMiss);
    }

    fn store(&mut self, source: DataSource) {
        let level = |bits: u64| source.level_bits() & bits != 0;
        self.count_if(
            level(bit::HIT) && level(bit::UNCACHED),
            Event::StoreUncacheable,
        );
        self.count_if(level(bit::HIT) && level(bit::L1), Event::StoreL1Hit);
        self.count_if(level(bit::MISS) && level(bit::L1), Event::StoreL1Miss);
        self.count_if(level(bit::LEVEL_NA), Event::StoreNoLevel);
    }

    fn count(&mut self, event: Event) {
        self.0[event as usize] += 1;
    }

    fn count_if(&mut self, counted: bool, event: Event) {
        self.0[event as usize] += u64::from(counted);
    }

    /// How often the event was counted.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    fn sum(&self, events: &[Event]) -> u64 {
        events.iter().map(|event| self.get(*event)).sum()
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Counts) {
        for (sum, n) in self.0.iter_mut().zip(other.0) {
            *sum += n;
        }
    }

    /// Loads of lines modified elsewhere.
    pub fn hitm(&self) -> u64 {
        self.sum(&[Event::LocalHitm, Event::RemoteHitm])
    }

    /// Loads served by a peer's cache.
    pub fn peer(&self) -> u64 {
        self.sum(&[Event::LocalPeer, Event::RemotePeer])
    }

    /// Loads served by the last level of this socket, modified or not.
    pub fn llc_hits(&self) -> u64 {
        self.sum(&[Event::LoadLlc, Event::LocalHitm])
    }

    /// Loads that the last level of this socket did not serve.
    pub fn llc_misses(&self) -> u64 {
        let remote = [Event::RemoteHitm, Event::RemoteHit];
        self.sum(&[Event::LocalDram, Event::RemoteDram]) + self.sum(&remote)
    }

    /// Loads of which something served is known.
    pub fn served_loads(&self) -> u64 {
        let near = [Event::LoadFillBuffer, Event::LoadL1, Event::LoadL2];
        self.llc_misses() + self.sum(&near) + self.llc_hits()
    }

    /// Stores by level.
    pub fn levelled_stores(&self) -> u64 {
        self.sum(&[Event::StoreL1Hit, Event::StoreL1Miss, Event::StoreNoLevel])
    }
}
