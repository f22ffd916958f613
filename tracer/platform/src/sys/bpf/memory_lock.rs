//! The limit on locked memory.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Before 5.11 the kernel counts maps as locked memory. The limit is lifted while they are made, and
/// put back for the sake of the programs we start. Where it cannot be lifted, the map's own creation
/// says so.
pub(super) struct MemoryLockLimit(Option<Rlimit>);

impl MemoryLockLimit {
    /// Lifts it until the value is dropped.
    pub(super) fn lift() -> MemoryLockLimit {
        let before = getrlimit(Resource::Memlock);
        let unlimited = Rlimit {
            current: None,
            maximum: None,
        };
        let is_lifted = setrlimit(Resource::Memlock, unlimited).is_ok();
        MemoryLockLimit(is_lifted.then_some(before))
    }
}

impl Drop for MemoryLockLimit {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = setrlimit(Resource::Memlock, before);
        }
    }
}
