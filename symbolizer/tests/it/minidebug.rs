//! Function symbols that a stripped file keeps, compressed, in `.gnu_debugdata`.

use cohtrace_skips::skipped_core;
use std::process::Command;

use symbolizer::{Bounds, Missing};

use crate::{
    shelf::Shelf,
    toolchain::{Built, build, parse, parse_with},
};

/// `with` and `without` the symbols, as Fedora's find-debuginfo makes them; none, loudly, where there is no xz.
fn stripped(more: &[&str]) -> Option<Built> {
    let mut flags = vec!["-g", "-O2"];
    flags.extend(more);
    let built = build("cc", "data.c", &flags).unwrap();
    if Command::new("xz").arg("--version").output().is_err() {
        skipped_core("xz is not installed; .gnu_debugdata was not tested");
        return None;
    }
    built.run("objcopy", &["--only-keep-debug", "program", "mini"]);
    built.run(
        "objcopy",
        &[
            "-S",
            "--remove-section=.comment",
            "--keep-symbol=worker",
            "--keep-symbol=count",
            "mini",
            "mini",
        ],
    );
    built.run("objcopy", &["--strip-all", "program", "without"]);
    built.run("xz", &["-k", "mini"]);
    built.run(
        "objcopy",
        &["--add-section=.gnu_debugdata=mini.xz", "without", "with"],
    );
    Some(built)
}

#[test]
fn functions_of_a_stripped_file_are_named_by_its_small_symbol_table() {
    let Some(built) = stripped(&[]) else { return };
    let module = parse(built.read("with"));
    let whole = built.module();
    for name in ["worker", "count"] {
        let (start, size) = built.symbol(name);
        for address in start..start + size {
            let (found, expected) = (module.frames(address), whole.frames(address));
            assert_eq!(found.symbol, expected.symbol);
            assert_eq!(found.offset_in_symbol, expected.offset_in_symbol);
            assert_eq!(found.missing, Some(Missing::NoDebugInfo));
            assert_eq!(module.function(address), whole.function(address));
        }
    }
    // Twin: without the section there are bounds, and no name.
    let module = parse(built.read("without"));
    let (start, _) = built.symbol("worker");
    assert_eq!(module.frames(start).symbol, Err(Missing::NoSymbols));
    assert_eq!(module.function(start).unwrap().bounds, Bounds::UnwindEntry);
}

#[test]
fn a_debug_file_knows_more_and_comes_first() {
    let Some(built) = stripped(&["-Wl,--build-id=none"]) else {
        return;
    };
    built.run(
        "objcopy",
        &["--only-keep-debug", "program", "program.debug"],
    );
    built.run("objcopy", &["--add-gnu-debuglink=program.debug", "with"]);
    let module = parse_with(built.read("with"), Shelf::new(built.directory.path()));
    let (start, _) = built.symbol("main");
    // Not in the small table.
    assert_eq!(module.frames(start).symbol.as_deref(), Ok("main"));
}

#[test]
fn a_damaged_small_table_is_as_none() {
    let Some(built) = stripped(&[]) else { return };
    let (good, whole) = (built.read("mini.xz"), built.read("with"));
    let (start, _) = built.symbol("worker");
    let at = whole
        .windows(good.len())
        .position(|part| part == good)
        .unwrap();
    for cut in 0..good.len() {
        let mut bytes = whole.clone();
        bytes[at + cut] ^= 0x41;
        let symbol = parse(bytes).frames(start).symbol;
        // The checks of the format find every change, but for one in the name of the check itself.
        assert!(
            symbol.is_err() || symbol.as_deref() == Ok("worker"),
            "{cut}"
        );
        let mut bytes = whole.clone();
        bytes[at + cut..at + good.len()].fill(0);
        let symbol = parse(bytes).frames(start).symbol;
        assert!(
            symbol.is_err() || symbol.as_deref() == Ok("worker"),
            "{cut}"
        );
    }
}

#[test]
fn a_small_table_that_inflates_without_end_is_refused() {
    let Some(built) = stripped(&[]) else { return };
    // A good file with a long tail of nothing: 64 MB from some kilobytes.
    let mut bomb = built.read("mini");
    bomb.resize(64 << 20, 0);
    std::fs::write(built.directory.path().join("bomb"), bomb).unwrap();
    built.run("xz", &["-k", "bomb"]);
    built.run(
        "objcopy",
        &["--add-section=.gnu_debugdata=bomb.xz", "without", "bombed"],
    );
    let (start, _) = built.symbol("worker");
    let symbol = parse(built.read("bombed")).frames(start).symbol;
    assert_eq!(symbol, Err(Missing::NoSymbols));
}
