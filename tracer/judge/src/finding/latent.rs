//! Sharing that is not there yet: which of the ways in which some memory may lie make threads fight for it.
//!
//! The rule is that of a line whose complete order is known ([`complete`](super::complete)), applied to what a way adds to
//! today's: so many hand-offs more that it is no hand-over from one phase to the next, some of them because of neighbours, so
//! that the verdict is false or mixed sharing; and of the messages that it adds, the same part as of the hand-offs of a known
//! kind is more than the least share of the run's. Values that threads want from each other are handed over wherever the
//! memory lies; a way that moves them from one line to another, or parts them over two, makes nobody fight. Where threads do
//! already as the memory lies today, that is a finding, and only what is worse is told here. Memory that the program asks to
//! begin at a multiple of so many bytes begins nowhere else, and what it would cost there is no matter.

use super::{Thresholds, Verdict};
use crate::{
    access::Cost,
    analysis::{HandOffs, OneMoreElement, There, Way},
};

/// Some memory for which threads would fight if it lay otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latent {
    /// What it costs as it is.
    pub today: There,
    /// Each other way that was replayed, in the order of [`Way::all`].
    pub ways: Vec<LatentWay>,
}

/// One way in which memory may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentWay {
    /// Which.
    pub way: Way,
    /// What it would cost.
    pub there: There,
    /// Whether memory that the program asks to be aligned may lie so; `None` where it is not known what it asks for.
    pub keeps_alignment: Option<bool>,
    /// Whether threads would fight that do not today, where it may lie so.
    pub fights: bool,
}

impl Latent {
    /// Messages that the worst way adds to today's.
    pub fn most_added(&self) -> u64 {
        let fights = self.ways.iter().filter(|way| way.fights);
        let added = fights.map(|way| way.there.messages.saturating_sub(self.today.messages));
        added.max().unwrap_or(0)
    }
}

/// Judges the ways; `None` where no way makes threads fight that do not today. `alignment`: the program asks for a start at a
/// multiple of so many bytes, which is where the memory starts today. `whole` is what the run counted, messages.
pub fn latent(
    ways: &[(Way, There)],
    alignment: Option<u64>,
    whole: Cost,
    thresholds: &Thresholds,
) -> Option<Latent> {
    let (_, today) = *ways.iter().find(|(way, _)| *way == Way::TODAY)?;
    let others = ways.iter().filter(|(way, _)| *way != Way::TODAY);
    let ways: Vec<LatentWay> = others
        .map(|(way, there)| {
            let keeps_alignment = alignment.map(|bytes| way.keeps(bytes));
            let may_be = keeps_alignment.unwrap_or(true);
            LatentWay {
                way: *way,
                there: *there,
                keeps_alignment,
                fights: may_be && would_fight(&today, there, whole, thresholds),
            }
        })
        .collect();
    let any = ways.iter().any(|way| way.fights);
    any.then_some(Latent { today, ways })
}

/// Whether one more thread would fight at the end of an array, where that costs `there`, for what threads do not fight for
/// today.
pub fn one_more_fights(
    element: &OneMoreElement,
    there: &There,
    whole: Cost,
    thresholds: &Thresholds,
) -> bool {
    let is_finding = element.fought_for as f64 >= thresholds.hand_offs;
    element.is_own && !is_finding && would_fight(&element.today, there, whole, thresholds)
}

