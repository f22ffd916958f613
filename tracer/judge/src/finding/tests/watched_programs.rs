//! Lines of known programs, seen through watch windows, and what they must show.

use crate::{
    access::Pid,
    analysis::watched_fixture::{Act, BASE, Watch, load, repeated, rmw, store},
    event::{Unresolved, WatchedWord},
    finding::{Verdict, WatchThresholds, WatchVerdict, WindowVerdict, shown},
};

const WORDS: &[u8] = &[0, 8, 16, 24];

fn judged(watch: &Watch) -> WatchVerdict {
    shown(
        watch.line(),
        &watch.line().groups(),
        &WatchThresholds::default(),
    )
}

/// Five windows with these accesses 25 times over.
fn windows(acts: &[Act]) -> Watch {
    Watch::new().windows(5, WORDS, &repeated(25, acts))
}

fn check(acts: &[Act], expected: WindowVerdict) -> WatchVerdict {
    let verdict = judged(&windows(acts));
    assert_eq!(verdict.shown, expected, "{verdict:?}");
    verdict
}

#[test]
fn counters_side_by_side_are_falsely_shared() {
    let verdict = check(&[rmw(1, 0), rmw(2, 8)], WindowVerdict::FalseSharing);
    assert_eq!(verdict.hand_offs.truly, 0);
    // 50 accesses a window, all but the first a hand-off, the last one's copy still held.
    assert_eq!(verdict.hand_offs.falsely, 5 * 48);
    assert_eq!(verdict.hand_offs.undecided, 5);
    let load_and_store = [load(1, 0), load(2, 8), store(1, 0), store(2, 8)];
    check(&load_and_store, WindowVerdict::FalseSharing);
    check(
        &[rmw(1, 0), rmw(2, 8), rmw(3, 16), rmw(4, 24)],
        WindowVerdict::FalseSharing,
    );
}

#[test]
fn one_counter_for_all_is_truly_shared() {
    let verdict = check(&[rmw(1, 0), rmw(2, 0)], WindowVerdict::TrueSharing);
    assert_eq!(verdict.hand_offs.truly, 5 * 49);
    assert_eq!(verdict.hand_offs.falsely, 0);
    check(
        &[load(1, 0), load(2, 0), store(1, 0), store(2, 0)],
        WindowVerdict::TrueSharing,
    );
    check(&[store(1, 0), store(2, 0)], WindowVerdict::TrueSharing);
}

#[test]
fn a_lock_with_its_data_is_true_and_a_statistic_of_others_beside_it_makes_it_mixed() {
    let critical = |tid| [rmw(tid, 0), load(tid, 8), store(tid, 8), store(tid, 0)];
    let both = [critical(1), critical(2)].concat();
    check(&both, WindowVerdict::TrueSharing);
    let statistic = |tid| [critical(tid).to_vec(), vec![rmw(3, 16)]].concat();
    check(
        &[statistic(1), statistic(2)].concat(),
        WindowVerdict::MixedSharing,
    );
}

#[test]
fn a_configuration_beside_a_counter_is_false_and_one_that_changes_is_true() {
    check(&[store(1, 0), load(2, 8)], WindowVerdict::FalseSharing);
    check(
        &[store(1, 0), load(2, 8), load(3, 8)],
        WindowVerdict::FalseSharing,
    );
    check(&[store(1, 8), load(2, 8)], WindowVerdict::TrueSharing);
}

#[test]
fn two_locks_with_a_pair_of_threads_each_are_mixed() {
    // Each takes a lock that its partner or one of the other pair had before.
    let acts = [
        rmw(1, 0),
        rmw(3, 8),
        rmw(2, 0),
        rmw(2, 0),
        rmw(1, 0),
        rmw(4, 8),
        rmw(3, 8),
    ];
    check(&acts, WindowVerdict::MixedSharing);
}

#[test]
fn a_reporter_that_rarely_reads_the_counters_does_not_make_them_true() {
    let mut acts = repeated(20, &[rmw(1, 0), rmw(2, 8)]);
    acts.extend([load(3, 0), load(3, 8)]);
    check(&acts, WindowVerdict::FalseSharing);
}

