//! What is watched, and what a window was, without a kernel.

use super::*;
use crate::access::Pid;

fn word(pid: u32, addr: u64, len: u8) -> WatchedWord {
    WatchedWord {
        pid: Pid(pid),
        addr,
        len,
    }
}

#[test]
fn words_at_one_address_share_a_breakpoint_and_come_after_the_others() {
    let words = [word(1, 64, 8), word(2, 64, 8), word(1, 72, 4)];
    let (order, places) = placed(&words, 2).unwrap();
    assert_eq!(order, [words[0], words[2], words[1]]);
    let at: Vec<_> = places
        .iter()
        .map(|place| (place.config1, place.config2))
        .collect();
    assert_eq!(at, [(64, 8), (72, 4)]);
    assert!(placed(&words, 1).is_err());
}

#[test]
fn words_that_no_register_can_watch_are_refused() {
    assert!(placed(&[word(1, 64, 8)], 4).is_ok());
    assert!(placed(&[], 4).is_err());
    assert!(placed(&[word(1, 0, 8)], 4).is_err());
    assert!(placed(&[word(1, 68, 8)], 4).is_err());
    assert!(placed(&[word(1, 64, 3)], 4).is_err());
    assert!(placed(&[word(1, 64, 8), word(2, 64, 4)], 4).is_err());
    let five: Vec<_> = (1..=5).map(|n| word(n, 64, 8)).collect();
    assert!(placed(&five, 4).is_err());
    assert!(placed(&five[..4], 4).is_ok());
}

const WINDOW: OpenWindow = OpenWindow {
    number: 6,
    open_ns: 1000,
    deadline_ns: 5000,
    hit_limit: 100,
};

fn cpu(stats: WatchStats) -> (Cpu, WatchStats) {
    (Cpu(0), stats)
}

#[test]
fn a_window_ends_before_the_first_hit_that_any_cpu_skipped() {
    let before = [cpu(WatchStats::default()); 2];
    let skipped = |first_skipped_ns, hits| {
        cpu(WatchStats {
            window: 7,
            hits,
            skipped: 1,
            first_skipped_ns,
            ..WatchStats::default()
        })
    };
    let result = closed(
        WINDOW,
        4000,
        &before,
        &[skipped(3000, 60), skipped(2500, 41)],
    );
    assert_eq!((result.open_ns, result.end_ns), (1000, 2499));
    assert_eq!((result.hits, result.other_traps), (101, 2));
    assert_eq!(result.end, WindowEnd::Hits);
}

#[test]
fn an_earlier_windows_skipped_hit_does_not_end_this_one() {
    let old = cpu(WatchStats {
        window: 6,
        hits: 500,
        skipped: 3,
        first_hit_ns: 100,
        first_skipped_ns: 200,
        ..WatchStats::default()
    });
    let result = closed(WINDOW, 4000, &[old], &[old]);
    assert_eq!((result.open_ns, result.end_ns), (1000, 4000));
    assert_eq!((result.hits, result.other_traps), (0, 0));
    assert_eq!(result.end, WindowEnd::Asked);
}

#[test]
fn a_window_that_is_closed_late_ends_before_its_deadline() {
    let result = closed(WINDOW, 9000, &[], &[]);
    assert_eq!((result.end_ns, result.end), (4999, WindowEnd::Time));
}

#[test]
fn a_hit_before_our_clock_was_read_shows_that_the_window_was_open() {
    let before = [cpu(WatchStats::default())];
    let after = [cpu(WatchStats {
        window: 7,
        hits: 1,
        first_hit_ns: 900,
        ..WatchStats::default()
    })];
    assert_eq!(closed(WINDOW, 4000, &before, &after).open_ns, 900);
}
