//! Read-then-write pairs of known programs, seen through watch windows, and the hints they must get.

use crate::{
    access::{ByteSet, LineSize, Op},
    analysis::{
        Pair,
        watched_fixture::{Act, Watch, load, repeated, rmw, store},
    },
    finding::{Hint, NoHint, PairThresholds, hint},
};

const WORDS: &[u8] = &[0, 8, 16, 24];

/// The pairs of one window with these accesses 20 times over.
fn pairs(acts: &[Act]) -> Vec<Pair> {
    let watch = Watch::new().windows(1, WORDS, &repeated(20, acts));
    watch.line().pairs(ByteSet::default())
}

fn judged(pair: &Pair) -> Hint {
    hint(pair, &PairThresholds::default())
}

fn find(pairs: &[Pair], load: Act, store: Act) -> &Pair {
    let by =
        |pair: &&Pair| (pair.load.instruction.ip, pair.store.instruction.ip) == (load.ip, store.ip);
    pairs.iter().find(by).expect("the pair was seen")
}

#[test]
fn a_counter_loaded_and_stored_by_turns_should_be_fetched_for_ownership() {
    let pairs = pairs(&[load(1, 0), store(1, 0), load(2, 0), store(2, 0)]);
    let [pair] = &pairs[..] else {
        panic!("one load and one store: {pairs:?}");
    };
    assert_eq!((pair.count, pair.executions, pair.threads), (40, 40, 2));
    assert_eq!(pair.share_of_load, Some(1.0));
    // Of the first one nobody knows where the line was.
    assert_eq!((pair.load_requests, pair.global_count), (39, 39));
    assert_eq!((pair.taken_by_reads, pair.taken_by_writes), (0, 0));
    // The owner before it keeps a copy until the store.
    assert_eq!((pair.left.own, pair.left.shared), (1, 39));
    assert!(pair.complete_order && !pair.same_instruction);
    assert_eq!(judged(pair), Hint::FetchForOwnership);
}

#[test]
fn load_and_store_may_be_of_two_functions_and_two_fields() {
    let f = |tid| load(tid, 0).at(0x10);
    let g = |tid| Act {
        size: 4,
        ..store(tid, 12).at(0x90)
    };
    let pairs = pairs(&[f(1), g(1), f(2), g(2)]);
    let pair = find(&pairs, f(1), g(1));
    assert_eq!((pair.load.offset, pair.load.size), (0, 8));
    assert_eq!((pair.store.offset, pair.store.size), (12, 4));
    assert_eq!(pair.store.bytes, ByteSet::range(12, 4, LineSize::B64));
    assert_eq!(judged(pair), Hint::FetchForOwnership);
}

#[test]
fn a_load_seldom_followed_by_a_store_gets_no_hint() {
    let acts = [load(1, 0), load(1, 0), load(1, 0), store(1, 0), store(2, 0)];
    let pairs = pairs(&acts);
    let pair = find(&pairs, load(1, 0), store(1, 0));
    assert_eq!((pair.count, pair.executions), (20, 60));
    assert_eq!(judged(pair), Hint::No(NoHint::SeldomStored(20.0 / 60.0)));
}

#[test]
fn a_load_followed_by_another_threads_store_is_no_pair() {
    assert_eq!(pairs(&[load(1, 0), store(2, 0)]), []);
}

#[test]
fn front_and_back_by_load_and_store_are_pairs_however_the_traps_mix_them() {
    let (front, back) = ([load(1, 0), store(1, 0)], [load(2, 8), store(2, 8)]);
    let mixed = [front[0], back[0], front[1], back[1]];
    let mixed_again = [back[0], front[0], back[1], front[1]];
    let pairs = pairs(&[mixed, mixed_again].concat());
    for [load, store] in [front, back] {
        let pair = find(&pairs, load, store);
        assert_eq!((pair.count, pair.executions), (40, 40));
        // The other one's load is in between, or its load and its store.
        assert_eq!((pair.taken_by_reads, pair.taken_by_writes), (20, 20));
        assert_eq!((pair.left.shared, pair.left.dirty), (20, 20));
        // The filter wants the requests adjacent, and they never are.
        assert_eq!(pair.global_count, 0);
        assert_eq!((pair.mere_reads, pair.among_readers), (0, 0));
        assert_eq!(judged(pair), Hint::FetchForOwnership);
    }
}

#[test]
fn an_instruction_that_reads_and_writes_is_a_pair_with_itself_and_needs_no_hint() {
    let pairs = pairs(&[rmw(1, 0), rmw(2, 8)]);
    assert_eq!(pairs.len(), 2);
    for pair in &pairs {
        assert!(pair.same_instruction);
        assert_eq!(pair.load.instruction, pair.store.instruction);
        assert_eq!((pair.count, pair.executions), (20, 20));
        assert_eq!(judged(pair), Hint::No(NoHint::SameInstruction));
    }
    let (front, back) = (
        find(&pairs, rmw(1, 0), rmw(1, 0)),
        find(&pairs, rmw(2, 8), rmw(2, 8)),
    );
    // Where the line was before the first access nobody knows.
    assert_eq!((front.left.dirty, back.left.dirty), (19, 20));
    assert_eq!((front.load_requests, back.load_requests), (19, 20));
}

#[test]
fn the_load_of_a_compare_and_swap_loop_pairs_with_the_swap() {
    let pairs = pairs(&[load(1, 0), load(2, 0), rmw(1, 0), rmw(2, 0)]);
    let pair = find(&pairs, load(1, 0), rmw(1, 0));
    assert_eq!((pair.count, pair.executions), (40, 40));
    assert!(!pair.same_instruction);
    assert_eq!(judged(pair), Hint::FetchForOwnership);
    let swap = find(&pairs, rmw(1, 0), rmw(1, 0));
    assert_eq!((swap.count, swap.executions), (40, 40));
    assert!(swap.same_instruction);
}

