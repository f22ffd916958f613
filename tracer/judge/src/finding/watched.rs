//! What the windows on a line show: the verdict that needs no statistics of samples.

use crate::{
    analysis::{CpuSet, Group, HandOffs, Kinds, WatchedLine},
    finding::{Member, Verdict, verdict::MIXED_SHARE},
};

/// What the complete orders of a line say. The first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowVerdict {
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
    /// False sharing, by [`Verdict::of`] their kinds.
    FalseSharing,
    /// True sharing.
    TrueSharing,
    /// Both.
    MixedSharing,
}

impl WindowVerdict {
    fn sharing(verdict: Verdict) -> WindowVerdict {
        match verdict {
            Verdict::FalseSharing => WindowVerdict::FalseSharing,
            Verdict::TrueSharing => WindowVerdict::TrueSharing,
            Verdict::MixedSharing => WindowVerdict::MixedSharing,
        }
    }

    /// Whether the line is shown not to be shared.
    pub(super) fn is_no_sharing(self) -> bool {
        matches!(
            self,
            WindowVerdict::OneThread | WindowVerdict::NoStores | WindowVerdict::NotHandedOff
        )
    }

    /// The kind of sharing, if it is sharing.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            WindowVerdict::FalseSharing => Some(Verdict::FalseSharing),
            WindowVerdict::TrueSharing => Some(Verdict::TrueSharing),
            WindowVerdict::MixedSharing => Some(Verdict::MixedSharing),
            WindowVerdict::Nothing
            | WindowVerdict::OneThread
            | WindowVerdict::NoStores
            | WindowVerdict::NotHandedOff
            | WindowVerdict::Apart => None,
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
    /// Most chance, 0..=1, that windows missed the stores that loads of a line waited for, for calling the line not
    /// waited for. Loads that took 8 % of the time need 36 windows on each word, those that took 30 %, 9. Samples would
    /// have had to miss all of these stores too, so this need not be less.
    pub unstored_chance: f64,
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
            certain_windows: 3,
            certain_accesses: 300,
            proven_share: 0.01,
            certain_clear_windows: 100,
            changing_windows: 8,
            certain_missing_share: 0.05,
            unstored_chance: 0.05,
            certain_deviations: 3.0,
        }
    }
}

/// What a line's windows show, with the counts behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchVerdict {
    /// What.
    pub shown: WindowVerdict,
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
    /// The same two, if each access that is known to lie within some bytes only
    /// ([`Access::within`](crate::access::Access::within)) touched all of those; `hand_offs` and `by_bytes` are as if it
    /// touched none that others use. `None` where the bytes of all are known.
    pub widest: Option<(HandOffs, Option<Verdict>)>,
}

/// Judges a watched line by [`WatchThresholds`].
///
/// It shows sharing when two threads have at least [`thread_accesses`](WatchThresholds::thread_accesses) each,
/// one stores, and the line is handed off at least [`hand_offs`](WatchThresholds::hand_offs) times and in at
/// least [`hand_off_share`](WatchThresholds::hand_off_share) of the accesses; which kind, by what the decided ones
/// brought. `groups` are bytes that belong together, as [`groups`](crate::analysis::groups) tells.
///
/// It is certain, with enough accesses and hardly a hit missing, when
/// - it shows sharing, enough windows had several threads, and the confidence intervals of the shares that decide
///   (Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927) do not hold
///   the limit between two kinds; with all hand-offs of one kind, 82 suffice;
/// - it shows none, and enough windows had accesses.
///
/// Where the bytes of accesses are not known, it shows, and is certain of, what holds whether they touched all bytes
/// that they may have touched or none that others use.
///
/// Windows before the first that watched a word in narrower parts, because of such accesses, do not count.
///
/// All of this is about the watched words: words that were never watched together
/// ([`WatchedWords`](crate::analysis::WatchedWords)) may share in other ways.
pub fn shown(line: &WatchedLine, groups: &[Group], limits: &WatchThresholds) -> WatchVerdict {
    let counts = line.telling();
    let threads = line.threads();
    let mut cpus = CpuSet::default();
    for thread in &threads {
        cpus.merge(&thread.cpus);
    }
    let by_bytes = |kinds: Option<Kinds>| kinds.filter(|_| cpus.len() > 1).map(Verdict::of);
    let verdict = WatchVerdict {
        shown: WindowVerdict::Nothing,
        certain: false,
        shared_windows: counts.shared_windows,
        accesses: counts.accesses,
        stores: counts.stores,
        threads: threads.len(),
        second_thread: threads.get(1).map_or(0, |thread| thread.accesses),
        hand_offs: line.hand_offs(groups),
        by_bytes: by_bytes(line.kinds_by_bytes(groups)),
        widest: (!counts.unplaced.is_empty()).then(|| {
            let kinds = line.widest_kinds_by_bytes(groups);
            (line.widest_hand_offs(groups), by_bytes(kinds))
        }),
    };
    let missing = counts.missing_share().unwrap_or(0.0);
    let judged = verdict.judged(counts.busy_windows, limits);
    WatchVerdict {
        certain: judged.certain && missing <= limits.certain_missing_share,
        ..judged
    }
}

