//! An observation from its first sample to its last: targets, source, windows, and the loop that serves them.
//!
//! ```text
//!   wait ─► take ─► pass on ─► forget ─► open a window ─► what can wait ─► wait
//!    ▲ samples, hits of a window, the end of a process, a signal, or the time
//! ```

mod ending;
mod error;
mod holds;
mod started;
mod suspects;
mod targets;
mod windows;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

pub use ending::Ending;
pub use error::ObserveError;
pub use holds::HoldPlan;
pub use targets::{Described, Starting, Targets, What};

use crate::{
    access::CostUnit,
    event::Batch,
    machine::{Machine, memory},
    module::{CacheBudget, ModuleStore},
    pipeline::Pipeline,
    source::{
        self, Progress, Source, SourceKind, SourceOptions, heap::HeapTracker, watch::Watcher,
    },
    space::MappedFiles,
    sys::{bpf::Told, events::Events, free_memory, priority::Urgent, stop_signal::StopSignal},
};
use holds::Holds;
use suspects::Suspects;
use windows::Windows;

/// What was taken is passed on so often, whatever it is: short enough for live figures.
const PASSED_ON: Duration = Duration::from_millis(50);
/// Accesses that are passed on at once: few enough that they are still in the processor's cache.
const MANY: usize = 1 << 14;
/// Between two times that freed memory is given back.
const GIVEN_BACK: Duration = Duration::from_secs(30);
/// How soon it is looked whether a thread was read.
const ANSWERED: Duration = Duration::from_millis(5);
/// How long names are looked up after a request to stop: with what else there is to do, a report is out within a second.
const NAMES_AFTER_STOP: Duration = Duration::from_millis(400);

/// What to observe, and how.
pub struct Plan {
    /// The processes to observe.
    pub what: What,
    /// Name of the source; `None`: the best.
    pub source: Option<&'static str>,
    /// How the source samples, watches and follows heaps.
    pub options: SourceOptions,
    /// Memory to watch, as it was named; none: what samples suspect.
    pub watch: Vec<String>,
    /// Share of the targets' time for windows, 0..=1.
    pub watch_share: f64,
    /// Whether to read how fast threads are, and to hold others meanwhile; `None`: not.
    pub hold: Option<HoldPlan>,
    /// When it ends at the latest.
    pub duration: Option<Duration>,
    /// Memory for names; `None`: the standard of the machine.
    pub caches: Option<CacheBudget>,
}

/// Takes what is observed.
pub trait Observer {
    /// Why it cannot go on.
    type Error: From<ObserveError>;

    /// Takes a batch; it may keep it and leave another one's memory. An error ends the observation.
    fn take(&mut self, batch: &mut Batch) -> Result<(), Self::Error>;
    /// What it knows of the lines, which decides what is watched; `None`: nothing is.
    fn pipeline(&mut self) -> Option<&mut Pipeline>;
    /// Takes what the kernel half told of why it did nothing, where it was asked to tell.
    fn told(&mut self, _lines: Vec<Told>) {}
    /// Tells how it goes, after so long.
    fn tell(&mut self, elapsed: Duration);
    /// Some milliseconds for what can wait. No window is open.
    fn rest(&mut self) {}
}

/// An opened observation, ready to run.
pub struct Observation {
    /// The machine it runs on.
    pub machine: Machine,
    /// Files seen so far.
    pub modules: Arc<ModuleStore>,
    /// What is watched.
    pub targets: Targets,
    /// Which source samples.
    pub kind: &'static dyn SourceKind,
    source: Box<dyn Source>,
    /// Why it is not a better one.
    choice: Option<String>,
    windows: Windows,
    holds: Option<Holds>,
    suspects: Suspects,
    frequency_hz: u64,
    duration: Option<Duration>,
    given_back: Instant,
    stop: StopSignal,
}

/// How an observation went.
pub struct Observed {
    /// From the first to the last moment of sampling.
    pub duration: Duration,
    /// What the source and the target had to say.
    pub caveats: Vec<String>,
    /// How it was measured.
    pub remarks: Vec<String>,
}

