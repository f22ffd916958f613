//! The sort against the table of lines that has all the room it wants: they judge the same, whatever the budget.

use std::{
    fs,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    sync::Arc,
};

use proptest::prelude::*;

use super::*;
use crate::{
    access::{Access, Basis, Cost, Cpu, LineSize, Measured, Op, Pid, Place, SpaceId, Tid},
    analysis::{AnalysisOptions, LineTable, SortRecord},
    data_source::DataSource,
    event::{Batch, Context, ContextKind, Mapping, Tally},
    finding::Thresholds,
    pipeline::Pipeline,
};

/// So little that every few accesses are a run of their own, in the file.
const NO_MEMORY: Budget = Budget(0);

fn spill(budget: Budget, threads: usize) -> SpillOptions {
    SpillOptions {
        budget,
        directories: vec![std::env::temp_dir()],
        threads,
    }
}

fn unbounded(line_size: LineSize) -> AnalysisOptions {
    AnalysisOptions {
        line_size,
        max_lines: usize::MAX,
        max_sites: usize::MAX,
        ..AnalysisOptions::default()
    }
}

fn mapping(pid: u32, start: u64, inode: u64) -> Context {
    Context {
        time_ns: 0,
        kind: ContextKind::Mapping {
            pid: Pid(pid),
            mapping: Arc::new(Mapping {
                start,
                len: 0x1000,
                file_offset: 0,
                dev: 1,
                inode,
                shared: inode != 0,
                executable: false,
                writable: true,
                name: String::new(),
                build_id: None,
                stamp: None,
            }),
        },
    }
}

/// None, a load that found the line modified, a store, not available, from memory, locked, a peer's, from L3, HITM and
/// remote.
const WORDS: [u64; 9] = [
    0,
    0x6_2980_0842,
    0x2_2908_0144,
    DataSource::NOT_AVAILABLE,
    0x1a_4908_1042,
    0x6a10_0142,
    0x2_8880_0142,
    0x118_6810_0242,
    0x26_a990_8042,
];

/// Two processes with a shared page each at another address; a few lines, of which some threads fight over some.
fn access() -> impl Strategy<Value = Access> {
    let parts = (
        0..3_000_000u64,
        0..40u64,
        0..4u32,
        0..3u32,
        any::<u16>(),
        0..9u64,
    );
    parts.prop_map(|(step_ns, word, thread, cpu, bits, source)| Access {
        time_ns: step_ns,
        addr: match bits & 7 {
            0 => 0xffff_8000_0000_0000 + word * 24,
            1..4 => 0x10_0000 + u64::from(thread % 2) * 0x4000 + word * 8,
            _ => 0x20_0000 + word * 12,
        },
        ip: 0x40_0000 + u64::from(bits >> 3 & 3),
        cost: Cost(u32::from(bits >> 5 & 1) * 1_000_000),
        pid: Pid(7 + thread % 2),
        tid: Tid(10 + thread),
        cpu: Cpu(cpu),
        size: [1, 4, 8, 8, 8, 64, 300, 0][usize::from(bits >> 6 & 7)],
        op: [
            Op::Load,
            Op::Store,
            Op::Rmw,
            Op::Rmw,
            Op::Prefetch,
            Op::Unknown,
            Op::Store,
            Op::Store,
        ][usize::from(bits >> 9 & 7)],
        basis: [
            Basis::Stalled,
            Basis::Decoded,
            Basis::Harvested,
            Basis::Sampled,
        ][usize::from(bits >> 12 & 3)],
        locked: bits >> 14 & 1 == 1,
        kernel: bits >> 15 == 1,
        measured: Measured {
            source: DataSource::new(WORDS[source as usize]),
            latency_cycles: NonZeroU32::new(source as u32 * 30),
            phys_addr: NonZeroU64::new(source / 5 * (0x9000 + word * 8)),
            repeats: source as u32 / 2,
        },
        ..Access::BLANK
    })
}

