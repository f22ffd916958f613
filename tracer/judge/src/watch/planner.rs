//! Chooses what the next window watches: which line, and which of its words.
//!
//! A word in which an access could not be placed is watched in parts from then on, see `parts`.
//!
//! Suspicious lines take turns by their cost until the windows have shown what they are; after that each is
//! looked at now and then, since programs change. Lines of the kernel are not watched: a breakpoint on
//! memory that interrupt and scheduler code touches would trap there.

use rustc_hash::FxHashMap;

use super::{
    parts::{self, Part},
    words::{self, WORD_BYTES},
};
use crate::{
    access::{ByteSet, Cost, LineKey, LineSize, Pid},
    analysis::{Site, SiteCounts, WatchedLine, WatchedLines},
    event::WatchedWord,
    finding::{Confidence, Judgement, Reason, Significance},
    space::AddressSpaces,
};

/// After its verdict is certain, a line is looked at again after so long.
const AGAIN_NS: u64 = 1_000_000_000;

/// Lines whose turns are kept in mind; beyond, those of long ago are forgotten.
const MOST_TURNS: usize = 1 << 13;
/// A line that is suspicious still had a turn since, nanoseconds.
const LONG_AGO_NS: u64 = 60_000_000_000;

/// Accesses after which the pairs of a line have been seen often enough: a load that is one in fifty of them
/// has its 16 executions twice over.
const ENOUGH_ACCESSES: u64 = 1500;

/// Hits of a short window.
const SHORT_HITS: u64 = 24;

/// Bytes of one slot's widest word, and so of what one request can ask for at most: 4 slots.
const WIDEST: u64 = WORD_BYTES;

/// No program has memory below: what seems to be there was an instruction whose registers had changed.
const FIRST_PAGE: u64 = 4096;

/// What the next window shall watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The line; `None` where the user named the words.
    pub line: Option<LineKey>,
    /// Words of it, at each address where a running target has them mapped; as many as there are slots at
    /// most.
    pub words: Vec<WatchedWord>,
    /// Several targets have the line at the same address: take the hits of all.
    pub everyone: bool,
    /// There is data on the line that is not aligned: where an access lies whose bytes are not known, alignment says
    /// nothing.
    pub packed: bool,
    /// Hits that tell all that this window can.
    pub enough_hits: u64,
}

/// Bytes that the user asked to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In whose memory.
    pub pid: Pid,
    /// Virtual address.
    pub addr: u64,
    /// Bytes, at least 1.
    pub len: u64,
}

/// What a plan is made from.
pub struct View<'a> {
    /// What samples say of the lines, worst first.
    pub judgements: &'a [Judgement],
    /// What windows have shown so far.
    pub watched: &'a WatchedLines,
    /// Where the lines are mapped.
    pub spaces: &'a AddressSpaces,
    /// Line size that lines are told apart by.
    pub line_size: LineSize,
    /// Least share of the cost, 0..=1, for a finding.
    pub cost_share: f64,
    /// Target time that all samples stand for, nanoseconds.
    pub whole: Cost,
}

/// How often a line had its turn, and when.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    windows: u64,
    last_ns: u64,
}

/// Remembers whose turn it is.
#[derive(Debug, Default)]
pub struct Planner {
    turns: FxHashMap<LineKey, Turns>,
    /// Of the asked words, the next to watch.
    next_asked: usize,
}

impl Planner {
    /// The next window among suspicious lines, with room for `slots` words; `None` when there is nothing
    /// to watch now.
    pub fn next(&mut self, view: &View<'_>, slots: usize, now_ns: u64) -> Option<Request> {
        let mut best: Option<((Known, f64), Request)> = None;
        for judgement in view.judgements {
            let Some(weight) = weight(judgement, view) else {
                continue;
            };
            let turns = self.turns.get(&judgement.key).copied().unwrap_or_default();
            let known = known(judgement, view.watched);
            if known == Known::Everything && now_ns.saturating_sub(turns.last_ns) < AGAIN_NS {
                continue;
            }
            // Stride scheduling: turns in proportion to the weight, among the lines of which least is known.
            let turn = (turns.windows + 1) as f64 / weight;
            let due = (known, turn);
            if best.as_ref().is_some_and(|(least, _)| *least <= due) {
                continue;
            }
            if let Some(request) = request(judgement, view, slots) {
                best = Some((due, request));
            }
        }
        let (_, request) = best?;
        if self.turns.len() >= MOST_TURNS {
            self.turns
                .retain(|_, turns| now_ns.saturating_sub(turns.last_ns) < LONG_AGO_NS);
        }
        let turns = self.turns.entry(request.line?).or_default();
        turns.windows += 1;
        turns.last_ns = now_ns;
        Some(request)
    }

