//! Where addresses were resolved last.

use crate::access::{Pid, Place, SpaceId};

/// What a mapping makes of the addresses in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved {
    pub(super) pid: Pid,
    pub(super) space: SpaceId,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) shared: Option<SharedMapping>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SharedMapping {
    pub(super) dev: u64,
    pub(super) inode: u64,
    pub(super) file_offset: u64,
}

impl Resolved {
    pub(super) fn place(&self, addr: u64) -> (SpaceId, Place) {
        let place = match self.shared {
            Some(SharedMapping {
                dev,
                inode,
                file_offset,
            }) => Place::Shared {
                dev,
                inode,
                offset: (addr - self.start).wrapping_add(file_offset),
            },
            None => Place::Private {
                space: self.space,
                addr,
            },
        };
        (self.space, place)
    }
}

/// Addresses are resolved in the same few mappings again and again: a slot for each process and stretch of memory.
#[derive(Debug, Default)]
pub(super) struct Recent(Vec<Option<Resolved>>);

/// Slots; 56 KiB of them.
const RECENT_SLOTS: usize = 1 << 10;
/// Bytes of a stretch: smaller than most mappings that programs keep their data in.
const STRETCH_SHIFT: u32 = 16;

impl Recent {
    fn slot(pid: Pid, addr: u64) -> usize {
        let mixed = (addr >> STRETCH_SHIFT) ^ u64::from(pid.0).rotate_right(32);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - RECENT_SLOTS.ilog2())) as usize
    }

    pub(super) fn get(&self, pid: Pid, addr: u64) -> Option<&Resolved> {
        let known = self.0.get(Recent::slot(pid, addr))?.as_ref()?;
        (known.pid == pid && addr >= known.start && addr < known.end).then_some(known)
    }

    pub(super) fn put(&mut self, addr: u64, known: Resolved) {
        self.0.resize(RECENT_SLOTS, None);
        self.0[Recent::slot(known.pid, addr)] = Some(known);
    }

    /// Meanings have changed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
