//! Work that falls into parts which know nothing of each other, such as the lines of an order, on several threads: what
//! concerns a part goes to one of them, in order. What is found does not depend on the number of threads.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

/// Steps that go to a thread at a time.
const CHUNK: usize = 1 << 12;
/// Chunks that wait for a thread.
const WAITING: usize = 8;

/// A part of the work.
pub(super) trait Part: Send + 'static {
    /// What comes all the time.
    type Step: Send + 'static;
    /// What comes now and then.
    type Told: Send + 'static;

    fn take(&mut self, step: &Self::Step);
    fn told(&mut self, what: Self::Told);
}

enum Message<P: Part> {
    Steps(usize, Vec<P::Step>),
    Told(usize, P::Told),
}

struct Worker<P: Part> {
    messages: SyncSender<Message<P>>,
    thread: JoinHandle<Vec<P>>,
}

/// All parts, here or on threads of their own.
pub(super) struct Parts<P: Part>(Where<P>);

enum Where<P: Part> {
    Here(Vec<P>),
    There {
        workers: Vec<Worker<P>>,
        /// By part.
        open: Vec<Vec<P::Step>>,
    },
}

impl<P: Part> Parts<P> {
    /// As many parts as `new` is asked for, at least one; on threads where there are several and the machine has
    /// processors for them.
    pub(super) fn new(count: usize, new: impl Fn() -> P) -> Parts<P> {
        let count = count.max(1);
        let processors = thread::available_parallelism().map_or(1, Into::into);
        let threads = processors.min(count);
        if threads > 1 {
            let of_thread = |first| (first..count).step_by(threads).map(|_| new()).collect();
            let workers: Option<Vec<Worker<P>>> = (0..threads)
                .map(|first| Worker::start(of_thread(first)))
                .collect();
            if let Some(workers) = workers {
                let open = (0..count).map(|_| Vec::with_capacity(CHUNK)).collect();
                return Parts(Where::There { workers, open });
            }
        }
        Parts(Where::Here((0..count).map(|_| new()).collect()))
    }

    pub(super) fn count(&self) -> usize {
        match &self.0 {
            Where::Here(parts) => parts.len(),
            Where::There { open, .. } => open.len(),
        }
    }

    /// Gives a part its next step.
    pub(super) fn take(&mut self, part: usize, step: P::Step) {
        match &mut self.0 {
            Where::Here(parts) => parts[part].take(&step),
            Where::There { workers, open } => {
                open[part].push(step);
                if open[part].len() >= CHUNK {
                    send(workers, open, part);
                }
            }
        }
    }

    /// Tells a part something, behind what it was given.
    pub(super) fn tell(&mut self, part: usize, what: P::Told) {
        match &mut self.0 {
            Where::Here(parts) => parts[part].told(what),
            Where::There { workers, open } => {
                send(workers, open, part);
                let threads = workers.len();
                workers[part % threads].send(Message::Told(part / threads, what));
            }
        }
    }

    /// The parts as they are in the end, in order.
    pub(super) fn finish(self) -> Vec<P> {
        match self.0 {
            Where::Here(parts) => parts,
            Where::There { workers, mut open } => {
                for part in 0..open.len() {
                    send(&workers, &mut open, part);
                }
                let threads = workers.len();
                let mut done: Vec<_> = (workers.into_iter())
                    .map(|worker| worker.finish().into_iter())
                    .collect();
                let parts = 0..open.len();
                parts
                    .filter_map(|part| done[part % threads].next())
                    .collect()
            }
        }
    }
}

/// Sends the open chunk of a part to its thread.
fn send<P: Part>(workers: &[Worker<P>], open: &mut [Vec<P::Step>], part: usize) {
    if !open[part].is_empty() {
        let steps = std::mem::replace(&mut open[part], Vec::with_capacity(CHUNK));
        let threads = workers.len();
        workers[part % threads].send(Message::Steps(part / threads, steps));
    }
}

impl<P: Part> Worker<P> {
    /// `None` when the system gives no thread.
    fn start(parts: Vec<P>) -> Option<Worker<P>> {
        let (messages, received) = sync_channel(WAITING);
        let named = thread::Builder::new().name("fold".to_owned());
        let thread = named.spawn(move || work(parts, &received)).ok()?;
        Some(Worker { messages, thread })
    }

    /// A thread that is gone has panicked, which its end tells.
    fn send(&self, message: Message<P>) {
        drop(self.messages.send(message));
    }

    fn finish(self) -> Vec<P> {
        drop(self.messages);
        match self.thread.join() {
            Ok(parts) => parts,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn work<P: Part>(mut parts: Vec<P>, received: &Receiver<Message<P>>) -> Vec<P> {
    for message in received {
        match message {
            Message::Steps(part, steps) => {
                for step in &steps {
                    parts[part].take(step);
                }
            }
            Message::Told(part, what) => parts[part].told(what),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a part got, in order.
    #[derive(Default)]
    struct Log(Vec<u64>);

    impl Part for Log {
        type Step = u64;
        type Told = u64;

        fn take(&mut self, step: &u64) {
            self.0.push(*step);
        }

        fn told(&mut self, what: u64) {
            self.0.push(what);
        }
    }

    #[test]
    fn each_part_gets_what_is_its_own_in_order() {
        for count in [1, 2, 5] {
            let mut parts = Parts::new(count, Log::default);
            assert_eq!(parts.count(), count);
            for n in 0..3 * CHUNK as u64 {
                let part = n as usize % count;
                if n.is_multiple_of(1000) {
                    parts.tell(part, n);
                } else {
                    parts.take(part, n);
                }
            }
            for (part, log) in parts.finish().into_iter().enumerate() {
                let own = (0..3 * CHUNK as u64).filter(|n| *n as usize % count == part);
                assert!(log.0.into_iter().eq(own), "part {part} of {count}");
            }
        }
    }
}
