//! Known answers, and that cost is neither made nor lost.

use proptest::prelude::*;

use super::*;
use crate::access::{Cost, Pid};

const X: u64 = 0x1000;
const Y: u64 = 0x2000;

fn access(time_ns: u64, addr: u64, op: Op) -> Access {
    Access {
        time_ns,
        addr,
        ip: addr + 1,
        size: 8,
        op,
        pid: Pid(7),
        basis: Basis::Decoded,
        ..Access::BLANK
    }
}

fn stalled(access: Access, instead: u8) -> Access {
    Access {
        basis: Basis::Stalled,
        cost: Cost(10),
        instead,
        ..access
    }
}

fn fed(accesses: &[Access]) -> Transfers {
    let mut transfers = Transfers::new(LineSize::B64);
    for access in accesses {
        let addr = access.addr;
        let place = Place::Private {
            space: SpaceId(0),
            addr,
        };
        transfers.observe(access, place, SpaceId(0));
    }
    transfers
}

fn line(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

fn told(transfers: &Transfers, addr: u64) -> Vec<(u64, u32, u64)> {
    let of = transfers.of(line(addr));
    of.map(|t| (t.line.0.position(), t.samples, t.cost.0))
        .collect()
}

#[test]
fn the_other_access_is_counted_whether_it_comes_before_or_after_the_load() {
    let sample = |time_ns, instead| {
        [
            access(time_ns, Y, Op::Rmw),
            stalled(access(time_ns, X, Op::Load), instead),
            access(time_ns, Y + 64, Op::Load),
        ]
    };
    let transfers = fed(&[sample(1, 1), sample(2, 3), sample(3, 1), sample(4, 0)].concat());
    assert_eq!(told(&transfers, X), [(Y, 2, 20), (Y + 64, 1, 10)]);
    assert_eq!(transfers.lines().collect::<Vec<_>>(), [(line(X), Cost(40))]);
}

#[test]
fn rows_are_counted_within_their_sample() {
    // The same moment on another CPU is another sample; there is no third row.
    let elsewhere = Access {
        cpu: Cpu(1),
        ..access(1, Y, Op::Load)
    };
    let load = stalled(access(1, X, Op::Load), 2);
    let transfers = fed(&[access(1, Y, Op::Load), elsewhere, load]);
    assert_eq!(told(&transfers, X), []);
    let transfers = fed(&[load, elsewhere, access(1, Y, Op::Load)]);
    assert_eq!(told(&transfers, X), []);
    // Twin.
    let transfers = fed(&[load, access(1, Y, Op::Load)]);
    assert_eq!(told(&transfers, X), [(Y, 1, 10)]);
}

#[test]
fn stores_are_in_no_doubt_and_spinning_goes_on_elsewhere() {
    let waits = |access, wait| Access { wait, ..access };
    let store = waits(stalled(access(1, X, Op::Store), 1), Wait::AtBarrier);
    let adds = stalled(access(2, X, Op::Rmw), 1);
    assert_eq!(fed(&[store, adds]).lines().count(), 0);
    let spins = waits(stalled(access(1, X, Op::Load), 2), Wait::InSpinLoop);
    let transfers = fed(&[spins, access(1, Y, Op::Load)]);
    let moved = transfers.of(line(X)).next().unwrap();
    assert_eq!((moved.samples, moved.waits.spinning), (1, Cost(10)));
}

#[test]
fn a_line_that_is_stored_to_is_in_no_doubt() {
    let load = stalled(access(1, X, Op::Load), 0);
    assert_eq!(fed(&[load]).lines().count(), 1);
    assert_eq!(fed(&[load, access(2, X + 8, Op::Store)]).lines().count(), 0);
    assert_eq!(fed(&[load, access(2, Y, Op::Store)]).lines().count(), 1);
}

#[test]
fn the_costliest_others_and_lines_are_kept() {
    let mut accesses = Vec::new();
    let mut time_ns = 0;
    let mut sample = |x, y| {
        time_ns += 1;
        accesses.push(stalled(access(time_ns, x, Op::Load), 2));
        accesses.push(access(time_ns, y, Op::Load));
    };
    for n in 0..10 {
        sample(X, Y);
        sample(X, Y + 64 + n * 64);
    }
    for n in 0..2 * MOST_LINES as u64 {
        sample(0x10_0000 + n * 64, Y);
    }
    let transfers = fed(&accesses);
    let others = told(&transfers, X);
    assert_eq!(others.len(), MOST_OTHERS);
    assert_eq!(others[0], (Y, 10, 100));
    assert!(transfers.lines.len() <= MOST_LINES);
}

proptest! {
    #[test]
    fn no_line_gives_more_than_its_loads_cost(
        rows in prop::collection::vec((0u64..40, 0u64..12, 0usize..3, 0u8..4), 0..400),
    ) {
        let mut accesses: Vec<Access> = rows
            .iter()
            .map(|(time_ns, line, op, instead)| {
                let access = access(*time_ns, X + line * 64, Op::ALL[*op]);
                if *instead > 1 { stalled(access, *instead) } else { access }
            })
            .collect();
        accesses.sort_by_key(|access| access.time_ns);
        let transfers = fed(&accesses);
        for (line, cost) in transfers.lines() {
            prop_assert!(transfers.of(line).map(|t| t.cost).sum::<Cost>() <= cost);
            prop_assert!(transfers.of(line).all(|t| t.line != line));
        }
    }
}
