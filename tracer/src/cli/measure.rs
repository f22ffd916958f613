//! `measure`: what this machine charges for a line.

mod shown;

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::{args::MeasureArgs, failure, machine_costs, output, progress::Progress};
use crate::{
    machine::Machine,
    measure::{
        costs::{Doubt, MachineCosts},
        state::State,
        survey::{Step, Survey, What},
        text,
    },
    sys::stop_signal::StopSignal,
};

/// Held while a run lasts: two at once would measure each other.
const LOCKS: [&str; 2] = ["/run/lock", "/tmp"];
const LOCK: &str = "cohtrace-measure.lock";

/// Measures, prints, and keeps it for other commands until the machine is started anew.
pub(super) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    output::check(None)?;
    if args.show_states {
        return shown::run();
    }
    if args.kept.output.is_some() {
        output::check(args.kept.output.as_deref())?;
    }
    let _alone = lock()?;
    let boot_id = machine_costs::boot_id().context("reading the identifier of this boot")?;
    let machine = Machine::probe(Path::new("/"));
    let survey = Survey {
        pairs: args.pairs.clone(),
        states: if args.states.is_empty() {
            State::ALL.to_vec()
        } else {
            args.states.clone()
        },
        contention: args.contention,
        time: args.seconds.map(Duration::from_secs_f64),
        real_time: args.realtime,
    };
    if machine.topology.cpus.len() < 2 {
        bail!("there is only one CPU online: between which should lines move?");
    }
    let known = if args.kept.resume {
        known(args, &boot_id)?
    } else {
        None
    };
    let mut costs = measure(&survey, &machine, &boot_id, known.as_ref(), args.kept.quiet)?;
    let emulated = machine.software_emulation();
    costs
        .doubts
        .extend(emulated.map(|by| Doubt::Emulated { by }));
    let json = serde_json::to_string_pretty(&costs).context("writing JSON")? + "\n";
    if let Some(path) = &args.kept.output {
        output::write_text(&json, Some(path))?;
    }
    if let Err(error) = machine_costs::keep(&json) {
        output::say(&format!(
            "not kept for other commands: {}",
            failure::causes(&error)
        ));
    }
    let text = if args.kept.json {
        json
    } else {
        text::all(&costs)
    };
    output::write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(
    survey: &Survey,
    machine: &Machine,
    boot_id: &str,
    known: Option<&MachineCosts>,
    quiet: bool,
) -> Result<MachineCosts> {
    let stop = StopSignal::install().context("installing signal handlers")?;
    let mut progress = Progress::new(quiet);
    let mut part = (What::Looking, Instant::now());
    let costs = survey.run(
        &machine.topology,
        boot_id,
        known,
        &|| stop.arrived(),
        &mut |step| {
            if part.0 != step.what {
                part = (step.what, Instant::now());
            }
            progress.update(|| line(step, part.1.elapsed()));
        },
    );
    progress.clear();
    let costs = costs.context("measuring")?;
    if costs.map.is_empty() && costs.pairs.is_empty() {
        bail!(
            "nothing was measured: {}",
            if costs.complete {
                "threads were taken off these CPUs all the time; try again when they have less to do, or with --realtime"
            } else {
                "there was no time for it"
            }
        );
    }
    Ok(costs)
}

/// What is known already; `None` where that is of an earlier start of the machine, or there is nothing.
fn known(args: &MeasureArgs, boot_id: &str) -> Result<Option<MachineCosts>> {
    let known = match &args.kept.output {
        Some(path) if path.exists() => Some(machine_costs::read(path)?),
        Some(_) => None,
        None => machine_costs::of_this_boot(),
    };
    if let Some(known) = known.as_ref().filter(|known| known.boot_id != boot_id) {
        output::say(&format!(
            "all is measured anew: the machine was started after the run that measured {} pairs",
            known.map.len()
        ));
    }
    Ok(known)
}

/// Only one run at a time.
fn lock() -> Result<File> {
    let mut refused = None;
    for folder in LOCKS {
        match open_lock(&Path::new(folder).join(LOCK)) {
            Ok(file) => match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => {
                    bail!("another `cohtrace measure` runs; two at once would measure each other")
                }
                Err(TryLockError::Error(error)) => refused = Some(error),
            },
            Err(error) => refused = Some(error),
        }
    }
    let refused = refused.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(refused).with_context(|| format!("locking {}/{LOCK}", LOCKS[0]))
}

/// Another user's file serves as well, and a link none.
fn open_lock(path: &Path) -> io::Result<File> {
    let open = |create: bool| {
        OpenOptions::new()
            .read(true)
            .write(create)
            .create_new(create)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .mode(0o644)
            .open(path)
    };
    match open(true) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(false),
        other => other,
    }
}

/// How far it is, and how long it will take if it goes on like this.
fn line(step: Step, elapsed: Duration) -> String {
    let what = match step.what {
        What::Looking => "looking at pair",
        What::Measuring => "measuring pair",
        What::Loading => "loading pair",
    };
    let left = step.of.saturating_sub(step.done);
    let seconds = elapsed.as_secs_f64() / step.done.max(1) as f64 * left as f64;
    let left = if step.done == 0 {
        String::new()
    } else {
        format!(", about {seconds:.0} s left")
    };
    format!("{what} {} of {}{left}", step.done + 1, step.of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_which_pair_and_how_long_it_will_take() {
        let step = |done| Step {
            what: What::Looking,
            done,
            of: 300,
        };
        let elapsed = Duration::from_secs(2);
        assert_eq!(line(step(0), elapsed), "looking at pair 1 of 300");
        assert_eq!(
            line(step(100), elapsed),
            "looking at pair 101 of 300, about 4 s left"
        );
    }

    #[test]
    fn a_lock_is_held_by_one_and_no_link_is_followed_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        let first = open_lock(&path).unwrap();
        first.try_lock().unwrap();
        let second = open_lock(&path).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        second.try_lock().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open_lock(&link).is_err());
    }
}
