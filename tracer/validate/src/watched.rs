//! Counts of a watch window: every access of a word, by data breakpoints.

use std::time::Duration;

use crate::{
    NotCounted,
    access::{Basis, Place, SpaceId},
    asked::Asked,
    event::{WatchedWord, WindowEnd},
    events::Event,
    homes::Homes,
    observed::{Observer, follow, options},
    run::Counted,
    source::{
        SourceOptions, Watching, timer,
        watch::{Limits, Subject},
    },
    sys::priority::Urgent,
};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_mins(2);
/// Between two looks at the rings: they hold some thousand hits.
const LOOK: Duration = Duration::from_millis(1);

/// Watches programs.
pub(crate) struct Windows(pub(crate) Observer);

impl Windows {
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
        let mut source = self.0.open(&timer::KIND, program.pid(), &options)?;
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
        let mut homes = event.ordered.map(Homes::of);
        let (mut count, mut lost) = (0_u64, 0);
        // The source's end closes the window, too.
        let is_over = || program.is_over_within(LOOK);
        follow(&mut *source, MOST, stopped, is_over, |batch| {
            let trapped = batch.accesses.iter();
            for access in trapped.filter(|access| access.basis == Basis::Trapped) {
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
            Ok(())
        })?;
        program.end()?;
        Ok(Counted {
            count: count as f64,
            lost,
        })
    }
}
