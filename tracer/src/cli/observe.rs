//! The loop of `attach` and `record`: from the first sample to the last.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;

use super::{
    args::{SamplingArgs, TargetArgs, WatchArgs},
    heap_options::HeapArgs,
    progress::Progress,
    rights,
    signals::StopSignal,
    source_options::Asked,
    targets::Targets,
    watching::Windows,
};
use crate::{
    access::CostUnit,
    event::Batch,
    machine::{Machine, memory},
    module::{CacheBudget, ModuleStore},
    pipeline::Pipeline,
    report::{HeapFacts, WatchFacts},
    source::{self, Source, SourceKind, SourceOptions},
    space::MappedFiles,
    sys::{free_memory, priority::Urgent},
};

/// Between two polls: short enough for live figures, long enough to cost nothing.
const POLL: Duration = Duration::from_millis(50);
/// The same while windows are opened and closed.
const WATCHING_POLL: Duration = Duration::from_millis(10);

/// Between two times that freed memory is given back.
const GIVEN_BACK: Duration = Duration::from_secs(30);

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
    heap: HeapArgs,
    frequency_hz: u64,
    duration: Option<Duration>,
    given_back: Instant,
    stop: StopSignal,
    quiet: bool,
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
    pub fn open(
        target: &TargetArgs,
        sampling: &SamplingArgs,
        watch: &WatchArgs,
        heap: &HeapArgs,
        output_to_stderr: bool,
    ) -> Result<Observation> {
        let stop = StopSignal::install()?;
        let machine = Machine::probe(Path::new("/"));
        let emulator = sampling.source.emulator(&Asked {
            target,
            frequency: sampling.asked_frequency.is_some(),
            watch,
            heap,
        })?;
        if emulator.is_some() {
            rights::emulate()?;
        }
        let command = emulator.as_ref().map(|emulator| emulator.command());
        let targets = Targets::open(target, command, output_to_stderr)?;
        let windows = Windows::new(watch, &targets.target)?;
        let caches = sampling.memory.map(CacheBudget);
        let caches = caches.unwrap_or_else(|| CacheBudget::standard(memory::bytes()));
        let modules = ModuleStore::new("/".into(), true)
            .within(caches)
            .unchanged_since(SystemTime::now());
        let modules = Arc::new(modules);
        let options = SourceOptions {
            frequency_hz: sampling.frequency(),
            ring_bytes: sampling.ring_kib * 1024,
            watch: windows.watching(),
            slots: watch.slots as usize,
            heap: heap.options(target),
            memory: sampling.source.memory(),
            emulator,
        };
        let name = sampling.source.name();
        let chosen = source::choice::open(name, &targets.target, &options, &machine, &modules)?;
        rights::observe()?;
        Ok(Observation {
            machine,
            modules,
            targets,
            kind: chosen.kind,
            source: chosen.source,
            choice: chosen.caveat,
            windows,
            heap: heap.clone(),
            frequency_hz: sampling.frequency(),
            duration: sampling.duration.map(Duration::from_secs_f64),
            given_back: Instant::now(),
            stop,
            quiet: sampling.quiet,
        })
    }

    /// CLOCK_MONOTONIC nanoseconds at which sampling began.
    pub fn started_ns(&self) -> u64 {
        self.source.started_ns()
    }

    /// Samples per second on each CPU; `None` where nothing is sampled, because every access is seen.
    pub fn frequency_hz(&self) -> Option<u64> {
        let samples = self.kind.cost_unit() != CostUnit::Transactions;
        samples.then_some(self.frequency_hz)
    }

    /// Whether what is known so far decides what is looked at next.
    pub fn watches(&mut self) -> bool {
        self.source.watcher().is_some()
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

    /// What watching costs and may cost; `None` when nothing is watched.
    pub fn watch_facts(&mut self) -> Option<WatchFacts> {
        let watcher = self.source.watcher()?;
        Some(self.windows.facts(watcher))
    }

    /// What following the heap costs; `None` when it is not followed.
    pub fn heap_facts(&self) -> Option<HeapFacts> {
        let tracker = self.source.heap()?;
        Some(self.heap.facts(tracker))
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

    /// Runs until the duration is over, the target has ended, or a signal asks to stop; every batch goes
    /// to `take`, which may keep it and leave another one's memory, and `line` makes the progress line. What `pipeline` knows of the lines decides what is
    /// watched. An error of `take` ends the run as well.
    pub fn run<T>(
        &mut self,
        state: &mut T,
        mut take: impl FnMut(&mut T, &mut Batch) -> Result<()>,
        mut pipeline: impl FnMut(&mut T) -> Option<&mut Pipeline>,
        mut line: impl FnMut(&T, Duration) -> String,
    ) -> Result<Observed> {
        let mut progress = Progress::new(self.quiet);
        let mut batch = Batch::default();
        let start = Instant::now();
        // After the command was started, which shall not have it. Without the right it is as it was.
        let urgent = Urgent::raise().ok();
        let released = self.targets.release();
        let mut failed = released.err();
        let mut stopped_after = None;
        // The heap's ring takes some 7,000 allocations.
        let idle = if self.source.heap().is_some() {
            WATCHING_POLL
        } else {
            POLL
        };
        let mut poll = idle;
        loop {
            let elapsed = start.elapsed();
            let over = self.duration.is_some_and(|d| elapsed >= d);
            if stopped_after.is_none()
                && (over || failed.is_some() || self.stop.arrived() || self.targets.ended())
            {
                stopped_after = Some(elapsed);
                self.source.stop();
            }
            let wait = self
                .duration
                .map_or(poll, |d| d.saturating_sub(elapsed).min(poll));
            batch.clear();
            let polled = match self.source.poll(&mut batch, wait) {
                Ok(progress) => progress,
                Err(error) => {
                    failed = Some(error.into());
                    break;
                }
            };
            if failed.is_none()
                && let Err(error) = take(state, &mut batch)
            {
                failed = Some(error);
            }
            if polled == source::Progress::End {
                break;
            }
            self.forget(pipeline(state));
            poll = idle;
            if stopped_after.is_none()
                && let Some(pipeline) = pipeline(state)
            {
                match (self.windows).turn(self.source.as_mut(), pipeline, &self.modules) {
                    Ok(true) => poll = WATCHING_POLL,
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            }
            progress.update(|| line(state, elapsed));
        }
        drop(urgent);
        progress.clear();
        let mut caveats = self.source.caveats();
        match self.windows.finish() {
            Ok(windows) => caveats.extend(windows),
            Err(error) => failed = failed.or(Some(error)),
        }
        caveats.extend(self.targets.finish());
        caveats.extend(self.modules.left_out());
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(Observed {
            duration: stopped_after.unwrap_or_else(|| start.elapsed()),
            caveats,
            remarks: self.choice.take().into_iter().collect(),
        })
    }
}
