//! Processes, threads and files that come and go, fed to what the tool keeps of them.
//!
//! A life is one that was recorded, or what this very process has mapped, with other numbers each time: as the kernel
//! tells of it, in the order of time.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use cohtrace::{
    access::{Access, Basis, Cost, Cpu, Op, Pid, Tid},
    analysis::AnalysisOptions,
    decode::Registers,
    event::{Batch, Context, ContextKind, Due, Mapping},
    finding::Thresholds,
    module::ModuleStore,
    pipeline::Pipeline,
    source::{Target, retiring::Retiring, sampled_code::SampledCode, tracked::Tracked},
    space::{AddressSpaces, MappedFiles},
    sys::proc_snapshot,
};

/// Numbers of processes are used again after so many, as `kernel.pid_max` has it on small machines.
const NUMBERS: u32 = 30_000;
/// Accesses of a life that are fed.
pub(super) const MOST_ACCESSES: usize = 20;

/// From the start of a process to its end.
#[derive(Clone)]
pub(super) struct Life {
    /// What it maps.
    pub mappings: Vec<Arc<Mapping>>,
    /// What it is seen to access.
    pub accesses: Vec<Access>,
}

impl Life {
    /// What this process has mapped, with accesses to it by its own code.
    pub(super) fn of_this_process() -> Life {
        let own = Pid(std::process::id());
        let contexts = proc_snapshot::process(Path::new("/proc"), own, 0);
        let mappings: Vec<Arc<Mapping>> = contexts
            .into_iter()
            .filter_map(|context| match context.kind {
                ContextKind::Mapping { mapping, .. } => Some(mapping),
                _ => None,
            })
            .collect();
        let ip = mappings
            .iter()
            .find(|m| m.executable)
            .map_or(0, |m| m.start + 0x100);
        let written = mappings.iter().filter(|mapping| mapping.writable);
        let accesses = written
            .take(MOST_ACCESSES)
            .map(|mapping| access(mapping.start, ip));
        Life {
            accesses: accesses.collect(),
            mappings,
        }
    }
}

fn access(addr: u64, ip: u64) -> Access {
    Access {
        time_ns: 0,
        addr,
        ip,
        cost: Cost(1_000_000),
        pid: Pid(0),
        tid: Tid(0),
        cpu: Cpu(0),
        size: 8,
        op: Op::Rmw,
        basis: Basis::Stalled,
        locked: false,
        kernel: false,
        ..Access::BLANK
    }
}

/// What comes and goes.
pub(super) struct Churn {
    lives: Vec<Life>,
    /// Processes so far.
    pub processes: u64,
    now_ns: u64,
    /// Between the start of one process and that of the next, nanoseconds.
    step_ns: u64,
}

impl Churn {
    /// Of these lives; `step_ns` from one to the next.
    pub(super) fn new(lives: Vec<Life>, step_ns: u64) -> Churn {
        Churn {
            lives,
            processes: 0,
            now_ns: 1_000_000_000,
            step_ns,
        }
    }

