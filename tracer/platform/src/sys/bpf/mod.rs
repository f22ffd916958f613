//! The kernel half: loads the embedded object and is its only remote control.
//!
//! Programs, maps and links are held by descriptors alone (nothing is pinned), so the kernel drops
//! them when the process ends, however it ends.

mod error;
mod heap;
mod memory;
mod memory_lock;
mod told;
mod watch;

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
};

use aya::{
    Ebpf, EbpfLoader,
    maps::{Array, Map, MapData, MapError, PerCpuArray},
    programs::{
        PerfEvent as SampleProgram, Program, ProgramError, RawTracePoint, RawTracePointRunOptions,
        TestRun as _,
    },
};
use tracer_ebpf::{
    HEAP_CALLS, HEAP_EVENTS, KERNEL_TEXT, KERNEL_TEXT_BYTES, SAMPLES, STATS, Stats, TARGET_CHUNK,
    TARGETS, globals, programs,
};

pub use self::{
    error::BpfError,
    heap::{Heap, HeapEvent, HeapPrograms, HeapRing, HeapStatsMap},
    memory::OnMemory,
    told::Told,
    watch::{OnHit, Watch},
};
use self::{
    error::{map_error, object_error, program_error},
    memory_lock::MemoryLockLimit,
    told::Telling,
};
use super::{perf_event::PerfEvent, target_table::TargetTable};
use crate::{
    access::{Cpu, Pid},
    machine::btf::MemoryOffsets,
};

/// The object of this architecture, and the debug object.
macro_rules! objects {
    ($architecture:literal) => {
        static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
            "../../../../../tracer-ebpf/prebuilt/cohtrace-",
            $architecture,
            ".bpf.o"
        ));
        static LOG_OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
            "../../../../../tracer-ebpf/prebuilt/cohtrace-",
            $architecture,
            "-log.bpf.o"
        ));
    };
}
#[cfg(target_arch = "x86_64")]
objects!("x86_64");
#[cfg(target_arch = "aarch64")]
objects!("aarch64");
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("there is a kernel half for x86_64 and aarch64 only; see `cargo xtask ebpf`");

/// No kernel gives out higher pids (include/linux/threads.h); the table is then 4 MiB.
const PID_MAX_LIMIT: u32 = 1 << 22;

/// The least ring and hash that every kernel makes, for programs that will not run. Pages are 64 KiB at most.
const UNUSED_RING_BYTES: u32 = 1 << 16;
const UNUSED_CALLS: u32 = 1 << 10;

/// What the kernel half must know before it is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Sample every process but our own, instead of the targets.
    pub all_processes: bool,
    /// Highest pid the kernel gives out: `/proc/sys/kernel/pid_max`.
    pub pid_max: u32,
    /// Byte offset of `task_struct.tgid`; forks are not followed without it.
    pub tgid_offset: Option<u32>,
    /// Byte offset of the user thread pointer in `task_struct` (x86-64 `thread.fsbase`, aarch64
    /// `thread.uw.tp_value`); samples come without it when unknown.
    pub thread_pointer_offset: Option<u32>,
    /// Where a PMU's sample has what, for [`KernelHalf::memory`].
    pub memory_offsets: MemoryOffsets,
    /// Allocations of fewer bytes are not told. `None`: [`KernelHalf::heap`] will not be asked for, and the
    /// maps it takes stay small.
    pub heap_least: Option<u64>,
    /// Load the debug object, for [`KernelHalf::take_told`]: the same programs, each told by an entry of its own.
    pub tells: bool,
}

/// The loaded kernel half.
#[derive(Debug)]
pub struct KernelHalf {
    ebpf: Ebpf,
    targets: TargetTable,
    knows_tgid: bool,
    follows_forks: bool,
    telling: Option<Telling>,
}

