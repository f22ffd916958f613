//! Known answers of the fold.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    access::LineSize,
    analysis::{SimulatedCosts, SimulatedTotals, emulated_fixture},
    coherence::{Lines, Multiprocessor, RequestRow, followed_by_ownership, sort_by_line},
};

const SPACE: SpaceId = SpaceId(0);

/// All on one CPU: threads are the processors.
fn emulated(tid: u32, ip: u64, addr: u64, op: Op) -> Access {
    Access {
        cpu: Cpu(0),
        ..emulated_fixture::emulated(tid, ip, op, addr)
    }
}

/// The accesses in scenarios: nothing hinted, and these instructions.
fn run(model: &SystemModel, accesses: &[Access], hinted: &[u64]) -> Simulated {
    run_from(0, model, accesses, hinted)
}

fn transactions(simulation: &Simulated) -> Vec<(u64, u64, u64)> {
    let totals = simulation.totals();
    totals
        .map(|totals| {
            let all = totals.transactions.total();
            (all, totals.load_transactions, totals.l3_misses)
        })
        .collect()
}

/// Threads in turn load at 1 and store at 2.
fn counter(turns: u32) -> Vec<Access> {
    let turn = |n: u32| {
        let tid = 100 + n % 4;
        [
            emulated(tid, 1, 0x1000, Op::Load),
            emulated(tid, 2, 0x1000, Op::Store),
        ]
    };
    (0..turns).flat_map(turn).collect()
}

#[test]
fn a_counter_of_four_threads_is_found_and_hinting_its_load_halves_its_messages() {
    let simulation = run(&SystemModel::default(), &counter(40), &[1]);
    // Unmodified: four messages for each load of the line and four for each store; but for the first pair, of an idle
    // line, two each.
    assert_eq!(
        transactions(&simulation),
        [(4 + 39 * 8, 2 + 39 * 4, 40), (2 + 39 * 4, 2 + 39 * 4, 40)]
    );
    let found = simulation.found();
    assert_eq!(found.iter().map(|load| load.ip).collect::<Vec<_>>(), [1]);
    assert_eq!(simulation.threads(), 4);
    let instructions = simulation.instructions(10);
    let of: Vec<_> = instructions
        .iter()
        .map(|i| {
            (
                i.instruction.ip,
                i.executions,
                i.followed_by_ownership,
                i.costs[0].transactions,
                i.costs[1].transactions,
            )
        })
        .collect();
    assert_eq!(of, [(1, 40, 40, 158, 158), (2, 40, 0, 158, 0)]);
    let lines = simulation.lines(10);
    assert_eq!(lines.len(), 1);
    assert_eq!(
        lines[0]
            .costs
            .iter()
            .map(|c| c.transactions)
            .collect::<Vec<_>>(),
        [316, 158]
    );
    assert_eq!(simulation.lines(0), []);
}

#[test]
fn a_line_that_is_mostly_read_is_not_worth_the_hint_and_the_filter_may_still_find_it() {
    // All four read; once a reader stores at once.
    let mut accesses: Vec<Access> = (0..40)
        .map(|n| emulated(n % 4, 1, 0x1000, Op::Load))
        .collect();
    accesses.insert(0, emulated(0, 1, 0x1000, Op::Load));
    accesses.insert(1, emulated(0, 2, 0x1000, Op::Store));
    let simulation = run(&SystemModel::default(), &accesses, &[1]);
    assert_eq!(simulation.found().len(), 1);
    let [plain, hinted] = transactions(&simulation)[..] else {
        panic!("two scenarios")
    };
    assert!(hinted.0 > 5 * plain.0, "{plain:?} {hinted:?}");
    assert!(hinted.2 > plain.2);
}

#[test]
fn a_repeat_is_an_execution_and_costs_nothing() {
    let mut accesses = counter(4);
    for access in &mut accesses {
        access.measured.repeats = 9;
    }
    let repeated = run(&SystemModel::default(), &accesses, &[1]);
    let once = run(&SystemModel::default(), &counter(4), &[1]);
    assert_eq!(transactions(&repeated), transactions(&once));
    assert_eq!((once.executed().loads, once.executed().stores), (4, 4));
    assert_eq!(
        (repeated.executed().loads, repeated.executed().stores),
        (40, 40)
    );
    assert_eq!(repeated.instructions(1)[0].executions, 40);
    // An execution of a hinted load is one of its prefetch.
    let biased = |simulation: &Simulated| {
        simulation
            .totals()
            .map(|t| t.biased_loads)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (biased(&once), biased(&repeated)),
        (vec![0, 4], vec![0, 40])
    );
}

