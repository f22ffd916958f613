//! The `timer` source: cpu-clock samples by BPF on every CPU, decoded to the accesses around them.
//! Needs no PMU.

use std::sync::Arc;

use tracer_ebpf::{SAMPLE_32BIT, SAMPLE_FS_BASE, SAMPLE_KERNEL, SampleRecord};
use zerocopy::FromBytes;

use super::{
    Evidence, Source, SourceError, SourceKind, SourceOptions, Target,
    live::read_kernel,
    sampled_code::SampledCode,
    sampling::{Sampler, Sampling, Taking},
    threads::SampledThread,
    waits::{Owner, Placed, Sampled, Waits},
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Pid, Tid},
    decode::{Registers, Stall, Touch},
    event::Unresolved,
    machine::{Machine, btf::KernelOffsets},
    module::ModuleStore,
    sys::{
        bpf::KernelHalf,
        perf_event::{self, PerfEvent, Scope},
    },
};

/// Position of the stack pointer among x86-64's registers.
const RSP: usize = 4;

/// The registered kind.
pub static KIND: Kind = Kind;

/// Describes and opens the timer source.
pub struct Kind;

impl SourceKind for Kind {
    fn name(&self) -> &'static str {
        "timer"
    }

    fn about(&self) -> &'static str {
        "cpu-clock samples and instruction decoding; needs no PMU"
    }

    fn evidence(&self) -> Evidence {
        Evidence::DATA_ADDR
            .and(Evidence::EXACT_IP)
            .and(Evidence::STORES)
            .and(Evidence::COST)
    }

    fn open(
        &self,
        target: &Target,
        options: &SourceOptions,
        machine: &Machine,
        modules: Arc<ModuleStore>,
    ) -> Result<Box<dyn Source>, SourceError> {
        // Without BTF the kernel half does without: later children, no thread pointers.
        let offsets = KernelOffsets::of_running_kernel().unwrap_or_default();
        let timer = open(target, options, machine, &offsets, &modules)?;
        Ok(Box::new(timer))
    }
}

fn open(
    target: &Target,
    options: &SourceOptions,
    machine: &Machine,
    offsets: &KernelOffsets,
    modules: &Arc<ModuleStore>,
) -> Result<Sampling<Timer>, SourceError> {
    let timer = Timer {
        clocks: Vec::new(),
        period_ns: 1_000_000_000 / options.frequency_hz.max(1),
        code: SampledCode::new(modules.clone()),
        touches: Vec::new(),
        waits: Waits::default(),
        placed: Vec::new(),
        owners: Vec::new(),
    };
    Sampling::open(target, options, machine, offsets, modules, timer)
}

/// A cpu-clock on each CPU.
struct Timer {
    clocks: Vec<(Cpu, PerfEvent)>,
    period_ns: u64,
    code: SampledCode,
    waits: Waits,
    /// Of the sample that is taken.
    touches: Vec<Touch>,
    placed: Vec<Placed>,
    owners: Vec<Owner>,
}

impl Sampler for Timer {
    type Record = SampleRecord;

    fn open_on(&mut self, cpu: Cpu, kernel: &mut KernelHalf) -> Result<(), SourceError> {
        let clock = perf_event::open(&perf_event::cpu_clock(self.period_ns), Scope::Cpu(cpu))?;
        kernel.attach_sample(&clock)?;
        self.clocks.push((cpu, clock));
        Ok(())
    }

    fn start(&self) -> Result<(), SourceError> {
        for (_, clock) in &self.clocks {
            clock.enable().map_err(|source| SourceError::System {
                what: "starting the cpu-clock",
                source,
            })?;
        }
        Ok(())
    }

    fn stop(&self) {
        for (_, clock) in &self.clocks {
            let _ = clock.disable();
        }
    }

    fn close_on(&mut self, cpu: Cpu) {
        self.clocks.retain(|(open, _)| *open != cpu);
    }

    fn period_ns(&self) -> Option<u64> {
        Some(self.period_ns)
    }

