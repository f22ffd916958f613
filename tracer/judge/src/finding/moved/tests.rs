//! Known answers for read-only lines beside a contended one, and that no cost is made or lost.

use proptest::prelude::*;

use super::{
    super::{
        Judgement, Model, Orders, Ranking, Reason, Significance, Thresholds, Verdict, judge_table,
    },
    *,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Pid, Place, SpaceId, Tid},
    analysis::{
        AnalysisOptions, LineTable, OrderBounds, OrderedLines, Uses, groups,
        watched_fixture::{BASE, Watch, load, repeated, store},
    },
};

/// The contended line; the one that is only read is the fixture's.
const COUNTER: u64 = 0x5000;
const MS: u64 = 1_000_000;
const LOW: &[u8] = &[0, 8, 16, 24];
const HIGH: &[u8] = &[32, 40, 48, 56];

fn private(addr: u64) -> Place {
    Place::Private {
        space: SpaceId(0),
        addr,
    }
}

/// Samples, and what follows from them and from windows.
struct Run {
    table: LineTable,
    transfers: Transfers,
    whole: Cost,
}

impl Run {
    fn new(accesses: &[Access]) -> Run {
        let mut run = Run {
            table: LineTable::new(AnalysisOptions::default()),
            transfers: Transfers::new(LineSize::B64),
            whole: accesses.iter().map(|access| Cost::from(access.cost)).sum(),
        };
        for access in accesses {
            run.table.observe(access, private(access.addr), SpaceId(0));
            (run.transfers).observe(access, private(access.addr), SpaceId(0));
        }
        run
    }

    fn moved(&self, watched: &WatchedLines) -> Moved {
        Moved::new(
            &self.transfers,
            watched,
            LineSize::B64,
            self.whole,
            &Thresholds::default(),
        )
    }

    fn judged(&self, watched: &WatchedLines) -> Vec<Judgement> {
        let ordered = OrderedLines::new(LineSize::B64, OrderBounds::default());
        let orders = Orders {
            watched,
            moved: &self.moved(watched),
            ordered: &ordered,
        };
        let thresholds = Thresholds::default();
        let model = Model {
            whole: self.whole,
            untimed_stores: 0,
            line_size: LineSize::B64,
            thresholds: &thresholds,
        };
        let ranking = Ranking::new(&orders, model);
        judge_table(&self.table, ranking).judgements
    }
}

/// Two threads by turns add to a counter and then load a bound; every fourth sample is behind that load, and names the
/// counter's load instead.
fn beside_a_counter() -> Vec<Access> {
    let sample = |n: u64| {
        let at_bound = n % 4 == 3;
        let row = |addr, op, stalled: bool| Access {
            time_ns: n * MS,
            addr,
            ip: addr,
            size: 8,
            op,
            pid: Pid(1),
            tid: Tid(1 + (n % 2) as u32),
            cpu: Cpu((n % 2) as u32),
            basis: if stalled {
                Basis::Stalled
            } else {
                Basis::Decoded
            },
            cost: if stalled { Cost(MS as u32) } else { Cost(0) },
            instead: u8::from(stalled && at_bound),
            ..Access::BLANK
        };
        [
            row(COUNTER, Op::Load, !at_bound),
            row(COUNTER, Op::Store, false),
            row(BASE, Op::Load, at_bound),
        ]
    };
    (0..800).flat_map(sample).collect()
}

/// Windows on all words of the bound's line, so many on each, in which two threads load it.
fn read_only(windows: usize) -> Watch {
    let loads = repeated(5, &[load(1, 0), load(2, 0)]);
    Watch::new()
        .windows(windows, LOW, &loads)
        .windows(windows, HIGH, &loads)
}

fn of(judged: &[Judgement], addr: u64) -> &Judgement {
    let line = |judgement: &&Judgement| judgement.key == LineKey(private(addr));
    judged.iter().find(line).unwrap()
}

