//! Whether programs can be run in an emulator: that takes one, and no right at all.

use super::{LiveProbe, Machine, Obstacle, SourceStatus, Status};

/// The emulated source; `None` where nobody looked for the emulator.
pub(super) fn status(machine: &Machine, live: &LiveProbe) -> Option<SourceStatus> {
    let found = live.emulator?;
    let status = match machine.processor.architecture.as_deref() {
        Some(architecture) if architecture != "x86_64" => Status::NotBuilt {
            reason: format!("the emulator's plugin is for x86_64, not for {architecture}"),
        },
        _ if found => Status::Available,
        _ => Status::Unavailable(vec![Obstacle {
            reason: "qemu-x86_64, QEMU's user-mode emulator, is not in PATH".into(),
            fix: vec![
                "sudo apt install qemu-user".into(),
                "# Fedora: dnf install qemu-user; Arch: pacman -S qemu-user; or name it by --qemu or COHTRACE_QEMU"
                    .into(),
            ],
        }]),
    };
    Some(SourceStatus {
        name: "emulate",
        about: "a command run in QEMU, with a plugin that sees each access; needs no rights (only with --source emulate)",
        evidence: "every access of the command's threads, in order, with its instruction; not time or latency",
        status,
        limits: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(architecture: &str, emulator: Option<bool>) -> Option<Status> {
        let mut machine = Machine::default();
        machine.processor.architecture = Some(architecture.to_owned());
        let live = LiveProbe {
            emulator,
            ..LiveProbe::default()
        };
        status(&machine, &live).map(|status| status.status)
    }

    #[test]
    fn the_emulator_is_all_it_takes() {
        assert_eq!(of("x86_64", Some(true)), Some(Status::Available));
        assert_eq!(of("x86_64", None), None);
    }

    #[test]
    fn without_it_the_package_is_named() {
        let Some(Status::Unavailable(obstacles)) = of("x86_64", Some(false)) else {
            panic!("it cannot run");
        };
        assert!(obstacles[0].fix[0].contains("apt install qemu-user"));
        let other = of("aarch64", Some(true));
        assert!(matches!(other, Some(Status::NotBuilt { .. })), "{other:?}");
    }
}
