//! The breakpoint registers of a run, and how they are armed.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    bpf::OnHit,
    breakpoint_cost::OWN_THREAD,
    breakpoints::BreakpointError,
    cpu_crew::Crew,
    perf_event::{self, Attributes, OpenError, PerfEvent, Scope},
    rendezvous::Rendezvous,
};
use crate::{
    access::{Cpu, Tid},
    event::Breadth,
};

/// Where breakpoints are, or will be.
#[derive(Debug)]
pub(super) enum Slots {
    /// Each slot is on every CPU.
    Cpus {
        /// Slots of each CPU.
        slots: usize,
        /// Each CPU's events; disabled while not armed, which holds the register all the same.
        crew: Crew<CpuSlots>,
        /// Whose limits were counted down since they were armed last: CPU, and bit n for slot n.
        fired: Vec<(Cpu, u64)>,
    },
    /// One event for each thread and slot, while armed.
    Threads {
        /// Slots of each thread.
        slots: usize,
        /// The open events.
        armed: Vec<PerfEvent>,
    },
}

/// The slots of one CPU.
#[derive(Debug)]
pub(super) struct CpuSlots {
    cpu: Cpu,
    events: Vec<CpuEvent>,
}

#[derive(Debug)]
struct CpuEvent {
    event: PerfEvent,
    /// The event's limit is 1, otherwise 0. The limit adds up: raised twice, the first skipped hit would not
    /// disable the event.
    is_limited: bool,
}

/// What to arm.
#[derive(Debug, Clone)]
pub(super) struct Arming {
    /// The breakpoints, for the first slots.
    pub places: Vec<Attributes>,
    /// A hit for which the program returns 1 turns its event off.
    pub limited: bool,
    /// All CPUs by appointment; otherwise each as soon as it hears of it.
    pub together: bool,
}

/// When CPUs turn breakpoints on, counted from the order, try after try: one that cannot be interrupted by another before it has
/// an interrupt of its own (every 1 to 10 ms) must have heard of it by then.
const APPOINTMENTS: [Duration; 3] = [
    Duration::from_millis(12),
    Duration::from_millis(25),
    Duration::from_millis(50),
];
/// How long those that are there wait for the others: what waits is the targets' time.
const PATIENCE: Duration = Duration::from_micros(500);

/// Where breakpoints lie while they are not armed; nobody touches it.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// A breakpoint that nobody hits.
pub(super) fn idle() -> Attributes {
    perf_event::data_breakpoint(IDLE.as_ptr() as u64, 8)
}

