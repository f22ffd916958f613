//! `perf_event_open(2)` and the ioctls on its descriptors.
//!
//! Our own attribute struct: aya's attach can express neither `sample_type` nor side-band bits, and
//! a field that was not requested is uninitialised kernel stack to a BPF program.

pub mod counting;

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
};

use super::capabilities;
/// Bits of [`Attributes::flags`] and of [`Attributes::sample_type`].
pub use crate::perf_format::{attr_flag as flag, sample_type as sample};
use crate::{access::Cpu, machine::Rights};

/// `struct perf_event_attr` of include/uapi/linux/perf_event.h up to `PERF_ATTR_SIZE_VER5`
/// (Linux 4.1), which every kernel that can run the sampler accepts. All zero is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Attributes {
    /// `PERF_TYPE_*`.
    pub kind: u32,
    /// Bytes of this struct; set when it is handed to the kernel.
    pub size: u32,
    /// Which event of the kind.
    pub config: u64,
    /// Nanoseconds (cpu-clock) or events between samples.
    pub sample_period: u64,
    /// `PERF_SAMPLE_*`.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub read_format: u64,
    /// [`flag`] bits: the header's bit-field.
    pub flags: u64,
    /// Bytes in the ring before a poll wakes, with [`flag::WATERMARK`]; records without.
    pub wakeup_watermark: u32,
    /// Breakpoint type.
    pub breakpoint_type: u32,
    /// `config1`, or the breakpoint's address.
    pub config1: u64,
    /// `config2`, or the breakpoint's length.
    pub config2: u64,
    /// Branch sampling.
    pub branch_sample_type: u64,
    /// User registers in samples.
    pub sample_regs_user: u64,
    /// User stack bytes in samples.
    pub sample_stack_user: u32,
    /// Clock of the time stamps, with [`flag::USE_CLOCKID`].
    pub clockid: i32,
    /// Interrupt registers in samples.
    pub sample_regs_intr: u64,
    /// AUX area wake-up.
    pub aux_watermark: u32,
    /// Call chain depth.
    pub sample_max_stack: u16,
    /// Always 0.
    pub reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

impl Attributes {
    fn sized(&self) -> Attributes {
        Attributes {
            size: size_of::<Attributes>() as u32,
            ..*self
        }
    }
}

const PERF_TYPE_BREAKPOINT: u32 = 5;
/// include/uapi/linux/hw_breakpoint.h; x86-64 has no breakpoint on reads alone.
const HW_BREAKPOINT_RW: u32 = 3;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_COUNT_SW_BPF_OUTPUT: u64 = 10;

/// `perf_event_attr.type` of events that the kernel itself counts.
pub const PERF_TYPE_SOFTWARE: u32 = 1;

/// The timer: a sample every `period_ns` on a CPU, whoever runs there; off at first.
///
/// A period, not a frequency: the kernel turns a frequency of this event into a fixed period anyway
/// (`perf_swevent_init_hrtimer`), and a period is what each sample stands for, exactly. The program
/// takes registers from its context and the rest from helpers; only the ip is requested, because
/// before a program runs the kernel fills in whatever was (`perf_prepare_sample`).
pub fn cpu_clock(period_ns: u64) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: period_ns,
        sample_type: sample::IP,
        flags: flag::DISABLED | flag::EXCLUDE_IDLE,
        ..Attributes::default()
    }
}

/// Page faults of a thread, counted and not sampled; off at first.
pub fn page_faults() -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_PAGE_FAULTS,
        flags: flag::DISABLED,
        ..Attributes::default()
    }
}

/// Time that a thread runs, nanoseconds, counted from when it is opened on.
pub fn task_clock() -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_TASK_CLOCK,
        ..Attributes::default()
    }
}

