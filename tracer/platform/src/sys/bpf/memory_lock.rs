//! The limit on locked memory.

/// Before 5.11 the kernel counts maps as locked memory. The limit is lifted while they are made, and
/// put back for the sake of the programs we start. Where it cannot be lifted, the map's own creation
/// says so.
pub(super) struct MemoryLockLimit(Option<libc::rlimit>);

impl MemoryLockLimit {
    /// Lifts it until the value is dropped.
    pub(super) fn lift() -> MemoryLockLimit {
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the struct is live, and the call fills it.
        let status = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut before) };
        let unlimited = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        MemoryLockLimit((status == 0 && set_memory_lock_limit(&unlimited)).then_some(before))
    }
}

impl Drop for MemoryLockLimit {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            set_memory_lock_limit(before);
        }
    }
}

fn set_memory_lock_limit(limit: &libc::rlimit) -> bool {
    // SAFETY: the struct is live, and the call only reads it.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, limit) == 0 }
}
