use cohtrace_platform::machine::fixture;

use super::*;
use crate::run::Machinery;

/// Costs that are the number of the run, times something.
struct Growing(f64, u32);

impl Charges for Growing {
    fn charge(&mut self, _: &Cost) -> Result<Charge, NotCounted> {
        self.1 += 1;
        let cycles = 100.0 + self.0 * f64::from(self.1);
        Ok(Charge {
            cycles,
            ns: cycles / 4.0,
        })
    }
}

/// A machine that does not tell what its caches are.
struct Without;

impl Charges for Without {
    fn charge(&mut self, _: &Cost) -> Result<Charge, NotCounted> {
        Err(NotCounted::NoInstructionCache)
    }
}

fn named(name: &str) -> &'static Cost {
    COSTS.iter().find(|cost| cost.name == name).unwrap()
}

fn rows(names: &[&str], runs: u32, charges: &mut dyn Charges) -> Vec<CostRow> {
    let costs: Vec<&Cost> = names.iter().map(|name| named(name)).collect();
    measure(&costs, runs, charges, &|| false, &mut |_| ())
}

#[test]
fn a_cost_repeats_when_its_runs_agree_and_not_when_they_do_not() {
    let of = |growth| rows(&["fp-add"], 10, &mut Growing(growth, 0)).remove(0);
    assert_eq!(of(0.5).repeats(), Some(true));
    assert_eq!(of(5.0).repeats(), Some(false));
    let row = of(1.0);
    let charge = |cycles| Charge {
        cycles,
        ns: cycles / 4.0,
    };
    assert_eq!(row.median(), Some(charge(106.0)));
    assert_eq!(row.range(), Some((charge(101.0), charge(110.0))));
    // The clock may be another one in each run.
    let mut slower = row;
    slower.charges[0].ns = 100.0;
    assert_eq!(slower.range().unwrap().1.ns as u64, 100);
    // One run agrees with itself, which says nothing.
    assert_eq!(
        rows(&["fp-add"], 1, &mut Growing(0.0, 0))[0].repeats(),
        None
    );
}

#[test]
fn costs_are_measured_by_turns() {
    let measured = rows(&["fp-add", "fp-mul"], 2, &mut Growing(1.0, 0));
    let cycles = |row: &CostRow| row.charges.iter().map(|c| c.cycles).collect::<Vec<_>>();
    assert_eq!(cycles(&measured[0]), [101.0, 103.0]);
    assert_eq!(cycles(&measured[1]), [102.0, 104.0]);
}

#[test]
fn what_was_stopped_or_cannot_be_measured_is_told() {
    let costs = [named("fp-add")];
    let mut none = Growing(1.0, 0);
    let stopped = measure(&costs, 5, &mut none, &|| true, &mut |_| ());
    assert_eq!(stopped[0].missing.as_deref(), Some("interrupted"));
    assert!(!stopped[0].absent && stopped[0].median().is_none());
    assert!(rows(&["code-half-l1i"], 5, &mut Without)[0].absent);
}

#[test]
fn half_of_random_branches_are_missed_and_the_width_is_that_of_the_best_group() {
    let row = |name, cycles| CostRow {
        cost: named(name),
        charges: vec![Charge { cycles, ns: 1.0 }],
        missing: None,
        absent: false,
    };
    let derived = Derived::of(&[
        row(PREDICTED, 4.0),
        row(RANDOM, 12.0),
        row(HALF, 1.5),
        row(TWICE, 4.0),
        row("adds-1", 1.0),
        row("adds-4", 1.0),
        row("adds-8", 2.5),
    ]);
    let expected = Derived {
        branch_miss_cycles: Some(16.0),
        code_line_cycles: Some(2.5),
        issue_width: Some(4.0),
    };
    assert_eq!(derived, expected);
    assert_eq!(Derived::of(&[row(RANDOM, 12.0)]), Derived::default());
}

#[test]
fn the_instruction_cache_is_the_one_that_sysfs_tells_and_not_that_of_data() {
    let machine = Machine::probe(fixture::kvm_amd().root());
    assert_eq!(instruction_cache(&machine).unwrap(), 32 << 10);
    let untold = fixture::kvm_amd();
    untold.remove("sys/devices/system/cpu/cpu0/cache/index1");
    let machine = Machine::probe(untold.root());
    assert!(instruction_cache(&machine).unwrap_err().is_absent());
}

/// The least of some runs on this machine: what nothing disturbed.
fn least(names: &[&str]) -> Vec<f64> {
    let mut machinery = Machinery::new(None).unwrap();
    let rows = rows(names, 7, &mut machinery);
    let of = |row: &CostRow| {
        assert_eq!(row.missing, None, "{}", row.cost.name);
        row.range().unwrap().0.cycles
    };
    rows.iter().map(of).collect()
}

#[test]
fn operations_on_reals_take_what_every_core_of_these_years_takes() {
    let took = least(&["fp-add", "fp-mul", "fp-div", "fp-sqrt"]);
    // Zen: 3, 3, 13, 21. Others: 2 to 5 for the first two, and up to 40 for old dividers.
    let ranges = [1.5..7.0, 2.0..8.0, 6.0..60.0, 8.0..80.0];
    for (took, range) in took.iter().zip(ranges) {
        assert!(range.contains(took), "{took} cycles, not {range:?}");
    }
    assert!(
        took[2] > 1.5 * took[1] && took[3] > 1.5 * took[1],
        "{took:?}"
    );
}

#[test]
fn a_random_branch_costs_more_than_its_twin_that_is_predicted() {
    let took = least(&[PREDICTED, RANDOM]);
    assert!(took[1] > took[0] + 3.0, "{took:?}");
}

#[test]
fn code_beyond_the_instruction_cache_costs_more_than_code_within_it() {
    let machine = Machine::probe("/".as_ref());
    if instruction_cache(&machine).is_err() {
        cohtrace_skips::skipped("nothing tells how large the instruction cache is");
        return;
    }
    let took = least(&[HALF, TWICE]);
    assert!(took[1] > 1.2 * took[0], "{took:?}");
}

#[test]
fn two_additions_at_once_take_as_long_as_one_and_eight_do_not() {
    let took = least(&["adds-1", "adds-2", "adds-8"]);
    assert!((0.9..1.15).contains(&took[0]), "{took:?}");
    assert!(
        took[1] < 1.3 * took[0] && took[2] > 1.1 * took[0],
        "{took:?}"
    );
}
