//! `attach`: source → pipeline → report.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Result;

use super::{
    args::AttachArgs,
    machine_costs,
    names_ahead::NamesAhead,
    observe::described,
    output,
    progress::Progress,
    record::Recording,
    report::{analysis_options, counted, make, thresholds},
};
use crate::{
    access::CostUnit,
    event::Batch,
    finding::{Confidence, Verdict},
    module::ModuleStore,
    names::{Names, Resolver},
    observation::{Observed, Observer},
    pipeline::Pipeline,
    report::{Caveat, RunFacts, cost_words, model},
};

/// Watches, then prints the report.
pub(super) fn run(args: &AttachArgs) -> Result<ExitCode> {
    // Before there is anything to lose.
    output::check(args.output.output.as_deref())?;
    let observing = &args.observing;
    let mut observation = observing.open(args.output.json, false)?;
    let options = analysis_options(&args.analysis, observation.frequency_hz());
    let recording = args
        .record
        .as_ref()
        .map(|path| Recording::create(path, false, observing, &mut observation))
        .transpose()?;
    let mut attached = Attached {
        pipeline: Pipeline::new(options, thresholds(&args.analysis, args.pairs.thresholds())),
        recording,
        modules: observation.modules.clone(),
        cost_unit: observation.kind.cost_unit(),
        ahead: NamesAhead::default(),
        progress: Progress::new(observing.sampling.quiet),
    };
    let result = observation.run(&mut attached);
    let Attached {
        pipeline,
        recording,
        modules,
        cost_unit,
        mut progress,
        ..
    } = attached;
    progress.clear();
    if let Some(recording) = recording {
        recording.finish(result.as_ref().ok())?;
    }
    let Observed {
        duration,
        caveats,
        remarks,
    } = result?;
    let remarks = remarks.into_iter().map(Caveat::detail);
    let caveats = caveats.into_iter().chain(left_out(&pipeline));
    let caveats = caveats.map(Caveat::reading);
    let facts = RunFacts {
        observed: model::Observed {
            sources: observation.sources(),
            started_ns: Some(observation.started_ns()),
            duration_ns: duration.as_nanos() as u64,
            frequency_hz: observation.frequency_hz(),
            targets: described(&observation.targets.described),
            cpus: observation.cpus(),
        },
        software_emulation: observation.machine.software_emulation(),
        watch: observing.watch_facts(&mut observation),
        heap: observing.heap_facts(&observation),
        own_costs: machine_costs::own_costs(machine_costs::boot_id().as_deref()),
        caveats: caveats.chain(remarks).collect(),
        ..counted(&pipeline, cost_unit)
    };
    let report = make(&pipeline, &modules, &facts);
    output::print(&report, &args.output)
}

/// What `attach` keeps while it observes.
struct Attached {
    pipeline: Pipeline,
    recording: Option<Recording>,
    modules: Arc<ModuleStore>,
    cost_unit: CostUnit,
    ahead: NamesAhead,
    progress: Progress,
}

impl Observer for Attached {
    type Error = anyhow::Error;

    fn take(&mut self, batch: &mut Batch) -> Result<()> {
        self.pipeline.feed(batch);
        let recording = self.recording.as_mut();
        recording.map_or(Ok(()), |recording| recording.append(batch))
    }

    fn pipeline(&mut self) -> Option<&mut Pipeline> {
        Some(&mut self.pipeline)
    }

    fn tell(&mut self, elapsed: Duration) {
        let (pipeline, modules, cost_unit) = (&self.pipeline, &self.modules, self.cost_unit);
        self.progress
            .update(|| progress_line(pipeline, modules, cost_unit, elapsed));
    }

    fn rest(&mut self) {
        let facts = || counted(&self.pipeline, self.cost_unit);
        self.ahead.rest(&self.pipeline, &self.modules, facts);
    }
}

/// What was let go that lines would have needed.
fn left_out(pipeline: &Pipeline) -> Option<String> {
    let spaces = pipeline.left_out();
    (spaces > 0).then(|| {
        format!(
            "what {spaces} processes that ended had in memory was let go, those of the least cost: their lines, and the \
             names of their code"
        )
    })
}

/// Samples so far, and the worst line so far.
fn progress_line(
    pipeline: &Pipeline,
    modules: &ModuleStore,
    cost_unit: CostUnit,
    elapsed: Duration,
) -> String {
    let tally = &pipeline.tally;
    let mut parts = vec![
        format!("{:.1} s", elapsed.as_secs_f64()),
        format!("{} {}", tally.counted(), cost_words::counted(cost_unit)),
    ];
    if tally.lost_total() > 0 {
        parts.push(format!("{} lost", tally.lost_total()));
    }
    let judgements = pipeline.judge();
    let findings = judgements.iter().filter(|j| j.is_finding()).count();
    if let Some(worst) = judgements.first().filter(|j| j.is_finding()) {
        let names = Resolver::new(&pipeline.spaces, modules).with_heap(&pipeline.heap);
        let objects = names.objects(worst.key, pipeline.line_size(), &[]);
        let named = objects.iter().find_map(|object| object.name.as_deref());
        let name = named
            .or(objects.first().map(|object| object.kind.name()))
            .unwrap_or("a line");
        let kind = match worst.verdict {
            Some(Verdict::TrueSharing) => "truly shared",
            Some(Verdict::MixedSharing) => "falsely and truly shared",
            _ => "falsely shared",
        };
        let sure = match worst.confidence {
            Confidence::Confirmed => ", confirmed",
            Confidence::Sampled => "",
        };
        let share = worst.shared_share.unwrap_or(0.0) * 100.0;
        parts.push(format!(
            "{findings} hot: {name} {kind}{sure} ({share:.0} % {})",
            cost_words::of(cost_unit)
        ));
    }
    parts.join("  ")
}