#[test]
fn a_line_that_windows_saw_no_store_on_gives_its_cost_to_the_contended_one() {
    let run = Run::new(&beside_a_counter());
    let before = run.judged(&WatchedLines::default());
    let after = run.judged(&read_only(20).lines);
    let bound = of(&before, BASE);
    assert_eq!(bound.cost, Cost(200 * MS));
    let undecided = Significance::Insignificant(Reason::WaitUndecided);
    assert_eq!(bound.significance, undecided);
    assert_eq!(
        run.moved(&WatchedLines::default()).undecided_cost(),
        Cost(200 * MS)
    );
    let bound = of(&after, BASE);
    assert_eq!(bound.cost, Cost(0));
    assert_eq!(
        bound.significance,
        Significance::Insignificant(Reason::NotWaitedFor)
    );
    let (counter, gained) = (of(&before, COUNTER), of(&after, COUNTER));
    assert_eq!(gained.verdict, Some(Verdict::TrueSharing));
    assert_eq!((counter.cost.0, gained.cost.0), (600 * MS, 800 * MS));
    // All of it by turns.
    assert_eq!(gained.shared_cost, Cost(800 * MS));
    let stalled = |judgement: &Judgement| {
        let loads = judgement
            .sites
            .iter()
            .filter(|site| site.site.op == Op::Load);
        let counts = loads.map(|site| (site.stalled, site.decoded, site.cost.0 / MS));
        counts.fold((0, 0, 0), |all, one| {
            (all.0 + one.0, all.1 + one.1, all.2 + one.2)
        })
    };
    assert_eq!(stalled(counter), (600, 200, 600));
    assert_eq!(stalled(gained), (800, 0, 800));
    assert_eq!(counter.accesses, gained.accesses);
    assert_eq!(run.moved(&read_only(20).lines).undecided_cost(), Cost(0));
}

#[test]
fn too_few_windows_or_words_or_a_store_on_any_of_them_move_nothing() {
    let run = Run::new(&beside_a_counter());
    let moves = |watch: &Watch| {
        run.moved(&watch.lines)
            .lost
            .contains_key(&LineKey(private(BASE)))
    };
    // A quarter of the time: 0.75 to the 11th is less than 5 %.
    assert!(moves(&read_only(11)));
    assert!(!moves(&read_only(10)));
    let loads = repeated(5, &[load(1, 0), load(2, 0)]);
    let half = Watch::new().windows(40, LOW, &loads);
    assert!(!moves(&half));
    let stored = read_only(40).windows(1, HIGH, &[load(1, 0), store(3, 32)]);
    assert!(!moves(&stored));
    let unused = Watch::new().windows(40, LOW, &[]).windows(40, HIGH, &[]);
    assert!(!moves(&unused));
}

#[test]
fn a_line_that_samples_saw_a_store_on_keeps_its_cost() {
    let mut accesses = beside_a_counter();
    accesses.push(Access {
        time_ns: 900 * MS,
        addr: BASE + 8,
        op: Op::Store,
        size: 8,
        tid: Tid(3),
        basis: Basis::Decoded,
        ..Access::BLANK
    });
    let run = Run::new(&accesses);
    let moved = run.moved(&read_only(40).lines);
    assert!(moved.lost.is_empty() && moved.undecided.is_empty());
    assert_eq!(moved.undecided_cost(), Cost(0));
}

#[test]
fn a_line_that_windows_do_not_tell_of_yet_is_undecided_only_as_far_as_another_may_have_been_waited_for()
 {
    let reason = |accesses: &[Access], watch: &Watch| {
        let judged = Run::new(accesses).judged(&watch.lines);
        let significance = of(&judged, BASE).significance;
        let Significance::Insignificant(reason) = significance else {
            panic!("{significance:?}");
        };
        reason
    };
    let accesses = beside_a_counter();
    assert_eq!(reason(&accesses, &read_only(2)), Reason::WaitUndecided);
    // Twins: windows have seen enough; a store; and no other access that its loads may have waited for.
    assert_eq!(reason(&accesses, &read_only(20)), Reason::NotWaitedFor);
    let stored = read_only(2).windows(1, HIGH, &[load(1, 0), store(3, 32)]);
    assert_eq!(reason(&accesses, &stored), Reason::NoStoreSeen);
    let mut alone = accesses;
    for access in &mut alone {
        access.instead = 0;
    }
    assert_eq!(reason(&alone, &read_only(2)), Reason::NoStoreSeen);
}

