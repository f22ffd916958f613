//! Opens a planned event in the best way that the kernel grants.

use std::io;

use super::plan::PlannedEvent;
use crate::sys::perf_event::{Attributes, flag, sample};

/// What was granted; a start for the next CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    /// Place in [`PlannedEvent::precise`].
    precise: usize,
    /// Physical addresses.
    pub physical: bool,
    /// Kernel mode.
    pub kernel: bool,
}

impl Default for Granted {
    fn default() -> Granted {
        Granted {
            precise: 0,
            physical: true,
            kernel: true,
        }
    }
}

impl Granted {
    /// The event's attributes, and its leader's.
    fn attributes(&self, event: &PlannedEvent) -> (Attributes, Option<Attributes>) {
        let mut attributes = match event.user_only {
            Some(user_only) if !self.kernel => user_only,
            _ => event.attributes,
        };
        let precise = event.precise.get(self.precise).copied().unwrap_or(0);
        attributes.flags |= precise << flag::PRECISE_SHIFT & flag::PRECISE_MASK;
        if !self.physical {
            attributes.sample_type &= !sample::PHYS_ADDR;
        }
        let leader = event.leader.map(|leader| Attributes {
            flags: leader.flags | attributes.flags & flag::EXCLUDE_KERNEL,
            ..leader
        });
        (attributes, leader)
    }

    /// Less, after a refusal that less may overcome. Too high a precision is EOPNOTSUPP; physical addresses and
    /// kernel mode each need rights (`perf_allow_kernel`).
    fn less(&mut self, event: &PlannedEvent, errno: Option<i32>) -> bool {
        match errno {
            Some(libc::EOPNOTSUPP) if self.precise + 1 < event.precise.len() => {
                self.precise += 1;
                true
            }
            Some(libc::EACCES | libc::EPERM) if self.physical => {
                self.physical = false;
                true
            }
            Some(libc::EACCES | libc::EPERM) if self.kernel && event.user_only.is_some() => {
                self.kernel = false;
                true
            }
            _ => false,
        }
    }
}

/// Opens by `open`, given the event's attributes and its leader's, until it succeeds or nothing is left to do
/// without. The error is the last one.
pub(super) fn open<T>(
    event: &PlannedEvent,
    granted: &mut Granted,
    mut open: impl FnMut(&Attributes, Option<&Attributes>) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        let (attributes, leader) = granted.attributes(event);
        match open(&attributes, leader.as_ref()) {
            Ok(opened) => return Ok(opened),
            Err(error) if granted.less(event, error.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan, *};
    use crate::{
        machine::{Machine, fixture},
        source::MemoryOptions,
    };

    fn loads() -> PlannedEvent {
        let machine = Machine::probe(fixture::intel_sapphire_rapids().root());
        let planned = plan::pebs(&machine, 1000, MemoryOptions::default()).unwrap();
        planned.into_iter().next().unwrap()
    }

    /// Precision, physical addresses and kernel mode of what a kernel saw that answers by `answer`.
    fn seen(answer: impl Fn(u64, bool, bool) -> Option<i32>) -> (Vec<(u64, bool, bool)>, bool) {
        let mut seen = Vec::new();
        let opened = open(&loads(), &mut Granted::default(), |attributes, leader| {
            let precise = attributes.flags >> flag::PRECISE_SHIFT & 3;
            let physical = attributes.sample_type & sample::PHYS_ADDR != 0;
            let kernel = attributes.flags & flag::EXCLUDE_KERNEL == 0;
            let leader = leader.unwrap();
            assert_eq!(leader.flags & flag::EXCLUDE_KERNEL == 0, kernel);
            assert_eq!(leader.flags & flag::PRECISE_MASK, 0, "it takes no samples");
            seen.push((precise, physical, kernel));
            answer(precise, physical, kernel)
                .map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
        });
        (seen, opened.is_ok())
    }

    #[test]
    fn the_highest_precision_that_opens_is_taken() {
        let too_high = |precise, _, _| (precise > 1).then_some(libc::EOPNOTSUPP);
        let expected = vec![(3, true, true), (2, true, true), (1, true, true)];
        assert_eq!(seen(too_high), (expected, true));
        assert_eq!(seen(|_, _, _| None), (vec![(3, true, true)], true));
    }

    #[test]
    fn without_precision_at_all_it_is_refused() {
        let (seen, opened) = seen(|_, _, _| Some(libc::EOPNOTSUPP));
        assert_eq!((seen.len(), opened), (3, false));
    }

    #[test]
    fn what_needs_rights_is_done_without_one_by_one() {
        let (seen, opened) = seen(|_, _, kernel| kernel.then_some(libc::EACCES));
        assert_eq!(seen, [(3, true, true), (3, false, true), (3, false, false)]);
        assert!(opened);
    }

    #[test]
    fn another_refusal_is_final() {
        let (seen, opened) = seen(|_, _, _| Some(libc::EBUSY));
        assert_eq!((seen.len(), opened), (1, false));
    }
}
