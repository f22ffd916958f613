//! Time that the host gave to others while our CPUs had work.

use std::fs;

use cohtrace_model::access::Cpu;

/// Ticks that were stolen of some CPUs since the machine was started (`steal` in `/proc/stat`, proc(5)); `None` where the
/// system does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stolen(Option<u64>);

impl Stolen {
    /// Of these CPUs, so far.
    pub fn now(cpus: &[Cpu]) -> Stolen {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Stolen::of(&text, cpus)
    }

    fn of(text: &str, cpus: &[Cpu]) -> Stolen {
        let of = |cpu: &Cpu| {
            let name = format!("cpu{}", cpu.0);
            let line = text.lines().map(str::split_ascii_whitespace);
            let mut fields = line
                .into_iter()
                .find_map(|mut fields| (fields.next() == Some(&name)).then_some(fields))?;
            // After user, nice, system, idle, iowait, irq, softirq.
            fields.nth(7)?.parse::<u64>().ok()
        };
        Stolen(cpus.iter().map(of).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_a_cpu_is_what_was_stolen() {
        let text =
            "cpu  1 1 1 1 1 1 1 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3 4 5 6 7 80 9 10\n";
        assert_eq!(Stolen::of(text, &[Cpu(0)]), Stolen(Some(8)));
        assert_eq!(Stolen::of(text, &[Cpu(0), Cpu(10)]), Stolen(Some(88)));
        assert_eq!(Stolen::of(text, &[Cpu(1)]), Stolen(None));
        assert_eq!(Stolen::of("cpu0 1 2\n", &[Cpu(0)]), Stolen(None));
    }
}
