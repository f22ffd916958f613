use super::*;
use crate::{
    access::{LineKey, Op, Place, SpaceId},
    analysis::site_fixture::site,
    finding::judged_fixture::judged,
};

const LINE: LineKey = LineKey(Place::Private {
    space: SpaceId(0),
    addr: 0x7000,
});
const MS: u64 = 1_000_000;

/// A thread beside another for 20 ms, then alone for 2 ms, at so much a microsecond.
fn read(tid: u32, beside: u64, alone: u64) -> Pace {
    Pace {
        pid: Pid(9),
        tid: Tid(tid),
        addr: 0x7000,
        len: 8,
        line_addr: 0x7000,
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

fn paces(readings: impl IntoIterator<Item = Pace>) -> Paces {
    let mut paces = Paces::default();
    for read in readings {
        paces.observe(LINE, LINE, &read);
    }
    paces
}

fn line() -> Judgement {
    judged(
        LINE,
        vec![site(1, 0, 8, Op::Rmw, 10), site(2, 8, 8, Op::Rmw, 10)],
    )
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_thread_that_is_thrice_as_fast_without_the_others_gains_that() {
    let all = (0..10).map(|_| read(1, 50, 150));
    let gain = Gain::held(&line(), &paces(all)).unwrap();
    assert_eq!((gain.grade, gain.threads.len()), (Grade::Held, 1));
    let thread = gain.threads[0];
    assert!(near(thread.times, 3.0) && near(gain.low, 3.0) && near(gain.high.unwrap(), 3.0));
    assert_eq!((thread.readings, thread.apart), (10, false));
    assert!(near(thread.beside_per_s, 50e6));
}

#[test]
fn a_thread_that_is_as_fast_without_the_others_gains_nothing() {
    let gain = Gain::held(&line(), &paces((0..10).map(|_| read(1, 50, 50)))).unwrap();
    assert!(gain.high.unwrap() < WORTH);
}

#[test]
fn what_others_do_to_a_thread_is_taken_over_all_readings_and_the_interval_has_each() {
    // 25 and 75 beside the other, in turns; 150 alone.
    let all = (0..10).map(|n| read(1, if n % 2 == 0 { 25 } else { 75 }, 150));
    let gain = Gain::held(&line(), &paces(all)).unwrap();
    assert!(near(gain.threads[0].times, 3.0));
    assert!(near(gain.low, 2.0) && near(gain.high.unwrap(), 6.0));
}

#[test]
fn readings_in_which_the_others_hardly_ran_are_left_out_unless_there_are_no_others() {
    let apart = |n| Pace {
        others_run_ns: MS,
        ..read(1, if n < 5 { 150 } else { 140 }, 150)
    };
    let mixed = (0..5).map(apart).chain((0..5).map(|_| read(1, 50, 150)));
    let gain = Gain::held(&line(), &paces(mixed)).unwrap();
    assert!(near(gain.threads[0].times, 3.0) && !gain.threads[0].apart);
    let gain = Gain::held(&line(), &paces((0..5).map(apart))).unwrap();
    assert!(gain.threads[0].apart && near(gain.threads[0].times, 1.0));
}

#[test]
fn holds_that_ended_early_and_too_few_of_them_tell_nothing() {
    let stuck = (0..10).map(|_| Pace {
        end: HoldEnd::Stuck,
        alone: Growth::default(),
        ..read(1, 50, 0)
    });
    assert_eq!(Gain::held(&line(), &paces(stuck)), None);
    let few = (0..2).map(|_| read(1, 50, 150));
    assert_eq!(Gain::held(&line(), &paces(few)), None);
}

#[test]
fn a_share_is_a_bound_only_where_the_instruction_waits_in_place() {
    let mut locked = line();
    locked.shared_share = Some(0.6);
    locked.cost = crate::access::Cost(200);
    for site in &mut locked.sites {
        site.cost = crate::access::Cost(100);
        site.site.locked = true;
    }
    let gain = Gain::estimated(&locked).unwrap();
    assert!(near(gain.low, 1.0) && near(gain.high.unwrap(), 2.5));
    for site in &mut locked.sites {
        site.site.locked = false;
    }
    assert_eq!(Gain::estimated(&locked).unwrap().high, None);
    for site in &mut locked.sites {
        site.waits.at_barrier = site.cost;
    }
    assert!(near(Gain::estimated(&locked).unwrap().high.unwrap(), 2.5));
}

#[test]
fn a_rate_and_what_a_turn_takes_alone_give_the_new_time() {
    // A turn takes 13.3 ns, of which 97.9 % are waited; alone it takes 4.85 ns (measured: 2.7 times as fast).
    let own = 4.85 / 13.3;
    let gain = Gain::rated(&line(), &paces((0..5).map(|_| read(1, 75, 0))), |rate| {
        assert!(near(rate.per_s, 75e6) && near(rate.running, 1.0));
        assert_eq!(rate.line, LINE);
        Some((0.979, own))
    });
    let gain = gain.unwrap();
    assert!((2.5..2.7).contains(&gain.threads[0].times), "{gain:?}");
    assert!(gain.low < 2.2 && gain.high.unwrap() > 3.1);
}

#[test]
fn a_rate_that_is_not_steady_rates_nothing() {
    let unsteady = (0..10).map(|n| read(1, 20 + 20 * n, 0));
    let rated = Gain::rated(&line(), &paces(unsteady), |_| Some((0.5, 0.1)));
    assert_eq!(rated, None);
    let few = (0..4).map(|_| read(1, 75, 0));
    assert_eq!(
        Gain::rated(&line(), &paces(few), |_| Some((0.5, 0.1))),
        None
    );
}

#[test]
fn time_in_which_the_others_were_off_their_cpus_is_taken_out() {
    // Of 20 ms they ran 18; in the other two the thread was as fast as alone: 18 * 50 + 2 * 300 a microsecond.
    let mixed = Pace {
        beside: Growth {
            added: 1_500_000,
            run_ns: 20 * MS,
        },
        others_run_ns: 18 * MS,
        ..read(1, 0, 300)
    };
    let gain = Gain::held(&line(), &paces((0..10).map(|_| mixed))).unwrap();
    assert!(near(gain.threads[0].times, 6.0), "{gain:?}");
    assert!(near(gain.threads[0].beside_per_s, 50e6));
}