impl Slots {
    /// Reserves up to `wanted` slots, each on all the CPUs. `None` when there is none, or when this user may
    /// watch no CPU.
    pub(super) fn on_cpus(
        program: &OnHit,
        cpus: &[Cpu],
        wanted: usize,
    ) -> Result<Option<Slots>, BreakpointError> {
        let crew = Crew::start(cpus, |cpu| CpuSlots {
            cpu,
            events: Vec::new(),
        })
        .map_err(system("starting a thread on each CPU"))?;
        let mut slots = 0;
        while slots < wanted {
            let program = program.clone();
            let opened = crew.each(move |cpu: &mut CpuSlots| cpu.open(&program));
            match opened.into_iter().collect() {
                Ok(()) => slots += 1,
                Err(BreakpointError::Open(
                    OpenError::NoSlot { .. } | OpenError::NotPermitted { .. },
                )) => {
                    crew.each(move |cpu| cpu.events.truncate(slots));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((slots > 0 && !cpus.is_empty()).then_some(Slots::Cpus {
            slots,
            crew,
            fired: Vec::new(),
        }))
    }

    /// No slot.
    pub(super) fn none() -> Slots {
        Slots::Threads {
            slots: 0,
            armed: Vec::new(),
        }
    }

    /// As many slots as our own thread could have, up to `wanted`. Reserves nothing.
    pub(super) fn on_threads(wanted: usize) -> Result<Slots, BreakpointError> {
        let mut held = Vec::new();
        while held.len() < wanted {
            match perf_event::open(&idle(), OWN_THREAD) {
                Ok(event) => held.push(event),
                Err(OpenError::NoSlot { .. }) if !held.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Slots::Threads {
            slots: held.len(),
            armed: Vec::new(),
        })
    }

    /// Addresses that can be watched at once.
    pub(super) fn len(&self) -> usize {
        match self {
            Slots::Cpus { slots, .. } | Slots::Threads { slots, .. } => *slots,
        }
    }

    /// What one slot covers.
    pub(super) fn breadth(&self) -> Breadth {
        match self {
            Slots::Cpus { .. } => Breadth::Cpus,
            Slots::Threads { .. } => Breadth::Threads,
        }
    }

    /// Turns the first slots on, on all CPUs at once. Whoever turns on the last one does `then` at once, and its result is the
    /// answer: until then every touch traps in vain. After an error some may be on, and `then` was not done.
    pub(super) fn arm<R: Send + 'static>(
        &mut self,
        program: &OnHit,
        arming: &Arming,
        threads: &[Tid],
        then: impl Fn() -> R + Clone + Send + 'static,
    ) -> Result<R, BreakpointError> {
        match self {
            Slots::Cpus { crew, fired, .. } => {
                let (places, fired) = (arming.places.clone(), std::mem::take(fired));
                let moved = crew.each(move |cpu: &mut CpuSlots| {
                    cpu.limits_reached(&fired);
                    cpu.move_to(&places)
                });
                moved.into_iter().collect::<Result<(), _>>()?;
                let several = arming.together && crew.len() > 1;
                let appointments = APPOINTMENTS.into_iter().filter(|_| several).map(Some);
                for appointment in appointments.chain([None]) {
                    if let Some(done) = enable(crew, arming, appointment, then.clone())? {
                        return Ok(done);
                    }
                }
                Err(BreakpointError::Plan("a CPU does not answer"))
            }
            Slots::Threads { armed, .. } => {
                *armed = open_on(threads, program, &arming.places)?;
                for event in armed {
                    let enabled = if arming.limited {
                        event.refresh(1)
                    } else {
                        event.enable()
                    };
                    enabled.map_err(system("arming a breakpoint"))?;
                }
                Ok(then())
            }
        }
    }

    /// Turns all of them off. When it returns, no hit is under way. Tries them all, whatever fails.
    pub(super) fn disarm(&mut self) -> Result<(), BreakpointError> {
        match self {
            Slots::Cpus { crew, .. } => crew.each(CpuSlots::disarm).into_iter().collect(),
            Slots::Threads { armed, .. } => {
                // Closing turns off as disabling does.
                armed.clear();
                Ok(())
            }
        }
    }

    /// Takes note that the limits of these slots (bit n: slot n) were counted down on a CPU.
    pub(super) fn limits_reached(&mut self, fired: impl Iterator<Item = (Cpu, u64)>) {
        if let Slots::Cpus { fired: known, .. } = self {
            known.extend(fired);
        }
    }
}

/// Turns breakpoints on that were moved, on all CPUs at once, so long after the order; `None` when they were not there at the same
/// time, and all is still off. Without an appointment each CPU does when it hears of it.
///
/// A CPU of a virtual machine may take a tick (4 ms), or many, to be interrupted by another: those before it would trap in vain
/// all the while. Its own timer is exact.
fn enable<R: Send + 'static>(
    crew: &Crew<CpuSlots>,
    arming: &Arming,
    appointment: Option<Duration>,
    then: impl Fn() -> R + Clone + Send + 'static,
) -> Result<Option<R>, BreakpointError> {
    let cpus = crew.len();
    let at = appointment.map(|after| Instant::now() + after);
    let (place, left) = (Rendezvous::of(cpus), AtomicUsize::new(cpus));
    let (arming, shared) = (arming.clone(), Arc::new((place, left)));
    let enabled = crew.each(move |cpu: &mut CpuSlots| {
        let (place, left) = &*shared;
        if let Some(at) = at {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if !place.meet(PATIENCE) {
                return Ok(None);
            }
        }
        cpu.enable(&arming)?;
        let is_last = left.fetch_sub(1, Ordering::AcqRel) == 1;
        Ok::<_, BreakpointError>(is_last.then(&then))
    });
    let done: Vec<Option<R>> = enabled.into_iter().collect::<Result<_, _>>()?;
    Ok(done.into_iter().flatten().next())
}

impl CpuSlots {
    fn open(&mut self, program: &OnHit) -> Result<(), BreakpointError> {
        let event = perf_event::open(&idle(), Scope::Cpu(self.cpu))?;
        program.attach(&event)?;
        self.events.push(CpuEvent {
            event,
            is_limited: false,
        });
        Ok(())
    }

    /// Moves breakpoints that are off.
    fn move_to(&mut self, places: &[Attributes]) -> Result<(), BreakpointError> {
        for (at, place) in self.events.iter().zip(places) {
            at.event
                .modify(place)
                .map_err(system("moving a breakpoint"))?;
        }
        Ok(())
    }

    fn enable(&mut self, arming: &Arming) -> Result<(), BreakpointError> {
        for at in self.events.iter_mut().take(arming.places.len()) {
            at.enable(arming.limited)
                .map_err(system("arming a breakpoint"))?;
        }
        Ok(())
    }

    fn disarm(&mut self) -> Result<(), BreakpointError> {
        let mut result = Ok(());
        for at in &self.events {
            result = result.and(at.event.disable());
        }
        result.map_err(system("disarming a breakpoint"))
    }

    fn limits_reached(&mut self, fired: &[(Cpu, u64)]) {
        let own = self.cpu;
        for (_, slots) in fired.iter().filter(|(cpu, _)| *cpu == own) {
            for (index, at) in self.events.iter_mut().enumerate() {
                at.is_limited &= slots >> index & 1 == 0;
            }
        }
    }
}

impl CpuEvent {
    fn enable(&mut self, limited: bool) -> io::Result<()> {
        if limited && !self.is_limited {
            self.event.refresh(1)?;
            self.is_limited = true;
            // Newer kernels (6.18 does) also stop the counter of an event whose limit is reached, and
            // enabling does not start a breakpoint's again: `hw_breakpoint_add` leaves `PERF_HES_STOPPED`.
            return self.event.set_period(1);
        }
        self.event.enable()
    }
}

/// The breakpoints on each thread that is still there, off.
fn open_on(
    threads: &[Tid],
    program: &OnHit,
    places: &[Attributes],
) -> Result<Vec<PerfEvent>, BreakpointError> {
    let mut events = Vec::new();
    for tid in threads {
        for place in places {
            match perf_event::open(place, Scope::Thread(*tid)) {
                Ok(event) => {
                    program.attach(&event)?;
                    events.push(event);
                }
                Err(OpenError::NoThread { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    if events.is_empty() {
        return Err(BreakpointError::NoThread);
    }
    Ok(events)
}

fn system(what: &'static str) -> impl Fn(io::Error) -> BreakpointError {
    move |source| BreakpointError::System { what, source }
}