/// The same with accesses that do not count before.
fn run_from(start: usize, model: &SystemModel, accesses: &[Access], hinted: &[u64]) -> Simulated {
    let mut simulation = Simulation::new(model, 2).expect("a machine that can be");
    simulation.set_counting(false);
    for (number, access) in accesses.iter().enumerate() {
        if number == start {
            simulation.set_counting(true);
        }
        let place = Place::Private {
            space: SPACE,
            addr: access.addr,
        };
        simulation.observe(access, SPACE, place, || {
            Hinted(u8::from(hinted.contains(&access.ip)) << 1)
        });
    }
    simulation.finish()
}

#[test]
fn what_runs_before_counting_begins_leaves_the_line_where_it_is_and_no_messages() {
    let model = SystemModel::default();
    let from_ten = run_from(20, &model, &counter(40), &[1]);
    // The line is another thread's from the first turn on that counts.
    assert_eq!(
        transactions(&from_ten),
        [(30 * 8, 30 * 4, 30), (30 * 4, 30 * 4, 30)]
    );
    assert_eq!(
        (from_ten.executed().loads, from_ten.executed().stores),
        (30, 30)
    );
    assert_eq!(from_ten.instructions(1)[0].executions, 30);
    assert_eq!(from_ten.instructions(1)[0].followed_by_ownership, 30);
    assert_eq!(from_ten.found().len(), 1);
    let all = run_from(0, &model, &counter(40), &[1]);
    assert_eq!(
        transactions(&all),
        transactions(&run(&model, &counter(40), &[1]))
    );
    let none = run_from(1000, &model, &counter(40), &[1]);
    assert_eq!(transactions(&none), [(0, 0, 0), (0, 0, 0)]);
}

#[test]
fn an_access_to_two_lines_is_one_to_each() {
    let at = |addr, size| Access {
        size,
        ..emulated(1, 1, addr, Op::Load)
    };
    let misses = |access| transactions(&run(&SystemModel::default(), &[access], &[]))[0];
    assert_eq!(misses(at(0x1038, 8)), (2, 2, 1));
    assert_eq!(misses(at(0x103c, 8)), (4, 4, 2));
    assert_eq!(misses(at(0x1000, 64)), (2, 2, 1));
    assert_eq!(misses(at(0x1000, 65)), (4, 4, 2));
    assert_eq!(misses(at(0x1000, 0)), (2, 2, 1));
    assert_eq!(misses(at(u64::MAX - 3, 64)), (2, 2, 1));
    let wide = SystemModel {
        line: LineSize::B128,
        ..SystemModel::default()
    };
    assert_eq!(
        transactions(&run(&wide, &[at(0x103c, 8)], &[]))[0],
        (2, 2, 1)
    );
    let executed = run(&SystemModel::default(), &[at(0x103c, 8)], &[]);
    assert_eq!(executed.executed().loads, 1);
}

#[test]
fn a_prefetch_for_ownership_serves_a_load_and_a_plain_one_and_a_sample_are_left_out() {
    let sampled = Access {
        basis: Basis::Sampled,
        ..emulated(1, 5, 0x1000, Op::Store)
    };
    let accesses = [
        emulated(1, 1, 0x1000, Op::PrefetchOwn),
        emulated(1, 2, 0x1000, Op::Rmw),
        emulated(2, 3, 0x1000, Op::Prefetch),
        emulated(2, 4, 0x1000, Op::Unknown),
        sampled,
    ];
    // A hint is for loads only.
    let simulation = run(&SystemModel::default(), &accesses, &[1, 2, 3, 4, 5]);
    assert_eq!(transactions(&simulation), [(2, 2, 1), (2, 2, 1)]);
    let expected = Executed {
        biased_loads: 1,
        stores: 1,
        ignored: 2,
        sampled: 1,
        ..Executed::default()
    };
    assert_eq!(*simulation.executed(), expected);
}

