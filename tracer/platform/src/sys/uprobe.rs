//! Probes on functions of files, by the kernel's `uprobe` PMU. Needs no tracefs.
//!
//! A probe is a breakpoint in the memory of each process that it is for. It is there from the opening of its
//! event to the closing: `PERF_EVENT_IOC_DISABLE` neither takes it out nor keeps programs from running
//! (kernel/trace/trace_uprobe.c, `uprobe_perf_func`). Closing waits for all CPUs, some 80 ms for each event,
//! under a lock of the whole kernel: the breakpoint is gone before the wait.

use std::{
    ffi::CString,
    fs::File,
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
    path::Path,
};

use super::{
    capabilities,
    perf_event::{self, Attributes, OpenError, PerfEvent, Scope, flag},
};
use crate::machine::Rights;

/// Where the kernel says which number the PMU has.
const PMU: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The PMU of probes on user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UprobePmu(u32);

/// The PMU's number, where there is one.
pub(super) fn pmu_number() -> Option<u32> {
    UprobePmu::find().ok().map(|UprobePmu(number)| number)
}

/// Why no function can be probed here.
#[derive(Debug, thiserror::Error)]
#[error("this kernel has no uprobe PMU ({PMU}): it needs CONFIG_UPROBE_EVENTS and Linux 4.17")]
pub struct NoUprobes(#[source] io::Error);

/// When a probe's program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the probed instruction.
    Entry,
    /// When the function that is entered at the probed instruction has returned. The return address must
    /// still be where the call put it.
    Return,
}

impl UprobePmu {
    /// Asks the kernel.
    pub fn find() -> Result<UprobePmu, NoUprobes> {
        UprobePmu::read(Path::new(PMU)).map_err(NoUprobes)
    }

    fn read(path: &Path) -> io::Result<UprobePmu> {
        let text = std::fs::read_to_string(path)?;
        let number = text.trim().parse();
        number
            .map(UprobePmu)
            .map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Puts a probe at an offset of a file, for all of a thread's process, and runs the program there. Both end with the value.
    pub fn open(
        self,
        file: &File,
        offset: u64,
        moment: Moment,
        scope: Scope,
        program: BorrowedFd<'_>,
    ) -> Result<PerfEvent, OpenError> {
        let event = self.probe(file, offset, moment, scope, 0)?;
        event
            .set_bpf(program)
            .map_err(|source| OpenError::Refused {
                cpu: "any".to_owned(),
                source,
            })?;
        Ok(event)
    }

    /// Puts a probe at an offset of a file, for a thread's process, that only counts; off at first.
    pub fn count(self, file: &File, offset: u64, scope: Scope) -> Result<PerfEvent, OpenError> {
        self.probe(file, offset, Moment::Entry, scope, flag::DISABLED)
    }

    fn probe(
        self,
        file: &File,
        offset: u64,
        moment: Moment,
        scope: Scope,
        flags: u64,
    ) -> Result<PerfEvent, OpenError> {
        // Whatever the file is called now, in whichever mount namespace.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let path = CString::new(path).unwrap_or_default();
        let attributes = Attributes {
            kind: self.0,
            // /sys/bus/event_source/devices/uprobe/format/retprobe
            config: u64::from(moment == Moment::Return),
            config1: path.as_ptr() as u64,
            config2: offset,
            flags,
            ..Attributes::default()
        };
        // The kernel reads the path before the call returns.
        let event = perf_event::open(&attributes, scope).map_err(|error| match error {
            OpenError::NotPermitted { source, .. } => OpenError::NoProbes {
                advice: capabilities::advice(Rights::Probes),
                source,
            },
            other => other,
        })?;
        drop(path);
        Ok(event)
    }
}
