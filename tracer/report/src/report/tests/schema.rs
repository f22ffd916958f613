//! The JSON form.

use expect_test::expect;

use super::two_counters;
use crate::{
    analysis::OrderTotals,
    event::{HeapTally, Tally, Unresolved, WatchTally},
    finding::Judged,
    names::Coverage,
    report::{
        HeapFacts, RunFacts, build,
        fixture::{FakeNames, report, tally, watching},
        json,
    },
};

#[test]
fn the_json_form_has_every_key_of_the_schema() {
    let (judgement, names) = two_counters();
    let report = report(&[judgement], &names);
    expect![[r#"
        {
          "schema": 1,
          "tool": {
            "name": "cohtrace",
            "version": "0.1.0"
          },
          "run": {
            "sources": [
              "timer"
            ],
            "duration_s": 5.0,
            "frequency_hz": 1000,
            "targets": [
              {
                "pid": 4000,
                "command": "demo"
              }
            ],
            "cpus": 2,
            "line_size": 64,
            "lines": 120,
            "shared_lines": 3,
            "produced": 10000,
            "samples": 10000,
            "kernel_samples": 0,
            "accesses": 31000,
            "lost": 0,
            "lost_per_cpu": {},
            "lost_context": 0,
            "holds": 0,
            "held_s": 0.0,
            "blind_s": 0.0,
            "filtered": 0,
            "attributed": 10000,
            "unresolved": {},
            "operands_unknown": 0,
            "shared_share": 0.414,
            "threshold": 0.01,
            "spinning_share": 0.0,
            "undecided_share": 0.0,
            "cost_unit": "sampled_ns",
            "coherence": null,
            "typing": {
              "named": 0,
              "untraced": {}
            },
            "watch": null,
            "heap": null,
            "order": null,
            "software_emulation": null,
            "conclusive": true,
            "doubt": null
          },
          "findings": [
            {
              "id": "F1",
              "kind": "false-sharing",
              "confidence": "sampled",
              "confirmed_after_s": null,
              "windows": 0,
              "insignificant_because": null,
              "moves": false,
              "line": {
                "key": "private:0:0x404040",
                "address": "0x404040",
                "bytes": 64
              },
              "lines": null,
              "object": {
                "kind": "global",
                "name": "stats",
                "called": null,
                "thread": null,
                "type": "struct stats",
                "file": "/src/demo/demo.c",
                "line": 12,
                "offset_in_object": 0,
                "size": 24,
                "allocation": null
              },
              "allocations": [],
              "cost": {
                "share": 0.414,
                "stalled_share": 0.46,
                "samples": 4600
              },
              "handoffs": null,
              "kinds": {
                "truly": 0.0,
                "falsely": 1.0
              },
              "coherence": null,
              "load_latency_cycles": null,
              "distributions": [],
              "accesses": [
                {
                  "offset": 0,
                  "size": 8,
                  "size_known": true,
                  "within": null,
                  "field": ".hits",
                  "op": "rmw",
                  "count": 2700,
                  "trapped": 0,
                  "cost_share": 0.24,
                  "at_barrier_share": 0.0,
                  "spinning_share": 0.0,
                  "basis": "stalled",
                  "coherence": null,
                  "latency_cycles": null,
                  "threads": [
                    {
                      "pid": 4000,
                      "tid": 4001,
                      "comm": "worker",
                      "cpus": [
                        1
                      ]
                    }
                  ],
                  "code": {
                    "module": "/usr/bin/demo",
                    "build_id": "c0ffee",
                    "ip": "0x1136",
                    "symbol": "count_hits",
                    "symbol_offset": null,
                    "inlined": [],
                    "inline_chain": [],
                    "file": "/src/demo/demo.c",
                    "line": 31,
                    "column": 9
                  }
                },
                {
                  "offset": 8,
                  "size": 8,
                  "size_known": true,
                  "within": null,
                  "field": ".misses",
                  "op": "rmw",
                  "count": 2300,
                  "trapped": 0,
                  "cost_share": 0.22,
                  "at_barrier_share": 0.0,
                  "spinning_share": 0.0,
                  "basis": "stalled",
                  "coherence": null,
                  "latency_cycles": null,
                  "threads": [
                    {
                      "pid": 4000,
                      "tid": 4002,
                      "comm": "worker",
                      "cpus": [
                        0
                      ]
                    }
                  ],
                  "code": {
                    "module": "/usr/bin/demo",
                    "build_id": "c0ffee",
                    "ip": "0x1166",
                    "symbol": "count_misses",
                    "symbol_offset": null,
                    "inlined": [],
                    "inline_chain": [],
                    "file": "/src/demo/demo.c",
                    "line": 40,
                    "column": 9
                  }
                }
              ],
              "groups": [
                {
                  "bytes": [
                    {
                      "offset": 0,
                      "size": 8
                    }
                  ],
                  "stored": [
                    {
                      "offset": 0,
                      "size": 8
                    }
                  ],
                  "fields": [
                    ".hits"
                  ],
                  "writers": [
                    4001
                  ],
                  "readers": []
                },
                {
                  "bytes": [
                    {
                      "offset": 8,
                      "size": 8
                    }
                  ],
                  "stored": [
                    {
                      "offset": 8,
                      "size": 8
                    }
                  ],
                  "fields": [
                    ".misses"
                  ],
                  "writers": [
                    4002
                  ],
                  "readers": []
                }
              ],
              "advice": {
                "kind": "separate-fields",
                "text": "Start `misses` on a new 64-byte line:\n    _Alignas(64) unsigned long misses;\n`alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23. `struct stats` grows from 24 to 128 bytes (+104).",
                "fields": [
                  ".hits",
                  ".misses"
                ],
                "bytes": 104,
                "words": []
              },
              "gain": {
                "grade": "estimated",
                "low": 1.0,
                "high": null,
                "per_thread": [],
                "basis": "samples do not tell how much, `--hold` does"
              },
              "facts": [
                "In 4,600 of the 5,000 samples that touch this line, the CPU was waiting for it; 2 threads took part. That is 46.0 % of the time, of which 41.4 % fell into moments when several threads used it by turns.",
                "The threads use it at the same time: from one sample to the next, it changed hands 2,450 times; samples in random order would have given 2,500.",
                "Bytes 0-15 are stored by one thread each and touched by no other."
              ]
            }
          ],
          "insignificant": [],
          "pairs": [],
          "rates": [],
          "latent": null,
          "caveats": [
            "Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a line between CPUs: shares of time are estimates, and no hand-offs are counted."
          ]
        }"#]].assert_eq(&json::render(&report, true));
    let compact = json::render(&report, false);
    assert!(!compact.contains('\n'));
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&compact), value(&json::render(&report, true)));
}

