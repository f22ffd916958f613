//! Compiles the program that is asked to do events, which the tool carries: with `rustc` alone, since all of it is
//! assembler. So no compiler is needed where the tool runs.

use std::{env, ffi::OsString, fs, path::PathBuf, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=asked");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = out.join("asked");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if !(target.starts_with("x86_64") && target.contains("linux")) {
        // The tool says that this build has none.
        fs::write(program, []).expect("OUT_DIR is writable");
        return;
    }
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let mut command = Command::new(rustc);
    command
        .args(["--crate-type", "bin", "--crate-name", "asked"])
        .args(["--edition", "2024", "--target", &target])
        .args(["-C", "panic=abort", "-C", "opt-level=3"])
        // Its addresses are those of its file.
        .args(["-C", "relocation-model=static"])
        .args(["-C", "target-feature=+crt-static"])
        .args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-static"])
        .args(["-C", "link-arg=-no-pie"])
        .arg("asked/asked.rs")
        .arg("-o")
        .arg(&program);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        command.arg("-C").arg(option);
    }
    let status = command.status().expect("RUSTC runs");
    assert!(
        status.success(),
        "the program that is asked to do events does not compile"
    );
}
