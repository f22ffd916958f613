//! Builds the BPF objects, two per architecture, the same bytes in every directory: the ordinary one, and a debug object
//! whose programs tell why they did nothing (`cohtrace doctor --bpf-log`).
//!
//! The objects are committed, so that building cohtrace needs stable Rust only. `--check` is what
//! keeps them honest: it builds again and compares.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use object::{
    build::elf::{Builder, SectionData},
    elf::SHT_STRTAB,
};

use crate::{
    bpf_provenance::{Provenance, digest_of_sources},
    bpf_toolchain::Toolchain,
    root,
};

/// Architectures whose register layout the kernel half knows.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing: build again and fail when a byte differs from the committed objects.
    #[arg(long)]
    check: bool,
    /// Only the debug objects, whose programs tell why they did nothing: `cohtrace doctor --bpf-log`.
    ///
    /// For work on what is told. What is committed is built without this, which builds all.
    #[arg(long)]
    log: bool,
}

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What observes.
    Ordinary,
    /// The same programs, and why they did nothing.
    Log,
}

const KINDS: [Kind; 2] = [Kind::Ordinary, Kind::Log];

impl Kind {
    /// What its file's name has before the ending.
    fn suffix(self) -> &'static str {
        match self {
            Kind::Ordinary => "",
            Kind::Log => "-log",
        }
    }

    /// How cargo is told.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ordinary => &[],
            Kind::Log => &["--features=log"],
        }
    }

    /// What the linker is told beside. A program that is called by its entry, instead of being a part of it, would be
    /// verified by itself, and the kernel does not take its argument for a context there.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Kind::Ordinary => &[],
            Kind::Log => &["-Clink-arg=--llvm-args=-inline-threshold=1000000"],
        }
    }
}

/// What a check found.
pub(crate) enum Check {
    /// Every byte is the same.
    Same,
    /// The compiler that built the objects is not here, and it decides their bytes. The sources are
    /// those that they were built from.
    CannotCompare(String),
    /// The objects do not follow from the sources.
    Differ(String),
}

/// The task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let kinds: &[Kind] = if options.log { &[Kind::Log] } else { &KINDS };
    if !options.check {
        return rebuild(kinds);
    }
    match check_kinds(kinds)? {
        Check::Same => println!("the committed BPF objects are what the sources give"),
        Check::CannotCompare(why) => println!("could not check: {why}"),
        Check::Differ(what) => bail!(
            "{what}: run `cargo xtask ebpf` and commit tracer-ebpf/prebuilt/ with the change to the \
             sources"
        ),
    }
    Ok(())
}

/// Builds all again and compares with what is committed.
pub(crate) fn check() -> Result<Check> {
    check_kinds(&KINDS)
}

fn check_kinds(kinds: &[Kind]) -> Result<Check> {
    let committed = Provenance::committed()?;
    let cannot = |why: String| {
        Ok(if digest_of_sources()? == committed.sources {
            Check::CannotCompare(why)
        } else {
            Check::Differ("the sources have changed since the BPF objects were built".to_owned())
        })
    };
    let toolchain = match Toolchain::find(Some(&committed.versions)) {
        Ok(toolchain) => toolchain,
        Err(error) => return cannot(error.to_string()),
    };
    if toolchain.versions != committed.versions {
        return cannot(format!(
            "the BPF objects were built with {}; here is {}",
            committed.versions.in_one_line(),
            toolchain.versions.in_one_line()
        ));
    }
    let mut differing = Vec::new();
    for (architecture, kind) in objects(kinds) {
        let path = object_path(architecture, kind);
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if build(&toolchain, architecture, kind)? != bytes {
            differing.push(path.display().to_string());
        }
    }
    Ok(if differing.is_empty() {
        Check::Same
    } else {
        Check::Differ(format!("built again, {} differs", differing.join(" and ")))
    })
}

/// What is committed says with what it was built only when all was.
fn rebuild(kinds: &[Kind]) -> Result<()> {
    let committed = Provenance::committed().ok();
    let preferred = committed.as_ref().map(|committed| &committed.versions);
    let toolchain = Toolchain::find(preferred)?;
    println!("{}", toolchain.versions);
    for (architecture, kind) in objects(kinds) {
        let bytes = build(&toolchain, architecture, kind)?;
        let path = object_path(architecture, kind);
        println!("{} bytes: {}", bytes.len(), path.display());
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
    }
    if kinds == KINDS {
        Provenance::now(toolchain.versions)?.write()?;
    }
    Ok(())
}

