//! Samples and executions share a count on disk; the unit of the session tells which they are.

use super::{Meta, SessionWriter, batch, joined, read};
use crate::{
    access::CostUnit,
    event::{Batch, Tally},
    session::WriterOptions,
};

/// What is read of a session in this unit whose only batch counts this.
fn read_back(unit: CostUnit, tally: Tally) -> Batch {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("counts.coh");
    let meta = Meta {
        cost_unit: unit,
        ..Meta::new()
    };
    let options = WriterOptions::default();
    let mut writer = SessionWriter::create(&path, meta.clone(), &options).expect("a new session");
    let batch = Batch { tally, ..batch(1) };
    writer.append(&batch).expect("room for a batch");
    writer.finish(meta).expect("room for the rest");
    let (back, _) = read(&path).expect("it reads");
    let expected = joined(&[batch]);
    assert_eq!(back, expected);
    back
}

#[test]
fn executions_come_back_as_executions() {
    let tally = Tally {
        produced: 12,
        executions: 12,
        attributed: 12,
        ..Tally::default()
    };
    let back = read_back(CostUnit::Transactions, tally).tally;
    assert_eq!((back.samples, back.executions, back.counted()), (0, 12, 12));
}

#[test]
fn samples_come_back_as_samples() {
    for unit in [CostUnit::SampledTime, CostUnit::LatencyCycles] {
        let tally = Tally {
            produced: 12,
            samples: 12,
            attributed: 12,
            ..Tally::default()
        };
        let back = read_back(unit, tally).tally;
        assert_eq!((back.samples, back.executions, back.counted()), (12, 0, 12));
    }
}
