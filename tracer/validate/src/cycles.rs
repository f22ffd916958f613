//! Core cycles, by the time stamp counter and the measured clock.

use cohtrace_measure::clocks::Clocks;

use crate::{
    NotCounted, access::Cpu, asked::Asked, events::Event, machine::Machine, run::Counted,
    sys::affinity::OnCpu,
};

/// One run. The program and the measurement of the clock have the same CPU, by turns.
pub(crate) fn count(
    machine: &Machine,
    asked: &Asked,
    event: &Event,
    n: u64,
) -> Result<Counted, NotCounted> {
    let cpu = machine.online_cpus().last().copied().unwrap_or(Cpu(0));
    let _on = OnCpu::move_to(cpu).map_err(NotCounted::of("moving to a CPU"))?;
    // Started here, it stays here.
    let mut program = asked.start(event.letter, n)?;
    program.go()?;
    let said = program.hear(16)?;
    program.hear(1)?;
    program.end()?;
    let clocks = Clocks::measure();
    let ticks = |at: usize| {
        let bytes = said.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    let additions = ticks(0).saturating_sub(ticks(8));
    Ok(Counted {
        count: clocks.cycles(additions as f64),
        lost: 0,
    })
}
