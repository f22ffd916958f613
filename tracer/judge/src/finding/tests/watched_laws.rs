//! What must hold for every order of accesses in watch windows.

use proptest::prelude::*;

use crate::{
    access::{ByteSet, Op},
    analysis::{
        Pair, WatchedCounts,
        watched_fixture::{Act, Watch, load},
    },
    finding::{PairThresholds, WatchThresholds, WindowVerdict, hint, shown},
};

const WORDS: &[u8] = &[0, 8, 16, 24];

fn any_act() -> impl Strategy<Value = Act> {
    let op = prop::sample::select(vec![Op::Load, Op::Load, Op::Store, Op::Rmw, Op::Prefetch]);
    (0..5u32, 0..4u32, op, 0..72u64, 0..80u16).prop_map(|(tid, cpu, op, offset, size)| Act {
        tid,
        cpu,
        op,
        size,
        ..load(tid, offset).at(u64::from(tid) * 16 + op as u64)
    })
}

fn any_windows() -> impl Strategy<Value = Vec<Vec<Act>>> {
    prop::collection::vec(prop::collection::vec(any_act(), 0..60), 1..5)
}

fn seen(windows: &[Vec<Act>]) -> Watch {
    let mut watch = Watch::new();
    for acts in windows {
        watch.window(WORDS, acts, |_| {});
    }
    watch
}

fn counts_and_pairs(windows: &[Vec<Act>]) -> (WatchedCounts, Vec<Pair>) {
    let watch = seen(windows);
    match watch.lines.get(crate::analysis::watched_fixture::key()) {
        Some(line) => (line.counts().clone(), line.pairs(ByteSet::default())),
        None => <_>::default(),
    }
}

fn changed(windows: &[Vec<Act>], change: impl Fn(&Act) -> Act) -> Vec<Vec<Act>> {
    let window = |acts: &Vec<Act>| acts.iter().map(&change).collect();
    windows.iter().map(window).collect()
}

proptest! {
    #[test]
    fn every_access_is_counted_once(windows in any_windows()) {
        let watch = seen(&windows);
        let totals = watch.lines.totals();
        let held = watch.lines.lines().map(|line| {
            let counts = line.counts();
            let sites: u64 = line.sites().iter().map(|site| site.trapped).sum();
            assert_eq!(counts.accesses, sites + counts.folded);
            counts.accesses + counts.strays + counts.outside
        });
        prop_assert_eq!(totals.observed, held.sum::<u64>() + totals.unclaimed);
        prop_assert_eq!(totals.dropped + watch.lines.pending() as u64, 0);
    }

    #[test]
    fn hand_offs_are_misses_and_want_a_store(windows in any_windows()) {
        let (counts, _) = counts_and_pairs(&windows);
        let requests = counts.requests.total();
        prop_assert!(counts.hand_offs <= requests - counts.requests.cold);
        prop_assert!(requests <= counts.accesses);
        prop_assert!(counts.stores > 0 || counts.hand_offs == 0);
        prop_assert!(counts.native_ns <= counts.span_ns);
    }

    #[test]
    fn one_thread_one_cpu_or_loads_alone_are_never_shared(windows in any_windows()) {
        let loads = |act: &Act| Act { op: Op::Load, ..*act };
        let one_thread = |act: &Act| Act { tid: 1, ..*act };
        for changed in [
            changed(&windows, loads),
            changed(&windows, one_thread),
            changed(&windows, |act| act.on(0)),
        ] {
            let watch = seen(&changed);
            for line in watch.lines.lines() {
                prop_assert_eq!(line.counts().hand_offs, 0);
                let thresholds = WatchThresholds { hand_offs: 0, accesses: 0, ..WatchThresholds::default() };
                let shown = shown(line, &line.groups(), &thresholds).shown;
                prop_assert!(shown <= WindowVerdict::NotHandedOff, "{shown:?}");
            }
        }
    }

    #[test]
    fn the_numbers_of_cpus_do_not_matter(windows in any_windows(), by in 1..90u32) {
        let renamed = changed(&windows, |act| act.on((act.cpu + 1) % 4 * by + 1));
        prop_assert_eq!(counts_and_pairs(&windows), counts_and_pairs(&renamed));
    }

    #[test]
    fn without_a_byte_in_common_nothing_is_true(windows in any_windows()) {
        let apart = changed(&windows, |act| Act { offset: u64::from(act.tid) * 8, size: 8, ..*act });
        prop_assert_eq!(seen(&apart).line().hand_offs(&[]).truly, 0);
        // Threads that stay where they are: one that moves meets its own stores.
        let together = changed(&windows, |act| Act { offset: 0, size: 8, cpu: act.tid, ..*act });
        let found = seen(&together).line().hand_offs(&[]);
        prop_assert_eq!((found.falsely, found.undecided, found.dragged), (0, 0, 0));
    }

    #[test]
    fn the_counts_of_a_pair_are_parts_of_one_another(windows in any_windows()) {
        let (counts, pairs) = counts_and_pairs(&windows);
        for pair in &pairs {
            let of_load = pairs.iter().filter(|p| p.load.instruction == pair.load.instruction);
            prop_assert!(of_load.map(|p| p.count).sum::<u64>() <= pair.executions);
            prop_assert!(pair.load_requests <= pair.executions);
            prop_assert!(pair.among_readers <= pair.executions);
            prop_assert!(pair.taken_by_reads + pair.taken_by_writes <= pair.count);
            prop_assert!(pair.mere_reads <= pair.taken_by_reads + pair.taken_by_writes);
            let left = pair.left;
            prop_assert!(left.dirty + left.clean + left.shared + left.own <= pair.count);
            prop_assert!(left.clean == 0, "no access asks for bias");
            prop_assert!(pair.share_of_load.is_none_or(|share| (0.0..=1.0).contains(&share)));
            hint(pair, &PairThresholds::default());
        }
        let by_log: u64 = pairs.iter().map(|pair| pair.global_count).sum();
        prop_assert!(by_log <= counts.requests.read_shar.min(counts.requests.read_priv));
    }

    #[test]
    fn thread_order_does_not_depend_on_the_cpus(windows in any_windows(), cpus in prop::collection::vec(0..4u32, 7)) {
        let order = |windows: &[Vec<Act>]| {
            let (_, pairs) = counts_and_pairs(windows);
            let by_thread = pairs.iter().filter(|pair| pair.count > 0);
            let key = |pair: &Pair| (pair.load.instruction, pair.store, pair.count, pair.executions, pair.threads);
            let mut keys: Vec<_> = by_thread.map(key).collect();
            keys.sort_by_key(|key| (key.0, key.1.instruction));
            keys
        };
        let elsewhere = changed(&windows, |act| act.on(cpus[(act.tid as usize + act.cpu as usize) % 7]));
        prop_assert_eq!(order(&windows), order(&elsewhere));
    }
}
