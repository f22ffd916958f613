//! What disturbs a thread that measures: being taken off its CPU.

use std::io;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let before = involuntary_switches().unwrap();
        assert!(involuntary_switches().unwrap() >= before);
    }
}
