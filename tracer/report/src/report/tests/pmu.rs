//! Reports of what a PMU sampled.

use expect_test::expect;

use super::{check, plain, verbose};
use crate::{
    access::{ByteSet, Cost, CostUnit, LineKey, Op, Place},
    analysis::{PmuCounts, SiteCounts, Totals},
    event::Tally,
    finding::{Fact, Judgement, Reason, Significance, Verdict},
    names::Language,
    report::{
        RunFacts, build,
        fixture::{FakeNames, facts, judgement, site},
        json,
        model::{Observed, Report},
    },
};

/// A million cycles of latency, so that shares are easy to check by eye.
const WHOLE_CYCLES: u64 = 1_000_000;

fn run_facts() -> RunFacts {
    RunFacts {
        observed: Observed {
            sources: vec!["pebs".to_owned()],
            frequency_hz: None,
            ..facts().observed
        },
        cost_unit: CostUnit::LatencyCycles,
        totals: Totals {
            accesses: 9000,
            touches: 9000,
            pmu_loads: PmuCounts {
                sampled: 6000,
                local_hitm: 900,
                remote_hitm: 100,
                not_available: 1500,
                timed: 6000,
                latency_cycles: WHOLE_CYCLES,
                ..PmuCounts::default()
            },
            pmu_stores: PmuCounts {
                sampled: 3000,
                ..PmuCounts::default()
            },
            ..Totals::default()
        },
        ..facts()
    }
}

fn report_of(judgements: &[Judgement], run: &RunFacts) -> Report {
    let names = FakeNames::default()
        .code(0x401136, "reader", "/src/demo/demo.c", 31, Language::C)
        .code(0x401166, "writer", "/src/demo/demo.c", 40, Language::C);
    let tally = Tally {
        produced: 9000,
        samples: 9000,
        attributed: 9000,
        cost: Cost(WHOLE_CYCLES),
        ..Tally::default()
    };
    build(&judgements.into(), &[], &names, &tally, run)
}

/// Loads by thread 4001 that took 200 cycles each.
fn loads(offset: u8, tid: u32, pmu: PmuCounts) -> SiteCounts {
    SiteCounts {
        pmu: PmuCounts {
            timed: pmu.sampled,
            latency_cycles: 200 * pmu.sampled,
            ..pmu
        },
        cost: Cost(200 * pmu.sampled),
        ..site(offset, 8, Op::Load, tid, 0x401136, 0, 0)
    }
}

fn stores(offset: u8, tid: u32, sampled: u64) -> SiteCounts {
    SiteCounts {
        pmu: PmuCounts {
            sampled,
            ..PmuCounts::default()
        },
        ..site(offset, 8, Op::Store, tid, 0x401166, 0, 0)
    }
}

/// What a judgement of these sites is, as judging makes it.
fn judged(verdict: Option<Verdict>, sites: Vec<SiteCounts>, facts: &[Fact]) -> Judgement {
    let mut pmu = PmuCounts::default();
    for site in &sites {
        pmu.add(&site.pmu);
    }
    let cost: Cost = sites.iter().map(|site| site.cost).sum();
    Judgement {
        verdict,
        pmu: Some(pmu),
        shared_cost: cost,
        shared_share: Some(cost.0 as f64 / WHOLE_CYCLES as f64),
        facts: facts.to_vec(),
        ..judgement(Verdict::FalseSharing, 0.0, sites)
    }
}

fn reader_and_writer() -> Judgement {
    let seen = PmuCounts {
        sampled: 1500,
        local_hitm: 900,
        remote_hitm: 100,
        not_available: 50,
        ..PmuCounts::default()
    };
    judged(
        Some(Verdict::FalseSharing),
        vec![loads(0, 4001, seen), stores(8, 4002, 700)],
        &[
            Fact::PrivateBytes(ByteSet(0xff00)),
            Fact::Separable(1.0),
            Fact::UntimedStores(700),
        ],
    )
}

