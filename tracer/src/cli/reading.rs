//! A session that is read to its end, with the progress of it.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::progress::Progress;
use crate::{
    access::LineSize,
    event::Batch,
    number::grouped,
    session::{SessionError, SessionReader},
};

/// Nobody can tell how long it takes before so much of it is read.
const LEAST_SHARE: f64 = 0.01;

/// A reader that draws how far it is.
pub(super) struct Reading {
    reader: SessionReader,
    progress: Progress,
    /// What is done, and with what: `deciding on train`.
    what: String,
    started: Instant,
    accesses: u64,
}

impl Reading {
    /// Opens the session at `path` for `what`, which looks at lines of a size; nothing is drawn with `quiet`.
    pub(super) fn open(
        path: &Path,
        line_size: LineSize,
        what: &str,
        quiet: bool,
    ) -> Result<Reading, SessionError> {
        Ok(Reading {
            reader: SessionReader::open_for(path, line_size)?,
            progress: Progress::new(quiet),
            what: format!("{what} {}", name(path)),
            started: Instant::now(),
            accesses: 0,
        })
    }

    /// As [`SessionReader::next_batch`].
    pub(super) fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, SessionError> {
        let more = self.reader.next_batch(batch);
        self.accesses += batch.accesses.len() as u64;
        if matches!(more, Ok(true)) {
            let share = self.reader.share_read();
            let (what, accesses, took) = (&self.what, self.accesses, self.started.elapsed());
            self.progress.update(|| line(what, accesses, share, took));
        } else {
            self.progress.clear();
        }
        more
    }

    /// The session.
    pub(super) fn session(&self) -> &SessionReader {
        &self.reader
    }

    /// Accesses so far.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Clears what was drawn.
    pub(super) fn clear(&mut self) {
        self.progress.clear();
    }
}

/// What a session is called: its name without its place and its `.coh`.
pub(super) fn name(session: &Path) -> String {
    let stem = session.file_stem().unwrap_or(session.as_os_str());
    stem.to_string_lossy().into_owned()
}

fn line(what: &str, accesses: u64, share: f64, took: Duration) -> String {
    let accesses = grouped(accesses);
    if share < LEAST_SHARE {
        return format!("{what}: {accesses} accesses");
    }
    let left = took.as_secs_f64() * (1.0 - share).max(0.0) / share;
    format!(
        "{what}: {accesses} accesses, {:.0} %, {} left",
        share * 100.0,
        time(left)
    )
}

/// `12 s`, `3 min`, `2 h 5 min`.
pub(super) fn time(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match seconds {
        ..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_as_much_a_share_as_what_was_read() {
        let took = Duration::from_secs(10);
        assert_eq!(
            line("simulating ref", 1_234_567, 0.25, took),
            "simulating ref: 1,234,567 accesses, 25 %, 30 s left"
        );
        assert_eq!(
            line("simulating ref", 12, 0.001, took),
            "simulating ref: 12 accesses"
        );
        assert_eq!(
            line("simulating ref", 12, 1.0, took),
            "simulating ref: 12 accesses, 100 %, 0 s left"
        );
        assert_eq!(
            [time(99.0), time(301.0), time(7500.0)],
            ["99 s", "6 min", "2 h 5 min"]
        );
    }
}
