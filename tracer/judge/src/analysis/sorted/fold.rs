//! From the stream to accesses of lines, and from those of one line to what it shows.

use super::{Objects, SortRecord};
use crate::{
    access::{Access, Cost, LineSize, Place, SpaceId},
    analysis::{
        AnalysisOptions, Line,
        site::SiteKey,
        split_by_line::{slice_of, split_by_line},
    },
};

/// How lines are cut and folded; the same as in a [`LineTable`](crate::analysis::LineTable) of these options, which
/// would have all the room it wants.
#[derive(Clone, Copy, Debug)]
pub struct LineFold {
    line_size: LineSize,
    slice_ns: u64,
}

impl LineFold {
    /// By these options; the bounds of a table are none here.
    pub fn new(options: &AnalysisOptions) -> LineFold {
        LineFold {
            line_size: options.line_size,
            slice_ns: options.slice_ns(),
        }
    }

    /// Line size that lines are told apart by.
    pub fn line_size(&self) -> LineSize {
        self.line_size
    }

    /// Gives `take` a part for each line that the access touches. `costs` has the cost on each, where that is known.
    pub fn split(
        &self,
        access: &Access,
        place: Place,
        space: SpaceId,
        costs: &[Cost<u32>],
        objects: &mut Objects,
        mut take: impl FnMut(SortRecord),
    ) {
        let line_size = self.line_size;
        split_by_line(access, place, line_size, costs, |key, piece| {
            take(SortRecord::new(
                access, key, piece, space, line_size, objects,
            ));
        });
    }

    /// A line whose first access this is; it is not counted yet.
    pub fn start(&self, first: &SortRecord) -> Line {
        Line::new(slice_of(first.time_ns, self.slice_ns))
    }

    /// Counts the line's next access.
    pub fn observe(&self, line: &mut Line, next: &SortRecord) {
        let access = next.access(self.line_size);
        let piece = next.piece();
        let site = SiteKey::new(&access, next.space(), piece.offset, piece.size);
        let slice = slice_of(next.time_ns, self.slice_ns);
        line.observe(&access, piece, site, slice, self.line_size);
    }
}
