//! Which processes are targets: the given ones and all their descendants.

use rustc_hash::FxHashSet;

use super::Target;
use crate::{
    access::Pid,
    event::{Context, ContextKind, Pace},
};

/// The user half's copy of the kernel half's target map, kept by the same rule: a new process is a
/// target when its parent is, so a reused pid is never mistaken for the old process.
#[derive(Debug)]
pub struct Tracked {
    everything: bool,
    own_pid: Pid,
    pids: FxHashSet<Pid>,
}

impl Tracked {
    /// Starts with the given processes; children are added by [`Tracked::follow`].
    pub fn new(target: &Target, own_pid: Pid) -> Tracked {
        let (everything, pids) = match target {
            Target::Everything => (true, FxHashSet::default()),
            Target::Trees(pids) => (false, pids.iter().copied().collect()),
        };
        Tracked {
            everything,
            own_pid,
            pids,
        }
    }

    /// Adds a process found by other means; false when it was known.
    pub fn add(&mut self, pid: Pid) -> bool {
        self.pids.insert(pid)
    }

    /// The targets, unless everything is one.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.pids.iter().copied()
    }

    /// A process ended, with all of its threads.
    pub fn forget(&mut self, pid: Pid) {
        self.pids.remove(&pid);
    }

    /// Whether the process is a target.
    pub fn contains(&self, pid: Pid) -> bool {
        if self.everything {
            pid != self.own_pid
        } else {
            self.pids.contains(&pid)
        }
    }

    /// Takes note of a fork, and says whether the event concerns a target.
    pub fn follow(&mut self, context: &Context) -> bool {
        let pid = match &context.kind {
            ContextKind::Fork {
                pid, parent_pid, ..
            } => {
                if pid != parent_pid && !self.everything {
                    if self.pids.contains(parent_pid) {
                        self.pids.insert(*pid);
                    } else {
                        self.pids.remove(pid);
                    }
                }
                *pid
            }
            ContextKind::Mapping { pid, .. }
            | ContextKind::Comm { pid, .. }
            | ContextKind::Exit { pid, .. }
            | ContextKind::Thread { pid, .. }
            | ContextKind::LocalStorage { pid, .. }
            | ContextKind::Pace(Pace { pid, .. }) => *pid,
            ContextKind::Memory { pid, .. } => return pid.is_none_or(|pid| self.contains(pid)),
        };
        self.contains(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Tid;

    fn fork(pid: u32, parent: u32) -> Context {
        let kind = ContextKind::Fork {
            pid: Pid(pid),
            tid: Tid(pid),
            parent_pid: Pid(parent),
        };
        Context { time_ns: 0, kind }
    }

    #[test]
    fn children_and_grandchildren_of_a_target_are_targets_and_strangers_are_not() {
        let mut tracked = Tracked::new(&Target::Trees(vec![Pid(10)]), Pid(1));
        assert!(tracked.follow(&fork(11, 10)));
        assert!(tracked.follow(&fork(12, 11)));
        assert!(!tracked.follow(&fork(20, 19)));
    }

    #[test]
    fn a_pid_reused_by_a_stranger_is_no_target_any_more() {
        let mut tracked = Tracked::new(&Target::Trees(vec![Pid(10)]), Pid(1));
        assert!(tracked.follow(&fork(11, 10)));
        assert!(!tracked.follow(&fork(11, 19)));
        assert!(!tracked.contains(Pid(11)));
    }

    #[test]
    fn everything_means_everything_but_ourselves() {
        let tracked = Tracked::new(&Target::Everything, Pid(1));
        assert!(tracked.contains(Pid(99)));
        assert!(!tracked.contains(Pid(1)));
    }
}
