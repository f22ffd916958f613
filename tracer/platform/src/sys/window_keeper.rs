//! A thread that opens watch windows and closes them as soon as they are over, ahead of all ordinary threads.
//!
//! Whoever observes has other work, and beside hundreds of busy threads waits for its turn after some of it. A window that it
//! left armed meanwhile would trap on and on, and show nothing for it.
//!
//! ```text
//!   observer   arm ──┐                        ┌── told: the window is over ─► close
//!   keeper           └ arm, wait, disarm ─────┘
//! ```

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::{Builder, JoinHandle},
};

use rustix::event::{EventfdFlags, eventfd};

use super::{
    affinity::OnCpu,
    breakpoints::{BreakpointError, Breakpoints, Closed, Costs, WindowPlan},
    capabilities,
    poll::wait_readable,
    priority,
};
use crate::{access::Cpu, event::Breadth};

type Order = Box<dyn FnOnce(&mut Breakpoints) + Send>;

/// Breakpoints in the hands of their own thread. They go with the value.
#[derive(Debug)]
pub struct WindowKeeper {
    /// `None` only at the end.
    orders: Option<Sender<Order>>,
    /// Rung after an order.
    bell: Arc<OwnedFd>,
    ended: Arc<Ended>,
    thread: Option<JoinHandle<()>>,
    window: Option<KeptWindow>,
}

/// The window that was ordered and not closed yet.
#[derive(Debug)]
enum KeptWindow {
    /// The breakpoints are turned on; since when, or why not.
    Arming(Receiver<Result<u64, BreakpointError>>),
    /// They are on, or were until it was over.
    Armed,
}

/// A window that is over.
#[derive(Debug)]
struct Ended {
    closed: Mutex<Option<Result<Closed, BreakpointError>>>,
    /// Readable while there is one.
    told: OwnedFd,
}

impl Ended {
    fn take(&self) -> Option<Result<Closed, BreakpointError>> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        hush(&self.told);
        closed.take()
    }

    fn put(&self, result: Result<Closed, BreakpointError>) {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        *closed = Some(result);
        ring(&self.told);
    }
}

