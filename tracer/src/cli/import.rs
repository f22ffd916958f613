//! `import`: a recording of perf → session.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};

use super::{args::ImportArgs, failure, output, progress::Progress};
use crate::{
    access::CostUnit,
    event::Batch,
    module::ModuleStore,
    perf_data::{self, Description, PerfData},
    session::{MachineRecord, Meta, SessionWriter, SourceRecord, WriterOptions},
    sys::stop_signal::StopSignal,
};

/// Bytes asked for at once.
const BUFFER: usize = 1 << 18;

/// Reads the whole recording, and keeps everything.
pub(super) fn run(args: &ImportArgs) -> Result<ExitCode> {
    let shown = args.file.display().to_string();
    if args.file.is_dir() {
        bail!(
            "{shown}: a directory, as `perf record --threads` leaves it; only single files are read, so record \
             without --threads"
        );
    }
    let to = session_path(args)?;
    if args.file == Path::new("-") {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        // A file that the shell opened can be read back and forth.
        return if stdin.metadata().is_ok_and(|found| found.is_file()) {
            let size = stdin.metadata().map(|found| found.len()).ok();
            let file = PerfData::open(BufReader::with_capacity(BUFFER, stdin));
            import(file.context("standard input")?, size, &to, args)
        } else {
            let pipe = PerfData::from_pipe(BufReader::with_capacity(BUFFER, stdin));
            import(pipe.context("standard input")?, None, &to, args)
        };
    }
    let file = File::open(&args.file).with_context(|| shown.clone())?;
    let found = file.metadata().with_context(|| shown.clone())?;
    let reader = BufReader::with_capacity(BUFFER, file);
    if found.is_file() {
        let file = PerfData::open(reader).context(shown)?;
        import(file, Some(found.len()), &to, args)
    } else {
        let pipe = PerfData::from_pipe(reader).context(shown)?;
        import(pipe, None, &to, args)
    }
}

/// Where the session goes.
fn session_path(args: &ImportArgs) -> Result<PathBuf> {
    if let Some(path) = &args.output {
        return Ok(path.clone());
    }
    match args.file.file_stem() {
        Some(stem) if args.file != Path::new("-") => {
            let mut name = stem.to_owned();
            name.push(".coh");
            Ok(name.into())
        }
        _ => bail!("standard input has no name to call the session by: give -o NAME.coh"),
    }
}

/// What went into the session.
#[derive(Default)]
struct Imported {
    samples: u64,
    accesses: u64,
    lost: u64,
}

fn import<R: Read>(
    file: PerfData<R>,
    size: Option<u64>,
    to: &Path,
    args: &ImportArgs,
) -> Result<ExitCode> {
    let stop = StopSignal::install().context("installing signal handlers")?;
    let name = args.file.display().to_string();
    let modules = ModuleStore::new("/".into(), false).recorded_elsewhere();
    let mut file = file.with_modules(modules.into());
    let mut batch = Batch::default();
    // Before there is a session: what cannot be read at all shall leave none.
    let mut more = (file.next_batch(&mut batch)).with_context(|| name.clone())?;
    let options = WriterOptions {
        force: args.force,
        ..WriterOptions::default()
    };
    let mut writer = SessionWriter::create(to, describe(&file.description(), args), &options)?;
    let mut progress = Progress::new(args.quiet);
    let mut imported = Imported::default();
    let mut failed = None;
    while more {
        imported.samples += batch.tally.samples;
        imported.accesses += batch.accesses.len() as u64;
        imported.lost = imported.lost.saturating_add(batch.tally.lost_total());
        if let Err(error) = writer.append(&batch) {
            failed = Some(error.into());
            break;
        }
        progress.update(|| imported.progress_line(file.position(), size));
        if stop.arrived() {
            failed = Some(anyhow::anyhow!("stopped before the end of {name}"));
            break;
        }
        batch.clear();
        more = match file.next_batch(&mut batch) {
            Ok(more) => more,
            Err(error) => {
                failed = Some(anyhow::Error::new(error).context(name.clone()));
                false
            }
        };
    }
    progress.clear();
    let description = file.description();
    let mut meta = describe(&description, args);
    meta.caveats.extend(
        failed
            .as_ref()
            .map(|why| format!("The import ended early: {}.", failure::causes(why))),
    );
    writer.finish(meta)?;
    if let Some(why) = failed {
        return Err(why);
    }
    if let Some(why) = &description.cut_short {
        output::say(&format!("cohtrace: {name}: not whole: {why}"));
    }
    if !args.quiet {
        output::say(&imported.summary(to));
    }
    Ok(ExitCode::SUCCESS)
}

impl Imported {
    fn progress_line(&self, read: u64, size: Option<u64>) -> String {
        let Imported {
            samples, accesses, ..
        } = self;
        let read = match size.filter(|size| *size > 0) {
            Some(size) => format!("{}%", (read.saturating_mul(100) / size).min(100)),
            None => format!("{} MiB", read >> 20),
        };
        format!("importing  {read}  {samples} samples  {accesses} accesses")
    }

    fn summary(&self, to: &Path) -> String {
        let Imported {
            samples,
            accesses,
            lost,
        } = self;
        let noun = if *samples == 1 { "sample" } else { "samples" };
        format!(
            "imported {samples} {noun} ({accesses} accesses, {lost} samples lost); now run: cohtrace report {}",
            to.display()
        )
    }
}

fn describe(found: &Description, args: &ImportArgs) -> Meta {
    let mut meta = Meta::new();
    meta.clock.clone_from(&found.clock);
    meta.started_unix_ns = found.started_unix_ns;
    meta.start_ns = found.start_ns;
    meta.end_ns = found.end_ns;
    meta.host.clone_from(&found.host);
    meta.machine = MachineRecord {
        kernel_release: found.kernel_release.clone(),
        cpu_model: found.cpu_model.clone(),
        arch: found.arch.clone(),
        online_cpus: found.online_cpus,
        line_size_bytes: None,
        virtual_machine: None,
        software_emulation: None,
    };
    let join = |texts: Vec<&str>| texts.join("; ");
    let mut options = vec![
        ("file".to_owned(), args.file.display().to_string()),
        (
            "events".to_owned(),
            join(found.events.iter().map(|(name, _)| name.as_str()).collect()),
        ),
        (
            "sample_types".to_owned(),
            join(
                found
                    .events
                    .iter()
                    .map(|(_, fields)| fields.as_str())
                    .collect(),
            ),
        ),
    ];
    let version = found.perf_version.clone();
    options.extend(version.map(|version| ("perf_version".to_owned(), version)));
    meta.sources = vec![SourceRecord {
        name: perf_data::NAME.to_owned(),
        options: options.into_iter().collect(),
        evidence: found
            .evidence
            .names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }];
    meta.command_line.clone_from(&found.command_line);
    meta.cost_unit = CostUnit::LatencyCycles;
    let host = found.host.as_ref();
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    meta.remarks = vec![format!(
        "Imported from {}, which perf recorded{host}: what is said of the run is what perf noted then.",
        args.file.display()
    )];
    meta.caveats.clone_from(&found.caveats);
    meta
}
