//! From judgements to the report: the only place where keys and addresses become words.

use super::{
    allocation::{self, HeapFacts},
    caveats, facts,
    model::{
        Advice, Cost, Finding, Handoffs, Line, Order, Report, Run, SCHEMA, Target, Tool, Typing,
        Watch,
    },
    pairs, parts, pmu, rows,
    rows::share,
    subject::Subject,
};
use crate::{
    access::{CostUnit, LineSize, Pid, Place},
    analysis::{OrderCounts, OrderTotals, PmuCounts, Totals},
    event::{Breadth, Tally, WatchTally},
    finding::{Confidence, JudgedPair, Judgement, Standing, Thresholds, Verdict, Watched},
    hint::{self, Scene, Sharing},
    names::{Coverage, Names},
};

/// What the report says of the run besides the counts of its [`Tally`].
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// Names of the sources.
    pub sources: Vec<String>,
    /// Start of the run, CLOCK_MONOTONIC nanoseconds, where known.
    pub started_ns: Option<u64>,
    /// From the first to the last moment of sampling, nanoseconds.
    pub duration_ns: u64,
    /// Samples per second and CPU that were asked for.
    pub frequency_hz: Option<u64>,
    /// What was watched; one without a pid for "everything".
    pub targets: Vec<Target>,
    /// CPUs sampled.
    pub cpus: u32,
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
    pub order: Option<OrderFacts>,
}

/// The complete order of an emulated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderFacts {
    /// Sums.
    pub totals: OrderTotals,
    /// Processors that executed something.
    pub processors: usize,
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

