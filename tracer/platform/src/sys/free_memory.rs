//! Gives memory that was freed back to the kernel.
//!
//! What many short-lived processes leave behind is freed in small pieces, in between what stays; the C library keeps such
//! pages for later, and over days it keeps ever more.

/// Gives back all whole pages that are free; some milliseconds for a heap of a hundred megabytes. Other C libraries than
/// glibc do without.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call may come at any time, from any thread; it touches only what the allocator holds as free.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn pages_between_what_stays_are_given_back() {
        // Of 64 MiB in pieces of 16 KiB one in 64 stays, so that the end of the heap does not shrink.
        let mut pieces: Vec<Vec<u8>> = (0..4096).map(|_| vec![1; 16 << 10]).collect();
        let mut number = 0;
        pieces.retain(|_| {
            number += 1;
            number % 64 == 0
        });
        let before = anonymous_kib();
        give_back();
        let after = anonymous_kib();
        assert!(after + (32 << 10) < before, "{before} KiB, then {after}");
        assert_eq!(pieces.len(), 64);
    }
}
