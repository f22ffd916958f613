//! What was said that a change gains, beside what it gained: how fast the same words grow before and after.

use serde::Serialize;

use crate::{
    finding::Grade,
    report::{
        model::{FindingId, Report, WordRate},
        named,
    },
};

/// A real gain that differs from the predicted one by less than this part of it is what was said.
const WITHIN: f64 = 0.1;

/// A thread whose word was read in both sessions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GainChange {
    /// The finding before that the gain was of.
    pub finding: FindingId,
    /// The word, as the report names it.
    pub word: String,
    /// The thread's name.
    pub comm: Option<String>,
    /// What the prediction was made from.
    #[serde(serialize_with = "named::grade")]
    pub grade: Grade,
    /// How many times as fast it was said to become, most likely.
    pub predicted: f64,
    /// At least.
    pub predicted_low: f64,
    /// At most.
    pub predicted_high: f64,
    /// How many times as fast it became: growth of the word per run time of its thread, after by before.
    pub real: f64,
    /// Whether that is what was said, within a tenth or within what was said at least and at most.
    pub is_as_predicted: bool,
}

/// Of every thread whose gain was predicted before and whose word is known after, in the order of the findings.
pub(super) fn changes(before: &Report, after: &Report) -> Vec<GainChange> {
    let gains = before
        .findings
        .iter()
        .filter_map(|finding| Some((finding.id, finding.gain.as_ref()?)));
    let threads = gains.flat_map(|(id, gain)| {
        gain.per_thread
            .iter()
            .map(move |thread| (id, gain.grade, thread))
    });
    let changes = threads.filter_map(|(finding, grade, thread)| {
        let word = thread.word.as_ref()?;
        // The one of a thread of the same name, or the only one.
        let same = |rate: &&WordRate| rate.word.as_ref() == Some(word);
        let same: Vec<&WordRate> = after.rates.iter().filter(same).collect();
        let now = match same.as_slice() {
            [one] => one,
            several => several.iter().find(|rate| rate.comm == thread.comm)?,
        };
        let real = now.per_s / thread.beside_per_s;
        let is_near = (real / thread.times - 1.0).abs() <= WITHIN;
        real.is_finite().then(|| GainChange {
            finding,
            word: word.clone(),
            comm: thread.comm.clone(),
            grade,
            predicted: thread.times,
            predicted_low: thread.low,
            predicted_high: thread.high,
            real,
            is_as_predicted: is_near || (thread.low..=thread.high).contains(&real),
        })
    });
    changes.collect()
}
