//! Loads in loops, and loads that are one instruction with a store.

use cohtrace::hint::file::{FollowingStore, HintedCode, LoadHint, StoreKind};
use cohtrace_tests::disassembly::Prefetched;

use super::bench::{Bench, clang_plugin, hint, position};

const SOURCE: &str = "\
struct Cell { long a, b; };
void add(Cell *c) { c->b += 3; }
long walk(const volatile long *word, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++)
    sum += word[i];
  return sum;
}
long again(const volatile long *word, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++)
    sum += *word ^ i;
  return sum;
}
long perhaps(const volatile long *word, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++)
    if (word[i] & 1)
      sum -= *word;
  return sum;
}
int main(int argc, char **) {
  long words[16] = {argc, 3, 4, 5};
  Cell cell{argc, 1};
  add(&cell);
  return (int)(walk(words, 16) + again(words, 9) + perhaps(words, 4) + cell.b);
}
";

const ARGUMENTS: [&str; 7] = [
    "-O1",
    "-g",
    "-fno-inline",
    "-fno-unroll-loops",
    "t.cpp",
    "-o",
    "hinted",
];

/// Builds with a hint for the load that begins there, of so many executions for each of 100 requests.
fn built(of: &str, executions: u64, store: StoreKind) -> Option<(Bench, String)> {
    let bench = Bench::new(clang_plugin()?, &[("t.cpp", SOURCE)]);
    let (line, column) = position(SOURCE, of);
    let mut one: LoadHint = hint("H1", bench.load("t.cpp", line, column, "(%rdi)"));
    one.expected.requests = 100;
    one.expected.executions = executions * 100;
    one.stores = vec![FollowingStore {
        code: HintedCode::default(),
        count: 100,
        kind: store,
    }];
    bench.hints(&[one]);
    let said = bench.clang(&ARGUMENTS);
    bench.plainly(&["-O1", "-g", "t.cpp", "-o", "plain"]);
    assert_eq!(bench.result("plain"), bench.result("hinted"));
    Some((bench, said))
}

#[test]
fn a_walk_over_words_gets_no_prefetch_for_each_and_one_over_lines_does() {
    let Some((bench, said)) = built("word[i];", 8, StoreKind::Plain) else {
        return;
    };
    assert!(bench.prefetches("hinted").is_empty(), "{said}");
    assert!(
        said.contains("it is in a loop, and 700 of its 800 executions"),
        "{said}"
    );
    let (code, said) = bench.clang_summary(&ARGUMENTS);
    assert!(code == 0 && said.contains("better left out"), "{said}");
    let Some((bench, said)) = built("word[i];", 2, StoreKind::Plain) else {
        return;
    };
    assert_eq!(bench.prefetches("hinted").len(), 1, "{said}");
    assert_eq!(bench.verify("hinted").0, 0);
}

#[test]
fn where_the_cpu_waits_for_the_store_more_prefetches_are_worth_it_but_not_any_number() {
    for (executions, count) in [(8, 1), (500, 0)] {
        let Some((bench, said)) = built("word[i];", executions, StoreKind::CompareAndSwap) else {
            return;
        };
        assert_eq!(
            bench.prefetches("hinted").len(),
            count,
            "{executions}: {said}"
        );
    }
}

#[test]
fn an_address_that_stays_is_fetched_before_the_loop() {
    // Where the CPU waits for the store, too.
    for store in [StoreKind::Plain, StoreKind::CompareAndSwap] {
        let Some((bench, said)) = built("*word ^ i", 50, store) else {
            return;
        };
        let found = bench.prefetches("hinted");
        assert!(said.contains("prefetchw before the loop (H1)"), "{said}");
        assert_eq!(found.len(), 1, "{found:?}");
    }
    // Few executions for each request: it stays with the load.
    let Some((bench, said)) = built("*word ^ i", 2, StoreKind::Plain) else {
        return;
    };
    assert!(said.contains("prefetchw (H1)"), "{said}");
    assert!(
        bench
            .prefetches("hinted")
            .iter()
            .all(Prefetched::is_of_next)
    );
    // A load that rounds may do without asks for nothing before them.
    let Some((bench, said)) = built("*word;", 50, StoreKind::Plain) else {
        return;
    };
    assert!(bench.prefetches("hinted").is_empty(), "{said}");
}

#[test]
fn an_instruction_that_adds_to_memory_asks_for_ownership_itself() {
    let Some((bench, said)) = built("+= 3", 1, StoreKind::Plain) else {
        return;
    };
    assert!(bench.prefetches("hinted").is_empty(), "{said}");
    assert!(said.contains("of an instruction that stores too"), "{said}");
}