/// One architecture after the other: `core` is compiled anew for each.
fn objects(kinds: &[Kind]) -> impl Iterator<Item = (&'static str, Kind)> {
    let of = |architecture| kinds.iter().map(move |kind| (architecture, *kind));
    ARCHITECTURES.into_iter().flat_map(of)
}

fn object_path(architecture: &str, kind: Kind) -> PathBuf {
    let suffix = kind.suffix();
    root().join(format!(
        "tracer-ebpf/prebuilt/cohtrace-{architecture}{suffix}.bpf.o"
    ))
}

/// Compiles, links and strips one object.
fn build(toolchain: &Toolchain, architecture: &str, kind: Kind) -> Result<Vec<u8>> {
    // Apart from the host's build: other flags, another compiler, another profile.
    let target = root().join("target/ebpf");
    let status = toolchain
        .cargo()?
        .current_dir(root())
        .args([
            "build",
            "--package=tracer-ebpf",
            "--bin=tracer-ebpf",
            "--release",
            "--locked",
        ])
        .args(kind.arguments())
        .args(["-Zbuild-std=core", "--target=bpfel-unknown-none"])
        .arg(format!("--target-dir={}", target.display()))
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            flags(toolchain, architecture, kind)?.join("\u{1f}"),
        )
        // BTF is made from the debug information.
        .env("CARGO_PROFILE_RELEASE_DEBUG", "2")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_TERM_QUIET", "true")
        .status()
        .context("running cargo")?;
    ensure!(
        status.success(),
        "the build of the BPF object for {architecture} failed"
    );
    let linked = target.join("bpfel-unknown-none/release/tracer-ebpf");
    let linked = fs::read(&linked).with_context(|| format!("reading {}", linked.display()))?;
    strip(&linked)
}

fn flags(toolchain: &Toolchain, architecture: &str, kind: Kind) -> Result<Vec<String>> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![
        format!("--cfg=bpf_target_arch=\"{architecture}\""),
        "-Clink-arg=--btf".to_owned(),
        // Nothing calls them, and exported functions are kept.
        "-Clink-arg=--disable-memory-builtins".to_owned(),
        remap(&root(), "."),
        remap(&toolchain.sysroot.join("lib/rustlib/src/rust"), "rust"),
    ];
    flags.extend(kind.flags().iter().copied().map(str::to_owned));
    // The folder below is named after the registry; several can be there.
    let sources = cargo_home()?.join("registry/src");
    if !sources.exists() {
        let fetch = toolchain
            .cargo()?
            .current_dir(root())
            .args(["fetch", "--locked"])
            .status();
        ensure!(
            fetch.is_ok_and(|status| status.success()),
            "cargo fetch failed"
        );
    }
    let listing = || format!("listing {}", sources.display());
    for registry in fs::read_dir(&sources).with_context(listing)? {
        flags.push(remap(&registry?.path(), "registry"));
    }
    Ok(flags)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .context("neither CARGO_HOME nor a home directory is known")
}

