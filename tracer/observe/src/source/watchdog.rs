//! Clocks that do not give what they should: throttled by the kernel, or in error.
//!
//! A clock samples every CPU that is not idle, so the time that the kernel accounts as busy (`/proc/stat`, proc(5)) says how
//! many samples there should be.

use std::collections::BTreeMap;

use crate::access::Cpu;

/// Between two looks, nanoseconds: the kernel accounts in hundredths of a second.
const LOOK_NS: u64 = 1_000_000_000;
/// A hundredth of a second (`USER_HZ`), nanoseconds.
const TICK_NS: u64 = 10_000_000;
/// Below, too little was to be expected in one look to tell.
const LEAST_BUSY_NS: u64 = 200_000_000;
/// A clock that gives less than this part of what it should is starved. A virtual machine's CPUs may stand still for much of
/// the time, and the kernel calls that busy.
const STARVED: f64 = 0.25;

/// Holds what each CPU's clock gave against what it should have given.
#[derive(Debug)]
pub(super) struct Watchdog {
    period_ns: u64,
    due_ns: u64,
    /// Samples given, and time busy in ticks, at the last look.
    seen: BTreeMap<Cpu, (u64, u64)>,
    /// Samples that should have been given, and were, in looks in which a clock starved.
    starved: BTreeMap<Cpu, (u64, u64)>,
}

impl Watchdog {
    /// For a clock of this period.
    pub(super) fn new(period_ns: u64) -> Watchdog {
        Watchdog {
            period_ns: period_ns.max(1),
            due_ns: 0,
            seen: BTreeMap::new(),
            starved: BTreeMap::new(),
        }
    }

    /// Whether it is time for a look.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Looks at the CPUs that are open, with `/proc/stat` and the samples each gave in all. Returns those that starved, for
    /// how long they were not sampled meanwhile (nanoseconds), and whether they gave nothing at all.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        open: &[Cpu],
        proc_stat: &str,
        given: impl Fn(Cpu) -> Option<u64>,
    ) -> Vec<(Cpu, u64, bool)> {
        self.due_ns = now_ns + LOOK_NS;
        let mut now = BTreeMap::new();
        let mut found = Vec::new();
        for (cpu, busy) in proc_stat.lines().filter_map(busy_ticks) {
            if !open.contains(&cpu) {
                continue;
            }
            let given = given(cpu).unwrap_or(0);
            now.insert(cpu, (given, busy));
            let Some((given_before, busy_before)) = self.seen.get(&cpu) else {
                continue;
            };
            let busy_ns = busy.saturating_sub(*busy_before) * TICK_NS;
            let gave = given.saturating_sub(*given_before);
            let expected = busy_ns / self.period_ns;
            if busy_ns < LEAST_BUSY_NS || gave as f64 >= STARVED * expected as f64 {
                continue;
            }
            let starved = self.starved.entry(cpu).or_default();
            starved.0 += expected;
            starved.1 += gave;
            let blind_ns = busy_ns.saturating_sub(gave * self.period_ns);
            found.push((cpu, blind_ns, gave == 0));
        }
        self.seen = now;
        found
    }

    /// What the report shall say, in sentences.
    pub(super) fn caveats(&self) -> Vec<String> {
        let sentence = |(cpu, (expected, gave)): (&Cpu, &(u64, u64))| {
            format!(
                "the clock of CPU {} gave {gave} of some {expected} samples while it was throttled \
                 (kernel.perf_cpu_time_max_percent and kernel.perf_event_max_sample_rate bound it) or its events failed; a \
                 lower rate (-F) may help",
                cpu.0
            )
        };
        self.starved.iter().map(sentence).collect()
    }
}

/// A CPU and the ticks for which it ran something: `cpu1 user nice system idle iowait irq softirq steal guest guest_nice`,
/// where the guests' are in `user` and `nice` already.
fn busy_ticks(line: &str) -> Option<(Cpu, u64)> {
    let (name, times) = line.split_once(' ')?;
    let cpu = Cpu(name.strip_prefix("cpu")?.parse().ok()?);
    let times: Vec<u64> = times
        .split_ascii_whitespace()
        .map_while(|time| time.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = times[..] else {
        return None;
    };
    Some((cpu, user + nice + system + irq + softirq))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(busy: u64) -> String {
        format!(
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 {busy} 0 0 500 0 0 0 0 0 0\ncpu1 0 0 0 900 0 0 0 7000 0 0\nintr 5\n"
        )
    }

    /// A clock of 1 ms that gave so many samples in a second in which its CPU was busy for so many ticks.
    fn look(busy: u64, gave: u64) -> (Vec<(Cpu, u64, bool)>, Vec<String>) {
        let mut watchdog = Watchdog::new(1_000_000);
        let both = [Cpu(0), Cpu(1)];
        assert_eq!(watchdog.look(0, &both, &stat(1000), |_| Some(50)), []);
        let found = watchdog.look(LOOK_NS, &both, &stat(1000 + busy), |cpu| {
            Some(50 + if cpu == Cpu(0) { gave } else { 0 })
        });
        (found, watchdog.caveats())
    }

    #[test]
    fn a_clock_that_gives_what_it_should_is_left_alone_and_so_is_an_idle_cpu() {
        assert_eq!(look(100, 990), (vec![], vec![]));
        assert_eq!(look(100, 300), (vec![], vec![]));
        assert_eq!(look(0, 0), (vec![], vec![]));
        assert_eq!(look(10, 0), (vec![], vec![]));
    }

    #[test]
    fn one_that_gives_too_little_is_told_with_the_time_that_was_not_seen() {
        let (found, caveats) = look(100, 100);
        assert_eq!(found, [(Cpu(0), 900_000_000, false)]);
        assert!(
            caveats[0].contains("CPU 0 gave 100 of some 1000 samples"),
            "{caveats:?}"
        );
        let (found, _) = look(100, 0);
        assert_eq!(found, [(Cpu(0), 1_000_000_000, true)]);
    }
}
