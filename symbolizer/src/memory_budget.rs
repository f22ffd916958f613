//! One bound on the memory of many modules.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// Frees memory of others than who asks: of a budget, so many bytes that are wanted.
type MakeRoom = Arc<dyn Fn(&MemoryBudget, usize) + Send + Sync>;

/// Bytes that the modules made within it may hold together: sections that were decompressed, symbols, what was decoded.
/// Clones are the same budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    limit: usize,
    bytes: AtomicUsize,
    refused: AtomicU64,
    make_room: Mutex<Option<MakeRoom>>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.bytes(), self.0.limit)
    }
}

impl Default for MemoryBudget {
    /// Without a bound.
    fn default() -> MemoryBudget {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// So many bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(Inner {
            limit,
            bytes: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            make_room: Mutex::new(None),
        }))
    }

    /// Whom to ask for room before something is refused. It is given this budget and the bytes that are wanted, and may be called from
    /// within any question to a module.
    pub fn when_short(&self, make_room: impl Fn(&MemoryBudget, usize) + Send + Sync + 'static) {
        let mut asked = self
            .0
            .make_room
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *asked = Some(Arc::new(make_room));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that may be held.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Whether more is held than may be.
    pub fn is_over(&self) -> bool {
        self.bytes() > self.0.limit
    }

    /// How often something was left out for want of room.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Whether so many bytes more can be had. What cannot is counted.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = || self.bytes().saturating_add(bytes) <= self.0.limit;
        if fits() {
            return true;
        }
        if bytes <= self.0.limit {
            let asked = self.0.make_room.lock();
            let asked = asked.unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(make_room) = asked {
                make_room(self, bytes);
            }
        }
        let fits = fits();
        self.0
            .refused
            .fetch_add(u64::from(!fits), Ordering::Relaxed);
        fits
    }

    pub(crate) fn hold(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