    fn parse(raw: &[u8]) -> Option<(u64, SampleRecord)> {
        let (sample, _) = SampleRecord::read_from_prefix(raw).ok()?;
        Some((sample.time_ns, sample))
    }

    fn pid(sample: &SampleRecord) -> Pid {
        Pid(sample.pid)
    }

    fn take(&mut self, time_ns: u64, sample: &SampleRecord, to: &mut Taking<'_>) {
        let Taking {
            live,
            threads,
            batch,
        } = to;
        let tally = &mut batch.tally;
        tally.samples += 1;
        tally.cost += Cost(self.period_ns);
        let (pid, tid, cpu) = (Pid(sample.pid), Tid(sample.tid), Cpu(sample.cpu));
        let in_kernel = sample.flags & SAMPLE_KERNEL != 0;
        let registers = registers(sample);
        if in_kernel {
            tally.kernel_samples += 1;
        } else {
            let thread = SampledThread {
                pid,
                tid,
                sp: registers.gpr[RSP],
                tp: registers.fs_base,
            };
            threads.tell(time_ns, thread, live, batch);
        }
        let tally = &mut batch.tally;
        self.touches.clear();
        if sample.flags & SAMPLE_32BIT != 0 {
            *tally.unresolved.entry(Unresolved::Code32Bit).or_default() += 1;
            return;
        }
        let kernel = &mut live.kernel;
        let harvest = self.code.harvest(
            &mut live.spaces,
            pid,
            &registers,
            &mut |addr, len| read_kernel(kernel, addr, len),
            &mut self.touches,
        );
        tally.operands_unknown += u64::from(harvest.operands_unknown);
        self.code.kernel_code.tell(time_ns, live, batch);
        let tally = &mut batch.tally;
        self.placed.clear();
        for touch in &self.touches {
            let (_, place) = live.spaces.place(pid, touch.addr);
            self.placed.push(Placed::new(*touch, place));
        }
        let by = Sampled { time_ns, tid, cpu };
        (self.waits).owners(&harvest, &mut self.placed, by, &mut self.owners);
        if self.owners.is_empty() {
            let reason = match harvest.stall {
                Stall::Unresolved(reason) => reason,
                // In a loop that waits, for another word than the one read last.
                Stall::Attributed => Unresolved::RegisterOverwritten,
            };
            *tally.unresolved.entry(reason).or_default() += 1;
        } else {
            tally.attributed += 1;
        }
        let mut shares = shares(self.period_ns as u32, self.owners.len());
        for (number, Placed { touch, .. }) in self.placed.iter().enumerate() {
            let access = Access {
                time_ns,
                addr: touch.addr,
                ip: touch.ip,
                pid,
                tid,
                cpu,
                size: touch.size,
                op: touch.op,
                basis: touch.basis,
                locked: touch.locked,
                kernel: in_kernel,
                ..Access::BLANK
            };
            let owner = self.owners.iter().find(|owner| owner.touch == number);
            batch.accesses.push(match owner {
                Some(owner) => Access {
                    cost: Cost(shares.next().unwrap_or(0)),
                    basis: Basis::Stalled,
                    wait: owner.wait,
                    instead: owner.instead,
                    ..access
                },
                // It retired last, but another access was waited for.
                None if touch.basis == Basis::Stalled => Access {
                    basis: Basis::Decoded,
                    ..access
                },
                None => access,
            });
        }
    }
}

/// A time in equal parts, the first ones larger where it does not divide.
fn shares(time_ns: u32, parts: usize) -> impl Iterator<Item = u32> {
    let parts = parts as u32;
    (0..parts).map(move |part| time_ns / parts + u32::from(part < time_ns % parts))
}

/// The registers of a sample or hit.
pub(super) fn registers(sample: &SampleRecord) -> Registers {
    Registers {
        gpr: sample.regs,
        ip: sample.ip,
        fs_base: (sample.flags & SAMPLE_FS_BASE != 0).then_some(sample.fs_base),
        gs_base: None,
    }
}

#[cfg(test)]
mod tests;
