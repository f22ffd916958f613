//! Closes events one after the other, in a thread of its own: each takes some 80 ms.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
};

use crate::sys::perf_event::PerfEvent;

/// The thread, from outside. It ends with the value, and waits for all to be closed.
#[derive(Default)]
pub(super) struct Closing {
    thread: Option<(Sender<PerfEvent>, JoinHandle<()>)>,
    waiting: Arc<Mutex<usize>>,
}

impl Closing {
    /// Events that wait to be closed.
    pub(super) fn waiting(&self) -> usize {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes events. Does not wait.
    pub(super) fn close(&mut self, events: Vec<PerfEvent>) {
        let add = |waiting: &Mutex<usize>, done: bool| {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            *waiting = if done {
                waiting.saturating_sub(1)
            } else {
                *waiting + 1
            };
        };
        if self.thread.is_none() && !events.is_empty() {
            let (sender, inbox) = mpsc::channel::<PerfEvent>();
            let waiting = self.waiting.clone();
            let thread = std::thread::Builder::new()
                .name("heap-closing".to_owned())
                .spawn(move || {
                    for event in inbox {
                        drop(event);
                        add(&waiting, true);
                    }
                });
            self.thread = thread.ok().map(|thread| (sender, thread));
        }
        for event in events {
            add(&self.waiting, false);
            // Without a thread it is dropped here.
            match &self.thread {
                Some((sender, _)) => drop(sender.send(event)),
                None => add(&self.waiting, true),
            }
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
