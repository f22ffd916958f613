//! What was found by trying: outcomes of system calls that no file tells in advance.
//!
//! Plain data; `sys::probe` fills it. A `None` was not tried.

use std::{fmt, io};

use serde::{Serialize, Serializer};

use crate::access::Cpu;

/// A system call that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `errno`.
    pub errno: i32,
    /// The call: `perf_event_open`, `bpf(BPF_PROG_LOAD)`.
    pub what: &'static str,
}

impl Refusal {
    /// Operation not permitted.
    pub const EPERM: i32 = 1;
    /// Permission denied.
    pub const EACCES: i32 = 13;
    /// Invalid argument; from the BPF loader also: unknown program type.
    pub const EINVAL: i32 = 22;
    /// No such system call.
    pub const ENOSYS: i32 = 38;

    /// Whether it is a matter of rights.
    pub fn is_permission(&self) -> bool {
        matches!(self.errno, Refusal::EPERM | Refusal::EACCES)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {error}", self.what)
    }
}

/// Outcome of one attempt.
pub type Attempt = Result<(), Refusal>;

/// An attempt in JSON.
#[derive(Serialize)]
struct Outcome {
    ok: bool,
    errno: Option<i32>,
    call: Option<&'static str>,
}

impl Outcome {
    fn of(attempt: &Attempt) -> Outcome {
        let refusal = attempt.as_ref().err();
        Outcome {
            ok: refusal.is_none(),
            errno: refusal.map(|refusal| refusal.errno),
            call: refusal.map(|refusal| refusal.what),
        }
    }
}

fn outcome<S: Serializer>(attempt: &Attempt, serializer: S) -> Result<S::Ok, S::Error> {
    Outcome::of(attempt).serialize(serializer)
}

#[expect(
    clippy::ref_option,
    reason = "serde hands over a reference to the field"
)]
fn tried<S: Serializer>(attempt: &Option<Attempt>, serializer: S) -> Result<S::Ok, S::Error> {
    attempt.as_ref().map(Outcome::of).serialize(serializer)
}

/// Everything that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveProbe {
    /// A cpu-clock event on the first online CPU for every process, kernel mode included: what the timer
    /// source opens on each CPU.
    #[serde(serialize_with = "tried")]
    pub cpu_clock: Option<Attempt>,
    /// A cpu-clock event on our own thread, user mode only: what anyone may open. Refused where even that
    /// is closed (`perf_event_paranoid` of 3 or 4, or a system call filter).
    #[serde(serialize_with = "tried")]
    pub own_thread_clock: Option<Attempt>,
    /// Loading a perf_event program that does nothing.
    #[serde(serialize_with = "tried")]
    pub bpf: Option<Attempt>,
    /// Loading a perf_event program that calls `bpf_probe_read_kernel`.
    #[serde(serialize_with = "tried")]
    pub kernel_reads: Option<Attempt>,
    /// Loading a raw tracepoint program that does nothing.
    #[serde(serialize_with = "tried")]
    pub raw_tracepoint: Option<Attempt>,
    /// Whether the emulator that `--source emulate` runs programs in was found.
    #[serde(skip)]
    pub emulator: Option<bool>,
    /// Opening a probe on a function, which `--heap` needs.
    #[serde(serialize_with = "tried")]
    pub uprobes: Option<Attempt>,
    /// Free hardware breakpoints.
    #[serde(skip)]
    pub breakpoints: Option<BreakpointSlots>,
    /// One attempt for each memory event that sysfs lists.
    #[serde(skip)]
    pub memory_events: Vec<MemoryAttempt>,
}

/// How many data breakpoints could be held open at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakpointSlots {
    /// Number opened before one was refused.
    pub free: u32,
    /// Where they were opened: on one CPU for every process, or (`None`) on our own thread, when the
    /// former is not allowed.
    pub cpu: Option<Cpu>,
    /// Why no more: ENOSPC when the slots are used up. `None` when the limit of the probe was reached.
    pub end: Option<Refusal>,
}

/// Opening one memory event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryAttempt {
    /// PMU name.
    #[serde(skip)]
    pub pmu: String,
    /// Event name, or the PMU's name again where the PMU is the event (IBS, SPE).
    pub event: String,
    /// Whether it worked, and if not, why.
    #[serde(serialize_with = "outcome")]
    pub outcome: Attempt,
}