fn without_writer() -> Judgement {
    let seen = PmuCounts {
        sampled: 1000,
        local_hitm: 800,
        ..PmuCounts::default()
    };
    Judgement {
        significance: Significance::Insignificant(Reason::WriterNotSampled),
        ..judged(
            None,
            vec![loads(0, 4001, seen), loads(8, 4002, seen)],
            &[Fact::WriterUnknown, Fact::LoadedApart],
        )
    }
}

#[test]
fn a_finding_of_a_pmu_speaks_of_latency_and_of_loads_that_found_the_line_modified() {
    check(
        &report_of(&[reader_and_writer()], &run_facts()),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 30.0 % of the sampled load latency.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs by pebs: 9,000 samples, 9,000 memory accesses on 120
            cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  unknown memory at 0x404040                             30.0 % of the load latency
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at unknown memory; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |aaaaaaaaBBBBBBBB................................................|
                 a: only read, by thread 4001; B: written by thread 4002

                  bytes  op     thread  cpu   seen   hitm  cycles  latency  function  source
               a  0-7    load   4001    1    1,500  1,000     200   30.0 %  reader    /src/demo/demo.c:31:9
               B  8-15   store  4002    0      700                          writer    /src/demo/demo.c:40:9

             why 2,200 samples touch this line, by 2 threads. 1,000 loads found it modified in another CPU's
                 cache: 900 on the own node, 100 on another. A sampled load took 200 cycles on average. Of 50 it
                 is not known where they were served.
                 Its loads took 30.0 % of the sampled load latency, all of it while other CPUs used the line.
                 Bytes 8-15 are stored by one thread each and touched by no other.
                 700 sampled stores have no latency here: what they waited is in no cost.
             fix Different threads use bytes 0-7 (read at demo.c:31) and bytes 8-15 (written at demo.c:40).
                 Start each of these parts at a multiple of 64 bytes and let nothing else share its line. That
                 takes `_Alignas(64)` on each variable or member. What this memory is could not be told.

            3 remarks on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn a_line_without_a_sampled_writer_is_told_in_full_and_not_as_nothing_worth_acting_on() {
    check(
        &report_of(&[without_writer()], &run_facts()),
        &expect![[r#"
            1 cache line that moves between CPUs takes 40.0 % of the sampled load latency, but the samples do
            not tell which bytes are fought over.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs by pebs: 9,000 samples, 9,000 memory accesses on 120
            cache lines, 3 of them used by more than one thread.

            Lines that move between CPUs, without enough samples to say for which bytes:

            I1  UNDECIDED  unknown memory at 0x404040                                 40.0 % of the load latency
              at unknown memory; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |aaaaaaaaaaaaaaaa................................................|
                 a: read by 2 threads

                  bytes  op    thread  cpu   seen  hitm  cycles  latency  function  source
               a  0-7    load  4001    1    1,000   800     200   20.0 %  reader    /src/demo/demo.c:31:9
               a  8-15   load  4002    0    1,000   800     200   20.0 %  reader    /src/demo/demo.c:31:9

             why 2,000 samples touch this line, by 2 threads. 1,600 loads found it modified in another CPU's
                 cache: 1,600 on the own node, 0 on another. A sampled load took 200 cycles on average.
                 Its loads took 40.0 % of the sampled load latency, all of it while other CPUs used the line.
                 Somebody writes to it: a load finds a line modified in another CPU's cache only after that
                 CPU's store. But no such store was sampled, so which bytes are written is not known, and
                 whether the sharing is false or true cannot be said. Sample for longer, or watch the line while
                 the program runs.
                 Loads of different threads that found it modified are of different bytes. That would fit false
                 sharing; it proves nothing without the writer.
            3 remarks on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn beside_a_finding_it_is_told_too() {
    let mut moving = without_writer();
    moving.key = LineKey(moving.key.0.at(moving.key.0.position() + 64));
    let text = plain(&report_of(&[reader_and_writer(), moving], &run_facts()));
    assert!(
        text.starts_with("Threads fight over 1 cache line"),
        "{text}"
    );
    let section = "Lines that move between CPUs";
    assert!(text.find(section) > text.find("F1  FALSE"), "{text}");
    assert!(!text.contains("not worth acting on"), "{text}");
}

#[test]
fn memory_without_a_mapping_is_called_by_its_physical_address() {
    let mut line = reader_and_writer();
    line.key = LineKey(Place::Physical {
        addr: 0x1_2340_0040,
    });
    let report = report_of(&[line], &run_facts());
    let text = plain(&report);
    assert!(
        text.contains("memory at the physical address 0x123400040"),
        "{text}"
    );
    assert!(text.contains("Of the memory of F1 only"), "{text}");
    assert_eq!(report.findings[0].line.address, None);
}

#[test]
fn machines_that_do_not_tell_modified_lines_are_said_to_and_the_column_is_of_peers() {
    let mut run = run_facts();
    run.totals.pmu_loads = PmuCounts {
        sampled: 6000,
        peer: 1000,
        ..PmuCounts::default()
    };
    run.totals.pmu_stores.not_available = 3000;
    let seen = PmuCounts {
        sampled: 1500,
        peer: 1000,
        ..PmuCounts::default()
    };
    let sites = vec![loads(0, 4001, seen), stores(8, 4002, 700)];
    let facts = [Fact::PrivateBytes(ByteSet(0xff00))];
    let line = judged(Some(Verdict::FalseSharing), sites, &facts);
    let text = plain(&report_of(std::slice::from_ref(&line), &run));
    assert!(
        text.contains(" peer ") && !text.contains(" hitm "),
        "{text}"
    );
    let text = verbose(&report_of(&[line], &run));
    for sentence in [
        "(Arm SPE)",
        "3,000 of 3,000 sampled stores (100.0 %) do not tell",
    ] {
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(sentence), "{text}");
    }
}

#[test]
fn the_json_form_has_what_was_measured_and_null_where_nothing_was() {
    let mut line = reader_and_writer();
    line.sites[1].site.op = Op::Unknown;
    line.sites[1].site.size_known = false;
    let report = report_of(&[line], &run_facts());
    let value: serde_json::Value =
        serde_json::from_str(&json::render(&report, false)).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["run"]["cost_unit"], "latency_cycles");
    assert_eq!(value["run"]["coherence"]["not_available"], 1500);
    let finding = &value["findings"][0];
    let counts = serde_json::json!({
        "sampled": 2200, "local_hitm": 900, "remote_hitm": 100, "peer": 0, "not_available": 50
    });
    assert_eq!(finding["coherence"], counts);
    assert_eq!(finding["handoffs"]["observed"], 1000);
    assert!(finding["handoffs"]["truly"].is_null());
    assert_eq!(finding["load_latency_cycles"], 200.0);
    let [loads, unknown] = finding["accesses"].as_array().expect("rows").as_slice() else {
        panic!("two rows: {finding:#}");
    };
    assert_eq!(
        (&loads["basis"], &loads["latency_cycles"]),
        (&"sampled".into(), &200.0.into())
    );
    assert_eq!(
        (&loads["op"], &loads["size_known"]),
        (&"load".into(), &true.into())
    );
    assert!(unknown["op"].is_null() && unknown["latency_cycles"].is_null());
    assert_eq!(unknown["size_known"], false);
}

#[test]
fn what_only_unmeasured_stores_show_is_said_to_have_no_measured_cost_and_not_none() {
    let stored = judged(
        Some(Verdict::FalseSharing),
        vec![stores(0, 4001, 700), stores(8, 4002, 700)],
        &[Fact::UntimedStores(1400)],
    );
    let text = plain(&report_of(&[stored], &run_facts()));
    assert!(text.contains("by false sharing. What that costs was not measured.\n"));
    assert!(!text.contains("took 0.0 %"), "{text}");
    let measured = plain(&report_of(&[reader_and_writer()], &run_facts()));
    assert!(!measured.contains("not measured"), "{measured}");
}