/// What windows on several lines of one thing show together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pooled {
    pub(super) verdict: WatchVerdict,
    /// Lines on which they saw several threads.
    pub(super) lines: usize,
}

/// Judges the windows on all of these lines as if they had been on one; `None` where there was none. Each window has one
/// line, so that what it saw is that line's own; how certain the whole is grows with all of them.
pub(super) fn pooled<'a>(
    members: impl Iterator<Item = &'a Member>,
    limits: &WatchThresholds,
) -> Option<Pooled> {
    let mut all: Option<WatchVerdict> = None;
    let (mut lines, mut busy_windows) = (0, 0);
    for member in members {
        let Some(watched) = &member.watched else {
            continue;
        };
        lines += usize::from(watched.shared_windows > 0);
        busy_windows += member.busy_windows;
        all = Some(all.map_or(**watched, |sum| sum.plus(watched)));
    }
    let verdict = all?.judged(busy_windows, limits);
    Some(Pooled { verdict, lines })
}

impl WatchVerdict {
    /// The numbers of both together; what they show is to be [`judged`](WatchVerdict::judged). Whose bytes touch whose is
    /// the first one's.
    fn plus(self, other: &WatchVerdict) -> WatchVerdict {
        let (mine, others) = (self.most(), other.most());
        let are_known = self.widest.is_none() && other.widest.is_none();
        WatchVerdict {
            shared_windows: self.shared_windows + other.shared_windows,
            accesses: self.accesses + other.accesses,
            stores: self.stores + other.stores,
            threads: self.threads.max(other.threads),
            second_thread: self.second_thread + other.second_thread,
            hand_offs: self.hand_offs.plus(&other.hand_offs),
            widest: (!are_known).then(|| (mine.hand_offs.plus(&others.hand_offs), mine.by_bytes)),
            ..self
        }
    }

    /// The same numbers, with what they show: what holds whether the accesses whose bytes are not known touched all that
    /// they may, or none that others use.
    fn judged(self, busy_windows: u64, limits: &WatchThresholds) -> WatchVerdict {
        let mostly_alone =
            busy_windows - self.shared_windows.min(busy_windows) > self.shared_windows;
        let judge = |verdict: WatchVerdict| {
            let shown = verdict.kind(mostly_alone, limits);
            let verdict = WatchVerdict { shown, ..verdict };
            (shown, verdict.is_certain(busy_windows, limits))
        };
        let (least, most) = (judge(self), judge(self.most()));
        let is_same = least.0 == most.0;
        WatchVerdict {
            shown: if is_same {
                least.0
            } else {
                WindowVerdict::Nothing
            },
            certain: is_same && least.1 && most.1,
            ..self
        }
    }

