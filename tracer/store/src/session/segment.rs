//! One segment in memory.
//!
//! ```text
//!   bounds     batch 7       batch 8     batch 9       ends of each batch in all rows
//!   accesses   aaaaaaaaa     aaaa        aaaaaaa       ─► accesses/
//!   context    m  t          mm          t             ─► mappings/, tasks/, local_storage/ and memory/, `seq` keeps their order
//!   windows                  w           w             ─► windows/
//!   allocations           h  h                         ─► allocations/
//! ```

use super::{
    error::Damage,
    parts::DecodedAccesses,
    schema::{ACCESSES, ALLOCATIONS, AccessColumns, Placed, Run, Table, WINDOWS},
    tally_record::TallyRecord,
    window_table,
};
use crate::{
    access::Access,
    event::{Allocation, Batch, Context, Tally, Window},
};

/// Numbers of the next access, context event, window and batch of a session being read or written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub access: u64,
    pub context: u64,
    pub window: u64,
    pub allocation: u64,
    pub batch: u64,
    /// All counts of the tallies and windows before it, and the windows' time, added up: while this does not
    /// overflow, no sum of them does.
    pub counted: u64,
}

impl Position {
    /// After the rows of a segment that was read from here.
    pub(super) fn after(self, segment: &Segment) -> Position {
        Position {
            access: self.access + segment.accesses.len() as u64,
            context: self.context + segment.context.len() as u64,
            window: self.window + segment.windows.len() as u64,
            allocation: self.allocation + segment.allocations.len() as u64,
            // Counts without rows are given as a batch, but have no number: the writer numbers those with rows.
            batch: match segment.bounds.last() {
                Some(bound) if segment.rows() > 0 => bound.batch + 1,
                _ => self.batch,
            },
            counted: self.counted.saturating_add(segment.counted().unwrap_or(0)),
        }
    }
}

/// Where a batch ends in a segment's rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bound {
    pub batch: u64,
    pub accesses_end: usize,
    pub context_end: usize,
    pub windows_end: usize,
    pub allocations_end: usize,
}

/// Rows of a stretch of time; those of accesses as they are read, or as [`AccessColumns`] to be written.
#[derive(Debug, Default)]
pub(super) struct Segment<Accesses = Vec<Access>> {
    pub accesses: Accesses,
    pub context: Vec<Context>,
    pub windows: Vec<Window>,
    pub allocations: Vec<Allocation>,
    /// One per batch that has rows, in order.
    pub bounds: Vec<Bound>,
    pub tally: Tally,
}

impl<Accesses> Segment<Accesses> {
    pub(super) fn is_empty(&self) -> bool {
        self.rows() == 0 && self.tally == Tally::default()
    }

    /// Rows of all tables.
    pub(super) fn rows(&self) -> usize {
        self.bounds.last().map_or(0, |all| {
            all.accesses_end + all.context_end + all.windows_end + all.allocations_end
        })
    }

    /// Rows of a table with their places: the numbers from `first` on, and the batches that end where `end` says.
    pub(super) fn placed<R>(
        &self,
        rows: impl Iterator<Item = R>,
        first: u64,
        end: impl Fn(&Bound) -> usize,
    ) -> Vec<Placed<R>> {
        let mut batches = Vec::new();
        for bound in &self.bounds {
            batches.resize(end(bound), bound.batch);
        }
        let places = rows.zip(batches).zip(first..);
        places
            .map(|((row, batch), seq)| Placed { seq, batch, row })
            .collect()
    }
}

impl Segment<AccessColumns> {
    /// Empties it and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.accesses.clear();
        self.context.clear();
        self.windows.clear();
        self.allocations.clear();
        self.bounds.clear();
        self.tally = Tally::default();
    }

    /// Newest time in it.
    pub(super) fn newest_ns(&self) -> Option<u64> {
        let context = self.context.iter().map(|context| context.time_ns);
        let windows = self.windows.iter().map(|window| window.end_ns);
        let allocations = self.allocations.iter().map(|event| event.time_ns);
        let others = context.chain(windows).chain(allocations).max();
        others.max(self.accesses.newest_ns)
    }
}

impl Segment {
    /// Adds to `batch` the rows between two bounds.
    pub(super) fn give(&self, from: Bound, to: Bound, batch: &mut Batch) {
        batch
            .accesses
            .extend_from_slice(&self.accesses[from.accesses_end..to.accesses_end]);
        batch
            .context
            .extend_from_slice(&self.context[from.context_end..to.context_end]);
        batch
            .windows
            .extend_from_slice(&self.windows[from.windows_end..to.windows_end]);
        batch
            .allocations
            .extend_from_slice(&self.allocations[from.allocations_end..to.allocations_end]);
    }