impl RunFacts {
    pub(super) fn duration_s(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}

/// Makes the report. `judgements` are in the order of [`crate::finding::judge_all`], which ranks them;
/// `extra` are caveats of the caller, printed before those of the names.
pub fn build(
    judgements: &[Judgement],
    pairs: &[JudgedPair],
    names: &dyn Names,
    tally: &Tally,
    facts: &RunFacts,
    extra: &[String],
) -> Report {
    let mut findings = Vec::new();
    let mut insignificant = Vec::new();
    for judgement in judgements {
        let (list, letter) = match judgement.standing {
            Standing::Significant => (&mut findings, 'F'),
            Standing::Insignificant(_) => (&mut insignificant, 'I'),
        };
        let id = format!("{letter}{}", list.len() + 1);
        list.push(finding(id, judgement, names, tally, facts));
    }
    let weak: Vec<String> = findings
        .iter()
        .zip(judgements.iter().filter(|judgement| judgement.is_finding()))
        .filter(|(_, judgement)| judgement.weak)
        .map(|(finding, _)| finding.id.clone())
        .collect();
    let pairs = pairs::pairs(pairs, names, facts);
    let mut caveats = caveats::of_run(tally, facts);
    caveats.extend(pmu::caveats(facts));
    let physical: Vec<String> = findings
        .iter()
        .chain(&insignificant)
        .filter(|finding| finding.line.key.starts_with("physical:"))
        .map(|finding| finding.id.clone())
        .collect();
    if !physical.is_empty() {
        caveats.push(format!(
            "Of the memory of {} only the physical address is known: no mapping of the processes was there to name it.",
            super::number::list(&physical, 8)
        ));
    }
    caveats.extend(allocation::caveats(&tally.heap, facts));
    if !weak.is_empty() {
        caveats.push(format!(
            "{} on weak evidence: addresses inferred from the loops around the samples.",
            if let [one] = weak.as_slice() {
                format!("{one} rests")
            } else {
                format!("{} rest", super::number::list(&weak, 8))
            }
        ));
    }
    caveats.extend(extra.iter().cloned());
    let typing = names.coverage();
    caveats.extend(caveats::of_typing(&typing));
    caveats.extend(names.caveats());
    Report {
        schema: SCHEMA,
        tool: Tool {
            name: "cohtrace".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        run: run(tally, facts, typing),
        findings,
        insignificant,
        pairs,
        caveats,
    }
}

fn run(tally: &Tally, facts: &RunFacts, typing: Coverage) -> Run {
    Run {
        sources: facts.sources.clone(),
        duration_s: facts.duration_s(),
        frequency_hz: facts.frequency_hz,
        targets: facts.targets.clone(),
        cpus: facts.cpus,
        line_size: facts.line_size.bytes(),
        lines: facts.lines,
        shared_lines: facts.shared_lines,
        produced: tally.produced,
        samples: tally.samples,
        kernel_samples: tally.kernel_samples,
        accesses: facts.totals.accesses,
        lost: tally.lost_total(),
        lost_per_cpu: tally
            .lost
            .iter()
            .map(|(cpu, n)| (cpu.0.to_string(), *n))
            .collect(),
        lost_context: tally.lost_context,
        filtered: tally.filtered,
        attributed: tally.attributed,
        unresolved: tally
            .unresolved
            .iter()
            .map(|(reason, n)| (reason.name().to_owned(), *n))
            .collect(),
        operands_unknown: tally.operands_unknown,
        watch: facts.watch.as_ref().map(|watch| watching(watch, facts)),
        heap: (facts.heap.as_ref())
            .map(|heap| allocation::run(heap, &tally.heap, facts.duration_ns)),
        order: facts.order.map(|order| Order {
            processors: order.processors as u64,
            transactions: order.totals.transactions,
            untracked: order.totals.untracked,
            unpaired_lines: order.totals.unpaired_lines,
        }),
        threshold: facts.thresholds.cost_share,
        cost_unit: facts.cost_unit.name().to_owned(),
        coherence: pmu::coherence(&all_pmu(facts)),
        typing: Typing {
            named: typing.named,
            untraced: (typing.untraced.into_iter())
                .map(|((name, _), n)| (name.to_owned(), n))
                .collect(),
        },
    }
}

fn all_pmu(facts: &RunFacts) -> PmuCounts {
    let mut all = facts.totals.pmu_loads;
    all.add(&facts.totals.pmu_stores);
    all
}

fn watching(watch: &WatchFacts, facts: &RunFacts) -> Watch {
    let tally = &facts.watched;
    Watch {
        windows: tally.windows,
        incomplete: tally.incomplete,
        hits: tally.hits,
        lost: tally.lost,
        unresolved: (tally.unresolved.iter())
            .map(|(reason, n)| (reason.name().to_owned(), *n))
            .collect(),
        inferred: tally.inferred,
        slots: watch.slots,
        breadth: watch.breadth.name().to_owned(),
        hit_cost_ns: watch.hit_cost_ns,
        spent_s: tally.cost_ns as f64 / 1e9,
        spent_share: share(tally.cost_ns as f64, facts.duration_ns),
        budget_share: watch.budget_share,
    }
}

/// What a judgement's sites are, in words.
pub(super) struct Evidence {
    pub(super) subject: Subject,
    pub(super) rows: rows::Rows,
    parts: Vec<parts::Part>,
}

impl Evidence {
    pub(super) fn of(
        judgement: &Judgement,
        names: &dyn Names,
        tally: &Tally,
        run: &RunFacts,
    ) -> Evidence {
        let sites = &judgement.sites;
        let subject = Subject::new(names, judgement.key, run.line_size, sites);
        let rows = rows::rows(names, &subject, sites, tally.sampled_ns);
        let sharing = sharing(judgement.verdict).unwrap_or(Sharing::False);
        let parts = parts::parts(sites, &rows.rows, &subject, sharing, run.line_size);
        Evidence {
            subject,
            rows,
            parts,
        }
    }

    /// Asks for advice; `None` for a line that costs nothing, which needs no repair.
    pub(super) fn with_scene<R>(
        &self,
        judgement: &Judgement,
        run: &RunFacts,
        ask: impl FnOnce(&Scene<'_>) -> R,
    ) -> Option<R> {
        let sharing = sharing(judgement.verdict)?;
        if judgement.standing != Standing::Significant {
            return None;
        }
        let objects = self.subject.printable_objects();
        let object_names: Vec<Option<String>> = objects
            .iter()
            .flat_map(|object| [object.name.clone(), object.type_name.clone()])
            .collect();
        let units = parts::units_of(&self.parts);
        let (sites, rows) = (&judgement.sites, &self.rows.rows);
        let traffic = parts::traffic(&self.parts, sites, rows, &object_names, run.line_size);
        Some(ask(&Scene {
            sharing,
            line: judgement.key,
            line_size: run.line_size,
            objects: &objects,
            units: &units,
            language: self.rows.language,
            traffic,
            processes: processes(judgement),
        }))
    }
}

/// Processes seen on the line.
fn processes(judgement: &Judgement) -> usize {
    let mut pids: Vec<Pid> = judgement.sites.iter().map(|site| site.site.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.len()
}

pub(super) fn finding(
    id: String,
    judgement: &Judgement,
    names: &dyn Names,
    tally: &Tally,
    run: &RunFacts,
) -> Finding {
    let whole_ns = tally.sampled_ns;
    let sites = &judgement.sites;
    let evidence = Evidence::of(judgement, names, tally, run);
    let mut facts = facts::sentences(judgement, whole_ns, run.cost_unit);
    let advised = evidence.with_scene(judgement, run, |scene| {
        if scene.processes > 1 && matches!(judgement.key.0, Place::Shared { .. }) {
            facts.push(format!(
                "{} processes share this memory, each at an address of its own.",
                scene.processes
            ));
        }
        advice(scene)
    });
    let advice = advised.unwrap_or_else(|| Advice {
        kind: hint::AdviceKind::None.name().to_owned(),
        text: None,
        fields: Vec::new(),
        bytes: None,
    });
    let stalled: u64 = match &judgement.order {
        Some(order) => order.read_shar + order.read_priv,
        None => (sites.iter())
            .map(|site| u64::from(site.stalled) + site.pmu.timed)
            .sum(),
    };
    Finding {
        id,
        kind: kind(judgement.verdict).to_owned(),
        confidence: judgement.confidence.name().to_owned(),
        confirmed_after_s: confirmed_after_s(judgement, run),
        windows: judgement
            .watched
            .as_ref()
            .map_or(0, |watched| watched.counts.windows),
        insignificant_because: match judgement.standing {
            Standing::Significant => None,
            Standing::Insignificant(reason) => {
                let share = run.thresholds.cost_share;
                Some(facts::reason(reason, share, run.cost_unit))
            }
        },
        moves: judgement.standing.moves(),
        line: Line {
            key: judgement.key.to_string(),
            address: names
                .address(judgement.key)
                .map(|address| format!("{address:#x}")),
            bytes: run.line_size.bytes(),
        },
        object: evidence.subject.object(sites, run),
        allocations: evidence.subject.allocations(run),
        cost: Cost {
            share: share(judgement.shared_cost_ns as f64, whole_ns),
            stalled_share: share(judgement.cost_ns as f64, whole_ns),
            samples: stalled,
        },
        handoffs: (judgement.order.as_ref().map(handed_off))
            .or_else(|| judgement.watched.as_ref().map(hand_offs))
            .or_else(|| judgement.pmu.as_ref().and_then(taken)),
        coherence: judgement.pmu.as_ref().and_then(pmu::coherence),
        load_latency_cycles: pmu::loads(sites).mean_latency(),
        groups: parts::groups_of(&evidence.parts),
        accesses: evidence.rows.rows,
        advice,
        facts,
    }
}

fn hand_offs(watched: &Watched) -> Handoffs {
    let counts = &watched.counts;
    Handoffs {
        observed: counts.hand_offs.total(),
        truly: Some(counts.hand_offs.truly),
        falsely: Some(counts.hand_offs.falsely),
        per_s: counts.native_hand_offs_per_s(),
        at_least_per_s: counts.hand_offs_per_s(),
    }
}

/// All hand-offs of the run. Per second they would be the emulator's.
fn handed_off(order: &OrderCounts) -> Handoffs {
    Handoffs {
        observed: order.hand_offs.total(),
        truly: Some(order.hand_offs.truly),
        falsely: Some(order.hand_offs.falsely),
        per_s: None,
        at_least_per_s: None,
    }
}

/// Hand-offs that a PMU saw, where its sources can tell; for which value nobody knows.
fn taken(pmu: &PmuCounts) -> Option<Handoffs> {
    (pmu.sampled > pmu.not_available).then(|| Handoffs {
        observed: pmu.taken(),
        truly: None,
        falsely: None,
        per_s: None,
        at_least_per_s: None,
    })
}

fn confirmed_after_s(judgement: &Judgement, run: &RunFacts) -> Option<f64> {
    if judgement.confidence != Confidence::Confirmed {
        return None;
    }
    let since_ns = judgement.watched.as_ref()?.since_ns?;
    let after_ns = since_ns.checked_sub(run.started_ns?)?;
    Some(after_ns as f64 / 1e9)
}

fn advice(scene: &Scene) -> Advice {
    let hint::Advice {
        kind,
        text,
        fields,
        bytes,
    } = hint::advise(scene);
    Advice {
        kind: kind.name().to_owned(),
        text: Some(text),
        fields,
        bytes,
    }
}

fn sharing(verdict: Option<Verdict>) -> Option<Sharing> {
    verdict.map(|verdict| match verdict {
        Verdict::FalseSharing => Sharing::False,
        Verdict::TrueSharing => Sharing::True,
        Verdict::MixedSharing => Sharing::Mixed,
    })
}

fn kind(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::FalseSharing) => "false-sharing",
        Some(Verdict::TrueSharing) => "true-sharing",
        Some(Verdict::MixedSharing) => "mixed-sharing",
        None => "undecided",
    }
}