#[test]
fn phases_are_never_handed_off_within_a_window() {
    let mut watch = Watch::new();
    for _ in 0..5 {
        for tid in 1..4 {
            watch = watch.windows(1, WORDS, &repeated(30, &[rmw(tid, 0)]));
        }
    }
    let verdict = judged(&watch);
    assert_eq!(verdict.shown, WindowVerdict::Apart);
    assert_eq!(verdict.shown.verdict(), None);
    assert_eq!((verdict.hand_offs.total(), verdict.threads), (0, 3));
}

#[test]
fn one_thread_or_loads_alone_or_one_cpu_show_no_sharing() {
    check(&[rmw(1, 0), load(1, 8)], WindowVerdict::OneThread);
    check(
        &[load(1, 0), load(2, 8), load(3, 0)],
        WindowVerdict::NoStores,
    );
    check(
        &[rmw(1, 0).on(0), rmw(2, 0).on(0)],
        WindowVerdict::NotHandedOff,
    );
    // A thread that moves is still one.
    check(
        &[rmw(1, 0).on(0), rmw(1, 0).on(3)],
        WindowVerdict::OneThread,
    );
}

#[test]
fn a_visit_or_a_rare_store_is_no_sharing() {
    let mut visit = repeated(200, &[rmw(1, 0)]);
    visit.extend(repeated(1, &[rmw(2, 0)]));
    let verdict = judged(&Watch::new().windows(5, WORDS, &visit));
    assert_eq!(verdict.shown, WindowVerdict::NotHandedOff);
    // Stored once in 500 reads by two others.
    let mut written_once = repeated(250, &[load(1, 0), load(2, 0)]);
    written_once.push(store(3, 0));
    written_once.extend(repeated(250, &[load(1, 0), load(2, 0)]));
    let verdict = judged(&Watch::new().windows(5, WORDS, &written_once));
    assert_eq!(verdict.shown, WindowVerdict::NotHandedOff);
    assert_eq!(verdict.hand_offs.total(), 10);
}

#[test]
fn few_accesses_show_nothing() {
    let watch = Watch::new().windows(1, WORDS, &repeated(7, &[rmw(1, 0), rmw(2, 8)]));
    assert_eq!(judged(&watch).shown, WindowVerdict::Nothing);
    let nobody = Watch::new().windows(20, WORDS, &[]);
    assert_eq!(judged(&nobody).shown, WindowVerdict::Nothing);
    assert!(!judged(&nobody).certain);
}

#[test]
fn sharing_is_certain_after_three_windows_and_300_accesses_of_a_clear_kind() {
    let window = repeated(50, &[rmw(1, 0), rmw(2, 8)]);
    let after = |windows| judged(&Watch::new().windows(windows, WORDS, &window));
    assert!(after(3).certain);
    assert!(!after(2).certain);
    let short = repeated(10, &[rmw(1, 0), rmw(2, 8)]);
    assert!(!judged(&Watch::new().windows(14, WORDS, &short)).certain);
    assert!(judged(&Watch::new().windows(15, WORDS, &short)).certain);
}

#[test]
fn sharing_near_a_limit_stays_uncertain_and_becomes_certain_with_more() {
    // A true hand-off in seven: above the limit of 10 %, and near.
    let mut acts = repeated(3, &[rmw(1, 0), rmw(2, 8)]);
    acts.extend([rmw(1, 0), load(2, 0)]);
    let window = repeated(20, &acts);
    let after = |windows| judged(&Watch::new().windows(windows, WORDS, &window));
    assert_eq!(after(3).shown, WindowVerdict::MixedSharing);
    assert!(!after(3).certain);
    assert!(after(20).certain);
}

#[test]
fn missing_hits_forbid_certainty_and_not_the_verdict() {
    let window = repeated(50, &[rmw(1, 0), rmw(2, 8)]);
    let with_missing = |missing: u64| {
        let mut watch = Watch::new();
        for _ in 0..5 {
            watch.window(WORDS, &window, |window| {
                window.hits += missing;
                window.unresolved.insert(Unresolved::NoModule, missing);
            });
        }
        judged(&watch)
    };
    assert!(with_missing(2).certain);
    assert!(!with_missing(20).certain);
    assert_eq!(with_missing(20).shown, WindowVerdict::FalseSharing);
}

