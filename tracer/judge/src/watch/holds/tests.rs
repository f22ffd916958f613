use super::*;
use crate::{
    access::{Op, Place, SpaceId},
    analysis::site_fixture::site,
    event::Growth,
    finding::judged_fixture::judged,
};

const LINE: u64 = 0x7000;
const LINE_SIZE: LineSize = LineSize::B64;

fn private(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

/// Process 1 runs and has touched memory.
fn one_process() -> AddressSpaces {
    let mut spaces = AddressSpaces::default();
    spaces.place(Pid(1), LINE);
    spaces
}

/// Two threads, each with a word of its own.
fn two_counters() -> Judgement {
    judged(
        private(LINE),
        vec![site(1, 0, 8, Op::Rmw, 10), site(2, 8, 8, Op::Rmw, 10)],
    )
}

fn next(planner: &mut HoldPlanner, judgements: &[Judgement]) -> Option<Reading> {
    planner.next(judgements, &[], &one_process(), LINE_SIZE, 64)
}

fn read(reading: &Reading, end: HoldEnd) -> Pace {
    Pace {
        pid: reading.pid,
        tid: reading.tid,
        addr: reading.addr,
        len: reading.len,
        line_addr: reading.line_addr,
        beside: Growth::default(),
        others_run_ns: 20,
        beside_ns: 20,
        alone: Growth::default(),
        held_ns: 2,
        held: 1,
        in_system_call: 0,
        others: 1,
        end,
    }
}

#[test]
fn each_thread_of_a_line_is_read_ten_times_while_the_other_is_held() {
    let (line, mut planner) = (two_counters(), HoldPlanner::default());
    let mut reads = [0, 0];
    while let Some(reading) = next(&mut planner, std::slice::from_ref(&line)) {
        let (tid, other) = (reading.tid.0, reading.others[0].1.0);
        assert_eq!((reading.others.len(), tid + other), (1, 3));
        assert_eq!(reading.addr, LINE + u64::from(8 * (tid - 1)));
        reads[tid as usize - 1] += 1;
        planner.done(line.key, &read(&reading, HoldEnd::Held));
    }
    assert_eq!(reads, [10, 10]);
}

#[test]
fn true_and_mixed_sharing_hold_nobody() {
    for verdict in [
        Some(Verdict::TrueSharing),
        Some(Verdict::MixedSharing),
        None,
    ] {
        let line = Judgement {
            verdict,
            ..two_counters()
        };
        assert_eq!(next(&mut HoldPlanner::default(), &[line]), None);
    }
}

#[test]
fn threads_that_share_data_elsewhere_are_not_held_and_others_are() {
    let elsewhere = |tids: [u32; 2]| Judgement {
        key: private(LINE + 64),
        verdict: Some(Verdict::TrueSharing),
        ..judged(
            private(LINE + 64),
            tids.map(|tid| site(tid, 0, 8, Op::Rmw, 10)).to_vec(),
        )
    };
    let mut planner = HoldPlanner::default();
    assert_eq!(
        next(&mut planner, &[two_counters(), elsewhere([1, 2])]),
        None
    );
    assert!(next(&mut planner, &[two_counters(), elsewhere([1, 3])]).is_some());
}

#[test]
fn a_word_that_does_not_grow_gives_way_to_the_next_and_what_is_refused_is_not_asked_again() {
    let line = judged(
        private(LINE),
        vec![
            site(1, 0, 8, Op::Store, 20),
            site(1, 8, 8, Op::Store, 10),
            site(2, 16, 4, Op::Load, 10),
        ],
    );
    let mut planner = HoldPlanner::default();
    let first = next(&mut planner, std::slice::from_ref(&line)).unwrap();
    assert_eq!((first.tid, first.addr), (Tid(1), LINE));
    planner.done(line.key, &read(&first, HoldEnd::Slow));
    let second = next(&mut planner, std::slice::from_ref(&line)).unwrap();
    assert_eq!((second.tid, second.addr), (Tid(1), LINE + 8));
    planner.done(line.key, &read(&second, HoldEnd::Refused));
    assert_eq!(next(&mut planner, &[line]), None);
}

#[test]
fn more_threads_than_can_be_held_hold_nobody() {
    let line = two_counters();
    let none = HoldPlanner::default().next(&[line], &[], &one_process(), LINE_SIZE, 0);
    assert_eq!(none, None);
}

#[test]
fn a_thread_without_a_word_on_the_line_is_read_by_another_of_its_words() {
    let line = judged(
        private(LINE),
        vec![site(1, 0, 8, Op::Store, 20), site(2, 8, 8, Op::Load, 10)],
    );
    let elsewhere = OwnWord {
        pid: Pid(1),
        tid: Tid(2),
        line: private(LINE + 128),
        offset: 16,
        len: 4,
        stores: 9,
    };
    let mut read_of = [0, 0];
    let mut planner = HoldPlanner::default();
    let spaces = one_process();
    let lines = [line];
    while let Some(reading) = planner.next(&lines, &[elsewhere], &spaces, LINE_SIZE, 64) {
        if reading.others.is_empty() {
            break;
        }
        read_of[reading.tid.0 as usize - 1] += 1;
        let addr = if reading.tid == Tid(1) {
            LINE
        } else {
            LINE + 144
        };
        assert_eq!((reading.line_addr, reading.addr), (LINE, addr));
        planner.done(reading.line, &read(&reading, HoldEnd::Held));
    }
    assert_eq!(read_of, [10, 10]);
}

#[test]
fn words_of_threads_that_fight_with_nobody_are_read_five_times_and_nobody_is_held() {
    let word = OwnWord {
        pid: Pid(1),
        tid: Tid(2),
        line: private(LINE),
        offset: 0,
        len: 8,
        stores: 9,
    };
    let (mut planner, mut times) = (HoldPlanner::default(), 0);
    while let Some(reading) = planner.next(&[], &[word], &one_process(), LINE_SIZE, 64) {
        assert_eq!((reading.others.len(), reading.line), (0, word.line));
        planner.done(reading.line, &read(&reading, HoldEnd::Beside));
        times += 1;
    }
    assert_eq!(times, 5);
}

#[test]
fn who_holds_is_not_held() {
    let line = [two_counters()];
    assert_eq!(next(&mut HoldPlanner::sparing(Pid(1)), &line), None);
    assert!(next(&mut HoldPlanner::sparing(Pid(2)), &line).is_some());
}