/// Whether threads would fight where memory costs `there` for what they do not fight for where it costs `today`.
pub fn would_fight(today: &There, there: &There, whole: Cost, thresholds: &Thresholds) -> bool {
    let more = |of: fn(&HandOffs) -> u64| {
        let [today, there] = [today, there].map(|there| of(&there.hand_offs));
        there.saturating_sub(today)
    };
    let verdict = there.hand_offs.kinds().map(Verdict::of);
    let neighbours = more(|hand_offs| hand_offs.falsely.saturating_add(hand_offs.dragged));
    if neighbours == 0 || verdict.is_none_or(|verdict| verdict == Verdict::TrueSharing) {
        return false;
    }
    // Those of which the kind is not known say nothing for either.
    let part = (neighbours as f64 / more(HandOffs::decided).max(1) as f64).min(1.0);
    let messages = there.messages.saturating_sub(today.messages);
    // Of the run as it would be then.
    let all = Cost(whole.0.saturating_add(messages)).estimate();
    more(HandOffs::total) as f64 >= thresholds.hand_offs
        && messages > 0
        && messages as f64 * part >= all.0 * thresholds.cost_share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(truly: u64, falsely: u64, messages: u64) -> There {
        There {
            hand_offs: HandOffs {
                truly,
                falsely,
                ..HandOffs::default()
            },
            messages,
        }
    }

    fn moved(moved: u8) -> Way {
        Way {
            moved,
            line_bytes: 64,
        }
    }

    fn fighting(ways: &[(Way, There)], whole: u64) -> Vec<u8> {
        asking(ways, None, whole)
    }

    fn asking(ways: &[(Way, There)], alignment: Option<u64>, whole: u64) -> Vec<u8> {
        let judged = latent(ways, alignment, Cost(whole), &Thresholds::default());
        let ways = judged.into_iter().flat_map(|latent| latent.ways);
        let fights = ways.filter(|way| way.fights);
        fights.map(|way| way.way.moved).collect()
    }

    #[test]
    fn a_way_fights_that_adds_hand_offs_for_neighbours_at_a_cost_that_matters() {
        let ways = [
            (Way::TODAY, there(0, 0, 0)),
            (moved(8), there(0, 100, 300)),
            (moved(16), there(0, 4, 300)),
            (moved(24), there(100, 0, 300)),
            (moved(32), there(0, 100, 5)),
        ];
        assert_eq!(fighting(&ways, 1000), [8]);
        // Of so many messages these are nothing.
        assert!(fighting(&ways, 100_000).is_empty());
    }

    #[test]
    fn a_part_of_them_is_enough_if_it_costs_enough() {
        let ways = [
            (Way::TODAY, there(1000, 0, 3000)),
            (moved(8), there(1500, 500, 7000)),
            (moved(16), there(1990, 10, 7000)),
        ];
        assert_eq!(fighting(&ways, 10_000), [8]);
        assert!(fighting(&ways, 1_000_000).is_empty());
    }

    #[test]
    fn what_asks_to_begin_with_a_line_is_told_no_other_start_but_longer_lines() {
        let long = |moved| Way {
            moved,
            line_bytes: 128,
        };
        let bad = there(0, 100, 300);
        let starts = [
            (Way::TODAY, There::default()),
            (moved(16), bad),
            (moved(24), bad),
        ];
        let all = [&starts[..], &[(long(0), bad), (long(64), bad)]].concat();
        // Nothing is known, or multiples of 8 are all that was asked for.
        assert_eq!(asking(&all, None, 1000), [16, 24, 0, 64]);
        assert_eq!(asking(&all, Some(8), 1000), [16, 24, 0, 64]);
        assert_eq!(asking(&all, Some(16), 1000), [16, 0, 64]);
        assert_eq!(asking(&all, Some(64), 1000), [0, 64]);
        assert_eq!(asking(&all, Some(4096), 1000), [0]);
        assert!(asking(&starts, Some(64), 1000).is_empty());
    }

    #[test]
    fn hand_offs_of_no_known_kind_are_on_nobody_s_side() {
        let undecided = HandOffs {
            falsely: 20,
            undecided: 80,
            ..HandOffs::default()
        };
        let there = There {
            hand_offs: undecided,
            messages: 300,
        };
        let ways = [(Way::TODAY, There::default()), (moved(8), there)];
        assert_eq!(fighting(&ways, 1000), [8]);
    }

    #[test]
    fn where_threads_fight_already_only_what_is_worse_counts() {
        let ways = [
            (Way::TODAY, there(0, 100, 300)),
            (moved(8), there(0, 100, 301)),
            (moved(16), there(0, 200, 600)),
        ];
        assert_eq!(fighting(&ways, 1000), [16]);
    }

    #[test]
    fn what_threads_want_from_each_other_costs_the_same_wherever_it_is() {
        let ways = [
            (Way::TODAY, there(100, 0, 300)),
            (moved(8), there(100, 0, 300)),
        ];
        assert!(fighting(&ways, 1000).is_empty());
    }
}
