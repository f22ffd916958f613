//! What a run was: its sources, its limits and its sums.

use super::{
    allocation::{self, HeapFacts},
    caveat::Caveat,
    gain::OwnCosts,
    model::{Observed, Run, Watch},
    pmu,
    rows::share,
};
use crate::{
    access::{Cost, CostUnit, LineSize},
    analysis::{OrderTotals, Paces, PmuCounts, Totals},
    event::{Breadth, Tally, WatchTally},
    finding::Thresholds,
    names::Coverage,
};

/// What the report says of the run besides the counts of its [`Tally`].
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// How it was observed.
    pub observed: Observed,
    /// What watching could cost; `None` when nothing was watched.
    pub watch: Option<WatchFacts>,
    /// What was watched, summed.
    pub watched: WatchTally,
    /// What following the heap costs; `None` when it was not followed.
    pub heap: Option<HeapFacts>,
    /// Granule of the lines.
    pub line_size: LineSize,
    /// What the table of lines was fed and dropped.
    pub totals: Totals,
    /// Lines touched, where known.
    pub lines: Option<u64>,
    /// Of those, touched by more than one thread.
    pub shared_lines: Option<u64>,
    /// The limits that the judgements were made with.
    pub thresholds: Thresholds,
    /// What costs are in.
    pub cost_unit: CostUnit,
    /// What an emulator saw; `None` for other sources.
    pub order: Option<OrderTotals>,
    /// The program that the machine's processors are, where they are one (`QEMU TCG`): such ones wait for no line.
    pub software_emulation: Option<String>,
    /// Cost of loads of memory that nobody was seen to store to.
    pub undecided_cost: Cost,
    /// How fast threads were beside the others of a line, and without them.
    pub paces: Paces,
    /// What the machine charges for lines that nobody else has; `None` where that was not measured since it was started.
    pub own_costs: Option<OwnCosts>,
    /// What else to tell of it; in the report before what the names have to tell.
    pub caveats: Vec<Caveat>,
}

/// What was available for watching, and what it may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchFacts {
    /// Share of the wall time, 0..=1, that windows may take.
    pub budget_share: f64,
    /// One hit, nanoseconds, as measured at the start.
    pub hit_cost_ns: u64,
    /// Words that one window can watch.
    pub slots: u32,
    /// Where breakpoints are armed.
    pub breadth: Breadth,
}

/// The run as the report shows it.
pub(super) fn run(
    tally: &Tally,
    facts: &RunFacts,
    typing: Coverage,
    shared_share: Option<f64>,
) -> Run {
    Run {
        observed: facts.observed.clone(),
        line_size: facts.line_size.bytes(),
        lines: facts.lines,
        shared_lines: facts.shared_lines,
        produced: tally.produced,
        samples: tally.counted(),
        kernel_samples: tally.kernel_samples,
        accesses: facts.totals.accesses,
        lost: tally.lost_total(),
        lost_per_cpu: tally.lost.clone(),
        lost_context: tally.lost_context,
        holds: held(facts).count() as u64,
        held_s: held(facts).sum::<u64>() as f64 / 1e9,
        blind_s: tally.blind_ns.values().sum::<u64>() as f64 / 1e9,
        filtered: tally.filtered,
        attributed: tally.attributed,
        unresolved: tally.unresolved.clone(),
        operands_unknown: tally.operands_unknown,
        watch: facts.watch.as_ref().map(|watch| watching(watch, facts)),
        heap: (facts.heap.as_ref())
            .map(|heap| allocation::run(heap, &tally.heap, facts.observed.duration_ns)),
        order: facts.order,
        software_emulation: facts.software_emulation.clone(),
        shared_share,
        conclusive: true,
        doubt: None,
        threshold: facts.thresholds.cost_share,
        spinning_share: facts.totals.spinning.share_of(tally.whole_cost()),
        undecided_share: facts.undecided_cost.share_of(tally.whole_cost()),
        cost_unit: facts.cost_unit,
        coherence: pmu::coherence(&all_pmu(facts)),
        typing,
    }
}

/// For how long threads were held, each time, nanoseconds.
fn held(facts: &RunFacts) -> impl Iterator<Item = u64> {
    let readings = facts.paces.words().flat_map(|word| &word.readings);
    readings.map(|read| read.held_ns).filter(|ns| *ns > 0)
}

fn all_pmu(facts: &RunFacts) -> PmuCounts {
    let mut all = facts.totals.pmu_loads;
    all.add(&facts.totals.pmu_stores);
    all
}

fn watching(watch: &WatchFacts, facts: &RunFacts) -> Watch {
    let tally = &facts.watched;
    Watch {
        tally: tally.clone(),
        slots: watch.slots,
        breadth: watch.breadth,
        hit_cost_ns: watch.hit_cost_ns,
        spent_s: tally.cost_ns as f64 / 1e9,
        spent_share: share(tally.cost_ns, facts.observed.duration_ns),
        budget_share: watch.budget_share,
    }
}
