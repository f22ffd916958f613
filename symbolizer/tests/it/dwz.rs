//! Debug info that dwz compressed: units that import others, and a file that two programs share.

use cohtrace_skips::{skipped, skipped_core};
use std::process::Command;

use symbolizer::{Missing, Module};

use crate::{
    account::{account, assert_same},
    shelf::Shelf,
    toolchain::{Built, build, parse_with},
};

fn dwz(built: &Built, arguments: &[&str]) -> bool {
    let output = Command::new("timeout")
        .args(["10", "dwz"])
        .args(arguments)
        .current_dir(&built.directory)
        .output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            skipped(format_args!("dwz {arguments:?} fails here: {said}"));
            false
        }
        Err(_) => {
            skipped_core("dwz is not installed; what it makes was not tested");
            false
        }
    }
}

/// Programs of two units: what dwz can share within one.
pub(crate) fn programs() -> Vec<(String, Built)> {
    let mut programs = Vec::new();
    for (compiler, name) in [("cc", "data.c"), ("c++", "data.cpp")] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let flags = ["-g", "-O2", version];
            let second = crate::toolchain::fixture(name);
            let second = second.to_str().unwrap();
            // The same source again, under other names of its functions and variables.
            let renamed = [
                "main",
                "worker",
                "count",
                "everything",
                "global_stats",
                "array",
                "matrix",
                "packed_pair",
                "table",
                "aligned",
                "point",
                "color",
                "atomic_counter",
                "thread_counter",
                "text",
                "functions",
                "vector_pointer",
                "unique",
                "reference",
                "derived",
                "anywhere",
                "stats",
                "slots",
            ];
            let built = build(compiler, name, &flags).unwrap();
            let mut again: Vec<String> = flags.iter().map(ToString::to_string).collect();
            let object_names = renamed.iter().map(|name| format!("-D{name}=second_{name}"));
            if compiler == "cc" {
                again.extend(object_names.filter(|define| !define.starts_with("-Dstats")));
            } else {
                again.push("-Dns=second_ns".into());
                let names = [
                    "main",
                    "vector_pointer",
                    "unique",
                    "reference",
                    "derived",
                    "anywhere",
                ];
                again.extend(names.map(|name| format!("-D{name}=second_{name}")));
            }
            again.extend(["-c", second, "-o", "second.o"].map(String::from));
            let again: Vec<&str> = again.iter().map(String::as_str).collect();
            built.run(compiler, &again);
            let mut link = flags.to_vec();
            link.extend(["-c", second, "-o", "first.o"]);
            built.run(compiler, &link);
            built.run(compiler, &["first.o", "second.o", "-o", "program"]);
            programs.push((format!("{compiler} {version}"), built));
        }
    }
    programs
}

#[test]
fn a_program_whose_units_import_others_is_read_as_before() {
    for (label, built) in programs() {
        let expected = account(&built.module(), &built);
        if !dwz(&built, &["program", "-o", "shrunk"]) {
            return;
        }
        let module = crate::toolchain::parse(built.read("shrunk"));
        assert_same(&label, &expected, &account(&module, &built));
    }
}

/// Two copies of a program that share a file; whether dwz made one.
pub(crate) fn share(built: &Built, more: &[&str]) -> bool {
    for copy in ["one", "two"] {
        std::fs::copy(&built.path, built.directory.path().join(copy)).unwrap();
    }
    let mut arguments = more.to_vec();
    arguments.extend(["-m", "shared", "-M", "shared", "one", "two"]);
    if !dwz(built, &arguments) {
        return false;
    }
    let shared = built.directory.path().join("shared").exists();
    if !shared {
        skipped(format_args!("dwz {arguments:?} found nothing to share"));
    }
    shared
}

#[test]
fn a_file_that_programs_share_is_read_with_each_of_them() {
    for (label, built) in programs() {
        let expected = account(&built.module(), &built);
        for more in [&[][..], &["--dwarf-5"]] {
            if !share(&built, more) {
                continue;
            }
            let label = format!("{label} {more:?}");
            let files = Shelf::new(built.directory.path());
            let module = parse_with(built.read("one"), files.clone());
            assert_same(&label, &expected, &account(&module, &built));
            assert!(
                files.asked().contains(&"AltFile shared".to_owned()),
                "{label}"
            );
        }
    }
}

fn reason(module: &Module, built: &Built) -> Option<Missing> {
    let object = module.object(built.symbol("everything").0).unwrap();
    object.missing
}

#[test]
fn a_shared_file_that_is_gone_or_of_another_build_is_said_to_be_so() {
    let (_, built) = programs().swap_remove(0);
    if !share(&built, &[]) {
        return;
    }
    let one = || built.read("one");
    let files = || Shelf::new(built.directory.path());
    assert_eq!(reason(&parse_with(one(), files()), &built), None);
    let module = crate::toolchain::parse(one());
    assert_eq!(reason(&module, &built), Some(Missing::AltFileNotFound));
    let other = files().with("shared", built.bytes());
    assert_eq!(
        reason(&parse_with(one(), other), &built),
        Some(Missing::AltFileMismatch)
    );
    let broken = files().with("shared", b"no file of any kind".to_vec());
    assert_eq!(
        reason(&parse_with(one(), broken), &built),
        Some(Missing::Malformed)
    );
    // Code and lines need no shared types.
    let code = module.frames(built.symbol("worker").0);
    assert!(code.frames[0].line.is_some(), "{code:?}");
}
