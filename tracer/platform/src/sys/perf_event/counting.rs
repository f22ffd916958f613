//! Events that are counted and not sampled: those that a core's PMU knows by the kernel's general names.

use std::{io, os::fd::AsRawFd as _};

use super::{Attributes, OpenError, PerfEvent, flag};
use crate::perf_format::read_format;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_TYPE_HW_CACHE: u32 = 3;

/// What a core's PMU counts, as include/uapi/linux/perf_event.h names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HardwareEvent {
    /// Cycles of the core.
    Cycles,
    /// Instructions that retired.
    Instructions,
    /// Branches that retired.
    Branches,
    /// Those that were predicted wrongly.
    BranchMisses,
    /// Loads that miss the first data cache.
    DataReadMisses,
    /// Loads that find no translation of their address.
    TranslationReadMisses,
}

impl HardwareEvent {
    /// All of them.
    pub const ALL: [HardwareEvent; 6] = [
        HardwareEvent::Cycles,
        HardwareEvent::Instructions,
        HardwareEvent::Branches,
        HardwareEvent::BranchMisses,
        HardwareEvent::DataReadMisses,
        HardwareEvent::TranslationReadMisses,
    ];

    /// `perf_event_attr.type` and `config`. Of a cache: which one, then 0 for reads, then 1 for misses, a byte each.
    fn code(self) -> (u32, u64) {
        match self {
            HardwareEvent::Cycles => (PERF_TYPE_HARDWARE, 0),
            HardwareEvent::Instructions => (PERF_TYPE_HARDWARE, 1),
            HardwareEvent::Branches => (PERF_TYPE_HARDWARE, 4),
            HardwareEvent::BranchMisses => (PERF_TYPE_HARDWARE, 5),
            HardwareEvent::DataReadMisses => (PERF_TYPE_HW_CACHE, 1 << 16),
            HardwareEvent::TranslationReadMisses => (PERF_TYPE_HW_CACHE, 1 << 16 | 3),
        }
    }

    /// Counting it in user mode; off at first. `unit` is the type of one kind of core's PMU, where the machine has several:
    /// it goes above the event's code.
    pub fn attributes(self, unit: Option<u32>) -> Attributes {
        let (kind, config) = self.code();
        timed(Attributes {
            kind,
            config: config | u64::from(unit.unwrap_or(0)) << 32,
            flags: flag::DISABLED | flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        })
    }
}

/// The same event with the times that [`PerfEvent::counted`] needs.
pub fn timed(attributes: Attributes) -> Attributes {
    Attributes {
        read_format: read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING,
        ..attributes
    }
}

/// What was counted, and in how much of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Events.
    pub count: u64,
    /// Nanoseconds that the event was on while its thread ran.
    pub enabled_ns: u64,
    /// Nanoseconds of these that a counter of the PMU was its own.
    pub running_ns: u64,
}

impl Counted {
    /// Whether nothing was missed because others had the PMU's counters.
    pub fn is_whole(self) -> bool {
        self.running_ns >= self.enabled_ns
    }
}

impl PerfEvent {
    /// The count of an event whose attributes are [`timed`].
    ///
    /// # Errors
    /// The kernel's own answer; or fewer words than asked for, of an event without times.
    pub fn counted(&self) -> io::Result<Counted> {
        let mut words = [0_u64; 3];
        let bytes = size_of_val(&words);
        // SAFETY: the buffer is live and as long as said; any bytes are numbers.
        let read = unsafe { libc::read(self.0.as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        let [count, enabled_ns, running_ns] = words;
        match usize::try_from(read) {
            Ok(read) if read == bytes => Ok(Counted {
                count,
                enabled_ns,
                running_ns,
            }),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

impl OpenError {
    /// Whether no PMU here has the event, whoever asks.
    pub fn is_no_such_event(&self) -> bool {
        let (OpenError::Refused { source, .. } | OpenError::NoCpu { source, .. }) = self else {
            return false;
        };
        let none = [libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP];
        source.raw_os_error().is_some_and(|n| none.contains(&n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Tid,
        sys::perf_event::{self, Scope},
    };

    #[test]
    fn codes_are_the_kernels_and_those_of_one_kind_of_core_say_which() {
        let codes = HardwareEvent::ALL.map(|event| {
            let attributes = event.attributes(None);
            (attributes.kind, attributes.config)
        });
        let expected = [(0, 0), (0, 1), (0, 4), (0, 5), (3, 0x1_0000), (3, 0x1_0003)];
        assert_eq!(codes, expected);
        let core = HardwareEvent::Instructions.attributes(Some(10));
        assert_eq!((core.kind, core.config), (0, 10 << 32 | 1));
    }

    /// Of this thread, by an event that the kernel counts; `None` where it lets nobody.
    fn faults_of(pages: usize, attributes: Attributes) -> Option<io::Result<Counted>> {
        // SAFETY: the call has no precondition.
        let tid = Tid(unsafe { libc::gettid() } as u32);
        let event = match perf_event::open(&attributes, Scope::Thread(tid)) {
            Ok(event) => event,
            Err(why) => {
                cohtrace_skips::skipped_core(format_args!("no event of the kernel: {why}"));
                return None;
            }
        };
        let mut memory = memmap2::MmapMut::map_anon(pages.max(1) * 4096).unwrap();
        event.enable().unwrap();
        for page in 0..pages {
            memory[page * 4096] = 1;
        }
        event.disable().unwrap();
        Some(event.counted())
    }

    #[test]
    fn a_count_comes_with_its_times_and_one_without_times_is_an_error() {
        let whole = timed(perf_event::page_faults());
        let [Some(none), Some(some)] = [0, 8].map(|pages| faults_of(pages, whole)) else {
            return;
        };
        let (none, some) = (none.unwrap(), some.unwrap());
        assert!(some.count >= none.count + 8, "{none:?} {some:?}");
        assert!(some.enabled_ns > 0 && some.is_whole(), "{some:?}");
        let part = Counted {
            running_ns: some.enabled_ns - 1,
            ..some
        };
        assert!(!part.is_whole());
        assert!(faults_of(1, perf_event::page_faults()).unwrap().is_err());
    }

    #[test]
    fn an_event_that_no_pmu_has_is_told_from_one_that_is_not_allowed() {
        let refused = |number| OpenError::Refused {
            cpu: "any".to_owned(),
            source: io::Error::from_raw_os_error(number),
        };
        assert!(refused(libc::ENOENT).is_no_such_event());
        assert!(!refused(libc::EINVAL).is_no_such_event());
        let none = OpenError::NoThread {
            source: io::Error::from_raw_os_error(libc::ENOENT),
        };
        assert!(!none.is_no_such_event());
    }
}
