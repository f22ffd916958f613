//! Where the observing thread runs.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::access::Cpu;

/// The calling thread runs on one CPU for as long as this lives; then wherever it might before.
#[derive(Debug)]
pub struct OnCpu {
    before: CpuSet,
}

impl OnCpu {
    /// Moves there at once; an error where the CPU is offline or not allowed.
    pub fn move_to(cpu: Cpu) -> io::Result<OnCpu> {
        if cpu.0 as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut only = CpuSet::new();
        only.set(cpu.0 as usize);
        let before = sched_getaffinity(None)?;
        sched_setaffinity(None, &only)?;
        Ok(OnCpu { before })
    }

    /// Moves away from a CPU at once; an error where there is no other one that is allowed. Takes no memory.
    pub fn move_from(cpu: Cpu) -> io::Result<OnCpu> {
        if cpu.0 as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let before = sched_getaffinity(None)?;
        let mut others = before;
        others.unset(cpu.0 as usize);
        sched_setaffinity(None, &others)?;
        Ok(OnCpu { before })
    }
}

impl Drop for OnCpu {
    fn drop(&mut self) {
        // Where it may not go back, it stays.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getcpu;

    use super::*;

    #[test]
    fn a_thread_runs_where_it_was_moved_and_afterwards_wherever_it_might() {
        let before = sched_getaffinity(None).unwrap();
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu));
        for cpu in cpus.take(4) {
            let on = OnCpu::move_to(Cpu(cpu as u32)).unwrap();
            assert_eq!(sched_getcpu(), cpu);
            drop(on);
            if before.count() > 1 {
                let _away = OnCpu::move_from(Cpu(cpu as u32)).unwrap();
                assert_ne!(sched_getcpu(), cpu);
            }
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(OnCpu::move_to(Cpu(u32::MAX)).is_err());
    }
}
