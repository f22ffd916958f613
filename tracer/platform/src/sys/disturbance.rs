//! What disturbs a thread that measures: being taken off its CPU.

use std::{fs, io};

use crate::access::Tid;

/// How often the calling thread was taken off its CPU although it had more to do.
///
/// # Errors
/// The system's.
pub fn involuntary_switches() -> io::Result<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage` where we have room for it.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zero bits are a value, and the kernel has written another one.
    let usage = unsafe { usage.assume_init() };
    Ok(usage.ru_nivcsw.try_into().unwrap_or(0))
}

/// How a thread was kept from running, so far: it changes when the thread is taken off its CPU or put back on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Times that it was taken off although it had more to do.
    switches: u64,
    /// Nanoseconds that it waited for a CPU, counted when it got one; `None` in kernels that do not count them.
    waited_ns: Option<u64>,
}

/// Of another thread of this process; `None` when it has ended.
pub fn kept_from_running(thread: Tid) -> Option<Kept> {
    let file = |name: &str| fs::read_to_string(format!("/proc/self/task/{}/{name}", thread.0));
    let status = file("status").ok()?;
    let switches = status.lines().find_map(|line| {
        let value = line.strip_prefix("nonvoluntary_ctxt_switches:")?;
        value.trim().parse().ok()
    })?;
    // Time on CPUs, time waited, slices (proc(5)).
    let times = file("schedstat").unwrap_or_default();
    let waited_ns = times.split_ascii_whitespace().nth(1);
    Some(Kept {
        switches,
        waited_ns: waited_ns.and_then(|ns| ns.parse().ok()),
    })
}

/// The calling thread.
pub fn this_thread() -> Tid {
    Tid(rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_of_itself_what_others_know_of_it() {
        let before = involuntary_switches().unwrap();
        let told = kept_from_running(this_thread()).unwrap();
        assert!((before..=involuntary_switches().unwrap()).contains(&told.switches));
        assert_eq!(kept_from_running(Tid(u32::MAX)), None);
    }

    #[test]
    fn it_never_goes_back() {
        let before = involuntary_switches().unwrap();
        assert!(involuntary_switches().unwrap() >= before);
    }
}
