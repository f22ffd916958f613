//! What holds of any stream.

use proptest::prelude::*;

use super::{
    Access, Basis, Batch, Cpu, Fold, Key, MS, Op, Per, Pid, START, Table, Tid, batch, count,
    options, sample,
};
use crate::{MOST_CELLS, Refusal, access::Cost, statistic::Sums};

/// All that add up, and shares.
const ADDING: &str = "samples,samples.kernel_share,samples.loads,samples.stores,samples.read_writes,samples.locked,\
                      time.*,executions.*,requests.*,messages,watch.stores";

fn access() -> impl Strategy<Value = Access> {
    let who = (0_u32..4, 0_u32..3, 0_u64..4, any::<bool>());
    let what = (0_usize..6, 0_usize..6, 1_u32..2000, any::<bool>());
    (0_u64..1_200 * MS, who, what).prop_map(|(time, (thread, cpu, line, kernel), what)| {
        let (op, basis, cost, locked) = what;
        let basis = Basis::ALL[basis];
        Access {
            time_ns: START - 100 * MS + time,
            addr: 0x1000 + line * 32,
            cpu: Cpu(cpu),
            pid: Pid(10 + thread / 2),
            tid: Tid(11 + thread),
            op: Op::ALL[op],
            basis,
            cost: Cost(if basis == Basis::Stalled { cost } else { 0 }),
            locked,
            kernel,
            ..sample(0, 0, 0)
        }
    })
}

fn stream() -> impl Strategy<Value = Vec<Access>> {
    proptest::collection::vec(access(), 0..200).prop_map(|mut accesses| {
        accesses.sort_by_key(|access| access.time_ns);
        accesses
    })
}

/// Part and whole of each statistic of the run.
fn totals(table: &Table, key: Key) -> Vec<(Option<u64>, Option<u64>)> {
    let row = table.rows.iter().find(|row| row.key == key).expect("a row");
    let values = row.total.iter();
    values.map(|value| (value.amount, value.whole)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slices_and_keys_add_up_to_the_whole_and_cutting_changes_nothing(
        accesses in stream(),
        interval in 1_u64..400,
        per in 0_usize..3,
        cut in 0_usize..200,
    ) {
        let per = [Per::Cpu, Per::Thread, Per::Process][per];
        let uncut = count(options(ADDING, None, Per::All), &[batch(accesses.clone())]);
        let mut first = accesses;
        let second = first.split_off(cut.min(first.len()));
        let table = count(options(ADDING, Some(interval), per), &[batch(first), batch(second)]);
        prop_assert_eq!(totals(&table, Key::All), totals(&uncut, Key::All));
        for row in &table.rows {
            for (at, slices) in row.slices.iter().enumerate() {
                if table.columns[at].unknown.is_some() || row.total[at].reason.is_some() {
                    continue;
                }
                let sum = |of: fn(&crate::Value) -> Option<u64>| slices.iter().filter_map(of).sum::<u64>();
                let whole = row.total[at];
                prop_assert_eq!(Some(sum(|value| value.amount)), whole.amount);
                prop_assert_eq!(sum(|value| value.whole), whole.whole.unwrap_or(0));
            }
        }
        for (at, column) in table.columns.iter().enumerate() {
            let keys = table.rows[1..].iter().filter_map(|row| row.total[at].amount);
            if column.unknown.is_none() && !table.rows[1..].is_empty() {
                prop_assert_eq!(Some(keys.sum::<u64>()), table.rows[0].total[at].amount);
            }
            prop_assert!(matches!(column.statistic.sums(), Sums::Add | Sums::Share));
        }
    }

    #[test]
    fn putting_keys_together_by_name_changes_no_sum(
        accesses in stream(),
        by_code in any::<bool>(),
        names in 1_u64..4,
    ) {
        let per = if by_code { Per::Function } else { Per::Object };
        let uncut = count(options(ADDING, None, Per::All), &[batch(accesses.clone())]);
        let mut fold = Fold::new(options(ADDING, Some(100), per)).unwrap();
        fold.feed(&batch(accesses)).unwrap();
        let name = |key| match key {
            Key::Code { space, .. } => Some((key, (u64::from(space.0) % names).to_string())),
            Key::Memory(line) => Some((key, (line.0.position() / 64 % names).to_string())),
            _ => None,
        };
        let all: Vec<_> = fold.keys().into_iter().filter_map(name).collect();
        fold.name(&all);
        let table = fold.finish().unwrap();
        prop_assert!(table.rows.len() as u64 <= 1 + names);
        prop_assert_eq!(totals(&table, Key::All), totals(&uncut, Key::All));
        for (at, column) in table.columns.iter().enumerate() {
            let keys = table.rows[1..].iter().filter_map(|row| row.total[at].amount);
            if column.unknown.is_none() && table.rows.len() > 1 {
                prop_assert_eq!(Some(keys.sum::<u64>()), table.rows[0].total[at].amount);
            }
        }
    }

    #[test]
    fn no_times_and_no_addresses_make_it_panic_or_grow(
        wild in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), any::<u16>()), 0..50),
        start in any::<u64>(),
        end in any::<Option<u64>>(),
        interval in any::<Option<u64>>(),
        per in 0_usize..6,
    ) {
        let per = [Per::All, Per::Cpu, Per::Thread, Per::Process, Per::Function, Per::Object][per];
        let Ok(slices) = crate::Slices::new(start, end, interval) else {
            return Ok(());
        };
        let mut asked = options(ADDING, None, per);
        asked.slices = slices;
        let Ok(mut fold) = Fold::new(asked) else {
            return Ok(());
        };
        let accesses = wild.iter().map(|(time_ns, addr, id, size)| Access {
            time_ns: *time_ns,
            addr: *addr,
            cpu: Cpu(*id),
            tid: Tid(*id),
            pid: Pid(*id),
            size: *size % 300,
            cost: Cost(*id),
            basis: Basis::ALL[*id as usize % 6],
            ..sample(0, 0, 0)
        });
        if fold.feed(&batch(accesses.collect())).is_ok()
            && let Ok(table) = fold.finish()
        {
            let values = table.rows.len() as u64 * table.columns.len() as u64;
            prop_assert!(values * u64::from(table.slice_count) <= MOST_CELLS);
        }
    }

    #[test]
    fn an_estimate_is_around_its_value(accesses in stream(), interval in 1_u64..400) {
        let table = count(options(ADDING, Some(interval), Per::Cpu), &[batch(accesses)]);
        for row in &table.rows {
            for (column, slices) in table.columns.iter().zip(&row.slices) {
                for value in slices {
                    if let (Some(number), Some(estimate)) =
                        (value.number(column.statistic.sums()), value.estimate)
                    {
                        let slack = 1e-9 * number.max(1.0);
                        prop_assert!(estimate.low <= number + slack && number <= estimate.high + slack);
                    }
                }
            }
        }
    }
}

