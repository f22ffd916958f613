//! Blocks of code of one line, told apart by their discriminators.

use cohtrace_skips::skipped_core;
use std::process::Command;

use crate::toolchain::build;

/// What binutils' addr2line says of an address: nothing, or `(discriminator 2)`.
fn by_binutils(directory: &std::path::Path, address: u64) -> Result<Option<u32>, ()> {
    let output = Command::new("addr2line")
        .args(["-e", "program", &format!("{address:#x}")])
        .current_dir(directory)
        .output();
    let Ok(output) = output else {
        skipped_core("addr2line is not installed; discriminators were not compared");
        return Err(());
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let number = text.split("(discriminator ").nth(1);
    Ok(number.map(|rest| rest.split(')').next().unwrap().parse().unwrap()))
}

#[test]
fn the_innermost_frame_has_the_discriminator_that_binutils_finds() {
    for (compiler, more) in [("cc", "-Wall"), ("clang", "-fdebug-info-for-profiling")] {
        let Some(built) = build(compiler, "data.c", &["-g", "-O2", more]) else {
            continue;
        };
        let module = built.module();
        let mut found = 0;
        for name in ["worker", "count", "main"] {
            let (start, size) = built.symbol(name);
            for address in start..start + size {
                let Ok(expected) = by_binutils(built.directory.path(), address) else {
                    return;
                };
                let frame = &module.frames(address).frames[0];
                // Code of no line: addr2line shows the line before it, and its discriminator.
                if frame.line.is_some() {
                    assert_eq!(frame.discriminator, expected, "{compiler} {address:#x}");
                }
                found += usize::from(frame.discriminator.is_some());
            }
        }
        // gcc 12 tells nothing apart in this program; clang does in the loop of `worker`.
        assert!(found > 0 || compiler == "cc", "{compiler}");
    }
}
