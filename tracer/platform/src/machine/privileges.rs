//! What this process may do, and what stands around it: capabilities, namespaces, filters, limits.

use std::path::PathBuf;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::tree::{Tree, field};

/// A set of capabilities, bit n for capability n (include/uapi/linux/capability.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

/// A capability by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability(pub u8);

impl Capability {
    /// Read and write any file.
    pub const DAC_OVERRIDE: Capability = Capability(1);
    /// Read any file.
    pub const DAC_READ_SEARCH: Capability = Capability(2);
    /// Act as the owner of any file: change its mode, replace it where only its owner may.
    pub const FOWNER: Capability = Capability(3);
    /// Signal processes of other users.
    pub const KILL: Capability = Capability(5);
    /// Lock memory beyond the limit, such as large rings of events.
    pub const IPC_LOCK: Capability = Capability(14);
    /// Read other processes' memory and maps.
    pub const SYS_PTRACE: Capability = Capability(19);
    /// Nearly everything; includes the BPF and PERFMON rights.
    pub const SYS_ADMIN: Capability = Capability(21);
    /// Raise priorities.
    pub const SYS_NICE: Capability = Capability(23);
    /// Raise limits such as that of locked memory.
    pub const SYS_RESOURCE: Capability = Capability(24);
    /// See addresses of the kernel (`/proc/kallsyms`).
    pub const SYSLOG: Capability = Capability(34);
    /// Observe all CPUs and processes, read kernel memory from BPF (5.8).
    pub const PERFMON: Capability = Capability(38);
    /// Load BPF programs and make maps (5.8).
    pub const BPF: Capability = Capability(39);
    /// Open the files behind mappings, deleted ones too (5.9).
    pub const CHECKPOINT_RESTORE: Capability = Capability(40);

    /// Lower-case kernel name, `cap_bpf`; `None` for numbers that Linux 6.18 does not have.
    pub fn name(self) -> Option<&'static str> {
        NAMES.split(' ').nth(usize::from(self.0))
    }
}

/// By number, from 0.
const NAMES: &str = "cap_chown cap_dac_override cap_dac_read_search cap_fowner cap_fsetid cap_kill \
    cap_setgid cap_setuid cap_setpcap cap_linux_immutable cap_net_bind_service cap_net_broadcast \
    cap_net_admin cap_net_raw cap_ipc_lock cap_ipc_owner cap_sys_module cap_sys_rawio cap_sys_chroot \
    cap_sys_ptrace cap_sys_pacct cap_sys_admin cap_sys_boot cap_sys_nice cap_sys_resource cap_sys_time \
    cap_sys_tty_config cap_mknod cap_lease cap_audit_write cap_audit_control cap_setfcap \
    cap_mac_override cap_mac_admin cap_syslog cap_wake_alarm cap_block_suspend cap_audit_read \
    cap_perfmon cap_bpf cap_checkpoint_restore";

impl Capabilities {
    /// The set of these.
    pub fn of(members: &[Capability]) -> Capabilities {
        Capabilities(0).with(members)
    }

    /// The set and these.
    #[must_use]
    pub fn with(self, members: &[Capability]) -> Capabilities {
        let bits = members
            .iter()
            .fold(self.0, |set, member| set | 1 << member.0);
        Capabilities(bits)
    }

    /// Whether the set has it.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability.0) != 0
    }

    /// Names of all members, in order of number; members without a name are left out.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        (0..64)
            .map(Capability)
            .filter(move |capability| self.has(*capability))
            .filter_map(Capability::name)
    }
}

/// The names of those that Linux 6.18 has.
impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

/// System call filtering of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seccomp {
    /// None.
    Disabled,
    /// Four calls only.
    Strict,
    /// A filter program decides; container runtimes set one.
    Filter,
}

/// A resource limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// None.
    Unlimited,
    /// At most this many bytes.
    Bytes(u64),
}

/// `{unlimited, bytes}`: no number stands for no limit.
impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = match self {
            Limit::Unlimited => None,
            Limit::Bytes(bytes) => Some(bytes),
        };
        let mut fields = serializer.serialize_struct("Limit", 2)?;
        fields.serialize_field("unlimited", &bytes.is_none())?;
        fields.serialize_field("bytes", &bytes)?;
        fields.end()
    }
}

