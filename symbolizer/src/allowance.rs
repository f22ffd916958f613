//! One bound on what many modules take together: memory, and time once somebody asks to stop.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Frees memory of others than who asks: of a budget, so many bytes that are wanted.
type MakeRoom = Arc<dyn Fn(&Allowance, usize) + Send + Sync>;

/// Bytes that the modules made within it may hold together: sections that were decompressed, symbols, what was decoded.
/// And how long they may go on decoding when a flag asks to stop. Clones are the same allowance.
#[derive(Clone)]
pub struct Allowance(Arc<Inner>);

struct Inner {
    limit: usize,
    bytes: AtomicUsize,
    refused: AtomicU64,
    make_room: Mutex<Option<MakeRoom>>,
    stop: OnceLock<Stop>,
}

/// A request to stop, which may come at any time.
struct Stop {
    asked: Arc<AtomicBool>,
    grace: Duration,
    /// When it was first seen.
    seen: OnceLock<Instant>,
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.bytes(), self.0.limit)
    }
}

impl Default for Allowance {
    /// Without a bound.
    fn default() -> Allowance {
        Allowance::new(usize::MAX)
    }
}

impl Allowance {
    /// So many bytes.
    pub fn new(limit: usize) -> Allowance {
        Allowance(Arc::new(Inner {
            limit,
            bytes: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            make_room: Mutex::new(None),
            stop: OnceLock::new(),
        }))
    }

    /// Whom to ask for room before something is refused. It is given this budget and the bytes that are wanted, and may be called from
    /// within any question to a module.
    pub fn when_short(&self, make_room: impl Fn(&Allowance, usize) + Send + Sync + 'static) {
        let mut asked = self
            .0
            .make_room
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *asked = Some(Arc::new(make_room));
    }

    /// Once the flag is set, decoding goes on for `grace` and no longer: what is asked then and is not known yet is
    /// [`crate::Missing::NoTime`]. For the first flag only.
    pub fn heed(&self, asked: Arc<AtomicBool>, grace: Duration) {
        // A second one would be a second way to stop, which nobody has.
        let _ = self.0.stop.set(Stop {
            asked,
            grace,
            seen: OnceLock::new(),
        });
    }

    /// Whether the time after a request to stop is over. Asked for each entry that is read: without a request it is one load.
    pub fn is_out_of_time(&self) -> bool {
        self.is_past(1.0)
    }

    /// Whether so much of that time is over, 0..=1.
    pub fn is_past(&self, share: f64) -> bool {
        let Some(stop) = self.0.stop.get() else {
            return false;
        };
        stop.asked.load(Ordering::Relaxed)
            && stop.seen.get_or_init(Instant::now).elapsed() >= stop.grace.mul_f64(share)
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
