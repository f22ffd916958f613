//! Counts of a watch window: every access of a word, by data breakpoints; and the read-then-write pairs of its order.

use std::time::Duration;

use crate::{
    NotCounted,
    access::{Access, Basis, ByteSet, Place, SpaceId},
    asked::Asked,
    event::{WatchedWord, Window, WindowEnd},
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
use cohtrace_judge::analysis::{Pair, WatchedLines};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_mins(2);
/// Between two looks at the rings: they hold some thousand hits.
const LOOK: Duration = Duration::from_millis(1);

/// Watches programs.
pub(crate) struct Windows(pub(crate) Observer);

impl Windows {
    /// One run in one window, by its accesses.
    pub(crate) fn count(
        &self,
        asked: &Asked,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Counted, NotCounted> {
        let mut homes = event.ordered.map(Homes::of);
        let mut count = 0_u64;
        let lost = self.watch(asked, event, n, stopped, &mut |seen| {
            if let Seen::Access(access) = seen {
                count += u64::from(match &mut homes {
                    None => true,
                    Some(homes) => homes.serve(access, place_of(access.addr)),
                });
            }
        })?;
        Ok(Counted {
            count: count as f64,
            lost,
        })
    }

    /// One run in one window, by the pairs whose store found the line shared.
    pub(crate) fn count_pairs(
        &self,
        asked: &Asked,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Counted, NotCounted> {
        let mut lines = WatchedLines::default();
        let mut lost = self.watch(asked, event, n, stopped, &mut |seen| match seen {
            Seen::Access(access) => lines.observe(access, place_of(access.addr), SPACE),
            Seen::Window(window) => {
                lines.close(window, |word| place_of(word.addr));
            }
        })?;
        let totals = lines.totals();
        lost += totals.dropped + totals.dropped_windows;
        let mut count = 0;
        for line in lines.lines() {
            lost += line.forgotten_executions();
            let pairs = line.pairs(ByteSet::default());
            count += pairs.iter().map(upgrades).sum::<u64>();
        }
        Ok(Counted {
            count: count as f64,
            lost,
        })
    }

    /// Passes on what one window has of a run: each access, then the window itself. How many hits were lost.
    fn watch(
        &self,
        asked: &Asked,
        event: &Event,
        n: u64,
        stopped: &dyn Fn() -> bool,
        take: &mut dyn FnMut(Seen<'_>),
    ) -> Result<u64, NotCounted> {
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
        let mut lost = 0;
        // The source's end closes the window, too.
        let is_over = || program.is_over_within(LOOK);
        follow(&mut *source, MOST, stopped, is_over, |batch| {
            let trapped = batch.accesses.iter();
            for access in trapped.filter(|access| access.basis == Basis::Trapped) {
                take(Seen::Access(access));
            }
            for window in &batch.windows {
                if window.end != WindowEnd::Asked {
                    return Err(NotCounted::WindowEnded(window.end));
                }
                lost += window.lost + window.unresolved.values().sum::<u64>();
                take(Seen::Window(window));
            }
            Ok(())
        })?;
        program.end()?;
        Ok(lost)
    }
}

/// What a window shows.
enum Seen<'a> {
    Access(&'a Access),
    /// All its accesses were before.
    Window(&'a Window),
}

/// The only program that is watched.
const SPACE: SpaceId = SpaceId(0);

fn place_of(addr: u64) -> Place {
    Place::Private { space: SPACE, addr }
}

/// Stores of a pair that found the line in this cache and in another one.
fn upgrades(pair: &Pair) -> u64 {
    let apart = u64::from(!pair.same_instruction);
    apart * pair.left.shared.saturating_sub(pair.taken_by_writes)
}
