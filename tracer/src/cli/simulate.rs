//! `simulate`: sessions of an emulator → machines with caches → the tables of SWIFT.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{HintFilter, SimulateArgs},
    counting::Counting,
    deciding::{self, DecideOptions},
    load_hints::LoadHints,
    output,
    reading::{Reading, name},
    session_code::SessionCode,
};
use crate::{
    access::{Basis, SpaceId},
    analysis::{Hinted, MOST_PROCESSORS, Simulated, Simulation},
    event::Batch,
    hint::file::{HintFile, LoadClass},
    names::Resolver,
    number::{count, grouped, list},
    report::{
        simulation::{self, HintsUsed, SCENARIOS, SessionRole, SimulatedSession, SimulationReport},
        simulation_text,
    },
    space::AddressSpaces,
    sys::stop_signal::StopSignal,
};

/// Names of hints without a load that text tells; JSON has all.
const UNMATCHED: usize = 5;
/// The scenarios: as it is; integer loads hinted; all hinted; and the latter two in code that you build alone.
fn scenarios(class: LoadClass, yours: bool) -> Hinted {
    Hinted(match (class, yours) {
        (LoadClass::Integer | LoadClass::Unknown, false) => 0b0_0110,
        (LoadClass::FloatingPoint, false) => 0b0_0100,
        (LoadClass::Integer | LoadClass::Unknown, true) => 0b1_1110,
        (LoadClass::FloatingPoint, true) => 0b1_0100,
    })
}

/// Prints the tables.
pub(super) fn run(args: &SimulateArgs) -> Result<ExitCode> {
    output::check(None)?;
    if args.machine.log_buffer.is_some()
        && (args.hints.is_some() || args.filter != HintFilter::Swift)
    {
        bail!(
            "--log-buffer says which requests the paper's filter sees, and no loads are looked for with it here: add \
             --filter swift, and leave --hints away"
        );
    }
    let replays = Replays {
        args,
        stop: StopSignal::install().context("installing signal handlers")?,
    };
    let sessions = replays.sessions()?;
    let after = args
        .after
        .after
        .as_ref()
        .map(|after| after.name().to_owned());
    let report = SimulationReport::new(&args.machine.model(), after, sessions);
    let rendered = if args.json {
        simulation::render_json(&report)
    } else {
        simulation_text::render(&report, output::text_options(args.color, None))
    };
    output::write_stdout(&rendered)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads sessions, each to its end.
struct Replays<'a> {
    args: &'a SimulateArgs,
    stop: StopSignal,
}

/// A session that was read to its end.
struct Replayed {
    simulated: Simulated,
    spaces: AddressSpaces,
    code: SessionCode,
    caveats: Vec<String>,
}

