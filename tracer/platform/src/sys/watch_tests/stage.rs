//! Who touches a watched word, and who watches.

use std::{
    arch::asm,
    fs::File,
    sync::mpsc::{Sender, channel},
    thread::{self, JoinHandle},
};

use tracer_ebpf::WatchRecord;
use zerocopy::FromBytes as _;

use crate::{
    access::{Cpu, Pid, Tid},
    event::WatchedWord,
    perf_format::ring_record::{self, RecordKind},
    sys::{
        bpf::KernelHalf,
        breakpoint_turn,
        breakpoints::{BreakpointError, Breakpoints, WindowPlan},
        live_tests::{online_cpus, options},
        perf_event::{self, Scope},
        ring::Ring,
    },
};

/// What [`store`] keeps on top of the stack meanwhile.
pub(super) const STACK_TOP: u64 = 0x1234_5678;

/// Adds one to the word so many times. Returns the ip of every hit: that of the next instruction.
#[cfg(target_arch = "x86_64")]
pub(super) fn store(word: *mut u64, times: u64) -> u64 {
    let ip: u64;
    // SAFETY: the word is live, aligned, and accessed by such instructions alone; what is pushed is
    // popped.
    unsafe {
        asm!(
            "push {top}",
            "lea {ip}, [rip + 3f]",
            "2: add qword ptr [{word}], 1",
            "3: dec {times}",
            "jnz 2b",
            "pop {top}",
            top = in(reg) STACK_TOP,
            word = in(reg) word,
            times = inout(reg) times => _,
            ip = out(reg) ip,
        );
    }
    ip
}

/// Adds one to the word so many times. Returns the ip of every hit: that of the store, which has not
/// happened yet.
#[cfg(target_arch = "aarch64")]
pub fn store(word: *mut u64, times: u64) -> u64 {
    let ip: u64;
    // SAFETY: the word is live, aligned, and accessed by such instructions alone; the stack is put back.
    unsafe {
        asm!(
            "str {top}, [sp, #-16]!",
            "adr {ip}, 2f",
            "mov {value}, xzr",
            "3: add {value}, {value}, #1",
            "2: str {value}, [{word}]",
            "subs {times}, {times}, #1",
            "b.ne 3b",
            "add sp, sp, #16",
            top = in(reg) STACK_TOP,
            word = in(reg) word,
            times = inout(reg) times => _,
            value = out(reg) _,
            ip = out(reg) ip,
        );
    }
    ip
}

/// Words of one line that tests watch, and nobody else touches.
#[derive(Debug)]
pub(super) struct Line(Box<Words>);

#[derive(Debug)]
#[repr(align(64))]
struct Words([u64; 8]);

impl Line {
    pub(super) fn new() -> Line {
        Line(Box::new(Words([0; 8])))
    }

    /// Where a word is; its address is all that is taken.
    pub(super) fn word(&self, index: usize) -> u64 {
        (&raw const self.0.0[index]) as u64
    }
}

/// A word of our own process.
pub(super) fn own(addr: u64) -> WatchedWord {
    WatchedWord {
        pid: Pid(std::process::id()),
        addr,
        len: 8,
    }
}

/// A thread that does what it is told, in turn.
pub(super) struct Worker {
    pub tid: Tid,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

type Order = Box<dyn FnOnce() + Send>;

impl Worker {
    pub(super) fn start() -> Worker {
        let (orders, waiting) = channel::<Order>();
        let (send, receive) = channel();
        let thread = thread::spawn(move || {
            // SAFETY: the call has no precondition.
            send.send(unsafe { libc::gettid() }).unwrap();
            for order in waiting {
                order();
            }
        });
        Worker {
            tid: Tid(receive.recv().unwrap() as u32),
            orders,
            thread,
        }
    }

    /// Begins to do it.
    pub(super) fn begin(&self, order: impl FnOnce() + Send + 'static) {
        self.orders.send(Box::new(order)).unwrap();
    }

    /// Does it, and waits for it.
    pub(super) fn run<T: Send + 'static>(&self, order: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, receive) = channel();
        self.begin(move || send.send(order()).unwrap());
        receive.recv().unwrap()
    }

    /// [`store`]s, and waits for it.
    pub(super) fn store(&self, word: u64, times: u64) -> u64 {
        self.run(move || store(word as *mut u64, times))
    }

    pub(super) fn end(self) {
        drop(self.orders);
        self.thread.join().unwrap();
    }
}

/// The kernel half, the breakpoints and the rings of their hits.
pub(super) struct Watcher {
    pub kernel: KernelHalf,
    pub breakpoints: Breakpoints,
    rings: Vec<Ring>,
    _turn: File,
}

impl Watcher {
    /// On CPUs, with every slot there is.
    pub(super) fn start() -> Watcher {
        Watcher::with(1 << 20, |kernel| {
            Breakpoints::open(kernel, &online_cpus(), 4)
        })
    }

    pub(super) fn with(
        ring_bytes: usize,
        open: impl FnOnce(&mut KernelHalf) -> Result<Breakpoints, BreakpointError>,
    ) -> Watcher {
        let turn = breakpoint_turn::take();
        let mut kernel = KernelHalf::load(&options()).unwrap();
        let rings = online_cpus()
            .into_iter()
            .map(|cpu| hits_ring(&kernel, cpu, ring_bytes))
            .collect();
        let breakpoints = open(&mut kernel).unwrap();
        Watcher {
            kernel,
            breakpoints,
            rings,
            _turn: turn,
        }
    }

    /// Opens a window that lasts until it is disarmed or has `hit_limit` hits.
    pub(super) fn arm(&mut self, number: u64, words: &[WatchedWord], hit_limit: u64) -> u64 {
        self.breakpoints
            .arm(&WindowPlan {
                number,
                words,
                threads: &[],
                hit_limit,
                duration_ns: u64::MAX,
            })
            .unwrap()
    }

    /// Records since the last time, each CPU's in order.
    pub(super) fn drain(&mut self) -> Vec<WatchRecord> {
        let mut records = Vec::new();
        for ring in &mut self.rings {
            let drained = ring.drain(|record| match ring_record::parse(record).unwrap().kind {
                RecordKind::Raw(raw) => {
                    records.push(WatchRecord::read_from_prefix(raw).unwrap().0);
                }
                RecordKind::Lost(_) => {}
                other => panic!("{other:?}"),
            });
            assert_eq!(drained.corrupt_bytes, 0);
        }
        records
    }
}

fn hits_ring(kernel: &KernelHalf, cpu: Cpu, bytes: usize) -> Ring {
    let output = perf_event::open(&perf_event::bpf_output(u32::MAX), Scope::Cpu(cpu)).unwrap();
    let ring = Ring::map(output, bytes).unwrap();
    kernel.set_hits_ring(cpu, ring.event()).unwrap();
    ring
}
