//! Shares of the time: in which of two functions timer samples find the program.

use std::time::Duration;

use crate::{
    NotCounted,
    asked::Asked,
    events::Event,
    observed::{Observer, follow, options},
    source::timer,
    sys::priority::Urgent,
};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_mins(2);
/// Between two looks at the rings.
const LOOK: Duration = Duration::from_millis(20);

/// Samples of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples {
    /// In the function whose share is predicted.
    pub(crate) inside: u64,
    /// In it or in the other.
    pub(crate) all: u64,
}

/// Samples programs.
pub(crate) struct Timed(pub(crate) Observer);

impl Timed {
    /// One run.
    pub(crate) fn sample(
        &self,
        asked: &Asked,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Samples, NotCounted> {
        let (less, more) = (asked.code("less")?, asked.code("more")?);
        let mut program = asked.start(event.letter, n)?;
        let mut source = self.0.open(&timer::KIND, program.pid(), &options())?;
        // As in an observation. Without the right it is as it was.
        let _urgent = Urgent::raise().ok();
        program.go()?;
        let (mut samples, mut last) = (Samples::default(), None);
        let is_over = || program.is_over_within(LOOK);
        follow(&mut *source, MOST, stopped, is_over, |batch| {
            // The accesses of a sample have its time. Each is by code around where it found the program: of one function.
            for access in &batch.accesses {
                let inside = less.contains(&access.ip);
                let is_new = last != Some(access.time_ns);
                if is_new && (inside || more.contains(&access.ip)) {
                    last = Some(access.time_ns);
                    samples.inside += u64::from(inside);
                    samples.all += 1;
                }
            }
            Ok(())
        })?;
        program.end()?;
        Ok(samples)
    }
}