impl Replays<'_> {
    fn sessions(&self) -> Result<Vec<SimulatedSession>> {
        let args = self.args;
        let mut rows = Vec::new();
        let given = match (&args.hints, &args.train[..]) {
            (Some(path), _) => Some((path.display().to_string(), self.of_file(&file(path)?))),
            (None, []) => None,
            (None, train) => {
                let hints = self.decide(train)?;
                let names: Vec<String> = train.iter().map(|at| at.display().to_string()).collect();
                let from = names.join(", ");
                for (number, session) in train.iter().enumerate() {
                    // Addresses mean something in the first session that was decided from.
                    let known = hints.clone();
                    let known = if number == 0 {
                        known
                    } else {
                        known.elsewhere()
                    };
                    rows.push(self.simulate(session, SessionRole::Train, known, &from)?);
                }
                Some((from, hints.elsewhere()))
            }
        };
        for session in &args.sessions {
            let row = if let Some((from, hints)) = &given {
                self.simulate(session, SessionRole::Given, hints.clone(), from)?
            } else {
                let hints = self.decide(std::slice::from_ref(session))?;
                let from = session.display().to_string();
                self.simulate(session, SessionRole::Own, hints, &from)?
            };
            rows.push(row);
        }
        Ok(rows)
    }

    /// The loads to hint, by what the sessions show.
    fn decide(&self, sessions: &[PathBuf]) -> Result<LoadHints> {
        match self.args.filter {
            HintFilter::Swift => {
                let mut hints = LoadHints::new(self.args.your_code.your_code());
                for (number, session) in sessions.iter().enumerate() {
                    if number > 0 {
                        hints = hints.elsewhere();
                    }
                    self.add_followed_by_ownership(session, &mut hints)?;
                }
                Ok(hints)
            }
            HintFilter::Ours => {
                let model = self.args.machine.model();
                let options = DecideOptions {
                    line_size: model.line,
                    protocol: model.protocol,
                    after: self.args.after.after.clone(),
                    quiet: self.args.quiet,
                    policy: self.args.policy.policy(),
                    limits: self.args.limits.limits(),
                    ..DecideOptions::default()
                };
                Ok(self.of_file(&deciding::of_sessions(sessions, &options)?))
            }
        }
    }

    fn of_file(&self, file: &HintFile) -> LoadHints {
        LoadHints::of_file(file, self.args.your_code.your_code())
    }

    /// Adds the loads that the filter of the paper finds in a session.
    fn add_followed_by_ownership(&self, session: &Path, hints: &mut LoadHints) -> Result<()> {
        let replayed = self.replay(session, 1, |_, _, _, _| Hinted::default())?;
        for load in replayed.simulated.found() {
            hints.found(load, &replayed.spaces, &replayed.code);
        }
        Ok(())
    }

    /// Simulates the session with these hints, which come from `from`.
    fn simulate(
        &self,
        session: &Path,
        role: SessionRole,
        mut hints: LoadHints,
        from: &str,
    ) -> Result<SimulatedSession> {
        let replayed = self.replay(session, SCENARIOS, |spaces, code, space, ip| {
            match hints.find(spaces, code, space, ip) {
                Some((class, yours)) => scenarios(class, yours),
                None => Hinted::default(),
            }
        })?;
        let [all, your_code] = hints.counts();
        let used = HintsUsed {
            from: from.to_owned(),
            all,
            your_code,
            unmatched: hints.unmatched(),
            one_off: hints.one_off,
        };
        let mut caveats = replayed.caveats;
        caveats.extend(caveats_of(&used, &replayed.simulated));
        let names = Resolver::new(&replayed.spaces, &replayed.code.modules);
        let name = name(session);
        Ok(SimulatedSession::new(
            name,
            role,
            used,
            &replayed.simulated,
            self.args.top,
            &names,
            caveats,
        ))
    }

    /// Feeds the session to machines. `hinted` is asked for each instruction that loads.
    fn replay(
        &self,
        session: &Path,
        scenarios: usize,
        mut hinted: impl FnMut(&AddressSpaces, &SessionCode, SpaceId, u64) -> Hinted,
    ) -> Result<Replayed> {
        let args = self.args;
        let model = args.machine.model();
        let mut reading = Reading::open(session, model.line, "simulating", args.quiet)?;
        let code = SessionCode::of(reading.session().meta());
        let mut counting = Counting::new(args.after.after.as_ref());
        let mut simulation = Simulation::new(&model, scenarios)?;
        simulation.set_counting(counting.has_begun());
        let mut spaces = AddressSpaces::default();
        let mut batch = Batch::default();
        let (mut emulated, mut lost) = (false, 0u64);
        while reading.next_batch(&mut batch)? {
            if self.stop.arrived() {
                reading.clear();
                bail!(
                    "interrupted after {} accesses of {}; no table is whole",
                    grouped(reading.accesses()),
                    session.display()
                );
            }
            for due in batch.in_order() {
                let Some((access, space, place)) = spaces.follow(due) else {
                    continue;
                };
                if access.basis == Basis::Emulated {
                    emulated = true;
                    if counting.begins(access, space, &spaces, &code) {
                        simulation.set_counting(true);
                    }
                }
                simulation.observe(access, space, place, || {
                    hinted(&spaces, &code, space, access.ip)
                });
            }
            lost += batch.tally.lost_total();
        }
        if !emulated {
            bail!(
                "{}: no emulator saw its accesses, so their order is not complete, and without that nothing can be \
                 simulated; record such a session with `cohtrace record --source emulate -o x.coh -- PROGRAM`",
                session.display()
            );
        }
        counting.check(&spaces, &code)?;
        let reader = reading.session();
        let mut caveats: Vec<String> = reader.caveats().iter().map(ToString::to_string).collect();
        if lost > 0 {
            caveats.push(format!(
                "{} lost while recording, so the order has holes",
                count(lost, "access was", "accesses were")
            ));
        }
        Ok(Replayed {
            simulated: simulation.finish(),
            spaces,
            code,
            caveats,
        })
    }
}

fn file(path: &PathBuf) -> Result<HintFile> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    HintFile::parse(&text).with_context(|| path.display().to_string())
}

/// What must be known of the figures of a session.
fn caveats_of(used: &HintsUsed, simulation: &Simulated) -> Vec<String> {
    let mut caveats = Vec::new();
    let (all, yours) = (used.all.sum(), used.your_code.sum());
    if all == 0 {
        caveats.push("there is no load to hint, so the columns are equal".to_owned());
    } else if yours == 0 {
        caveats.push(format!(
            "no hint is in code that you build, so a rebuild with `cohtrace as` changes nothing: {} in system libraries, or \
             in code without source lines (build with -g; --module NAME names what you build)",
            count(all, "load is", "loads are")
        ));
    }
    if let Some(one_off) = used.one_off.filter(|one_off| one_off.loads > 0) {
        caveats.push(format!(
            "{} left, which asked for a line a few times only (the start of libraries, what each thread does once): hints \
             would save {} messages, once",
            count(one_off.loads, "one-off load was", "one-off loads were"),
            grouped(one_off.saved)
        ));
    }
    if used.all.unknown > 0 {
        caveats.push(format!(
            "the code of {} could not be read; they count as integer loads",
            count(used.all.unknown, "hinted load", "hinted loads")
        ));
    }
    if !used.unmatched.is_empty() {
        caveats.push(format!(
            "{} of {} hints matched no load that ran: {}",
            grouped(used.unmatched.len() as u64),
            grouped(all),
            list(&used.unmatched, UNMATCHED)
        ));
    }
    let executed = simulation.executed();
    if executed.ignored > 0 {
        caveats.push(format!(
            "{} left out: prefetches, and accesses of unknown direction",
            count(executed.ignored, "access was", "accesses were")
        ));
    }
    if executed.sampled > 0 {
        caveats.push(format!(
            "{} left out, which no emulator saw",
            count(executed.sampled, "access was", "accesses were")
        ));
    }
    if executed.unnumbered > 0 {
        caveats.push(format!(
            "{} left out, of more lines than can be told apart",
            count(executed.unnumbered, "access was", "accesses were")
        ));
    }
    if simulation.threads() > MOST_PROCESSORS.into() {
        caveats.push(format!(
            "{} share {} processors",
            count(simulation.threads(), "thread", "threads"),
            grouped(MOST_PROCESSORS.into())
        ));
    }
    caveats
}
