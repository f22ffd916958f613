//! What the fields of a data source mean together: the level that served, and whether another cache had the line.

use super::DataSource;

/// `PERF_MEM_OP_*`.
mod op {
    pub(super) const LOAD: u64 = 2;
    pub(super) const STORE: u64 = 4;
}

/// `PERF_MEM_LVL_*`.
mod lvl {
    pub(super) const HIT: u64 = 2;
    pub(super) const MISS: u64 = 4;
    pub(super) const L1: u64 = 1 << 3;
    pub(super) const LFB: u64 = 1 << 4;
    pub(super) const L2: u64 = 1 << 5;
    pub(super) const L3: u64 = 1 << 6;
    pub(super) const LOCAL_RAM: u64 = 1 << 7;
    pub(super) const REMOTE_RAM_1: u64 = 1 << 8;
    pub(super) const REMOTE_RAM_2: u64 = 1 << 9;
    pub(super) const REMOTE_CACHE_1: u64 = 1 << 10;
    pub(super) const REMOTE_CACHE_2: u64 = 1 << 11;
    pub(super) const IO: u64 = 1 << 12;
    pub(super) const UNCACHED: u64 = 1 << 13;
}

/// `PERF_MEM_SNOOP_*`.
mod snoop {
    pub(super) const NONE: u64 = 2;
    pub(super) const HIT: u64 = 4;
    pub(super) const MISS: u64 = 8;
    pub(super) const HITM: u64 = 16;
}

/// How far away a level is, as far as it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// Remote, not said how far.
    Unstated,
    /// Another core of the same node (`PERF_MEM_HOPS_0`).
    SameNode,
    /// Another node of the same socket (`PERF_MEM_HOPS_1`; on AMD any other node).
    OtherNode,
    /// Another socket of the same board (`PERF_MEM_HOPS_2`).
    OtherSocket,
    /// Another board (`PERF_MEM_HOPS_3`).
    OtherBoard,
    /// One hop, in the encoding before hops had fields.
    OneHop,
    /// Two hops, in that encoding.
    TwoHops,
}

impl Distance {
    /// Whether it is beyond the own node.
    pub fn leaves_node(self) -> bool {
        self != Distance::SameNode
    }

    fn of_hops(hops: u64) -> Distance {
        match hops {
            1 => Distance::SameNode,
            2 => Distance::OtherNode,
            3 => Distance::OtherSocket,
            4 => Distance::OtherBoard,
            _ => Distance::Unstated,
        }
    }
}

/// What served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Below the first level (`PERF_MEM_LVLNUM_L0`, Diamond Rapids).
    L0,
    /// First level.
    L1,
    /// A line fill buffer: the line was on its way already.
    LineFillBuffer,
    /// Second level.
    L2,
    /// The second level's miss handling buffer.
    L2MissBuffer,
    /// Third level.
    L3,
    /// Fourth level.
    L4,
    /// Some cache, not said which.
    AnyCache,
    /// Another core's cache; of the own node, unless the distance says otherwise.
    PeerCache(Distance),
    /// A cache of another node.
    RemoteCache(Distance),
    /// A cache on the side of the memory.
    MemorySideCache,
    /// Memory of the own node.
    LocalRam,
    /// Memory of another node.
    RemoteRam(Distance),
    /// Persistent memory.
    PersistentMemory,
    /// Memory behind CXL.
    Cxl,
    /// A device.
    Io,
    /// Memory that is not cached.
    Uncached,
}

/// Whether another CPU's cache had the line of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coherence {
    /// It had it modified: another CPU stored to the line since this one had it last.
    HitM {
        /// The cache is of another node.
        remote: bool,
    },
    /// The line came from it, modified or not: the PMU does not say.
    PeerHit {
        /// The cache is of another node.
        remote: bool,
    },
    /// It came from elsewhere.
    None,
    /// The PMU did not say.
    Unknown,
}

