//! What rustc compiles and its linker optimises.

use std::{env, fs, process::Command};

use cohtrace_tests::tool;

use super::bench::{Bench, hint, position, rust_plugin};

const MAIN: &str = "\
mod slots;
mod other { pub mod slots; }
use slots::Slot;
#[inline(never)]
fn turn(slots: &mut [Slot], by: u64) -> u64 {
    slots.iter_mut().map(|slot| slot.bump(by)).sum()
}
fn main() {
    let by = std::env::args().count() as u64;
    let mut slots = vec![Slot::default(); 9];
    let mut others = vec![other::slots::Slot::default(); 9];
    let sum = turn(&mut slots, by) + turn(&mut slots, by);
    println!(\"{sum} {}\", others.iter_mut().map(|slot| slot.bump(by)).sum::<u64>());
}
";
/// Of both modules.
const SLOTS: &str = "\
#[derive(Clone, Default)]
pub struct Slot {
    pub seen: u64,
    pub count: u64,
}
impl Slot {
    #[inline(never)]
    pub fn bump(&mut self, by: u64) -> u64 {
        let before = self.count;
        if before < 3 {
            self.count = before + by;
        }
        before * 2 + self.seen
    }
}
";
const MANIFEST: &str = "\
[package]
name = \"slots\"
version = \"0.1.0\"
edition = \"2021\"
[workspace]
[profile.release]
debug = true
codegen-units = 1
";

fn bench() -> Option<Bench> {
    let files = [
        ("Cargo.toml", MANIFEST),
        ("src/main.rs", MAIN),
        ("src/slots.rs", SLOTS),
        ("src/other/slots.rs", SLOTS),
    ];
    Some(Bench::new(rust_plugin()?, &files))
}

/// Builds as docs/hints.md says, in a directory of its own for what is built; gives the program's path here.
fn cargo(bench: &Bench, name: &str, with_plugin: bool) -> String {
    let plugin = bench.plugin().display();
    let flags = if with_plugin {
        format!("-Clinker-plugin-lto -Clink-arg=-Wl,--load-pass-plugin={plugin}")
    } else {
        "-Clinker-plugin-lto".to_owned()
    };
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--release", "--offline", "--target-dir", name])
        .env("RUSTFLAGS", flags)
        .env("COHTRACE_HINTS", bench.at("hints.json"))
        .env("COHTRACE_HINTS_LOG", bench.at(&format!("{name}.log")));
    // Of the build that these tests are of.
    for variable in [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET",
    ] {
        command.env_remove(variable);
    }
    bench.built(&mut command);
    format!("{name}/release/slots")
}

#[test]
fn cargo_builds_with_hints_on_stable_and_without_the_plugin_none_is_there() {
    let Some(bench) = bench() else { return };
    let (line, column) = position(SLOTS, "self.count;");
    bench.hints(&[hint(
        "H1",
        bench.load("src/slots.rs", line, column, "8(%rdi)"),
    )]);
    let hinted = cargo(&bench, "hinted", true);
    let plain = cargo(&bench, "plain", false);
    assert_eq!(bench.result(&plain), bench.result(&hinted));
    let found = bench.prefetches(&hinted);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].is_of_next() && found[0].operand.starts_with("0x8(%"),
        "{found:?}"
    );
    let (code, said) = bench.verify(&hinted);
    assert!(code == 0 && said.contains("1 of 1 loads"), "{said}");
    let (code, said) = bench.verify(&plain);
    assert!(code == 1 && said.contains("0 of 1 loads"), "{said}");
    // The linker's output is rustc's, which keeps it for itself: the log says what was placed.
    let mut summary = tool::cohtrace(["as", "--hints", "hints.json", "--summary", "hinted.log"]);
    let said = bench.run(&mut summary);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.contains("slots.rs") && said.contains("1 prefetch in 1 unit"),
        "{said}"
    );
}

#[test]
fn another_line_and_another_module_of_the_same_file_name_get_nothing() {
    let Some(bench) = bench() else { return };
    let (line, column) = position(SLOTS, "self.count;");
    bench.hints(&[hint(
        "H1",
        bench.load("src/slots.rs", line + 1, column, "8(%rdi)"),
    )]);
    let hinted = cargo(&bench, "hinted", true);
    assert!(bench.prefetches(&hinted).is_empty());
    // The twin: the other module alone.
    bench.hints(&[hint(
        "H1",
        bench.load("src/other/slots.rs", line, column, "8(%rdi)"),
    )]);
    bench.write("src/main.rs", &format!("{MAIN}\n"));
    let hinted = cargo(&bench, "hinted", true);
    let found = bench.prefetches(&hinted);
    assert_eq!(found.len(), 1, "{found:?}");
    let (code, said) = bench.verify(&hinted);
    assert!(code == 0 && said.contains("src/other/slots.rs"), "{said}");
}

#[test]
fn hints_that_cannot_be_read_leave_the_program_as_it_is() {
    let Some(bench) = bench() else { return };
    bench.write("hints.json", "nonsense");
    let hinted = cargo(&bench, "hinted", true);
    assert!(bench.prefetches(&hinted).is_empty());
    let log = fs::read_to_string(bench.at("hinted.log")).expect("it was written");
    assert!(log.contains("not a hints file"), "{log}");
}
