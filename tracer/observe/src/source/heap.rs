//! Follows the targets' heaps: probes on the functions of allocators, the stack of each allocation.
//!
//! ```text
//!   notice()  mapping, fork, exit ─► prober thread: puts probes in, takes them out when they cost too much
//!   drain()   ring of the kernel half, notes of the thread ─► TimeOrder with samples and context
//!   take()    ─► Allocation, with its stack
//! ```

mod allocators;
mod closing;
mod entry;
mod governor;
mod prober;
mod unwinder;

use std::{
    fs,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustc_hash::FxHashMap;
use tracer_ebpf::HeapRecord;

use self::{
    prober::{Means, Note, ProbedFile, Prober, Totals},
    unwinder::Unwinder,
};
use super::{Evidence, SourceError, Target, live::Live};
use crate::{
    access::{Pid, Tid},
    event::{Allocation, AllocationKind, Batch, ContextKind, HeapTally, Mapping, path_text},
    module::ModuleStore,
    space::MappedFiles,
    sys::{
        bpf::{Heap, HeapEvent, HeapRing},
        heap_cost::{self, HeapCosts},
        ring::page_bytes,
        uprobe::UprobePmu,
    },
};

/// As in reports.
pub const NAME: &str = "heap";

/// Events taken from the ring at once: more would keep the samples waiting.
const MOST_DRAINED: usize = 1 << 15;
/// How long the first probes may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How to follow heaps.
#[derive(Clone, Debug, PartialEq)]
pub struct HeapOptions {
    /// Allocations of fewer bytes are not told.
    pub least_bytes: u64,
    /// What the probes may cost, a share of the wall time.
    pub share: f64,
    /// Files that the targets will map, which may hold allocators: their probes are in before the first
    /// allocation, not some time after.
    pub files: Vec<PathBuf>,
}

/// What following the heap proves: nothing of accesses.
pub fn evidence() -> Evidence {
    Evidence::default()
}

/// An event of the heap on its way through the order of time.
#[derive(Debug)]
pub enum Pending {
    /// An allocation whose stack is not unwound yet.
    Allocated(Box<HeapRecord>),
    /// Anything else.
    Known(Allocation),
}

/// Follows heaps.
pub struct HeapTracker {
    ring: HeapRing,
    prober: Prober,
    unwinder: Unwinder,
    modules: Arc<ModuleStore>,
    costs: HeapCosts,
    share: f64,
    /// By device and inode; `None` for files that are no allocators.
    files: FxHashMap<(u64, u64), Option<Arc<ProbedFile>>>,
    totals: Totals,
    not_followed: u64,
    why: Option<String>,
}

impl HeapTracker {
    /// Loads the programs and measures what a hit costs. No probe is in yet.
    pub fn open(
        live: &mut Live,
        target: &Target,
        options: &HeapOptions,
        modules: Arc<ModuleStore>,
    ) -> Result<HeapTracker, SourceError> {
        let Target::Trees(roots) = target else {
            // A probe for everybody would trap processes that are nobody's target by the thousand a second.
            return Err(SourceError::System {
                what: "following the heaps of every process",
                source: std::io::ErrorKind::Unsupported.into(),
            });
        };
        let pmu = UprobePmu::find()?;
        let Heap {
            programs,
            stats,
            mut ring,
        } = live.kernel.heap()?;
        let own = Pid(std::process::id());
        let known = live.kernel.set_target(own, true);
        let measured = heap_cost::measure(pmu, &programs);
        if known {
            let _ = live.kernel.set_target(own, false);
        }
        let costs = measured?.ok_or_else(|| SourceError::System {
            what: "measuring what a probe costs",
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        ring.drain(usize::MAX, |_| {});
        let prober = Prober::start(Means {
            pmu,
            programs,
            stats,
            costs,
            share: options.share,
        })
        .map_err(|source| SourceError::System {
            what: "starting the thread that probes allocators",
            source,
        })?;
        let mut tracker = HeapTracker {
            ring,
            prober,
            unwinder: Unwinder::new(modules.clone()),
            modules,
            costs,
            share: options.share,
            files: FxHashMap::default(),
            totals: Totals::default(),
            not_followed: 0,
            why: None,
        };
        for path in &options.files {
            tracker.expect_file(path, roots);
        }
        Ok(tracker)
    }

    /// Becomes readable when much waits to be taken.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// What a probed allocation and a probed free cost.
    pub fn costs(&self) -> HeapCosts {
        self.costs
    }

    /// What they may cost, a share of the wall time.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// A file that targets will map.
    fn expect_file(&mut self, path: &Path, roots: &[Pid]) {
        let Ok(path) = fs::canonicalize(path) else {
            return;
        };
        let Ok(metadata) = fs::metadata(&path) else {
            return;
        };
        let mapping = Mapping {
            start: 0,
            len: metadata.len(),
            file_offset: 0,
            // As in /proc/PID/maps, which the kernel's records agree with.
            dev: u64::from(libc::major(metadata.dev())) << 32
                | u64::from(libc::minor(metadata.dev())),
            inode: metadata.ino(),
            shared: false,
            executable: true,
            writable: false,
            name: path_text::of(&path),
            build_id: None,
            stamp: None,
        };
        for root in roots {
            self.mapped(*root, &mapping);
        }
    }

    /// Takes notice of what changes in the targets, as soon as it is known. Order does not matter.
    pub fn notice(&mut self, kind: &ContextKind) {
        match kind {
            ContextKind::Mapping { pid, mapping } if mapping.executable => {
                self.mapped(*pid, mapping);
            }
            ContextKind::Fork {
                pid, parent_pid, ..
            } if pid != parent_pid => {
                self.prober.inherit(*parent_pid, *pid);
            }
            ContextKind::Exit { pid, tid } if pid.0 == tid.0 => {
                self.prober.forget(*pid);
            }
            _ => {}
        }
    }

    /// Forgets other files than these; probes that are in stay.
    pub fn keep_files(&mut self, files: &MappedFiles) {
        self.files.retain(|file, _| files.has_number(*file));
    }

    /// Waits until the probes for all that was noticed are in.
    pub fn wait(&self) {
        self.prober.wait(PATIENCE);
    }

    fn mapped(&mut self, pid: Pid, mapping: &Mapping) {
        if !mapping.is_file() {
            return;
        }
        let key = (mapping.dev, mapping.inode);
        if !self.files.contains_key(&key) {
            let probed = self.probed(pid, mapping).map(Arc::new);
            self.files.insert(key, probed);
        }
        if let Some(Some(file)) = self.files.get(&key) {
            self.prober.follow(pid, file.clone());
        }
    }

    /// The file behind a mapping, if it is an allocator.
    fn probed(&self, pid: Pid, mapping: &Mapping) -> Option<ProbedFile> {
        let module = self.modules.open(pid, mapping).ok()?;
        let probes = allocators::probes(&module.elf);
        if probes.is_empty() {
            return None;
        }
        let found = self.modules.file(pid, mapping)?;
        let file = found.open().ok()?;
        Some(ProbedFile { file, probes })
    }

    /// Takes what is in the ring and in the notes.
    pub fn drain(&mut self, mut push: impl FnMut(u64, Pending)) {
        self.ring.drain(MOST_DRAINED, |event| match event {
            HeapEvent::Freed(freed) => {
                let (pid, tid) = (Pid(freed.pid), Tid(freed.tid));
                if let Some(kind) = gone(freed.addr, freed.bytes) {
                    push(freed.time_ns, known(freed.time_ns, pid, tid, kind));
                }
            }
            HeapEvent::Allocated(record) => {
                let (pid, tid) = (Pid(record.caller.pid), Tid(record.caller.tid));
                let gone = gone(record.old, record.old_bytes);
                if let Some(kind) = gone.filter(|_| record.old != 0) {
                    push(record.entered_ns, known(record.entered_ns, pid, tid, kind));
                }
                push(record.caller.time_ns, Pending::Allocated(record));
            }
        });
        while let Ok(note) = self.prober.notes.try_recv() {
            match note {
                Note::Sight(time_ns, pid, kind) => push(time_ns, sight(time_ns, pid, kind)),
                Note::NotFollowed(why) => {
                    self.not_followed += 1;
                    self.why = self.why.take().or(why);
                }
            }
        }
    }

    /// Turns an event into the stream's.
    pub fn take(&mut self, time_ns: u64, pending: Pending, live: &Live, batch: &mut Batch) {
        let event = match pending {
            Pending::Known(event) => Allocation { time_ns, ..event },
            Pending::Allocated(record) => Allocation {
                time_ns,
                pid: Pid(record.caller.pid),
                tid: Tid(record.caller.tid),
                kind: given(&record, self.unwinder.stack(&record, &live.spaces)),
            },
        };
        let tally = &mut batch.tally.heap;
        match event.kind {
            AllocationKind::Allocated { .. } | AllocationKind::Mapped { .. } => {
                tally.allocations += 1;
            }
            AllocationKind::Freed { .. } | AllocationKind::Unmapped { .. } => tally.frees += 1,
            AllocationKind::Unseen(_) | AllocationKind::Seen(_) => {}
        }
        batch.allocations.push(event);
    }

    /// Counts since the last time.
    pub fn count(&mut self, tally: &mut HeapTally) {
        let now = self.prober.totals();
        tally.lost += now.dropped - self.totals.dropped;
        tally.cost_ns += now.cost_ns - self.totals.cost_ns;
        tally.off_ns += now.off_ns - self.totals.off_ns;
        self.totals = now;
    }

    /// Takes the probes out; what is in hand comes by a further drain. Does not wait.
    pub fn stop(&mut self) {
        self.prober.stop();
    }

    /// What could not be followed.
    pub fn caveat(&self) -> Option<String> {
        if self.not_followed == 0 {
            return None;
        }
        let why = self
            .why
            .as_deref()
            .unwrap_or("too many processes came and went");
        Some(format!(
            "the heaps of {} processes (or a library of theirs) were not followed: {why}",
            self.not_followed
        ))
    }
}

/// What goes away from `addr` on: that allocation, or so many bytes of mapped pages. The kernel unmaps whole pages; of
/// more than fit, none.
fn gone(addr: u64, bytes: u64) -> Option<AllocationKind> {
    Some(match bytes.checked_next_multiple_of(page_bytes() as u64)? {
        0 => AllocationKind::Freed { addr },
        size => AllocationKind::Unmapped { addr, size },
    })
}

/// What a record of an allocating function tells.
fn given(record: &HeapRecord, stack: Arc<[u64]>) -> AllocationKind {
    let (addr, size) = (record.addr, record.size);
    if record.is_mapping == 0 {
        AllocationKind::Allocated { addr, size, stack }
    } else {
        AllocationKind::Mapped { addr, size, stack }
    }
}

fn known(time_ns: u64, pid: Pid, tid: Tid, kind: AllocationKind) -> Pending {
    Pending::Known(Allocation {
        time_ns,
        pid,
        tid,
        kind,
    })
}

fn sight(time_ns: u64, pid: Option<Pid>, kind: AllocationKind) -> Pending {
    Pending::Known(Allocation {
        time_ns,
        pid: pid.unwrap_or(Pid(0)),
        tid: Tid(0),
        kind,
    })
}