#[test]
fn threads_beyond_the_largest_machine_share_its_processors() {
    let load = |tid| emulated(tid, 1, 0x1000, Op::Load);
    let first = [load(0), load(1)];
    assert_eq!(
        transactions(&run(&SystemModel::default(), &first, &[]))[0].2,
        2
    );
    let all: Vec<Access> = (0..=MOST_PROCESSORS).map(load).collect();
    let simulation = run(&SystemModel::default(), &all, &[]);
    assert_eq!(transactions(&simulation)[0].2, u64::from(MOST_PROCESSORS));
    assert_eq!(simulation.threads(), u64::from(MOST_PROCESSORS) + 1);
}

/// Of each line, its messages, with one machine for all of them.
fn messages_by_line(model: &SystemModel, accesses: &[Access]) -> BTreeMap<u64, u64> {
    let mut machine = Multiprocessor::new(model).expect("a machine that can be");
    let mut lines = Lines::new(model.line);
    let mut messages = BTreeMap::new();
    for access in accesses {
        let key = Place::Private {
            space: SPACE,
            addr: access.addr,
        }
        .line(model.line);
        let (line, intent) = (lines.line(key), Intent::of(access.op));
        let (line, intent) = line.zip(intent).expect("a line and a direction");
        let served = machine.access(Cpu(access.tid.0), line, intent);
        if served.request.is_some() {
            *messages.entry(key.0.position()).or_default() += served.transactions.total();
        }
    }
    messages
}

/// The requests of the first scenario, collected with a machine of its own.
fn request_log(model: &SystemModel, accesses: &[Access]) -> Vec<RequestRow> {
    let mut machine = Multiprocessor::new(model).expect("a machine that can be");
    let mut lines = Lines::new(model.line);
    let rows = (0..).zip(accesses).filter_map(|(number, access)| {
        let key = Place::Private {
            space: SPACE,
            addr: access.addr,
        }
        .line(model.line);
        let line = lines.line(key)?;
        let served = machine.access(Cpu(access.tid.0), line, Intent::of(access.op)?);
        Some(RequestRow {
            number,
            cpu: Cpu(access.tid.0),
            tid: access.tid,
            ip: access.ip,
            target: access.addr,
            line: key.0.position(),
            request: served.request?,
        })
    });
    rows.collect()
}

fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let ops = prop::sample::select(vec![
        Op::Load,
        Op::Load,
        Op::Store,
        Op::Rmw,
        Op::PrefetchOwn,
    ]);
    let access = (0..4u32, 0..12u64, 0..40u64, ops);
    let access = access.prop_map(|(tid, ip, word, op)| emulated(tid, ip, 0x1000 + word * 8, op));
    prop::collection::vec(access, 0..300)
}

/// Caches of two and four lines, so that lines have to leave.
fn small() -> SystemModel {
    let mut model = SystemModel::default();
    (model.l2.bytes, model.l2.ways) = (128, 2);
    (model.l3.bytes, model.l3.ways) = (256, 4);
    model
}

/// The same, and one of several sets, whose lines are simulated apart.
fn models() -> impl Strategy<Value = SystemModel> {
    let mut several = small();
    (several.l2.bytes, several.l2.ways) = (512, 2);
    (several.l3.bytes, several.l3.ways) = (1024, 2);
    assert_eq!(small().independent_sets(), Ok(1));
    assert_eq!(several.independent_sets(), Ok(4));
    prop::sample::select(vec![small(), several])
}

