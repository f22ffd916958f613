//! One replay: the order of some lines, with who does what on each.

use super::{elsewhere::LINE, executed::Executed, replayed::There};
use crate::{
    access::{Access, LineKey, Place, SpaceId},
    analysis::{
        OrderBounds, OrderedLine, OrderedLines, SiteCounts, groups, split_by_line::split_by_line,
    },
};

/// An order, replayed with lines of 64 bytes in memory of its own.
#[derive(Debug)]
pub(super) struct Counted {
    order: OrderedLines,
    executed: Executed,
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
            executed: Executed::default(),
        }
    }

    /// Serves an access at that place.
    pub(super) fn take(&mut self, access: &Access, place: Place, space: SpaceId) {
        self.order.observe(access, place, space, &mut Vec::new());
        split_by_line(access, place, LINE, &[], |key, piece| {
            self.executed.count(access, space, key, &piece);
        });
    }

    /// Who does what on a line.
    pub(super) fn sites(&self, key: LineKey) -> Vec<SiteCounts> {
        self.executed.of(key)
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