#[test]
fn a_load_among_readers_gets_no_hint_and_without_them_it_does() {
    let writers = [load(1, 0), store(1, 0), load(4, 0), store(4, 0)];
    let reader = load(2, 0).at(0x500);
    let read: Vec<Act> = writers.iter().flat_map(|act| [*act, reader]).collect();
    let among = pairs(&read);
    let pair = find(&among, load(1, 0), store(1, 0));
    assert_eq!((pair.mere_reads, pair.taken_by_reads), (40, 40));
    assert_eq!(pair.among_readers, 39);
    assert_eq!(judged(pair), Hint::No(NoHint::TakenFromReaders(1.0)));
    let alone = pairs(&writers);
    assert_eq!(
        judged(find(&alone, load(1, 0), store(1, 0))),
        Hint::FetchForOwnership
    );
}

#[test]
fn a_load_that_always_hits_gets_no_hint() {
    let own = pairs(&[load(1, 0), store(1, 0)]);
    assert_eq!(judged(&own[0]), Hint::No(NoHint::AlwaysHits));
    // The first load of each window is no miss that anyone knows of.
    assert_eq!((own[0].count, own[0].load_requests), (20, 0));
}

#[test]
fn few_executions_tell_nothing() {
    let acts = [load(1, 0), store(1, 0), load(2, 0), store(2, 0)];
    let executed = |times| {
        let watch = Watch::new().windows(1, WORDS, &repeated(times, &acts));
        judged(&watch.line().pairs(ByteSet::default())[0])
    };
    assert_eq!(executed(7), Hint::No(NoHint::TooFewExecutions));
    assert_eq!(executed(8), Hint::FetchForOwnership);
}

#[test]
fn the_last_load_of_a_thread_is_no_execution_and_no_window_goes_on_in_the_next() {
    let acts = [load(1, 0), store(1, 0), load(1, 0)];
    let watch = Watch::new().windows(10, WORDS, &acts);
    let pairs = watch.line().pairs(ByteSet::default());
    assert_eq!((pairs[0].count, pairs[0].executions), (10, 10));
    let cut = Watch::new().windows(1, WORDS, &[load(1, 0)]);
    let cut = cut.windows(1, WORDS, &[store(1, 0)]);
    assert_eq!(cut.line().pairs(ByteSet::default()), []);
}

#[test]
fn an_order_is_complete_when_no_hit_is_missing_and_all_active_words_were_watched() {
    let acts = repeated(20, &[load(1, 0), store(1, 8), load(2, 0), store(2, 8)]);
    let complete = |watch: &Watch, sampled: ByteSet| {
        let pairs = watch.line().pairs(sampled);
        find(&pairs, load(1, 0), store(1, 8)).complete_order
    };
    let watched = Watch::new().windows(2, &[0, 8], &acts);
    assert!(complete(&watched, ByteSet::default()));
    assert!(complete(&watched, ByteSet(0xff00)));
    assert!(!complete(&watched, ByteSet(1 << 40)));
    let half = Watch::new().windows(2, &[0], &acts);
    assert!(!complete(&half, ByteSet::default()));
    let mut lossy = Watch::new().windows(2, &[0, 8], &acts);
    lossy.window(&[0, 8], &acts, |window| window.lost = 1);
    assert!(!complete(&lossy, ByteSet::default()));
    // A window on other words, without the pair, takes nothing from it.
    let elsewhere = Watch::new().windows(2, &[0, 8], &acts);
    let elsewhere = elsewhere.windows(1, &[8], &[store(1, 8)]);
    assert!(complete(&elsewhere, ByteSet::default()));
}

#[test]
fn the_filter_finds_the_load_that_missed_when_a_hit_stands_between() {
    let [miss, hit] = [0x10, 0x20].map(|code| move |tid| load(tid, 0).at(code));
    let pairs = pairs(&[miss(1), hit(1), store(1, 0), miss(2), hit(2), store(2, 0)]);
    let by_log = find(&pairs, miss(1), store(1, 0));
    assert_eq!((by_log.count, by_log.global_count), (0, 39));
    let by_thread = find(&pairs, hit(1), store(1, 0));
    assert_eq!((by_thread.count, by_thread.global_count), (40, 0));
    assert_eq!(judged(by_thread), Hint::No(NoHint::AlwaysHits));
}

#[test]
fn endless_instructions_leave_the_frequent_pair() {
    let mut acts = Vec::new();
    for n in 0..2000 {
        acts.extend([load(1, 0), store(1, 0)]);
        acts.extend([load(2, 8).at(0x10_0000 + n), store(2, 8).at(0x20_0000 + n)]);
    }
    let watch = Watch::new().windows(1, WORDS, &acts);
    let pairs = watch.line().pairs(ByteSet::default());
    assert!(pairs.len() <= 256);
    assert_eq!(pairs[0].count, 2000);
    let kept: u64 = pairs.iter().map(|pair| pair.executions).sum();
    assert_eq!(kept + watch.line().forgotten_executions(), 4000);
}

#[test]
fn prefetches_are_in_no_order() {
    let prefetch = Act {
        op: Op::Prefetch,
        ..load(1, 0)
    };
    let watch = Watch::new().windows(1, WORDS, &[load(1, 0), prefetch, store(1, 0)]);
    let pairs = watch.line().pairs(ByteSet::default());
    assert_eq!((pairs[0].count, pairs[0].executions), (1, 1));
    assert_eq!(watch.line().counts().accesses, 2);
}