#[test]
fn no_sharing_is_certain_only_after_more_windows() {
    let window = repeated(100, &[rmw(1, 0)]);
    let after = |windows| judged(&Watch::new().windows(windows, WORDS, &window));
    assert!(!after(99).certain);
    assert!(after(100).certain);
}

/// A window that watches the halves of the first word.
fn in_halves(watch: &mut Watch, acts: &[Act]) {
    watch.window(&[], acts, |window| {
        window.words = [BASE, BASE + 4]
            .map(|addr| WatchedWord {
                pid: Pid(1),
                addr,
                len: 4,
            })
            .to_vec();
    });
}

#[test]
fn an_access_somewhere_in_the_word_that_another_stores_a_part_of_shows_nothing() {
    let acts = [store(1, 0).of(4), load(2, 0).somewhere(4)];
    let verdict = check(&acts, WindowVerdict::Nothing);
    assert!(!verdict.certain);
    for kind in [
        Verdict::FalseSharing,
        Verdict::TrueSharing,
        Verdict::MixedSharing,
    ] {
        assert!(
            !verdict.proves(kind, &WatchThresholds::default()),
            "{kind:?}"
        );
    }
    // Its bytes were told: false, and true in the twin.
    check(
        &[store(1, 0).of(4), load(2, 4).of(4)],
        WindowVerdict::FalseSharing,
    );
    check(
        &[store(1, 0).of(4), load(2, 0).of(4)],
        WindowVerdict::TrueSharing,
    );
    // A store somewhere is no proof either.
    check(
        &[rmw(1, 0).somewhere(4), load(2, 4).of(4)],
        WindowVerdict::Nothing,
    );
}

#[test]
fn where_an_access_is_somewhere_but_either_way_the_same_it_is_shown() {
    // In another word than the store's.
    let verdict = check(
        &[store(1, 0), load(2, 8).somewhere(4)],
        WindowVerdict::FalseSharing,
    );
    assert!(verdict.proves(Verdict::FalseSharing, &WatchThresholds::default()));
    // Beside a use that is certain.
    let verdict = check(
        &[store(1, 0), load(2, 0), load(2, 0).somewhere(4)],
        WindowVerdict::TrueSharing,
    );
    assert!(verdict.certain);
    // Rare ones change little: false with a bit of truth in it, or without.
    let mut acts = repeated(30, &[rmw(1, 8), rmw(2, 16)]);
    acts.push(load(3, 8).somewhere(1));
    check(&acts, WindowVerdict::FalseSharing);
    // One thread is one thread, whatever it touches.
    check(
        &[store(1, 0), load(1, 0).somewhere(4)],
        WindowVerdict::OneThread,
    );
}

#[test]
fn narrower_windows_take_the_place_of_those_that_could_not_tell() {
    for (offset, expected) in [
        (4, WindowVerdict::FalseSharing),
        (0, WindowVerdict::TrueSharing),
    ] {
        let unclear = repeated(25, &[store(1, 0).of(4), load(2, 0).somewhere(4)]);
        let clear = repeated(25, &[store(1, 0).of(4), load(2, offset).of(4)]);
        let mut watch = Watch::new().windows(3, WORDS, &unclear);
        assert_eq!(judged(&watch).shown, WindowVerdict::Nothing);
        for _ in 0..10 {
            in_halves(&mut watch, &clear);
        }
        let verdict = judged(&watch);
        assert_eq!(verdict.shown, expected);
        assert!(verdict.certain && verdict.accesses == 10 * 50);
        let telling = watch.line().telling();
        assert_eq!((telling.superseded_windows, telling.windows), (3, 10));
        assert_eq!(watch.line().counts().accesses, 650);
        let trapped: u64 = watch.line().sites().iter().map(|site| site.trapped).sum();
        assert_eq!(trapped, 650);
        // What is not told in parts either is not forgotten.
        for _ in 0..10 {
            in_halves(&mut watch, &unclear);
        }
        assert_eq!(judged(&watch).shown, WindowVerdict::Nothing);
    }
}
