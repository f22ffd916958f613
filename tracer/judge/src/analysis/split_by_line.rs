//! One access, split where lines end.

use super::line::{Piece, Slice};
use crate::access::{Access, Cost, LineKey, LineSize, Place};

/// Gives `take` each line that an access touches, with the part on it. Its cost goes to the first, unless `costs` has
/// that of each line. Of one that lies somewhere in more bytes than its own, these are what is split. A size of 0 (not known
/// to the decoder) counts as the one byte that is certain.
#[inline]
pub(super) fn split_by_line(
    access: &Access,
    place: Place,
    line_size: LineSize,
    costs: &[Cost<u32>],
    mut take: impl FnMut(LineKey, Piece),
) {
    let mut costs = costs.iter();
    let mut cost = Cost::from(*costs.next().unwrap_or(&access.cost));
    let mut position = place.position();
    let mut remaining = u64::from(access.size.max(access.within.into())).max(1);
    loop {
        let here = place.at(position);
        let offset = here.offset_in_line(line_size);
        let size = remaining.min(line_size.bytes() - u64::from(offset));
        let piece = Piece {
            offset,
            size: size as u8,
            cost,
        };
        take(here.line(line_size), piece);
        cost = costs.next().map_or(Cost(0), |cost| Cost::from(*cost));
        remaining -= size;
        match position.checked_add(size) {
            Some(next) if remaining > 0 && place.reaches(next) => position = next,
            _ => break,
        }
    }
}

/// The slice of a time: 13 years of 100 ms slices; a time beyond is damage and joins the last one.
pub(super) fn slice_of(time_ns: u64, slice_ns: u64) -> Slice {
    Slice::try_from(time_ns / slice_ns).unwrap_or(Slice::MAX)
}
