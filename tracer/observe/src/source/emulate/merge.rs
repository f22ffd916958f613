//! Puts what the lanes sealed into one order of time; pure.
//!
//! A row may leave when no lane can still come with an older one:
//!
//! ```text
//!   lane 0   r r   r  r │ r          sealed chunks, all known        its next row decides
//!   lane 1      r r  r              ┊ open since here               nothing before ┊ is missing
//!   lane 2                      (quiet)                              nothing before now is missing
//!            ───────────────────────┊──────► time
//!               these leave         ┊ limit
//! ```

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// One access with its repeats, as it was in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Time stamp counter.
    pub tsc: u64,
    /// Address, size and direction.
    pub place: u64,
    /// Instruction id.
    pub instruction: u32,
    /// Further executions.
    pub repeats: u32,
}

/// The rows of a chunk.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    /// Whose, in the order in which processes were found.
    pub process: usize,
    /// Thread.
    pub tid: u32,
    /// Its number in order of appearance.
    pub processor: u32,
    /// In order of time.
    pub rows: Vec<Row>,
}

#[derive(Debug, Default)]
struct Queue {
    chunks: VecDeque<Sealed>,
    /// Rows of the first chunk that have left.
    gone: usize,
}

impl Queue {
    fn first(&self) -> Option<u64> {
        let chunk = self.chunks.front()?;
        chunk.rows.get(self.gone).map(|row| row.tsc)
    }
}

/// Rows that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Merge {
    lanes: Vec<Queue>,
    /// Where in `lanes` each lane is that had a chunk.
    places: FxHashMap<usize, usize>,
    waiting: usize,
    /// The newest row that has left, or the limit up to which all have.
    newest: u64,
    /// Rows that came when newer ones had left.
    late: u64,
    /// Memory of chunks that are through.
    spare: Vec<Vec<Row>>,
}

/// Chunks' memory that is kept for the next ones.
const MOST_SPARE: usize = 64;

impl Merge {
    /// Takes a lane's next chunk.
    pub(super) fn add(&mut self, lane: usize, chunk: Sealed) {
        if chunk.rows.is_empty() {
            return;
        }
        let next = self.lanes.len();
        let place = *self.places.entry(lane).or_insert(next);
        if place == next {
            self.lanes.push(Queue::default());
        }
        self.waiting += chunk.rows.len();
        self.lanes[place].chunks.push_back(chunk);
    }

    /// Room for a chunk's rows.
    pub(super) fn spare(&mut self) -> Vec<Row> {
        self.spare.pop().unwrap_or_default()
    }

    /// Rows that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether rows of the lane wait.
    pub(super) fn has(&self, lane: usize) -> bool {
        let queue = self.places.get(&lane).and_then(|at| self.lanes.get(*at));
        queue.is_some_and(|queue| queue.first().is_some())
    }

    /// Whether rows of the process wait.
    pub(super) fn holds(&self, process: usize) -> bool {
        let mut chunks = self.lanes.iter().flat_map(|queue| &queue.chunks);
        chunks.any(|chunk| chunk.process == process)
    }

    /// Nothing that leaves from here on is older: time of the newest row that has left, or the limit up to which all have.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Rows that came when newer ones had left. They left with the time of those.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// Passes on rows up to and with `limit`, at most about `most`, in order. A row's time is never before that of
    /// the row before it. Returns whether all up to the limit have left.
    pub(super) fn pass(
        &mut self,
        limit: u64,
        most: usize,
        mut take: impl FnMut(&Sealed, Row),
    ) -> bool {
        let mut passed = 0;
        while passed < most {
            let Some((lane, until)) = self.turn(limit) else {
                // Whatever comes with an older time from here on is late.
                self.newest = self.newest.max(if limit == u64::MAX { 0 } else { limit });
                return true;
            };
            let queue = &mut self.lanes[lane];
            let Some(chunk) = queue.chunks.front() else {
                return true;
            };
            let rows = &chunk.rows[queue.gone..];
            let rows = &rows[..rows.len().min(most - passed)];
            let n = match rows.last() {
                Some(last) if last.tsc <= until => rows.len(),
                _ => rows.iter().take_while(|row| row.tsc <= until).count(),
            };
            for row in &rows[..n] {
                self.late += u64::from(row.tsc < self.newest);
                self.newest = self.newest.max(row.tsc);
                take(
                    chunk,
                    Row {
                        tsc: self.newest,
                        ..*row
                    },
                );
            }
            passed += n;
            queue.gone += n;
            self.waiting -= n;
            if queue.gone == chunk.rows.len()
                && let Some(chunk) = queue.chunks.pop_front()
            {
                queue.gone = 0;
                if self.spare.len() < MOST_SPARE {
                    let mut rows = chunk.rows;
                    rows.clear();
                    self.spare.push(rows);
                }
            }
        }
        false
    }

