//! What the windows on a line show: the verdict that needs no statistics of samples.

use crate::{
    analysis::{CpuSet, HandOffs, WatchedLine},
    finding::Verdict,
};

/// What the complete orders of a line say. The first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shown {
    /// Too few accesses, or hand-offs whose kind no window shows, to say anything.
    Nothing,
    /// One thread only.
    OneThread,
    /// Several threads, and none stores.
    NoStores,
    /// Several threads, and stores, but hardly ever does the line go from one CPU to another in a window:
    /// the threads come one after the other, or run on one CPU.
    NotHandedOff,
    /// The same, because most windows met one thread alone, though not always the same. Traps can do that: a
    /// thread that holds a lock holds it nearly all the time when each access under it takes microseconds.
    Apart,
    /// Less than [`WatchThresholds::mixed_share`] of the hand-offs bring a value that the taker uses.
    FalseSharing,
    /// At most that share does not.
    TrueSharing,
    /// Neither.
    MixedSharing,
}

impl Shown {
    /// The kind of sharing, if it is sharing.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Shown::FalseSharing => Some(Verdict::FalseSharing),
            Shown::TrueSharing => Some(Verdict::TrueSharing),
            Shown::MixedSharing => Some(Verdict::MixedSharing),
            Shown::Nothing
            | Shown::OneThread
            | Shown::NoStores
            | Shown::NotHandedOff
            | Shown::Apart => None,
        }
    }
}

/// The limits of [`shown`], each with its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchThresholds {
    /// Least accesses for any word about the line: below, a second thread may just not have come by.
    pub accesses: u64,
    /// Least accesses by the second most frequent thread for sharing: a visit is no sharing.
    pub thread_accesses: u64,
    /// Least hand-offs for sharing.
    pub hand_offs: u64,
    /// The same as a share of the accesses, 0..=1: many readers of a value that one thread stores now and
    /// then hit far more often than they miss, and what the misses cost is for the samples to say.
    pub hand_off_share: f64,
    /// Least share, 0..=1, that each kind must hold for a mixed verdict; as for sampled lines
    /// ([`Thresholds::mixed_share`](crate::finding::Thresholds::mixed_share)).
    pub mixed_share: f64,
    /// Least windows with several threads for a certain kind of sharing: one window may have met a phase.
    pub certain_windows: u64,
    /// Least accesses for certainty of any kind.
    pub certain_accesses: u64,
    /// Least share, 0..=1, of the hand-offs of a kind for windows to have proved that it is there.
    pub proven_share: f64,
    /// Least windows with accesses for a certain "no": a thread that comes by in one window of ten, as one
    /// does that seldom gets a lock, would be missed by 32 of them in one run of 29.
    pub certain_clear_windows: u64,
    /// Least windows with several threads to put another kind in the place of what samples say: a window meets
    /// the few threads that run in its milliseconds, and of many threads not always the same.
    pub changing_windows: u64,
    /// Most of the hits, 0..=1, that may be missing from the orders for certainty: each may hide the use of a
    /// value.
    pub certain_missing_share: f64,
    /// Standard deviations between the share of true hand-offs and the nearest limit, for certainty.
    pub certain_deviations: f64,
}

impl Default for WatchThresholds {
    fn default() -> Self {
        WatchThresholds {
            accesses: 16,
            thread_accesses: 8,
            hand_offs: 8,
            hand_off_share: 0.002,
            mixed_share: 0.1,
            certain_windows: 3,
            certain_accesses: 300,
            proven_share: 0.01,
            certain_clear_windows: 100,
            changing_windows: 8,
            certain_missing_share: 0.05,
            certain_deviations: 3.0,
        }
    }
}

/// What a line's windows show, with the counts behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchVerdict {
    /// What.
    pub shown: Shown,
    /// More windows on the same words will not change it; see [`shown`].
    pub certain: bool,
    /// Windows with accesses of several threads.
    pub shared_windows: u64,
    /// Accesses in order.
    pub accesses: u64,
    /// Of those, stores.
    pub stores: u64,
    /// Threads.
    pub threads: usize,
    /// Accesses by the second most frequent thread.
    pub second_thread: u64,
    /// Hand-offs by kind.
    pub hand_offs: HandOffs,
    /// The kind of sharing by which thread touches and stores which bytes, whatever the order; `None` where no
    /// two threads are in each other's way, or all ran on one CPU.
    pub by_bytes: Option<Verdict>,
}