impl KernelHalf {
    /// Loads maps and the sampling program. Nothing runs yet.
    pub fn load(options: &Options) -> Result<KernelHalf, BpfError> {
        let limit = MemoryLockLimit::lift();
        let all_processes = u32::from(options.all_processes);
        let own_pid = std::process::id();
        let tgid = options.tgid_offset.unwrap_or(0);
        let thread_pointer = options.thread_pointer_offset.unwrap_or(0);
        let chunks = options.pid_max.min(PID_MAX_LIMIT) / TARGET_CHUNK as u32 + 1;
        let heap_least = options.heap_least.unwrap_or(1).max(1);
        let memory_at = memory::offsets(&options.memory_offsets);
        let mut loader = EbpfLoader::new();
        if options.heap_least.is_none() {
            loader
                .map_max_entries(HEAP_EVENTS, UNUSED_RING_BYTES)
                .map_max_entries(HEAP_CALLS, UNUSED_CALLS);
        }
        let mut ebpf = loader
            .override_global(globals::HEAP_LEAST, &heap_least, true)
            .override_global(globals::MEMORY_AT, &memory_at, true)
            .override_global(globals::ALL_PROCESSES, &all_processes, true)
            .override_global(globals::OWN_PID, &own_pid, true)
            .override_global(globals::TASK_TGID, &tgid, true)
            .override_global(globals::TASK_FS_BASE, &thread_pointer, true)
            .map_max_entries(TARGETS, chunks)
            .load(if options.tells { LOG_OBJECT } else { OBJECT })
            .map_err(object_error)?;
        drop(limit);
        let telling = options.tells.then(|| Telling::of(&mut ebpf)).transpose()?;
        let table = map_data(&ebpf, TARGETS)?;
        let targets = TargetTable::map(table.fd().as_fd(), chunks as usize * TARGET_CHUNK)
            .map_err(|source| BpfError::Call {
                action: "mapping the table of targets".to_owned(),
                source,
            })?;
        let mut half = KernelHalf {
            ebpf,
            targets,
            knows_tgid: options.tgid_offset.is_some(),
            follows_forks: false,
            telling,
        };
        half.program::<SampleProgram>(programs::SAMPLE)?
            .load()
            .map_err(|error| program_error(programs::SAMPLE, error))?;
        Ok(half)
    }

    /// What programs told since the last time of why they did nothing; always nothing without [`Options::tells`].
    pub fn take_told(&mut self) -> Vec<Told> {
        self.telling.as_mut().map(Telling::take).unwrap_or_default()
    }

