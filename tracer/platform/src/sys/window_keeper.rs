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
    time::Duration,
};

use rustix::event::{EventfdFlags, eventfd};

use super::{
    affinity::OnCpu,
    breakpoints::{BreakpointError, Breakpoints, Closed, Costs, WindowPlan},
    capabilities,
    clock::monotonic_ns,
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
    /// CLOCK_MONOTONIC nanoseconds at which the open window is over at the latest.
    deadline_ns: Option<u64>,
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
            deadline_ns: None,
        })
    }

    /// Becomes readable when the open window is over.
    pub fn told(&self) -> BorrowedFd<'_> {
        self.ended.told.as_fd()
    }

    /// Whether the open window is over, and waits to be taken by [`WindowKeeper::close`].
    pub fn is_over(&self) -> bool {
        let closed = self.ended.closed.lock();
        closed.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Time until the open window is over whatever comes; `None` when none is open.
    pub fn time_left(&self) -> Option<Duration> {
        let left_ns = self.deadline_ns?.saturating_sub(monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }

    /// As [`Breakpoints::arm`], from that CPU.
    pub fn arm(&mut self, plan: &WindowPlan<'_>, from: Cpu) -> Result<u64, BreakpointError> {
        let (words, threads) = (plan.words.to_vec(), plan.threads.to_vec());
        let (number, hit_limit, duration_ns) = (plan.number, plan.hit_limit, plan.duration_ns);
        let open_ns = self.ask(move |breakpoints| {
            let _from = OnCpu::move_to(from).ok();
            breakpoints.arm(&WindowPlan {
                number,
                words: &words,
                threads: &threads,
                hit_limit,
                duration_ns,
            })
        })??;
        self.deadline_ns = Some(open_ns.saturating_add(duration_ns));
        Ok(open_ns)
    }

    /// Closes the window, or takes what became of it when it was over; as [`Breakpoints::disarm`].
    pub fn close(&mut self) -> Result<Closed, BreakpointError> {
        self.deadline_ns = None;
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
        let order: Order = Box::new(move |breakpoints| {
            // Whoever asked waits.
            let _ = send.send(order(breakpoints));
        });
        if let Some(orders) = &self.orders {
            // Its end shows below.
            let _ = orders.send(order);
        }
        ring(&self.bell);
        let ended = |_| BreakpointError::System {
            what: "asking the thread that keeps the windows",
            source: io::ErrorKind::BrokenPipe.into(),
        };
        receive.recv().map_err(ended)
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