#[test]
fn a_run_has_the_sums_of_its_order_windows_and_heap_and_reasons_by_name() {
    let unresolved = [(Unresolved::NoMemoryOperand, 4), (Unresolved::NoMapping, 2)];
    let run = RunFacts {
        watched: WatchTally {
            unresolved: unresolved.into(),
            ..watching().watched
        },
        heap: Some(HeapFacts {
            budget_share: 0.05,
            least_bytes: 16,
            allocation_ns: 2400,
            free_ns: 700,
        }),
        order: Some(OrderTotals {
            rows: 9,
            executions: 90,
            processors: 2,
            transactions: 8,
            untracked: 1,
            unpaired_lines: 3,
        }),
        ..watching()
    };
    let untraced = [("spill", 2), ("computed", 1)];
    let names = FakeNames {
        coverage: Coverage {
            named: 5,
            untraced: untraced
                .map(|(name, n)| ((name, format!("{name}?")), n))
                .into(),
        },
        ..FakeNames::default()
    };
    let tally = Tally {
        heap: HeapTally {
            allocations: 3,
            frees: 2,
            lost: 1,
            off_ns: 2_500_000_000,
            cost_ns: 50_000_000,
        },
        unresolved: unresolved.into(),
        ..tally()
    };
    let report = build(&Judged::default(), &[], &names, &tally, &run);
    let text = json::render(&report, false);
    for part in [
        r#""duration_s":5.0,"#,
        r#""unresolved":{"no_mapping":2,"no_memory_operand":4},"operands_unknown":0"#,
        r#""watch":{"windows":5,"incomplete":0,"hits":640,"lost":0,"unresolved":{"no_mapping":2,"no_memory_operand":4},"inferred":0,"slots":4,"breadth":"cpus","hit_cost_ns":9000,"spent_s":0.006,"spent_share":0.0012,"budget_share":0.02}"#,
        r#""heap":{"allocations":3,"frees":2,"lost":1,"followed_share":0.5,"least_bytes":16,"allocation_cost_ns":2400,"free_cost_ns":700,"spent_s":0.05,"spent_share":0.01,"budget_share":0.05}"#,
        r#""typing":{"named":5,"untraced":{"computed":1,"spill":2}}"#,
        r#""order":{"processors":2,"transactions":8,"untracked":1,"unpaired_lines":3}"#,
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("started_ns"), "{text}");
}
