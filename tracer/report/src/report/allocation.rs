//! Where heap objects were allocated, and how much of the heap was followed: as data, and in words.

use crate::number::{count, grouped, percent};
use serde::Serialize;

use super::{
    caveat::{Caveat, Weight},
    model::Finding,
    rows::share,
    run_facts::RunFacts,
    shorten,
};
use crate::{
    event::HeapTally,
    names::{AllocationName, CodeName},
};

/// Calls of a stack that the text form shows.
const SHOWN_CALLS: usize = 4;

/// Share of the time without probes that is worth a sentence.
const WORTH_SAYING: f64 = 0.001;

/// What following the heap costs and may cost; measured when the run starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeapFacts {
    /// Share of the wall time that the probes may take.
    pub budget_share: f64,
    /// Allocations of fewer bytes are not told.
    pub least_bytes: u64,
    /// What an allocation and its return take, nanoseconds.
    pub allocation_ns: u64,
    /// What a free takes, nanoseconds.
    pub free_ns: u64,
}

/// The heap in a run.
#[derive(Debug, Clone, Copy, Serialize, PartialEq)]
pub struct Heap {
    /// What was seen of it.
    #[serde(flatten)]
    pub tally: HeapTally,
    /// Share of the time in which probes were in, 0..1.
    pub followed_share: f64,
    /// Allocations of fewer bytes are not told.
    pub least_bytes: u64,
    /// What an allocation takes, nanoseconds.
    pub allocation_cost_ns: u64,
    /// What a free takes, nanoseconds.
    pub free_cost_ns: u64,
    /// Time that the probes took from the targets, seconds, summed over threads.
    pub spent_s: f64,
    /// The same as a share of the run's duration.
    pub spent_share: f64,
    /// What it was allowed to be.
    pub budget_share: f64,
}

/// Where a heap object was allocated.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Allocation {
    /// `malloc`, `operator new`, ..
    pub function: String,
    /// Bytes asked for.
    pub size: u64,
    /// Bytes from the object's first byte to the line's first; negative where the object starts on the line.
    pub offset: i64,
    /// It was surely alive in most of its accesses; else its free may have been missed.
    pub certain: bool,
    /// Who allocated it.
    pub tid: u32,
    /// That thread's name.
    pub comm: Option<String>,
    /// Seconds from the start of the run.
    pub at_s: Option<f64>,
    /// The calls that led to it, innermost first.
    pub stack: Vec<Call>,
    /// Position in `stack` of the innermost call that is neither an allocator's nor a language library's.
    pub site: Option<usize>,
}

/// One call of a stack.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Call {
    /// File of the code.
    pub module: Option<String>,
    /// Function that holds the call.
    pub symbol: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
}

/// What the counts of the heap come to.
pub(super) fn run(facts: &HeapFacts, tally: &HeapTally, duration_ns: u64) -> Heap {
    let off = share(tally.off_ns, duration_ns).clamp(0.0, 1.0);
    Heap {
        tally: *tally,
        followed_share: 1.0 - off,
        least_bytes: facts.least_bytes,
        allocation_cost_ns: facts.allocation_ns,
        free_cost_ns: facts.free_ns,
        spent_s: tally.cost_ns as f64 / 1e9,
        spent_share: share(tally.cost_ns, duration_ns),
        budget_share: facts.budget_share,
    }
}

/// An allocation as the report shows it; `line` is the position of the line's first byte, `start` that of the
/// object's.
pub(super) fn allocation(
    name: &AllocationName,
    line: u64,
    start: u64,
    run: &RunFacts,
) -> Allocation {
    let call = |frame: &CodeName| Call {
        module: frame.module.clone(),
        symbol: frame.symbol.clone(),
        file: frame.file.clone(),
        line: frame.line,
    };
    Allocation {
        function: name.function.clone(),
        size: name.size,
        offset: line.wrapping_sub(start) as i64,
        certain: name.certain,
        tid: name.tid.0,
        comm: name.comm.clone(),
        at_s: run.observed.since_start_s(name.time_ns),
        stack: name.stack.iter().map(call).collect(),
        site: name.own,
    }
}

/// `byte 16 on is the malloc of 24 bytes by worker 4242 after 0.02 s: make (q.c:31) < main (q.c:50)`.
pub(super) fn words(allocation: &Allocation, alone: bool) -> String {
    let mut text = String::new();
    if !alone {
        let at = allocation.offset.min(0).unsigned_abs();
        text.push_str(&format!("byte {at} on is "));
    }
    text.push_str(&format!(
        "the {} of {}",
        shorten::symbol(&allocation.function, 40),
        count(allocation.size, "byte", "bytes"),
    ));
    let thread = allocation.comm.as_deref().unwrap_or("thread");
    text.push_str(&format!(" by {thread} {}", allocation.tid));
    if let Some(at_s) = allocation.at_s {
        text.push_str(&format!(" {at_s:.3} s into the run"));
    }
    let first = allocation.site.unwrap_or(0);
    // What called main is the same in every program.
    let is_main = |call: &Call| call.symbol.as_deref() == Some("main");
    let last = allocation.stack.iter().position(is_main);
    let own = &allocation.stack[..last.map_or(allocation.stack.len(), |last| last + 1)];
    let calls: Vec<String> = (own.iter().skip(first))
        .filter_map(call_words)
        .take(SHOWN_CALLS)
        .collect();
    if !calls.is_empty() {
        text.push_str(&format!(": {}", calls.join(" < ")));
    }
    if !allocation.certain {
        text.push_str(". It may have been freed since, while the heap was not followed");
    }
    text
}

fn call_words(call: &Call) -> Option<String> {
    let place = call.file.as_deref().map(|file| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let line = call
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        shorten::middle(&format!("{name}{line}"), 40)
    });
    let symbol = call
        .symbol
        .as_deref()
        .map(|symbol| shorten::symbol(symbol, 50));
    match (symbol, place) {
        (Some(symbol), Some(place)) => Some(format!("{symbol} ({place})")),
        (Some(only), None) | (None, Some(only)) => Some(only),
        (None, None) => None,
    }
}

/// One line of text for each object of the heap on a finding's line.
pub(super) fn lines(finding: &Finding) -> Vec<String> {
    let alone = finding.allocations.len() == 1;
    (finding.allocations.iter())
        .map(|allocation| words(allocation, alone))
        .collect()
}

/// What was not followed of the heap; it matters where a finding is of its memory.
pub(super) fn caveats(heap: Option<&Heap>, is_found: bool) -> Vec<Caveat> {
    let Some(heap) = heap else {
        return Vec::new();
    };
    let mut out = Vec::new();
    if heap.followed_share < 1.0 - WORTH_SAYING {
        out.push(format!(
            "Heap allocations were followed {} of the time, as they cost more than --heap-overhead allows ({}): {} \
             and {} were seen. What was allocated meanwhile has no name, and what was alive may have been freed.",
            percent(heap.followed_share),
            percent(heap.budget_share),
            count(heap.tally.allocations, "allocation", "allocations"),
            count(heap.tally.frees, "free", "frees"),
        ));
    }
    if heap.tally.lost > 0 {
        out.push(format!(
            "{} allocations and frees found no room in their ring: objects that were alive then may have been freed.",
            grouped(heap.tally.lost)
        ));
    }
    if heap.tally.allocations == 0 {
        out.push(
            "No heap allocation was seen: what the targets use was allocated before, or by an allocator that is not \
             known."
                .to_owned(),
        );
    }
    let weight = Weight::reading_if(is_found);
    let caveat = |text| Caveat { text, weight };
    out.into_iter().map(caveat).collect()
}