    /// Counts of the tally and of the windows, and the windows' time, added up; `None` when that overflows.
    fn counted(&self) -> Option<u64> {
        let windows = self.windows.iter();
        windows.fold(TallyRecord::from(&self.tally).total(), |sum, window| {
            sum?.checked_add(window_table::total(window)?)
        })
    }
}

/// A segment as its files say, with the numbers that its rows have; 0 where there are none.
#[derive(Debug)]
pub(super) struct Numbered {
    pub segment: Segment,
    first: Position,
}

impl Numbered {
    /// The segment, if its rows are those of the stream from `first` on; else the table that says otherwise.
    pub(super) fn from(self, first: Position) -> Result<Segment, (&'static Table, Damage)> {
        let Numbered {
            segment,
            first: found,
        } = self;
        let numbers = [
            (
                &ACCESSES,
                segment.accesses.len(),
                found.access,
                first.access,
            ),
            (
                &ACCESSES,
                segment.context.len(),
                found.context,
                first.context,
            ),
            (&WINDOWS, segment.windows.len(), found.window, first.window),
            (
                &ALLOCATIONS,
                segment.allocations.len(),
                found.allocation,
                first.allocation,
            ),
        ];
        for (table, rows, found, expected) in numbers {
            if rows > 0 && found != expected {
                return Err((table, Damage::value("seq", 0, found)));
            }
        }
        if segment.rows() > 0 && found.batch < first.batch {
            return Err((&ACCESSES, Damage::value("batch", 0, found.batch)));
        }
        let tally = TallyRecord::from(&segment.tally).total();
        if tally
            .and_then(|tally| tally.checked_add(first.counted))
            .is_none()
        {
            return Err((&ACCESSES, Damage::Meta("its tally overflows")));
        }
        let counted = segment.counted();
        if counted
            .and_then(|counted| counted.checked_add(first.counted))
            .is_none()
        {
            return Err((&WINDOWS, Damage::Meta("its counts overflow")));
        }
        Ok(segment)
    }
}

/// Puts a segment together again and checks that its rows belong together.
pub(super) fn assemble(
    decoded: DecodedAccesses,
    mut placed: Vec<Placed<Context>>,
    (first_window, windows, window_batches): Run<Window>,
    (first_allocation, allocations, allocation_batches): Run<Allocation>,
) -> Result<Numbered, Damage> {
    placed.sort_by_key(|placed| placed.seq);
    let first_context = placed.first().map_or(0, |placed| placed.seq);
    for (row, (placed, expected)) in placed.iter().zip(first_context..).enumerate() {
        if placed.seq != expected {
            return Err(Damage::value("seq", row, placed.seq));
        }
    }
    let context_batches: Vec<u64> = placed.iter().map(|placed| placed.batch).collect();
    let batches = [
        &decoded.batches[..],
        &context_batches,
        &window_batches,
        &allocation_batches,
    ];
    let mut segment = Segment {
        bounds: bounds(batches)?,
        accesses: decoded.accesses,
        context: placed.into_iter().map(|placed| placed.row).collect(),
        windows,
        allocations,
        tally: Tally::try_from(&decoded.whole.tally)?,
    };
    let first = Position {
        access: decoded.first,
        context: first_context,
        window: first_window,
        allocation: first_allocation,
        batch: segment.bounds.first().map_or(0, |bound| bound.batch),
        counted: 0,
    };
    if segment.bounds.is_empty() && !segment.is_empty() {
        // Counts alone are a batch too; it has no number.
        segment.bounds.push(Bound::default());
    }
    Ok(Numbered { segment, first })
}

/// The batches' ends, from the batch number of each row of each table; numbers never decrease.
fn bounds(batches: [&[u64]; 4]) -> Result<Vec<Bound>, Damage> {
    let mut bounds: Vec<Bound> = Vec::new();
    let mut ends = [0; 4];
    loop {
        let next = batches
            .iter()
            .zip(ends)
            .filter_map(|(rows, at)| rows.get(at));
        let Some(batch) = next.min().copied() else {
            return Ok(bounds);
        };
        let least = bounds.last().map_or(0, |bound| bound.batch + 1);
        // The largest is refused so that the number after it exists.
        if batch < least || batch == u64::MAX {
            return Err(Damage::value("batch", ends[0], batch));
        }
        for (rows, end) in batches.iter().zip(&mut ends) {
            *end += rows[*end..].iter().take_while(|n| **n == batch).count();
        }
        let [accesses_end, context_end, windows_end, allocations_end] = ends;
        bounds.push(Bound {
            batch,
            accesses_end,
            context_end,
            windows_end,
            allocations_end,
        });
    }
}
