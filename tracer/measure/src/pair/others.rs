//! The other threads of a measurement: each on its CPU, where it does to the lines what it is asked to.

use std::{
    hint, io,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::Instant,
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{
    affinity::OnCpu, disturbance::involuntary_switches, line_loops::Block, priority::RealTime,
};

use super::{LINES, Setting, permutation};
use crate::state::{Act, State, Who};

/// Bytes that push a block out of a first-level cache, and out of a second.
const BEYOND_L1: usize = 128 << 10;
const BEYOND_L2: usize = 4 << 20;
const LINE: usize = 64;

/// Through which the thread that times and the other one speak: each number is one order.
#[derive(Debug, Default)]
pub(super) struct Wire {
    asked: AtomicU32,
    done: AtomicU32,
    order: AtomicU32,
    over: AtomicBool,
    pub(super) switched: AtomicBool,
}

impl Wire {
    /// Has the other do something, and waits until it has.
    pub(super) fn ask(&self, order: Act) {
        self.order.store(order as u32, Ordering::Relaxed);
        let number = self.asked.load(Ordering::Relaxed).wrapping_add(1);
        self.asked.store(number, Ordering::Release);
        while self.done.load(Ordering::Acquire) != number && !self.over.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    }

    /// On this CPU, does what is asked until it is over.
    fn serve_on(&self, cpu: Cpu, real_time: bool, block: &Block) -> io::Result<()> {
        let there = OnCpu::move_to(cpu)
            .and_then(|there| Ok((there, real_time.then(RealTime::raise).transpose()?)));
        if there.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        let _there = there?;
        self.serve(block);
        Ok(())
    }

    /// Does what is asked until it is over.
    fn serve(&self, block: &Block) {
        let mut pushing = Pushing::default();
        let mut done = 0;
        let mut switches = involuntary_switches().unwrap_or(0);
        while !self.over.load(Ordering::Relaxed) {
            let asked = self.asked.load(Ordering::Acquire);
            if asked == done {
                hint::spin_loop();
                continue;
            }
            let asked_for = Act::numbered(self.order.load(Ordering::Relaxed));
            act(asked_for, block, &mut pushing);
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

/// Ends the other threads' service, whatever happens to ours.
struct Over<'w>(Wires<'w>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        for wire in self.0.all() {
            wire.over.store(true, Ordering::Relaxed);
        }
    }
}

/// To the other thread, and to the third.
#[derive(Clone, Copy)]
pub(super) struct Wires<'w> {
    other: &'w Wire,
    pub(super) third: Option<&'w Wire>,
}

impl<'w> Wires<'w> {
    pub(super) fn all(self) -> impl Iterator<Item = &'w Wire> {
        [Some(self.other), self.third].into_iter().flatten()
    }

    pub(super) fn is_over(self) -> bool {
        self.all().any(|wire| wire.over.load(Ordering::Relaxed))
    }
}

/// Runs on the CPU that times, while the others do what is asked over the wires.
pub(super) fn with_others<T>(
    setting: &Setting<'_>,
    run: impl FnOnce(&Block, Wires<'_>) -> T,
) -> io::Result<T> {
    let (other, third) = (Wire::default(), Wire::default());
    let wires = Wires {
        other: &other,
        third: setting.third.map(|_| &third),
    };
    let block = {
        let _there = OnCpu::move_to(setting.home)?;
        Block::new(&permutation(LINES))?
    };
    let _here = OnCpu::move_to(setting.own)?;
    thread::scope(|scope| {
        let over = Over(wires);
        let cpus = [Some(setting.other), setting.third];
        let mut threads = Vec::new();
        for (wire, cpu) in wires.all().zip(cpus.into_iter().flatten()) {
            let block = &block;
            let thread = thread::Builder::new().name("other".to_owned());
            let real_time = setting.real_time;
            threads.push(thread.spawn_scoped(scope, move || wire.serve_on(cpu, real_time, block))?);
        }
        // The others are on their CPUs before this one is kept from all others.
        for wire in wires.all() {
            wire.ask(Act::Nothing);
        }
        let _first = setting.real_time.then(RealTime::raise).transpose()?;
        let warm = Instant::now();
        while warm.elapsed() < setting.warm_up && !wires.is_over() {
            other.ask(Act::Write);
            block.write();
        }
        let found = run(&block, wires);
        drop(over);
        for thread in threads {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("a thread that took part ended")))?;
        }
        Ok(found)
    })
}

/// Brings all lines of a block into a state.
pub(super) fn bring(state: State, block: &Block, wires: Wires<'_>, pushing: &mut Pushing) {
    for (who, what) in state.steps() {
        step(*who, *what, block, wires, pushing);
    }
}

/// One step of it, and waits until it is done.
pub(super) fn step(who: Who, what: Act, block: &Block, wires: Wires<'_>, pushing: &mut Pushing) {
    match who {
        Who::Own => act(what, block, pushing),
        Who::Other => wires.other.ask(what),
        Who::Third => {
            if let Some(third) = wires.third {
                third.ask(what);
            }
        }
    }
}

/// Does something to all lines of a block, on the calling thread's CPU.
pub(super) fn act(what: Act, block: &Block, pushing: &mut Pushing) {
    match what {
        Act::Nothing => {}
        Act::Write => block.write(),
        Act::Read => block.read(),
        Act::Flush => block.flush(),
        Act::PushOutOfL1 => pushing.through(BEYOND_L1),
        Act::PushOutOfL2 => pushing.through(BEYOND_L2),
    }
}

/// Memory whose reading pushes other lines out of caches.
#[derive(Debug, Default)]
pub(super) struct Pushing(Vec<u8>);

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
