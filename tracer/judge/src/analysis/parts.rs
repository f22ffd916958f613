//! Work that falls into parts which know nothing of each other, such as the lines of an order, on several threads: what
//! concerns a part goes to one of them, in order. What is found does not depend on the number of threads.

use std::{
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

/// Steps that go to a part at a time.
const CHUNK: usize = 1 << 12;
/// Steps whose lines are looked at before the first of them is served.
const AHEAD: usize = 128;
/// Messages that wait for a thread.
const WAITING: usize = 8;
/// Groups of parts at most, each of which is on one thread.
const GROUPS: usize = 8;

/// A part of the work.
pub(super) trait Part: Send + 'static {
    /// What the parts of a group fill together: too much for each part to have its own.
    type Common: Default + Send + 'static;
    /// What comes all the time.
    type Step: Send + 'static;
    /// What comes now and then.
    type Told: Send + 'static;
    /// Where a part has what a step concerns.
    type Line: Copy;

    /// Where it is, made where it is new; `None` where there is no room for more.
    fn line(&mut self, step: &Self::Step) -> Option<Self::Line>;
    /// Looks at what these steps on these lines will need, so that it comes from memory for all of them at the same time, and
    /// not for one after the other.
    fn look_at(&self, steps: &[Self::Step], lines: &[Option<Self::Line>]);
    /// The next step, in order.
    fn serve(&mut self, step: &Self::Step, line: Option<Self::Line>, common: &mut Self::Common);
    fn told(&mut self, what: Self::Told, common: &mut Self::Common);
}

/// For a part.
enum Message<P: Part> {
    Steps(Vec<P::Step>),
    Told(P::Told),
}

/// One part in [`GROUPS`], in order.
struct Group<P: Part> {
    parts: Vec<P>,
    common: P::Common,
}

impl<P: Part> Group<P> {
    fn take(&mut self, part: usize, message: Message<P>) {
        let part = &mut self.parts[part];
        match message {
            Message::Steps(steps) => {
                for steps in steps.chunks(AHEAD) {
                    let mut lines = [None; AHEAD];
                    let lines = &mut lines[..steps.len()];
                    for (line, step) in lines.iter_mut().zip(steps) {
                        *line = part.line(step);
                    }
                    part.look_at(steps, lines);
                    for (step, line) in steps.iter().zip(lines) {
                        part.serve(step, *line, &mut self.common);
                    }
                }
            }
            Message::Told(what) => part.told(what, &mut self.common),
        }
    }
}

/// Groups on a thread of their own.
struct Worker<P: Part> {
    /// With the numbers of the group among those of the thread and of the part among those of the group.
    messages: SyncSender<(usize, usize, Message<P>)>,
    thread: JoinHandle<Vec<Group<P>>>,
}

enum Where<P: Part> {
    Here(Vec<Group<P>>),
    There(Vec<Worker<P>>),
}

/// All parts, here or on threads of their own.
pub(super) struct Parts<P: Part> {
    groups: usize,
    place: Where<P>,
    /// Steps that were not sent yet, by part.
    open: Vec<Vec<P::Step>>,
}

