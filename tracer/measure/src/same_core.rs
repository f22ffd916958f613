//! Whether two CPUs are threads of one core, by what they do to each other.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use cohtrace_model::access::Cpu;
use cohtrace_platform::sys::{affinity::OnCpu, line_loops::wide_additions};

use crate::beside::beside;

/// Rounds of the loop that is timed, some microseconds; and how often.
const ROUNDS: u64 = 1000;
const TIMES: usize = 101;

/// CPUs that slow each other down by this are one core.
pub const ONE_CORE: f64 = 1.5;

/// Time of work that fills a core while the other CPU does the same, as multiples of that alone.
///
/// # Errors
/// A CPU is offline or not allowed.
pub fn same_core_ratio(own: Cpu, other: Cpu) -> io::Result<f64> {
    let median = || {
        let mut all: Vec<u64> = (0..TIMES).map(|_| wide_additions(ROUNDS)).collect();
        all.sort_unstable();
        all[TIMES / 2] as f64
    };
    let alone = {
        let _here = OnCpu::move_to(own)?;
        median();
        median()
    };
    let over = AtomicBool::new(false);
    let work = || {
        while !over.load(Ordering::Relaxed) {
            wide_additions(ROUNDS);
        }
    };
    let together = beside(own, other, &over, work, median)?;
    Ok(together / alone.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_there_is_not_is_an_error_and_no_hang() {
        assert!(same_core_ratio(Cpu(0), Cpu(1 << 30)).is_err());
    }
}