    /// Time of the stream, nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The next process with a second thread: forked, another program at once, ended. With `file`, that is its program.
    pub(super) fn next(&mut self, file: Option<&Mapping>, batch: &mut Batch) {
        let life = &self.lives[(self.processes % self.lives.len() as u64) as usize];
        let pid = Pid(1000 + 2 * (self.processes % u64::from(NUMBERS)) as u32);
        let second = Tid(pid.0 + 1);
        let start_ns = self.now_ns;
        let mut tell = |after_ns: u64, kind| {
            let time_ns = start_ns + after_ns;
            batch.context.push(Context { time_ns, kind });
        };
        let fork = |tid, parent_pid| ContextKind::Fork {
            pid,
            tid,
            parent_pid,
        };
        tell(0, fork(Tid(pid.0), Pid(1)));
        let comm = ContextKind::Comm {
            pid,
            tid: Tid(pid.0),
            comm: format!("life{}", self.processes),
            exec: true,
        };
        tell(1, comm);
        let mut program = file;
        for mapping in &life.mappings {
            let mapping = match program.filter(|_| mapping.executable && mapping.is_file()) {
                Some(file) => {
                    program = None;
                    Arc::new(Mapping {
                        start: mapping.start,
                        len: mapping.len,
                        file_offset: mapping.file_offset,
                        ..file.clone()
                    })
                }
                None => mapping.clone(),
            };
            tell(2, ContextKind::Mapping { pid, mapping });
        }
        tell(3, fork(second, pid));
        tell(1000, ContextKind::Exit { pid, tid: second });
        tell(
            1001,
            ContextKind::Exit {
                pid,
                tid: Tid(pid.0),
            },
        );
        for (n, access) in life.accesses.iter().enumerate() {
            batch.accesses.push(Access {
                time_ns: start_ns + 10 + n as u64,
                pid,
                tid: if n % 2 == 0 { Tid(pid.0) } else { second },
                cpu: Cpu(n as u32 % 2),
                ..*access
            });
        }
        self.processes += 1;
        self.now_ns += self.step_ns;
    }
}

/// What the tool keeps: as a source, as `record`, as `attach`.
pub(super) struct Tool {
    /// Whether it forgets what ended; false for the other case.
    retires: bool,
    tracked: Tracked,
    spaces: AddressSpaces,
    retiring: Retiring,
    modules: Arc<ModuleStore>,
    code: SampledCode,
    /// Judges only to know what to watch.
    pub record: Pipeline,
    /// Prints a report at its end.
    pub attach: Pipeline,
}

impl Tool {
    /// Nothing is known yet.
    pub(super) fn new(retires: bool) -> Tool {
        let pipeline = || Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        let modules = Arc::new(ModuleStore::new("/".into(), true));
        Tool {
            retires,
            tracked: Tracked::new(&Target::Trees(vec![Pid(1)]), Pid(std::process::id())),
            spaces: AddressSpaces::default(),
            retiring: Retiring::default(),
            code: SampledCode::new(modules.clone()),
            modules,
            record: pipeline().forgetting(),
            attach: pipeline(),
        }
    }

    /// Takes in a batch, as a poll and what follows it do.
    pub(super) fn feed(&mut self, batch: &Batch, now_ns: u64) {
        let mut touches = Vec::new();
        for due in batch.in_order() {
            match due {
                Due::Context(context) => {
                    self.tracked.follow(context);
                    self.spaces.apply(context);
                    self.retiring.notice(&context.kind, &self.spaces);
                }
                Due::Access(access) => {
                    let registers = Registers {
                        gpr: [0; 16],
                        ip: access.ip,
                        fs_base: None,
                        gs_base: None,
                    };
                    touches.clear();
                    let kernel = &mut |_, _| None;
                    let (spaces, pid) = (&mut self.spaces, access.pid);
                    self.code
                        .harvest(spaces, pid, &registers, kernel, &mut touches);
                    self.spaces.place(access.pid, access.addr);
                }
                Due::Allocation(_) => {}
            }
        }
        self.attach.feed(batch);
        self.record.feed(batch);
        if !self.retires {
            return;
        }
        let retired = self.retiring.retire(now_ns, &mut self.spaces);
        for pid in &retired.processes {
            self.tracked.forget(*pid);
        }
        self.modules.jit().end(&retired.processes);
        if self.modules.has_many_files() {
            let mut files = MappedFiles::default();
            self.spaces.files(&mut files);
            self.record.spaces.files(&mut files);
            self.attach.spaces.files(&mut files);
            self.modules.keep_files(&files);
        }
    }

    /// All that is kept, counted.
    pub(super) fn entries(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("source", self.spaces.entries()),
            (
                "record",
                self.record.entries() + self.record.lines() as usize,
            ),
            (
                "attach",
                self.attach.entries() + self.attach.lines() as usize,
            ),
            ("files", self.modules.files()),
            ("compilers", self.modules.jit().processes()),
        ])
    }
}