impl Observation {
    /// Finds the targets and starts the source. Nothing of a started command has run yet.
    pub fn open(plan: Plan) -> Result<Observation, ObserveError> {
        let stop = StopSignal::install().map_err(ObserveError::Wait)?;
        let machine = Machine::probe(Path::new("/"));
        let targets = Targets::open(plan.what)?;
        let windows = Windows::new(plan.watch, plan.watch_share, &targets.target)?;
        let holds = plan.hold.map(Holds::start).transpose();
        let holds = holds.map_err(ObserveError::Hold)?.flatten();
        let caches = plan.caches;
        let caches = caches.unwrap_or_else(|| CacheBudget::standard(memory::bytes()));
        let modules = ModuleStore::new("/".into(), true)
            .within(caches)
            .unchanged_since(SystemTime::now());
        modules.heed(stop.flag(), NAMES_AFTER_STOP);
        let modules = Arc::new(modules);
        let chosen = source::choice::open(
            plan.source,
            &targets.target,
            &plan.options,
            &machine,
            &modules,
        )?;
        Ok(Observation {
            machine,
            modules,
            targets,
            kind: chosen.kind,
            source: chosen.source,
            choice: chosen.caveat,
            windows,
            holds,
            suspects: Suspects::default(),
            frequency_hz: plan.options.frequency_hz,
            duration: plan.duration,
            given_back: Instant::now(),
            stop,
        })
    }

    /// CLOCK_MONOTONIC nanoseconds at which sampling began.
    pub fn started_ns(&self) -> u64 {
        self.source.started_ns()
    }

    /// Whether threads are read, and others held meanwhile.
    pub fn holds(&self) -> bool {
        self.holds.is_some()
    }

    /// Samples per second on each CPU; `None` where nothing is sampled, because every access is seen.
    pub fn frequency_hz(&self) -> Option<u64> {
        let samples = self.kind.cost_unit() != CostUnit::Transactions;
        samples.then_some(self.frequency_hz)
    }

    /// CPUs sampled.
    pub fn cpus(&self) -> u32 {
        self.source.cpus()
    }

    /// Names of the sources at work.
    pub fn sources(&mut self) -> Vec<String> {
        let watches = self.source.watcher().is_some();
        let watch = watches.then(|| source::watch::NAME.to_owned());
        let follows = self.source.heap().is_some();
        let heap = follows.then(|| source::heap::NAME.to_owned());
        std::iter::once(self.kind.name().to_owned())
            .chain(watch)
            .chain(heap)
            .collect()
    }

    /// What opens windows; `None` where what is known decides nothing.
    pub fn watcher(&mut self) -> Option<&mut Watcher> {
        self.source.watcher()
    }

    /// What follows the heap, where it is followed.
    pub fn heap(&self) -> Option<&HeapTracker> {
        self.source.heap()
    }

    /// Forgets what the targets have no more: memory, and files that nobody has mapped.
    fn forget(&mut self, pipeline: Option<&mut Pipeline>) {
        let unmapped = self.source.take_unmapped();
        let mut files = MappedFiles::default();
        let is_due = self.modules.has_many_files() && self.source.mapped_files(&mut files);
        if let Some(pipeline) = pipeline {
            for (pid, gone) in unmapped {
                pipeline.unmapped(pid, &gone);
            }
            if is_due {
                pipeline.spaces.files(&mut files);
            }
        }
        if is_due {
            self.modules.keep_files(&files);
            self.source.keep_files(&files);
        }
        if self.given_back.elapsed() >= GIVEN_BACK {
            self.given_back = Instant::now();
            free_memory::give_back();
        }
    }

    /// Runs until the duration is over, the target has ended, a signal asks to stop, or the observer fails.
    pub fn run<O: Observer>(&mut self, observer: &mut O) -> Result<Observed, O::Error> {
        let start = Instant::now();
        // After the command was started, which shall not have it. Without the right it is as it was.
        let urgent = Urgent::raise().ok();
        let mut failed = self.targets.release().err().map(O::Error::from);
        let stopped_after = match self.serve(observer, start, &mut failed) {
            Ok(after) => after,
            Err(error) => {
                failed = failed.or(Some(error.into()));
                start.elapsed()
            }
        };
        drop(urgent);
        // Nobody is held from here on.
        self.holds = None;
        let mut caveats = self.source.caveats();
        match self.windows.finish() {
            Ok(windows) => caveats.extend(windows),
            Err(error) => failed = failed.or(Some(error.into())),
        }
        caveats.extend(self.targets.finish());
        caveats.extend(self.modules.left_out());
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(Observed {
            duration: stopped_after,
            caveats,
            remarks: self.choice.take().into_iter().collect(),
        })
    }

