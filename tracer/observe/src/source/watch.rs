//! Watch windows on live processes: data breakpoints on a few words of a line, a BPF program on each hit,
//! and the instruction that made it.
//!
//! ```text
//!   open()      arm all CPUs, then open      ─┐
//!   the kernel  a record for each hit         │  one window
//!   settle()    close, then disarm           ─┘  by hits or time, the end of the target, or asked
//!   hits        ─► TimeOrder with samples and context ─► take_hit(): the access
//!   the window  ─► TimeOrder, after its hits          ─► take_window()
//! ```

use std::{
    collections::BTreeMap,
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
    sync::Arc,
};

use rustc_hash::FxHashMap;
use tracer_ebpf::{SAMPLE_32BIT, SAMPLE_KERNEL, SAMPLE_STACK_TOP, WatchRecord};
use zerocopy::FromBytes;

use super::{
    Evidence, SourceError,
    live::{Live, read_kernel},
    timer::registers,
    trapped_code::TrappedCode,
};
use crate::{
    access::{Access, Basis, Cpu, Pid, Tid},
    decode::trap::{self, Stopped, Trapped},
    event::{Batch, Breadth, Unresolved, WatchedWord, Window, WindowEnd},
    module::ModuleStore,
    perf_format::ring_record::{self, RecordKind},
    sys::{
        bpf::KernelHalf,
        breakpoints::{Breakpoints, Closed, WindowPlan},
        perf_event, proc_snapshot,
        ring::Ring,
        window_keeper::WindowKeeper,
    },
    watch::Prices,
};

/// Data bytes of each CPU's ring of hits: some 3,000 of them, several windows.
const RING_BYTES: usize = 1 << 20;

/// As in `--source` and reports.
pub const NAME: &str = "watch";

/// What a window's accesses can prove.
pub fn evidence() -> Evidence {
    Evidence::DATA_ADDR
        .and(Evidence::EXACT_IP)
        .and(Evidence::STORES)
        .and(Evidence::COMPLETE_ORDER)
}

/// What ends a window, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Hits.
    pub hits: u64,
    /// Time, nanoseconds.
    pub ns: u64,
}

/// What a window shall watch.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Words of one line, at most as many as there are slots.
    pub words: &'a [WatchedWord],
    /// Take the hits of all targets at these addresses.
    pub everyone: bool,
    /// There is data on the line that is not aligned.
    pub packed: bool,
}

/// Hits of one instruction, as the rings bring them: one record for each watched word it touched.
#[derive(Debug)]
pub struct Hit {
    record: WatchRecord,
    /// The watched words' addresses.
    addresses: Vec<u64>,
}

/// The window that is armed.
struct Open {
    number: u64,
    words: Vec<WatchedWord>,
    everyone: bool,
}

/// What became of a window's hits.
struct Account {
    words: Vec<WatchedWord>,
    everyone: bool,
    packed: bool,
    /// Hits that the window may still have.
    hits_left: u64,
    unresolved: BTreeMap<Unresolved, u64>,
    inferred: u64,
}

/// Opens windows, one at a time.
pub struct Watcher {
    keeper: WindowKeeper,
    cpus: Vec<Cpu>,
    rings: Vec<Ring>,
    slots: usize,
    breadth: Breadth,
    prices: Prices,
    code: TrappedCode,
    open: Option<Open>,
    /// Why the last window could not be opened.
    refusal: Option<SourceError>,
    /// Windows opened so far: the number of the next.
    windows: u64,
    spent_ns: u64,
    /// By the low half of the window's number, which is what hits say.
    accounts: FxHashMap<u32, Account>,
    /// The last hit of each ring, which may have another word to come.
    held: Vec<Option<Hit>>,
    trapped: Vec<Trapped>,
}

