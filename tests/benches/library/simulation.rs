//! What one access costs in a simulated machine with caches, by what happens to it, and what the filter and the counts
//! around the machine add.

use std::{hint::black_box, time::Instant};

use cohtrace::{
    access::{Access, Basis, Cpu, Op, Pid, Place, SpaceId, Tid},
    analysis::{Hinted, Simulation},
    coherence::{Intent, Lines, Multiprocessor, SystemModel},
};
use cohtrace_tests::figures::{Table, spread};

use crate::stream::Random;

const ACCESSES: usize = 1 << 20;
const THREADS: u64 = 4;

/// A stream of accesses: its name, the bytes that each thread has for itself, whether they are the same for all, and
/// the percentage of accesses that miss that is expected at least and at most.
struct Shape {
    name: &'static str,
    bytes: u64,
    shared: bool,
    misses: (u64, u64),
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "hits",
        bytes: 64 << 10,
        shared: false,
        misses: (0, 1),
    },
    Shape {
        name: "does not fit",
        bytes: 8 << 20,
        shared: false,
        misses: (30, 100),
    },
    Shape {
        name: "fought over",
        bytes: 4 << 10,
        shared: true,
        misses: (10, 100),
    },
];

/// Every third access stores.
fn accesses(shape: &Shape) -> Vec<Access> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let access = |n: usize| {
        // A thread runs on for a while, as under an emulator.
        let thread = n as u64 / 16 % THREADS;
        let base = if shape.shared { 0 } else { thread << 32 };
        let word = random.below(shape.bytes / 8);
        Access {
            time_ns: 0,
            addr: base + word * 8,
            ip: 0x40_1000 + word % 512 * 4,
            pid: Pid(1),
            tid: Tid(100 + thread as u32),
            cpu: Cpu(thread as u32),
            size: 8,
            op: if n.is_multiple_of(3) {
                Op::Store
            } else {
                Op::Load
            },
            basis: Basis::Emulated,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    };
    (0..ACCESSES).map(access).collect()
}

fn place(access: &Access) -> Place {
    Place::Private {
        space: SpaceId(0),
        addr: access.addr,
    }
}

/// Runs the streams in turns, `rounds` times, and prints the table.
pub(crate) fn run(rounds: usize) -> anyhow::Result<()> {
    let streams: Vec<Vec<Access>> = SHAPES.iter().map(accesses).collect();
    let mut ns = vec![[const { Vec::new() }; 3]; SHAPES.len()];
    for _ in 0..rounds {
        for (n, (shape, stream)) in SHAPES.iter().zip(&streams).enumerate() {
            let (machine_ns, missed) = machine(stream)?;
            let percent = missed * 100 / ACCESSES as u64;
            // Figures of a stream that does something else would be worth nothing.
            anyhow::ensure!(
                (shape.misses.0..=shape.misses.1).contains(&percent),
                "{percent} % of the accesses of the stream {} miss",
                shape.name
            );
            ns[n][0].push(machine_ns);
            ns[n][1].push(fold(stream, 1)?);
            ns[n][2].push(fold(stream, 3)?);
        }
    }
    let mut table = Table::new(&[
        "simulation, ns per access",
        "machine",
        "with counts and filter",
        "of three machines",
    ]);
    for (shape, [machine, one, three]) in SHAPES.iter().zip(&ns) {
        table.row([
            shape.name.to_owned(),
            spread(machine, 1),
            spread(one, 1),
            spread(three, 1),
        ]);
    }
    print!("{table}");
    Ok(())
}

/// The machine alone, with numbers for lines. The first pass fills the caches; gives the misses of the second.
fn machine(stream: &[Access]) -> anyhow::Result<(f64, u64)> {
    let model = SystemModel::default();
    let mut machine = Multiprocessor::new(&model)?;
    let mut lines = Lines::new(model.line);
    let mut pass = || {
        let mut missed = 0;
        for access in stream {
            let line = lines.line(place(access).line(model.line));
            if let (Some(line), Some(intent)) = (line, Intent::of(access.op)) {
                missed += u64::from(machine.access(access.cpu, line, intent).missed_l3);
            }
        }
        missed
    };
    pass();
    let start = Instant::now();
    let missed = black_box(pass());
    Ok((start.elapsed().as_nanos() as f64 / ACCESSES as f64, missed))
}

/// The fold that `simulate` uses.
fn fold(stream: &[Access], scenarios: usize) -> anyhow::Result<f64> {
    let pass = || -> anyhow::Result<()> {
        let mut simulation = Simulation::new(&SystemModel::default(), scenarios)?;
        for access in stream {
            simulation.observe(access, SpaceId(0), place(access), Hinted::default);
        }
        black_box(simulation.finish().executed());
        Ok(())
    };
    pass()?;
    let start = Instant::now();
    pass()?;
    let elapsed = start.elapsed().as_nanos() as f64;
    Ok(elapsed / ACCESSES as f64)
}
