//! What the kernel's refusal of a memory event means, and what to do.

use std::io;

use crate::machine::{Machine, Rights};

/// Why a PMU's event could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("the event {event} of the PMU `{pmu}` on CPU {cpu}: {advice}")]
pub struct MemoryEventError {
    /// PMU name in sysfs.
    pub pmu: String,
    /// Event name in sysfs.
    pub event: String,
    /// CPU that the event was opened on.
    pub cpu: u32,
    /// What it means and what helps.
    pub advice: String,
    /// The kernel's answer.
    pub source: io::Error,
}

/// One or two sentences for `errno`.
pub fn advice(errno: Option<i32>, pmu: &str, machine: &Machine) -> String {
    let is_ibs = pmu.starts_with("ibs_");
    match errno {
        Some(libc::ENOENT) => "the kernel lists it, but this CPU (or this virtual machine) has no such event; \
             sample by `--source timer`"
            .into(),
        Some(libc::ENODATA) => "this CPU gives the data source of loads only beside an auxiliary event \
             (mem-loads-aux), which this kernel does not list; use Linux 5.12 or later, or `--source timer`"
            .into(),
        Some(libc::EINVAL) if is_ibs => "IBS takes no such period, threshold or exclusion (kernel mode can be \
             left out since Linux 6.14); leave out --ldlat and --l3-misses-only, or lower --frequency"
            .into(),
        Some(libc::EINVAL) => {
            let most = machine.kernel.perf_event_max_sample_rate;
            let most = most.map_or_else(|| "unknown".to_owned(), |most| most.to_string());
            format!(
                "the kernel does not take these attributes; lower --frequency (kernel.perf_event_max_sample_rate \
                 is {most}), leave out --ldlat, or sample by `--source timer`"
            )
        }
        Some(libc::EOPNOTSUPP) => "the CPU cannot sample it precisely; virtual machines often get a PMU without \
             PEBS: enable it in the hypervisor, run on the host, or sample by `--source timer`"
            .into(),
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid = machine.kernel.perf_event_paranoid;
            let paranoid = paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
            let rights = Rights::Events.advice(machine.privileges.effective.unwrap_or_default());
            format!(
                "this user may not sample every process of a CPU: {rights}; kernel.perf_event_paranoid is {paranoid} (above 2, some distributions want root), and a \
                 container's seccomp profile must allow perf_event_open"
            )
        }
        Some(libc::EBUSY) => "the PMU is lent out, to virtual machines with a mediated PMU or to another \
             profiler that wants it alone; end those, or sample by `--source timer`"
            .into(),
        Some(libc::ENOSPC) => "all counters of the PMU are taken, by other profilers or by the NMI watchdog \
             (`sysctl kernel.nmi_watchdog=0` frees one); or sample by `--source timer`"
            .into(),
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptor is left".into()
        }
        _ => "the kernel refused it; sample by `--source timer`".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fixture;

    #[test]
    fn each_refusal_says_what_to_do() {
        let fixture = fixture::intel_sapphire_rapids();
        fixture.process(1000, 0, 0);
        let machine = Machine::probe(fixture.root());
        for (errno, pmu, words) in [
            (libc::ENOENT, "cpu", "no such event"),
            (libc::ENODATA, "cpu", "mem-loads-aux"),
            (libc::EINVAL, "cpu", "perf_event_max_sample_rate is 100000"),
            (libc::EINVAL, "ibs_op", "since Linux 6.14"),
            (libc::EOPNOTSUPP, "cpu", "hypervisor"),
            (libc::EACCES, "cpu", "perf_event_paranoid is 2"),
            (libc::EPERM, "ibs_op", "setcap cap_bpf,cap_perfmon"),
            (libc::EBUSY, "cpu", "mediated PMU"),
            (libc::ENOSPC, "cpu", "nmi_watchdog"),
            (libc::EMFILE, "cpu", "no file descriptor"),
            (libc::ENFILE, "cpu", "no file descriptor"),
            (libc::EIO, "cpu", "--source timer"),
        ] {
            let advice = advice(Some(errno), pmu, &machine);
            assert!(advice.contains(words), "{errno}: {advice}");
        }
    }

    #[test]
    fn a_setting_that_is_not_known_is_not_made_up() {
        let advice = advice(Some(libc::EACCES), "cpu", &Machine::default());
        assert!(
            advice.contains("perf_event_paranoid is unknown"),
            "{advice}"
        );
    }
}
