//! What reports say that a change gains.

use super::{plain, two_counters};
use crate::{
    access::{LineKey, Op, Pid, Place, SpaceId, Tid},
    analysis::Paces,
    event::{Growth, HoldEnd, Pace},
    finding::{Grade, Judgement},
    names::{Outcome, WordUse},
    report::{
        OwnCosts, RunFacts, build,
        fixture::{FakeNames, LINE, facts, judgement, site, tally},
        model::{FindingId, Report},
    },
};

const MS: u64 = 1_000_000;

fn line(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

/// Of a thread whose word grows by so many in a microsecond beside the other thread, and alone.
fn read(tid: u32, addr: u64, beside: u64, alone: u64) -> Pace {
    Pace {
        pid: Pid(4000),
        tid: Tid(tid),
        addr,
        len: 8,
        line_addr: addr & !63,
        beside: Growth {
            added: beside * 20_000,
            run_ns: 20 * MS,
        },
        others_run_ns: 20 * MS,
        beside_ns: 20 * MS,
        alone: Growth {
            added: alone * 2_000,
            run_ns: 2 * MS,
        },
        held_ns: 2 * MS,
        held: 1,
        in_system_call: 0,
        others: 1,
        end: HoldEnd::Held,
    }
}

fn with_paces(readings: impl IntoIterator<Item = Pace>) -> RunFacts {
    let mut paces = Paces::default();
    for read in readings {
        let line = line(read.line_addr);
        paces.observe(line, line, &read);
    }
    RunFacts { paces, ..facts() }
}

fn ten_times(reads: [Pace; 2]) -> impl Iterator<Item = Pace> {
    (0..10).flat_map(move |_| reads)
}

fn made(judgements: &[Judgement], names: &FakeNames, run: &RunFacts) -> Report {
    build(&judgements.into(), &[], names, &tally(), run)
}

#[test]
fn a_held_gain_names_each_thread_its_word_and_how_often_it_was_seen() {
    let (judgement, names) = two_counters();
    let reads = [read(4001, LINE, 50, 70), read(4002, LINE + 8, 100, 300)];
    let report = made(&[judgement], &names, &with_paces(ten_times(reads)));
    let gain = report.findings[0].gain.as_ref().unwrap();
    assert_eq!((gain.grade, gain.per_thread.len()), (Grade::Held, 2));
    assert!((gain.low - 1.4).abs() < 1e-9 && (gain.high.unwrap() - 3.0).abs() < 1e-9);
    let words: Vec<_> = gain
        .per_thread
        .iter()
        .map(|thread| thread.word.as_deref())
        .collect();
    assert_eq!(words, [Some("stats.hits"), Some("stats.misses")]);
    let text = plain(&report);
    assert!(
        text.contains(
            "gain worker 4001 would be 1.4 times as fast (1.4 to 1.4) and worker 4002 3.0 times"
        ),
        "{text}"
    );
    assert!(text.contains("seen in 10 holds"), "{text}");
    let rates: Vec<f64> = report.rates.iter().map(|rate| rate.per_s.round()).collect();
    assert_eq!(rates, [100e6, 50e6]);
}

#[test]
fn a_finding_that_nothing_is_gained_by_says_so_and_stands_behind_one_that_costs_less() {
    let (costly, names) = two_counters();
    let cheap = Judgement {
        key: line(LINE + 64),
        ..judgement(
            crate::finding::Verdict::FalseSharing,
            0.0,
            vec![
                site(0, 8, Op::Rmw, 4003, 0x401136, 400, 0),
                site(8, 8, Op::Rmw, 4004, 0x401166, 400, 0),
            ],
        )
    };
    let vain = [read(4001, LINE, 50, 50), read(4002, LINE + 8, 50, 50)];
    let report = made(
        &[costly.clone(), cheap.clone()],
        &names,
        &with_paces(ten_times(vain)),
    );
    assert_eq!(report.findings[0].line.key, cheap.key);
    assert_eq!(report.findings[1].line.key, costly.key);
    let second = FindingId {
        insignificant: false,
        number: 2,
    };
    assert_eq!(report.findings[1].id, second);
    let text = plain(&report);
    assert!(
        text.contains("gain Nothing worth a change: worker 4001 would be 1.00 times"),
        "{text}"
    );
    // The twin: where something is gained the costlier one is first.
    let good = [read(4001, LINE, 50, 70), read(4002, LINE + 8, 50, 70)];
    let report = made(
        &[costly.clone(), cheap],
        &names,
        &with_paces(ten_times(good)),
    );
    assert_eq!(report.findings[0].line.key, costly.key);
}

/// Both threads add one, locked, and do next to nothing else: 75 additions in a microsecond, 98 % of the time waited.
fn locked() -> (Judgement, FakeNames, RunFacts) {
    let (_, names) = two_counters();
    let adds = WordUse::Add {
        step: Some(1),
        outcome: Outcome::Unused,
    };
    let names = names.does(0x401136, adds).does(0x401166, adds);
    let mut sites = vec![
        site(0, 8, Op::Rmw, 4001, 0x401136, 4900, 0),
        site(8, 8, Op::Rmw, 4002, 0x401166, 4900, 0),
    ];
    for site in &mut sites {
        site.site.locked = true;
    }
    let judgement = judgement(crate::finding::Verdict::FalseSharing, 0.0, sites);
    let beside = [read(4001, LINE, 75, 0), read(4002, LINE + 8, 75, 0)].map(|read| Pace {
        alone: Growth::default(),
        held_ns: 0,
        held: 0,
        end: HoldEnd::Beside,
        ..read
    });
    (judgement, names, with_paces(ten_times(beside)))
}

#[test]
fn a_rated_gain_takes_what_the_machine_charges_and_without_that_it_is_estimated() {
    let (judgement, names, run) = locked();
    let costs = RunFacts {
        own_costs: Some(OwnCosts { locked_ns: 4.85 }),
        ..run.clone()
    };
    let report = made(std::slice::from_ref(&judgement), &names, &costs);
    let gain = report.findings[0].gain.as_ref().unwrap();
    assert_eq!(gain.grade, Grade::Rated);
    let times = gain.per_thread[0].times;
    assert!((2.4..2.8).contains(&times), "{times}");
    let report = made(&[judgement], &names, &run);
    let gain = report.findings[0].gain.as_ref().unwrap();
    assert_eq!((gain.grade, gain.low), (Grade::Estimated, 1.0));
    assert!(gain.high.unwrap() > 5.0, "{gain:?}");
    assert!(gain.basis.contains("`--hold` does"), "{gain:?}");
}

#[test]
fn a_thread_that_does_more_than_its_addition_is_not_rated() {
    let (mut judgement, names, run) = locked();
    // Half of the time is work, which may run while the addition waits.
    for site in &mut judgement.sites {
        site.cost = crate::access::Cost(2_500 * MS);
    }
    judgement.cost = crate::access::Cost(5_000 * MS);
    let run = RunFacts {
        own_costs: Some(OwnCosts { locked_ns: 4.85 }),
        ..run
    };
    let report = made(&[judgement], &names, &run);
    assert_eq!(
        report.findings[0].gain.as_ref().unwrap().grade,
        Grade::Estimated
    );
}

#[test]
fn holds_that_told_nothing_say_why() {
    let (judgement, names) = two_counters();
    let stuck = [read(4001, LINE, 50, 0), read(4002, LINE + 8, 50, 0)].map(|read| Pace {
        alone: Growth::default(),
        end: HoldEnd::Stuck,
        ..read
    });
    let report = made(&[judgement], &names, &with_paces(ten_times(stuck)));
    let gain = report.findings[0].gain.as_ref().unwrap();
    assert_eq!(gain.grade, Grade::Estimated);
    assert!(
        gain.basis
            .contains("had a lock that it waits for (20 readings)"),
        "{gain:?}"
    );
}
