//! From judgements to the report: the only place where keys and addresses become words.

use super::{
    allocation, caveats, distributions, doubt, facts, gain,
    listed::{Listed, listed, subjects_of},
    model::{Advice, Cost, Finding, Handoffs, Hex, Line, Report, SCHEMA, Tool},
    pairs, parts, pmu, rows,
    run_facts::{RunFacts, run},
    spread, spread_words,
    subject::OnLine,
    words,
};
use crate::{
    access::{Pid, Place},
    analysis::{HandOffs, PmuCounts, Uses},
    event::Tally,
    finding::{
        self, Confidence, Judged, JudgedPair, Judgement, Significance, Subject, Verdict, Watched,
    },
    hint::{self, Scene, Sharing},
    names::{Names, ObjectKind},
};

/// Makes the report.
pub fn build(
    judged: &Judged,
    pairs: &[JudgedPair],
    names: &dyn Names,
    tally: &Tally,
    facts: &RunFacts,
) -> Report {
    let subjects = subjects_of(judged, names, tally, facts);
    let mut findings = Vec::new();
    let mut insignificant = Vec::new();
    let mut weak: Vec<String> = Vec::new();
    for listed in listed(judged, &subjects, names, tally, facts) {
        let is_finding = listed.judgement.is_finding();
        if listed.judgement.weak && is_finding {
            weak.push(listed.id.to_string());
        }
        let list = if is_finding {
            &mut findings
        } else {
            &mut insignificant
        };
        list.push(finding(&listed, names, tally, facts));
    }
    let waited = finding::shared_cost(&subjects);
    let shared_share = waited
        .ratio_to(tally.whole_cost())
        .map(|share| share.clamp(0.0, 1.0));
    let pairs = pairs::pairs(pairs, names, facts);
    let mut run = run(tally, facts, names.coverage(), shared_share);
    let listed = findings.iter().chain(&insignificant);
    let rows = (listed.clone()).flat_map(|finding| &finding.accesses);
    let spinning: f64 = rows.map(|row| row.spinning_share).sum();
    let mut caveats = caveats::of_run(tally, facts);
    caveats.extend(caveats::waits(&run, spinning));
    caveats.extend(pmu::caveats(facts));
    caveats.extend(caveats::of_physical(listed));
    let on_heap = findings
        .iter()
        .any(|finding| finding.object.kind == ObjectKind::Heap);
    caveats.extend(allocation::caveats(run.heap.as_ref(), on_heap));
    caveats.extend(caveats::of_weak(&weak));
    caveats.extend(facts.caveats.iter().cloned());
    caveats.extend(gain::caveats(&run, facts));
    caveats.extend(caveats::of_typing(&run.typing, &findings));
    caveats.extend(caveats::of_names(names.caveats(), &findings));
    run.doubt = doubt::of(&run, &findings, &insignificant);
    run.conclusive = run.doubt.is_none();
    Report {
        schema: SCHEMA,
        tool: Tool {
            name: "cohtrace".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        run,
        findings,
        insignificant,
        pairs,
        rates: gain::rates(names, facts),
        latent: None,
        caveats,
    }
}

/// Asks for the names of all that is judged, as [`build`] does, for those who answer sooner the second time.
pub fn look_up(judged: &Judged, names: &dyn Names, tally: &Tally, facts: &RunFacts) {
    let subjects = subjects_of(judged, names, tally, facts);
    for listed in listed(judged, &subjects, names, tally, facts) {
        finding(&listed, names, tally, facts);
    }
}

/// What a judgement's sites are, in words.
pub(super) struct Evidence {
    pub(super) subject: OnLine,
    pub(super) rows: rows::Rows,
    parts: Vec<parts::Part>,
    words: Vec<hint::Word>,
    /// Where the line is one of many.
    many: Option<hint::Many>,
}

impl Evidence {
    pub(super) fn of(
        judgement: &Judgement,
        names: &dyn Names,
        tally: &Tally,
        run: &RunFacts,
    ) -> Evidence {
        let on_line = OnLine::new(names, judgement.key, run.line_size, &judgement.sites);
        Evidence::on(on_line, judgement, names, tally, run)
    }

    /// The same, where the objects of the line are known.
    fn on(
        subject: OnLine,
        judgement: &Judgement,
        names: &dyn Names,
        tally: &Tally,
        run: &RunFacts,
    ) -> Evidence {
        let sites = &judgement.sites;
        let rows = rows::rows(names, &subject, sites, tally.whole_cost());
        let sharing = sharing(judgement.verdict).unwrap_or(Sharing::False);
        let parts = parts::parts(
            (sites, &judgement.uses),
            &rows.rows,
            &subject,
            sharing,
            run.line_size,
        );
        let words = if needs_words(judgement) {
            let shared = parts::shared_bytes(&parts);
            words::words(sites, &rows.rows, shared, &subject, names, run.line_size)
        } else {
            Vec::new()
        };
        Evidence {
            subject,
            rows,
            parts,
            words,
            many: None,
        }
    }

    /// For advice on many lines: the line that shows best what to change, and the words of all. With what was judged of it.
    fn of_many(
        subject: &Subject,
        judgement: &Judgement,
        names: &dyn Names,
        tally: &Tally,
        run: &RunFacts,
    ) -> Option<(Evidence, Judgement)> {
        let (key, sites) = spread::example(subject, run.line_size)?;
        let example = Judgement {
            key,
            sites,
            uses: Uses::default(),
            ..judgement.clone()
        };
        let on_line = OnLine::new(names, key, run.line_size, &example.sites).generic();
        let mut evidence = Evidence::on(on_line, &example, names, tally, run);
        if needs_words(judgement) {
            evidence.words = spread_words::words(subject, names, run.line_size);
        }
        evidence.many = Some(hint::Many {
            own_pieces: subject.pieces.is_some_and(|pieces| pieces.shared == 0),
        });
        Some((evidence, example))
    }

    /// Asks for advice; `None` for a line that costs nothing, which needs no repair.
    pub(super) fn with_scene<R>(
        &self,
        judgement: &Judgement,
        run: &RunFacts,
        ask: impl FnOnce(&Scene<'_>) -> R,
    ) -> Option<R> {
        let sharing = sharing(judgement.verdict)?;
        if judgement.significance != Significance::Significant {
            return None;
        }
        let objects = self.subject.printable_objects();
        let units = parts::units_of(&self.parts);
        Some(ask(&Scene {
            sharing,
            line: judgement.key,
            line_size: run.line_size,
            objects: &objects,
            units: &units,
            language: self.rows.language,
            words: &self.words,
            processes: processes(judgement),
            many: self.many,
        }))
    }
}

/// Of a line that costs nothing, or only has neighbours, no word needs advice.
fn needs_words(judgement: &Judgement) -> bool {
    let sharing = sharing(judgement.verdict).unwrap_or(Sharing::False);
    sharing != Sharing::False && judgement.significance == Significance::Significant
}

/// Processes seen on the line.
fn processes(judgement: &Judgement) -> usize {
    let mut pids: Vec<Pid> = judgement.sites.iter().map(|site| site.site.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.len()
}

pub(super) fn finding(
    listed: &Listed<'_>,
    names: &dyn Names,
    tally: &Tally,
    run: &RunFacts,
) -> Finding {
    let whole = tally.whole_cost();
    let (subject, judgement) = (listed.subject, &listed.judgement);
    let sites = &judgement.sites;
    let lines = spread::lines(subject, names, whole);
    let on_line = OnLine::new(names, judgement.key, run.line_size, sites);
    let on_line = if lines.is_some() {
        on_line.generic()
    } else {
        on_line
    };
    let evidence = Evidence::on(on_line, judgement, names, tally, run);
    let of_all = (lines.is_some()).then(|| spread::rows(subject, names, run.line_size, whole).rows);
    let mut facts = match &of_all {
        Some(rows) => spread::sentences(subject, rows, whole, run.cost_unit),
        None => facts::sentences(judgement, &evidence.rows.rows, whole, run.cost_unit),
    };
    facts.extend(distributions::sentences(
        &judgement.distributions,
        judgement.order.is_some(),
    ));
    let many = (lines.is_some()).then(|| Evidence::of_many(subject, judgement, names, tally, run));
    let many = many.flatten();
    let (of, on) = many
        .as_ref()
        .map_or((&evidence, judgement), |(evidence, example)| {
            (evidence, example)
        });
    let advised = of.with_scene(on, run, |scene| {
        if scene.processes > 1 && matches!(judgement.key.0, Place::Shared { .. }) {
            facts.push(format!(
                "{} processes share this memory, each at an address of its own.",
                scene.processes
            ));
        }
        advice(scene)
    });
    let waits = subject
        .members
        .iter()
        .map(|member| member.stalled + member.requests);
    let pmu = spread::many_pmu(subject).or(judgement.pmu);
    Finding {
        id: listed.id,
        kind: judgement.verdict,
        confidence: judgement.confidence,
        confirmed_after_s: confirmed_after_s(judgement, run),
        windows: judgement.watched.as_ref().map_or(0, |watched| {
            watched.counts.windows + watched.counts.superseded_windows
        }),
        insignificant_because: match judgement.significance {
            Significance::Significant => None,
            Significance::Insignificant(reason) => {
                let share = run.thresholds.cost_share;
                Some(facts::reason(reason, share, run.cost_unit))
            }
        },
        moves: judgement.significance.moves(),
        line: Line {
            key: judgement.key,
            address: names.address(judgement.key).map(Hex),
            bytes: run.line_size.bytes(),
        },
        lines,
        object: evidence.subject.object(sites, run),
        allocations: evidence.subject.allocations(run),
        cost: Cost {
            share: judgement.shared_cost.share_of(whole),
            stalled_share: judgement.cost.share_of(whole),
            samples: waits.sum(),
        },
        handoffs: many_hand_offs(subject)
            .or_else(|| (judgement.order.as_ref()).map(|order| hand_offs(&order.hand_offs)))
            .or_else(|| judgement.watched.as_ref().map(watched_hand_offs))
            .or_else(|| pmu.as_ref().and_then(taken)),
        kinds: judgement.kinds,
        coherence: pmu.as_ref().and_then(pmu::coherence),
        load_latency_cycles: pmu::loads(sites).mean_latency(),
        distributions: distributions::rows(&judgement.distributions),
        groups: parts::groups_of(&evidence.parts),
        accesses: of_all.unwrap_or(evidence.rows.rows),
        advice: advised.unwrap_or_default(),
        gain: listed.gain.clone(),
        facts,
    }
}

/// Hand-offs on several lines, of which windows looked at some: no rate is known.
fn many_hand_offs(subject: &Subject) -> Option<Handoffs> {
    (subject
        .hand_offs
        .as_ref()
        .filter(|_| !subject.is_one_line()))
    .map(hand_offs)
}

fn watched_hand_offs(watched: &Watched) -> Handoffs {
    Handoffs {
        per_s: watched.counts.native_hand_offs_per_s(),
        at_least_per_s: watched.counts.hand_offs_per_s(),
        ..hand_offs(&watched.verdict.sure_hand_offs())
    }
}

/// Without a rate: per second of an emulated run they would be the emulator's.
fn hand_offs(hand_offs: &HandOffs) -> Handoffs {
    Handoffs {
        observed: hand_offs.total(),
        truly: Some(hand_offs.truly),
        falsely: Some(hand_offs.falsely),
        dragged: Some(hand_offs.dragged),
        ..Handoffs::default()
    }
}

/// Hand-offs that a PMU saw, where its sources can tell; for which value nobody knows.
fn taken(pmu: &PmuCounts) -> Option<Handoffs> {
    (pmu.sampled > pmu.not_available).then(|| Handoffs {
        observed: pmu.taken(),
        ..Handoffs::default()
    })
}

fn confirmed_after_s(judgement: &Judgement, run: &RunFacts) -> Option<f64> {
    if judgement.confidence != Confidence::Confirmed {
        return None;
    }
    let since_ns = judgement.watched.as_ref()?.since_ns?;
    run.observed.since_start_s(since_ns)
}

fn advice(scene: &Scene) -> Advice {
    let hint::Advice {
        kind,
        text,
        fields,
        bytes,
        words,
    } = hint::advise(scene);
    Advice {
        kind,
        text: Some(text),
        fields,
        bytes,
        words,
    }
}

fn sharing(verdict: Option<Verdict>) -> Option<Sharing> {
    verdict.map(|verdict| match verdict {
        Verdict::FalseSharing => Sharing::False,
        Verdict::TrueSharing => Sharing::True,
        Verdict::MixedSharing => Sharing::Mixed,
    })
}
