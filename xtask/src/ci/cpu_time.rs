//! What a step takes: by the clock, and of the CPUs. A step that leaves CPUs idle may run beside another.

use std::{
    fmt, fs, thread,
    time::{Duration, Instant},
};

/// Of proc(5): times are in ticks of 1/100 s, whatever the kernel's own are.
const TICK: Duration = Duration::from_millis(10);

/// From the start of a step on.
pub(super) struct Clock {
    start: Instant,
    before: Option<Duration>,
}

/// What a step took.
pub(super) struct Took {
    by_clock: Duration,
    /// Of all processes that it started and that have ended; `None` where the system does not say it.
    of_cpus: Option<Duration>,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock {
            start: Instant::now(),
            before: of_children(),
        }
    }

    pub(super) fn stop(&self) -> Took {
        let of_cpus = of_children().zip(self.before);
        Took {
            by_clock: self.start.elapsed(),
            of_cpus: of_cpus.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.by_clock.as_secs_f64();
        write!(f, "{seconds:6.1} s")?;
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        if let Some(of_cpus) = self.of_cpus {
            let share = of_cpus.as_secs_f64() / (seconds.max(0.01) * cpus as f64);
            write!(f, " {:3.0} % of the CPUs", 100.0 * share)?;
        }
        Ok(())
    }
}

/// CPU time of the children of this process that have ended, and of theirs.
fn of_children() -> Option<Duration> {
    ended_children(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn ended_children(stat: &str) -> Option<Duration> {
    // The name, in brackets, may have any character.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_children_are_read_and_not_those_of_the_process() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 8 0 0 500 600 120 30 20 0 1 0 77 88";
        assert_eq!(ended_children(stat), Some(Duration::from_millis(1500)));
        assert_eq!(ended_children("7 (a) S 1"), None);
    }

    #[test]
    fn a_share_is_of_all_cpus() {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let took = Took {
            by_clock: Duration::from_secs(8),
            of_cpus: Some(Duration::from_secs(4) * cpus as u32),
        };
        assert_eq!(took.to_string(), "   8.0 s  50 % of the CPUs");
    }
}