/// Batches of a stream in order of time; what an access calls its time is the time since the one before.
fn batches(mut accesses: Vec<Access>, of: usize) -> Vec<Batch> {
    let mut now_ns = 0;
    for access in &mut accesses {
        now_ns += access.time_ns;
        access.time_ns = now_ns;
    }
    let cost = |accesses: &[Access]| accesses.iter().map(|a| Cost::from(a.cost)).sum();
    let mut batches: Vec<Batch> = accesses
        .chunks(of)
        .map(|accesses| Batch {
            accesses: accesses.to_vec(),
            tally: Tally {
                cost: cost(accesses),
                ..Tally::default()
            },
            ..Batch::default()
        })
        .collect();
    if let Some(first) = batches.first_mut() {
        first.context = vec![mapping(7, 0x10_0000, 5), mapping(8, 0x10_4000, 5)];
    }
    batches
}

fn fed(mut pipeline: Pipeline, batches: &[Batch]) -> Pipeline {
    for batch in batches {
        pipeline.feed(batch);
    }
    pipeline.finish().expect("there is room");
    pipeline
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_sort_judges_what_the_table_judges_whatever_the_budget(
        accesses in prop::collection::vec(access(), 0..1200),
        of in 1usize..200,
        wide in any::<bool>(),
        listed in 0usize..6,
        budget in prop_oneof![Just(0u64), 10_000u64..200_000, Just(64 << 20)],
        threads in 1usize..4,
    ) {
        let options = unbounded(if wide { LineSize::B128 } else { LineSize::B64 });
        let thresholds = Thresholds {
            insignificant_listed: listed,
            cost_share: 0.02,
            ..Thresholds::default()
        };
        let batches = batches(accesses, of);
        let table = fed(Pipeline::new(options, thresholds), &batches);
        let sorted = Pipeline::sorted(options, thresholds, spill(Budget(budget), threads));
        let sorted = fed(sorted, &batches);
        prop_assert_eq!(sorted.judge(), table.judge());
        prop_assert_eq!(sorted.totals(), table.totals());
        prop_assert_eq!(
            (sorted.lines(), sorted.shared_lines(), sorted.line_size()),
            (table.lines(), table.shared_lines(), table.line_size())
        );
    }
}

/// The same accesses in an emulator, which has every one of them.
fn emulated(mut accesses: Vec<Access>) -> Vec<Access> {
    for access in &mut accesses {
        access.basis = Basis::Emulated;
        access.measured.source = None;
        access.measured.phys_addr = None;
        access.cost = Cost(0);
    }
    accesses
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_complete_order_is_the_same_in_the_table_and_in_the_sort(
        accesses in prop::collection::vec(access(), 0..1200),
        of in 1usize..200,
        wide in any::<bool>(),
        budget in prop_oneof![Just(0u64), Just(64 << 20)],
    ) {
        let options = unbounded(if wide { LineSize::B128 } else { LineSize::B64 });
        let batches = batches(emulated(accesses), of);
        let table = fed(Pipeline::new(options, Thresholds::default()), &batches);
        let sorted = Pipeline::sorted(options, Thresholds::default(), spill(Budget(budget), 2));
        let sorted = fed(sorted, &batches);
        prop_assert_eq!(sorted.judge(), table.judge());
        prop_assert_eq!(sorted.pairs(), table.pairs());
        prop_assert_eq!(sorted.totals(), table.totals());
        prop_assert_eq!(&sorted.tally, &table.tally);
        prop_assert_eq!(table.totals().cost, table.tally.whole_cost());
        prop_assert_eq!(table.totals().accesses, table.tally.executions);
    }
}

