//! `attach`: source → pipeline → report.

use std::{path::Path, process::ExitCode, time::Duration};

use anyhow::Result;

use super::{
    args::AttachArgs,
    observe::{Observation, Observed},
    output,
    record::Recording,
    report::{RunDescription, analysis_options, make, thresholds},
};
use crate::{
    finding::Verdict,
    machine::kallsyms::Kallsyms,
    module::ModuleStore,
    names::{Names, Resolver},
    pipeline::Pipeline,
};

/// Watches, then prints the report.
pub fn run(args: AttachArgs) -> Result<ExitCode> {
    let mut observation = Observation::open(&args.target, &args.sampling, args.output.json)?;
    let options = analysis_options(&args.analysis, Some(args.sampling.frequency));
    let recording = args
        .record
        .as_ref()
        .map(|path| Recording::create(path, false, &args.target, &args.sampling, &observation))
        .transpose()?;
    let mut state = (
        Pipeline::new(options, thresholds(&args.analysis)),
        recording,
    );
    let modules = observation.modules.clone();
    let result = observation.run(
        &mut state,
        |(pipeline, recording), batch| {
            pipeline.feed(batch);
            recording
                .as_mut()
                .map_or(Ok(()), |recording| recording.append(batch))
        },
        |(pipeline, _), elapsed| progress_line(pipeline, &modules, elapsed),
    );
    let (pipeline, recording) = state;
    if let Some(recording) = recording {
        recording.finish(result.as_ref().ok())?;
    }
    let Observed {
        duration,
        cpus,
        caveats,
        ..
    } = result?;
    let description = RunDescription {
        sources: vec![observation.source_name.to_owned()],
        duration,
        frequency_hz: Some(args.sampling.frequency),
        targets: observation.targets.described.clone(),
        cpus,
        caveats,
    };
    let kallsyms = Kallsyms::read(Path::new("/proc")).ok();
    let report = make(&pipeline, &modules, kallsyms.as_ref(), &description);
    output::print(&report, &args.output)
}

/// Samples so far, and the worst line so far.
fn progress_line(pipeline: &Pipeline, modules: &ModuleStore, elapsed: Duration) -> String {
    let tally = &pipeline.tally;
    let mut line = format!("{:.1} s  {} samples", elapsed.as_secs_f64(), tally.samples);
    if tally.lost_total() > 0 {
        line += &format!("  {} lost", tally.lost_total());
    }
    let judgements = pipeline.judge();
    let findings = judgements.iter().filter(|j| j.is_finding()).count();
    let Some(worst) = judgements.first().filter(|j| j.is_finding()) else {
        return line;
    };
    let names = Resolver::new(&pipeline.spaces, modules, None);
    let objects = names.objects(worst.key, pipeline.line_size());
    let name = objects.iter().find_map(|o| o.name.clone());
    let name = name.unwrap_or_else(|| {
        objects
            .first()
            .map_or("a line", |o| o.kind.name())
            .to_owned()
    });
    let kind = match worst.verdict {
        Some(Verdict::TrueSharing) => "truly shared",
        Some(Verdict::MixedSharing) => "falsely and truly shared",
        _ => "falsely shared",
    };
    let share = worst.shared_share.unwrap_or(0.0) * 100.0;
    line += &format!("  {findings} hot: {name} {kind} ({share:.0} % of the time)");
    line
}
