//! Compiles the QEMU plugin, which the tool embeds, from the sources of its crate: with `rustc` alone, since it has no
//! dependencies. So one `cargo build` with a stable compiler builds everything.

use std::{env, fs, path::PathBuf, process::Command};

const SOURCES: &str = "../qemu-plugin/src";

fn main() {
    println!("cargo::rerun-if-changed={SOURCES}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let plugin = out.join("qemu_plugin.so");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if !(target.starts_with("x86_64") && target.contains("linux")) {
        // The tool says that this build has none.
        fs::write(plugin, []).expect("OUT_DIR is writable");
        return;
    }
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let mut command = Command::new(rustc);
    command
        .args([
            "--crate-type",
            "cdylib",
            "--crate-name",
            "cohtrace_qemu_plugin",
        ])
        .args([
            "--edition",
            "2024",
            "-C",
            "panic=abort",
            "-C",
            "opt-level=3",
        ])
        .args(["-C", "strip=symbols", "--target", &target])
        .arg(format!("{SOURCES}/lib.rs"))
        .arg("-o")
        .arg(&plugin);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("linker=");
        option.push(linker);
        command.arg("-C").arg(option);
    }
    let status = command.status().expect("RUSTC runs");
    assert!(status.success(), "the QEMU plugin does not compile");
}
