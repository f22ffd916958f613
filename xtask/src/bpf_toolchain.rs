//! Finds a compiler that can build `core` for the BPF target, and says exactly what it is: the
//! objects' bytes depend on it.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

/// A compiler, the library sources beside it, and the linker.
#[derive(Debug, Clone)]
pub(crate) struct Toolchain {
    /// The compiler's executable.
    rustc: PathBuf,
    /// Where it keeps its own library sources; they end up in the objects' line tables.
    pub sysroot: PathBuf,
    /// Which versions.
    pub versions: Versions,
}

/// What the bytes of an object depend on, apart from our sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions(String);

impl Versions {
    /// As [`Versions`]' `Display` wrote it to a file.
    pub(crate) fn parse(text: &str) -> Versions {
        Versions(text.trim_end().to_owned())
    }

    /// For a message.
    pub(crate) fn in_one_line(&self) -> String {
        self.0.replace('\n', ", ")
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How to get one, for those who have none.
const INSTALL: &str = "\
no compiler here can build the BPF objects. Install one of:
  with rustup:    rustup toolchain install nightly --component rust-src
                  cargo install bpf-linker --version 0.13.0
  on Debian 12:   apt-get install rustc-web rust-web-src llvm-22-dev libpolly-22-dev
                  LLVM_PREFIX=/usr/lib/llvm-22 cargo install bpf-linker --version 0.13.0 \\
                    --no-default-features --features llvm-22";

impl Toolchain {
    /// The toolchain that built the committed objects when it is here, else the best one there is:
    /// rustup's nightly before the distribution's.
    pub(crate) fn find(preferred: Option<&Versions>) -> Result<Toolchain> {
        let linker = first_line(Command::new("bpf-linker").arg("--version"));
        let mut found: Vec<Toolchain> = compilers()
            .iter()
            .filter_map(|rustc| Toolchain::probe(rustc, linker.as_deref()?))
            .collect();
        if found.is_empty() {
            bail!("{INSTALL}");
        }
        let best = found
            .iter()
            .position(|toolchain| Some(&toolchain.versions) == preferred)
            .unwrap_or(0);
        Ok(found.swap_remove(best))
    }

    /// `None` when it is not there or has no library sources.
    fn probe(rustc: &Path, linker: &str) -> Option<Toolchain> {
        let sysroot = PathBuf::from(first_line(
            Command::new(rustc).args(["--print", "sysroot"]),
        )?);
        if !sysroot
            .join("lib/rustlib/src/rust/library/core/src/lib.rs")
            .exists()
        {
            return None;
        }
        let verbose = output(Command::new(rustc).arg("-vV"))?;
        let line = |key: &str| verbose.lines().find(|line| line.starts_with(key));
        Some(Toolchain {
            rustc: rustc.to_path_buf(),
            sysroot,
            versions: Versions(format!(
                "rustc {}\n{}\n{}\n{linker}",
                line("release:")?,
                line("commit-hash:")?,
                line("LLVM version:")?
            )),
        })
    }

    /// A `cargo` that uses this compiler and nothing of the caller's build environment.
    pub(crate) fn cargo(&self) -> Result<Command> {
        let cargo = std::env::var_os("CARGO").context("CARGO is not set: run by `cargo xtask`")?;
        let mut command = Command::new(cargo);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = [
                "CARGO_HOME",
                "CARGO_NET_OFFLINE",
                "CARGO_HTTP_",
                "CARGO_REGISTR",
            ];
            let build = ["CARGO", "RUSTC", "RUSTFLAGS", "RUSTDOC"];
            if build.iter().any(|prefix| text.starts_with(prefix))
                && !ours.iter().any(|prefix| text.starts_with(prefix))
            {
                command.env_remove(&name);
            }
        }
        // A stable cargo and compiler accept `-Z build-std` with this.
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", &self.rustc);
        Ok(command)
    }
}

fn compilers() -> Vec<PathBuf> {
    let nightly =
        first_line(Command::new("rustup").args(["which", "--toolchain", "nightly", "rustc"]));
    nightly
        .map(PathBuf::from)
        .into_iter()
        .chain([PathBuf::from("/usr/bin/rustc")])
        .filter(|rustc| rustc.exists())
        .collect()
}

/// Standard output of a command that succeeded.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| {
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    })
}

fn first_line(command: &mut Command) -> Option<String> {
    Some(output(command)?.lines().next()?.to_owned())
}
