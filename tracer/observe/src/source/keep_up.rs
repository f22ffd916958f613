//! Empties the rings while the thread that reads them is busy with something else: with a file of symbols, a compiler's
//! table, a slow disk. What they hold meanwhile is kept aside, in its order, for that thread's next look.
//!
//! ```text
//!   reader   look ── lend ── names, decodes, writes ────────── take back ── look: what was kept, then the rings
//!   keeper                   waits, empties, waits, empties ──►
//! ```

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

use super::cpu_events::CpuRings;
use crate::{
    machine::Capabilities,
    sys::{capabilities, priority::Urgent},
};

/// So long the rings are left alone: the smallest hold a multiple of what comes meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes kept aside at most; then the rings fill up, and what they lose is counted as ever. A minute of two busy CPUs.
const MOST_BYTES: usize = 64 << 20;

/// Records end to end.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    /// Keeps a record.
    pub(super) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// All records, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[*start..*end])
    }
}

/// What was kept aside.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Of the kernel half.
    pub(super) samples: Records,
    /// Of perf itself.
    pub(super) sideband: Records,
}

impl Aside {
    /// Whether nothing was.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.ends.is_empty() && self.sideband.ends.is_empty()
    }

    fn bytes(&self) -> usize {
        self.samples.bytes.len() + self.sideband.bytes.len()
    }
}

/// Something that fills up.
pub(super) trait Rings: Send + 'static {
    /// Takes out all that is there.
    fn empty(&mut self, aside: &mut Aside);
}

impl Rings for Vec<CpuRings> {
    /// Samples first: every mapping that one of them needs is in the side-band by then.
    fn empty(&mut self, aside: &mut Aside) {
        for rings in &mut *self {
            rings.samples.drain(|record| aside.samples.push(record));
        }
        for rings in self {
            rings.sideband.drain(|record| aside.sideband.push(record));
        }
    }
}

enum Message<R> {
    Lend(R),
    TakeBack,
}

/// The keeper, from outside. It ends with the value.
pub(super) struct KeepUp<R: Rings> {
    messages: Option<Sender<Message<R>>>,
    returned: Receiver<(R, Aside)>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Rings> KeepUp<R> {
    /// Starts the thread.
    pub(super) fn start() -> std::io::Result<KeepUp<R>> {
        let (messages, inbox) = channel();
        let (outbox, returned) = channel();
        let thread = Builder::new().name("rings".to_owned()).spawn(move || {
            // As the reader has it. Without the right it is as it was.
            let _urgent = Urgent::raise().ok();
            // What is open already takes none.
            let _ = capabilities::keep(Capabilities::of(&[]));
            keep(&inbox, &outbox);
        })?;
        Ok(KeepUp {
            messages: Some(messages),
            returned,
            thread: Some(thread),
        })
    }

    /// Lends the rings.
    pub(super) fn lend(&self, rings: R) {
        self.tell(Message::Lend(rings));
    }

    /// Takes back rings that were lent; `None` where the keeper is no more.
    pub(super) fn take_back(&self) -> Option<(R, Aside)> {
        self.tell(Message::TakeBack);
        self.returned.recv().ok()
    }

    fn tell(&self, message: Message<R>) {
        if let Some(messages) = &self.messages {
            // Its end shows when the rings are to come back.
            let _ = messages.send(message);
        }
    }
}

impl<R: Rings> Drop for KeepUp<R> {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep<R: Rings>(inbox: &Receiver<Message<R>>, outbox: &Sender<(R, Aside)>) {
    while let Ok(message) = inbox.recv() {
        let Message::Lend(mut rings) = message else {
            continue;
        };
        let mut aside = Aside::default();
        loop {
            match inbox.recv_timeout(PATIENCE) {
                Ok(_) => break,
                Err(RecvTimeoutError::Timeout) if aside.bytes() < MOST_BYTES => {
                    rings.empty(&mut aside);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if outbox.send((rings, aside)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        thread::{sleep, spawn},
        time::Instant,
    };

    use super::*;

    /// A ring with room for so few records that it must be emptied every now and then.
    #[derive(Clone, Default)]
    struct Small(Arc<Mutex<(Vec<u32>, u32)>>);

    const ROOM: usize = 200;

    impl Small {
        fn write(&self, number: u32) {
            let mut ring = self.0.lock().unwrap();
            if ring.0.len() < ROOM {
                ring.0.push(number);
            } else {
                ring.1 += 1;
            }
        }

        fn lost(&self) -> u32 {
            self.0.lock().unwrap().1
        }
    }

    impl Rings for Small {
        fn empty(&mut self, aside: &mut Aside) {
            for number in self.0.lock().unwrap().0.drain(..) {
                aside.samples.push(&number.to_le_bytes());
            }
        }
    }

    /// A writer of a record every 0.5 ms beside a reader that is busy for half a second, with the rings lent or not.
    fn numbers(lends: bool) -> (Vec<u32>, u32) {
        let ring = Small::default();
        let keeper = KeepUp::start().unwrap();
        if lends {
            keeper.lend(ring.clone());
        }
        let writer = spawn({
            let ring = ring.clone();
            move || {
                let start = Instant::now();
                for number in 0..1000 {
                    ring.write(number);
                    let due = start + Duration::from_micros(500) * number;
                    sleep(due.saturating_duration_since(Instant::now()));
                }
            }
        });
        sleep(Duration::from_millis(500));
        writer.join().unwrap();
        let (mut rings, mut aside) = if lends {
            keeper.take_back().unwrap()
        } else {
            (ring.clone(), Aside::default())
        };
        rings.empty(&mut aside);
        let read = |record: &[u8]| u32::from_le_bytes(record.try_into().unwrap());
        (aside.samples.iter().map(read).collect(), ring.lost())
    }

    #[test]
    fn nothing_is_lost_while_the_reader_is_busy_and_without_the_keeper_it_is() {
        let (kept, lost) = numbers(true);
        assert_eq!(lost, 0);
        assert_eq!(kept, (0..1000).collect::<Vec<u32>>());
        let (kept, lost) = numbers(false);
        assert_eq!((kept.len(), lost), (ROOM, 1000 - ROOM as u32));
    }

    #[test]
    fn rings_come_back_as_often_as_they_are_lent_and_at_once() {
        let keeper = KeepUp::start().unwrap();
        let mut ring = Small::default();
        for number in 0..100 {
            ring.write(number);
            keeper.lend(ring);
            let (back, aside) = keeper.take_back().unwrap();
            ring = back;
            assert!(aside.is_empty() || number > 0);
        }
        drop(keeper);
    }
}
