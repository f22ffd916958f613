//! Mapped files that somebody shortens: a page that is gone reads as zeros instead of ending us by SIGBUS.
//!
//! The kernel raises SIGBUS in the thread that touches a page beyond the end of the file behind it (mmap(2)). The handler
//! puts an empty page there, notes it for the mapping, and the thread reads on.

use std::{
    io,
    sync::{
        Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Mappings that are watched at once; each takes three words.
const MOST: usize = 1 << 14;

/// A watched range of addresses. `start` is 0 while it is free, and [`TAKEN`] while it is being filled in.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    torn: AtomicBool,
}

/// No mapping starts there: it is in the first page.
const TAKEN: usize = 1;

static SLOTS: [Slot; MOST] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        torn: AtomicBool::new(false),
    }
}; MOST];

/// One more than the highest slot that was ever used: the handler looks no further.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Bytes of a page, written before the handler can run.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// A mapping whose missing pages read as zeros, for as long as this lives.
pub(super) struct Watched(&'static Slot);

impl Watched {
    /// Whether a page was missing.
    pub(super) fn is_torn(&self) -> bool {
        self.0.torn.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// Watches a mapping, which nobody has read yet and which outlives the answer. Fails where too many are watched.
pub(super) fn watch(mapping: &[u8]) -> io::Result<Watched> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    for (at, slot) in SLOTS.iter().enumerate() {
        let free = slot
            .start
            .compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
        if free.is_err() {
            continue;
        }
        let start = mapping.as_ptr() as usize;
        slot.torn.store(false, Ordering::Relaxed);
        slot.end.store(start + mapping.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        USED.fetch_max(at + 1, Ordering::Release);
        return Ok(Watched(slot));
    }
    Err(io::Error::other("too many files are mapped"))
}

fn install() {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if let Ok(page @ 1..) = usize::try_from(page) {
        PAGE.store(page, Ordering::Release);
    }
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: all zero is a valid `sigaction`: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and its handler does only what a handler may: atomics, mmap(2) and sigaction(2).
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) };
}

extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel gives a valid `siginfo_t` to a handler with SA_SIGINFO.
    let info = unsafe { &*info };
    // SAFETY: of SIGBUS it holds an address.
    let address = unsafe { info.si_addr() } as usize;
    if give_page(address) {
        return;
    }
    // Not one of ours: as if there were no handler. The thread touches it again, and that ends us.
    // SAFETY: all zero is the default action.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `default` is whole.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const default, std::ptr::null_mut()) };
}

/// Puts an empty page over the one at an address, if it is of a watched mapping.
fn give_page(address: usize) -> bool {
    let used = USED.load(Ordering::Acquire).min(MOST);
    let of = |slot: &&Slot| {
        let start = slot.start.load(Ordering::Acquire);
        start > TAKEN && start <= address && address < slot.end.load(Ordering::Relaxed)
    };
    let Some(slot) = SLOTS[..used].iter().find(of) else {
        return false;
    };
    let page = PAGE.load(Ordering::Relaxed);
    slot.torn.store(true, Ordering::Release);
    // SAFETY: the call has no precondition.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: each thread has its own, for as long as it runs.
    let before = unsafe { *errno };
    // SAFETY: the page is of a read-only mapping of ours that is alive, for the thread that reads it holds it.
    let given = unsafe {
        libc::mmap(
            (address & !(page - 1)) as *mut libc::c_void,
            page,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    // SAFETY: as above.
    unsafe { *errno = before };
    given != libc::MAP_FAILED
}