/// Two counters side by side, added to by two threads in turn; beside them, lines of one thread.
fn falsely_shared(n: u64) -> Vec<Access> {
    let access = |n: u64| {
        let thread = (n / 2 % 2) as u32;
        Access {
            time_ns: 1_000_000,
            addr: match n % 2 {
                0 => 0x20_0000 + u64::from(thread) * 8,
                _ => 0x30_0000 + n * 64,
            },
            ip: 0x40_0000,
            cost: Cost(1_000_000),
            pid: Pid(7),
            tid: Tid(10 + thread),
            cpu: Cpu(thread),
            size: 8,
            op: Op::Rmw,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    };
    (0..n).map(access).collect()
}

#[test]
fn a_line_spread_over_hundreds_of_runs_in_the_file_is_the_finding_it_is_in_memory() {
    let batches = batches(falsely_shared(10_000), 100);
    let judged = |budget| {
        let options = unbounded(LineSize::B64);
        let pipeline = Pipeline::sorted(options, Thresholds::default(), spill(budget, 2));
        fed(pipeline, &batches).judge()
    };
    let judgements = judged(NO_MEMORY);
    assert!(judgements[0].is_finding());
    assert_eq!((judgements.len(), judgements[0].accesses), (1, 5000));
    assert_eq!(judgements, judged(Budget(1 << 30)));
}

#[test]
fn more_lines_than_the_table_takes_are_all_judged_by_the_sort() {
    let batches = batches(falsely_shared(4000), 100);
    let few = AnalysisOptions {
        max_lines: 100,
        ..AnalysisOptions::default()
    };
    let table = fed(Pipeline::new(few, Thresholds::default()), &batches);
    assert!(table.totals().evicted_lines > 0);
    let sorted = Pipeline::sorted(few, Thresholds::default(), spill(NO_MEMORY, 1));
    let sorted = fed(sorted, &batches);
    assert_eq!((sorted.lines(), sorted.shared_lines()), (2001, 1));
    assert_eq!(sorted.totals().evicted_lines, 0);
}

fn sort(budget: Budget, accesses: &[Access], directories: Vec<PathBuf>) -> SortedLines {
    let options = SpillOptions {
        directories,
        ..spill(budget, 1)
    };
    let mut lines = SortedLines::new(&AnalysisOptions::default(), options);
    for access in accesses {
        let space = SpaceId(0);
        let addr = access.addr;
        lines.observe_costed(access, Place::Private { space, addr }, space, &[]);
    }
    lines
}

#[test]
fn each_line_is_given_once_and_with_all_its_accesses() {
    let accesses = falsely_shared(3000);
    for budget in [NO_MEMORY, Budget(100_000), Budget(1 << 30)] {
        let lines = sort(budget, &accesses, vec![std::env::temp_dir()]);
        let fed = lines.finish().expect("there is room");
        assert_eq!(fed.spilled_runs() == 0, budget == Budget(1 << 30));
        let visit = |seen: &mut Vec<_>, key, line: &crate::analysis::Line| {
            seen.push((key, line.accesses()));
        };
        let seen = fed
            .each_line(Vec::new, visit, |seen| seen)
            .expect("it reads");
        let mut seen: Vec<_> = seen.into_iter().flatten().collect();
        seen.sort_unstable();
        let mut table = LineTable::new(unbounded(LineSize::B64));
        for access in &accesses {
            let space = SpaceId(0);
            let addr = access.addr;
            table.observe(access, Place::Private { space, addr }, space);
        }
        let mut expected: Vec<_> = table
            .lines()
            .map(|(key, line)| (key, line.accesses()))
            .collect();
        expected.sort_unstable();
        assert_eq!(seen, expected);
    }
}

#[test]
fn the_file_has_no_name_and_the_next_directory_is_taken_where_one_takes_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    let directories = vec![missing.clone(), directory.path().to_owned()];
    let lines = sort(NO_MEMORY, &falsely_shared(500), directories);
    let left = fs::read_dir(directory.path()).expect("it is there").count();
    assert_eq!(left, 0);
    assert!(lines.finish().expect("there is room").spilled_runs() > 10);
    let error = sort(NO_MEMORY, &falsely_shared(500), vec![missing.clone()]).finish();
    let error = error.expect_err("there is no directory").to_string();
    assert!(error.contains(&missing.display().to_string()), "{error}");
    assert!(error.contains("--memory"), "{error}");
}

#[test]
fn after_a_failure_nothing_is_kept_and_what_fits_in_memory_needs_no_file() {
    let nowhere = vec![PathBuf::from("/nonexistent")];
    let failed = sort(NO_MEMORY, &falsely_shared(500), nowhere.clone());
    assert!(failed.has_failed());
    let whole = sort(Budget(1 << 20), &falsely_shared(500), nowhere);
    assert!(!whole.has_failed() && whole.finish().is_ok());
}

#[test]
fn an_access_takes_80_bytes() {
    assert_eq!(size_of::<SortRecord>(), 80);
}