/// Drops the DWARF, which only served to make the BTF.
fn strip(linked: &[u8]) -> Result<Vec<u8>> {
    let mut elf = Builder::read(linked).context("reading the linked BPF object")?;
    for section in &mut elf.sections {
        let name = section.name.to_string();
        section.delete = name.starts_with(".debug_") || name.starts_with(".rel.debug_");
    }
    elf.delete_orphans();
    // LLVM keeps section names and symbol names in one table; the writer wants two.
    let names = elf.sections.add();
    names.name = ".shstrtab".into();
    names.sh_type = SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = SectionData::SectionString;
    let mut stripped = Vec::new();
    elf.write(&mut stripped)
        .context("writing the stripped BPF object")?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
    use tracer_ebpf::{
        HITS, KERNEL_TEXT, SAMPLES, STATS, TARGETS, WATCH_CONTROL, WATCH_STATS, globals, programs,
        told,
    };

    use super::*;

    fn committed(architecture: &str, kind: Kind) -> Vec<u8> {
        fs::read(object_path(architecture, kind)).unwrap()
    }

    /// Names of the functions and variables that others than the object itself may ask for.
    fn names(architecture: &str, kind: Kind) -> BTreeSet<String> {
        let bytes = committed(architecture, kind);
        let object = object::File::parse(&*bytes).unwrap();
        let global = object.symbols().filter(object::ObjectSymbol::is_global);
        global
            .map(|symbol| symbol.name().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_ordinary_object_has_no_map_of_lines_and_the_debug_object_adds_only_what_tells() {
        for architecture in ARCHITECTURES {
            let ordinary = names(architecture, Kind::Ordinary);
            let log = names(architecture, Kind::Log);
            let added: BTreeSet<&str> = log.difference(&ordinary).map(String::as_str).collect();
            let entries = told::PROGRAMS.iter().map(|(_, entry)| *entry);
            // What aya-log brings, and what was told already.
            let lines = ["AYA_LOGS", "AYA_LOG_LEVEL", "TOLD"];
            assert_eq!(added, entries.chain(lines).collect(), "{architecture}");
            assert!(ordinary.is_subset(&log), "{architecture}");
        }
    }

    #[test]
    fn the_debug_object_runs_the_same_programs() {
        for architecture in ARCHITECTURES {
            let code = |kind| {
                let bytes = committed(architecture, kind);
                let object = object::File::parse(&*bytes).unwrap();
                let of = |name: &str| {
                    let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name));
                    symbol
                        .unwrap_or_else(|| panic!("{name} for {architecture}"))
                        .size()
                };
                told::PROGRAMS.map(|(name, _)| (name, of(name)))
            };
            assert_eq!(code(Kind::Ordinary), code(Kind::Log), "bytes of code");
        }
    }

    #[test]
    fn every_object_has_the_programs_maps_and_globals_of_the_contract() {
        for (architecture, kind) in objects(&KINDS) {
            let bytes = committed(architecture, kind);
            let object = object::File::parse(&*bytes).unwrap();
            let section_of = |name: &str| {
                let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name));
                let symbol = symbol.unwrap_or_else(|| panic!("{name} for {architecture}"));
                let section = object.section_by_index(symbol.section_index().unwrap());
                section.unwrap().name().unwrap().to_owned()
            };
            for map in [
                HITS,
                KERNEL_TEXT,
                SAMPLES,
                STATS,
                TARGETS,
                WATCH_CONTROL,
                WATCH_STATS,
            ] {
                assert_eq!(section_of(map), "maps", "{map}");
            }
            for global in [
                globals::ALL_PROCESSES,
                globals::OWN_PID,
                globals::TASK_TGID,
                globals::TASK_FS_BASE,
            ] {
                assert_eq!(section_of(global), ".rodata", "{global}");
            }
            assert_eq!(section_of(programs::SAMPLE), "perf_event");
            assert_eq!(section_of(programs::WATCH), "perf_event");
            assert_eq!(section_of(programs::TASK_FORK), "raw_tp");
            assert_eq!(section_of(programs::READ_KERNEL), "raw_tp");
            let license = object.section_by_name("license").unwrap();
            assert_eq!(license.data().unwrap(), b"Dual MIT/GPL\0");
        }
    }

    #[test]
    fn the_objects_keep_their_btf_and_nothing_of_their_dwarf() {
        for (architecture, kind) in objects(&KINDS) {
            let bytes = committed(architecture, kind);
            let object = object::File::parse(&*bytes).unwrap();
            assert!(object.section_by_name(".BTF").is_some());
            let has_dwarf = object
                .sections()
                .any(|section| section.name().unwrap().contains("debug"));
            assert!(!has_dwarf, "{architecture}");
        }
    }

    #[test]
    fn no_object_names_a_directory_of_the_machine_that_built_it() {
        for (architecture, kind) in objects(&KINDS) {
            let bytes = committed(architecture, kind);
            let contains = |text: &str| {
                bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            };
            for directory in ["/home/", "root/", "/usr/", "/tmp/", ".cargo/registry"] {
                assert!(!contains(directory), "{directory} for {architecture}");
            }
            assert!(contains("./tracer-ebpf/src/programs/sample.rs"));
        }
    }
}
