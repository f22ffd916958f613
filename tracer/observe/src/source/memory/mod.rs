//! What the sources by a PMU have in common: events that sample memory accesses with their data addresses, on
//! each CPU, and accesses of their samples.
//!
//! `plan` says from sysfs which events and how, `opening` opens each as well as the kernel grants, `refusal`
//! says what a refusal means, `record` reads a sample, `code` its instruction.

use std::{collections::BTreeSet, sync::Arc};

use tracer_ebpf::{MemoryRecord, SAMPLE_32BIT, SAMPLE_EXACT_IP, SAMPLE_FS_BASE, SAMPLE_KERNEL};
use zerocopy::FromBytes;

use super::{
    Evidence, SourceError, SourceOptions, Target,
    kernel_code::KernelCode,
    live::read_kernel,
    sampling::{Sampler, Sampling, Taking},
    threads::SampledThread,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Pid, Tid},
    event::Unresolved,
    machine::{
        KernelVersion, Machine,
        btf::{KernelOffsets, MemoryOffsets},
    },
    module::ModuleStore,
    space::KERNEL_START,
    sys::{
        bpf::{KernelHalf, OnMemory},
        perf_event::{self, OpenError, PerfEvent, Scope},
    },
};

mod code;
mod opening;
pub mod plan;
mod record;
pub mod refusal;

use self::{code::Instructions, opening::Granted, plan::PlannedEvent, refusal::MemoryEventError};

/// What samples of both makers' PMUs can prove.
pub(super) fn evidence() -> Evidence {
    Evidence::DATA_ADDR
        .and(Evidence::EXACT_IP)
        .and(Evidence::STORES)
        .and(Evidence::COST)
        .and(Evidence::SERVED_FROM)
}

/// Opens planned events and starts.
pub(super) fn open(
    target: &Target,
    options: &SourceOptions,
    machine: &Machine,
    modules: &Arc<ModuleStore>,
    events: Vec<PlannedEvent>,
) -> Result<Sampling<Memory>, SourceError> {
    // Without BTF the kernel half does with the address.
    let offsets = KernelOffsets::of_running_kernel().unwrap_or_default();
    let memory = Memory::new(machine, &offsets.memory, modules, events);
    Sampling::open(target, options, machine, &offsets, modules, memory)
}

/// Whether a unit that also samples what touches no memory can be told from it here. Linux 6.1 and 6.2 leave the
/// address of such samples unset, and only the kernel's own types say where the mark of that is.
pub(super) fn needs_types(machine: &Machine) -> Result<(), SourceError> {
    let since = KernelVersion::new(6, 1);
    let until = KernelVersion::new(6, 3);
    let affected =
        (machine.kernel.version).is_some_and(|version| since <= version && version < until);
    if affected && machine.kernel.btf == Some(false) {
        return Err(SourceError::TypesNeeded);
    }
    Ok(())
}

/// Memory events on each CPU.
pub(super) struct Memory {
    machine: Machine,
    events: Vec<PlannedEvent>,
    /// By event.
    granted: Vec<Granted>,
    /// Whether data sources and latencies can be read.
    has_offsets: bool,
    program: Option<OnMemory>,
    members: Vec<(Cpu, PerfEvent)>,
    leaders: Vec<(Cpu, PerfEvent)>,
    code: Instructions,
    kernel_code: KernelCode,
    /// Takes every ip for exact: true of page faults, which no driver marks.
    trusts_ip: bool,
    samples: u64,
    inexact: u64,
    /// Samples of instructions that touch no memory.
    elsewhere: u64,
}

impl Memory {
    fn new(
        machine: &Machine,
        offsets: &MemoryOffsets,
        modules: &Arc<ModuleStore>,
        events: Vec<PlannedEvent>,
    ) -> Memory {
        Memory {
            machine: machine.clone(),
            granted: vec![Granted::default(); events.len()],
            events,
            has_offsets: offsets.sample.is_some() && offsets.data_src.is_some(),
            program: None,
            members: Vec::new(),
            leaders: Vec::new(),
            code: Instructions::new(modules.clone()),
            kernel_code: KernelCode::new(modules.clone()),
            trusts_ip: false,
            samples: 0,
            inexact: 0,
            elsewhere: 0,
        }
    }

    fn planned_cpus(&self) -> BTreeSet<Cpu> {
        let events = self.events.iter();
        events
            .flat_map(|event| event.cpus.iter().copied())
            .collect()
    }
}

impl Sampler for Memory {
    type Record = MemoryRecord;

    fn cpus(&self, _machine: &Machine) -> Vec<Cpu> {
        self.planned_cpus().into_iter().collect()
    }

    fn open_on(&mut self, cpu: Cpu, kernel: &mut KernelHalf) -> Result<(), SourceError> {
        let program = match self.program.take() {
            Some(program) => program,
            None => kernel.memory()?,
        };
        let program = self.program.insert(program);
        let scope = Scope::Cpu(cpu);
        for (event, granted) in self.events.iter().zip(&mut self.granted) {
            if !event.cpus.contains(&cpu) {
                continue;
            }
            let opened = opening::open(event, granted, |attributes, leader| {
                let leader = leader
                    .map(|leader| perf_event::open_in_group(leader, scope, None))
                    .transpose()?;
                let member = perf_event::open_in_group(attributes, scope, leader.as_ref())?;
                Ok((member, leader))
            });
            let (member, leader) =
                opened.map_err(|source| refused(source, event, cpu, &self.machine))?;
            program.attach(&member)?;
            self.members.push((cpu, member));
            self.leaders.extend(leader.map(|leader| (cpu, leader)));
        }
        Ok(())
    }