impl Watcher {
    /// Takes so many of the breakpoint registers that are free, and measures what a hit costs.
    pub fn open(
        live: &mut Live,
        cpus: &[Cpu],
        slots: usize,
        modules: Arc<ModuleStore>,
    ) -> Result<Watcher, SourceError> {
        let rings = rings(live, cpus)?;
        let breakpoints = Breakpoints::open(&mut live.kernel, cpus, slots)?;
        let keeper = WindowKeeper::start(breakpoints).map_err(|source| SourceError::System {
            what: "starting the thread that keeps windows",
            source,
        })?;
        let (slots, breadth, costs) = keeper.offer()?;
        let prices = Prices {
            hit_ns: costs.hit_ns,
            window_ns: costs.arm_ns + costs.disarm_ns,
        };
        Ok(Watcher {
            held: rings.iter().map(|_| None).collect(),
            keeper,
            cpus: cpus.to_vec(),
            rings,
            slots,
            breadth,
            prices,
            code: TrappedCode::new(modules),
            open: None,
            refusal: None,
            windows: 0,
            spent_ns: 0,
            accounts: FxHashMap::default(),
            trapped: Vec::new(),
        })
    }

    /// Watches on these CPUs and with so many registers from now on. No window may be open, and all hits are to be taken:
    /// [`Watcher::drain`] for the last time.
    pub fn reopen(
        &mut self,
        live: &mut Live,
        cpus: &[Cpu],
        slots: usize,
    ) -> Result<(), SourceError> {
        self.rings = rings(live, cpus)?;
        self.held = self.rings.iter().map(|_| None).collect();
        self.cpus = cpus.to_vec();
        self.keeper.reopen(cpus, slots)?;
        (self.slots, self.breadth, _) = self.keeper.offer()?;
        Ok(())
    }

    /// The processes of the open window.
    pub fn watched(&self) -> impl Iterator<Item = Pid> {
        let words = self.open.iter().flat_map(|open| &open.words);
        words.map(|word| word.pid)
    }

    /// Words that fit into a window.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Where breakpoints are armed.
    pub fn breadth(&self) -> Breadth {
        self.breadth
    }

    /// What hits and windows cost here.
    pub fn prices(&self) -> Prices {
        self.prices
    }

