//! One finding of each kind, in full.

use expect_test::expect;

use super::{check, one_atomic, plain, two_counters};
use crate::{
    access::{LineKey, LineSize, Op, Place},
    finding::Verdict,
    hint::role::Role,
    names::{Author, Language, MemberLayout, ObjectKind, ObjectLayout, WordUse, Written},
    report::{
        build,
        fixture::{FakeNames, LINE, facts, judgement, object, report, site, tally, with_bytes},
    },
};

#[test]
fn two_counters_in_one_struct() {
    let (judgement, names) = two_counters();
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 41.4 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  stats.hits and stats.misses                                    41.4 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at global variable `stats` of type `struct stats`, 24 bytes, declared at /src/demo/demo.c:12;
                 cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAAAAAABBBBBBBB................................................|
                 A: written by worker 4001; B: written by worker 4002

                  bytes  what          op   thread       cpu   seen    time  function      source
               A  0-7    stats.hits    rmw  worker 4001  1    2,700  24.0 %  count_hits    /src/demo/demo.c:31:9
               B  8-15   stats.misses  rmw  worker 4002  0    2,300  22.0 %  count_misses  /src/demo/demo.c:40:9

             why In 4,600 of the 5,000 samples that touch this line, the CPU was waiting for it; 2 threads took
                 part. That is 46.0 % of the time, of which 41.4 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 2,450 times;
                 samples in random order would have given 2,500.
                 Bytes 0-15 are stored by one thread each and touched by no other.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix Start `misses` on a new 64-byte line:
                     _Alignas(64) unsigned long misses;
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 `struct stats` grows from 24 to 128 bytes (+104).

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn one_atomic_that_all_threads_update() {
    let (judgement, names) = one_atomic();
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by true sharing. It took 54.0 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  TRUE SHARING  demo::TOTAL                                                     54.0 % of the time
                 Threads use the same bytes and some of them store there, so the cache line that holds them has
                 to move from CPU to CPU.
              at global variable `demo::TOTAL` of type `core::sync::atomic::AtomicU64`, 8 bytes; cache line
                 0x404040, 64 bytes

                 bytes  op   thread     cpu   seen    time  function                      source
                 8-15   rmw  4 threads  0-1  6,160  60.0 %  fetch_add in demo::work       /src/demo/main.rs:17:9

             why In 6,000 of the 6,160 samples that touch this line, the CPU was waiting for it; 4 threads took
                 part. That is 60.0 % of the time, of which 54.0 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 3,018 times;
                 samples in random order would have given 3,080.
                 Bytes 8-15 are stored by a thread and touched by others too.
            gain Up to 2.2 times as fast if nobody took the line from them: by samples, which waited in place,
                 `--hold` does.
             fix 4 threads add to `demo::TOTAL`, and none of them looks at the sum: it is a counter, and each
                 addition must own its line, wherever it lies. Count in a `thread_local!` or a local variable of
                 each thread and add the parts up when somebody reads the sum, or add up locally and add to the
                 sum once per batch of, say, 1,000: that divides the traffic by the size of the batch.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn a_lock_beside_a_counter_of_one_thread() {
    let mut table = object("table", ObjectKind::Global, LINE, 16);
    table.type_name = Some("struct table".to_owned());
    let member = |name: &str, offset, size, type_name: &str| MemberLayout {
        name: name.to_owned(),
        offset,
        size,
        type_name: Some(type_name.to_owned()),
        ..MemberLayout::default()
    };
    table.layout = Some(ObjectLayout {
        author: Author::Program,
        size: 16,
        element: None,
        members: vec![member("lock", 0, 4, "int"), member("scans", 8, 8, "long")],
    });
    let names = FakeNames {
        objects: vec![table],
        ..FakeNames::default()
    }
    .field(0, 4, 0, ".lock")
    .field(8, 16, 0, ".scans")
    .code(0x401300, "take", "/src/table.c", 21, Language::C)
    .code(0x401310, "release", "/src/table.c", 27, Language::C)
    .code(0x401320, "scan", "/src/table.c", 44, Language::C)
    .does(
        0x401300,
        WordUse::CompareAndSwap {
            expected: Written::Constant(0),
            new: Written::Constant(1),
        },
    )
    .does(0x401310, WordUse::Write(Written::Constant(0)))
    .comm(4001, "front")
    .comm(4002, "back")
    .comm(4003, "scanner");
    let mut sites = vec![
        site(0, 4, Op::Rmw, 4001, 0x401300, 800, 10),
        site(0, 4, Op::Rmw, 4002, 0x401300, 750, 10),
        site(0, 4, Op::Store, 4001, 0x401310, 20, 700),
        site(0, 4, Op::Store, 4002, 0x401310, 15, 650),
        site(8, 8, Op::Rmw, 4003, 0x401320, 600, 30),
    ];
    sites[0].site.locked = true;
    sites[1].site.locked = true;
    let judgement = with_bytes(judgement(Verdict::MixedSharing, 0.6, sites), 0xf, 0xff00);
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by mixed sharing. It took 19.7 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  MIXED SHARING  table.lock and table.scans                                     19.7 % of the time
                 Both at once: threads share some of the bytes, and other bytes of the same cache line only
                 happen to be their neighbours.
              at global variable `table` of type `struct table`, 16 bytes; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAA....BBBBBBBB................................................|
                 A: written by 2 threads; B: written by scanner 4003

                  bytes  what         op     thread        cpu   seen    time  function  source
               A  0-3    table.lock   rmw    2 threads     0-1  1,570  15.5 %  take      /src/table.c:21:9
               B  8-15   table.scans  rmw    scanner 4003  1      630   6.0 %  scan      /src/table.c:44:9
               A  0-3    table.lock   store  2 threads     0-1  1,385   0.4 %  release   /src/table.c:27:9

             why In 2,185 of the 3,585 samples that touch this line, the CPU was waiting for it; 3 threads took
                 part. That is 21.9 % of the time, of which 19.7 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 1,757 times;
                 samples in random order would have given 1,793.
                 Bytes 8-15 are stored by one thread each and touched by no other; bytes 0-3 are stored by a
                 thread and touched by others too.
                 40.0 % of that wait is between accesses to different bytes.
            gain More than nothing if nobody took the line from them: samples do not tell how much, `--hold`
                 does.
             fix First take apart what only happens to be neighbours. Start `scans` on a new 64-byte line:
                     _Alignas(64) long scans;
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 `struct table` grows from 16 to 128 bytes (+112).
                 What remains shared: 2 threads take `table.lock` by turns: it is a lock, and whoever takes it
                 must own its line, wherever it lies. Hold it for a shorter time or take it less often, give
                 each part of the data its own lock, wait longer after each failed attempt, or use a queue lock
                 (MCS), where each thread waits on memory of its own.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn two_locks_on_one_line_are_named_apart() {
    let mut locks = object("locks", ObjectKind::Global, LINE, 8);
    let member = |name: &str, offset| MemberLayout {
        name: name.to_owned(),
        offset,
        size: 4,
        type_name: Some("pthread_spinlock_t".to_owned()),
        ..MemberLayout::default()
    };
    locks.layout = Some(ObjectLayout {
        author: Author::Program,
        size: 8,
        element: None,
        members: vec![member("reader", 0), member("writer", 4)],
    });
    let names = FakeNames {
        objects: vec![locks],
        ..FakeNames::default()
    }
    .field(0, 4, 0, ".reader")
    .field(4, 8, 0, ".writer")
    .code(
        0x401700,
        "pthread_spin_lock",
        "/src/locks.c",
        5,
        Language::C,
    );
    // Both threads take both locks, so the threads alone do not tell the fields apart.
    let mut sites = Vec::new();
    for tid in [4001, 4002] {
        for offset in [0, 4] {
            let mut site = site(offset, 4, Op::Rmw, tid, 0x401700, 400, 10);
            site.site.locked = true;
            sites.push(site);
        }
    }
    let judgement = with_bytes(judgement(Verdict::MixedSharing, 0.5, sites), 0xff, 0);
    let finding = &report(&[judgement], &names).findings[0];
    assert_eq!(finding.groups.len(), 2);
    assert_eq!(finding.advice.fields, [".reader", ".writer"]);
    // reader 0..4 | writer 64..68 -> 128; 128 - 8 = 120.
    assert_eq!(finding.advice.bytes, Some(120));
    let text = finding.advice.text.as_deref().unwrap();
    let both =
        "For each of `locks.reader` and `locks.writer`: 2 threads take it by turns: it is a lock";
    assert!(text.contains(both), "{text}");
    let words: Vec<&str> = finding
        .advice
        .words
        .iter()
        .map(|word| &*word.field)
        .collect();
    assert_eq!(words, [".reader", ".writer"]);
    assert_eq!(finding.advice.words[0].role, Role::Lock);
}

#[test]
fn kernel_lines_and_pairs_of_lines_are_said_to_be_such() {
    let (mut judgement, mut names) = two_counters();
    judgement.key = LineKey(Place::Kernel {
        addr: 0xffff_8880_1234_5600,
    });
    names.objects[0].kind = ObjectKind::Kernel;
    names.objects[0].start = Some(0xffff_8880_1234_5600);
    for code in names.code.values_mut() {
        code.module = Some("[kernel]".to_owned());
        code.symbol_offset = Some(0x1a);
        code.line = None;
    }
    let mut facts = facts();
    facts.line_size = LineSize::B128;
    let report = build(&[judgement].into(), &[], &names, &tally(), &facts);
    let finding = &report.findings[0];
    assert_eq!(
        (finding.object.kind, finding.line.bytes),
        (ObjectKind::Kernel, 128)
    );
    // hits 0..8 | misses 128..136, total 136..144 -> 256; 256 - 24 = 232.
    assert_eq!(finding.advice.bytes, Some(232));
    assert!(
        finding
            .advice
            .text
            .as_deref()
            .unwrap()
            .contains("____cacheline_aligned_in_smp")
    );
    let text = plain(&report);
    assert!(
        text.contains("128 bytes") && text.contains(" 64      72 "),
        "{text}"
    );
    assert!(text.contains("  +0x1a [kernel]\n"), "{text}");
}