    /// The next window of what the user asked for: the ranges take turns, and of a range that needs more than
    /// `slots` words, its parts.
    pub fn next_asked(
        &mut self,
        asked: &[Asked],
        line_size: LineSize,
        slots: usize,
    ) -> Option<Request> {
        let pieces: Vec<Vec<WatchedWord>> = asked
            .iter()
            .flat_map(|asked| pieces(*asked, line_size, slots))
            .collect();
        if pieces.is_empty() {
            return None;
        }
        let words = pieces[self.next_asked % pieces.len()].clone();
        self.next_asked = (self.next_asked + 1) % pieces.len();
        Some(Request {
            line: None,
            words,
            everyone: false,
            packed: false,
            enough_hits: u64::MAX,
        })
    }
}

/// Whether windows show another kind of sharing than samples do, and too few of them to decide.
fn disagrees(judgement: &Judgement) -> bool {
    let shown = judgement
        .watched
        .as_ref()
        .and_then(|watched| watched.verdict.shown.verdict());
    shown.is_some() && judgement.confidence == Confidence::Sampled
}

/// Where the windows so far met one thread alone, or too few of many, or nobody who stores, more of the same window
/// shows more of the same: many short ones have a better chance to meet the others.
fn enough_hits(judgement: &Judgement) -> u64 {
    let no_store_seen = judgement.significance == Significance::Insignificant(Reason::NoStoreSeen);
    if disagrees(judgement) || no_store_seen || judgement.significance.is_left_out() {
        return SHORT_HITS;
    }
    let counts = judgement.watched.as_ref().map(|watched| &watched.counts);
    match counts {
        Some(counts) if counts.busy_windows > 2 * counts.shared_windows => SHORT_HITS,
        _ => u64::MAX,
    }
}

/// What windows have shown of a line so far.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Known {
    /// Too little for a verdict, or words in use that were never watched together.
    TooLittle,
    /// The verdict, but its pairs had too few executions to be told.
    Verdict,
    /// All there is.
    Everything,
}

fn known(judgement: &Judgement, watched: &WatchedLines) -> Known {
    let Some(seen) = &judgement.watched else {
        return Known::TooLittle;
    };
    let active = ByteSet(seen.counts.touched.0 | sampled(&judgement.sites).0);
    let words = watched.get(judgement.key).map(WatchedLine::words);
    if !seen.verdict.certain
        || disagrees(judgement)
        || words.is_none_or(|words| !words.missing(active).is_empty())
    {
        Known::TooLittle
    } else if seen.counts.accesses < ENOUGH_ACCESSES {
        Known::Verdict
    } else {
        Known::Everything
    }
}

/// The bytes that samples saw in use.
fn sampled(sites: &[SiteCounts]) -> ByteSet {
    let touching = sites.iter().filter(|site| site.site.op.touches());
    ByteSet(touching.fold(0, |all, site| all | site.site.reach(LineSize::B128).0))
}

/// Whether an access of known bytes is not aligned to its size.
fn is_packed(sites: &[SiteCounts]) -> bool {
    let is_misaligned = |site: &Site| {
        site.within == 0
            && site.size_known
            && matches!(site.size, 2 | 4 | 8)
            && !site.offset.is_multiple_of(site.size)
    };
    sites.iter().any(|site| is_misaligned(&site.site))
}

/// How much a line deserves to be watched; `None` where windows have nothing to decide.
fn weight(judgement: &Judgement, view: &View<'_>) -> Option<f64> {
    let share = judgement.shared_share.unwrap_or(0.0);
    let alike = judgement.alike_share.unwrap_or(0.0);
    match judgement.significance {
        // Nothing costs less than a thousandth as much as another and is found.
        Significance::Significant => Some(share.max(1e-3)),
        Significance::Insignificant(reason) => match reason {
            // A writer that no sample caught, or what only seems to be waited for: the more it takes, the more it would
            // be missing elsewhere. Most often it is beside a finding, which comes first.
            Reason::NoStoreSeen | Reason::WaitUndecided => {
                let stalled = judgement.cost.0 as f64 / view.whole.0.max(1) as f64;
                Some((stalled / 10.0).clamp(1e-4, 1.0))
            }
            // Too little to tell yet.
            Reason::TooFewStores | Reason::TooFewSamples => Some(1e-4),
            // Somebody may begin to store there.
            Reason::NotWaitedFor => Some(1e-5),
            // It moves, and windows can tell what for.
            Reason::WriterNotSampled | Reason::FromOtherCaches | Reason::SizesUnknown => {
                Some(share.max(1e-3))
            }
            // Threads that wait for each other by turns longer than samples are apart.
            Reason::NotInterleaved => {
                let share = judgement.together_share.unwrap_or(0.0).max(alike);
                (share >= view.cost_share).then_some(1e-4)
            }
            // With others of its kind it costs enough. Several of them take their turns.
            Reason::CostBelowThreshold => (alike >= view.cost_share).then_some(1e-4),
            Reason::OneCpu
            | Reason::ServedApart
            | Reason::Contradicted
            | Reason::ReadOnly
            | Reason::HardlyHandedOff => None,
        },
    }
}

