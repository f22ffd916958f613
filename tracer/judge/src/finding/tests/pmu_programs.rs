//! Shapes of sharing with known answers, as a PMU samples them, each with its negative twin.

use super::{
    answers::{expect_findings, expect_reason, summary},
    pmu::{PEBS, Pmu, run},
    programs::{Worker, add, load, store, worker},
};
use crate::{
    access::{Cost, Op, Place},
    analysis::AnalysisOptions,
    distribution::{Distributions, Quantity},
    finding::{Fact, Judgement, Reason, Significance, Thresholds, Verdict},
    pipeline::Pipeline,
};

use Op::{Load, Rmw, Store};
use Verdict::{FalseSharing, TrueSharing};

const SEEDS: u64 = 5;
const DURATION_MS: u64 = 400;

fn judged(threads: &[Worker], pmu: Pmu, seed: u64) -> Vec<Judgement> {
    let batch = run(threads, pmu, DURATION_MS, seed);
    let options = AnalysisOptions {
        sample_period_ns: 0,
        ..AnalysisOptions::default()
    };
    let mut pipeline = Pipeline::new(options, Thresholds::default());
    assert_eq!(batch.tally.samples as usize, batch.accesses.len());
    pipeline.feed(&batch);
    pipeline.judge()
}

/// Checks that exactly these lines are findings, whatever the seed.
fn check(threads: &[Worker], pmu: Pmu, expected: &[(u64, Verdict)]) {
    for seed in 0..SEEDS {
        let judgements = judged(threads, pmu, seed);
        expect_findings(&judgements, expected, seed);
    }
}

/// Checks that nothing is a finding and that the first line listed is not one for this reason.
fn check_reason(threads: &[Worker], pmu: Pmu, reason: Reason) -> Judgement {
    check(threads, pmu, &[]);
    for seed in 0..SEEDS {
        let judgements = judged(threads, pmu, seed);
        expect_reason(judgements.first(), reason, &judgements, seed);
    }
    judged(threads, pmu, 0).remove(0)
}

/// Reads, then writes its own counter.
fn counter(at: u64) -> Worker {
    worker(&[load(at), store(at)])
}

/// Reads memory of its own that no cache keeps, so that latency is not of one line alone.
fn elsewhere(n: u64) -> Worker {
    let steps: Vec<_> = (0..64)
        .map(|i| load(0x10_0000 * (n + 1) + i * 64))
        .collect();
    worker(&steps)
}

#[test]
fn one_store_sampled_in_thousands_of_steps_still_meets_the_loads_that_prove_turns() {
    // About 20 stores in 0.4 s.
    let sparse = Pmu {
        stores: 20_000,
        ..PEBS
    };
    let threads = [worker(&[load(0)]), worker(&[store(8)])];
    check(&threads, sparse, &[(0, FalseSharing)]);
    // So far apart in time that no window has a load and a store.
    let apart = |keeps_sources: bool| {
        let mut batch = run(&threads, sparse, DURATION_MS, 1);
        for (n, access) in (0..).zip(&mut batch.accesses) {
            access.time_ns = 10_000_000_000 + n * 1_000_000_000;
            if !keeps_sources {
                access.measured.source = None;
            }
        }
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        pipeline.feed(&batch);
        pipeline.judge().remove(0)
    };
    assert_eq!(apart(true).verdict, Some(FalseSharing));
    assert!(apart(true).is_finding());
    assert_eq!(apart(false).verdict, None);
}

#[test]
fn a_writer_that_is_never_sampled_is_said_to_be_missing_and_not_that_the_line_is_read_only() {
    let unseen = Pmu { stores: 0, ..PEBS };
    let threads = [worker(&[load(0)]), worker(&[load(8)]), worker(&[store(16)])];
    let line = check_reason(&threads, unseen, Reason::WriterNotSampled);
    assert!(line.significance.moves());
    assert_eq!(line.verdict, None);
    assert!(
        line.facts.contains(&Fact::WriterUnknown),
        "{:?}",
        line.facts
    );
    assert!(line.facts.contains(&Fact::LoadedApart), "{:?}", line.facts);
    assert!(!line.facts.contains(&Fact::NoStoreSeen));
    assert!(line.shared_share.is_some_and(|share| share > 0.5));
    // One reader is enough to know that somebody else writes.
    let one = check_reason(&threads[1..], unseen, Reason::WriterNotSampled);
    assert_eq!(one.threads.len(), 1);
    assert!(!one.facts.contains(&Fact::LoadedApart));
    // Where all read the same word, nothing hints at false sharing.
    let same = [worker(&[load(0)]), worker(&[load(0)]), worker(&[store(0)])];
    let line = check_reason(&same, unseen, Reason::WriterNotSampled);
    assert!(!line.facts.contains(&Fact::LoadedApart));
}