/// This process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Privileges {
    /// Effective user id.
    pub effective_uid: Option<u32>,
    /// Effective capabilities; they count only in the initial user namespace.
    #[serde(rename = "capabilities")]
    pub effective: Option<Capabilities>,
    /// Neither sudo nor file capabilities can add rights.
    #[serde(rename = "no_new_privs")]
    pub no_new_privileges: Option<bool>,
    /// System call filter.
    pub seccomp: Option<Seccomp>,
    /// In the initial pid namespace: the pids that the kernel reports are those in our `/proc`.
    pub initial_pid_namespace: Option<bool>,
    /// In the initial user namespace: capabilities are real.
    pub initial_user_namespace: Option<bool>,
    /// The engine whose container we seem to be in; `None` when nothing points to one.
    pub container: Option<Engine>,
    /// Soft limit of locked memory.
    pub locked_memory: Option<Limit>,
    /// Our own file, when it is the `cohtrace` binary and still there.
    #[serde(skip)]
    pub executable: Option<PathBuf>,
}

/// What runs a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Docker, or containerd on its own.
    Docker,
    /// Podman.
    Podman,
    /// A Kubernetes pod.
    Kubernetes,
    /// LXC, LXD, Incus.
    Lxc,
}

// Fixed inode numbers of the first namespaces (include/linux/proc_ns.h).
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

impl Privileges {
    pub(super) fn probe(tree: &Tree<'_>) -> Self {
        let status = tree.text("proc/self/status").unwrap_or_default();
        let get = |key| field(&status, key, ':');
        let namespace = |kind: &str, initial: &str| {
            let link = tree.link(&format!("proc/self/ns/{kind}"))?;
            link.starts_with(kind).then_some(link == initial)
        };
        Privileges {
            effective_uid: get("Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()),
            effective: get("CapEff")
                .and_then(|hex| u64::from_str_radix(hex, 16).ok())
                .map(Capabilities),
            no_new_privileges: match get("NoNewPrivs") {
                Some("0") => Some(false),
                Some("1") => Some(true),
                _ => None,
            },
            seccomp: match get("Seccomp") {
                Some("0") => Some(Seccomp::Disabled),
                Some("1") => Some(Seccomp::Strict),
                Some("2") => Some(Seccomp::Filter),
                _ => None,
            },
            initial_pid_namespace: namespace("pid", INITIAL_PID_NAMESPACE),
            initial_user_namespace: namespace("user", INITIAL_USER_NAMESPACE),
            container: container(tree),
            locked_memory: tree
                .text("proc/self/limits")
                .and_then(|limits| locked_memory(&limits)),
            executable: executable(tree),
        }
    }
}

/// Engines leave their names in the cgroup path (cgroup v1, or v2 without a namespace) and in the
/// sources of the files they mount over `/etc/hosts` and the like.
fn container(tree: &Tree<'_>) -> Option<Engine> {
    const SIGNS: [(&str, Engine); 9] = [
        // Pods first: their containers carry the runtime's name as well.
        ("kubepods", Engine::Kubernetes),
        ("/kubelet/pods/", Engine::Kubernetes),
        ("libpod", Engine::Podman),
        ("/containers/storage/", Engine::Podman),
        ("/overlay-containers/", Engine::Podman),
        ("/docker/", Engine::Docker),
        ("docker-", Engine::Docker),
        ("/lxc/", Engine::Lxc),
        ("lxc.payload", Engine::Lxc),
    ];
    let cgroup = tree.text("proc/self/cgroup").unwrap_or_default();
    let mounts = tree.text("proc/self/mountinfo").unwrap_or_default();
    // A host that runs containers mounts their roots elsewhere than on its own files.
    let own_mounts: Vec<&str> = mounts
        .lines()
        .filter(|line| {
            let target = line.split(' ').nth(4);
            matches!(
                target,
                Some("/" | "/etc/hosts" | "/etc/hostname" | "/etc/resolv.conf")
            )
        })
        .collect();
    SIGNS.into_iter().find_map(|(sign, engine)| {
        let found = cgroup.contains(sign) || own_mounts.iter().any(|line| line.contains(sign));
        found.then_some(engine)
    })
}

/// `Max locked memory   8388608   8388608   bytes`: the first number is the soft limit.
fn locked_memory(limits: &str) -> Option<Limit> {
    let rest = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::Bytes),
    }
}

