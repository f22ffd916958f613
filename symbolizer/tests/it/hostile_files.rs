//! Damage in the files that a program's debug info is spread over: `.dwo` files, packages, shared files.

use crate::{
    dwz, hostile,
    hostile::{Numbers, addresses, must_answer_with},
    shelf::Shelf,
    split::{dwo_name, pack},
    toolchain::{Built, build},
};

/// Damages one of the files in several ways, and asks everything each time.
fn damage(label: &str, built: &Built, program: &str, files: &Shelf, name: &str) {
    let mut numbers = Numbers(0xf11e5);
    let (bytes, good) = (built.read(program), built.read(name));
    let addresses = addresses(built);
    let untouched = must_answer_with("untouched", bytes.clone(), files.clone(), &addresses);
    assert!(untouched > 500, "{label} must answer: {untouched}");
    for round in 0..200 {
        let mut damaged = good.clone();
        match round % 4 {
            0 => damaged.truncate(good.len() * round / 200),
            1 => {
                // Pieces of valid structure in the wrong place.
                let length = numbers.below(64).min(good.len());
                let (from, to) = (
                    numbers.below(good.len() - length),
                    numbers.below(good.len() - length),
                );
                damaged.copy_within(from..from + length, to);
            }
            _ => {
                for _ in 0..=round % 3 {
                    let at = numbers.below(good.len());
                    damaged[at] = [0, 0xff, damaged[at] ^ 1, 0x7f][numbers.below(4)];
                }
            }
        }
        let files = files.clone().with(name, damaged);
        let label = format!("{label}, {name}, round {round}");
        must_answer_with(&label, bytes.clone(), files, &addresses);
    }
}

#[test]
fn damaged_dwo_files_and_packages_neither_panic_nor_hang() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        for (compiler, name, more) in [
            ("cc", "data.c", "-Wall"),
            ("c++", "data.cpp", "-fdebug-types-section"),
            ("clang", "data.c", "-Wall"),
        ] {
            let flags = ["-g", "-O2", version, "-gsplit-dwarf", more];
            let Some(built) = build(compiler, name, &flags) else {
                continue;
            };
            let files = Shelf::new(built.directory.path());
            let label = format!("{compiler} {version}");
            damage(&label, &built, "program", &files, &dwo_name(&built));
            let packer = ["dwp", "llvm-dwp-22"]
                .into_iter()
                .find(|packer| pack(&built, packer, &label));
            if packer.is_some() {
                let files = Shelf::new(built.directory.path())
                    .with_package("packed")
                    .with(&dwo_name(&built), Vec::new());
                damage(&label, &built, "program", &files, "packed");
            }
        }
    }
}

#[test]
fn damaged_shared_files_neither_panic_nor_hang() {
    for (label, built) in dwz::programs() {
        if dwz::share(&built, &[]) {
            let files = Shelf::new(built.directory.path());
            damage(&label, &built, "one", &files, "shared");
        }
    }
}

#[test]
fn a_program_damaged_where_it_names_its_files_neither_panics_nor_hangs() {
    let built = build("cc", "data.c", &["-g", "-O2", "-gsplit-dwarf"]).unwrap();
    let good = built.bytes();
    let files = Shelf::new(built.directory.path());
    let addresses = addresses(&built);
    for name in [".debug_info", ".debug_abbrev", ".debug_addr", ".debug_str"] {
        let range = hostile::section(&good, name);
        for at in range.take(160) {
            let mut damaged = good.clone();
            damaged[at] ^= 0x81;
            must_answer_with(
                &format!("{name} {at:#x}"),
                damaged,
                files.clone(),
                &addresses,
            );
        }
    }
}