    /// Opens a watch window or has a thread read, one at a time: each would disturb the other.
    fn look_closer(&mut self, pipeline: &Pipeline) -> Result<(), ObserveError> {
        let is_open = |source: &mut dyn Source| source.watcher().is_some_and(|w| w.is_open());
        if let Some(holds) = &mut self.holds
            && !is_open(self.source.as_mut())
        {
            holds.turn(pipeline, &mut self.suspects);
            if holds.is_reading() {
                return Ok(());
            }
        }
        let source = self.source.as_mut();
        (self.windows).turn(source, pipeline, &self.modules, &mut self.suspects)
    }

    /// The loop. How long it sampled; an error is one after which nothing more can be taken.
    fn serve<O: Observer>(
        &mut self,
        observer: &mut O,
        start: Instant,
        failed: &mut Option<O::Error>,
    ) -> Result<Duration, ObserveError> {
        let processes = self.targets.processes();
        let processes = processes.iter().map(std::os::fd::AsFd::as_fd);
        let mut events = Events::of(self.source.descriptor().into_iter().chain(processes))
            .map_err(ObserveError::Wait)?;
        let mut batch = Batch::default();
        let mut passed_on = start;
        let mut stopped_after = None;
        loop {
            let elapsed = start.elapsed();
            let over = self.duration.is_some_and(|d| elapsed >= d);
            if stopped_after.is_none()
                && (over || failed.is_some() || self.stop.arrived() || self.targets.ended())
            {
                stopped_after = Some(elapsed);
                self.source.stop();
            }
            let taken = self.source.take(&mut batch);
            // What is in hand is passed on whatever comes.
            let ends = !matches!(taken, Ok(Progress::Running));
            let told = self.source.take_told();
            if !told.is_empty() {
                observer.told(told);
            }
            if ends || is_due(&batch, passed_on.elapsed()) {
                if let Some(holds) = &mut self.holds {
                    holds.deliver(&mut batch, ends);
                }
                if failed.is_none() {
                    *failed = observer.take(&mut batch).err();
                }
                batch.clear();
                passed_on = Instant::now();
            }
            if taken? == Progress::End {
                return Ok(stopped_after.unwrap_or_else(|| start.elapsed()));
            }
            // Not before the accesses to it are passed on.
            if batch.is_empty() {
                self.forget(observer.pipeline());
            }
            if stopped_after.is_none() {
                if let Some(pipeline) = observer.pipeline()
                    && let Err(error) = self.look_closer(pipeline)
                {
                    *failed = Some(error.into());
                }
                let watcher = self.source.watcher();
                if !watcher.is_some_and(|watcher| watcher.is_open()) {
                    observer.rest();
                }
            }
            observer.tell(elapsed);
            let most = match self.source.idle() {
                Ok(most) => most,
                Err(error) => {
                    *failed = failed.take().or(Some(ObserveError::from(error).into()));
                    continue;
                }
            };
            if stopped_after.is_some() || most.is_zero() {
                continue;
            }
            let left = self.duration.map(|d| d.saturating_sub(start.elapsed()));
            let due = (!batch.is_empty()).then(|| PASSED_ON.saturating_sub(passed_on.elapsed()));
            let reading = self.holds.as_ref().is_some_and(Holds::is_reading);
            let read = reading.then_some(ANSWERED);
            let sooner = [left, due, read].into_iter().flatten();
            events.wait(sooner.fold(most, Duration::min));
        }
    }
}

/// Whether what was taken is to be passed on. A window is at once: it decides what the next one looks at.
fn is_due(batch: &Batch, waited: Duration) -> bool {
    !batch.is_empty()
        && (waited >= PASSED_ON || batch.accesses.len() >= MANY || !batch.windows.is_empty())
}
