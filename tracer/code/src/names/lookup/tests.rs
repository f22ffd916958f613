//! Names looked up in a running program whose own words say where its variables are.

use std::{fs, path::PathBuf};

use super::*;
use crate::sys::running::{Running, compile};

const PROGRAM: &str = r#"
#include <stdio.h>

struct slot { long pending; int served; };
static struct { long hits; struct slot slots[3]; } counters = {1};
long zero_initialised[1000];
_Thread_local long mine = 1;
extern long library_total;
extern long interposed;
long interposed = 5;
void count(void);

int main(void) {
    count();
    counters.hits += mine + library_total;
    printf("counters %p\n", (void *)&counters);
    printf("served %p\n", (void *)&counters.slots[2].served);
    printf("zero %p\n", (void *)&zero_initialised[999]);
    printf("library_total %p\n", (void *)&library_total);
    printf("interposed %p\n", (void *)&interposed);
    printf("end\n");
    fflush(stdout);
    return getchar();
}
"#;

const LIBRARY: &str = r#"
#include <stdio.h>

long library_total = 2;
long interposed = 6;
static struct { int a, calls; } in_library = {1};

void count(void) {
    library_total += ++in_library.calls + interposed;
    printf("calls %p\n", (void *)&in_library.calls);
}
"#;

/// Builds the program and its library, and runs it up to its last word.
fn run(flags: &[&str]) -> Running {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    fs::write(at.join("program.c"), PROGRAM).expect("room");
    fs::write(at.join("library.c"), LIBRARY).expect("room");
    let shared = ["-shared", "-fPIC", "library.c", "-o", "libcount.so"];
    compile(at, &[flags, &shared].concat());
    let program = [
        "program.c",
        "-o",
        "program",
        "-L.",
        "-lcount",
        "-Wl,-rpath,$ORIGIN",
    ];
    compile(at, &[flags, &program].concat());
    Running::start(directory)
}

fn find(running: &Running, text: &str) -> Result<Located, LookupError> {
    let modules = ModuleStore::new(PathBuf::from("/"), true);
    find_variable(&running.spaces(), &modules, running.pid(), text)
}

fn refused(running: &Running, text: &str) -> String {
    find(running, text).expect_err(text).to_string()
}

#[test]
fn a_name_leads_to_the_address_that_the_program_itself_says() {
    for flags in [
        &["-g", "-pie", "-fPIE"][..],
        &["-g", "-no-pie"],
        &["-g", "-O2"],
    ] {
        let running = run(flags);
        let check = |text: &str, name: &str, says: &str, len: u64, module: &str| {
            let found = find(&running, text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.addr, running.says[says], "{flags:?}: {found:?}");
            assert_eq!((found.name.as_str(), found.len), (name, len), "{flags:?}");
            assert!(found.module.ends_with(module), "{flags:?}: {found:?}");
        };
        check("counters", "counters", "counters", 56, "/program");
        let served = "counters.slots[2].served";
        check(served, served, "served", 4, "/program");
        let last = "zero_initialised[999]";
        check(last, last, "zero", 8, "/program");
        let calls = "in_library.calls";
        check(calls, calls, "calls", 4, "/libcount.so");
        // The program's own comes before the library's of the same name, as it does for the dynamic linker.
        check("interposed", "interposed", "interposed", 8, "/program");
        // Where the program refers to it directly, the linker gives it room in the program.
        let total = find(&running, "library_total").expect("it is there");
        assert_eq!(
            total.addr, running.says["library_total"],
            "{flags:?}: {total:?}"
        );
    }
}

#[test]
fn a_name_that_leads_nowhere_is_answered_with_the_names_there_are() {
    let running = run(&["-g"]);
    let why = refused(&running, "counter.hits");
    assert!(
        why.starts_with("no global or static variable is called `counter.hits` in the "),
        "{why}"
    );
    assert!(why.contains("there is `counters`"), "{why}");
    let why = refused(&running, "in_librarx");
    assert!(why.contains("there is `in_library`"), "{why}");
    let why = refused(&running, "nothing_at_all_like_it");
    assert!(!why.contains("there is"), "{why}");
    let why = refused(&running, "counters.miss");
    assert!(
        why.contains("has no field `miss`; it has: hits, slots (in /"),
        "{why}"
    );
    let why = refused(&running, "mine");
    assert!(why.contains("thread-local"), "{why}");
    let why = refused(&running, "a->b");
    assert!(why.contains("give its address"), "{why}");
}

#[test]
fn a_stripped_program_is_said_to_be_why_its_variables_are_unknown() {
    let running = run(&["-s"]);
    let why = refused(&running, "counters");
    assert!(
        why.contains("/program: no symbols: the file is stripped"),
        "{why}"
    );
    // What it shares with its library is still exported.
    assert_eq!(
        find(&running, "interposed").expect("exported").addr,
        running.says["interposed"]
    );
}

#[test]
fn a_process_that_is_not_known_and_a_file_that_is_gone_are_said_to_be_so() {
    let running = run(&["-g"]);
    let modules = ModuleStore::new(PathBuf::from("/"), true);
    let nobody = find_variable(&running.spaces(), &modules, Pid(u32::MAX), "counters");
    assert_eq!(nobody, Err(LookupError::NoModules { pid: Pid(u32::MAX) }));
    // Below another root there is no such process, and the path leads nowhere.
    let elsewhere = ModuleStore::new(running.directory.path().join("none"), true);
    let why = find_variable(&running.spaces(), &elsewhere, running.pid(), "counters")
        .expect_err("nothing can be read")
        .to_string();
    assert!(why.contains("in any file that could be read"), "{why}");
    assert!(why.contains("/program: the file is gone"), "{why}");
}
