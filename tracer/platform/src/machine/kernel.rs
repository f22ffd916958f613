//! The running kernel: version, the switches that decide what tracing may do, and what it shows of itself.

use std::fmt;

use serde::Serialize;

use super::tree::Tree;

/// Version numbers of a kernel release, ordered; in JSON an array of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "[u32; 3]")]
pub struct KernelVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; 0 when the release has two only.
    pub patch: u32,
}

impl KernelVersion {
    /// `major.minor.0`.
    pub const fn new(major: u32, minor: u32) -> Self {
        KernelVersion {
            major,
            minor,
            patch: 0,
        }
    }

    /// Reads the numbers at the start of a release such as `6.18.44-generic` or `6.12-rc1`.
    pub fn parse(release: &str) -> Option<Self> {
        let end = release
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(release.len());
        let mut numbers = release[..end].split('.');
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        let patch = numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        Some(KernelVersion {
            major,
            minor,
            patch,
        })
    }
}

impl From<KernelVersion> for [u32; 3] {
    fn from(version: KernelVersion) -> [u32; 3] {
        [version.major, version.minor, version.patch]
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch != 0 {
            write!(f, ".{}", self.patch)?;
        }
        Ok(())
    }
}

/// How far the kernel defends itself against root (`Documentation/admin-guide/LSM`, kernel_lockdown(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lockdown {
    /// Off, or not built in.
    None,
    /// Root may not change the kernel; tracing is unaffected.
    Integrity,
    /// Root may not read the kernel either: `bpf_probe_read_kernel` is withdrawn from programs.
    Confidentiality,
}

