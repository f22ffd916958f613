//! Counts of the emulated source: every access of the program, in order, replayed through a directory or caches.

use std::{
    ops::Range,
    path::PathBuf,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    NotCounted,
    access::{Access, LineSize, Op, Pid, Place, SpaceId},
    asked::Asked,
    coherence::{CacheGeometry, SystemModel},
    decode::{LoadedInto, is_branch, loaded_into, real_operation},
    events::{Event, Executions, Level, Ordered},
    homes::Homes,
    observed::{Observer, follow, options},
    run::Counted,
    source::{
        SourceOptions,
        emulate::{self, Emulator},
    },
    space::AddressSpaces,
    sys::launch::Held,
};
use cohtrace_judge::analysis::{Hinted, Simulation};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_mins(10);

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The caches of `Misses`, which are nobody's in particular.
fn caches() -> SystemModel {
    let of = |kib: u64| CacheGeometry {
        bytes: kib << 10,
        ways: 8,
    };
    SystemModel {
        line: LineSize::B64,
        l2: of(32),
        l3: of(256),
        ..SystemModel::default()
    }
}

/// Runs programs in the emulator.
pub(crate) struct Emulation {
    observer: Observer,
    qemu: Option<PathBuf>,
}

impl Emulation {
    pub(crate) fn new(observer: Observer, qemu: Option<PathBuf>) -> Emulation {
        Emulation { observer, qemu }
    }

    /// One run.
    pub(crate) fn count(
        &self,
        asked: &Asked,
        event: &Event,
        ordered: Ordered,
        n: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Counted, NotCounted> {
        let code = match ordered {
            Ordered::Executions(_) => Some(asked.code(&format!("turns_{}", event.letter))?),
            _ => None,
        };
        let emulator = self.prepare(asked, event.letter, n, code)?;
        let mut tally = Tally::new(asked, event, ordered)?;
        let lost = self.run(&emulator, n, stopped, &mut |access, space, place| {
            tally.take(access, space, place);
        })?;
        let count = match ordered {
            Ordered::Executions(which) => {
                let executed = emulator.executed().into_iter();
                executed
                    .filter(|executed| counts(which, &executed.bytes))
                    .map(|executed| executed.times)
                    .sum()
            }
            _ => tally.count(),
        };
        Ok(Counted {
            count: count as f64,
            lost,
        })
    }

    /// An emulator for one run, which counts executions of some code.
    fn prepare(
        &self,
        asked: &Asked,
        letter: char,
        n: u64,
        counted: Option<Range<u64>>,
    ) -> Result<Arc<Emulator>, NotCounted> {
        let words = asked.words(letter, n);
        let prepared = Emulator::prepare(&words, self.qemu.clone());
        let emulator = prepared.map_err(crate::source::SourceError::from)?;
        Ok(Arc::new(match counted {
            Some(code) => emulator.counting(code),
            None => emulator,
        }))
    }

    /// Passes on every access of a run, in order. How many were lost.
    fn run(
        &self,
        emulator: &Arc<Emulator>,
        n: u64,
        stopped: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&Access, SpaceId, Place),
    ) -> Result<u64, NotCounted> {
        let mut command = emulator.command();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let starting = "starting the emulator";
        let held = Held::new(command).map_err(NotCounted::of(starting))?;
        let options = SourceOptions {
            emulator: Some(emulator.clone()),
            ..options()
        };
        let pid = Pid(held.pid());
        let mut source = self.observer.open(&emulate::KIND, pid, &options)?;
        let child = held.release().map_err(NotCounted::of(starting))?;
        let mut child = Ending(child);
        let (mut spaces, mut lost) = (AddressSpaces::default(), 0);
        let mut status = None;
        let is_over = || {
            let ended = child.0.try_wait();
            status = ended.map_err(NotCounted::of("waiting for the emulator"))?;
            Ok(status.is_some())
        };
        follow(&mut *source, MOST, stopped, is_over, |batch| {
            for due in batch.in_order() {
                if let Some((access, space, place)) = spaces.follow(due) {
                    take(access, space, place);
                }
            }
            lost += batch.tally.lost_total();
            Ok(())
        })?;
        match status {
            Some(status) if !status.success() => Err(NotCounted::Ended {
                n,
                how: status.to_string(),
            }),
            _ => Ok(lost),
        }
    }
}

