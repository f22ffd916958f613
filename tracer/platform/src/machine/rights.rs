//! Which capabilities each part of the tool takes, and what is said where they are lacking.

use super::{Capabilities, Capability};

/// What the tool can do beyond what any user can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Load programs into the kernel.
    Programs,
    /// Open events on every CPU: samples, and breakpoints for windows.
    Events,
    /// Put probes on functions of other programs (`--heap`): CAP_PERFMON from Linux 5.8 on, CAP_SYS_ADMIN again since
    /// 6.16 and in stable kernels since then ("perf: Revert to requiring CAP_SYS_ADMIN for uprobes").
    Probes,
}

/// To sample, and to name what was sampled: code and data of all users (`DAC_READ_SEARCH`, `SYS_PTRACE`) and of the kernel
/// (`SYSLOG`); and rings of PMUs larger than `kernel.perf_event_mlock_kb` (`IPC_LOCK`).
const OBSERVE: [Capability; 6] = [
    Capability::BPF,
    Capability::PERFMON,
    Capability::DAC_READ_SEARCH,
    Capability::SYS_PTRACE,
    Capability::SYSLOG,
    Capability::IPC_LOCK,
];

impl Rights {
    /// The capabilities without which it is refused.
    fn needed(self) -> &'static [Capability] {
        match self {
            // The second because they read the kernel's memory.
            Rights::Programs => &[Capability::BPF, Capability::PERFMON],
            Rights::Events => &[Capability::PERFMON],
            Rights::Probes => &[Capability::SYS_ADMIN],
        }
    }

    /// All that a binary is to be given for it, as setcap(8) takes them.
    pub fn list(self) -> String {
        let admin = (self == Rights::Probes).then_some(Capability::SYS_ADMIN);
        let names = OBSERVE
            .into_iter()
            .chain(admin)
            .filter_map(Capability::name);
        names.collect::<Vec<_>>().join(",")
    }

    /// What to do where the kernel refused it to a process that holds these.
    pub fn advice(self, held: Capabilities) -> String {
        let names = |are_held: bool| {
            let some = self
                .needed()
                .iter()
                .filter(|needed| held.has(**needed) == are_held);
            let names: Vec<&str> = some.filter_map(|capability| capability.name()).collect();
            names.join(" and ")
        };
        let lacking = names(false);
        // The older right includes the newer ones.
        if lacking.is_empty() || held.has(Capability::SYS_ADMIN) {
            let there = if lacking.is_empty() {
                names(true)
            } else {
                "cap_sys_admin".to_owned()
            };
            return format!(
                "{there} is there, so something else forbids it: a container's seccomp profile, a security module, \
                 lockdown or, for events, kernel.perf_event_paranoid"
            );
        }
        format!(
            "it takes {lacking}: run as root (sudo), or `sudo setcap {}+ep` the binary, for a group only \
             (docs/security.md, Rights)",
            self.list()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_advised_and_nothing_that_is_there() {
        let four = "cap_bpf,cap_perfmon,cap_dac_read_search,cap_sys_ptrace,cap_syslog,cap_ipc_lock";
        assert_eq!(Rights::Programs.list(), four);
        assert_eq!(Rights::Probes.list(), format!("{four},cap_sys_admin"));
        let all_but_admin = Capabilities::of(&OBSERVE);
        let said = Rights::Probes.advice(all_but_admin);
        assert!(said.starts_with("it takes cap_sys_admin"), "{said}");
        assert!(
            said.contains(&format!("setcap {four},cap_sys_admin+ep")),
            "{said}"
        );
        let said = Rights::Events.advice(all_but_admin);
        assert!(
            said.starts_with("cap_perfmon is there") && !said.contains("setcap"),
            "{said}"
        );
        let admin = Capabilities::of(&[Capability::SYS_ADMIN]);
        assert!(!Rights::Programs.advice(admin).contains("setcap"));
        let said = Rights::Programs.advice(Capabilities(0));
        assert!(
            said.starts_with("it takes cap_bpf and cap_perfmon:"),
            "{said}"
        );
        let said = Rights::Programs.advice(Capabilities::of(&[Capability::BPF]));
        assert!(said.starts_with("it takes cap_perfmon:"), "{said}");
    }
}
