//! Statistics of an emulated program whose every count is known.

use cohtrace_tests::{
    emulated::{build, record},
    live::has_emulator,
};
use serde_json::Value;

use super::stats;

/// As QuickStep's first program: each of four threads loads and stores a line of its own so many times.
const OWN_LINES: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static _Alignas(64) long own[4][8];
static void *work(void *line, long rounds) {
    __asm__ volatile("1: mov (%0),%%rax; mov %%rax,(%0); dec %1; jnz 1b"
                     : "+r"(line), "+r"(rounds) : : "rax", "memory");
    return NULL;
}
static long rounds;
static void *start(void *n) { return work(own[(long)n], rounds); }
int main(int argc, char **argv) {
    rounds = argc > 1 ? atol(argv[1]) : 1;
    pthread_t threads[4];
    for (long n = 0; n < 4; n++)
        pthread_create(&threads[n], NULL, start, (void *)n);
    for (long n = 0; n < 4; n++)
        pthread_join(threads[n], NULL);
    return 0;
}
"#;

#[test]
fn each_thread_of_an_emulated_program_executed_what_it_was_asked_to() {
    if !has_emulator() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = build(directory.path(), "own_lines", OWN_LINES, &[]);
    let program = program.to_str().expect("a plain path");
    let rounds = 30_001_u64;
    record(
        &directory.path().join("own.coh"),
        &[program, &rounds.to_string()],
    )
    .expect_code(0);
    let counted = |statistics: &str, per: &str| -> Value {
        let words = ["--json", "--interval", "50ms", "own.coh", "--per", per];
        let named = format!("--stats={statistics}");
        let ended = stats(directory.path(), &[&words[..], &[&named]].concat()).expect_code(0);
        serde_json::from_str(&ended.stdout).expect("it is JSON")
    };
    let key = |json: &Value, name: &str| {
        let keys = json["keys"].as_array().expect("there are keys");
        let found = keys.iter().find(|key| key["key"] == name);
        found.expect("it has a name")["values"].clone()
    };
    // Nobody else uses the lines: each is read once, and owned from the first store on.
    let own = key(
        &counted("executions.*,requests.*,messages", "object"),
        "own",
    );
    for (statistic, exact) in [
        ("executions.loads", 4 * rounds),
        ("executions.stores", 4 * rounds),
        ("executions.read_writes", 0),
        ("requests.read", 4),
        ("requests.upgrades", 4),
        ("requests.read_owning", 0),
        ("requests.hand_offs", 0),
        ("messages", 16),
    ] {
        let mut values = own.as_array().expect("values").iter();
        let value = values.find(|value| value["statistic"] == statistic);
        let value = value.expect("it was asked for");
        assert_eq!(value["total"]["value"], exact, "{statistic}");
        let slices = value["slices"].as_array().expect("slices").iter();
        let sum: u64 = slices
            .map(|one| one["value"].as_u64().expect("a count"))
            .sum();
        assert_eq!(sum, exact, "{statistic}");
    }
    // A function also saves what its caller wants back, and threads start and end.
    let stores = |values: &Value| values[0]["total"]["value"].as_u64().expect("a count");
    let of_work = stores(&key(&counted("executions.stores", "function"), "work"));
    assert!(
        (4 * rounds..4 * rounds + 64).contains(&of_work),
        "{of_work}"
    );
    let by_thread = counted("executions.stores", "thread");
    let threads = by_thread["keys"].as_array().expect("there are keys");
    let busy = threads.iter().filter(|key| {
        let is_thread = key["tid"].is_u64();
        is_thread && (rounds..rounds + 500).contains(&stores(&key["values"]))
    });
    assert_eq!(busy.count(), 4, "{by_thread}");
}