/// Side-band: mappings (code and data), names, forks and exits on a CPU, each with pid, tid, CPU and
/// CLOCK_MONOTONIC time, the clock of BPF's `bpf_ktime_get_ns`; off at first. A poll wakes when
/// `wakeup_bytes` are in the ring.
pub fn sideband(wakeup_bytes: u32) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY,
        sample_type: sample::TID | sample::TIME | sample::CPU,
        flags: flag::DISABLED
            | flag::MMAP
            | flag::MMAP2
            | flag::MMAP_DATA
            | flag::COMM
            | flag::COMM_EXEC
            | flag::TASK
            | flag::WATERMARK
            | flag::SAMPLE_ID_ALL
            | flag::USE_CLOCKID,
        wakeup_watermark: wakeup_bytes,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// Where a BPF program's `bpf_perf_event_output` goes on a CPU. On at once: it takes nothing by
/// itself. A poll wakes when `wakeup_bytes` are in the ring, never for a single record.
pub fn bpf_output(wakeup_bytes: u32) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_BPF_OUTPUT,
        sample_type: sample::RAW,
        sample_period: 1,
        flags: flag::WATERMARK,
        wakeup_watermark: wakeup_bytes,
        ..Attributes::default()
    }
}

/// A data breakpoint: a sample on each load and store that touches one of the `len` bytes (1, 2, 4 or 8) at
/// `addr`, a multiple of `len`; off at first. System calls that touch them are seen too.
///
/// A CPU has few registers for these (four on x86-64), and an open event holds one, on or off.
pub fn data_breakpoint(addr: u64, len: u8) -> Attributes {
    Attributes {
        kind: PERF_TYPE_BREAKPOINT,
        sample_period: 1,
        sample_type: sample::IP | sample::ADDR,
        flags: flag::DISABLED,
        breakpoint_type: HW_BREAKPOINT_RW,
        config1: addr,
        config2: u64::from(len),
        ..Attributes::default()
    }
}

