//! One replay: the order of some lines, with who does what on each.

use rustc_hash::FxHashMap;

use super::{
    elsewhere::{LINE, MOST_SITES},
    replayed::There,
};
use crate::{
    access::{Access, LineKey, Place, SpaceId},
    analysis::{
        OrderBounds, OrderedLine, OrderedLines, Site, SiteCounts, groups, small_map::SmallMap,
        split_by_line::split_by_line,
    },
};

/// An order, replayed with lines of 64 bytes in memory of its own.
#[derive(Debug)]
pub(super) struct Counted {
    order: OrderedLines,
    sites: FxHashMap<LineKey, SmallMap<Site, u64>>,
}

impl Counted {
    /// Nothing replayed yet.
    pub(super) fn new() -> Counted {
        let bounds = OrderBounds {
            paired_lines: 0,
            ..OrderBounds::default()
        };
        Counted {
            order: OrderedLines::new(LINE, bounds),
            sites: FxHashMap::default(),
        }
    }

    /// Serves an access at that place.
    pub(super) fn take(&mut self, access: &Access, place: Place, space: SpaceId) {
        self.order.observe(access, place, space, &mut Vec::new());
        if !access.op.touches() {
            return;
        }
        split_by_line(access, place, LINE, &[], |key, piece| {
            let site = Site {
                space,
                ip: access.ip,
                pid: access.pid,
                tid: access.tid,
                offset: piece.offset,
                size: piece.size,
                op: access.op,
                locked: access.locked,
                kernel: access.kernel,
                size_known: access.size != 0,
                within: 0,
            };
            let sites = self.sites.entry(key).or_default();
            if let Some(executions) = sites.slot(site, MOST_SITES) {
                *executions = executions.saturating_add(access.executions());
            }
        });
    }

    /// Who does what on a line.
    pub(super) fn sites(&self, key: LineKey) -> Vec<SiteCounts> {
        let sites = self.sites.get(&key).into_iter().flat_map(SmallMap::iter);
        let counted = |(site, executions): &(Site, u64)| SiteCounts {
            emulated: *executions,
            ..SiteCounts::unseen(*site)
        };
        sites.map(counted).collect()
    }

    /// What each line of several threads costs: number of the memory, where the line begins in it, and the cost.
    pub(super) fn shared(&self) -> impl Iterator<Item = (usize, u64, There)> {
        self.order.shared().filter_map(|line| {
            let Place::Private { space, addr } = line.key().0 else {
                return None;
            };
            Some((space.0 as usize, addr, self.there(line)))
        })
    }

    fn there(&self, line: &OrderedLine) -> There {
        let counts = line.counts(&groups(&self.sites(line.key()), line.uses(), LINE));
        There {
            hand_offs: counts.hand_offs,
            messages: counts.shared_transactions,
        }
    }
}

/// A byte of memory that is the replay's alone, of that number, with lines where they are.
pub(super) fn at(number: u32, position: u64) -> Place {
    Place::Private {
        space: SpaceId(number),
        addr: position,
    }
}