    /// Time that all windows took from the targets so far, nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// Becomes readable when the open window is over.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.keeper.told()
    }

    /// What becomes readable when many hits wait to be taken.
    pub fn rings(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(|ring| ring.event().as_fd())
    }

    /// Whether a window is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Why the window could not be opened that was asked for last; told once.
    pub fn refusal(&mut self) -> Option<SourceError> {
        self.refusal.take()
    }

    /// Opens a window, in a moment. At most one is open: [`Watcher::is_open`].
    pub fn arm(&mut self, subject: Subject<'_>, limits: Limits) {
        let number = self.windows;
        // Whoever runs beside us is held up while we arm, and what it wanted meanwhile has another: were we
        // always on one CPU, some lock would always be held by threads of the other.
        let cpu = self.cpus[number as usize % self.cpus.len()];
        let slots: Vec<WatchedWord> = subject
            .words
            .iter()
            .map(|word| WatchedWord {
                // 0 is every target to the kernel half.
                pid: if subject.everyone { Pid(0) } else { word.pid },
                ..*word
            })
            .collect();
        let threads: Vec<Tid> = match self.breadth() {
            Breadth::Cpus => Vec::new(),
            Breadth::Threads => threads(subject.words),
        };
        let plan = WindowPlan {
            number,
            words: &slots,
            threads: &threads,
            hit_limit: limits.hits,
            duration_ns: limits.ns,
        };
        self.keeper.arm(&plan, cpu);
        self.windows += 1;
        let account = Account {
            words: subject.words.to_vec(),
            everyone: subject.everyone,
            packed: subject.packed,
            hits_left: limits.hits,
            unresolved: BTreeMap::new(),
            inferred: 0,
        };
        self.accounts.insert(number as u32, account);
        self.open = Some(Open {
            number,
            words: subject.words.to_vec(),
            everyone: subject.everyone,
        });
    }

    /// Waits until the window that was asked for last is open. An error where it could not be opened.
    pub fn wait_until_open(&mut self) -> Result<(), SourceError> {
        // The thread that opens windows answers when it has.
        self.keeper.offer()?;
        match self.keeper.refusal() {
            None => Ok(()),
            Some(error) => {
                if let Some(open) = self.open.take() {
                    self.accounts.remove(&(open.number as u32));
                }
                Err(error.into())
            }
        }
    }

    /// Takes the open window if its hits or its time are over.
    pub fn settle(&mut self) -> Result<Option<Window>, SourceError> {
        if let Some(error) = self.keeper.refusal() {
            if let Some(open) = self.open.take() {
                self.accounts.remove(&(open.number as u32));
            }
            self.refusal = Some(error.into());
        }
        if self.keeper.is_over() {
            self.close(None)
        } else {
            Ok(None)
        }
    }

    /// Closes the window, for a reason of user space. Its `unresolved` and `inferred` are
    /// known once its hits were taken: see [`Watcher::take_window`].
    pub fn close(&mut self, reason: Option<WindowEnd>) -> Result<Option<Window>, SourceError> {
        let Some(open) = self.open.take() else {
            return Ok(None);
        };
        let Closed {
            open_ns,
            end_ns,
            hits,
            dropped,
            other_traps,
            end,
        } = self.keeper.close()?;
        let cost_ns = (hits + other_traps) * self.prices.hit_ns;
        self.spent_ns += self.prices.window_ns + cost_ns;
        Ok(Some(Window {
            number: open.number,
            open_ns,
            end_ns,
            words: open.words,
            everyone: open.everyone,
            hits,
            lost: dropped,
            unresolved: BTreeMap::new(),
            inferred: 0,
            cost_ns,
            breadth: self.breadth,
            end: reason.unwrap_or(end),
        }))
    }

    /// Whether the open window watches the process.
    pub fn watches(&self, pid: Pid) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.words.iter().any(|word| word.pid == pid))
    }

    /// Takes what the rings hold; the hits of one ring come in order. `last`: nothing will follow.
    pub fn drain(&mut self, last: bool, mut hit: impl FnMut(u64, Hit)) {
        for (ring, held) in self.rings.iter_mut().zip(&mut self.held) {
            let mut quiet = true;
            ring.drain(|bytes| {
                let Some(record) = parse(bytes) else { return };
                quiet = false;
                match held {
                    Some(before) if before.is_same_instruction(&record) => {
                        before.addresses.push(record.watched_addr);
                    }
                    _ => {
                        let next = Hit {
                            addresses: vec![record.watched_addr],
                            record,
                        };
                        if let Some(before) = held.replace(next) {
                            hit(before.record.sample.time_ns, before);
                        }
                    }
                }
            });
            // The records of one instruction follow each other within a trap: none is to come.
            if (quiet || last)
                && let Some(before) = held.take()
            {
                hit(before.record.sample.time_ns, before);
            }
        }
    }

    /// Turns a hit into its accesses.
    pub fn take_hit(&mut self, time_ns: u64, hit: &Hit, live: &mut Live, batch: &mut Batch) {
        let sample = &hit.record.sample;
        let (pid, tid, cpu) = (Pid(sample.pid), Tid(sample.tid), Cpu(sample.cpu));
        let kernel = sample.flags & SAMPLE_KERNEL != 0;
        // Its window is told after its last hit, so the account is still there.
        let Some(account) = self.accounts.get_mut(&hit.record.window) else {
            return;
        };
        let hits = hit.addresses.len() as u64;
        if sample.flags & SAMPLE_32BIT != 0 {
            *account.unresolved.entry(Unresolved::Code32Bit).or_default() += hits;
            return;
        }
        let (words, mut alone) = account.hit(pid, &hit.addresses);
        account.hits_left = account.hits_left.saturating_sub(hits);
        // Of the instruction that brought the last hit, another may be beyond the limit.
        if account.hits_left == 0 {
            alone.clear();
        }
        self.trapped.clear();
        let half: &mut KernelHalf = &mut live.kernel;
        let resolved = self.code.resolve(
            &mut live.spaces,
            pid,
            &trap::Hit {
                stopped: Stopped::After(&registers(sample)),
                words: &words,
                alone: &alone,
                packed: account.packed,
                stack_top: (sample.flags & SAMPLE_STACK_TOP != 0).then_some(hit.record.stack_top),
                kernel,
            },
            &mut |addr, len| read_kernel(half, addr, len),
            &mut self.trapped,
        );
        if let Err(reason) = resolved {
            *account.unresolved.entry(reason).or_default() += hits;
            return;
        }
        for access in &self.trapped {
            account.inferred += u64::from(access.within > 0);
            batch.accesses.push(Access {
                time_ns,
                addr: access.addr,
                ip: access.ip,
                pid,
                tid,
                cpu,
                size: access.size,
                op: access.op,
                basis: Basis::Trapped,
                locked: access.locked,
                kernel,
                within: access.within,
                ..Access::BLANK
            });
        }
    }

    /// Completes a closed window whose hits have all been taken.
    pub fn take_window(&mut self, mut window: Window, batch: &mut Batch) {
        if let Some(account) = self.accounts.remove(&(window.number as u32)) {
            window.unresolved = account.unresolved;
            window.inferred = account.inferred;
        }
        batch.windows.push(window);
    }
}

