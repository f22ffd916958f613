//! What the library is fed with: the made-up stream, and a recorded one where there is one.

use std::path::Path;

use cohtrace::{event::Batch, session::SessionReader};

use crate::{emulated, stream};

/// A stream of batches, all in memory.
pub(crate) struct Input {
    /// What to call it in a table.
    pub name: &'static str,
    /// In order.
    pub batches: Vec<Batch>,
    /// Accesses in all of them.
    pub accesses: u64,
    /// Samples in all of them.
    pub samples: u64,
}

impl Input {
    /// The made-up stream with at least that many accesses.
    pub(crate) fn made_up(accesses: u64) -> Input {
        Input::new("made up", stream::batches(accesses))
    }

    /// The made-up stream of an emulated program with at least that many rows.
    pub(crate) fn emulated(rows: u64) -> Input {
        Input::new("emulated", emulated::batches(rows))
    }

    /// Everything in a session.
    pub(crate) fn recorded(session: &Path) -> anyhow::Result<Input> {
        let mut reader = SessionReader::open(session)?;
        let mut batches = Vec::new();
        let mut batch = Batch::default();
        while reader.next_batch(&mut batch)? {
            batches.push(std::mem::take(&mut batch));
        }
        Ok(Input::new("recorded", batches))
    }

    fn new(name: &'static str, batches: Vec<Batch>) -> Input {
        Input {
            name,
            accesses: batches.iter().map(|b| b.accesses.len() as u64).sum(),
            samples: batches.iter().map(|b| b.tally.counted()).sum(),
            batches,
        }
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let Input {
            name,
            accesses,
            samples,
            batches,
        } = self;
        format!(
            "{name}: {accesses} accesses of {samples} samples in {} batches",
            batches.len()
        )
    }
}
