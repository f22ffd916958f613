//! Merging the runs: every line once, its accesses in the order in which they were fed.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    error::SpillError,
    file::SpillFile,
    run::{Cursor, Run},
};
use crate::analysis::{SortKey, SortRecord};

/// Gives the accesses of one range of hashes: `take` gets `None` where a line ends.
pub(super) fn merge(
    runs: &[Run],
    range: usize,
    file: Option<&SpillFile>,
    buffer_bytes: usize,
    mut take: impl FnMut(Option<&SortRecord>),
) -> Result<(), SpillError> {
    let cursors = runs.iter().map(|run| run.cursor(range, file, buffer_bytes));
    let mut cursors: Vec<Cursor<'_>> = cursors.collect::<Result<_, _>>()?;
    // Of one line, the run that was fed first comes first.
    let place = |run: usize, cursor: &Cursor| Some(Reverse((cursor.line()?, run)));
    let mut next: BinaryHeap<Reverse<(SortKey, usize)>> = (cursors.iter().enumerate())
        .filter_map(|(run, cursor)| place(run, cursor))
        .collect();
    let mut current = None;
    while let Some(Reverse((line, run))) = next.pop() {
        if current.is_some_and(|current| current != line) {
            take(None);
        }
        current = Some(line);
        let cursor = &mut cursors[run];
        cursor.take_line(|access| take(Some(access)))?;
        next.extend(place(run, cursor));
    }
    if current.is_some() {
        take(None);
    }
    Ok(())
}