    /// The lane with the oldest row, and the time until which it stays the oldest.
    fn turn(&self, limit: u64) -> Option<(usize, u64)> {
        let mut oldest: Option<(u64, usize)> = None;
        let mut next = u64::MAX;
        for (lane, queue) in self.lanes.iter().enumerate() {
            let Some(first) = queue.first() else { continue };
            match oldest {
                Some((so_far, _)) if so_far <= first => next = next.min(first),
                Some((so_far, _)) => {
                    next = next.min(so_far);
                    oldest = Some((first, lane));
                }
                None => oldest = Some((first, lane)),
            }
        }
        let (first, lane) = oldest?;
        (first <= limit).then_some((lane, limit.min(next)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(processor: u32, times: &[u64]) -> Sealed {
        let row = |tsc: &u64| Row {
            tsc: *tsc,
            place: 0,
            instruction: processor,
            repeats: 0,
        };
        Sealed {
            process: 0,
            tid: processor,
            processor,
            rows: times.iter().map(row).collect(),
        }
    }

    fn passed(merge: &mut Merge, limit: u64) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        assert!(merge.pass(limit, usize::MAX, |chunk, row| {
            out.push((row.tsc, chunk.processor));
        }));
        out
    }

    #[test]
    fn lanes_that_come_out_of_order_leave_in_order() {
        let mut merge = Merge::default();
        merge.add(1, chunk(1, &[20, 40]));
        merge.add(0, chunk(0, &[10, 30]));
        merge.add(0, chunk(0, &[35, 50]));
        let order = [(10, 0), (20, 1), (30, 0), (35, 0), (40, 1), (50, 0)];
        assert_eq!(passed(&mut merge, 50), order);
        assert_eq!((merge.waiting(), merge.late()), (0, 0));
    }

    #[test]
    fn nothing_leaves_beyond_the_limit() {
        let mut merge = Merge::default();
        merge.add(0, chunk(0, &[10, 30]));
        merge.add(1, chunk(1, &[20]));
        assert_eq!(passed(&mut merge, 20), [(10, 0), (20, 1)]);
        assert!(merge.has(0) && !merge.has(1));
        merge.add(1, chunk(1, &[25]));
        assert_eq!(passed(&mut merge, u64::MAX), [(25, 1), (30, 0)]);
    }

    #[test]
    fn what_comes_too_late_gets_the_time_of_the_row_before_and_is_counted() {
        let mut merge = Merge::default();
        merge.add(0, chunk(0, &[10, 30]));
        assert_eq!(passed(&mut merge, 30).len(), 2);
        merge.add(1, chunk(1, &[20, 25, 40]));
        assert_eq!(passed(&mut merge, 50), [(30, 1), (30, 1), (40, 1)]);
        assert_eq!(merge.late(), 2);
    }

    #[test]
    fn a_bound_on_rows_leaves_the_rest_for_later() {
        let mut merge = Merge::default();
        merge.add(0, chunk(0, &[1, 2, 3]));
        let mut n = 0;
        assert!(!merge.pass(9, 2, |_, _| n += 1));
        assert_eq!((n, merge.waiting()), (2, 1));
    }

    proptest! {
        #[test]
        fn every_row_leaves_once_and_in_order(
            lanes in prop::collection::vec(prop::collection::vec(0_u64..100, 0..40), 1..6),
            size in 1_usize..9,
            limits in prop::collection::vec(0_u64..100, 0..4),
        ) {
            let mut merge = Merge::default();
            let mut all = Vec::new();
            for (lane, mut times) in lanes.into_iter().enumerate() {
                times.sort_unstable();
                for part in times.chunks(size) {
                    merge.add(lane, chunk(lane as u32, part));
                }
                all.extend(times);
            }
            all.sort_unstable();
            let mut limits = limits;
            limits.sort_unstable();
            limits.push(u64::MAX);
            let mut out = Vec::new();
            for limit in limits {
                let before = out.len();
                out.extend(passed(&mut merge, limit).into_iter().map(|(time, _)| time));
                prop_assert!(out[before..].iter().all(|time| *time <= limit));
            }
            prop_assert_eq!(out, all);
            prop_assert_eq!(merge.late(), 0);
        }
    }
}
