//! Names and counts that nobody would choose.

use expect_test::expect;

use super::{check, plain, two_counters};
use crate::{
    access::{Cost, Cpu},
    finding::Fact,
    report::{
        build,
        fixture::{facts, report, tally},
        json,
        printable::is_hostile,
    },
};

#[test]
fn symbols_of_two_hundred_letters_still_fit() {
    let (judgement, mut names) = two_counters();
    let long = format!(
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>> storage::engine::{}::Table<std::pair<unsigned long, std::vector<std::atomic<int>>>>::rehash(std::function<void (int)> const&)",
        "very_long_namespace::".repeat(3).trim_end_matches("::")
    );
    assert!(long.len() > 200);
    for code in names.code.values_mut() {
        code.symbol = Some(long.clone());
        code.file = Some(format!(
            "/home/build/{}/table.cc",
            "deeply/nested/".repeat(12)
        ));
    }
    names.objects[0].name = Some(long.clone());
    names.objects[0].type_name = Some(long);
    names = names
        .comm(4001, "tokio-runtime-w")
        .comm(4002, "tokio-runtime-x");
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 41.4 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  very_long_namespace::Table<..>::rehash.hits and 1 more         41.4 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at global variable `very_long_namespace::very_long_namespace::Table<..>::rehash` of type
                 `very_long_namespace::very_long_namespace::Table<..>::rehash`, 24 bytes, declared at
                 /src/demo/demo.c:12; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAAAAAABBBBBBBB................................................|
                 A: written by tokio-runtime-w 4001; B: written by tokio-runtime-x 4002

                  bytes  what     op   thread             cpu   seen    time  function          source
               A  0-7    .hits    rmw  tokio..ime-w 4001  1    2,700  24.0 %  rehash            ../table.cc:31:9
               B  8-15   .misses  rmw  tokio..ime-x 4002  0    2,300  22.0 %  rehash            ../table.cc:40:9

             why In 4,600 of the 5,000 samples that touch this line, the CPU was waiting for it; 2 threads took
                 part. That is 46.0 % of the time, of which 41.4 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 2,450 times;
                 samples in random order would have given 2,500.
                 Bytes 0-15 are stored by one thread each and touched by no other.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix Start `misses` on a new 64-byte line. Put `_Alignas(64)` in front of the declaration of
                 `misses`.
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 `very_long_namespace::very_long_namespace::Table<..>::rehash` grows from 24 to 128 bytes
                 (+104).

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn hostile_names_cannot_act_on_a_terminal() {
    let (mut judgement, mut names) = two_counters();
    let evil = "\x1b]0;owned\x07\x1b[2J\u{202e}\r\nF9  FALSE SHARING";
    for code in names.code.values_mut() {
        (code.symbol, code.file) = (Some(evil.to_owned()), Some(evil.to_owned()));
    }
    names.objects[0].name = Some(evil.to_owned());
    names.objects[0].type_name = Some(evil.to_owned());
    names.objects[0].file = Some(evil.to_owned());
    if let Some(layout) = &mut names.objects[0].layout {
        layout.members[1].name = evil.to_owned();
    }
    names.fields[1].3 = Some(evil.to_owned());
    names = names.comm(4001, evil);
    names.caveats = vec![evil.to_owned()];
    judgement.facts.push(Fact::NoStoreSeen);
    let mut report = report(&[judgement], &names);
    report.run.observed.targets[0].command = Some(evil.to_owned());
    let text = plain(&report);
    assert!(!text.lines().any(|line| line.starts_with("F9")), "{text}");
    assert!(text.contains("\\x1b"), "{text}");
    let json = json::render(&report, false);
    assert!(!json.chars().any(is_hostile));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["findings"][0]["object"]["name"], evil);
}

#[test]
fn huge_counts_stay_readable() {
    let (mut judgement, names) = two_counters();
    for site in &mut judgement.sites {
        (site.stalled, site.decoded, site.harvested) = (u32::MAX, u32::MAX, u32::MAX);
        site.cost = Cost(u64::MAX / 2);
    }
    judgement.samples = u64::MAX;
    judgement.facts.push(Fact::Folded(u64::MAX));
    judgement
        .facts
        .push(Fact::StalledWithoutStore(Cost(f64::MAX)));
    let mut tally = tally();
    (tally.produced, tally.samples, tally.cost) = (u64::MAX, u64::MAX, Cost(u64::MAX));
    tally.lost.insert(Cpu(0), 0);
    let text = plain(&build(&[judgement].into(), &[], &names, &tally, &facts()));
    assert!(
        text.contains("18,446,744,073,709,551,615 samples"),
        "{text}"
    );
}