#[test]
fn a_table_that_would_be_too_large_is_refused_with_an_interval_that_would_do() {
    let fine = |interval_ns: u64| {
        let mut options = options("samples,time.stalled", None, Per::Thread);
        options.slices =
            crate::Slices::new(START, Some(START + 1000 * MS), Some(interval_ns)).unwrap();
        options
    };
    let refused = Fold::new(fine(1_000)).err().expect("two million values");
    let Refusal::TooManyValues {
        interval_ns: Some(would_do),
        most,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(most, MOST_CELLS);
    assert!(
        refused.to_string().contains("an interval of 2us would do"),
        "{refused}"
    );
    assert!(Fold::new(fine(would_do)).is_ok());
    let refused = Fold::new(fine(100)).err().expect("ten million slices");
    assert!(
        refused.to_string().contains("in 10,000,000 slices"),
        "{refused}"
    );
}

#[test]
fn keys_that_become_too_many_are_refused_when_they_come() {
    let mut options = options("samples", Some(1), Per::Thread);
    let mut fold = Fold::new(options.clone()).unwrap();
    let many = |threads: u32| batch((0..threads).map(|n| sample(1, n, 64)).collect::<Vec<_>>());
    assert!(fold.feed(&many(900)).is_ok());
    let refused = fold.feed(&many(1100)).unwrap_err().to_string();
    assert!(refused.contains("1,000,000 values"), "{refused}");
    assert!(refused.contains("an interval of 2ms would do"), "{refused}");
    options.per = Per::All;
    let mut whole = Fold::new(options).unwrap();
    assert!(whole.feed(&many(1100)).is_ok() && whole.feed(&Batch::default()).is_ok());
}
