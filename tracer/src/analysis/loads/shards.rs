//! Parts of memory on several threads: each line's accesses go to one of them, in order.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

use super::{
    LoadOptions,
    shard::{Shard, ShardLoads, Step, mixed},
};

/// Accesses that go to a thread at a time.
const CHUNK: usize = 1 << 12;
/// Chunks that wait for a thread.
const WAITING: usize = 8;

/// What a thread is told.
pub(super) enum Told {
    Steps(usize, Vec<Step>),
    Window(usize, Vec<Step>),
    EndOrder,
}

pub(super) struct Worker {
    tell: SyncSender<Told>,
    thread: JoinHandle<Vec<ShardLoads>>,
}

/// Shards, here or on threads of their own.
pub(super) enum Shards {
    Here(Vec<Shard>),
    There {
        workers: Vec<Worker>,
        /// By shard.
        open: Vec<Vec<Step>>,
    },
}

impl Shards {
    /// As many as the options say; on threads where there are several and the machine has processors for them.
    pub(super) fn new(options: &LoadOptions) -> Shards {
        let count = options.shards.max(1);
        let threads = thread::available_parallelism().map_or(1, Into::into);
        let threads = threads.min(count);
        if threads > 1
            && let Some(workers) = (0..threads)
                .map(|first| Worker::start(options, (first..count).step_by(threads).count()))
                .collect()
        {
            let open = vec![Vec::with_capacity(CHUNK); count];
            return Shards::There { workers, open };
        }
        Shards::Here((0..count).map(|_| Shard::new(options)).collect())
    }

    /// Takes the next access of its line.
    pub(super) fn take(&mut self, step: Step) {
        match self {
            Shards::Here(shards) => {
                let at = shard_of(&step, shards.len());
                shards[at].take(&step);
            }
            Shards::There { workers, open } => {
                let shard = shard_of(&step, open.len());
                open[shard].push(step);
                if open[shard].len() >= CHUNK {
                    send(workers, open, shard);
                }
            }
        }
    }

    /// Takes the accesses of a window.
    pub(super) fn take_window(&mut self, steps: Vec<Step>) {
        let Some(first) = steps.first() else { return };
        match self {
            Shards::Here(shards) => {
                let at = shard_of(first, shards.len());
                shards[at].take_window(steps);
            }
            Shards::There { workers, open } => {
                let shard = shard_of(first, open.len());
                let threads = workers.len();
                workers[shard % threads].tell(Told::Window(shard / threads, steps));
            }
        }
    }

    /// What comes next is another order.
    pub(super) fn end_order(&mut self) {
        match self {
            Shards::Here(shards) => shards.iter_mut().for_each(Shard::end_order),
            Shards::There { workers, open } => {
                for shard in 0..open.len() {
                    send(workers, open, shard);
                }
                for worker in workers {
                    worker.tell(Told::EndOrder);
                }
            }
        }
    }

    /// What each found, in the order of the shards' numbers.
    pub(super) fn finish(self) -> Vec<ShardLoads> {
        match self {
            Shards::Here(shards) => shards.into_iter().map(Shard::finish).collect(),
            Shards::There { workers, open } => {
                let threads = workers.len();
                let mut found: Vec<_> = (workers.into_iter())
                    .map(|worker| worker.finish().into_iter())
                    .collect();
                let numbers = 0..open.len();
                numbers
                    .filter_map(|shard| found[shard % threads].next())
                    .collect()
            }
        }
    }
}

fn shard_of(step: &Step, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    // The low bits say which lines' streaks are kept.
    (mixed(step.key) >> 48) as usize % shards
}

/// Sends the open chunk of a shard to its thread.
fn send(workers: &[Worker], open: &mut [Vec<Step>], shard: usize) {
    let steps = std::mem::replace(&mut open[shard], Vec::with_capacity(CHUNK));
    if !steps.is_empty() {
        let threads = workers.len();
        workers[shard % threads].tell(Told::Steps(shard / threads, steps));
    }
}

impl Worker {
    /// `None` when the system gives no thread.
    fn start(options: &LoadOptions, shards: usize) -> Option<Worker> {
        let (tell, told) = sync_channel(WAITING);
        let shards: Vec<Shard> = (0..shards).map(|_| Shard::new(options)).collect();
        let named = thread::Builder::new().name("fold".to_owned());
        let thread = named.spawn(move || fold(shards, &told)).ok()?;
        Some(Worker { tell, thread })
    }

    /// A thread that is gone has panicked, which its end tells.
    fn tell(&self, what: Told) {
        drop(self.tell.send(what));
    }

    fn finish(self) -> Vec<ShardLoads> {
        drop(self.tell);
        match self.thread.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn fold(mut shards: Vec<Shard>, told: &Receiver<Told>) -> Vec<ShardLoads> {
    for what in told {
        match what {
            Told::Steps(shard, steps) => {
                for step in &steps {
                    shards[shard].take(step);
                }
            }
            Told::Window(shard, steps) => shards[shard].take_window(steps),
            Told::EndOrder => shards.iter_mut().for_each(Shard::end_order),
        }
    }
    shards.into_iter().map(Shard::finish).collect()
}