/// Judges a watched line by [`WatchThresholds`].
///
/// It shows sharing when two threads have at least [`thread_accesses`](WatchThresholds::thread_accesses) each,
/// one stores, and the line is handed off at least [`hand_offs`](WatchThresholds::hand_offs) times and in at
/// least [`hand_off_share`](WatchThresholds::hand_off_share) of the accesses; which kind, by the share of the
/// decided hand-offs that are true.
///
/// It is certain, with enough accesses and hardly a hit missing, when
/// - it shows sharing, enough windows had several threads, and the confidence interval of the true share
///   (Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927) holds
///   no limit between two kinds; with all hand-offs of one kind, 82 suffice;
/// - it shows none, and enough windows had accesses.
///
/// All of this is about the watched words: words that were never watched together
/// ([`WatchedWords`](crate::analysis::WatchedWords)) may share in other ways.
pub fn shown(line: &WatchedLine, limits: &WatchThresholds) -> WatchVerdict {
    let counts = line.counts();
    let threads = line.threads();
    let mut cpus = CpuSet::default();
    for thread in &threads {
        cpus.merge(&thread.cpus);
    }
    let mut verdict = WatchVerdict {
        shown: Shown::Nothing,
        certain: false,
        shared_windows: counts.shared_windows,
        accesses: counts.accesses,
        stores: counts.stores,
        threads: threads.len(),
        second_thread: threads.get(1).map_or(0, |thread| thread.accesses),
        hand_offs: counts.hand_offs,
        by_bytes: by_bytes(line, limits).filter(|_| cpus.len() > 1),
    };
    let alone = counts.busy_windows - counts.shared_windows;
    verdict.shown = verdict.kind(alone > counts.shared_windows, limits);
    let missing = counts.missing_share().unwrap_or(0.0);
    let enough = counts.accesses >= limits.certain_accesses
        && missing <= limits.certain_missing_share
        && verdict.shown != Shown::Nothing;
    verdict.certain = enough
        && if verdict.shown.verdict().is_some() {
            counts.shared_windows >= limits.certain_windows && verdict.is_clear_cut(limits)
        } else {
            counts.busy_windows >= limits.certain_clear_windows
        };
    verdict
}

/// The kind of sharing by bytes alone, by the same arithmetic and limit as for samples.
fn by_bytes(line: &WatchedLine, limits: &WatchThresholds) -> Option<Verdict> {
    let (truly, falsely) = line.byte_shares()?;
    Some(
        match (truly < limits.mixed_share, falsely < limits.mixed_share) {
            (true, _) => Verdict::FalseSharing,
            (false, true) => Verdict::TrueSharing,
            (false, false) => Verdict::MixedSharing,
        },
    )
}

impl WatchVerdict {
    /// Whether the windows prove this kind of sharing. Which of two kinds that are both there weighs enough to
    /// be named is then for the samples to say: they weigh by time at full speed, the windows by accesses
    /// that all take a trap.
    pub fn proves(&self, kind: Verdict, limits: &WatchThresholds) -> bool {
        if self.shown == Shown::Apart {
            return self.by_bytes == Some(kind) && self.second_thread >= limits.thread_accesses;
        }
        if kind != Verdict::MixedSharing {
            return self.shown.verdict() == Some(kind);
        }
        let least = self.hand_offs.truly.min(self.hand_offs.falsely);
        let enough = limits.proven_share..=1.0 - limits.proven_share;
        let truly = self.hand_offs.true_share();
        self.shown.verdict().is_some()
            && least >= limits.hand_offs
            && truly.is_some_and(|truly| enough.contains(&truly))
    }

    fn kind(&self, mostly_alone: bool, limits: &WatchThresholds) -> Shown {
        if self.accesses < limits.accesses {
            return Shown::Nothing;
        }
        if self.threads < 2 {
            return Shown::OneThread;
        }
        if self.stores == 0 {
            return Shown::NoStores;
        }
        let hand_offs = self.hand_offs.total();
        let least = limits.hand_off_share * self.accesses as f64;
        let rare = hand_offs < limits.hand_offs || (hand_offs as f64) < least;
        if rare || self.second_thread < limits.thread_accesses {
            return if mostly_alone && self.by_bytes.is_some() {
                Shown::Apart
            } else {
                Shown::NotHandedOff
            };
        }
        match self.hand_offs.true_share() {
            None => Shown::Nothing,
            Some(share) if share < limits.mixed_share => Shown::FalseSharing,
            Some(share) if share > 1.0 - limits.mixed_share => Shown::TrueSharing,
            Some(_) => Shown::MixedSharing,
        }
    }

    fn is_clear_cut(&self, limits: &WatchThresholds) -> bool {
        let Some(share) = self.hand_offs.true_share() else {
            return false;
        };
        let n = self.hand_offs.decided() as f64;
        let z2 = limits.certain_deviations.powi(2);
        let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let spread = (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        let reach = limits.certain_deviations * spread / (1.0 + z2 / n);
        let holds = |limit: f64| (middle - limit).abs() <= reach;
        !holds(limits.mixed_share) && !holds(1.0 - limits.mixed_share)
    }
}
