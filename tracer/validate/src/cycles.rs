//! Core cycles, by the time stamp counter and the measured clock.

use cohtrace_measure::clocks::Clocks;

use crate::{
    NotCounted,
    access::Cpu,
    asked::{Asked, Waiting},
    events::Event,
    machine::Machine,
    run::Counted,
    sys::affinity::OnCpu,
};

/// How long a loop took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// Ticks of the time stamp counter, without those of what the loop does beside.
    ticks: f64,
    clocks: Clocks,
}

impl Timed {
    /// Core cycles.
    pub(crate) fn cycles(&self) -> f64 {
        self.clocks.cycles(self.ticks)
    }

    /// Nanoseconds.
    pub(crate) fn ns(&self) -> f64 {
        self.clocks.ns(self.ticks)
    }
}

/// One run.
pub(crate) fn count(
    machine: &Machine,
    asked: &Asked,
    event: &Event,
    n: u64,
) -> Result<Counted, NotCounted> {
    let timed = time(machine, || asked.start(event.letter, n))?;
    Ok(Counted {
        count: timed.cycles(),
        lost: 0,
    })
}

/// Times the loop of a program that says its ticks. The program and the measurement of the clock have the same CPU, by turns.
pub(crate) fn time(
    machine: &Machine,
    start: impl FnOnce() -> Result<Waiting, NotCounted>,
) -> Result<Timed, NotCounted> {
    let cpu = machine.online_cpus().last().copied().unwrap_or(Cpu(0));
    let _on = OnCpu::move_to(cpu).map_err(NotCounted::of("moving to a CPU"))?;
    // Started here, it stays here.
    let mut program = start()?;
    program.go()?;
    let said = program.hear(16)?;
    program.hear(1)?;
    program.end()?;
    let clocks = Clocks::measure();
    let ticks = |at: usize| {
        let bytes = said.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    Ok(Timed {
        ticks: ticks(0) as f64 - ticks(8) as f64,
        clocks,
    })
}
