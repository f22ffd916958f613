//! A source of the tool while a program is observed, from its start to its end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    NotCounted,
    access::Pid,
    event::Batch,
    machine::Machine,
    module::ModuleStore,
    source::{MemoryOptions, Progress, Source, SourceKind, SourceOptions, Target, Watching},
};

/// What sources are opened with.
#[derive(Clone)]
pub(crate) struct Observer {
    machine: Arc<Machine>,
    modules: Arc<ModuleStore>,
}

impl Observer {
    pub(crate) fn new() -> Observer {
        Observer {
            machine: Arc::new(Machine::probe("/".as_ref())),
            modules: Arc::new(ModuleStore::new("/".into(), true)),
        }
    }

    /// Observes a process and what it starts.
    pub(crate) fn open(
        &self,
        kind: &dyn SourceKind,
        pid: Pid,
        options: &SourceOptions,
    ) -> Result<Box<dyn Source>, NotCounted> {
        let target = Target::Trees(vec![pid]);
        let modules = self.modules.clone();
        Ok(kind.open(&target, options, &self.machine, modules)?)
    }

    /// The machine that it is on.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// Nothing in particular.
pub(crate) fn options() -> SourceOptions {
    SourceOptions {
        frequency_hz: 1000,
        ring_bytes: 512 * 1024,
        watch: Watching::Off,
        slots: 0,
        heap: None,
        memory: MemoryOptions::default(),
        emulator: None,
        tells: false,
    }
}

/// Passes on what a source gives until it has ended, which it is asked to when `is_over` says that the program is. A run that
/// takes more than `most` hangs.
pub(crate) fn follow(
    source: &mut dyn Source,
    most: Duration,
    stopped: &dyn Fn() -> bool,
    mut is_over: impl FnMut() -> Result<bool, NotCounted>,
    mut take: impl FnMut(&Batch) -> Result<(), NotCounted>,
) -> Result<(), NotCounted> {
    let (started, mut batch) = (Instant::now(), Batch::default());
    let mut was_over = false;
    loop {
        if !was_over && is_over()? {
            source.stop();
            was_over = true;
        }
        let progress = source.take(&mut batch)?;
        take(&batch)?;
        batch.clear();
        if progress == Progress::End {
            return Ok(());
        }
        if stopped() {
            return Err(NotCounted::Stopped);
        }
        if started.elapsed() > most {
            let seconds = most.as_secs();
            return Err(NotCounted::TooLong { seconds });
        }
        if source.descriptor().is_none() {
            // It waits itself.
            source.idle()?;
        }
    }
}