    fn start(&self) -> Result<(), SourceError> {
        // A group runs when its leader does, with those of its members that are on by then.
        for (_, event) in self.members.iter().chain(&self.leaders) {
            event.enable().map_err(|source| SourceError::System {
                what: "starting the PMU's events",
                source,
            })?;
        }
        Ok(())
    }

    fn stop(&self) {
        for (_, event) in self.leaders.iter().chain(&self.members) {
            let _ = event.disable();
        }
    }

    fn covers(&self, cpu: Cpu) -> bool {
        self.planned_cpus().contains(&cpu)
    }

    fn close_on(&mut self, cpu: Cpu) {
        self.members.retain(|(open, _)| *open != cpu);
        self.leaders.retain(|(open, _)| *open != cpu);
    }

    fn parse(raw: &[u8]) -> Option<(u64, MemoryRecord)> {
        let (record, _) = MemoryRecord::read_from_prefix(raw).ok()?;
        Some((record.time_ns, record))
    }

    fn pid(sample: &MemoryRecord) -> Pid {
        Pid(sample.pid)
    }

    fn take(&mut self, time_ns: u64, sample: &MemoryRecord, to: &mut Taking<'_>) {
        let Taking {
            live,
            threads,
            batch,
        } = to;
        let (pid, tid, cpu) = (Pid(sample.pid), Tid(sample.tid), Cpu(sample.cpu));
        let has = |flag| sample.flags & flag != 0;
        let in_kernel = has(SAMPLE_KERNEL);
        let exact = self.trusts_ip || has(SAMPLE_EXACT_IP);
        let measured = record::measured(sample);
        let latency = measured.latency_cycles.map_or(0, std::num::NonZeroU32::get);
        self.samples += 1;
        self.inexact += u64::from(!exact);
        batch.tally.samples += 1;
        batch.tally.kernel_samples += u64::from(in_kernel);
        batch.tally.cost += Cost(latency.into());
        // The interrupt may have come after the thread entered the kernel.
        if !in_kernel && sample.sp < KERNEL_START {
            let thread = SampledThread {
                pid,
                tid,
                sp: sample.sp,
                tp: has(SAMPLE_FS_BASE).then_some(sample.fs_base),
            };
            threads.tell(time_ns, thread, live, batch);
        }
        let tally = &mut batch.tally;
        let Some(addr) = record::address(sample) else {
            *tally
                .unresolved
                .entry(Unresolved::NoDataAddress)
                .or_default() += 1;
            return;
        };
        tally.attributed += 1;
        let seen = record::op(measured.source);
        let kernel = &mut live.kernel;
        let decoded = (exact && !has(SAMPLE_32BIT))
            .then(|| {
                let read = &mut |addr, len| read_kernel(kernel, addr, len);
                (self.code).access(&mut live.spaces, pid, sample.ip, seen, read)
            })
            .flatten();
        if in_kernel {
            let kernel = &mut live.kernel;
            let read = &mut |addr, len| read_kernel(kernel, addr, len);
            self.kernel_code.notice(sample.ip, read);
            self.kernel_code.tell(time_ns, live, batch);
        }
        batch.accesses.push(Access {
            time_ns,
            addr,
            ip: sample.ip,
            cost: Cost(latency),
            pid,
            tid,
            cpu,
            size: decoded.map_or(0, |access| access.size),
            // A PMU calls a read-modify-write a load or a store, as its event has it.
            op: decoded.map_or(seen, |access| access.op),
            basis: Basis::Sampled,
            locked: record::locked(measured.source) || decoded.is_some_and(|access| access.locked),
            kernel: in_kernel,
            measured,
            ..Access::BLANK
        });
    }

    fn count(&mut self, not_memory: u64) {
        self.elsewhere += not_memory;
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        let online = self.machine.online_cpus();
        let planned = self.planned_cpus();
        let left_out = online.iter().filter(|cpu| !planned.contains(cpu)).count();
        if left_out > 0 {
            caveats.push(format!(
                "{left_out} of {} CPUs have no PMU that samples memory, and were not sampled",
                online.len()
            ));
        }
        let names: BTreeSet<&str> = self
            .events
            .iter()
            .map(|event| event.name.as_str())
            .collect();
        if names.contains("mem-loads") && !names.contains("mem-stores") {
            caveats.push("this CPU samples loads only: a line's writers may be missing".to_owned());
        }
        if !self.has_offsets {
            caveats.push(
                "the kernel does not describe its types (/sys/kernel/btf/vmlinux): samples have addresses, \
                 but neither latency nor data source nor direction"
                    .to_owned(),
            );
        }
        if self.granted.iter().any(|granted| !granted.kernel) {
            caveats.push("kernel mode was not sampled: this user may not".to_owned());
        }
        if self.elsewhere > 0 {
            let all = self.elsewhere + self.samples;
            caveats.push(format!(
                "{} of {all} samples of the targets were of instructions that touch no memory",
                self.elsewhere
            ));
        }
        if self.inexact > 0 {
            caveats.push(format!(
                "{} of {} samples do not name their instruction exactly: code and sizes may be off by one \
                 instruction there",
                self.inexact, self.samples
            ));
        }
        caveats
    }
}

fn refused(
    source: std::io::Error,
    event: &PlannedEvent,
    cpu: Cpu,
    machine: &Machine,
) -> SourceError {
    let errno = source.raw_os_error();
    if errno == Some(libc::ENODEV) {
        let cpu = cpu.0.to_string();
        return OpenError::NoCpu { cpu, source }.into();
    }
    MemoryEventError {
        pmu: event.pmu.clone(),
        event: event.name.clone(),
        cpu: cpu.0,
        advice: refusal::advice(errno, &event.pmu, machine),
        source,
    }
    .into()
}

#[cfg(test)]
mod tests;
