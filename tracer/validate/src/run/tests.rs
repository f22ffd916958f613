use super::*;
use crate::events::named;

/// A counter with a fault, by what was asked for and the number of the run.
struct Faulty(fn(u64, usize) -> f64, usize);

impl Counts for Faulty {
    fn count(&mut self, _: &Event, n: u64, _: &dyn Fn() -> bool) -> Result<Run, NotCounted> {
        self.1 += 1;
        Ok(Run {
            counted: Counted {
                count: self.0(n, self.1),
                lost: 0,
            },
            is_likely: None,
        })
    }
}

fn plan(runs: u32) -> Plan {
    Plan {
        events: vec![named("loads").unwrap()],
        sizes: vec![1, 10, 100, 1000, 10_000, 100_000],
        runs,
        asked_for: |n| n,
    }
}

fn row(plan: &Plan, counts: &mut dyn Counts) -> Row {
    run(plan, counts, &|| false, &mut |_| ()).remove(0)
}

fn class_of(fault: fn(u64, usize) -> f64) -> (String, bool) {
    let row = row(&plan(100), &mut Faulty(fault, 0));
    (row.class.unwrap().to_string(), row.is_right())
}

#[test]
fn seeded_faults_get_their_class_and_only_a_constant_passes() {
    let of = |text: &str, passes| (text.to_owned(), passes);
    assert_eq!(class_of(|n, _| n as f64), of("none", true));
    assert_eq!(class_of(|n, _| n as f64 + 5.0), of("bias (+5.0)", true));
    let drops = |n, _| n as f64 * 0.97;
    assert_eq!(class_of(drops), of("multiplicative (0.970)", false));
    let doubles = |n, run| n as f64 * if run % 5 == 0 { 2.0 } else { 1.0 };
    assert_eq!(class_of(doubles), of("random", false));
    let two_kinds = |n, _| 2.0 * n as f64;
    assert_eq!(class_of(two_kinds), of("multiplicative (2.000)", false));
}

#[test]
fn every_run_of_every_size_is_there_and_sizes_that_an_event_has_not_are_none() {
    let mut counts = Faulty(|n, _| n as f64, 0);
    let mut all = plan(3);
    let mut steps = Vec::new();
    let rows = run(&all, &mut counts, &|| false, &mut |step| steps.push(step));
    assert_eq!(counts.1, 18);
    assert_eq!(steps.len(), 18);
    assert!(steps.windows(2).all(|two| two[0].done < two[1].done));
    assert!(
        rows[0]
            .sizes
            .iter()
            .all(|runs| runs.size.counted.len() == 3)
    );
    all.sizes = vec![10_000_000];
    let row = row(&all, &mut counts);
    assert_eq!((row.class, row.sizes.len()), (None, 0));
    assert_eq!(
        row.missing.as_deref(),
        Some("it has no size but those from 1 to 1000000")
    );
}

#[test]
fn what_was_counted_until_it_was_stopped_is_there_and_has_no_class() {
    let told = std::cell::Cell::new(0);
    let rows = run(
        &plan(2),
        &mut Faulty(|n, _| n as f64, 0),
        &|| told.get() > 3,
        &mut |_| told.set(told.get() + 1),
    );
    assert_eq!(rows[0].missing.as_deref(), Some("interrupted"));
    assert_eq!(rows[0].class, None);
    assert!(!rows[0].is_right());
    let counted: Vec<usize> = (rows[0].sizes.iter())
        .map(|runs| runs.size.counted.len())
        .collect();
    assert_eq!(counted, [2, 1]);
}

#[test]
fn what_was_lost_is_not_right_whatever_the_mean() {
    struct Losing;
    impl Counts for Losing {
        fn count(&mut self, _: &Event, n: u64, _: &dyn Fn() -> bool) -> Result<Run, NotCounted> {
            Ok(Run {
                counted: Counted {
                    count: n as f64,
                    lost: 1,
                },
                is_likely: None,
            })
        }
    }
    let row = row(&plan(1), &mut Losing);
    assert_eq!(row.class, Some(ErrorClass::None));
    assert!(!row.is_right());
}

#[test]
fn samples_are_right_as_long_as_chance_explains_how_far_they_are_off() {
    let sized = |likely| SizeRuns {
        n: 100_000,
        size: Size {
            predicted: SHARE_PERCENT,
            counted: vec![31.0; 100],
        },
        likely: Some(likely),
    };
    assert_eq!(class(&[sized(99)]), Some(ErrorClass::None));
    assert_eq!(class(&[sized(90)]), Some(ErrorClass::Unknown));
    let of = |inside, all| share(Samples { inside, all }).is_likely;
    assert_eq!(of(310, 1000), Some(true));
    assert_eq!(of(400, 1000), Some(false));
    assert_eq!(of(0, 0), Some(false));
}
