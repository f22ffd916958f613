//! The LLVM pass plugin of `llvm-plugin/`: which LLVMs are here to build it against, and the build.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

use crate::{
    live::{skipped, skipped_core},
    workload::{profile_directory, turn},
};

/// An installed LLVM with its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    /// Its `llvm-config`.
    pub config: PathBuf,
    /// `22.1.8`.
    pub version: String,
    /// The number that a plugin and what loads it must share.
    pub major: u32,
}

/// A compiler that can use the plugin, itself or by its linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// As it is called.
    pub command: String,
    /// Its own version.
    pub version: String,
    /// Of the LLVM in it.
    pub llvm: u32,
}

impl Llvm {
    /// What a `llvm-config` says; an error where its headers are not installed.
    pub fn of(config: &Path) -> anyhow::Result<Llvm> {
        let says = |argument: &str| output(Command::new(config).arg(argument));
        let version = says("--version")?;
        let headers = PathBuf::from(says("--includedir")?);
        ensure!(
            headers.join("llvm/Passes/PassBuilder.h").exists(),
            "{}: no headers in {}; on Debian: apt-get install llvm-{}-dev",
            config.display(),
            headers.display(),
            version.split('.').next().unwrap_or_default(),
        );
        Ok(Llvm {
            config: config.to_path_buf(),
            major: major(&version).with_context(|| format!("LLVM of version {version:?}"))?,
            version,
        })
    }

    /// Where the plugin for it is built to.
    pub fn plugin(&self) -> anyhow::Result<PathBuf> {
        let profile = profile_directory()?;
        let target = profile.parent().context("it is below the target")?;
        let name = format!("cohtrace-hints-{}.so", self.major);
        Ok(target.join("llvm-plugin").join(name))
    }

    /// Builds the plugin, unless it is there already.
    pub fn build(&self) -> anyhow::Result<PathBuf> {
        let plugin = self.plugin()?;
        let directory = plugin.with_extension("build");
        fs::create_dir_all(&directory)?;
        let _turn = turn(&directory.join("lock"))?;
        let flags = output(Command::new(&self.config).arg("--cppflags"))?;
        // Its headers are not ours to be warned of.
        let flags = flags.replace("-I", "-isystem ");
        let sources = sources()?;
        let mut recipe = format!("{} {flags}\n", self.version);
        for source in &sources {
            recipe += &fs::read_to_string(source)?;
        }
        let stamp = directory.join("recipe");
        if plugin.exists() && fs::read_to_string(&stamp).ok().as_ref() == Some(&recipe) {
            return Ok(plugin);
        }
        let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        let mut children = Vec::new();
        let mut objects = Vec::new();
        for source in sources.iter().filter(|path| has_extension(path, "cpp")) {
            let name = source.file_name().context("a source has a name")?;
            let object = directory.join(name).with_extension("o");
            let mut command = Command::new(&compiler);
            command
                .args(["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden"])
                .args([
                    "-fno-rtti",
                    "-fno-exceptions",
                    "-Wall",
                    "-Wextra",
                    "-Werror",
                ])
                .args(flags.split_whitespace())
                .arg("-c")
                .arg(source)
                .arg("-o")
                .arg(&object);
            let child = command.spawn();
            children.push(child.with_context(|| format!("starting {compiler}"))?);
            objects.push(object);
        }
        for mut child in children {
            let status = child.wait()?;
            ensure!(status.success(), "{compiler}: {status}");
        }
        // What the plugin needs of LLVM, the process has that loads it.
        let linked = directory.join("plugin.so");
        output(
            Command::new(&compiler)
                .args(["-shared", "-o"])
                .arg(&linked)
                .args(&objects),
        )?;
        // A compiler that runs now keeps the old file.
        fs::rename(&linked, &plugin)?;
        fs::write(&stamp, recipe)?;
        Ok(plugin)
    }
}

/// Every installed LLVM with headers, newest first; of one major version the one that is found first.
pub fn installed() -> Vec<Llvm> {
    let mut found: BTreeMap<u32, Llvm> = BTreeMap::new();
    for config in configs() {
        if let Ok(llvm) = Llvm::of(&config) {
            found.entry(llvm.major).or_insert(llvm);
        }
    }
    found.into_values().rev().collect()
}

/// The LLVM that a compiler can load plugins of; what to install where it is not here.
pub fn matching(compiler: &Compiler) -> Result<Llvm, String> {
    let found = installed().into_iter();
    let mut found = found.filter(|llvm| llvm.major == compiler.llvm);
    found.next().ok_or_else(|| {
        format!(
            "no headers of LLVM {0}, which {1} {2} has; on Debian: apt-get install llvm-{0}-dev",
            compiler.llvm, compiler.command, compiler.version
        )
    })
}

/// The plugin for `clang++`, built; where that cannot be, it says that `what` is not tested with it.
pub fn for_clang(what: &str) -> Option<PathBuf> {
    let clang = clang("clang++");
    if clang.is_none() {
        skipped_core(format_args!("no clang++: {what} with it is NOT TESTED"));
    }
    built_for(&clang?, what)
}

/// The same for rustc's linker.
pub fn for_rustc(what: &str) -> Option<PathBuf> {
    built_for(&rustc().expect("this was compiled"), what)
}

fn built_for(compiler: &Compiler, what: &str) -> Option<PathBuf> {
    match matching(compiler) {
        Ok(llvm) => Some(llvm.build().unwrap_or_else(|error| panic!("{error:#}"))),
        Err(why) => {
            let command = &compiler.command;
            skipped(format_args!("{why}: {what} with {command} is NOT TESTED"));
            None
        }
    }
}

/// The Rust compiler, if it is here and has LLVM.
pub fn rustc() -> Option<Compiler> {
    let said = output(Command::new("rustc").arg("-vV")).ok()?;
    let line = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
    Some(Compiler {
        command: "rustc".to_owned(),
        version: line("release: ")?.to_owned(),
        llvm: major(line("LLVM version: ")?)?,
    })
}

/// A clang, if it is here: `clang`, `clang++-22`.
pub fn clang(command: &str) -> Option<Compiler> {
    let said = output(Command::new(command).arg("--version")).ok()?;
    let (_, version) = said.lines().next()?.split_once("clang version ")?;
    let version = version.split_whitespace().next()?;
    Some(Compiler {
        command: command.to_owned(),
        version: version.to_owned(),
        llvm: major(version)?,
    })
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// Each `llvm-config`, with or without a number, of the search path and of where Debian puts them.
fn configs() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let below = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    directories.extend(
        below(Path::new("/usr/lib"))
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm-"))
            .map(|entry| entry.path().join("bin")),
    );
    let files = directories.iter().flat_map(|directory| below(directory));
    let mut found: Vec<PathBuf> = files
        .filter(|entry| {
            let name = entry.file_name();
            let rest = name
                .to_str()
                .and_then(|name| name.strip_prefix("llvm-config"));
            rest.is_some_and(|rest| rest.bytes().all(|b| b == b'-' || b.is_ascii_digit()))
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Sources and headers, in order.
fn sources() -> anyhow::Result<Vec<PathBuf>> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = tests
        .parent()
        .context("tests is a member of the workspace")?;
    let directory = root.join("llvm-plugin/src");
    let files = fs::read_dir(&directory).with_context(|| format!("{}", directory.display()))?;
    let mut sources = Vec::new();
    for file in files {
        let path = file?.path();
        if has_extension(&path, "cpp") || has_extension(&path, "h") {
            sources.push(path);
        }
    }
    sources.sort();
    Ok(sources)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|of_path| of_path == extension)
}

/// What a command prints, without its last newline.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{said}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