/// The words of a judged line that windows should see next.
fn request(judgement: &Judgement, view: &View<'_>, slots: usize) -> Option<Request> {
    let line = judgement.key;
    let line_size = view.line_size;
    let mut homes = view.spaces.addresses(line.0);
    homes.retain(|(_, addr)| *addr >= FIRST_PAGE);
    let processes = homes.len();
    // Forked processes have shared memory at one address, where one breakpoint serves all of them.
    homes.sort_unstable_by_key(|&(pid, addr)| (addr, pid));
    homes.dedup_by_key(|(_, addr)| *addr);
    let room = slots / homes.len().max(1);
    if homes.is_empty() || room == 0 {
        return None;
    }
    let mut ranked = words::ranked(&judgement.sites, line_size);
    let seen = view.watched.get(line);
    let bytes = seen.map_or_else(ByteSet::default, |seen| seen.counts().touched);
    let words = 0..(line_size.bytes() / WORD_BYTES) as u8;
    let touched = |word: &u8| bytes.0 >> (u64::from(*word) * WORD_BYTES) & 0xff != 0;
    let unsampled = |ranked: &[u8], word: &u8| !ranked.contains(word);
    // Words that only windows saw in use, then, where the writer was not sampled, all others.
    let more: Vec<u8> = words
        .clone()
        .filter(|word| touched(word) && unsampled(&ranked, word))
        .collect();
    ranked.extend(more);
    if let Significance::Insignificant(
        Reason::NoStoreSeen
        | Reason::WaitUndecided
        | Reason::NotWaitedFor
        | Reason::WriterNotSampled
        | Reason::FromOtherCaches,
    ) = judgement.significance
    {
        let more: Vec<u8> = words
            .clone()
            .filter(|word| unsampled(&ranked, word))
            .collect();
        ranked.extend(more);
    }
    let together = |a: u8, b: u8| {
        let both = |seen: &WatchedLine| seen.words().together(usize::from(a), usize::from(b));
        seen.map_or(0, |seen| u64::from(both(seen)))
    };
    let unplaced = seen.map_or_else(ByteSet::default, |seen| seen.counts().unplaced);
    // Beside the parts of one word there is room for another.
    let most = if ranked.len() > 1 {
        room.div_ceil(2)
    } else {
        room
    };
    let most = most.max(2).min(room);
    let parts: Vec<Vec<Part>> = words
        .map(|word| parts::parts(word, &judgement.sites, unplaced, line_size, most))
        .collect();
    let parts = |word: u8| &parts[usize::from(word)];
    let chosen = words::choose(&ranked, room, |word| parts(word).len(), together);
    let words: Vec<WatchedWord> = (chosen.iter())
        .flat_map(|word| parts(*word))
        .flat_map(|part| {
            homes.iter().map(move |(pid, addr)| WatchedWord {
                pid: *pid,
                addr: addr + u64::from(part.offset),
                len: part.len,
            })
        })
        .collect();
    (!words.is_empty()).then_some(Request {
        line: Some(line),
        words,
        everyone: homes.len() < processes,
        packed: is_packed(&judgement.sites),
        enough_hits: enough_hits(judgement),
    })
}

/// A range cut into windows: words of one line, as few and as wide as their alignment allows.
fn pieces(asked: Asked, line_size: LineSize, slots: usize) -> Vec<Vec<WatchedWord>> {
    let mut pieces: Vec<Vec<WatchedWord>> = Vec::new();
    let mut at = asked.addr;
    let end = asked.addr.saturating_add(asked.len);
    let mut line = None;
    while at < end && slots > 0 {
        let aligned = 1 << at.trailing_zeros().min(WIDEST.trailing_zeros());
        let mut len = u64::min(aligned, WIDEST);
        while len > end - at {
            len /= 2;
        }
        let here = at & !(line_size.bytes() - 1);
        match pieces.last_mut() {
            Some(piece) if line == Some(here) && piece.len() < slots => piece.push(WatchedWord {
                pid: asked.pid,
                addr: at,
                len: len as u8,
            }),
            _ => pieces.push(vec![WatchedWord {
                pid: asked.pid,
                addr: at,
                len: len as u8,
            }]),
        }
        line = Some(here);
        at += len;
    }
    pieces
}

#[cfg(test)]
mod tests;