impl Coherence {
    /// Whether the line moved, or was copied, from one CPU's cache to another's.
    pub fn is_hit(self) -> bool {
        matches!(self, Coherence::HitM { .. } | Coherence::PeerHit { .. })
    }
}

impl DataSource {
    /// It was a load (`PERF_MEM_OP_LOAD`).
    pub fn is_load(self) -> bool {
        self.op_bits() & op::LOAD != 0
    }

    /// It was a store (`PERF_MEM_OP_STORE`).
    pub fn is_store(self) -> bool {
        self.op_bits() & op::STORE != 0
    }

    /// `Some(true)` for a hit in [`DataSource::level`], `Some(false)` for a miss there; `None` when neither is said.
    pub fn hit(self) -> Option<bool> {
        match (self.level_bits() & lvl::HIT, self.level_bits() & lvl::MISS) {
            (0, 0) => None,
            (0, _) => Some(false),
            _ => Some(true),
        }
    }

    /// A locked instruction; `None` when it is not said.
    pub fn locked(self) -> Option<bool> {
        match self.lock_bits() {
            // PERF_MEM_LOCK has NA = 1 and LOCKED = 2; without either, perf prints "No".
            0 => Some(false),
            2 => Some(true),
            _ => None,
        }
    }

    /// Another cache had it modified (`PERF_MEM_SNOOP_HITM`).
    pub fn is_hitm(self) -> bool {
        self.snoop_bits() & snoop::HITM != 0
    }

    /// Another cache sent it (`PERF_MEM_SNOOPX_FWD`, `PERF_MEM_SNOOPX_PEER`).
    pub fn from_peer(self) -> bool {
        self.snoop_extended_bits() != 0
    }

    /// What served it: by level number where there is one, else by the older bits, of several the nearest (Zen
    /// before 4 sets L3 and remote cache at once for "L3 or another core's cache"). `None` when it is not said.
    pub fn level(self) -> Option<Level> {
        let distance = Distance::of_hops(self.hops());
        let of_another = self.remote() || self.hops() != 0;
        let cache = |here: Level| match (of_another, distance) {
            (false, _) => here,
            (true, Distance::SameNode) => Level::PeerCache(distance),
            (true, _) => Level::RemoteCache(distance),
        };
        Some(match self.level_number() {
            1 => cache(Level::L1),
            2 => cache(Level::L2),
            3 => cache(Level::L3),
            4 => cache(Level::L4),
            5 => Level::L2MissBuffer,
            6 => Level::MemorySideCache,
            7 => Level::L0,
            8 => Level::Uncached,
            9 => Level::Cxl,
            0xa => Level::Io,
            0xb => cache(Level::AnyCache),
            0xc => Level::LineFillBuffer,
            0xd if of_another => Level::RemoteRam(distance),
            0xd => Level::LocalRam,
            0xe => Level::PersistentMemory,
            _ => return self.level_by_bits(),
        })
    }

    fn level_by_bits(self) -> Option<Level> {
        let known = [
            (lvl::L1, Level::L1),
            (lvl::LFB, Level::LineFillBuffer),
            (lvl::L2, Level::L2),
            (lvl::L3, Level::L3),
            (lvl::LOCAL_RAM, Level::LocalRam),
            (lvl::REMOTE_CACHE_1, Level::RemoteCache(Distance::OneHop)),
            (lvl::REMOTE_CACHE_2, Level::RemoteCache(Distance::TwoHops)),
            (lvl::REMOTE_RAM_1, Level::RemoteRam(Distance::OneHop)),
            (lvl::REMOTE_RAM_2, Level::RemoteRam(Distance::TwoHops)),
            (lvl::IO, Level::Io),
            (lvl::UNCACHED, Level::Uncached),
        ];
        let bits = self.level_bits();
        let found = known.into_iter().find(|(bit, _)| bits & bit != 0);
        found.map(|(_, level)| level)
    }

