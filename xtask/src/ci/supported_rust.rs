//! Whether the oldest compiler that the manifests promise still builds everything.

use std::process::Command;

use super::{Outcome, run_to_end};

/// Checks the workspace with that compiler, where it is there.
pub(super) fn check() -> Outcome {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    let running = Command::new("rustc").arg("--version").output();
    let running = running.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if running.is_ok_and(|version| is_version(&version, oldest)) {
        // All other steps build with it.
        return Outcome::Passed;
    }
    let toolchain = format!("+{oldest}");
    let mut asked = Command::new("cargo");
    let asked = asked.args([toolchain.as_str(), "--version"]).output();
    if !asked.is_ok_and(|output| output.status.success()) {
        return Outcome::CouldNotCheck(format!(
            "Rust {oldest}, the oldest supported, is not installed"
        ));
    }
    // Not the cargo that runs this task: that is another compiler's.
    let mut check = Command::new("cargo");
    check
        .args([
            toolchain.as_str(),
            "check",
            "--workspace",
            "--locked",
            "--quiet",
        ])
        .current_dir(crate::root());
    run_to_end(check)
}

/// Whether `rustc --version` says that release, with whatever patch.
fn is_version(said: &str, release: &str) -> bool {
    let number = said.split_whitespace().nth(1).unwrap_or_default();
    number
        .strip_prefix(release)
        .is_some_and(|patch| patch.is_empty() || patch.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_release_is_the_release_and_a_longer_number_is_another() {
        assert!(is_version("rustc 1.95.0 (59807616e 2026-04-14)", "1.95"));
        assert!(is_version("rustc 1.95 (x)", "1.95"));
        assert!(!is_version("rustc 1.950.0 (x)", "1.95"));
        assert!(!is_version("rustc 1.96.0 (x)", "1.95"));
        assert!(!is_version("", "1.95"));
    }
}
