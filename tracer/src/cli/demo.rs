//! `demo`: a small falsely shared program, built, watched and reported on.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{AnalysisArgs, AttachArgs, DemoArgs, ObservingArgs, PairArgs, TargetArgs},
    attach, output,
    source_options::SourceName,
};
use crate::sys::limits;

/// Share of the time for which one of its threads may be held, percent: ten holds of each thread within two seconds.
const HOLD_PERCENT: f64 = 2.0;
const SOURCE: &str = include_str!("demo.c");

/// Builds the program with the system's C compiler and attaches to it.
pub(super) fn run(args: DemoArgs) -> Result<ExitCode> {
    if args.source {
        output::write_stdout(SOURCE)?;
        return Ok(ExitCode::SUCCESS);
    }
    let directory = tempfile::Builder::new()
        .prefix("cohtrace-demo-")
        .tempdir()
        .context("making a directory")?;
    let source = directory.path().join("demo.c");
    let program = directory.path().join("demo");
    std::fs::write(&source, SOURCE).with_context(|| format!("writing {}", source.display()))?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut compile = Command::new(&compiler);
    // As if built in `.`, so that the report shows `./demo.c` and not a temporary path.
    let prefix = format!("-ffile-prefix-map={}=.", directory.path().display());
    compile
        .args(["-O2", "-g", "-pthread", &prefix, "-o"])
        .arg(&program);
    if args.padded {
        compile.arg("-DPADDED");
    }
    compile.arg("demo.c").current_dir(directory.path());
    limits::give_back(&mut compile);
    let result = compile.output().with_context(|| {
        format!("running the C compiler `{compiler}`; install one (apt install gcc) or set CC")
    })?;
    if !result.status.success() {
        let said = String::from_utf8_lossy(&result.stderr);
        let said: Vec<&str> = said.lines().collect();
        output::say_all(&said);
        bail!("{compiler} could not build the demo: what it said is above");
    }
    let milliseconds = (args.duration * 1000.0) as u64 + 500;
    let mut observing = ObservingArgs::standard(TargetArgs {
        pid: Vec::new(),
        all: false,
        command: vec![program.into(), milliseconds.to_string().into()],
        leave_running: false,
    });
    observing.sampling.duration = Some(args.duration);
    // What it gains to follow the advice is seen, not guessed.
    observing.hold.hold = Some(HOLD_PERCENT);
    // The same report on every machine.
    observing.sampling.source.source = SourceName::Timer;
    attach::run(&AttachArgs {
        observing,
        record: None,
        analysis: AnalysisArgs::standard(),
        pairs: PairArgs::standard(),
        output: args.output,
    })
}
