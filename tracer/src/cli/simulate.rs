//! `simulate`: sessions of an emulator → machines with caches → the tables of SWIFT.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};

use super::{
    args::{HintFilter, SimulateArgs},
    deciding::{self, DecideOptions},
    load_hints::LoadHints,
    output,
    progress::Progress,
    session_code::SessionCode,
    signals::StopSignal,
};
use crate::{
    access::SpaceId,
    analysis::{Hinted, MOST_PROCESSORS, Simulation},
    event::Batch,
    hint::file::{HintFile, LoadClass},
    names::Resolver,
    report::{
        number::{count, grouped, list},
        simulation::{self, HintsUsed, SessionRole, SimulatedSession, SimulationReport},
        simulation_text,
    },
    session::SessionReader,
    space::AddressSpaces,
};

/// Names of hints without a load that text tells; JSON has all.
const UNMATCHED: usize = 5;
/// The scenarios: as it is, integer loads hinted, all hinted.
const SCENARIOS: usize = 3;
/// Integer loads are hinted in the second and the third, floating-point ones in the third.
const INTEGER: Hinted = Hinted(0b110);
const FLOATING_POINT: Hinted = Hinted(0b100);

/// Prints the tables.
pub fn run(args: &SimulateArgs) -> Result<ExitCode> {
    let mut replays = Replays {
        args,
        stop: StopSignal::install()?,
        progress: Progress::new(args.quiet),
    };
    let sessions = replays.sessions();
    replays.progress.clear();
    let report = SimulationReport::new(&args.machine.model(), sessions?);
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
    progress: Progress,
}

/// A session that was read to its end.
struct Replayed {
    simulation: Simulation,
    spaces: AddressSpaces,
    code: SessionCode,
    caveats: Vec<String>,
}

