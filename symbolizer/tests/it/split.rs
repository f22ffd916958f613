//! Debug info in `.dwo` files and in packages of them.

use cohtrace_skips::skipped;
use std::{path::Path, process::Command};

use symbolizer::{Missing, Module};

use crate::{
    account::{account, assert_same},
    shelf::Shelf,
    toolchain::{Built, build, build_parts, parse_with},
};

fn shelf(built: &Built) -> Shelf {
    Shelf::new(built.directory.path())
}

/// Each fixture by each compiler: with its debug info split off, and whole.
fn pairs() -> Vec<(String, Built, Built)> {
    let mut pairs = Vec::new();
    for (compiler, name) in [
        ("cc", "data.c"),
        ("clang", "data.c"),
        ("c++", "data.cpp"),
        ("clang++", "data.cpp"),
    ] {
        for optimisation in ["-O0", "-O2"] {
            for version in ["-gdwarf-4", "-gdwarf-5"] {
                for types in [&[][..], &["-fdebug-types-section"]] {
                    if name == "data.c" && !types.is_empty() {
                        continue;
                    }
                    let mut flags = vec!["-g", optimisation, version, "-std=c++17"];
                    if name == "data.c" {
                        flags.pop();
                    }
                    flags.extend(types);
                    let whole = build(compiler, name, &flags);
                    flags.push("-gsplit-dwarf");
                    let split = build(compiler, name, &flags);
                    let label = format!("{compiler} {}", flags.join(" "));
                    if let (Some(split), Some(whole)) = (split, whole) {
                        pairs.push((label, split, whole));
                    }
                }
            }
        }
    }
    pairs
}

/// Runs a packer; false, loudly, if it is not there or fails (binutils 2.40's crashes or hangs on DWARF 5).
pub(crate) fn pack(built: &Built, packer: &str, label: &str) -> bool {
    let output = Command::new("timeout")
        .args(["3", packer, "-e", "program", "-o", "packed"])
        .current_dir(&built.directory)
        .output();
    let packed = output.is_ok_and(|output| output.status.success());
    if !packed {
        skipped(format_args!(
            "{packer} is not installed or fails; {label} was not tested with it"
        ));
    }
    packed
}

#[test]
fn a_program_with_dwo_files_is_read_as_one_without() {
    for (label, split, whole) in pairs() {
        let expected = account(&whole.module(), &whole);
        assert!(expected.contains("by name: Ok"), "{label}: {expected}");
        let module = parse_with(split.bytes(), shelf(&split));
        assert_same(&label, &expected, &account(&module, &split));
        // Twin: the same program without its files says other things.
        assert_ne!(expected, account(&split.module(), &split), "{label}");
    }
}

#[test]
fn a_program_with_a_package_is_read_as_one_without() {
    let mut packers: Vec<&str> = vec!["dwp", "llvm-dwp-22", "llvm-dwp"];
    let mut tested = 0;
    for (label, split, whole) in pairs() {
        let expected = account(&whole.module(), &whole);
        packers.retain(|packer| Command::new(packer).arg("--version").output().is_ok());
        for packer in &packers {
            if !pack(&split, packer, &label) {
                continue;
            }
            tested += 1;
            let label = format!("{packer}: {label}");
            let files = shelf(&split).with_package("packed");
            let module = parse_with(split.bytes(), files.clone());
            assert_same(&label, &expected, &account(&module, &split));
            assert_eq!(files.asked(), ["Dwp packed"], "{label}");
        }
    }
    eprintln!("{tested} packages read");
}

/// Two units in one program.
fn two_units(flags: &[&str]) -> Built {
    build_parts("cc", &[("names_a.c", flags), ("names_b.c", flags)]).unwrap()
}

#[test]
fn one_address_loads_one_file() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let built = two_units(&["-g", "-O2", version, "-gsplit-dwarf"]);
        let files = shelf(&built);
        let module = parse_with(built.bytes(), files.clone());
        let (start, _) = built.symbol("names_b");
        let code = module.frames(start);
        assert_eq!(code.missing, None);
        assert_eq!(code.frames[0].function.as_deref(), Some("names_b"));
        assert_eq!(
            files.asked(),
            ["Dwp no package", "Dwo names_b.c.dwo"],
            "{version}"
        );
        module.frames(start + 1);
        assert_eq!(files.asked().len(), 2, "remembered");
        // A variable may be in any of them.
        let (address, _) = built.symbol("calls");
        module.object(address).unwrap();
        assert_eq!(files.asked().len(), 3);
    }
}

#[test]
fn a_file_of_another_compilation_is_refused() {
    for (compiler, version) in [
        ("cc", "-gdwarf-4"),
        ("cc", "-gdwarf-5"),
        ("clang", "-gdwarf-4"),
        ("clang", "-gdwarf-5"),
    ] {
        let flags = |optimisation| ["-g", optimisation, version, "-gsplit-dwarf"];
        let Some(built) = build(compiler, "data.c", &flags("-O2")) else {
            continue;
        };
        let other = build(compiler, "data.c", &flags("-O0")).unwrap();
        let name = dwo_name(&built);
        let module = parse_with(
            built.bytes(),
            shelf(&built).with(&name, other.read(&dwo_name(&other))),
        );
        says(&module, &built, Missing::DwoMismatch);
        // The file's place in the package does not help when it is of another program.
        if pack(&other, "llvm-dwp-22", version) {
            let files = shelf(&other).with("packed", other.read("packed"));
            let module = parse_with(built.bytes(), files.with_package("packed"));
            says(&module, &built, Missing::DwoMismatch);
        }
    }
}

/// Code has its lines, variables their symbols, and both the reason why there is no more.
fn says(module: &Module, built: &Built, reason: Missing) {
    let (start, _) = built.symbol("worker");
    let code = module.frames(start);
    assert_eq!(code.missing, Some(reason), "{code:?}");
    assert!(code.frames[0].line.is_some() && code.frames[0].function.is_none());
    assert_eq!(code.symbol.as_deref(), Ok("worker"));
    let object = module.object(built.symbol("everything").0).unwrap();
    assert_eq!((object.missing, object.ty), (Some(reason), None));
}

pub(crate) fn dwo_name(built: &Built) -> String {
    let files = std::fs::read_dir(&built.directory).unwrap();
    let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let is_dwo = |name: &String| Path::new(name).extension().is_some_and(|end| end == "dwo");
    names.find(is_dwo).unwrap()
}

#[test]
fn a_file_that_is_gone_is_said_to_be_so_and_a_broken_one_to_be_broken() {
    let built = build("cc", "data.c", &["-g", "-O2", "-gsplit-dwarf"]).unwrap();
    let name = dwo_name(&built);
    says(&built.module(), &built, Missing::DwoNotFound);
    assert!(Missing::DwoNotFound.to_string().contains(".dwp"));
    let files = shelf(&built).with(&name, b"not a file of any kind".to_vec());
    says(
        &parse_with(built.bytes(), files),
        &built,
        Missing::Malformed,
    );
    let files = shelf(&built).with(&name, Vec::new());
    says(
        &parse_with(built.bytes(), files),
        &built,
        Missing::Malformed,
    );
    // A file with no units at all.
    let files = shelf(&built).with(&name, built.bytes());
    says(
        &parse_with(built.bytes(), files),
        &built,
        Missing::Malformed,
    );
    // A package that is broken leaves the file itself.
    let files = shelf(&built).with("packed", b"not a package".to_vec());
    let module = parse_with(built.bytes(), files.with_package("packed"));
    assert_eq!(module.frames(built.symbol("worker").0).missing, None);
}