#[test]
fn what_has_no_other_access_is_undecided() {
    let mut accesses = beside_a_counter();
    for access in accesses
        .iter_mut()
        .filter(|access| access.time_ns < 100 * MS)
    {
        access.instead = 0;
    }
    let run = Run::new(&accesses);
    let watch = read_only(20);
    assert_eq!(run.moved(&watch.lines).undecided_cost(), Cost(25 * MS));
    let after = run.judged(&watch.lines);
    assert_eq!(of(&after, COUNTER).cost, Cost(775 * MS));
    assert_eq!(of(&after, BASE).cost, Cost(0));
}

#[test]
fn the_more_a_line_seems_to_cost_the_fewer_windows_tell() {
    let limits = WatchThresholds::default();
    let needed: Vec<u64> = [0.0, 0.01, 0.08, 0.3, 0.9, 1.0]
        .map(|share| limits.unstored_windows(share))
        .to_vec();
    assert_eq!(needed, [100, 100, 36, 9, 3, 3]);
}

proptest! {
    #[test]
    fn cost_is_neither_made_nor_lost(
        rows in prop::collection::vec((0u64..60, 0u64..6, 0usize..3, 0u8..5, 1u32..3), 1..600),
        read in 0u64..6,
    ) {
        let mut accesses: Vec<Access> = rows
            .iter()
            .map(|(time_ms, line, op, instead, tid)| Access {
                time_ns: time_ms * MS,
                addr: BASE + line * 64,
                ip: *line,
                size: 8,
                op: Op::ALL[*op],
                tid: Tid(*tid),
                cpu: Cpu(*tid),
                basis: if *instead > 1 { Basis::Stalled } else { Basis::Decoded },
                cost: if *instead > 1 { Cost(MS as u32) } else { Cost(0) },
                instead: instead / 2,
                ..Access::BLANK
            })
            .collect();
        accesses.sort_by_key(|access| (access.time_ns, access.tid));
        // The fixture's windows are on its one line: make that any of them.
        for access in &mut accesses {
            access.addr = BASE + (access.addr - BASE + 6 * 64 - read * 64) % (6 * 64);
        }
        let run = Run::new(&accesses);
        let moved = run.moved(&read_only(100).lines);
        let mut corrected = Cost(0);
        let mut original = Cost(0);
        for (key, line) in run.table.lines() {
            let mut evidence = line.evidence(line.shared(LineSize::B64), LineSize::B64, &groups(&line.sites(), &Uses::default(), LineSize::B64));
            original += evidence.cost;
            moved.correct(key, &mut evidence);
            prop_assert!(evidence.sharing.cost.0 <= evidence.cost.0 as f64 + 1.0);
            corrected += evidence.cost;
            let mut sites = line.sites();
            let accesses: u64 = sites.iter().map(SiteCounts::accesses).sum();
            moved.correct_sites(key, &mut sites);
            prop_assert_eq!(sites.iter().map(|site| site.cost).sum::<Cost>(), evidence.cost);
            prop_assert_eq!(sites.iter().map(SiteCounts::accesses).sum::<u64>(), accesses);
        }
        // What is undecided stays in the cost of a line of which windows do not tell yet.
        let undecided = run.transfers.lines().filter(|(line, _)| moved.undecided.contains(line));
        let stays: Cost = undecided.map(|(_, cost)| cost).sum();
        prop_assert_eq!(original, corrected + moved.undecided_cost() - stays);
    }
}