proptest! {
    #[test]
    fn the_filter_finds_the_pairs_of_the_sorted_log(accesses in accesses(), model in models()) {
        let simulation = run(&model, &accesses, &[]);
        let mut log = request_log(&model, &accesses);
        sort_by_line(&mut log);
        for instruction in simulation.instructions(usize::MAX) {
            let pairs = followed_by_ownership(&log);
            let expected = pairs.filter(|(load, _)| load.ip == instruction.instruction.ip).count() as u64;
            prop_assert_eq!(instruction.followed_by_ownership, expected);
        }
    }

    #[test]
    fn lines_of_many_sets_take_what_one_machine_says(
        // Bytes of the caches, in ways of 2: of 512 independent sets, of 6 out of 12 and 18, and of 1 out of 3 and 4.
        (l2, l3) in prop::sample::select(vec![(512 * 128, 512 * 128), (12 * 128, 18 * 128), (3 * 128, 4 * 128)]),
        accesses in prop::collection::vec((0..4u32, 0..1500u64, any::<bool>()), 0..2000),
    ) {
        let mut model = SystemModel::default();
        (model.l2.bytes, model.l2.ways) = (l2, 2);
        (model.l3.bytes, model.l3.ways) = (l3, 2);
        let access = |(tid, line, stores): &(u32, u64, bool)| {
            let op = if *stores { Op::Store } else { Op::Load };
            // Some are far away, in the same sets.
            let far = if line % 3 == 0 { 1 << 30 } else { 0 };
            emulated(*tid, 1, far + line * 64, op)
        };
        let accesses: Vec<Access> = accesses.iter().map(access).collect();
        let simulation = run(&model, &accesses, &[]);
        let lines = simulation.lines(usize::MAX);
        let found = lines.iter().map(|line| (line.key.0.position(), line.costs[0].transactions));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), messages_by_line(&model, &accesses));
    }

    #[test]
    fn hinting_changes_what_is_sent_and_not_what_runs(
        accesses in accesses(),
        hinted in prop::collection::vec(0..12u64, 0..12),
    ) {
        let plain = run(&small(), &accesses, &[]);
        let simulation = run(&small(), &accesses, &hinted);
        prop_assert_eq!(plain.executed(), simulation.executed());
        let executions = |simulation: &Simulated| -> u64 {
            simulation.instructions.iter().map(|i| i.1).sum()
        };
        prop_assert_eq!(executions(&plain), accesses.len() as u64);
        prop_assert_eq!(executions(&simulation), accesses.len() as u64);
        // The first scenario has no hints, whatever the others have.
        prop_assert_eq!(transactions(&plain)[0], transactions(&simulation)[0]);
        if hinted.is_empty() {
            prop_assert_eq!(transactions(&simulation)[0], transactions(&simulation)[1]);
        }
    }

    #[test]
    fn scenarios_that_share_machines_count_what_each_counts_alone(
        accesses in accesses(),
        hinted in prop::collection::vec(0..32u8, 12),
    ) {
        // The first scenario has no hints.
        let of = |ip: u64| hinted[ip as usize] & 0b1_1110;
        let mut together = Simulation::new(&small(), 5).expect("a machine that can be");
        for access in &accesses {
            let place = Place::Private { space: SPACE, addr: access.addr };
            together.observe(access, SPACE, place, || Hinted(of(access.ip)));
        }
        let together = together.finish();
        let counted: Vec<SimulatedTotals> = together.totals().copied().collect();
        prop_assert_eq!(counted.len(), 5);
        for (scenario, counted) in counted.iter().enumerate() {
            let loads: Vec<u64> = (0..12).filter(|ip| of(*ip) & (1 << scenario) != 0).collect();
            let alone = run(&small(), &accesses, &loads);
            let own = usize::from(scenario > 0);
            prop_assert_eq!(Some(counted), alone.totals().nth(own));
            let rows = |simulation: &Simulated, n: usize| -> Vec<_> {
                let rows = simulation.instructions(usize::MAX).into_iter();
                let rows = rows.map(|row| (row.instruction.ip, row.costs[n]));
                let mut rows: Vec<_> = rows.filter(|row| row.1.transactions > 0).collect();
                rows.sort_by_key(|row| row.0);
                rows
            };
            prop_assert_eq!(rows(&together, scenario), rows(&alone, own));
        }
    }

    #[test]
    fn rows_of_lines_and_of_instructions_add_up_to_the_totals(accesses in accesses()) {
        let simulation = run(&small(), &accesses, &[1, 3]);
        for (n, total) in transactions(&simulation).into_iter().enumerate() {
            let sums = |costs: Vec<SimulatedCosts>| {
                costs.iter().fold((0, 0, 0), |sum, costs| {
                    (sum.0 + costs.transactions, sum.1 + costs.load_transactions, sum.2 + costs.l3_misses)
                })
            };
            let of_lines = simulation.lines(usize::MAX).iter().map(|line| line.costs[n]).collect();
            prop_assert_eq!(sums(of_lines), total);
            let instructions = simulation.instructions(usize::MAX);
            prop_assert_eq!(sums(instructions.iter().map(|i| i.costs[n]).collect()), total);
        }
    }
}
