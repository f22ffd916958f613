//! Memory that other processes have, too, or may have: the directory of this process knows nothing of their accesses.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicPtr, Ordering::Relaxed, Ordering::SeqCst},
};

/// First address, and the one behind the last.
type Range = (u64, u64);

/// What is read for each access that repeats nothing: null where there is none.
static NOW: AtomicPtr<Vec<Range>> = AtomicPtr::new(std::ptr::null_mut());
static CHANGING: Mutex<()> = Mutex::new(());

/// Whether the address is in it.
#[inline(always)]
pub(crate) fn has(address: u64) -> bool {
    let ranges = NOW.load(Relaxed);
    !ranges.is_null() && within(ranges, address)
}

#[inline(never)]
fn within(ranges: *const Vec<Range>, address: u64) -> bool {
    // SAFETY: made by `Box::leak`, and never freed.
    let ranges = unsafe { &*ranges };
    ranges
        .iter()
        .any(|(start, end)| (*start..*end).contains(&address))
}

/// Adds some.
pub(crate) fn add(start: u64, bytes: u64) {
    let new = (start, start.saturating_add(bytes));
    change(|ranges| {
        if !ranges.contains(&new) {
            ranges.push(new);
        }
    });
}

/// Takes some away, with all of the mappings that it is of.
pub(crate) fn remove(start: u64, bytes: u64) {
    if NOW.load(Relaxed).is_null() {
        return;
    }
    let end = start.saturating_add(bytes);
    change(|ranges| ranges.retain(|range| range.0 < start || end < range.1));
}

/// Threads may be looking at what was: it stays where it is. Changes are few.
fn change(by: impl FnOnce(&mut Vec<Range>)) {
    let _turn = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
    let now = NOW.load(Relaxed);
    let mut ranges = if now.is_null() {
        Vec::new()
    } else {
        // SAFETY: made by `Box::leak`, and never freed.
        unsafe { (*now).clone() }
    };
    by(&mut ranges);
    let new: *mut Vec<Range> = if ranges.is_empty() {
        std::ptr::null_mut()
    } else {
        Box::leak(Box::new(ranges))
    };
    NOW.store(new, SeqCst);
}
