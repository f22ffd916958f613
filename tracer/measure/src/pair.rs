//! The costs between two CPUs: a thread on one of them times blocks of lines, after a thread on the other has brought the
//! lines into a state.

use std::{
    hint, io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{
    affinity::OnCpu,
    disturbance::involuntary_switches,
    line_loops::{Block, Operation},
};

use crate::{restart::Chains, spread::Spread};

/// Lines of a block: with their stride they fit into eight ways of 64 sets.
const LINES: usize = 64;
/// Both CPUs are busy for so long before anything is timed: cold ones took twice as long.
const WARM_UP: Duration = Duration::from_millis(50);
/// Bytes that push a block out of a first-level cache, and out of a second.
const BEYOND_L1: usize = 128 << 10;
const BEYOND_L2: usize = 4 << 20;
const LINE: usize = 64;

/// Where lines are when a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// In the own first-level cache, written.
    OwnL1,
    /// In the own second-level cache.
    OwnL2,
    /// Beyond the own second-level cache: in the last level, where that takes what is pushed out.
    OwnL3,
    /// In no cache.
    Memory,
    /// In the other's cache, written by it.
    OtherModified,
    /// In the other's cache, which alone has it and only read it.
    OtherExclusive,
    /// In both caches, read by both.
    SharedByBoth,
}

impl State {
    /// All of them, nearest first.
    pub const ALL: [State; 7] = [
        State::OwnL1,
        State::OwnL2,
        State::OwnL3,
        State::SharedByBoth,
        State::OtherModified,
        State::OtherExclusive,
        State::Memory,
    ];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            State::OwnL1 => "own-l1",
            State::OwnL2 => "own-l2",
            State::OwnL3 => "own-l3",
            State::Memory => "memory",
            State::OtherModified => "other-modified",
            State::OtherExclusive => "other-exclusive",
            State::SharedByBoth => "shared-by-both",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            State::OwnL1 => "own, L1",
            State::OwnL2 => "own, L2",
            State::OwnL3 => "own, beyond L2",
            State::Memory => "memory",
            State::OtherModified => "other, modified",
            State::OtherExclusive => "other, exclusive",
            State::SharedByBoth => "shared by both",
        }
    }
}

/// What was measured of one state and operation.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Before each block.
    pub state: State,
    /// In it.
    pub operation: Operation,
    /// Ticks of the time stamp counter, per line.
    pub ticks: Spread,
}

/// What was measured between two CPUs.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The CPU that timed.
    pub own: Cpu,
    /// The CPU that had the lines before.
    pub other: Cpu,
    /// By state, then by operation.
    pub cells: Vec<Cell>,
    /// Chains of loads with work between them, by state.
    pub chains: Vec<(State, Chains)>,
    /// Blocks that were dropped because a thread was taken off its CPU meanwhile.
    pub disturbed: u64,
}

/// What the other thread is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Order {
    Nothing,
    Write,
    Read,
    FlushAndRead,
}

/// Through which the thread that times and the other one speak: each number is one order.
#[derive(Debug, Default)]
struct Wire {
    asked: AtomicU32,
    done: AtomicU32,
    order: AtomicU32,
    over: AtomicBool,
    switched: AtomicBool,
}

impl Wire {
    /// Has the other do something, and waits until it has.
    fn ask(&self, order: Order) {
        self.order.store(order as u32, Ordering::Relaxed);
        let number = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(number, Ordering::Release);
        while self.done.load(Ordering::Acquire) != number && !self.over.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    }

    /// Does what is asked until it is over.
    fn serve(&self, block: &Block) {
        let mut done = 0;
        let mut switches = involuntary_switches().unwrap_or(0);
        while !self.over.load(Ordering::Relaxed) {
            let asked = self.asked.load(Ordering::Acquire);
            if asked == done {
                hint::spin_loop();
                continue;
            }
            match self.order.load(Ordering::Relaxed) {
                order if order == Order::Write as u32 => block.write(),
                order if order == Order::Read as u32 => block.read(),
                order if order == Order::FlushAndRead as u32 => {
                    block.flush();
                    block.read();
                }
                _ => {}
            }
            let now = involuntary_switches().unwrap_or(0);
            if now != switches {
                switches = now;
                self.switched.store(true, Ordering::Relaxed);
            }
            done = asked;
            self.done.store(done, Ordering::Release);
        }
    }
}

