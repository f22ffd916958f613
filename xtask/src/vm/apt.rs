//! Debian's packages: installed where the emulator is missing, and only downloaded where kernels are.
//!
//! Kernels come from suites that the machine itself does not use, so apt gets lists and sources of its own for each,
//! below the target directory, from the mirror that the machine uses; what is installed is not touched.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use cohtrace_tests::kernel;

use super::ended;

/// Programs that guests need here, and their packages.
const NEEDED: [(&str, &str); 2] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
];

/// Archive keys of Debian, which its package of that name installs.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An error that names the packages, unless all programs are there.
pub(super) fn missing() -> Result<()> {
    let packages = absent();
    ensure!(
        packages.is_empty(),
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    Ok(())
}

/// The same, but installs them as root.
pub(super) fn install_what_is_missing() -> Result<()> {
    let packages = absent();
    if packages.is_empty() || !kernel::is_root() {
        return missing();
    }
    println!("installing {}", packages.join(" "));
    ended(Command::new("apt-get").arg("update"))?;
    let mut install = Command::new("apt-get");
    install
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages);
    ended(&mut install)?;
    missing()
}

fn absent() -> Vec<&'static str> {
    let starts = |program: &str| {
        Command::new(program)
            .arg("--help")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    };
    let absent = NEEDED.iter().filter(|(program, _)| !starts(program));
    absent.map(|(_, package)| *package).collect()
}

/// One of Debian's suites.
pub(super) struct Suite {
    /// Holds the lists, the sources and the archives.
    directory: PathBuf,
}

impl Suite {
    /// Reads what the suite has now.
    pub(super) fn open(name: &str, directory: &Path) -> Result<Suite> {
        let suite = Suite {
            directory: directory.join("apt").join(name),
        };
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(suite.directory.join(part))?;
        }
        let source = format!("deb [signed-by={KEYS}] {} {name} main\n", mirror()?);
        fs::write(suite.directory.join("sources.list"), source)?;
        ended(suite.command("apt-get").arg("update"))?;
        Ok(suite)
    }

    /// Names of packages that match a regular expression.
    pub(super) fn search(&self, pattern: &str) -> Result<Vec<String>> {
        let mut search = self.command("apt-cache");
        let found = ended(search.args(["search", "--names-only", pattern]))?;
        let names = found.lines().filter_map(|line| line.split(' ').next());
        Ok(names.map(str::to_owned).collect())
    }

    /// Downloads a package into a directory; its path.
    pub(super) fn download(&self, package: &str, into: &Path) -> Result<PathBuf> {
        let mut download = self.command("apt-get");
        ended(download.args(["download", package]).current_dir(into))?;
        let prefix = format!("{package}_");
        for entry in fs::read_dir(into)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                return Ok(entry.path());
            }
        }
        bail!("apt-get download {package} left no file")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let own = |key: &str, name: &str| format!("{key}={}", self.directory.join(name).display());
        for option in [
            own("Dir::State::Lists", "lists"),
            own("Dir::Cache", "cache"),
            own("Dir::Etc::SourceList", "sources.list"),
            "Dir::Etc::SourceParts=-".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command
    }
}

/// Where this machine gets Debian from. apt knows once it has read its lists.
fn mirror() -> Result<String> {
    if let Some(mirror) = known_mirror()? {
        return Ok(mirror);
    }
    if kernel::is_root() {
        ended(Command::new("apt-get").arg("update"))?;
    }
    known_mirror()?.context("apt knows no mirror of Debian here; run apt-get update")
}

fn known_mirror() -> Result<Option<String>> {
    let mut targets = Command::new("apt-get");
    targets.args([
        "indextargets",
        "--format",
        "$(ORIGIN) $(REPO_URI)",
        "Created-By: Packages",
    ]);
    Ok(mirror_of(&ended(&mut targets)?))
}

/// Of lines of origin and address: the first of Debian itself, without its security updates, whose suites are others.
fn mirror_of(targets: &str) -> Option<String> {
    let mirrors = targets
        .lines()
        .filter_map(|line| line.strip_prefix("Debian "));
    let mut mirrors = mirrors.filter(|uri| !uri.contains("security"));
    mirrors.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::mirror_of;

    #[test]
    fn the_mirror_is_debians_own_and_not_its_security_updates() {
        let targets = "\
            NodeSource https://packages.example/node/\n\
            Debian http://mirror.example/debian-security/\n\
            Debian http://mirror.example/debian/\n";
        assert_eq!(
            mirror_of(targets).as_deref(),
            Some("http://mirror.example/debian/")
        );
        assert_eq!(
            mirror_of("NodeSource https://packages.example/node/\n"),
            None
        );
    }
}