    /// Whether another CPU's cache had the line: HITM, else a peer's or forwarder's answer, else a level that is
    /// another core's cache. Of a store it means nothing; those carry no snoop result on any CPU known.
    ///
    /// "Remote" is another node, so that the cache of a core in the same node is local whatever its encoding:
    /// `PERF_MEM_HOPS_0` with `mem_remote` (AMD's near CCX, POWER), which `perf c2c` counts as remote.
    pub fn coherence(self) -> Coherence {
        let level = self.level();
        let remote = match level {
            Some(
                Level::RemoteCache(distance)
                | Level::RemoteRam(distance)
                | Level::PeerCache(distance),
            ) => distance.leaves_node(),
            _ => self.remote() && Distance::of_hops(self.hops()).leaves_node(),
        };
        if self.is_hitm() {
            return Coherence::HitM { remote };
        }
        let of_other_cache = matches!(level, Some(Level::PeerCache(_) | Level::RemoteCache(_)));
        if self.from_peer() || of_other_cache {
            return Coherence::PeerHit { remote };
        }
        let answered = self.snoop_bits() & (snoop::NONE | snoop::HIT | snoop::MISS) != 0;
        if answered || level.is_some() {
            Coherence::None
        } else {
            Coherence::Unknown
        }
    }

    /// Whether a load surely waited for no other CPU: the CPU's own first or second level, or memory, served it. A line
    /// that another CPU had invalidated comes from a cache; one from the third level, or one that was on its way, may
    /// have been invalidated before.
    pub fn waited_for_nobody(self) -> bool {
        let level = matches!(
            self.level(),
            Some(
                Level::L0
                    | Level::L1
                    | Level::L2
                    | Level::LocalRam
                    | Level::RemoteRam(_)
                    | Level::PersistentMemory
                    | Level::Cxl
                    | Level::Io
                    | Level::Uncached
            )
        );
        level && self.coherence() == Coherence::None
    }