/// Ends the other thread's service, whatever happens to ours.
struct Over<'a>(&'a Wire);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Measures `rounds` blocks of each state and operation.
///
/// # Errors
/// A CPU is offline or not allowed; or there is no memory.
pub fn measure(own: Cpu, other: Cpu, rounds: u32) -> io::Result<Pair> {
    let wire = Wire::default();
    let refused = Mutex::new(None);
    let _here = OnCpu::move_to(own)?;
    let block = Block::new(&permutation(LINES))?;
    thread::scope(|scope| {
        let over = Over(&wire);
        thread::Builder::new()
            .name("other".to_owned())
            .spawn_scoped(scope, || match OnCpu::move_to(other) {
                Ok(_there) => wire.serve(&block),
                Err(error) => {
                    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                    *refused = Some(error);
                    wire.over.store(true, Ordering::Relaxed);
                }
            })?;
        let warm = Instant::now();
        while warm.elapsed() < WARM_UP {
            wire.ask(Order::Write);
            block.write();
        }
        let pair = timed(own, other, rounds, &block, &wire);
        drop(over);
        Ok::<Pair, io::Error>(pair)
    })
    .and_then(|pair| match refused.into_inner() {
        Ok(None) => Ok(pair),
        Ok(Some(error)) => Err(error),
        Err(_) => Err(io::Error::other("the other thread ended")),
    })
}

fn timed(own: Cpu, other: Cpu, rounds: u32, block: &Block, wire: &Wire) -> Pair {
    let mut pushing = Pushing::default();
    let all = State::ALL
        .iter()
        .flat_map(|state| Operation::ALL.map(|operation| (*state, operation)));
    let mut cells: Vec<Cell> = all
        .map(|(state, operation)| Cell {
            state,
            operation,
            ticks: Spread::default(),
        })
        .collect();
    let mut chains: Vec<(State, Chains)> = [State::OwnL1, State::OtherModified, State::Memory]
        .map(|state| (state, Chains::default()))
        .into();
    let mut disturbed = 0;
    // Interleaved, so that what changes meanwhile changes all alike.
    for _ in 0..rounds {
        for cell in &mut cells {
            let watch = Undisturbed::begin(wire);
            bring(cell.state, block, wire, &mut pushing);
            let ticks = block.time(cell.operation);
            if watch.held() {
                cell.ticks.record(ticks as f64 / block.len() as f64);
            } else {
                disturbed += 1;
            }
        }
        for (state, chains) in &mut chains {
            chains.time(block, |time| {
                let watch = Undisturbed::begin(wire);
                bring(*state, block, wire, &mut pushing);
                let ticks = time();
                let held = watch.held();
                disturbed += u64::from(!held);
                ticks.filter(|_| held)
            });
        }
    }
    Pair {
        own,
        other,
        cells,
        chains,
        disturbed,
    }
}

/// Whether both threads kept their CPUs since it began.
struct Undisturbed<'w> {
    wire: &'w Wire,
    switches: u64,
}

impl Undisturbed<'_> {
    fn begin(wire: &Wire) -> Undisturbed<'_> {
        wire.switched.store(false, Ordering::Relaxed);
        Undisturbed {
            wire,
            switches: involuntary_switches().unwrap_or(0),
        }
    }

    fn held(self) -> bool {
        // The other one says so with its next answer.
        self.wire.ask(Order::Nothing);
        let now = involuntary_switches().unwrap_or(0);
        now == self.switches && !self.wire.switched.load(Ordering::Relaxed)
    }
}

/// Brings all lines of a block into a state.
fn bring(state: State, block: &Block, wire: &Wire, pushing: &mut Pushing) {
    match state {
        State::OwnL1 => block.write(),
        State::OwnL2 => {
            block.write();
            pushing.through(BEYOND_L1);
        }
        State::OwnL3 => {
            block.write();
            pushing.through(BEYOND_L2);
        }
        State::Memory => block.flush(),
        State::OtherModified => wire.ask(Order::Write),
        State::OtherExclusive => wire.ask(Order::FlushAndRead),
        State::SharedByBoth => {
            block.write();
            wire.ask(Order::Read);
            block.read();
        }
    }
}

/// Memory whose reading pushes other lines out of caches.
#[derive(Debug, Default)]
struct Pushing(Vec<u8>);

impl Pushing {
    fn through(&mut self, bytes: usize) {
        if self.0.len() < bytes {
            // Each page by itself: a page of zeros that all share would be one page.
            self.0 = vec![1; bytes];
        }
        for at in (0..bytes).step_by(LINE) {
            hint::black_box(self.0[at]);
        }
    }
}

/// An order without a rhythm: numbers are multiplied by an odd one that is no power of two away from any stride.
fn permutation(lines: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines).collect();
    let mut seed = 0x9e37_79b9_u64;
    for n in (1..lines).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(n, (seed >> 33) as usize % (n + 1));
    }
    order
}