    /// How this object calls what runs a program.
    fn entry(&self, name: &'static str) -> &'static str {
        if self.telling.is_some() {
            told::entry(name)
        } else {
            name
        }
    }

    fn program<'a, P>(&'a mut self, name: &'static str) -> Result<&'a mut P, BpfError>
    where
        &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
    {
        let entry = self.entry(name);
        self.ebpf
            .program_mut(entry)
            .ok_or(ProgramError::UnexpectedProgramType)
            .and_then(TryInto::try_into)
            .map_err(|error| program_error(name, error))
    }

    /// Runs the sampling program on each overflow of a cpu-clock event, for as long as the event is
    /// open.
    pub fn attach_sample(&self, event: &PerfEvent) -> Result<(), BpfError> {
        let program = self.ebpf.program(self.entry(programs::SAMPLE));
        let fd = program
            .ok_or(ProgramError::UnexpectedProgramType)
            .and_then(<&SampleProgram>::try_from)
            .and_then(SampleProgram::fd)
            .map_err(|error| program_error(programs::SAMPLE, error))?;
        event.set_bpf(fd.as_fd()).map_err(|source| BpfError::Call {
            action: "attaching the sampling program to the cpu-clock".to_owned(),
            source,
        })
    }

    /// Sends the samples taken on a CPU to the ring of a `bpf_output` event of the same CPU. Without
    /// one, the samples of that CPU count as dropped.
    pub fn set_ring(&self, cpu: Cpu, event: &PerfEvent) -> Result<(), BpfError> {
        let samples = map_data(&self.ebpf, SAMPLES)?;
        update_element(samples.fd().as_fd(), cpu.0, event.as_fd().as_raw_fd()).map_err(|source| {
            BpfError::Call {
                action: format!("giving CPU {} its ring of samples", cpu.0),
                source,
            }
        })
    }

    /// Says whether a process is sampled. `false` when its pid is above the `pid_max` of the load.
    #[must_use]
    pub fn set_target(&self, pid: Pid, target: bool) -> bool {
        self.targets.set(pid, target)
    }

    /// Whether a process is a target, by [`Self::set_target`] or as the child of one.
    pub fn is_target(&self, pid: Pid) -> bool {
        self.targets.get(pid)
    }

    /// From now on, a process forked by a target is a target, and one forked by another is not. Call
    /// it before [`Self::set_target`], so that no fork falls in between. Returns whether it can be
    /// done: not without `tgid_offset`.
    pub fn attach_fork(&mut self) -> Result<bool, BpfError> {
        if !self.knows_tgid || self.follows_forks {
            return Ok(self.follows_forks);
        }
        let failed = |error| program_error(programs::TASK_FORK, error);
        let program = self.program::<RawTracePoint>(programs::TASK_FORK)?;
        program.load().map_err(failed)?;
        program.attach("sched_process_fork").map_err(failed)?;
        self.follows_forks = true;
        Ok(true)
    }

    /// The kernel half's own counts, per possible CPU. Exact once the cpu-clock events are disabled;
    /// before, a sample under way may be produced and not yet emitted or dropped.
    pub fn stats(&self) -> Result<Vec<(Cpu, Stats)>, BpfError> {
        let failed = |error| map_error(STATS, error);
        let map = self
            .ebpf
            .map(STATS)
            .ok_or_else(|| failed(MapError::ElementNotFound))?;
        let stats: PerCpuArray<_, [u64; STATS_WORDS]> = map.try_into().map_err(failed)?;
        let words = stats.get(&0, 0).map_err(failed)?;
        Ok((0..)
            .map(Cpu)
            .zip(words.iter().map(|words| zerocopy::transmute!(*words)))
            .collect())
    }

    /// Copies kernel memory, at most [`KERNEL_TEXT_BYTES`] at once. Fails with `EFAULT` where
    /// nothing is mapped, and with `ERANGE` where the kernel maps nothing by rule. Needs Linux 5.10
    /// (`BPF_PROG_TEST_RUN` of raw tracepoints).
    pub fn read_kernel(&mut self, address: u64, len: usize) -> Result<Vec<u8>, BpfError> {
        let failed = |error| program_error(programs::READ_KERNEL, error);
        let len = len.min(KERNEL_TEXT_BYTES);
        let program = self.program::<RawTracePoint>(programs::READ_KERNEL)?;
        if program.fd().is_err() {
            program.load().map_err(failed)?;
        }
        let mut run = RawTracePointRunOptions::new();
        run.args[0] = address;
        run.args[1] = len as u64;
        let status = program.test_run(run).map_err(failed)?.return_value as i32;
        if status != 0 {
            return Err(BpfError::Call {
                action: format!("reading {len} bytes of kernel memory at {address:#x}"),
                source: io::Error::from_raw_os_error(-status),
            });
        }
        let failed = |error| map_error(KERNEL_TEXT, error);
        let map = self
            .ebpf
            .map(KERNEL_TEXT)
            .ok_or_else(|| failed(MapError::ElementNotFound))?;
        let text: Array<_, [u8; KERNEL_TEXT_BYTES]> = map.try_into().map_err(failed)?;
        let text = text.get(&0, 0).map_err(failed)?;
        Ok(text[..len].to_vec())
    }
}

/// [`Stats`] as aya can read it; the trait it asks for cannot be implemented outside of both crates.
const STATS_WORDS: usize = size_of::<Stats>() / size_of::<u64>();

fn map_data<'a>(ebpf: &'a Ebpf, name: &'static str) -> Result<&'a MapData, BpfError> {
    match ebpf.map(name) {
        Some(
            Map::Array(data)
            | Map::PerCpuArray(data)
            | Map::PerfEventArray(data)
            | Map::RingBuf(data),
        ) => Ok(data),
        _ => Err(map_error(name, MapError::ElementNotFound)),
    }
}

/// `bpf(BPF_MAP_UPDATE_ELEM)` of a u32 by a u32: aya opens its own events for a perf event array and
/// takes no other's.
fn update_element(map: BorrowedFd<'_>, key: u32, value: i32) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    /// The command's part of `union bpf_attr` (include/uapi/linux/bpf.h).
    #[repr(C)]
    struct Element {
        map_fd: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let element = Element {
        map_fd: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    // SAFETY: the attribute and what it points to live through the call, and have the sizes that a
    // perf event array's key and value have.
    let status = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_ELEM,
            &raw const element,
            size_of::<Element>(),
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
