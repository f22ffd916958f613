//! The stream in, values out.

mod cells;
mod values;

use rustc_hash::FxHashMap;

use crate::{
    Event, Key, Observed, Options, Per, Refusal, Table,
    access::{Access, Basis, Cpu, LineKey, Place, Tid},
    directory::{self, Directories},
    event::{Batch, Context, ContextKind, Due, Tally, Window},
    heap::HeapIndex,
    key::Who,
    looked::{Looked, WindowSlices},
    shared_waits::{LineWaits, Waited},
    space::AddressSpaces,
};
use cells::{At, Cells};

/// Counts a run as its batches come, and makes the table at its end.
pub struct Fold {
    options: Options,
    cells: Cells,
    spaces: AddressSpaces,
    /// Followed where objects are asked for.
    heap: HeapIndex,
    /// Where a selected statistic asks the directory.
    directories: Option<Directories>,
    /// Where a selected statistic asks who shares.
    waits: Option<LineWaits>,
    settled: Vec<Waited>,
    names: FxHashMap<Tid, String>,
    /// Of [`Key::Named`], by number.
    labels: Vec<String>,
    looked: Looked,
    windows: WindowSlices,
    tally: Tally,
    /// Of the sample that the last waiting access was in.
    last_sample: Option<(u64, Cpu, Tid)>,
}

impl Fold {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// More values than are kept, for the slices and statistics alone.
    pub fn new(options: Options) -> Result<Fold, Refusal> {
        let asks = |ask: fn(&dyn crate::statistic::Statistic) -> bool| {
            options.statistics.iter().any(|one| ask(*one))
        };
        let directories = asks(|one| one.asks_the_directory());
        let waits = asks(|one| one.asks_who_shares());
        Ok(Fold {
            cells: Cells::new(&options)?,
            spaces: AddressSpaces::default(),
            heap: HeapIndex::default(),
            directories: directories.then(|| Directories::new(options.line_size)),
            waits: waits.then(LineWaits::default),
            settled: Vec::new(),
            names: FxHashMap::default(),
            labels: Vec::new(),
            looked: options.looked,
            windows: WindowSlices::default(),
            tally: Tally::default(),
            last_sample: None,
            options,
        })
    }

    /// Takes in the next batch.
    ///
    /// # Errors
    /// More values than are kept, since there are so many keys.
    pub fn feed(&mut self, batch: &Batch) -> Result<(), Refusal> {
        self.tally.add(&batch.tally);
        for due in batch.in_order() {
            match due {
                Due::Context(context) => self.context(context)?,
                Due::Allocation(event) => {
                    let space = self.spaces.of_allocation(event);
                    if self.options.per == Per::Object {
                        self.heap.apply(space, event);
                    }
                }
                Due::Access(access) => self.access(access)?,
            }
        }
        for window in &batch.windows {
            self.window(window);
        }
        Ok(())
    }

    /// Meaning of addresses, for who names code and memory.
    pub fn spaces(&self) -> &AddressSpaces {
        &self.spaces
    }

    /// Whose memory the heap is, where objects are asked for.
    pub fn heap(&self) -> &HeapIndex {
        &self.heap
    }

    /// Keys so far, the whole among them.
    pub fn keys(&self) -> Vec<Key> {
        self.cells.keys().into_iter().map(|(key, _)| key).collect()
    }

    /// Puts together keys of the same name; others stay what they are. Ends the run: nothing may be fed after.
    pub fn name(&mut self, names: &[(Key, String)]) {
        self.settle_private();
        let mut labels: Vec<String> = names.iter().map(|(_, name)| name.clone()).collect();
        labels.sort_unstable();
        labels.dedup();
        let named = names.iter().filter_map(|(key, name)| {
            let number = labels.binary_search(name).ok()?;
            Some((*key, Key::Named(number as u32)))
        });
        self.cells.merge(&named.collect());
        self.labels = labels;
    }

    /// Ends the run.
    ///
    /// # Errors
    /// More values than a table has, of keys that were to be named.
    pub fn finish(mut self) -> Result<Table, Refusal> {
        self.settle_private();
        self.cells.check_table()?;
        Ok(values::table(&self))
    }

    /// What is still waited for lines of one thread is known to be so now.
    fn settle_private(&mut self) {
        if let Some(mut waits) = self.waits.take() {
            let private = waits.private();
            self.settle(&private, false);
            self.waits = Some(waits);
        }
    }

    /// Words for a key.
    fn label(&self, key: Key) -> String {
        let mut threads = key.named_by().into_iter().flatten();
        let thread = threads.find_map(|tid| self.names.get(&tid));
        let name = match key {
            Key::Named(number) => self.labels.get(number as usize),
            _ => thread,
        };
        key.label(name.map(String::as_str))
    }

