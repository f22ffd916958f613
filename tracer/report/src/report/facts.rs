//! Why a line was judged as it was, in sentences with their numbers.

use super::{cost_words, model::AccessRow, pmu, waits};
use crate::number::{count, grouped, percent};
use crate::{
    access::{ByteSet, Cost, CostUnit},
    analysis::HandOffs,
    finding::{Confidence, Fact, Judgement, Reason, Verdict, WindowVerdict},
};

/// Sentences for one judged line and its rows. `whole` is the sum of all costs.
pub(super) fn sentences(
    judgement: &Judgement,
    rows: &[AccessRow],
    whole: Cost,
    unit: CostUnit,
) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(ordered(judgement));
    out.extend(watched(judgement));
    out.extend(pmu::seen(judgement));
    out.extend(waited(judgement, whole, unit));
    out.extend(waits::sentences(rows));
    out.extend(turns(judgement));
    out.extend(bytes(judgement));
    for fact in &judgement.facts {
        match *fact {
            Fact::Separable(part) => out.extend(separable(judgement, part, unit)),
            Fact::HarvestedOnly => out.push(
                "The evidence is weak: the conflict shows only in accesses that were inferred from the loops around \
                 the sampled instructions, not in the sampled instructions themselves."
                    .to_owned(),
            ),
            Fact::NoStoreSeen => out.push(
                "No store was sampled. That does not make the line read-only: a CPU rarely waits for its stores, so \
                 a writer may never be sampled."
                    .to_owned(),
            ),
            Fact::StalledWithoutStore(cost) => out.extend(unstored(judgement, cost, whole, unit)),
            Fact::WriterUnknown => out.push(
                "Somebody writes to it: a load finds a line modified in another CPU's cache only after that CPU's store. But \
                 no such store was sampled, so which bytes are written is not known, and whether the sharing is \
                 false or true cannot be said. Sample for longer, or watch the line while the program runs."
                    .to_owned(),
            ),
            Fact::LoadedApart => out.push(
                "Loads of different threads that found it modified are of different bytes. That would fit false sharing; it \
                 proves nothing without the writer."
                    .to_owned(),
            ),
            Fact::UntimedStores(n) => out.push(format!(
                "{} have no latency here: what {} waited is in no cost.",
                capital(&count(n, "sampled store", "sampled stores")),
                if n == 1 { "it" } else { "they" }
            )),
            Fact::UnknownSizes if judgement.verdict.is_none() => out.push(
                "The sizes of some accesses are not known. Whether they overlap within their aligned 8 bytes decides \
                 which bytes are shared."
                    .to_owned(),
            ),
            Fact::UnknownSizes => out.push(
                "The sizes of some accesses are not known. The verdict assumes aligned accesses of at most 8 bytes."
                    .to_owned(),
            ),
            Fact::Folded(n) => out.push(format!(
                "{} of rarely sampled instructions are counted but not listed, because the line has too many.",
                count(n, "access", "accesses")
            )),
            Fact::SampledAs(verdict) => out.push(format!(
                "Samples alone would have been taken for {}; the windows decide, since they saw each access.",
                kind_words(verdict)
            )),
            Fact::ShownInstead(shown) => out.push(format!(
                "Samples alone would have made this a finding, but the windows show {}.",
                shown_words(shown)
            )),
            Fact::HandOffs { .. }
            | Fact::CommonBytes(_)
            | Fact::PrivateBytes(_) => {}
        }
    }
    out
}

/// Why a line is not a finding, in a few words.
pub(super) fn reason(reason: Reason, cost_threshold: f64, unit: CostUnit) -> String {
    match reason {
        Reason::NoStoreSeen => "no store seen: read-only, or missed".to_owned(),
        Reason::OneCpu => "all of it ran on one CPU".to_owned(),
        Reason::NotInterleaved => "used one after the other, not by turns".to_owned(),
        Reason::TooFewSamples => "too few samples to tell it from chance".to_owned(),
        Reason::TooFewStores => "stores are rare: set once, then read?".to_owned(),
        Reason::CostBelowThreshold => {
            format!(
                "costs less than {} {}",
                percent(cost_threshold),
                cost_words::of(unit)
            )
        }
        Reason::WriterNotSampled => {
            "modified by others, but their stores were not sampled".to_owned()
        }
        Reason::FromOtherCaches => {
            "came from other CPUs' caches, but no store was sampled".to_owned()
        }
        Reason::SizesUnknown => "the sizes of its accesses decide, and are not known".to_owned(),
        Reason::ServedApart => "its loads waited for memory, not for other CPUs".to_owned(),
        Reason::Contradicted => "watch windows saw no sharing".to_owned(),
        Reason::NotWaitedFor => "only read: not waited for".to_owned(),
        Reason::WaitUndecided => "no store seen, and perhaps not waited for".to_owned(),
        Reason::ReadOnly => "never stored to".to_owned(),
        Reason::HardlyHandedOff => "handed over a few times only, not by turns".to_owned(),
    }
}