/// What is known of the kernel. Numbers are the sysctl's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: Option<String>,
    /// `uname -v`: build number and options.
    pub build: Option<String>,
    /// The release's numbers.
    pub version: Option<KernelVersion>,
    /// `/sys/kernel/btf/vmlinux` is there: kernel type layouts are known.
    pub btf: Option<bool>,
    /// tracefs is mounted in one of its two usual places.
    pub tracefs: Option<bool>,
    /// `/proc/kcore` is there: kernel text can be read as it runs.
    pub kcore: Option<bool>,
    /// `/proc/kallsyms` shows real addresses to us.
    #[serde(rename = "symbol_addresses")]
    pub kernel_symbols: Option<bool>,
    /// Lockdown mode; `None` when securityfs is not mounted.
    pub lockdown: Option<Lockdown>,
    /// `kernel.pid_max`: pids are below this.
    pub pid_max: Option<u64>,
    /// `kernel.perf_event_paranoid`: -1 to 2 upstream; distributions add 3 and 4.
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.perf_event_max_sample_rate`, samples per second and CPU.
    pub perf_event_max_sample_rate: Option<u64>,
    /// `kernel.perf_event_mlock_kb`: ring memory per CPU that a user may lock, KiB.
    pub perf_event_mlock_kb: Option<u64>,
    /// `kernel.perf_cpu_time_max_percent`: share of a CPU's time that sampling may take; 0 is no limit.
    pub perf_cpu_time_max_percent: Option<u64>,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Option<u64>,
    /// `kernel.unprivileged_bpf_disabled`: 0 allowed, 1 and 2 not.
    pub unprivileged_bpf_disabled: Option<u64>,
    /// `net.core.bpf_jit_enable`: 0 is the interpreter. Readable by root only.
    pub bpf_jit_enable: Option<u64>,
}

impl Kernel {
    pub(super) fn probe(tree: &Tree<'_>) -> Self {
        let sysctl = |name: &str| tree.number(&format!("proc/sys/kernel/{name}"));
        let release = tree.line("proc/sys/kernel/osrelease");
        Kernel {
            version: release.as_deref().and_then(KernelVersion::parse),
            release,
            build: tree.line("proc/sys/kernel/version"),
            pid_max: sysctl("pid_max"),
            perf_event_paranoid: tree.number("proc/sys/kernel/perf_event_paranoid"),
            perf_event_max_sample_rate: sysctl("perf_event_max_sample_rate"),
            perf_event_mlock_kb: sysctl("perf_event_mlock_kb"),
            perf_cpu_time_max_percent: sysctl("perf_cpu_time_max_percent"),
            kptr_restrict: sysctl("kptr_restrict"),
            unprivileged_bpf_disabled: sysctl("unprivileged_bpf_disabled"),
            bpf_jit_enable: tree.number("proc/sys/net/core/bpf_jit_enable"),
            lockdown: lockdown(tree),
            btf: tree.present("sys/kernel/btf/vmlinux", "sys/kernel"),
            tracefs: tracefs(tree),
            kcore: tree.present("proc/kcore", "proc/self"),
            kernel_symbols: tree
                .text("proc/kallsyms")
                .map(|text| shows_addresses(&text)),
        }
    }
}

/// The mode in brackets of `none [integrity] confidentiality`. Without that file: the module is not
/// built in, unless its directory is empty, which means that securityfs is not mounted.
fn lockdown(tree: &Tree<'_>) -> Option<Lockdown> {
    let Some(modes) = tree.line("sys/kernel/security/lockdown") else {
        let there = tree.present("sys/kernel/security", "sys/kernel")?;
        let others = tree.names("sys/kernel/security");
        let not_built_in =
            !there || (!others.is_empty() && !others.iter().any(|name| name == "lockdown"));
        return not_built_in.then_some(Lockdown::None);
    };
    let (_, rest) = modes.split_once('[')?;
    match rest.split_once(']')?.0 {
        "none" => Some(Lockdown::None),
        "integrity" => Some(Lockdown::Integrity),
        "confidentiality" => Some(Lockdown::Confidentiality),
        _ => None,
    }
}

fn tracefs(tree: &Tree<'_>) -> Option<bool> {
    let own = tree.present("sys/kernel/tracing/events", "sys/kernel")?;
    // debugfs is root's alone: being refused there leaves the question open.
    own.then_some(true)
        .or_else(|| tree.present("sys/kernel/debug/tracing/events", "sys/kernel"))
}

/// Hidden addresses are all zero; a few (per-CPU symbols) are zero even when shown.
fn shows_addresses(kallsyms: &str) -> bool {
    kallsyms.lines().any(|line| {
        line.split_whitespace()
            .next()
            .and_then(|address| u64::from_str_radix(address, 16).ok())
            .is_some_and(|address| address != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{self, Fixture},
        *,
    };

    fn kernel(fixture: &Fixture) -> Kernel {
        Kernel::probe(&Tree::new(fixture.root()))
    }

    #[test]
    fn a_release_is_its_leading_numbers() {
        let version = |text| KernelVersion::parse(text).map(|v| (v.major, v.minor, v.patch));
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18, 44)));
        assert_eq!(version("4.18.0-553.el8_10.x86_64"), Some((4, 18, 0)));
        assert_eq!(version("6.12-rc1"), Some((6, 12, 0)));
        assert_eq!(
            version("5.15.153.1-microsoft-standard-WSL2"),
            Some((5, 15, 153))
        );
        for garbage in ["", "six", "6", "6.", ".8", "99999999999.1", "-5.8"] {
            assert_eq!(version(garbage), None, "{garbage:?}");
        }
        assert!(KernelVersion::new(5, 15) > KernelVersion::new(5, 8));
    }

    #[test]
    fn the_bracketed_lockdown_mode_is_the_one_in_force() {
        let machine = fixture::kvm_amd();
        for (text, mode) in [
            ("[none] integrity confidentiality\n", Some(Lockdown::None)),
            (
                "none [integrity] confidentiality\n",
                Some(Lockdown::Integrity),
            ),
            (
                "none integrity [confidentiality]\n",
                Some(Lockdown::Confidentiality),
            ),
            ("none integrity confidentiality\n", None),
            ("[paranoia]\n", None),
            ("]none[\n", None),
        ] {
            machine.write("sys/kernel/security/lockdown", text);
            assert_eq!(kernel(&machine).lockdown, mode, "{text:?}");
        }
    }

    #[test]
    fn lockdown_is_off_when_not_built_in_and_unknown_when_securityfs_is_not_mounted() {
        let machine = fixture::kvm_amd();
        assert_eq!(
            kernel(&machine).lockdown,
            Some(Lockdown::None),
            "no such directory"
        );
        machine.directory("sys/kernel/security");
        assert_eq!(kernel(&machine).lockdown, None, "empty mount point");
        machine.write("sys/kernel/security/lsm", "capability,yama");
        assert_eq!(
            kernel(&machine).lockdown,
            Some(Lockdown::None),
            "other modules only"
        );
    }

    #[test]
    fn hidden_kernel_addresses_are_told_from_shown_ones() {
        let machine = fixture::kvm_amd();
        assert_eq!(kernel(&machine).kernel_symbols, None);
        machine.write(
            "proc/kallsyms",
            "0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n",
        );
        assert_eq!(kernel(&machine).kernel_symbols, Some(false));
        machine.write(
            "proc/kallsyms",
            "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n",
        );
        assert_eq!(kernel(&machine).kernel_symbols, Some(true));
    }
}
