//! Recordings made by hand, whose content is known.

mod damage;
mod layouts;
mod side_band;
mod sizes;
mod streams;

use std::io::Cursor;

use super::{
    Description, PerfData, PerfDataError,
    recording::{Recording, TestEvent, TestSample},
};
use crate::event::{Batch, Context};

/// All that a recording gives.
#[derive(Debug, PartialEq)]
struct Read {
    all: Batch,
    description: Description,
}

fn read(bytes: &[u8]) -> Result<Read, PerfDataError> {
    let mut file = PerfData::open(Cursor::new(bytes))?;
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    let mut newest = 0;
    while file.next_batch(&mut batch)? {
        let times = |batch: &Batch| -> Vec<u64> {
            let accesses = batch.accesses.iter().map(|access| access.time_ns);
            let context = batch
                .context
                .iter()
                .map(|context: &Context| context.time_ns);
            accesses.chain(context).collect()
        };
        assert!(
            times(&batch).iter().all(|time| *time >= newest),
            "batches are in order"
        );
        newest = times(&batch).into_iter().max().unwrap_or(newest);
        assert!(batch.accesses.is_sorted_by_key(|access| access.time_ns));
        assert!(batch.context.is_sorted_by_key(|context| context.time_ns));
        all.accesses.append(&mut batch.accesses);
        all.context.append(&mut batch.context);
        all.tally.add(&batch.tally);
        batch.clear();
    }
    let tally = &all.tally;
    assert_eq!(
        tally.produced,
        tally.samples.saturating_add(tally.lost_total())
    );
    assert_eq!(
        tally.samples,
        tally.attributed + tally.unresolved.values().sum::<u64>()
    );
    assert_eq!(tally.attributed, all.accesses.len() as u64);
    Ok(Read {
        all,
        description: file.description(),
    })
}

/// Whether a caveat has these words.
fn says(read: &Read, words: &str) -> bool {
    read.description
        .caveats
        .iter()
        .any(|caveat| caveat.contains(words))
}