/// Whether executions of an instruction are counted.
fn counts(which: Executions, bytes: &[u8]) -> bool {
    match which {
        Executions::All => true,
        Executions::Branches => is_branch(bytes),
        Executions::Reals(operation) => real_operation(bytes) == Some(operation),
    }
}

/// Ends with the run, whatever becomes of that.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Where it has ended, there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counts what an event is of the accesses of a run.
struct Tally {
    ordered: Ordered,
    code: Range<u64>,
    memory: Range<u64>,
    /// Instructions that load into a vector register, of those seen.
    real: FxHashMap<u64, bool>,
    /// From the first byte of the loop on.
    bytes: &'static [u8],
    homes: Homes,
    caches: Option<Simulation>,
    /// Numbers of the pages that the loop has accessed.
    pages: FxHashSet<u64>,
    count: u64,
}

impl Tally {
    fn new(asked: &Asked, event: &Event, ordered: Ordered) -> Result<Tally, NotCounted> {
        let code = asked.code(&format!("event_{}", event.letter))?;
        let (label, len) = event.memory;
        let memory = asked.address(label)?;
        let caches = match ordered {
            Ordered::Misses(_) => Some(Simulation::new(&caches(), 1)?),
            _ => None,
        };
        Ok(Tally {
            bytes: asked.bytes(code.start).unwrap_or_default(),
            code,
            memory: memory..memory + len,
            ordered,
            real: FxHashMap::default(),
            homes: Homes::of(ordered),
            caches,
            pages: FxHashSet::default(),
            count: 0,
        })
    }

    fn take(&mut self, access: &Access, space: SpaceId, place: Place) {
        let of_memory = self.memory.contains(&access.addr);
        let of_loop = self.code.contains(&access.ip);
        if let Some(caches) = &mut self.caches {
            // What is in the caches before is no reason to hit: it is other memory.
            caches.set_counting(of_memory && of_loop);
            caches.observe(access, space, place, Hinted::default);
            return;
        }
        if !of_memory {
            return;
        }
        let stores = access.op.stores();
        let executions = if of_loop { access.executions() } else { 0 };
        let counts = match self.ordered {
            Ordered::Loads if access.op == Op::Load => executions,
            Ordered::Stores if stores => executions,
            Ordered::Locked if access.locked => executions,
            Ordered::RealLoads if access.op == Op::Load => {
                let is_real = self.is_real(access.ip);
                executions * u64::from(is_real)
            }
            Ordered::Pages if of_loop => {
                let is_new = self.pages.insert(access.addr / PAGE);
                u64::from(is_new)
            }
            Ordered::Interventions
            | Ordered::Invalidations
            | Ordered::Upgrades
            | Ordered::CleanWrites => {
                let counts = self.homes.serve(access, place);
                u64::from(of_loop && counts)
            }
            _ => 0,
        };
        self.count += counts;
    }

    fn is_real(&mut self, ip: u64) -> bool {
        let (bytes, start) = (self.bytes, self.code.start);
        *self.real.entry(ip).or_insert_with(|| {
            let code = ip
                .checked_sub(start)
                .and_then(|at| bytes.get(at as usize..));
            code.and_then(loaded_into) == Some(LoadedInto::FloatingPoint)
        })
    }

    fn count(self) -> u64 {
        let Some(caches) = self.caches else {
            return self.count;
        };
        let simulated = caches.finish();
        let totals = simulated.totals().next();
        totals.map_or(0, |totals| match self.ordered {
            Ordered::Misses(Level::First) => totals.l2_misses,
            _ => totals.l3_misses,
        })
    }
}
