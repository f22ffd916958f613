//! A guest: the tool and its targets as the first file system of a kernel, and one boot of it.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use cohtrace_tests::{answer::Variant, tool::Running, workload};

use super::{ended, machines::Machine, records::Records};
use crate::root;

/// The guest's first process.
const INIT: &str = include_str!("init.sh");

/// After which a guest hangs. It takes under a minute on two quiet CPUs.
const LIMIT: Duration = Duration::from_mins(8);

/// The programs that are observed, by workload and variant; a variant but the plain one is in the name.
const TARGETS: [(&str, Variant); 3] = [
    ("two_counters", Variant::Plain),
    ("two_counters", Variant::Padded),
    ("calloc_slots", Variant::Plain),
];

/// Boots of a guest that dies on its own.
const BOOTS: u32 = 3;

/// The emulator's own name and version.
pub(super) fn emulator() -> Result<String> {
    let output = Command::new("qemu-system-x86_64")
        .arg("--version")
        .output()
        .context("starting qemu-system-x86_64")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// All that a guest needs in one archive, as kernels unpack it into memory.
pub(super) struct Luggage(PathBuf);

impl Luggage {
    /// Packs this build of the tool, its targets, what they are linked with, and busybox.
    pub(super) fn pack(tool: &Path, directory: &Path) -> Result<Luggage> {
        let files = directory.join("files");
        if files.exists() {
            fs::remove_dir_all(&files)?;
        }
        for part in ["bin", "w", "proc", "sys", "dev", "tmp"] {
            fs::create_dir_all(files.join(part))?;
        }
        let init = files.join("init");
        fs::write(&init, INIT)?;
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
        busybox(&files)?;
        // Nobody asks for the tool's own lines there, and they are most of its file.
        let packed = files.join("bin/cohtrace");
        let mut strip = Command::new("strip");
        strip.arg("--strip-debug").arg(tool).arg("-o").arg(&packed);
        ended(&mut strip)?;
        let left = files.join("bin/left");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
        compiler
            .arg(root().join("xtask/src/vm/left.c"))
            .arg("-o")
            .arg(&left);
        ended(&mut compiler)?;
        let mut programs = vec![packed, left];
        for (name, variant) in TARGETS {
            let built = workload::named(name)?.build(variant)?;
            let name = match variant {
                Variant::Plain => name.to_owned(),
                other => format!("{name}_{}", other.name()),
            };
            let packed = files.join("w").join(name);
            fs::copy(&built.path, &packed)?;
            programs.push(packed);
        }
        for program in programs {
            libraries(&program, &files)?;
        }
        let archive = directory.join("files.cpio");
        let mut pack = Command::new("sh");
        pack.args(["-c", "find . | busybox cpio --quiet -o -H newc"])
            .current_dir(&files)
            .stdout(File::create(&archive)?);
        ended(&mut pack)?;
        Ok(Luggage(archive))
    }

    /// Boots a kernel and waits for the guest's end; its logs stay in `logs`.
    ///
    /// QEMU's software emulation may fail a kernel that patches its own code while several CPUs run it: a guest that died
    /// before anything of ours ran is booted again, which is told.
    pub(super) fn boot(&self, image: &Path, machine: &Machine, logs: &Path) -> Result<Records> {
        for _ in 1..BOOTS {
            let records = self.boot_once(image, machine, logs)?;
            let console = fs::read(logs.join("console")).unwrap_or_default();
            if !died_on_its_own(&records, &String::from_utf8_lossy(&console)) {
                return Ok(records);
            }
            println!("the guest died before anything of ours ran in it; it is booted again");
        }
        self.boot_once(image, machine, logs)
    }

    fn boot_once(&self, image: &Path, machine: &Machine, logs: &Path) -> Result<Records> {
        fs::create_dir_all(logs)?;
        let (console, records) = (logs.join("console"), logs.join("records"));
        // However this task ends, the emulator ends with it.
        let mut emulator = Command::new("setpriv");
        emulator.args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"]);
        emulator.args(machine.arguments());
        emulator.args(["-display", "none", "-monitor", "none", "-no-reboot"]);
        for log in [&console, &records] {
            emulator
                .arg("-serial")
                .arg(format!("file:{}", log.display()));
        }
        emulator.arg("-kernel").arg(image);
        emulator.arg("-initrd").arg(&self.0);
        emulator.args(["-append", "console=ttyS0 panic=-1 quiet"]);
        let ended = Running::start(&mut emulator)?.wait(LIMIT);
        let trouble = match ended {
            Ok(ended) if ended.status.success() && ended.stderr.is_empty() => None,
            Ok(ended) => Some(format!("QEMU: {}, {}", ended.status, ended.stderr.trim())),
            Err(hangs) => Some(format!("{hangs:#}").trim().to_owned()),
        };
        let text = fs::read(&records).context("what the guest wrote")?;
        let mut records = Records::parse(&String::from_utf8_lossy(&text));
        records.trouble = trouble;
        Ok(records)
    }
}

/// Whether a kernel panicked before the guest's first process wrote anything.
fn died_on_its_own(records: &Records, console: &str) -> bool {
    records.is_empty() && console.contains("Kernel panic")
}

/// The shell and all other programs, which are one file.
fn busybox(files: &Path) -> Result<()> {
    let program = find_program("busybox").context("busybox is in no directory of PATH")?;
    let bin = files.join("bin");
    fs::copy(&program, bin.join("busybox"))?;
    ensure!(
        linked(&program)?.is_empty(),
        "{} needs libraries; install busybox-static",
        program.display()
    );
    let list = ended(Command::new(&program).arg("--list"))?;
    for applet in list.lines().filter(|applet| *applet != "busybox") {
        symlink("busybox", bin.join(applet))?;
    }
    Ok(())
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| candidate.is_file())
}

/// Puts the shared libraries of a program where it looks for them.
fn libraries(program: &Path, files: &Path) -> Result<()> {
    for library in linked(program)? {
        let packed = files.join(library.strip_prefix("/").unwrap_or(&library));
        if !packed.exists() {
            fs::create_dir_all(packed.parent().unwrap_or(files))?;
            fs::copy(&library, &packed).with_context(|| library.display().to_string())?;
        }
    }
    Ok(())
}

/// The files that a program is linked with, its loader included; none for a static one.
fn linked(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .context("starting ldd")?;
    Ok(paths(&String::from_utf8_lossy(&output.stdout)))
}

/// Of ldd's lines: `NAME => PATH (ADDRESS)` and `PATH (ADDRESS)`.
fn paths(printed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (before, _) = line.rsplit_once(" (")?;
        let path = before.rsplit(" => ").next()?.trim();
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    printed.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_died_with_a_record_of_ours_is_not_excused() {
        let panic = "[    1.27] Kernel panic - not syncing: Fatal exception in interrupt";
        let begun = "@@ started 0\n\n@@ errors\n\n@@ end\n";
        assert!(died_on_its_own(&Records::parse(""), panic));
        assert!(!died_on_its_own(&Records::parse(begun), panic));
        assert!(!died_on_its_own(&Records::parse(""), "login:"));
    }

    #[test]
    fn libraries_are_files_and_the_kernels_own_is_none() {
        let printed = "\
            \tlinux-vdso.so.1 (0x00007f6a4ad39000)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f6a49c1e000)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f6a4ad3b000)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(paths(printed), expected.map(PathBuf::from));
        assert!(paths("\tnot a dynamic executable\n").is_empty());
    }
}
