//! Rights of threads beyond those of their user (capabilities(7)): what is held, what is kept, what is lacking.
//!
//! The kernel keeps them for each thread. A new thread has those of the one that starts it, so what a thread gives up
//! before it starts others, these never have.

use std::{io, marker::PhantomData};

use rustix::{
    process::geteuid,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        set_capabilities, set_no_new_privs,
    },
};

use crate::machine::{Capabilities, Capability, Rights};

/// Whether the process runs as root, who has files and processes of their own to reach.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// What the calling thread may use now.
pub fn effective() -> Capabilities {
    Capabilities(capabilities(None).map_or(0, |sets| sets.effective.bits()))
}

/// The calling thread, and what it starts later, gives up for good all but these.
pub fn keep(wanted: Capabilities) -> io::Result<()> {
    let wanted = CapabilitySet::from_bits_retain(wanted.0);
    let held = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: held.effective & wanted,
            permitted: held.permitted & wanted,
            // With these go the ambient ones, which programs would inherit.
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// No program that the calling thread starts, or a thread of its, gains a right by it (`no_new_privs`).
pub fn gain_nothing() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

/// For a child before `exec`: what it becomes has the rights of its user alone. Async-signal-safe.
pub(super) fn leave_to_user() {
    // Kernels before 4.3 have no such set.
    let _ = clear_ambient_capability_set();
}

/// While it lives, the calling thread has the rights of its user alone. Root keeps what root has.
#[derive(Debug)]
pub struct OwnRights {
    before: Option<CapabilitySets>,
    /// Rights are the thread's: it must not end elsewhere.
    _thread: PhantomData<*const ()>,
}

impl OwnRights {
    /// Lays the others down.
    pub fn take() -> io::Result<OwnRights> {
        let before = capabilities(None)?;
        let others = !is_root() && !before.effective.is_empty();
        if others {
            let effective = CapabilitySet::empty();
            set_capabilities(
                None,
                CapabilitySets {
                    effective,
                    ..before
                },
            )?;
        }
        Ok(OwnRights {
            before: others.then_some(before),
            _thread: PhantomData,
        })
    }
}

impl Drop for OwnRights {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // What is permitted may be taken up again; where it may not, the thread has less than it could.
            let _ = set_capabilities(None, before);
        }
    }
}

/// What opening events takes here: CAP_PERFMON, and CAP_SYS_ADMIN where that one is not held, or where a distribution
/// demands it (`kernel.perf_event_paranoid` above 2).
pub fn for_events() -> Capabilities {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level.ok().and_then(|text| text.trim().parse::<i64>().ok());
    if effective().has(Capability::PERFMON) && level.is_some_and(|level| level <= 2) {
        Capabilities::of(&[Capability::PERFMON])
    } else {
        Capabilities::of(&[Capability::PERFMON, Capability::SYS_ADMIN])
    }
}

/// What to do about a refused call that takes these rights: names those that are lacking, if it is they.
pub(super) fn advice(rights: Rights) -> String {
    rights.advice(effective())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// In a thread of its own, which gives up what it has for itself alone.
    fn apart(test: impl FnOnce() + Send + 'static) {
        thread::spawn(test).join().unwrap();
    }

    #[test]
    fn what_is_given_up_is_gone_and_for_later_threads_too() {
        apart(|| {
            let all = effective();
            let kept = Capabilities::of(&[Capability::SYSLOG]);
            keep(kept).unwrap();
            assert_eq!(effective().0, all.0 & kept.0);
            apart(move || assert_eq!(effective().0, all.0 & kept.0));
            keep(all).unwrap();
            assert_eq!(effective().0, all.0 & kept.0, "nothing comes back");
        });
    }

    #[test]
    fn own_rights_end_with_their_value_and_root_has_no_others() {
        let before = effective();
        {
            let _own = OwnRights::take().unwrap();
            let expected = if is_root() { before } else { Capabilities(0) };
            assert_eq!(effective(), expected);
        }
        assert_eq!(effective(), before);
    }
}