impl WindowKeeper {
    /// Starts the thread. Without the right to run ahead of others it runs beside them.
    pub fn start(mut breakpoints: Breakpoints) -> io::Result<WindowKeeper> {
        let (orders, waiting) = channel::<Order>();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags)?);
        let ended = Arc::new(Ended {
            closed: Mutex::new(None),
            told: eventfd(0, flags)?,
        });
        let rights = capabilities::for_events();
        let thread = {
            let (bell, ended) = (bell.clone(), ended.clone());
            Builder::new().name("windows".to_owned()).spawn(move || {
                // Where no right can be given up, none but these is used.
                let _ = capabilities::keep(rights);
                priority::ahead_of_ordinary_threads();
                keep(&mut breakpoints, &waiting, &bell, &ended);
            })?
        };
        Ok(WindowKeeper {
            orders: Some(orders),
            bell,
            ended,
            thread: Some(thread),
            window: None,
        })
    }

    /// Becomes readable when the window is over, or was refused.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.ended.told.as_fd()
    }

    /// Whether the window is over, and waits to be taken by [`WindowKeeper::close`].
    pub fn is_over(&self) -> bool {
        let closed = self.ended.closed.lock();
        closed.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether a window was ordered that was neither refused nor closed.
    #[cfg(test)]
    pub(super) fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Orders a window as [`Breakpoints::arm`] has it, to be opened from that CPU, and does not wait for it. There must be none, and
    /// what becomes of it is to be asked: [`WindowKeeper::refusal`], [`WindowKeeper::is_over`].
    pub fn arm(&mut self, plan: &WindowPlan<'_>, from: Cpu) {
        let (words, threads) = (plan.words.to_vec(), plan.threads.to_vec());
        let (number, hit_limit, duration_ns) = (plan.number, plan.hit_limit, plan.duration_ns);
        let ended = self.ended.clone();
        let (send, since) = channel();
        self.send(move |breakpoints| {
            let _from = OnCpu::move_to(from).ok();
            let armed = breakpoints.arm(&WindowPlan {
                number,
                words: &words,
                threads: &threads,
                hit_limit,
                duration_ns,
            });
            let is_refused = armed.is_err();
            let _ = send.send(armed);
            if is_refused {
                ring(&ended.told);
            }
        });
        self.window = Some(KeptWindow::Arming(since));
    }

    /// Why there is no window although one was ordered; told once.
    pub fn refusal(&mut self) -> Option<BreakpointError> {
        let Some(KeptWindow::Arming(since)) = &self.window else {
            return None;
        };
        let answer = match since.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(gone()),
        };
        match answer {
            Ok(_) => {
                self.window = Some(KeptWindow::Armed);
                None
            }
            Err(error) => {
                self.window = None;
                hush(&self.ended.told);
                Some(error)
            }
        }
    }

    /// Closes the window, or takes what became of it when it was over; as [`Breakpoints::disarm`]. One that is being opened is waited
    /// for.
    pub fn close(&mut self) -> Result<Closed, BreakpointError> {
        if let Some(KeptWindow::Arming(since)) = self.window.take() {
            let refused = since.recv().map_err(|_| gone()).flatten().err();
            if let Some(error) = refused {
                hush(&self.ended.told);
                return Err(error);
            }
        }
        let closed = self.ask(|breakpoints| {
            let is_open = breakpoints.time_left().is_some();
            is_open.then(|| breakpoints.disarm())
        })?;
        let over = || self.ended.take();
        (closed.or_else(over)).unwrap_or(Err(BreakpointError::Plan("none is open")))
    }

    /// As [`Breakpoints::reopen`].
    pub fn reopen(&mut self, cpus: &[Cpu], wanted: usize) -> Result<(), BreakpointError> {
        let cpus = cpus.to_vec();
        self.ask(move |breakpoints| breakpoints.reopen(&cpus, wanted))?
    }

    /// Addresses that can be watched at once, where, and what it costs.
    pub fn offer(&self) -> Result<(usize, Breadth, Costs), BreakpointError> {
        self.ask(|breakpoints| {
            let (slots, breadth) = (breakpoints.slots(), breakpoints.breadth());
            (slots, breadth, breakpoints.costs())
        })
    }

    /// Has the thread do something, and waits for it.
    fn ask<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Breakpoints) -> R + Send + 'static,
    ) -> Result<R, BreakpointError> {
        let (send, receive) = channel();
        self.send(move |breakpoints| {
            // Whoever asked waits.
            let _ = send.send(order(breakpoints));
        });
        receive.recv().map_err(|_| gone())
    }

    fn send(&self, order: impl FnOnce(&mut Breakpoints) + Send + 'static) {
        if let Some(orders) = &self.orders {
            // The thread's end shows where an answer is waited for.
            let _ = orders.send(Box::new(order));
        }
        ring(&self.bell);
    }
}

fn gone() -> BreakpointError {
    BreakpointError::System {
        what: "asking the thread that keeps the windows",
        source: io::ErrorKind::BrokenPipe.into(),
    }
}

impl Drop for WindowKeeper {
    fn drop(&mut self) {
        self.orders = None;
        ring(&self.bell);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

/// Does what it is asked for, and closes the open window when it is over.
fn keep(breakpoints: &mut Breakpoints, orders: &Receiver<Order>, bell: &OwnedFd, ended: &Ended) {
    loop {
        let Some(left) = breakpoints.time_left() else {
            match orders.recv() {
                Ok(order) => order(breakpoints),
                Err(_) => return,
            }
            continue;
        };
        let woken = wait_readable(&[bell.as_fd(), breakpoints.told()], left);
        hush(bell);
        loop {
            match orders.try_recv() {
                Ok(order) => order(breakpoints),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        // What cannot be waited for is not left open.
        if woken.is_err() || breakpoints.over().is_some() {
            ended.put(breakpoints.disarm());
        }
    }
}

/// Makes a counter of events readable. It is full only after as many rings as it has numbers.
fn ring(counter: &OwnedFd) {
    let _ = rustix::io::write(counter, &1_u64.to_ne_bytes());
}

/// Makes it unreadable.
fn hush(counter: &OwnedFd) {
    let _ = rustix::io::read(counter, &mut [0; 8]);
}