/// What the complete order shows.
fn ordered(judgement: &Judgement) -> Option<String> {
    let order = judgement.order.as_ref()?;
    let mut text = format!(
        "Every access was seen, in order: {} by {}. Since a second one came, the line was asked for {}",
        count(judgement.accesses, "execution", "executions"),
        count(judgement.threads.len() as u64, "thread", "threads"),
        count(order.requests.total(), "time", "times"),
    );
    text.push_str(&handed_off(&order.hand_offs, "processor"));
    Some(text)
}

/// The end of a sentence on a line's requests: what came of them.
pub(super) fn handed_off(hand_offs: &HandOffs, to: &str) -> String {
    if hand_offs.total() == 0 {
        return ".".to_owned();
    }
    let mut text = format!(
        ": {} moved it to another {to} after a store there; {} of these brought a change of bytes that the taker used \
         before it lost the line again, {} did not.",
        grouped(hand_offs.total()),
        grouped(hand_offs.truly),
        grouped(hand_offs.falsely)
    );
    if hand_offs.dragged > 0 {
        text.push_str(&format!(
            " {} of the former also took along bytes that the taker uses and nobody had changed.",
            grouped(hand_offs.dragged)
        ));
    }
    text
}

/// What the windows on the line saw.
fn watched(judgement: &Judgement) -> Option<String> {
    let watched = judgement.watched.as_ref()?;
    let counts = &watched.counts;
    let mut text = format!(
        "{} saw every access to its watched words, {} in order, {} of them stores",
        capital(&count(counts.windows, "watch window", "watch windows")),
        grouped(counts.accesses),
        grouped(counts.stores)
    );
    let sure = watched.verdict.sure_hand_offs();
    text.push_str(&handed_off(&sure, "CPU"));
    let unplaced = (watched.verdict.hand_offs.decided()).saturating_sub(sure.decided());
    if unplaced > 0 {
        text.push_str(&format!(
            " Of {} that is not known: instructions that overwrite their own address touched the words, and which of \
             their bytes cannot be told.",
            grouped(unplaced)
        ));
    }
    if counts.superseded_windows > 0 {
        text.push_str(&format!(
            " Before, {} could not tell parts of a word apart.",
            count(counts.superseded_windows, "window", "windows")
        ));
    }
    if watched.verdict.shown == WindowVerdict::Apart {
        text.push_str(
            " Most windows met one thread alone: the traps slow each of them down while it has the line to \
             itself, as under a lock. Which threads store which bytes is proven; that they meet is what the \
             samples say.",
        );
    }
    if judgement.confidence == Confidence::Sampled && judgement.is_finding() {
        text.push_str(" That is too little to confirm the verdict.");
    }
    Some(text)
}

fn kind_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::FalseSharing => "false sharing",
        Verdict::TrueSharing => "true sharing",
        Verdict::MixedSharing => "both kinds of sharing",
    }
}

fn shown_words(shown: WindowVerdict) -> &'static str {
    match shown {
        WindowVerdict::OneThread => "a single thread at work on it",
        WindowVerdict::NoStores => "that nobody stores there",
        WindowVerdict::NotHandedOff => "that it hardly ever goes from one CPU to another",
        WindowVerdict::Apart
        | WindowVerdict::Nothing
        | WindowVerdict::FalseSharing
        | WindowVerdict::TrueSharing
        | WindowVerdict::MixedSharing => "something else",
    }
}

