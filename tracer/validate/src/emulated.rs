//! Counts of the emulated source: every access of the program, in order, replayed through a directory or caches.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use crate::{
    NotCounted,
    access::{Access, LineSize, Op, Place, SpaceId},
    asked::Asked,
    coherence::{CacheGeometry, SystemModel},
    decode::{LoadedInto, loaded_into},
    event::Batch,
    events::{Event, Level, Ordered},
    homes::Homes,
    machine::Machine,
    module::ModuleStore,
    observation::{Starting, Targets, What},
    run::Counted,
    source::{
        MemoryOptions, Progress, SourceKind as _, SourceOptions, Watching,
        emulate::{self, Emulator},
    },
    space::AddressSpaces,
};
use cohtrace_judge::analysis::{Hinted, Simulation};

/// A run that takes longer hangs.
const MOST: Duration = Duration::from_secs(600);

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
    machine: Machine,
    modules: Arc<ModuleStore>,
    qemu: Option<PathBuf>,
}

impl Emulation {
    pub(crate) fn new(qemu: Option<PathBuf>) -> Emulation {
        Emulation {
            machine: Machine::probe("/".as_ref()),
            modules: Arc::new(ModuleStore::new("/".into(), true)),
            qemu,
        }
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
        let mut tally = Tally::new(asked, event, ordered)?;
        let lost = self.run(
            asked,
            event.letter,
            n,
            stopped,
            &mut |access, space, place| {
                tally.take(access, space, place);
            },
        )?;
        Ok(Counted {
            count: tally.count() as f64,
            lost,
        })
    }

    /// Passes on every access of a run, in order. How many were lost.
    fn run(
        &self,
        asked: &Asked,
        letter: char,
        n: u64,
        stopped: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&Access, SpaceId, Place),
    ) -> Result<u64, NotCounted> {
        let words = asked.words(letter, n);
        let prepared = Emulator::prepare(&words, self.qemu.clone());
        let emulator = Arc::new(prepared.map_err(crate::source::SourceError::from)?);
        let mut targets = Targets::open(What::Command(Box::new(Starting {
            words: words.into(),
            wrapped: Some(emulator.command()),
            output_to_stderr: true,
            leave_running: false,
        })))?;
        let options = SourceOptions {
            emulator: Some(emulator),
            ..options()
        };
        let modules = self.modules.clone();
        let mut source = emulate::KIND.open(&targets.target, &options, &self.machine, modules)?;
        targets.release()?;
        let (started, mut batch) = (Instant::now(), Batch::default());
        let (mut spaces, mut lost) = (AddressSpaces::default(), 0);
        let mut is_over = false;
        loop {
            if !is_over && targets.ended() {
                source.stop();
                is_over = true;
            }
            let progress = source.take(&mut batch)?;
            for due in batch.in_order() {
                if let Some((access, space, place)) = spaces.follow(due) {
                    take(access, space, place);
                }
            }
            lost += batch.tally.lost_total();
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
            source.idle()?;
        }
        match targets.finish().into_iter().next() {
            Some(how) => Err(NotCounted::Ended { n, how }),
            None => Ok(lost),
        }
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

/// Counts what an event is of the accesses of a run.
struct Tally {
    ordered: Ordered,
    code: std::ops::Range<u64>,
    memory: std::ops::Range<u64>,
    /// Instructions that load into a vector register, of those seen.
    real: FxHashMap<u64, bool>,
    /// From the first byte of the loop on.
    bytes: &'static [u8],
    homes: Homes,
    caches: Option<Simulation>,
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
