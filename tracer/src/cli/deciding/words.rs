//! Why a load is left, and what a reader of the hints must know, in words.

use crate::{
    finding::{Chosen, Filter, LeftAlone, LeftBecause, LoadThresholds},
    number::count,
};

/// Why a load is left.
pub(super) fn left(left: &LeftAlone) -> String {
    let load = &left.load;
    match left.because {
        LeftBecause::CostsMoreThanItSaves => format!(
            "a hint would save {} messages and add {}; {} would cost more",
            load.saved,
            load.lost,
            count(load.readers_hurt, "read", "reads")
        ),
        LeftBecause::SavesNothing => {
            "a hint would change no number of messages: no store follows before others ask for the line"
                .to_owned()
        }
        LeftBecause::SameInstruction => {
            "one instruction reads and writes, and fetches for ownership by itself".to_owned()
        }
        LeftBecause::OneOff => format!(
            "{} in the whole run: a hint would save {} messages once, and the next run may not have them",
            count(load.requests, "request of it", "requests of it"),
            load.net()
        ),
        LeftBecause::SeldomStored => format!(
            "the store follows {} of {} requests: most prefetches would take a line that is not written next",
            load.followed_by_store, load.requests
        ),
        LeftBecause::TooFewRequests => {
            format!("only {} requests of it were seen", load.requests)
        }
        LeftBecause::SavesTooLittle => format!(
            "a hint would save {} messages in {} requests",
            load.net(),
            load.requests
        ),
        LeftBecause::HurtsReaders(share) => format!(
            "a hint would save {} messages, but {} would cost more, {share:.2} a request",
            load.net(),
            count(load.readers_hurt, "read", "reads")
        ),
        LeftBecause::MovesMessagesToLoads => format!(
            "a hint would save {} messages, but loads would wait for {} more, and for all hints together that is too many",
            load.net(),
            load.load_messages_added
        ),
        LeftBecause::CostsBesideOthers => format!(
            "a hint would save {} messages alone, but nothing beside the other hints",
            load.net()
        ),
        LeftBecause::CostsInOneRun => format!(
            "a hint would save {} messages in all sessions together, but cost some in one of them",
            load.net()
        ),
        LeftBecause::NoPair => {
            "no request for ownership by the same processor ever followed as the next one for its line"
                .to_owned()
        }
    }
}

/// What a reader must know of how the hints were chosen.
pub(super) fn caveats(chosen: &Chosen, limits: &LoadThresholds, filter: Filter) -> Vec<String> {
    let mut caveats = vec![
        "Messages are counted with caches that never evict a line: real ones ask for lines again, and what hints save then \
         differs."
            .to_owned(),
    ];
    let without = &chosen.without;
    if chosen.from_papers {
        caveats.push(
            "The hints that the limits on single loads allow save less than the paper's filter: its set is corrected \
             instead, and those limits are not kept."
                .to_owned(),
        );
    }
    if filter == Filter::Ours && chosen.with_papers.transactions < chosen.with.transactions {
        let papers = &chosen.with_papers;
        let growth = without.load_transactions as f64 * (1.0 + limits.load_growth);
        let but = if papers.load_transactions as f64 > growth {
            format!(
                "messages that loads wait for would go from {} to {}, more than {} % up",
                without.load_transactions,
                papers.load_transactions,
                limits.load_growth * 100.0
            )
        } else {
            "with loads that are left here, each with its reason: one-off ones, and those that a store seldom follows"
                .to_owned()
        };
        caveats.push(format!(
            "The paper's filter, with {} loads, would leave {} messages instead of {}, but {but}.",
            chosen.papers, papers.transactions, chosen.with.transactions
        ));
    }
    if chosen.with.load_transactions > without.load_transactions && filter == Filter::Swift {
        caveats.push(format!(
            "Messages that loads wait for go from {} to {} with these hints.",
            without.load_transactions, chosen.with.load_transactions
        ));
    }
    if chosen.from_a_part {
        caveats.push(
            "The order has more hand-offs than there is memory for: hints were searched for on a part of them, and then run on \
             all."
                .to_owned(),
        );
    }
    if without.beyond > 0 {
        caveats.push(format!(
            "{} accesses to lines beyond the bound on memory are not counted.",
            without.beyond
        ));
    }
    if without.nameless > 0 {
        caveats.push(format!(
            "{} executions of loads beyond the bound on memory are counted for no load.",
            without.nameless
        ));
    }
    if chosen.unknown > 0 {
        caveats.push(format!(
            "Of {} requests it is not known what a hint would have changed, as too many loads wanted the line; the counts of \
             all hints together have them.",
            chosen.unknown
        ));
    }
    caveats
}