    /// Whether it tells where the access was served; what perf calls an unparsable data source does not.
    pub fn is_available(self) -> bool {
        self.coherence() != Coherence::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(raw: u64) -> DataSource {
        DataSource::new(raw).expect("not 0")
    }

    /// A load with these fields and nothing else said.
    fn load(level: u64, snoop: u64, number: u64, remote: u64, extended: u64, hops: u64) -> u64 {
        let high = remote << 37 | extended << 38 | 1 << 40 | hops << 43;
        2 | level << 5 | snoop << 19 | 1 << 24 | 1 << 26 | number << 33 | high
    }

    fn check(raw: u64, level: Option<Level>, coherence: Coherence) {
        let source = source(raw);
        let found = (source.level(), source.coherence());
        assert_eq!(found, (level, coherence), "{raw:#x}");
    }

    const LOCAL_HITM: Coherence = Coherence::HitM { remote: false };
    const REMOTE_HITM: Coherence = Coherence::HitM { remote: true };

    #[test]
    fn words_of_real_machines_say_what_served_them() {
        check(0x6_2980_0842, Some(Level::L3), LOCAL_HITM);
        check(0x2_2908_0144, Some(Level::L1), Coherence::None);
        check(DataSource::NOT_AVAILABLE, None, Coherence::Unknown);
        check(0x1a_4908_1042, Some(Level::LocalRam), Coherence::None);
        check(0x6a10_0142, Some(Level::L1), Coherence::None);
        // As written by an Arm SPE decoder: an L1 hit that was modified elsewhere.
        check(0x2_8880_0142, Some(Level::L1), LOCAL_HITM);
        check(
            0x118_6810_0242,
            Some(Level::LineFillBuffer),
            Coherence::None,
        );
        assert_eq!(source(0x6a10_0142).locked(), Some(true));
        assert_eq!(source(0x6810_0142).locked(), Some(false));
        assert_eq!(source(0x6_2980_0842).locked(), None);
        assert!(source(0x2_2908_0144).is_store() && !source(0x2_2908_0144).is_load());
        assert!(!source(DataSource::NOT_AVAILABLE).is_available());
    }

    #[test]
    fn a_modified_line_is_local_or_remote_by_its_node() {
        let (l3, remote_1) = (0x42, 0x402);
        check(load(l3, 16, 3, 0, 0, 0), Some(Level::L3), LOCAL_HITM);
        // Sandy Bridge to Broadwell: no level number.
        let remote = Some(Level::RemoteCache(Distance::OneHop));
        check(load(remote_1, 16, 0, 0, 0, 0), remote, REMOTE_HITM);
        // Skylake and later servers: L3 or any cache, remote.
        let remote = Some(Level::RemoteCache(Distance::Unstated));
        check(load(remote_1, 16, 3, 1, 0, 0), remote, REMOTE_HITM);
        check(load(remote_1, 16, 0xb, 1, 0, 0), remote, REMOTE_HITM);
        // AMD: a near CCX is of this node though its bits say remote; a far one is not.
        let near = Some(Level::PeerCache(Distance::SameNode));
        check(load(remote_1, 16, 0xb, 1, 0, 1), near, LOCAL_HITM);
        let far = Some(Level::RemoteCache(Distance::OtherNode));
        check(load(0x802, 16, 0xb, 1, 0, 2), far, REMOTE_HITM);
    }

    #[test]
    fn another_caches_answer_is_a_peer_hit_and_the_same_level_without_one_is_not() {
        let peer = |remote| Coherence::PeerHit { remote };
        check(load(0x42, 1, 3, 0, 2, 0), Some(Level::L3), peer(false));
        check(load(0x42, 1, 3, 0, 1, 0), Some(Level::L3), peer(false));
        check(load(0x42, 1, 3, 0, 0, 0), Some(Level::L3), Coherence::None);
        let remote = Some(Level::RemoteCache(Distance::Unstated));
        check(load(2, 0, 0xb, 1, 1, 0), remote, peer(true));
        let near = Some(Level::PeerCache(Distance::SameNode));
        check(load(2, 1, 0xb, 1, 0, 1), near, peer(false));
        check(
            load(2, 1, 0xb, 0, 0, 0),
            Some(Level::AnyCache),
            Coherence::None,
        );
        // Memory of another node is no cache of another CPU.
        let ram = Some(Level::RemoteRam(Distance::OtherNode));
        check(load(2, 1, 0xd, 1, 0, 2), ram, Coherence::None);
        check(
            load(0x42 | 0x400, 1, 0, 0, 0, 0),
            Some(Level::L3),
            Coherence::None,
        );
    }

    #[test]
    fn own_caches_and_memory_keep_nobody_waiting_and_modified_or_shared_caches_may() {
        for raw in [0x6a10_0142, 0x6810_0442, 0x1a_4908_1042] {
            assert!(source(raw).waited_for_nobody(), "{raw:#x}");
        }
        let third_level = 0x106_6810_0842;
        let arm_hitm_in_l1 = 0x2_8880_0142;
        let in_flight = 0x118_6810_0242;
        for raw in [
            third_level,
            arm_hitm_in_l1,
            in_flight,
            DataSource::NOT_AVAILABLE,
        ] {
            assert!(!source(raw).waited_for_nobody(), "{raw:#x}");
        }
    }

    #[test]
    fn bits_that_no_kernel_known_here_sets_change_nothing() {
        for raw in [0x6_2980_0842, 0x2_2908_0144, DataSource::NOT_AVAILABLE] {
            let (known, newer) = (source(raw), source(raw | 0x3_ffff << 46));
            assert_eq!(known.level(), newer.level());
            assert_eq!(known.coherence(), newer.coherence());
        }
        check(load(2, 1, 7, 0, 0, 0), Some(Level::L0), Coherence::None);
    }

    #[test]
    fn a_hit_a_miss_and_neither_are_told_apart() {
        assert_eq!(source(load(0x42, 1, 3, 0, 0, 0)).hit(), Some(true));
        assert_eq!(source(load(0x0c, 1, 1, 0, 0, 0)).hit(), Some(false));
        assert_eq!(source(load(1, 1, 1, 0, 0, 0)).hit(), None);
    }
}