impl<P: Part> Parts<P> {
    /// As many parts, at least one, each by its number; on threads where there are several and the machine has processors
    /// for them.
    pub(super) fn new(count: usize, new: impl Fn(usize) -> P) -> Parts<P> {
        let count = count.max(1);
        let groups = count.min(GROUPS);
        let group = |first| Group {
            parts: (first..count).step_by(groups).map(&new).collect(),
            common: P::Common::default(),
        };
        let processors = thread::available_parallelism().map_or(1, Into::into);
        let threads = processors.min(groups);
        let start = |first| Worker::start((first..groups).step_by(threads).map(group).collect());
        let workers = (threads > 1).then(|| (0..threads).map(start).collect::<Option<_>>());
        let place = workers.flatten().map_or_else(
            || Where::Here((0..groups).map(group).collect()),
            Where::There,
        );
        Parts {
            groups,
            place,
            open: (0..count).map(|_| Vec::new()).collect(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Gives a part its next step.
    #[inline]
    pub(super) fn take(&mut self, part: usize, step: P::Step) {
        let open = &mut self.open[part];
        open.push(step);
        if open.len() >= CHUNK {
            let steps = std::mem::replace(open, Vec::with_capacity(CHUNK));
            self.send(part, Message::Steps(steps));
        }
    }

    /// Tells a part something, behind what it was given.
    pub(super) fn tell(&mut self, part: usize, what: P::Told) {
        self.send_open(part);
        self.send(part, Message::Told(what));
    }

    fn send_open(&mut self, part: usize) {
        let steps = std::mem::take(&mut self.open[part]);
        if !steps.is_empty() {
            self.send(part, Message::Steps(steps));
        }
    }

    fn send(&mut self, part: usize, message: Message<P>) {
        let (group, part) = (part % self.groups, part / self.groups);
        match &mut self.place {
            Where::Here(groups) => groups[group].take(part, message),
            Where::There(workers) => {
                let threads = workers.len();
                workers[group % threads].send((group / threads, part, message));
            }
        }
    }

    /// The parts as they are in the end, in order, and what those of each group filled together.
    pub(super) fn finish(mut self) -> (Vec<P>, Vec<P::Common>) {
        for part in 0..self.open.len() {
            self.send_open(part);
        }
        let groups: Vec<Group<P>> = match self.place {
            Where::Here(groups) => groups,
            Where::There(workers) => {
                let done = workers.into_iter().map(Worker::finish);
                in_turn(done.map(Vec::into_iter).collect()).collect()
            }
        };
        let (parts, common): (Vec<_>, _) = (groups.into_iter())
            .map(|group| (group.parts.into_iter(), group.common))
            .unzip();
        (in_turn(parts).collect(), common)
    }
}

/// The first of each, the second of each, and so on.
fn in_turn<T>(mut all: Vec<std::vec::IntoIter<T>>) -> impl Iterator<Item = T> {
    let turns = (0..all.len()).cycle();
    turns.map_while(move |turn| all[turn].next())
}

impl<P: Part> Worker<P> {
    /// `None` when the system gives no thread.
    fn start(groups: Vec<Group<P>>) -> Option<Worker<P>> {
        let (messages, received) = sync_channel(WAITING);
        let named = thread::Builder::new().name("fold".to_owned());
        let thread = named.spawn(move || work(groups, &received)).ok()?;
        Some(Worker { messages, thread })
    }

    /// A thread that is gone has panicked, which its end tells.
    fn send(&self, message: (usize, usize, Message<P>)) {
        drop(self.messages.send(message));
    }

    fn finish(self) -> Vec<Group<P>> {
        drop(self.messages);
        match self.thread.join() {
            Ok(groups) => groups,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn work<P: Part>(
    mut groups: Vec<Group<P>>,
    received: &Receiver<(usize, usize, Message<P>)>,
) -> Vec<Group<P>> {
    for (group, part, message) in received {
        groups[group].take(part, message);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a part got, in order.
    #[derive(Default)]
    struct Log(Vec<u64>);

    impl Part for Log {
        type Common = u64;
        type Step = u64;
        type Told = u64;
        type Line = u64;

        fn line(&mut self, step: &u64) -> Option<u64> {
            Some(*step)
        }

        fn look_at(&self, steps: &[u64], lines: &[Option<u64>]) {
            assert!(steps.iter().copied().map(Some).eq(lines.iter().copied()));
        }

        fn serve(&mut self, step: &u64, line: Option<u64>, common: &mut u64) {
            assert_eq!(line, Some(*step));
            self.0.push(*step);
            *common += 1;
        }

        fn told(&mut self, what: u64, _: &mut u64) {
            self.0.push(what);
        }
    }

    #[test]
    fn each_part_gets_what_is_its_own_in_order() {
        for count in [1, 2, 5, 8, 21] {
            let mut parts = Parts::new(count, |_| Log::default());
            assert_eq!(parts.count(), count);
            for n in 0..3 * CHUNK as u64 {
                let part = n as usize % count;
                if n.is_multiple_of(1000) {
                    parts.tell(part, n);
                } else {
                    parts.take(part, n);
                }
            }
            let (logs, taken) = parts.finish();
            let told = (0..3 * CHUNK as u64).filter(|n| n.is_multiple_of(1000));
            assert_eq!(
                taken.into_iter().sum::<u64>() as usize,
                3 * CHUNK - told.count()
            );
            for (part, log) in logs.into_iter().enumerate() {
                let own = (0..3 * CHUNK as u64).filter(|n| *n as usize % count == part);
                assert!(log.0.into_iter().eq(own), "part {part} of {count}");
            }
        }
    }
}
