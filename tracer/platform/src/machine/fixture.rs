//! Recorded machines as trees of files, for tests: written by code, so that each shows what matters.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what a test cannot set up ends it"
)]

use std::{fs, os::unix, path::Path};

use tempfile::TempDir;

/// A tree below a temporary directory; removed with the value.
pub struct Fixture(TempDir);

impl Fixture {
    /// What [`super::Machine::probe`] is given.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and the directories above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes an empty directory.
    pub fn directory(&self, path: &str) {
        fs::create_dir_all(self.root().join(path)).unwrap();
    }

    /// Makes a symbolic link, in place of an older one.
    pub fn link(&self, path: &str, target: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        unix::fs::symlink(target, path).unwrap();
    }

    /// Removes a file or a directory with all below it.
    pub fn remove(&self, path: &str) {
        let path = self.root().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// `/proc/self/status` of a user with these effective capabilities.
    pub fn process(&self, uid: u32, capabilities: u64, seccomp: u8) {
        self.write(
            "proc/self/status",
            format!(
                "Name:\tcohtrace\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapPrm:\t{capabilities:016x}\n\
                 CapEff:\t{capabilities:016x}\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\n"
            ),
        );
    }

    fn pmu(&self, name: &str, perf_type: u32, files: &[(&str, &str)]) {
        let directory = format!("sys/bus/event_source/devices/{name}");
        self.write(&format!("{directory}/type"), format!("{perf_type}\n"));
        for (file, content) in files {
            self.write(&format!("{directory}/{file}"), format!("{content}\n"));
        }
    }

    /// One CPU of a topology.
    fn cpu(&self, cpu: u32, package: u32, threads: &str) {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        self.write(
            &format!("{directory}/physical_package_id"),
            format!("{package}\n"),
        );
        self.write(
            &format!("{directory}/core_cpus_list"),
            format!("{threads}\n"),
        );
    }

    fn cache(&self, index: u32, level: u32, kind: &str, size: &str) {
        let directory = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
        self.write(&format!("{directory}/level"), format!("{level}\n"));
        self.write(&format!("{directory}/type"), format!("{kind}\n"));
        self.write(&format!("{directory}/size"), format!("{size}\n"));
        self.write(&format!("{directory}/coherency_line_size"), "64\n");
    }
}

/// A rooted process on `cpus` CPUs of a kernel, with what every Linux has.
fn linux(release: &str, cpus: u32, cpuinfo: &str) -> Fixture {
    let fixture = Fixture(tempfile::tempdir().unwrap());
    let sysctls = [
        ("osrelease", release),
        ("version", "#1 SMP PREEMPT_DYNAMIC"),
        ("pid_max", "4194304"),
        ("perf_event_paranoid", "2"),
        ("perf_event_max_sample_rate", "100000"),
        ("perf_event_mlock_kb", "516"),
        ("perf_cpu_time_max_percent", "25"),
        ("kptr_restrict", "0"),
        ("unprivileged_bpf_disabled", "2"),
    ];
    for (name, value) in sysctls {
        fixture.write(&format!("proc/sys/kernel/{name}"), format!("{value}\n"));
    }
    fixture.write("proc/sys/net/core/bpf_jit_enable", "1\n");
    fixture.write("proc/cpuinfo", cpuinfo);
    fixture.process(0, 0x1ff_ffff_ffff, 0);
    fixture.link("proc/self/ns/pid", "pid:[4026531836]");
    fixture.link("proc/self/ns/user", "user:[4026531837]");
    fixture.write("proc/self/cgroup", "0::/user.slice\n");
    fixture.write(
        "proc/self/mountinfo",
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n",
    );
    fixture.write(
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max locked memory         8388608              8388608              bytes\n",
    );
    fixture.write("sys/kernel/btf/vmlinux", "");
    fixture.write("sys/devices/system/cpu/online", format!("0-{}\n", cpus - 1));
    fixture.write(
        "sys/devices/system/cpu/possible",
        format!("0-{}\n", cpus - 1),
    );
    fixture.pmu("software", 1, &[]);
    fixture.pmu("breakpoint", 5, &[]);
    fixture
}

/// Two CPUs of an AMD EPYC under KVM without a PMU.
pub fn kvm_amd() -> Fixture {
    let fixture = linux(
        "6.18.44",
        2,
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n\
         model name\t: AMD EPYC\nflags\t\t: fpu lm hypervisor\nclflush size\t: 64\n\
         power management:\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n",
    );
    fixture.write("proc/sys/kernel/arch", "x86_64\n");
    fixture.write(
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc kvm-clock \n",
    );
    fixture.cpu(0, 0, "0");
    fixture.cpu(1, 0, "1");
    fixture.write("sys/devices/system/node/node0/cpulist", "0-1\n");
    fixture.cache(0, 1, "Data", "48K");
    fixture.cache(1, 1, "Instruction", "32K");
    fixture.cache(2, 2, "Unified", "1024K");
    fixture.cache(3, 3, "Unified", "32768K");
    fixture
}

const INTEL_FORMATS: [(&str, &str); 3] = [
    ("format/event", "config:0-7"),
    ("format/umask", "config:8-15"),
    ("format/ldlat", "config1:0-15"),
];
const GOLDEN_COVE_EVENTS: [(&str, &str); 3] = [
    ("events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("events/mem-stores", "event=0xcd,umask=0x2"),
    ("events/mem-loads-aux", "event=0x03,umask=0x82"),
];

/// Bare metal, two packages of two cores of two threads (as Linux numbers them).
pub fn intel_sapphire_rapids() -> Fixture {
    let fixture = linux(
        "6.8.0-45-generic",
        8,
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
         model name\t: Intel(R) Xeon(R) Platinum 8480+\nflags\t\t: fpu lm\nclflush size\t: 64\n",
    );
    fixture.write("sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
    fixture.write("sys/class/dmi/id/product_name", "PowerEdge R760\n");
    for cpu in 0..8 {
        let core = cpu % 4;
        fixture.cpu(cpu, core / 2, &format!("{core},{}", core + 4));
    }
    fixture.write("sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    fixture.write("sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    // Memory without CPUs.
    fixture.write("sys/devices/system/node/node2/cpulist", "\n");
    fixture.pmu("cpu", 4, &INTEL_FORMATS);
    fixture.pmu("cpu", 4, &GOLDEN_COVE_EVENTS);
    fixture
}

/// Two big and two small cores.
pub fn intel_hybrid() -> Fixture {
    let fixture = linux(
        "6.12.9",
        4,
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\n\
         model name\t: 12th Gen Intel(R) Core(TM) i9-12900K\nflags\t\t: fpu lm\n",
    );
    fixture.pmu("cpu_core", 4, &INTEL_FORMATS);
    fixture.pmu("cpu_core", 4, &GOLDEN_COVE_EVENTS);
    fixture.pmu("cpu_core", 4, &[("cpus", "0-1")]);
    fixture.pmu("cpu_atom", 10, &INTEL_FORMATS);
    fixture.pmu(
        "cpu_atom",
        10,
        &[
            ("events/mem-loads", "event=0xd0,umask=0x5,ldlat=3"),
            ("events/mem-stores", "event=0xd0,umask=0x6"),
            ("cpus", "2-3"),
        ],
    );
    fixture
}

/// Bare metal with IBS and its Zen 4 extensions, before software filtering.
pub fn amd_zen4() -> Fixture {
    let fixture = linux(
        "6.8.0",
        4,
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\
         model name\t: AMD EPYC 9354 32-Core Processor\nflags\t\t: fpu lm ibs\n",
    );
    fixture.pmu("cpu", 4, &[("format/event", "config:0-7,32-35")]);
    fixture.pmu(
        "ibs_op",
        11,
        &[
            ("format/cnt_ctl", "config:19"),
            ("format/l3missonly", "config:16"),
            ("caps/zen4_ibs_extensions", "1"),
        ],
    );
    fixture
}

/// An Arm server with the statistical profiling extension, on a kernel without the `arch` sysctl.
pub fn arm_spe() -> Fixture {
    let fixture = linux(
        "5.15.0-1066-aws",
        4,
        "processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\
         CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n",
    );
    fixture.pmu(
        "arm_spe_0",
        9,
        &[
            ("format/ts_enable", "config:0"),
            ("format/min_latency", "config2:0-11"),
            ("caps/min_interval", "1024"),
            ("cpumask", "0-3"),
        ],
    );
    fixture
}
