//! Counts of the kernel: page faults, and executions of a probed instruction.

use std::fs::File;

use crate::{
    NotCounted,
    access::Tid,
    asked::{Asked, Waiting},
    events::Event,
    run::Counted,
    sys::{
        perf_event::{self, PerfEvent, Scope},
        uprobe::UprobePmu,
    },
};

/// One run, by the kernel's page faults of the program's thread.
pub(crate) fn page_faults(asked: &Asked, event: &Event, n: u64) -> Result<Counted, NotCounted> {
    let program = asked.start(event.letter, n)?;
    let faults = perf_event::open(&perf_event::page_faults(), of(&program))?;
    count(program, &faults)
}

/// One run, by a probe at the label `point`.
pub(crate) fn executions(asked: &Asked, event: &Event, n: u64) -> Result<Counted, NotCounted> {
    let pmu = UprobePmu::find()?;
    let point = asked.address("point")?;
    let offset = asked.offset(point);
    let offset = offset.ok_or_else(|| NotCounted::NoSymbol("point".to_owned()))?;
    let opening = "opening the program's file";
    let file = File::open(asked.path()).map_err(NotCounted::of(opening))?;
    let program = asked.start(event.letter, n)?;
    let probe = pmu.count(&file, offset, of(&program))?;
    count(program, &probe)
}

fn of(program: &Waiting) -> Scope {
    Scope::Thread(Tid(program.pid().0))
}

/// Counts while the program is in its loop.
fn count(mut program: Waiting, event: &PerfEvent) -> Result<Counted, NotCounted> {
    event
        .enable()
        .map_err(NotCounted::of("starting a counter"))?;
    program.go()?;
    program.hear(1)?;
    let count = event.count().map_err(NotCounted::of("reading a counter"))?;
    program.end()?;
    Ok(Counted {
        count: count as f64,
        lost: 0,
    })
}