#[test]
fn an_initialisation_that_was_sampled_is_not_the_writer_that_was_not() {
    let mut first = worker(&[store(0), store(8)]);
    first.only_during(0..40);
    let mut unsampled = worker(&[add(16)]);
    unsampled.only_during(200..DURATION_MS);
    let mut reader = worker(&[load(0)]);
    reader.only_during(200..DURATION_MS);
    // The adder's samples are of a thread that the source does not see at all.
    let mut threads = [first, reader, unsampled];
    let seen = |threads: &[Worker], seed| {
        let mut batch = run(threads, PEBS, DURATION_MS, seed);
        batch.accesses.retain(|access| access.op != Rmw);
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        pipeline.feed(&batch);
        pipeline.judge()
    };
    for seed in 0..SEEDS {
        let line = &seen(&threads, seed)[0];
        let expected = Significance::Insignificant(Reason::WriterNotSampled);
        assert_eq!(
            (line.significance, line.verdict),
            (expected, None),
            "seed {seed}"
        );
    }
    // The same stores while the reader reads are a writer.
    threads[0].only_during(200..240);
    for seed in 0..SEEDS {
        assert!(seen(&threads, seed)[0].verdict.is_some(), "seed {seed}");
    }
}

#[test]
fn a_line_that_all_read_is_nothing_however_hot() {
    let reads = |n| {
        let mut steps = elsewhere(n).steps;
        steps.extend([load(0), load(8)]);
        worker(&steps)
    };
    check(&[reads(0), reads(1), reads(2)], PEBS, &[]);
    for judgement in judged(&[reads(0), reads(1)], PEBS, 1) {
        assert!(!judgement.significance.moves(), "{judgement:?}");
    }
}

#[test]
fn loads_that_memory_served_waited_for_no_other_cpu_whoever_stores_in_between() {
    let served_by = |word: u64, seed| {
        let threads = [worker(&[load(0)]), worker(&[store(8)])];
        let mut batch = run(&threads, PEBS, DURATION_MS, seed);
        for access in batch.accesses.iter_mut().filter(|a| a.op == Load) {
            access.measured.source = crate::data_source::DataSource::new(word);
        }
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        pipeline.feed(&batch);
        pipeline.judge().remove(0)
    };
    for seed in 0..SEEDS {
        let from_memory = served_by(0x1a_4908_1042, seed);
        let expected = Significance::Insignificant(Reason::ServedApart);
        assert_eq!(from_memory.significance, expected, "seed {seed}");
        // Of a line that was on its way nothing is said, and the order decides.
        let in_flight = served_by(0x118_6810_0242, seed);
        assert!(in_flight.is_finding(), "seed {seed}: {in_flight:?}");
    }
}

#[test]
fn phases_are_nothing() {
    let mut threads = [counter(0), counter(8)];
    threads[0].only_during(0..DURATION_MS / 2);
    threads[1].only_during(DURATION_MS / 2..DURATION_MS);
    // The second one's first load finds it modified: once.
    check(&threads, PEBS, &[]);
}

#[test]
fn modified_in_another_node_is_told_from_modified_in_this_one() {
    let mut threads = [counter(0), counter(8)];
    let local = judged(&threads, PEBS, 1)[0].pmu.expect("sampled");
    assert!(
        local.local_hitm > 100 && local.remote_hitm == 0,
        "{local:?}"
    );
    threads[1].node = 1;
    let remote = judged(&threads, PEBS, 1)[0].pmu.expect("sampled");
    assert!(
        remote.remote_hitm > 100 && remote.local_hitm == 0,
        "{remote:?}"
    );
    assert!(remote.latency_cycles > local.latency_cycles);
}

#[test]
fn latencies_of_loads_are_spread_as_they_were_sampled_and_nothing_else_is() {
    let threads = [counter(0), counter(8)];
    let judgement = &judged(&threads, PEBS, 1)[0];
    let spread: Vec<_> = judgement.distributions.iter().collect();
    let [(Quantity::LoadLatency, latencies)] = spread[..] else {
        panic!("{spread:?}");
    };
    let pmu = judgement.pmu.expect("sampled");
    let mean = pmu.mean_latency().expect("measured");
    let [p50, p99] = [0.5, 0.99].map(|share| latencies.quantile(share).unwrap() as f64);
    assert!(latencies.count() <= pmu.timed && latencies.count() > 100);
    assert!(p50 / 2.0 < mean && mean < 1.07 * p99, "{p50} {mean} {p99}");
    // Stores have none.
    let stores = Pmu { loads: 0, ..PEBS };
    let unmeasured = judged(&threads, stores, 1);
    assert!(!unmeasured.is_empty());
    assert!(
        unmeasured
            .iter()
            .all(|judged| judged.distributions == Distributions::default())
    );
}

