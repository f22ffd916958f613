//! The report of an emulated run: every access, in order.

use expect_test::expect;

use super::{check, plain, two_counters};
use crate::{
    access::{Access, Basis, CostUnit, Cpu, Measured, Op, Pid, Tid},
    analysis::AnalysisOptions,
    event::Batch,
    finding::{Confidence, Thresholds, Verdict},
    pipeline::Pipeline,
    report::{
        RunFacts, build,
        fixture::{LINE, facts},
        model::{Observed, Report},
        text::{self, TextOptions},
    },
};

/// Two threads in turn, 500 times each; thread n reads and then writes at `addresses[n]`, eight times while it has the
/// line. The first of them touches some lines of its own before.
fn run(addresses: [u64; 2]) -> Report {
    let mut batch = Batch::default();
    let mut add = |thread: usize, op: Op, addr: u64, repeats: u32| {
        let codes = [[0x401130, 0x401136], [0x401160, 0x401166]];
        batch.accesses.push(Access {
            time_ns: batch.accesses.len() as u64 * 1000,
            addr,
            ip: codes[thread][usize::from(op.stores())],
            pid: Pid(4000),
            tid: Tid(4001 + thread as u32),
            cpu: Cpu(thread as u32),
            size: 8,
            op,
            basis: Basis::Emulated,
            locked: false,
            kernel: false,
            measured: Measured {
                repeats,
                ..Measured::default()
            },
            ..Access::BLANK
        });
    };
    for line in 0..100 {
        add(0, Op::Store, 0x50_0000 + line * 64, 0);
    }
    for _ in 0..500 {
        for (thread, addr) in addresses.into_iter().enumerate() {
            add(thread, Op::Load, addr, 7);
            add(thread, Op::Store, addr, 7);
        }
    }
    let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
    pipeline.feed(&batch);
    let run = RunFacts {
        observed: Observed {
            sources: vec!["emulate".to_owned()],
            frequency_hz: None,
            ..facts().observed
        },
        totals: pipeline.totals(),
        lines: Some(pipeline.lines()),
        shared_lines: Some(pipeline.shared_lines()),
        cost_unit: CostUnit::Transactions,
        order: Some(pipeline.ordered().totals()),
        ..facts()
    };
    let (_, names) = two_counters();
    let (judgements, pairs) = (pipeline.judge(), pipeline.pairs());
    build(&judgements.into(), &pairs, &names, &pipeline.tally, &run)
}

#[test]
fn counters_on_a_line_are_confirmed_false_sharing_by_messages() {
    let report = run([LINE, LINE + 8]);
    check(
        &report,
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 97.5 % of the coherence transactions.
            Looked at demo (pid 4000) for 5.0 s by emulate: every access of the program, in order; 2 processors:
            16,100 memory accesses, 8,196 coherence transactions on 101 cache lines, 1 of them used by more than
            one thread.

            F1  FALSE SHARING, confirmed  stats.hits and stats.misses       97.5 % of the coherence transactions
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at global variable `stats` of type `struct stats`, 24 bytes, declared at /src/demo/demo.c:12;
                 cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAAAAAABBBBBBBB................................................|
                 A: written by worker 4001; B: written by worker 4002

                  bytes  what     op     thread  cpu   seen  transactions  function      source
               B  8-15   .misses  load   4002    1    4,000        24.4 %                server+0x1160
               B  8-15   .misses  store  4002    1    4,000        24.4 %  count_misses  /src/demo/demo.c:40:9
               A  0-7    .hits    load   4001    0    4,000        24.4 %                server+0x1130
               A  0-7    .hits    store  4001    0    4,000        24.4 %  count_hits    /src/demo/demo.c:31:9

             why Every access was seen, in order: 16,000 executions by 2 threads. Since a second one came, the
                 line was asked for 1,998 times: 998 moved it to another processor after a store there; 0 of
                 these brought a change of bytes that the taker used before it lost the line again, 997 did not.
                 Bytes 0-15 are stored by one thread each and touched by no other.
                 From one CPU taking the line to the next: median 1.0 us, 90 % within 1.0 us, 99 % within 1.0 us
                 (1,997 at the emulator's speed).
             fix Start `misses` on a new 64-byte line:
                     _Alignas(64) unsigned long misses;
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 `struct stats` grows from 24 to 128 bytes (+104).

            Loads that should fetch their line for ownership
              P1  stats.misses  server+0x1160 then demo.c:40  4,000 times, 100.0 % of its executions
              P2  stats.hits    server+0x1130 then demo.c:31  3,992 times, 100.0 % of its executions

            2 remarks on how this was measured: --verbose.
        "#]],
    );
    let finding = &report.findings[0];
    assert_eq!(
        (finding.kind, finding.confidence),
        (Some(Verdict::FalseSharing), Confidence::Confirmed)
    );
    let handoffs = finding.handoffs.as_ref().expect("all were seen");
    assert_eq!((handoffs.observed, handoffs.truly), (998, Some(0)));
    assert_eq!((handoffs.per_s, handoffs.at_least_per_s), (None, None));
    for row in &finding.accesses {
        assert_eq!(
            (row.basis, row.count, row.trapped),
            (Basis::Emulated, 4000, 0)
        );
    }
    assert_eq!((report.run.samples, report.run.accesses), (16_100, 16_100));
    // 2 for each line of the first thread and its two requests there, 8 for each turn after.
    let order = report.run.order.as_ref().expect("emulated");
    assert_eq!(
        (order.processors, order.transactions),
        (2, 200 + 4 + 999 * 8)
    );
    assert_eq!(report.run.cost_unit, CostUnit::Transactions);
    let pair = &report.pairs[0];
    assert!(pair.complete_order && pair.hint.is_some());
    assert_eq!(pair.count + report.pairs[1].count, 8000 - 8);
}

#[test]
fn counters_apart_are_no_finding_and_none_was_missed() {
    let report = run([LINE, LINE + 64]);
    assert!(report.findings.is_empty() && report.pairs.is_empty());
    assert_eq!(
        report.run.order.as_ref().map(|order| order.transactions),
        Some(208)
    );
    let text = plain(&report);
    assert!(text.contains("Every access was seen"), "{text}");
    for word in ["sample", "window", "PMU", "Hz"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let pairs = text::render_pairs(&report, TextOptions::default());
    assert!(
        pairs.contains("No line that several processors touch"),
        "{pairs}"
    );
}