impl Replays<'_> {
    fn sessions(&mut self) -> Result<Vec<SimulatedSession>> {
        let args = self.args;
        let mut rows = Vec::new();
        let given = match (&args.hints, &args.train) {
            (Some(path), _) => Some((path, file(path)?)),
            (None, Some(train)) => {
                let hints = self.decide(train)?;
                rows.push(self.simulate(train, SessionRole::Train, hints.clone(), train)?);
                Some((train, hints.elsewhere()))
            }
            (None, None) => None,
        };
        for session in &args.sessions {
            let row = if let Some((from, hints)) = &given {
                self.simulate(session, SessionRole::Given, hints.clone(), from)?
            } else {
                let hints = self.decide(session)?;
                self.simulate(session, SessionRole::Own, hints, session)?
            };
            rows.push(row);
        }
        Ok(rows)
    }

    /// The loads to hint, by what the session shows.
    fn decide(&mut self, session: &Path) -> Result<LoadHints> {
        match self.args.filter {
            HintFilter::Swift => self.followed_by_ownership(session),
            HintFilter::Ours => {
                let model = self.args.machine.model();
                let options = DecideOptions {
                    line_size: model.line,
                    protocol: model.protocol,
                    ..DecideOptions::default()
                };
                Ok(LoadHints::of_file(&deciding::of_session(
                    session, &options,
                )?))
            }
        }
    }

    /// Loads that the filter of the paper finds.
    fn followed_by_ownership(&mut self, session: &Path) -> Result<LoadHints> {
        let mut hints = LoadHints::default();
        self.replay(
            session,
            1,
            |_, _, _, _| Hinted::default(),
            |simulation, spaces, code| {
                for load in simulation.take_found() {
                    hints.found(load, spaces, code);
                }
            },
        )?;
        Ok(hints)
    }

    /// Simulates the session with these hints, which come from `from`.
    fn simulate(
        &mut self,
        session: &Path,
        role: SessionRole,
        mut hints: LoadHints,
        from: &Path,
    ) -> Result<SimulatedSession> {
        let replayed = self.replay(
            session,
            SCENARIOS,
            |spaces, code, space, ip| match hints.find(spaces, code, space, ip) {
                Some(LoadClass::Integer | LoadClass::Unknown) => INTEGER,
                Some(LoadClass::FloatingPoint) => FLOATING_POINT,
                None => Hinted::default(),
            },
            // Decided already.
            |simulation, _, _| drop(simulation.take_found()),
        )?;
        let [integer, floating_point, unknown] = hints.counts();
        let used = HintsUsed {
            from: from.display().to_string(),
            integer,
            floating_point,
            unknown,
            unmatched: hints.unmatched(),
        };
        let mut caveats = replayed.caveats;
        caveats.extend(caveats_of(&used, &replayed.simulation));
        let names = Resolver::new(&replayed.spaces, &replayed.code.modules);
        let name = name(session);
        Ok(SimulatedSession::new(
            name,
            role,
            used,
            &replayed.simulation,
            self.args.top,
            &names,
            caveats,
        ))
    }

    /// Feeds the session to machines. `hinted` is asked for each instruction that loads, and `each` told after each
    /// batch.
    fn replay(
        &mut self,
        session: &Path,
        scenarios: usize,
        mut hinted: impl FnMut(&AddressSpaces, &SessionCode, SpaceId, u64) -> Hinted,
        mut each: impl FnMut(&mut Simulation, &AddressSpaces, &SessionCode),
    ) -> Result<Replayed> {
        let model = self.args.machine.model();
        let mut reader = SessionReader::open_for(session, model.line)?;
        let code = SessionCode::of(reader.meta());
        let mut simulation = Simulation::new(&model, scenarios)?;
        let mut spaces = AddressSpaces::default();
        let mut batch = Batch::default();
        let (mut seen, mut lost) = (0u64, 0u64);
        while reader.next_batch(&mut batch)? {
            if self.stop.arrived() {
                bail!(
                    "interrupted after {} accesses of {}; no table is whole",
                    grouped(seen),
                    session.display()
                );
            }
            for due in batch.in_order() {
                let Some((access, space, place)) = spaces.follow(due) else {
                    continue;
                };
                simulation.observe(access, space, place, || {
                    hinted(&spaces, &code, space, access.ip)
                });
            }
            each(&mut simulation, &spaces, &code);
            seen += batch.accesses.len() as u64;
            lost += batch.tally.lost_total();
            self.progress
                .update(|| format!("{}: {} accesses", name(session), grouped(seen)));
        }
        let executed = simulation.executed();
        if executed.loads + executed.biased_loads + executed.stores == 0 {
            bail!(
                "{}: no emulator saw its accesses, so their order is not complete, and without that nothing can be \
                 simulated; record such a session with `cohtrace record --source emulate -o x.coh -- PROGRAM`",
                session.display()
            );
        }
        let mut caveats: Vec<String> = reader.caveats().iter().map(ToString::to_string).collect();
        if lost > 0 {
            caveats.push(format!(
                "{} lost while recording, so the order has holes",
                count(lost, "access was", "accesses were")
            ));
        }
        Ok(Replayed {
            simulation,
            spaces,
            code,
            caveats,
        })
    }
}

fn file(path: &PathBuf) -> Result<LoadHints> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let file = HintFile::parse(&text).with_context(|| path.display().to_string())?;
    Ok(LoadHints::of_file(&file))
}

/// What a row is called: the session's name without its place and its `.coh`.
fn name(session: &Path) -> String {
    let stem = session.file_stem().unwrap_or(session.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// What must be known of the figures of a session.
fn caveats_of(used: &HintsUsed, simulation: &Simulation) -> Vec<String> {
    let mut caveats = Vec::new();
    let all = used.integer + used.floating_point + used.unknown;
    if all == 0 {
        caveats.push("there is no load to hint, so the columns are equal".to_owned());
    }
    if used.unknown > 0 {
        caveats.push(format!(
            "the code of {} could not be read; they count as integer loads",
            count(used.unknown, "hinted load", "hinted loads")
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