fn executable(tree: &Tree<'_>) -> Option<PathBuf> {
    // A binary that was replaced while running ends in ` (deleted)` here and so has another name.
    let path = PathBuf::from(tree.link("proc/self/exe")?);
    (path.is_absolute() && path.file_name()? == "cohtrace").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{super::fixture, *};

    fn privileges(fixture: &fixture::Fixture) -> Privileges {
        Privileges::probe(&Tree::new(fixture.root()))
    }

    #[test]
    fn capability_numbers_are_the_kernels() {
        let all = Capabilities(0x1ff_ffff_ffff);
        assert_eq!(all.names().count(), 41);
        let some = Capabilities(1 << 39 | 1 << 38 | 1 << 21 | 1 << 19 | 1 << 17 | 1 << 2 | 1 << 50);
        assert_eq!(
            some.names().collect::<Vec<_>>(),
            [
                "cap_dac_read_search",
                "cap_sys_rawio",
                "cap_sys_ptrace",
                "cap_sys_admin",
                "cap_perfmon",
                "cap_bpf"
            ]
        );
        assert!(some.has(Capability::BPF) && !some.has(Capability::SYS_RESOURCE));
        assert_eq!(Capability(40).name(), Some("cap_checkpoint_restore"));
        assert_eq!(Capability(41).name(), None);
    }

    #[test]
    fn a_process_outside_any_container_is_read_in_full() {
        let machine = fixture::kvm_amd();
        machine.link("proc/self/exe", "/opt/bin/cohtrace");
        assert_eq!(
            privileges(&machine),
            Privileges {
                effective_uid: Some(0),
                effective: Some(Capabilities(0x1ff_ffff_ffff)),
                no_new_privileges: Some(false),
                seccomp: Some(Seccomp::Disabled),
                initial_pid_namespace: Some(true),
                initial_user_namespace: Some(true),
                container: None,
                locked_memory: Some(Limit::Bytes(8388608)),
                executable: Some("/opt/bin/cohtrace".into()),
            }
        );
    }

    #[test]
    fn another_program_or_a_replaced_binary_is_not_our_executable() {
        let machine = fixture::kvm_amd();
        for target in [
            "/opt/bin/cohtrace (deleted)",
            "/usr/bin/python3",
            "cohtrace",
        ] {
            machine.link("proc/self/exe", target);
            assert_eq!(privileges(&machine).executable, None, "{target}");
        }
    }

    #[test]
    fn engines_are_known_by_cgroup_or_by_the_files_they_mount() {
        let machine = fixture::kvm_amd();
        let cases = [
            (
                "0::/",
                "612 600 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l",
                Some(Engine::Docker),
            ),
            (
                "0::/",
                "613 600 8:1 /var/lib/docker/containers/1f/hosts /etc/hosts rw - ext4 /dev/sda1 rw",
                Some(Engine::Docker),
            ),
            (
                "0::/",
                "613 600 8:1 /var/lib/kubelet/pods/9/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw",
                Some(Engine::Kubernetes),
            ),
            (
                "0::/",
                "612 600 0:50 / / rw - overlay overlay rw,lowerdir=/home/u/.local/share/containers/storage/overlay/l",
                Some(Engine::Podman),
            ),
            (
                "4:memory:/kubepods/burstable/pod1/docker-2",
                "",
                Some(Engine::Kubernetes),
            ),
            ("0::/lxc.payload.web", "", Some(Engine::Lxc)),
            // The host of a container sees its root as a mount of its own, not as `/`.
            (
                "0::/user.slice",
                "612 30 0:50 / /var/lib/docker/overlay2/1/merged rw - overlay overlay rw",
                None,
            ),
        ];
        for (cgroup, mountinfo, engine) in cases {
            machine.write("proc/self/cgroup", cgroup);
            machine.write("proc/self/mountinfo", mountinfo);
            assert_eq!(
                privileges(&machine).container,
                engine,
                "{cgroup} {mountinfo}"
            );
        }
    }

    #[test]
    fn a_namespace_link_of_another_form_says_nothing() {
        let machine = fixture::kvm_amd();
        machine.link("proc/self/ns/pid", "pid:[4026532201]");
        machine.link("proc/self/ns/user", "nonsense");
        assert_eq!(privileges(&machine).initial_pid_namespace, Some(false));
        assert_eq!(privileges(&machine).initial_user_namespace, None);
    }
}
