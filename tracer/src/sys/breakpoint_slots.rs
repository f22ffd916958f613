//! The breakpoint registers of a run, and how they are armed.

use std::sync::atomic::AtomicU64;

use super::{
    bpf::Watch,
    breakpoint_cost::OWN_THREAD,
    breakpoints::BreakpointError,
    perf_event::{self, Attributes, OpenError, PerfEvent, Scope},
};
use crate::{
    access::{Cpu, Tid},
    event::Breadth,
};

/// Where breakpoints are, or will be.
#[derive(Debug)]
pub enum Slots {
    /// For each slot, one event a CPU; disabled while not armed, which holds the register all the same.
    Cpus(Vec<Vec<CpuEvent>>),
    /// One event for each thread and slot, while armed.
    Threads {
        /// Slots of each thread.
        slots: usize,
        /// The open events.
        armed: Vec<PerfEvent>,
    },
}

/// One slot of one CPU.
#[derive(Debug)]
pub struct CpuEvent {
    cpu: Cpu,
    event: PerfEvent,
    /// The event's limit is 1, otherwise 0. The limit adds up: raised twice, the first skipped hit would not
    /// disable the event.
    is_limited: bool,
}

/// Where breakpoints lie while they are not armed; nobody touches it.
static IDLE: AtomicU64 = AtomicU64::new(0);

/// A breakpoint that nobody hits.
pub fn idle() -> Attributes {
    perf_event::data_breakpoint(IDLE.as_ptr() as u64, 8)
}

impl Slots {
    /// Reserves up to `wanted` slots, each on all the CPUs. `None` when there is none, or when this user may
    /// watch no CPU.
    pub fn on_cpus(
        watch: &Watch,
        cpus: &[Cpu],
        wanted: usize,
    ) -> Result<Option<Slots>, BreakpointError> {
        let mut slots = Vec::new();
        while slots.len() < wanted {
            match slot_on_cpus(watch, cpus) {
                Ok(slot) => slots.push(slot),
                Err(BreakpointError::Open(
                    OpenError::NoSlot { .. } | OpenError::NotPermitted { .. },
                )) => break,
                Err(error) => return Err(error),
            }
        }
        Ok((!slots.is_empty() && !cpus.is_empty()).then_some(Slots::Cpus(slots)))
    }

    /// As many slots as our own thread could have, up to `wanted`. Reserves nothing.
    pub fn on_threads(wanted: usize) -> Result<Slots, BreakpointError> {
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
    pub fn len(&self) -> usize {
        match self {
            Slots::Cpus(slots) => slots.len(),
            Slots::Threads { slots, .. } => *slots,
        }
    }

    /// What one slot covers.
    pub fn breadth(&self) -> Breadth {
        match self {
            Slots::Cpus(_) => Breadth::Cpus,
            Slots::Threads { .. } => Breadth::Threads,
        }
    }

    /// Turns the first slots on, one for each place; with `limited`, a hit for which the program returns 1
    /// turns its event off. All are moved before the first is turned on, so that the first ones trap no
    /// longer than they must. After an error some may be on.
    pub fn arm(
        &mut self,
        watch: &Watch,
        places: &[Attributes],
        threads: &[Tid],
        limited: bool,
    ) -> Result<(), BreakpointError> {
        match self {
            Slots::Cpus(slots) => {
                for (slot, place) in slots.iter().zip(places) {
                    for at in slot {
                        at.event
                            .modify(place)
                            .map_err(system("moving a breakpoint"))?;
                    }
                }
                for at in slots.iter_mut().take(places.len()).flatten() {
                    at.enable(limited).map_err(system("arming a breakpoint"))?;
                }
            }
            Slots::Threads { armed, .. } => {
                armed.clear();
                for tid in threads {
                    for place in places {
                        match perf_event::open(place, Scope::Thread(*tid)) {
                            Ok(event) => {
                                watch.attach(&event)?;
                                armed.push(event);
                            }
                            Err(OpenError::NoThread { .. }) => break,
                            Err(error) => return Err(error.into()),
                        }
                    }
                }
                if armed.is_empty() {
                    return Err(BreakpointError::NoThread);
                }
                for event in armed {
                    let enabled = if limited {
                        event.refresh(1)
                    } else {
                        event.enable()
                    };
                    enabled.map_err(system("arming a breakpoint"))?;
                }
            }
        }
        Ok(())
    }

    /// Turns all of them off. When it returns, no hit is under way. Tries them all, whatever fails.
    pub fn disarm(&mut self) -> Result<(), BreakpointError> {
        match self {
            Slots::Cpus(slots) => {
                let mut result = Ok(());
                for at in slots.iter().flatten() {
                    result = result.and(at.event.disable());
                }
                result.map_err(system("disarming a breakpoint"))
            }
            Slots::Threads { armed, .. } => {
                // Closing turns off as disabling does.
                armed.clear();
                Ok(())
            }
        }
    }

    /// Takes note that the limits of these slots (bit n: slot n) of a CPU were counted down.
    pub fn limit_reached(&mut self, cpu: Cpu, fired: u64) {
        if let Slots::Cpus(slots) = self {
            for (index, slot) in slots.iter_mut().enumerate() {
                for at in slot.iter_mut().filter(|at| at.cpu == cpu) {
                    at.is_limited &= fired >> index & 1 == 0;
                }
            }
        }
    }
}

impl CpuEvent {
    fn enable(&mut self, limited: bool) -> std::io::Result<()> {
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

fn slot_on_cpus(watch: &Watch, cpus: &[Cpu]) -> Result<Vec<CpuEvent>, BreakpointError> {
    let open = |cpu: &Cpu| {
        let event = perf_event::open(&idle(), Scope::Cpu(*cpu))?;
        watch.attach(&event)?;
        Ok(CpuEvent {
            cpu: *cpu,
            event,
            is_limited: false,
        })
    };
    cpus.iter().map(open).collect()
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> BreakpointError {
    move |source| BreakpointError::System { what, source }
}
