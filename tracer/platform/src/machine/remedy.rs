//! What to do about an obstacle, as lines to paste into a shell; a line that is no command is a comment.

use super::{Engine, Machine, Rights};

const CONTAINER_RIGHTS: &str = "--pid=host --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE \
     --cap-add=DAC_READ_SEARCH --cap-add=SYSLOG";
/// Said beside every setcap: what it gives, it gives to all who may run the file.
const WHOSE: &str = "# who may run it can then watch every process and read its files: leave it to a group, as \
     docs/security.md (Rights) shows";

/// Our binary as a shell word. sudo has a `PATH` of its own, so the name alone would not do.
fn tool(machine: &Machine) -> String {
    let path = machine
        .privileges
        .executable
        .as_ref()
        .and_then(|p| p.to_str());
    let Some(path) = path else {
        return "\"$(command -v cohtrace)\"".into();
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(is_plain) {
        path.into()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

/// Runs the tool as root.
fn sudo(machine: &Machine) -> String {
    format!(
        "sudo {} doctor  # and so for the other commands",
        tool(machine)
    )
}

/// Ways to get the capabilities that something takes, the likeliest to work first.
pub(super) fn more_rights(machine: &Machine, rights: Rights) -> Vec<String> {
    let us = &machine.privileges;
    if us.container.is_some() {
        let admin = if rights == Rights::Probes {
            " --cap-add=SYS_ADMIN"
        } else {
            ""
        };
        return container(machine, admin);
    }
    if us.no_new_privileges == Some(true) {
        return vec![
            "# no_new_privs is set, so neither sudo nor setcap has an effect in this session: \
             start cohtrace from a login shell"
                .into(),
        ];
    }
    if us.effective_uid == Some(0) {
        return vec![
            "# root is bounded here: start cohtrace from a root shell with all capabilities, or widen \
             CapabilityBoundingSet= of the service"
                .into(),
        ];
    }
    let setcap = format!("sudo setcap {}+ep {}", rights.list(), tool(machine));
    vec![sudo(machine), setcap, WHOSE.to_owned()]
}

/// Starting the container (or the process) in the host's own namespaces.
pub(super) fn initial_namespaces(machine: &Machine) -> Vec<String> {
    match machine.privileges.container {
        Some(_) => container(machine, ""),
        None => vec![
            "# run cohtrace outside the namespace, as root of the host; in a container:".into(),
            run("docker", ""),
        ],
    }
}

/// Lifting the system call filter.
pub(super) fn no_filter(machine: &Machine) -> Vec<String> {
    match machine.privileges.container {
        Some(_) => container(machine, " --security-opt seccomp=unconfined"),
        None => vec!["# widen SystemCallFilter= of the service that cohtrace runs in".into()],
    }
}

/// Sets a kernel switch; in a container only the host can.
pub(super) fn sysctl(machine: &Machine, setting: &str) -> String {
    let place = match machine.privileges.container {
        Some(_) => "  # on the host",
        None => "",
    };
    format!("sudo sysctl {setting}{place}")
}

fn container(machine: &Machine, more: &str) -> Vec<String> {
    match machine.privileges.container {
        Some(Engine::Podman) => vec![run("sudo podman", more)],
        Some(Engine::Kubernetes) => {
            let mut lines = vec![
                "# in the pod's spec: hostPID: true, and in the container's securityContext: \
                 capabilities: {add: [BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, SYSLOG]}"
                    .into(),
            ];
            if !more.is_empty() {
                lines.push("# and there: seccompProfile: {type: Unconfined}".into());
            }
            lines
        }
        Some(Engine::Lxc) => {
            vec!["# run cohtrace on the host: it sees the container's processes".into()]
        }
        Some(Engine::Docker) | None => vec![run("docker", more)],
    }
}

fn run(engine: &str, more: &str) -> String {
    format!("{engine} run {CONTAINER_RIGHTS}{more} IMAGE cohtrace doctor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_quote_stays_one_shell_word() {
        let mut machine = Machine::default();
        assert_eq!(tool(&machine), "\"$(command -v cohtrace)\"");
        machine.privileges.executable = Some("/opt/bin/cohtrace".into());
        assert_eq!(tool(&machine), "/opt/bin/cohtrace");
        machine.privileges.executable = Some("/home/o'neil/my tools/cohtrace".into());
        assert_eq!(tool(&machine), r"'/home/o'\''neil/my tools/cohtrace'");
    }
}
