//! Counts of a watch window: every access of a word, by data breakpoints.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    NotCounted,
    access::{Basis, Place, SpaceId},
    asked::Asked,
    emulated::options,
    event::{Batch, WatchedWord, WindowEnd},
    events::Event,
    homes::Homes,
    machine::Machine,
    module::ModuleStore,
    run::Counted,
    source::{
        Progress, SourceKind as _, SourceOptions, Target, Watching, timer,
        watch::{Limits, Subject},
    },
    sys::priority::Urgent,
};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_mins(2);
/// Between two looks at the rings: they hold some thousand hits.
const LOOK: Duration = Duration::from_millis(1);

/// Watches programs.
pub(crate) struct Windows {
    machine: Machine,
    modules: Arc<ModuleStore>,
}

impl Windows {
    pub(crate) fn new() -> Windows {
        Windows {
            machine: Machine::probe("/".as_ref()),
            modules: Arc::new(ModuleStore::new("/".into(), true)),
        }
    }

    /// One run in one window.
    pub(crate) fn count(
        &self,
        asked: &Asked,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Counted, NotCounted> {
        let mut program = asked.start(event.letter, n)?;
        let (label, len) = event.memory;
        let word = WatchedWord {
            pid: program.pid(),
            addr: asked.address(label)?,
            len: len as u8,
        };
        let options = SourceOptions {
            watch: Watching::Required,
            slots: 1,
            ..options()
        };
        let target = Target::Trees(vec![program.pid()]);
        let modules = self.modules.clone();
        let mut source = timer::KIND.open(&target, &options, &self.machine, modules)?;
        let watcher = source.watcher().ok_or(NotCounted::NoWindow)?;
        watcher.arm(
            Subject {
                words: &[word],
                everyone: false,
                packed: false,
            },
            Limits {
                // More than are asked for, so that what is too much is counted too.
                hits: 4 * n + 1000,
                ns: MOST.as_nanos() as u64,
            },
        );
        watcher.wait_until_open()?;
        // As in an observation. Without the right it is as it was.
        let _urgent = Urgent::raise().ok();
        program.go()?;
        let (started, mut batch) = (Instant::now(), Batch::default());
        let mut homes = event.ordered.map(Homes::of);
        let (mut count, mut lost) = (0_u64, 0);
        let mut is_over = false;
        loop {
            if !is_over && program.speaks_within(LOOK)? {
                program.hear(1)?;
                // Closes the window, too.
                source.stop();
                is_over = true;
            }
            let progress = source.take(&mut batch)?;
            for access in &batch.accesses {
                if access.basis != Basis::Trapped {
                    continue;
                }
                count += u64::from(match &mut homes {
                    None => true,
                    Some(homes) => {
                        let addr = access.addr;
                        let space = SpaceId(0);
                        homes.serve(access, Place::Private { space, addr })
                    }
                });
            }
            for window in &batch.windows {
                if window.end != WindowEnd::Asked {
                    return Err(NotCounted::WindowEnded(window.end));
                }
                lost += window.lost + window.unresolved.values().sum::<u64>();
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
        Ok(Counted {
            count: count as f64,
            lost,
        })
    }
}
