//! Accesses on the way to the ip that may be what the CPU really waited for, the nearest first.

use super::Touch;

/// Suspects kept of one sample.
const MOST: usize = 16;
/// How many instructions before the ip they may be: what retires in one go is less, and a barrier waits for stores of
/// this loop or block.
const FARTHEST: u32 = 64;

/// The suspects of one sample in the making. A walk meets accesses nearly in order of their distance from the ip.
pub(super) struct Suspects {
    /// Distance, and position among the sample's touches.
    found: [(u32, usize); MOST],
    len: usize,
    /// Instructions from the end of the stretch under way to the ip.
    walked: u32,
    /// The farthest one may be so many instructions before the ip.
    end: u32,
}

impl Suspects {
    pub(super) fn new() -> Suspects {
        Suspects {
            found: [(0, 0); MOST],
            len: 0,
            walked: 0,
            end: FARTHEST,
        }
    }

    /// A stretch of so many instructions has been walked back over.
    pub(super) fn walk(&mut self, steps: u32) {
        self.walked = self.walked.saturating_add(steps);
    }

    /// Instructions from the one `before` of the end of the stretch under way to the ip.
    pub(super) fn distance(&self, before: u32) -> u32 {
        self.walked + before
    }

    /// What lies farther than the instruction `before` of the end of the stretch under way is none.
    pub(super) fn cut(&mut self, before: u32) {
        self.end = self.end.min(self.distance(before));
    }

    /// An access of the instruction `before` of the end of the stretch under way. Of more than there is room for, the
    /// farthest goes.
    pub(super) fn note(&mut self, before: u32, touch: usize) {
        let item = (self.distance(before), touch);
        if item.0 > self.end {
            return;
        }
        let at = self.found[..self.len].partition_point(|known| *known <= item);
        if at == MOST {
            return;
        }
        self.len = (self.len + 1).min(MOST);
        self.found[at..self.len].rotate_right(1);
        self.found[at] = item;
    }

    /// Numbers those of the touches that are `wanted`.
    pub(super) fn rank(&self, touches: &mut [Touch], wanted: impl Fn(&Touch) -> bool) {
        let mut rank = 0;
        for (distance, position) in &self.found[..self.len] {
            if let Some(touch) = touches.get_mut(*position)
                && *distance <= self.end
                && wanted(touch)
            {
                rank += 1;
                touch.suspect = rank;
            }
        }
    }
}