    /// As if the accesses whose bytes are not known touched all that they may.
    fn most(&self) -> WatchVerdict {
        let (hand_offs, by_bytes) = self.widest.unwrap_or((self.hand_offs, self.by_bytes));
        WatchVerdict {
            hand_offs,
            by_bytes,
            widest: None,
            ..*self
        }
    }

    /// The hand-offs whose kind does not depend on where an access lies whose bytes are not known; of the others the
    /// kind is undecided.
    pub fn sure_hand_offs(&self) -> HandOffs {
        let (least, most) = (self.hand_offs, self.most().hand_offs);
        let (truly, falsely) = (least.truly.min(most.truly), least.falsely.min(most.falsely));
        HandOffs {
            truly,
            falsely,
            dragged: least.dragged.min(most.dragged),
            undecided: least.total() - truly - falsely,
        }
    }

    /// Whether it puts another kind in the place of what samples say.
    pub(super) fn decides(&self, limits: &WatchThresholds) -> bool {
        self.certain && self.shared_windows >= limits.changing_windows
    }

    fn is_certain(&self, busy_windows: u64, limits: &WatchThresholds) -> bool {
        self.accesses >= limits.certain_accesses
            && self.shown != WindowVerdict::Nothing
            && if self.shown.verdict().is_some() {
                self.shared_windows >= limits.certain_windows && self.is_clear_cut(limits)
            } else {
                busy_windows >= limits.certain_clear_windows
            }
    }

    /// Whether the windows prove this kind of sharing. Which of two kinds that are both there weighs enough to
    /// be named is then for the samples to say: they weigh by time at full speed, the windows by accesses
    /// that all take a trap.
    pub fn proves(&self, kind: Verdict, limits: &WatchThresholds) -> bool {
        if self.widest.is_some() && !self.most().proves(kind, limits) {
            return false;
        }
        if self.shown == WindowVerdict::Apart {
            return self.by_bytes == Some(kind) && self.second_thread >= limits.thread_accesses;
        }
        if kind != Verdict::MixedSharing {
            return self.shown.verdict() == Some(kind);
        }
        let HandOffs {
            truly,
            falsely,
            dragged,
            ..
        } = self.hand_offs;
        let least = truly.min(falsely + dragged);
        self.shown.verdict().is_some()
            && least >= limits.hand_offs
            && least as f64 >= limits.proven_share * self.hand_offs.decided() as f64
    }

    fn kind(&self, mostly_alone: bool, limits: &WatchThresholds) -> WindowVerdict {
        if self.accesses < limits.accesses {
            return WindowVerdict::Nothing;
        }
        if self.threads < 2 {
            return WindowVerdict::OneThread;
        }
        if self.stores == 0 {
            return WindowVerdict::NoStores;
        }
        let hand_offs = self.hand_offs.total();
        let least = limits.hand_off_share * self.accesses as f64;
        let rare = hand_offs < limits.hand_offs || (hand_offs as f64) < least;
        if rare || self.second_thread < limits.thread_accesses {
            return if mostly_alone && self.by_bytes.is_some() {
                WindowVerdict::Apart
            } else {
                WindowVerdict::NotHandedOff
            };
        }
        self.hand_offs
            .kinds()
            .map_or(WindowVerdict::Nothing, |kinds| {
                WindowVerdict::sharing(Verdict::of(kinds))
            })
    }

    fn is_clear_cut(&self, limits: &WatchThresholds) -> bool {
        let Some(kinds) = self.hand_offs.kinds() else {
            return false;
        };
        let n = self.hand_offs.decided() as f64;
        let z2 = limits.certain_deviations.powi(2);
        let is_clear = |share: f64| {
            let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
            let spread = (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
            let reach = limits.certain_deviations * spread / (1.0 + z2 / n);
            (middle - MIXED_SHARE).abs() > reach
        };
        is_clear(kinds.truly) && (kinds.truly < MIXED_SHARE || is_clear(kinds.falsely))
    }
}
