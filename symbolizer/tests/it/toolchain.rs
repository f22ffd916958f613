//! Compiles the fixtures. A missing compiler is said loudly; `cc` must be there.

use cohtrace_skips::skipped_core;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use object::{Object, ObjectSymbol};
use symbolizer::{Bytes, DebugFiles, Module, NoDebugFiles};

/// A compiled fixture; the files vanish with it.
pub(crate) struct Built {
    pub directory: tempfile::TempDir,
    pub path: PathBuf,
}

impl Built {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    pub(crate) fn module(&self) -> Module {
        parse(self.bytes())
    }

    /// The symbols of the file as another reader has them: (name, address, size).
    pub(crate) fn symbols(&self) -> Vec<(String, u64, u64)> {
        let bytes = self.bytes();
        let file = object::File::parse(&*bytes).unwrap();
        let symbols = file.symbols();
        symbols
            .map(|symbol| {
                (
                    symbol.name().unwrap().to_owned(),
                    symbol.address(),
                    symbol.size(),
                )
            })
            .collect()
    }

    /// Address and size of the symbol of this name; a local one may have a suffix (`calls.0`).
    pub(crate) fn symbol(&self, name: &str) -> (u64, u64) {
        let symbols = self.symbols();
        let exact = symbols.iter().find(|(symbol, ..)| symbol == name);
        let loose = symbols
            .iter()
            .find(|(symbol, _, size)| *size > 0 && symbol.contains(name));
        let (_, address, size) = exact
            .or(loose)
            .unwrap_or_else(|| panic!("no symbol {name}"));
        (*address, *size)
    }

    /// Runs a tool in the directory of the file.
    pub(crate) fn run(&self, tool: &str, arguments: &[&str]) {
        let output = Command::new(tool)
            .args(arguments)
            .current_dir(&self.directory)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{tool} {arguments:?}: {}",
            text(&output.stderr)
        );
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.directory.path().join(name)).unwrap()
    }
}

pub(crate) fn parse(bytes: Vec<u8>) -> Module {
    parse_with(bytes, NoDebugFiles)
}

pub(crate) fn parse_with(bytes: Vec<u8>, files: impl DebugFiles + Send + Sync + 'static) -> Module {
    let bytes: Bytes = Arc::new(bytes);
    Module::parse(bytes, Box::new(files)).unwrap()
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fixtures")
        .join(name)
}

/// The line of a fixture that carries a mark.
pub(crate) fn line_of(name: &str, mark: &str) -> u32 {
    let source = std::fs::read_to_string(fixture(name)).unwrap();
    let position = source.lines().position(|line| line.ends_with(mark));
    position.unwrap_or_else(|| panic!("no {mark} in {name}")) as u32 + 1
}

/// Compiles a fixture, if the compiler is there.
pub(crate) fn build(compiler: &str, name: &str, flags: &[&str]) -> Option<Built> {
    let built = empty(compiler, name, flags)?;
    let source = fixture(name);
    let mut arguments = flags.to_vec();
    arguments.extend([source.to_str().unwrap(), "-o", "program"]);
    built.run(compiler, &arguments);
    Some(built)
}

/// Compiles several fixtures, each with flags of its own, and links them.
pub(crate) fn build_parts(compiler: &str, parts: &[(&str, &[&str])]) -> Option<Built> {
    let built = empty(compiler, parts[0].0, &[])?;
    let mut objects = Vec::new();
    for (name, flags) in parts {
        let (source, object) = (fixture(name), format!("{name}.o"));
        let mut arguments = flags.to_vec();
        arguments.extend(["-c", source.to_str().unwrap(), "-o", &object]);
        built.run(compiler, &arguments);
        objects.push(object);
    }
    let mut arguments: Vec<&str> = objects.iter().map(String::as_str).collect();
    arguments.extend(["-o", "program"]);
    built.run(compiler, &arguments);
    Some(built)
}

/// Assembles and links a program given as text.
pub(crate) fn assemble(source: &str) -> Built {
    assemble_with(source, &[])
}

/// As [`assemble`], with more flags.
pub(crate) fn assemble_with(source: &str, flags: &[&str]) -> Built {
    let built = empty("cc", "assembly", &[]).unwrap();
    std::fs::write(built.directory.path().join("program.s"), source).unwrap();
    let mut arguments = flags.to_vec();
    arguments.extend(["-nostdlib", "-no-pie", "program.s", "-o", "program"]);
    built.run("cc", &arguments);
    built
}

fn empty(compiler: &str, name: &str, flags: &[&str]) -> Option<Built> {
    if !is_present(compiler) {
        assert_ne!(compiler, "cc", "the tests need a C compiler");
        skipped_core(format_args!(
            "{compiler} is not installed; {name} with {flags:?} was not tested"
        ));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    Some(Built { directory, path })
}

fn is_present(compiler: &str) -> bool {
    Command::new(compiler)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Every combination of compiler, optimisation and DWARF version.
pub(crate) fn build_all(compilers: &[&str], name: &str, more: &[&str]) -> Vec<(String, Built)> {
    let mut built = Vec::new();
    for compiler in compilers {
        for optimisation in ["-O0", "-O2"] {
            for version in ["-gdwarf-4", "-gdwarf-5"] {
                let mut flags = vec!["-g", optimisation, version];
                flags.extend(more);
                let label = format!("{compiler} {}", flags.join(" "));
                built.extend(build(compiler, name, &flags).map(|built| (label, built)));
            }
        }
    }
    built
}