/// Why an event could not be opened, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Not allowed.
    #[error(
        "the kernel does not let this user watch CPU {cpu}: {advice}; kernel.perf_event_paranoid is {paranoid} (above \
         2, some distributions want root)"
    )]
    NotPermitted {
        /// What is lacking.
        advice: String,
        /// Which CPU, or `any`.
        cpu: String,
        /// `/proc/sys/kernel/perf_event_paranoid`, as it reads.
        paranoid: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Not allowed to look into the code of others.
    #[error("the kernel does not let this user probe functions, as --heap does: {advice}")]
    NoProbes {
        /// What is lacking.
        advice: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Out of descriptors.
    #[error("no file descriptor is left for CPU {cpu}")]
    TooManyFiles {
        /// Which CPU, or `any`.
        cpu: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The CPU went away, or never was.
    #[error("CPU {cpu} is not online")]
    NoCpu {
        /// Which CPU.
        cpu: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Every breakpoint register is taken.
    #[error(
        "no breakpoint register left for CPU {cpu}: a debugger's watchpoints or another tracer hold them; \
         end it, or delete its watchpoints (gdb: `delete`)"
    )]
    NoSlot {
        /// Which CPU, or `any`.
        cpu: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The thread ended, or never was.
    #[error("the thread has ended")]
    NoThread {
        /// The kernel's answer.
        source: io::Error,
    },
    /// Anything else: the event is not known here.
    #[error("the kernel refused the event on CPU {cpu}: is it built with CONFIG_PERF_EVENTS?")]
    Refused {
        /// Which CPU, or `any`.
        cpu: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// An open event; it ends with the value.
#[derive(Debug)]
pub struct PerfEvent(OwnedFd);

/// Which threads an event watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Whoever runs on the CPU.
    Cpu(Cpu),
    /// One thread, wherever it runs.
    Thread(crate::access::Tid),
}

/// Opens an event. The descriptor is closed on exec.
pub fn open(attributes: &Attributes, scope: Scope) -> Result<PerfEvent, OpenError> {
    open_in_group(attributes, scope, None).map_err(|source| open_error(source, scope))
}

/// The same, behind the leader of a group, with which it is then always scheduled. The error is the kernel's own
/// answer: what it means depends on the event.
pub fn open_in_group(
    attributes: &Attributes,
    scope: Scope,
    leader: Option<&PerfEvent>,
) -> io::Result<PerfEvent> {
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
    const NO_GROUP: RawFd = -1;
    let attributes = attributes.sized();
    let (pid, cpu) = match scope {
        Scope::Cpu(cpu) => (-1, cpu.0 as i32),
        Scope::Thread(tid) => (tid.0 as i32, -1),
    };
    // SAFETY: `attributes` is live and says its own size; the kernel only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            pid,
            cpu,
            leader.map_or(NO_GROUP, |leader| leader.0.as_raw_fd()),
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nobody else owns it.
    Ok(PerfEvent(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

fn open_error(source: io::Error, scope: Scope) -> OpenError {
    let cpu = match scope {
        Scope::Cpu(cpu) => cpu.0.to_string(),
        Scope::Thread(_) => "any".to_owned(),
    };
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => OpenError::NotPermitted {
            advice: capabilities::advice(Rights::Events),
            cpu,
            paranoid: std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
                .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned()),
            source,
        },
        Some(libc::EMFILE | libc::ENFILE) => OpenError::TooManyFiles { cpu, source },
        Some(libc::ENODEV) => OpenError::NoCpu { cpu, source },
        Some(libc::ENOSPC) => OpenError::NoSlot { cpu, source },
        Some(libc::ESRCH) => OpenError::NoThread { source },
        _ => OpenError::Refused { cpu, source },
    }
}

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_REFRESH: libc::c_ulong = 0x2402;
const IOC_PERIOD: libc::c_ulong = 0x4008_2404;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;
const IOC_MODIFY_ATTRIBUTES: libc::c_ulong = 0x4008_240b;

impl PerfEvent {
    /// Starts counting and sampling.
    pub fn enable(&self) -> io::Result<()> {
        self.ioctl(IOC_ENABLE, 0)
    }

    /// Stops. When it returns, no sample of this event is under way on any CPU.
    pub fn disable(&self) -> io::Result<()> {
        self.ioctl(IOC_DISABLE, 0)
    }

    /// Raises the event's limit by `overflows`, and starts it. When the limit has been counted down to 0,
    /// the kernel disables the event. See the kernel half's `watch` for what counts down.
    pub fn refresh(&self, overflows: u32) -> io::Result<()> {
        self.ioctl(IOC_REFRESH, libc::c_ulong::from(overflows))
    }

    /// Sets the events between samples, at least 1; of a running event, this stops and starts the counter.
    pub fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: the number is live; the kernel only reads it.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_PERIOD, &raw const period) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Moves a breakpoint, and leaves it off. Its address and length may be others than before, nothing
    /// else.
    pub fn modify(&self, attributes: &Attributes) -> io::Result<()> {
        let attributes = attributes.sized();
        // SAFETY: `attributes` is live and says its own size; the kernel only reads it.
        let status = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                IOC_MODIFY_ATTRIBUTES,
                &raw const attributes,
            )
        };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Runs a BPF program on each overflow, for as long as the event is open. One per event.
    pub fn set_bpf(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.ioctl(IOC_SET_BPF, program.as_raw_fd() as libc::c_ulong)
    }

    /// Sends this event's records into another event's ring. Both must be of the same CPU.
    pub fn set_output(&self, ring: &PerfEvent) -> io::Result<()> {
        self.ioctl(IOC_SET_OUTPUT, ring.0.as_raw_fd() as libc::c_ulong)
    }

    /// The event's count: nanoseconds for the cpu-clock, whether or not a sample was taken.
    pub fn count(&self) -> io::Result<u64> {
        let mut count = [0u8; 8];
        // SAFETY: the buffer is live and as long as said; `read_format` 0 gives one u64.
        let read = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
        match read {
            8 => Ok(u64::from_ne_bytes(count)),
            0.. => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn ioctl(&self, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take a plain number, and touch no memory of ours.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for PerfEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