impl Account {
    /// The words at these addresses, and the others that the process would have hit.
    fn hit(&self, pid: Pid, addresses: &[u64]) -> (Vec<WatchedWord>, Vec<WatchedWord>) {
        let own = |word: &&WatchedWord| self.everyone || word.pid == pid;
        (self.words.iter())
            .filter(|word| addresses.contains(&word.addr) || own(word))
            .partition(|word| addresses.contains(&word.addr))
    }
}

impl Hit {
    /// Whether the record is of the same execution of the same instruction, for another word: nothing ran
    /// between, so all registers are equal, and no word comes twice.
    fn is_same_instruction(&self, next: &WatchRecord) -> bool {
        let (a, b) = (&self.record.sample, &next.sample);
        self.record.window == next.window
            && (a.tid, a.ip, a.regs) == (b.tid, b.ip, b.regs)
            && !self.addresses.contains(&next.watched_addr)
    }
}

/// A ring for the hits on each CPU.
fn rings(live: &mut Live, cpus: &[Cpu]) -> Result<Vec<Ring>, SourceError> {
    let open = |cpu: &Cpu| {
        let output = perf_event::bpf_output(RING_BYTES as u32 / 4);
        let event = perf_event::open(&output, perf_event::Scope::Cpu(*cpu))?;
        let ring = Ring::map(event, RING_BYTES).map_err(|source| SourceError::Ring {
            cpu: cpu.0,
            kib: RING_BYTES / 1024,
            source,
        })?;
        live.kernel.set_hits_ring(*cpu, ring.event())?;
        Ok(ring)
    };
    cpus.iter().map(open).collect()
}

fn parse(bytes: &[u8]) -> Option<WatchRecord> {
    match ring_record::parse(bytes).ok()?.kind {
        RecordKind::Raw(raw) => WatchRecord::read_from_prefix(raw)
            .ok()
            .map(|(record, _)| record),
        _ => None,
    }
}

/// The threads of the words' processes now.
fn threads(words: &[WatchedWord]) -> Vec<Tid> {
    let mut pids: Vec<Pid> = words.iter().map(|word| word.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let proc = Path::new("/proc");
    pids.into_iter()
        .flat_map(|pid| proc_snapshot::threads(proc, pid))
        .collect()
}