fn waited(judgement: &Judgement, whole: Cost, unit: CostUnit) -> Option<String> {
    let stalled: u64 = judgement
        .sites
        .iter()
        .map(|site| u64::from(site.stalled))
        .sum();
    let all = judgement.cost.share_of(whole);
    let shared = judgement.shared_cost.share_of(whole);
    if unit == CostUnit::LatencyCycles {
        return (judgement.cost > Cost(0)).then(|| {
            let (all, shared) = (percent(all), percent(shared));
            let whole = cost_words::of_sampled(unit);
            if all == shared {
                format!("Its loads took {all} {whole}, all of it while other CPUs used the line.")
            } else {
                format!(
                    "Its loads took {all} {whole}; {shared} were while other CPUs used the line."
                )
            }
        });
    }
    if stalled == 0 {
        return None;
    }
    let mut text = format!(
        "In {} of the {} that touch this line, the CPU was waiting for it; {} took part.",
        grouped(stalled.min(judgement.samples)),
        count(judgement.samples, "sample", "samples"),
        count(judgement.threads.len() as u64, "thread", "threads")
    );
    text.push_str(&format!(" That is {} of the time", percent(all)));
    if percent(all) != percent(shared) {
        text.push_str(&format!(
            ", of which {} fell into moments when several threads used it by turns",
            percent(shared)
        ));
    }
    text.push('.');
    Some(text)
}

/// What was waited for the line while nobody was seen to store. Windows that saw the stores have made it a part of the
/// cost: then nothing is left to tell.
fn unstored(judgement: &Judgement, cost: Cost<f64>, whole: Cost, unit: CostUnit) -> Option<String> {
    let left_out = judgement.cost - judgement.shared_cost;
    let part = cost.min(left_out.estimate()).share_of(whole);
    (part > 0.0).then(|| {
        format!(
            "Another {} {} was spent here while several threads used the line but none was seen to store; that is not \
             part of the cost.",
            percent(part),
            cost_words::of(unit)
        )
    })
}

fn turns(judgement: &Judgement) -> Option<String> {
    let (seen, expected) = judgement.facts.iter().find_map(|fact| match *fact {
        Fact::HandOffs { seen, expected } => Some((seen, expected)),
        _ => None,
    })?;
    let seen = grouped(seen.round().max(0.0) as u64);
    let expected = grouped(expected.round().max(0.0) as u64);
    Some(if judgement.verdict.is_some() {
        format!(
            "The threads use it at the same time: from one sample to the next, it changed hands {seen} times; \
             samples in random order would have given {expected}."
        )
    } else {
        format!(
            "The threads use it at different times: from one sample to the next, it changed hands {seen} times; \
             samples in random order would have given {expected}."
        )
    })
}

fn bytes(judgement: &Judgement) -> Option<String> {
    let mut common = ByteSet::default();
    let mut private = ByteSet::default();
    for fact in &judgement.facts {
        match *fact {
            Fact::CommonBytes(bytes) => common = bytes,
            Fact::PrivateBytes(bytes) => private = bytes,
            _ => {}
        }
    }
    let stored_by_one = || {
        format!(
            "{} stored by one thread each and touched by no other",
            are(private)
        )
    };
    let common_words = || {
        format!(
            "{} stored by a thread and touched by others too",
            are(common)
        )
    };
    match (common.is_empty(), private.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("{}.", capital(&stored_by_one()))),
        (false, true) => Some(format!("{}.", capital(&common_words()))),
        (false, false) => {
            let rare = judgement.verdict == Some(Verdict::FalseSharing);
            let rare = if rare {
                ", which is too rare to matter"
            } else {
                ""
            };
            Some(format!(
                "{}; {}{rare}.",
                capital(&stored_by_one()),
                common_words()
            ))
        }
    }
}

/// What of the cost is not about common bytes, where that is not clear from the kind of sharing. What a change of the
/// layout gains is another question, which samples cannot answer: a CPU also waits where none of them shows it.
fn separable(judgement: &Judgement, part: f64, unit: CostUnit) -> Option<String> {
    let clear = match judgement.verdict? {
        Verdict::FalseSharing => true,
        Verdict::TrueSharing => part < 0.005,
        Verdict::MixedSharing => false,
    };
    let unmeasured = cost_words::is_unmeasured(unit, judgement.shared_share?);
    (!clear && !unmeasured).then(|| {
        format!(
            "{} of {} between accesses to different bytes.",
            percent(part.clamp(0.0, 1.0)),
            match unit {
                CostUnit::SampledTime => "that wait is",
                CostUnit::LatencyCycles => "that latency is",
                CostUnit::Transactions => "the transactions for this line are",
            }
        )
    })
}

/// `byte 5 is`, `bytes 0-7,16-23 are`.
fn are(bytes: ByteSet) -> String {
    let numbers: Vec<u32> = (0..128).filter(|n| bytes.0 >> n & 1 == 1).collect();
    let (word, verb) = if numbers.len() == 1 {
        ("byte", "is")
    } else {
        ("bytes", "are")
    };
    format!("{word} {} {verb}", crate::number::ranges(&numbers))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