#[test]
fn without_hitm_lines_from_other_caches_are_the_evidence() {
    let spe = Pmu {
        tells_hitm: false,
        times_stores: true,
        ..PEBS
    };
    check(&[counter(0), counter(8)], spe, &[(0, FalseSharing)]);
    check(&[counter(0), counter(64)], spe, &[]);
    let loads = Pmu { stores: 0, ..spe };
    let threads = [worker(&[load(0)]), worker(&[store(8)])];
    let line = check_reason(&threads, loads, Reason::FromOtherCaches);
    // Clean or modified: it does not say, so a writer is not claimed.
    assert!(line.facts.contains(&Fact::NoStoreSeen));
    assert!(!line.facts.contains(&Fact::WriterUnknown));
}

#[test]
fn stores_alone_are_false_sharing_though_nothing_measures_what_they_cost() {
    let writes = |at| worker(&[store(at)]);
    check(
        &[writes(0), writes(8), elsewhere(0)],
        PEBS,
        &[(0, FalseSharing)],
    );
    check(&[writes(0), writes(64), elsewhere(0)], PEBS, &[]);
    let line = judged(&[writes(0), writes(8), elsewhere(0)], PEBS, 1).remove(0);
    assert!(matches!(line.facts[..], [.., Fact::UntimedStores(n)] if n > 1000));
    assert_eq!(line.cost, Cost(0));
}

#[test]
fn words_of_unknown_size_are_false_sharing_and_halves_of_a_word_are_undecided() {
    let unknown = Pmu {
        sizes: false,
        ..PEBS
    };
    check(&[counter(0), counter(8)], unknown, &[(0, FalseSharing)]);
    let line = &judged(&[counter(0), counter(8)], unknown, 1)[0];
    assert!(line.facts.contains(&Fact::UnknownSizes));
    check(&[counter(8), counter(8)], unknown, &[(0, TrueSharing)]);
    let halves = [counter(0), counter(4)];
    let line = check_reason(&halves, unknown, Reason::SizesUnknown);
    assert_eq!(line.verdict, None);
    assert!(line.significance.moves());
}

#[test]
fn touches_without_a_direction_make_no_verdict_and_meet_stores() {
    let direction = |unknown: Op| {
        let mut batch = run(&[counter(0), counter(8)], PEBS, DURATION_MS, 3);
        for access in batch.accesses.iter_mut().filter(|a| a.op == unknown) {
            access.op = Op::Unknown;
            access.measured = crate::access::Measured::default();
        }
        let mut pipeline = Pipeline::new(AnalysisOptions::default(), Thresholds::default());
        pipeline.feed(&batch);
        pipeline.judge().remove(0)
    };
    assert_eq!(direction(Load).verdict, Some(FalseSharing));
    let stores = direction(Store);
    assert_eq!(stores.verdict, None);
    assert!(!stores.is_finding());
}

#[test]
fn data_sources_that_are_not_available_are_counted() {
    let third = Pmu {
        not_available: 3,
        ..PEBS
    };
    check(&[counter(0), counter(8)], third, &[(0, FalseSharing)]);
    let pmu = judged(&[counter(0), counter(8)], third, 1)[0]
        .pmu
        .expect("sampled");
    let share = pmu.not_available as f64 / pmu.sampled as f64;
    assert!((0.25..0.42).contains(&share), "{pmu:?}");
}

#[test]
fn processes_without_a_mapping_meet_by_physical_address_and_not_without_one() {
    let mut threads = [counter(0), counter(8)];
    threads[1].pid = 200;
    threads[1].mapped = 0x5555_0000;
    let physical = Pmu {
        physical: true,
        ..PEBS
    };
    for seed in 0..SEEDS {
        let judgements = judged(&threads, physical, seed);
        let line = &judgements[0];
        let addr = 0x1_2340_0000;
        assert_eq!(line.key.0, Place::Physical { addr });
        assert_eq!(line.verdict, Some(FalseSharing), "{}", summary(&judgements));
        assert!(line.is_finding());
    }
    let apart = judged(&threads, PEBS, 1);
    assert!(apart.iter().all(|line| line.verdict.is_none()));
    assert!(apart.iter().all(|line| line.threads.len() == 1));
}