    fn access(&mut self, access: &Access) -> Result<(), Refusal> {
        self.looked.saw(access);
        let emulated = access.basis == Basis::Emulated;
        let per = self.options.per;
        let asks = per == Per::Object
            || (emulated && self.directories.is_some())
            || (!emulated && access.basis != Basis::Trapped && self.waits.is_some());
        let place = asks.then(|| {
            let (space, place) = self.spaces.place_of(access);
            if matches!(place, Place::Private { .. } | Place::Shared { .. }) {
                self.heap.touch(space, access.addr);
            }
            place
        });
        let by_code = matches!(per, Per::Function | Per::Line);
        let who = Who {
            cpu: Some(access.cpu),
            pid: access.pid,
            tid: access.tid,
            code: by_code.then(|| Key::Code {
                space: self.spaces.space(access.pid),
                ip: access.ip,
                kernel: access.kernel,
            }),
            memory: place.map(|place| place.line(self.options.line_size)),
        };
        let at = self.at(access.time_ns, who)?;
        let sampled = matches!(access.basis, Basis::Stalled | Basis::Sampled);
        let first_of_sample = match access.basis {
            Basis::Stalled => {
                let sample = Some((access.time_ns, access.cpu, access.tid));
                std::mem::replace(&mut self.last_sample, sample) != sample
            }
            _ => sampled,
        };
        if sampled {
            self.cells.mark_sampled(at);
        }
        let outcomes = match (&mut self.directories, place) {
            (Some(directories), Some(place)) if emulated => directories.serve(access, place),
            _ => &[],
        };
        self.cells.add(
            at,
            access.tid,
            &Event::Access(Observed {
                access,
                first_of_sample,
                outcomes,
            }),
        );
        if let (Some(place), false) = (place, emulated || access.basis == Basis::Trapped) {
            self.touch(access, place, at);
        }
        Ok(())
    }

    /// A sampled access may be waited for, and tells who uses its lines.
    fn touch(&mut self, access: &Access, place: Place, at: At) {
        let Some(waits) = self.waits.as_mut().filter(|_| access.op.touches()) else {
            return;
        };
        let mut wait = (access.basis == Basis::Stalled).then(|| Waited {
            key: at.key,
            slice: at.slice,
            time_ns: access.cost.0.into(),
            samples: 1,
        });
        let mut settled = std::mem::take(&mut self.settled);
        let touched: &mut dyn Iterator<Item = LineKey> =
            &mut directory::lines(access, place, self.options.line_size);
        for key in touched {
            waits.touch(key, access.tid, wait.take(), &mut settled);
        }
        self.settle(&settled, true);
        settled.clear();
        self.settled = settled;
    }

    fn settle(&mut self, waits: &[Waited], shared: bool) {
        for wait in waits {
            let event = Event::Wait {
                time_ns: wait.time_ns,
                samples: wait.samples,
                shared,
            };
            let at = At {
                key: wait.key,
                slice: wait.slice,
            };
            self.cells.add(at, Tid(0), &event);
        }
    }

    fn context(&mut self, context: &Context) -> Result<(), Refusal> {
        self.spaces.apply(context);
        let (pid, tid, event) = match &context.kind {
            ContextKind::Comm { tid, comm, .. } => {
                self.names.insert(*tid, comm.clone());
                return Ok(());
            }
            ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            } => {
                let process = pid != parent_pid;
                if process && !self.heap.is_empty() {
                    let [parent, child] = [*parent_pid, *pid].map(|pid| self.spaces.space(pid));
                    self.heap.fork(parent, child);
                }
                (*pid, *tid, Event::Started { process })
            }
            ContextKind::Exit { pid, tid } => (*pid, *tid, Event::Ended),
            _ => return Ok(()),
        };
        let who = Who {
            cpu: None,
            pid,
            tid,
            code: None,
            memory: None,
        };
        let at = self.at(context.time_ns, who)?;
        self.cells.add(at, tid, &event);
        Ok(())
    }

    fn window(&mut self, window: &Window) {
        self.looked.windows = true;
        let slices = &self.options.slices;
        let (first, last) = (slices.of(window.open_ns), slices.of(window.end_ns));
        self.windows.open(first, last.max(first));
    }

    fn at(&mut self, time_ns: u64, who: Who) -> Result<At, Refusal> {
        let slice = self.options.slices.of(time_ns);
        let key = self.options.per.key(who);
        self.cells.at(key, slice)
    }
}
