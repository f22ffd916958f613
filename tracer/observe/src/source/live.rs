//! What every live source needs: the loaded kernel half, which processes are targets, and what their
//! addresses mean.

use std::path::Path;

use super::{SourceError, Target, tracked::Tracked};
use crate::{
    access::Pid,
    event::{Batch, Context, ContextKind},
    machine::{Machine, btf::KernelOffsets},
    space::AddressSpaces,
    sys::{
        bpf::{self, KernelHalf},
        clock, proc_snapshot,
    },
};

/// Where `kernel.pid_max` is unknown: the most that 64-bit kernels allow (PID_MAX_LIMIT,
/// include/linux/threads.h).
const PID_MAX_LIMIT: u32 = 4 << 20;

/// The ground of a live observation.
pub struct Live {
    /// Maps and programs.
    pub kernel: KernelHalf,
    /// Meaning of addresses up to the last context taken.
    pub spaces: AddressSpaces,
    /// The kernel half keeps its targets up to date itself.
    follows_forks: bool,
    tracked: Tracked,
    caveats: Vec<String>,
}

impl Live {
    /// Loads the kernel half. Nothing is observed yet.
    pub fn load(
        target: &Target,
        machine: &Machine,
        offsets: &KernelOffsets,
        heap_least: Option<u64>,
        tells: bool,
    ) -> Result<Live, SourceError> {
        if machine.privileges.initial_pid_namespace == Some(false) {
            return Err(SourceError::PidNamespace);
        }
        let kernel = KernelHalf::load(&bpf::Options {
            all_processes: *target == Target::Everything,
            pid_max: machine
                .kernel
                .pid_max
                .map_or(PID_MAX_LIMIT, |max| max as u32),
            tgid_offset: offsets.task.tgid,
            thread_pointer_offset: offsets.task.thread_pointer,
            memory_offsets: offsets.memory,
            heap_least,
            tells,
        })?;
        Ok(Live {
            kernel,
            spaces: AddressSpaces::default(),
            follows_forks: false,
            tracked: Tracked::new(target, Pid(std::process::id())),
            caveats: Vec::new(),
        })
    }

    /// Tells the kernel half its targets, and returns what they have mapped so far. The side-band events
    /// run already, so whatever changes from here on is seen as well.
    pub fn find_targets(&mut self, target: &Target) -> Result<Vec<Context>, SourceError> {
        self.follows_forks = self.kernel.attach_fork()?;
        if !self.follows_forks && *target != Target::Everything {
            self.caveat(
                "children of the targets were noticed late, because this kernel has no BTF: some of \
                 their first samples are missing"
                    .to_owned(),
            );
        }
        let proc = Path::new("/proc");
        let pids = match target {
            Target::Everything => proc_snapshot::pids(proc),
            Target::Trees(roots) => {
                for root in roots {
                    self.aim_at(*root);
                }
                let mut found = roots.clone();
                // A target may fork while the list is read, before its own byte was set: read again
                // until nothing new turns up.
                loop {
                    let new: Vec<Pid> = proc_snapshot::pids(proc)
                        .into_iter()
                        .filter(|pid| !found.contains(pid))
                        .filter(|pid| {
                            proc_snapshot::parent(proc, *pid).is_some_and(|p| found.contains(&p))
                        })
                        .collect();
                    if new.is_empty() {
                        break found;
                    }
                    for pid in new {
                        self.aim_at(pid);
                        self.tracked.add(pid);
                        found.push(pid);
                    }
                }
            }
        };
        let now_ns = clock::monotonic_ns();
        Ok(pids
            .into_iter()
            .filter(|pid| self.tracked.contains(*pid))
            .flat_map(|pid| proc_snapshot::process(proc, pid, now_ns))
            .collect())
    }

    fn aim_at(&mut self, pid: Pid) {
        if !self.kernel.set_target(pid, true) {
            self.caveat(format!(
                "process {} is above kernel.pid_max and was not sampled",
                pid.0
            ));
        }
    }

    /// Applies an event, and puts it into the batch when it concerns a target.
    pub fn take_context(&mut self, context: Context, batch: &mut Batch) {
        let tracked = self.tracked.follow(&context);
        if let ContextKind::Fork {
            pid, parent_pid, ..
        } = context.kind
            && pid != parent_pid
            && !self.follows_forks
        {
            // Above kernel.pid_max there is nothing to set, and no process either.
            let _ = self.kernel.set_target(pid, tracked);
        }
        if tracked {
            self.tell(context, batch);
        }
    }

    /// Processes ended, with all of their threads.
    pub(super) fn forget(&mut self, ended: &[Pid]) {
        for pid in ended {
            self.tracked.forget(*pid);
        }
    }

    /// Tells of something that concerns a target. What memory holds is for names, which are made elsewhere.
    pub(super) fn tell(&mut self, context: Context, batch: &mut Batch) {
        if !matches!(context.kind, ContextKind::Memory { .. }) {
            self.spaces.apply(&context);
        }
        batch.context.push(context);
    }

    /// Whether the process is one to observe, as far as the kernel half knows: it learns of children first.
    pub fn is_target(&self, pid: Pid) -> bool {
        self.kernel.is_target(pid) || self.tracked.contains(pid)
    }

    /// Processes to observe, where they are not simply all.
    pub fn targets(&self) -> impl Iterator<Item = Pid> {
        self.tracked.pids()
    }

    /// Something to tell in the report.
    pub fn caveat(&mut self, text: String) {
        self.caveats.push(text);
    }

    /// All there is to tell so far.
    pub fn caveats(&self) -> &[String] {
        &self.caveats
    }
}

/// Kernel text of any length, a piece at a time.
pub fn read_kernel(kernel: &mut KernelHalf, addr: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let piece = kernel
            .read_kernel(addr + bytes.len() as u64, len - bytes.len())
            .ok()?;
        if piece.is_empty() {
            return None;
        }
        bytes.extend(piece);
    }
    Some(bytes)
}
