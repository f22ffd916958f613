//! Shares of the time: in which of two functions timer samples find the program.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    NotCounted,
    asked::Asked,
    emulated::options,
    event::Batch,
    events::Event,
    machine::Machine,
    module::ModuleStore,
    source::{Progress, SourceKind as _, Target, timer},
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
pub(crate) struct Timed {
    machine: Machine,
    modules: Arc<ModuleStore>,
}

impl Timed {
    pub(crate) fn new() -> Timed {
        Timed {
            machine: Machine::probe("/".as_ref()),
            modules: Arc::new(ModuleStore::new("/".into(), true)),
        }
    }

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
        let target = Target::Trees(vec![program.pid()]);
        let modules = self.modules.clone();
        let mut source = timer::KIND.open(&target, &options(), &self.machine, modules)?;
        // As in an observation. Without the right it is as it was.
        let _urgent = Urgent::raise().ok();
        program.go()?;
        let (started, mut batch) = (Instant::now(), Batch::default());
        let (mut samples, mut last, mut is_over) = (Samples::default(), None, false);
        loop {
            if !is_over && program.speaks_within(LOOK)? {
                program.hear(1)?;
                source.stop();
                is_over = true;
            }
            let progress = source.take(&mut batch)?;
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
            batch.clear();
            if progress == Progress::End {
                break;
            }
            if stopped() {
                return Err(NotCounted::Stopped);
            }
            if started.elapsed() > MOST {
                let seconds = MOST.as_secs();
                return Err(NotCounted::TooLong { seconds });
            }
        }
        program.end()?;
        Ok(samples)
    }
}
