//! Two threads for a large batch of an emulator: one follows the order and says what each access costs, the other one
//! counts that on the lines, as far behind as a few blocks.
//!
//! ```text
//!   batch ──► spaces, heap, order ──► block of rows with their costs ──► lines
//! ```
//!
//! Each sees all accesses in their order, so what comes out is what one thread would have made of it.

use std::{
    sync::mpsc::{Receiver, Sender, channel, sync_channel},
    thread::{self, Builder},
};

use super::{Lines, Pipeline};
use crate::{
    access::{Access, Basis, Cost, Place, SpaceId},
    analysis::{AnalysisOptions, LineTable},
    event::Batch,
};

/// A thread of its own pays from so many accesses on: they take a millisecond, starting it some 50 µs.
const WORTH_A_THREAD: usize = 1 << 13;
/// Rows of a block: they stay in the second-level cache between the two.
const BLOCK: usize = 1 << 11;
/// Blocks that wait at most.
const WAITING: usize = 4;

/// Whether the batch is one of an emulator, and large.
pub(super) fn pays(batch: &Batch) -> bool {
    let first = batch.accesses.first();
    batch.accesses.len() >= WORTH_A_THREAD
        && first.is_some_and(|access| access.basis == Basis::Emulated)
}

struct Row<'a> {
    access: &'a Access,
    place: Place,
    space: SpaceId,
    /// Where its costs end; they begin where those of the row before end.
    costs_end: usize,
}

#[derive(Default)]
struct Block<'a> {
    rows: Vec<Row<'a>>,
    costs: Vec<Cost<u32>>,
}

impl Pipeline {
    /// Feeds the accesses, context and allocations of a batch by two threads. False, and nothing is fed, where no
    /// thread can be had.
    pub(super) fn feed_by_two_threads(&mut self, batch: &Batch) -> bool {
        let none = Lines::Table(LineTable::new(AnalysisOptions::default()));
        let mut lines = std::mem::replace(&mut self.lines, none);
        let fed = thread::scope(|scope| {
            let (full, blocks) = sync_channel::<Block<'_>>(WAITING);
            let (through, spare) = channel();
            let lines = &mut lines;
            let count = move || observe(lines, &blocks, &through);
            let builder = Builder::new().name("lines".to_owned());
            if builder.spawn_scoped(scope, count).is_err() {
                return false;
            }
            let mut block = Block::default();
            for due in batch.in_order() {
                let Some((access, place, space)) = self.take(due) else {
                    continue;
                };
                block.costs.extend_from_slice(&self.costs);
                block.rows.push(Row {
                    access,
                    place,
                    space,
                    costs_end: block.costs.len(),
                });
                if block.rows.len() >= BLOCK {
                    let next = spare.try_recv().unwrap_or_default();
                    // Nobody takes it only if the other thread panicked, and then the scope does as well.
                    let _ = full.send(std::mem::replace(&mut block, next));
                }
            }
            let _ = full.send(block);
            true
        });
        self.lines = lines;
        fed
    }
}

fn observe<'a>(lines: &mut Lines, blocks: &Receiver<Block<'a>>, through: &Sender<Block<'a>>) {
    for mut block in blocks {
        let mut start = 0;
        for row in &block.rows {
            let costs = &block.costs[start..row.costs_end];
            lines.observe(row.access, row.place, row.space, costs);
            start = row.costs_end;
        }
        block.rows.clear();
        block.costs.clear();
        // Whoever filled them may be through already.
        let _ = through.send(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{access::Op, analysis::emulated_fixture::emulated, finding::Thresholds};

    /// Four threads, some lines of several and some of one, some accesses across two lines.
    fn accesses(count: usize) -> Vec<Access> {
        let access = |n: u64| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let tid = (mixed >> 60) as u32 % 4;
            let (ip, op) = (mixed >> 32, (mixed >> 20) as usize);
            let addr = 0x10_0000 + (mixed >> 40) % 4096 + u64::from(tid) * 2048;
            Access {
                time_ns: n,
                ..emulated(tid, 0x40_1000 + ip % 16, Op::ALL[op % Op::ALL.len()], addr)
            }
        };
        (0..count as u64).map(access).collect()
    }

    fn fed(accesses: &[Access], batch: usize) -> (String, String) {
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        for accesses in accesses.chunks(batch) {
            pipeline.feed(&Batch {
                accesses: accesses.to_vec(),
                ..Batch::default()
            });
        }
        let totals = format!("{:?} {:?}", pipeline.totals(), pipeline.tally);
        (totals, format!("{:?}", pipeline.judge()))
    }

    #[test]
    fn two_threads_judge_what_one_does() {
        let accesses = accesses(3 * WORTH_A_THREAD + 5);
        let (totals, judged) = fed(&accesses, accesses.len());
        assert!(judged.len() > 1000, "{judged}");
        assert_eq!((totals, judged), fed(&accesses, 1000));
    }

    #[test]
    fn small_batches_and_samples_need_no_second_thread() {
        let mut batch = Batch {
            accesses: accesses(WORTH_A_THREAD),
            ..Batch::default()
        };
        assert!(pays(&batch));
        batch.accesses.pop();
        assert!(!pays(&batch));
        batch.accesses = accesses(WORTH_A_THREAD);
        for access in &mut batch.accesses {
            access.basis = Basis::Stalled;
        }
        assert!(!pays(&batch));
    }
}
