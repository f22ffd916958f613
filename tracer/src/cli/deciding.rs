//! Which loads of sessions should fetch their line for ownership, as the file that compilers and people read.
//!
//! Reads the sessions once to see what each load did. Two processes that run one file run one load, in all sessions.

mod code;
mod digests;
mod pass;
mod words;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use anyhow::{Result, bail};

use self::{
    code::CodeReader,
    pass::{Seen, Stretch},
};
use super::counting::After;
use crate::{
    access::{LineSize, Place},
    analysis::{Instruction, Load, LoadOptions, LoadTable, Loads},
    coherence::Protocol,
    finding::{
        Chosen, Counts, Filter, HintedLoad, LeftAlone, LeftBecause, LoadThresholds, Policy, choose,
        keeping,
    },
    hint::{
        file::{Evidence, Expected, FollowingStore, HintFile, LeftLoad, LoadHint},
        load,
        repeated::Repeated,
        your_code::{OneOffLoads, YourCode, YourHints},
    },
    names::{Names as _, Resolver},
};

/// Loads without a hint that a file lists.
const MOST_LEFT: usize = 200;

/// How to decide.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecideOptions {
    /// Which loads get a hint.
    pub filter: Filter,
    /// Coherence granule.
    pub line_size: LineSize,
    /// Variant of the protocol.
    pub protocol: Protocol,
    /// What counts where there are several sessions.
    pub policy: Policy,
    /// Limits that were asked for.
    pub limits: OwnLimits,
    /// From where on accesses count.
    pub after: Option<After>,
    /// Whose code a rebuild reaches, whose hints are then counted apart.
    pub your_code: Option<YourCode>,
    /// No progress on the terminal.
    pub quiet: bool,
}

/// Limits in place of those that fit what the sessions can prove; `None` for these.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OwnLimits {
    /// Most growth of the messages that serve loads, as a part of them.
    pub load_growth: Option<f64>,
    /// Least requests of a load that is no one-off, whatever it saves.
    pub requests: Option<u64>,
    /// Least share of the requests that a store follows, 0..=1.
    pub stored: Option<f64>,
}

impl OwnLimits {
    fn apply(self, limits: &mut LoadThresholds) {
        limits.load_growth = self.load_growth.unwrap_or(limits.load_growth);
        limits.stored = self.stored.unwrap_or(limits.stored);
        if let Some(least) = self.requests {
            (limits.one_off_requests, limits.one_off_share) = (least, 1.0);
        }
    }
}

impl Default for DecideOptions {
    /// Our filter, 64-byte lines, the paper's protocol.
    fn default() -> DecideOptions {
        DecideOptions {
            filter: Filter::Ours,
            line_size: LineSize::B64,
            protocol: Protocol::default(),
            policy: Policy::default(),
            limits: OwnLimits::default(),
            after: None,
            your_code: None,
            quiet: false,
        }
    }
}

/// Parts of memory that are looked at apart: many, so that what is kept of the lines of one fits into a CPU's caches.
const SHARDS: usize = 64;

/// The hints of several runs of a program. An error where one cannot be read, or has no order of accesses to decide from.
pub(super) fn of_sessions<P: AsRef<Path>>(
    paths: &[P],
    options: &DecideOptions,
) -> Result<HintFile> {
    let loads = LoadOptions {
        line_size: options.line_size,
        protocol: options.protocol,
        shards: SHARDS,
        ..LoadOptions::default()
    };
    let mut table = [LoadTable::new(keeping(loads))];
    let stretch = Stretch {
        paths,
        line_size: options.line_size,
        after: options.after.as_ref(),
        quiet: options.quiet,
    };
    let seen = pass::feed(stretch, &mut table)?;
    for (path, seen) in paths.iter().zip(&seen) {
        if seen.emulated == 0 && seen.windows == 0 {
            bail!(
                "{}: its accesses are samples, of which nobody knows what came between: record with \
                 `cohtrace record --source emulate -o X.coh -- PROGRAM`, or with watch windows, for an order to decide from",
                path.as_ref().display()
            );
        }
        if let Some(after) = &options.after
            && seen.windows > 0
        {
            bail!(
                "{}: --after {} is for an order of all accesses, and its watch windows saw only some of them",
                path.as_ref().display(),
                after.name()
            );
        }
    }
    let complete = seen.iter().all(Seen::is_complete);
    let mut limits = if complete {
        LoadThresholds::complete()
    } else {
        LoadThresholds::windows()
    };
    limits.policy = options.policy;
    options.limits.apply(&mut limits);
    let [table] = table;
    let alone = table.finish();
    let mut again = |tables: &mut [LoadTable]| pass::feed(stretch, tables).map(drop);
    let chosen = choose(loads, &alone, &limits, options.filter, &mut again)?;
    let mut evidence = Evidence {
        complete_order: complete,
        after: options.after.as_ref().map(|after| after.name().to_owned()),
        one_off: (options.filter == Filter::Ours).then(|| one_off(&chosen)),
        ..Evidence::default()
    };
    for (path, seen) in paths.iter().zip(&seen) {
        evidence.sessions.push(path.as_ref().display().to_string());
        add_new(&mut evidence.sources, &seen.sources);
    }
    let names: Vec<Resolver> = (seen.iter())
        .map(|seen| Resolver::new(&seen.spaces, &seen.code.modules))
        .collect();
    let readers = seen
        .iter()
        .zip(&names)
        .map(|(seen, names)| CodeReader::new(&seen.spaces, &seen.code, names, options.line_size));
    let mut file = write(&chosen, &Codes(readers.collect()), options, evidence);
    if let Some(your_code) = &options.your_code {
        let yours = your_hints(&chosen, &file, your_code);
        let counts = match yours.len() {
            all if all == chosen.hinted.len() => chosen.with,
            _ => counts_with(&alone, yours.clone(), loads, again)?,
        };
        file.evidence.your_code = Some(YourHints {
            hints: yours.len() as u64,
            transactions: counts.transactions,
            load_transactions: counts.load_transactions,
        });
    }
    file.session = file.evidence.sessions.first().cloned();
    for seen in &seen {
        add_new(&mut file.caveats, &seen.caveats);
    }
    let caveats = words::caveats(&chosen, &limits, options.filter);
    add_new(&mut file.caveats, &caveats);
    for names in &names {
        add_new(&mut file.caveats, &names.caveats());
    }
    Ok(file)
}

/// Adds what is not there yet.
fn add_new(all: &mut Vec<String>, more: &[String]) {
    for text in more {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
}

/// The hints in code that you build.
fn your_hints(chosen: &Chosen, file: &HintFile, your_code: &YourCode) -> BTreeSet<Instruction> {
    // The file has the hints in the order of the choice.
    let hinted = chosen.hinted.iter().zip(&file.hints);
    let yours = hinted.filter(|(_, hint)| your_code.has_hint(hint));
    yours.map(|(hinted, _)| hinted.load.instruction).collect()
}

/// Messages of the orders with these loads hinted: by a pass only where the orders were too large to be kept.
fn counts_with(
    alone: &Loads,
    hinted: BTreeSet<Instruction>,
    loads: LoadOptions,
    pass: impl FnOnce(&mut [LoadTable]) -> Result<()>,
) -> Result<Counts> {
    if let Some(streaks) = (alone.streaks.as_ref()).filter(|streaks| streaks.is_whole()) {
        let run = streaks.run_hinted(streaks.all_lines(), &hinted);
        return Ok(run.messages.into());
    }
    let mut tables = [LoadTable::hinting(loads.only_counting(), hinted)];
    pass(&mut tables)?;
    let [table] = tables;
    Ok(table.finish().totals.into())
}

/// The loads that are left as one-offs, of which a file may list only some.
fn one_off(chosen: &Chosen) -> OneOffLoads {
    let loads = chosen.left.iter();
    let loads = loads.filter(|left| left.because == LeftBecause::OneOff);
    loads.fold(OneOffLoads::default(), |sum, left| OneOffLoads {
        loads: sum.loads + 1,
        saved: sum.saved + left.load.net().unsigned_abs(),
    })
}

/// Readers of the code of each session.
struct Codes<'a>(Vec<CodeReader<'a>>);

impl<'a> Codes<'a> {
    /// The object that the load missed most, and the part of it; of a session whose line is known.
    fn object(&self, load: &Load) -> (Option<String>, Option<String>) {
        let Some(touched) = load.lines.first() else {
            return (None, None);
        };
        let at = match touched.line.0 {
            Place::Private { space, .. } => Instruction {
                space,
                ..load.instruction
            },
            _ => load.instruction,
        };
        self.of(at).object(load)
    }

    /// The reader that knows an instruction.
    fn of(&self, at: Instruction) -> &CodeReader<'a> {
        let mut known = self.0.iter();
        known.find(|code| code.knows(at)).unwrap_or(&self.0[0])
    }
}

/// The file, but for what only the sessions' descriptions know.
fn write(
    chosen: &Chosen,
    codes: &Codes<'_>,
    options: &DecideOptions,
    evidence: Evidence,
) -> HintFile {
    let hints: Vec<LoadHint> = (chosen.hinted.iter())
        .zip(1..)
        .map(|(hinted, number)| hint(format!("H{number}"), hinted, codes))
        .collect();
    let left = chosen.left.iter().take(MOST_LEFT);
    let left: Vec<LeftLoad> = left.map(|left| left_alone(left, codes)).collect();
    HintFile {
        evidence: Evidence {
            line_bytes: options.line_size.bytes(),
            protocol: options.protocol,
            transactions: chosen.without.transactions,
            load_transactions: chosen.without.load_transactions,
            hinted_transactions: Some(chosen.with.transactions),
            hinted_load_transactions: Some(chosen.with.load_transactions),
            ..evidence
        },
        hints,
        left,
        ..HintFile::default()
    }
}

fn hint(id: String, hinted: &HintedLoad, codes: &Codes<'_>) -> LoadHint {
    let load = &hinted.load;
    let stores: Vec<FollowingStore> = (load.stores.iter())
        .map(|store| {
            let code = codes.of(store.instruction);
            FollowingStore {
                code: code.named(store.instruction),
                count: store.count,
                kind: code.store_kind(store),
            }
        })
        .collect();
    let code = codes.of(load.instruction);
    let named = code.named(load.instruction);
    let expected = expected(load);
    let text = load::advice(&named, stores.first(), &expected);
    let (object, field) = codes.object(load);
    let hint = LoadHint {
        class: code.class(load.instruction),
        stores,
        object,
        field,
        expected,
        text,
        ..LoadHint::new(id, named)
    };
    let prefetch = code.prefetch(load.instruction, Repeated::of(&hint));
    LoadHint { prefetch, ..hint }
}

fn left_alone(left: &LeftAlone, codes: &Codes<'_>) -> LeftLoad {
    let code = codes.of(left.load.instruction);
    LeftLoad {
        load: code.named(left.load.instruction),
        class: code.class(left.load.instruction),
        expected: expected(&left.load),
        reason: left.because.name().to_owned(),
        text: words::left(left),
    }
}

fn expected(load: &Load) -> Expected {
    Expected {
        executions: load.executions,
        requests: load.requests,
        followed_by_store: load.followed_by_store,
        found_idle: load.found_idle,
        found_shared: load.found_shared,
        found_clean: load.found_clean,
        found_dirty: load.found_dirty,
        readers_hurt: load.readers_hurt,
        saved: load.saved,
        lost: load.lost,
    }
}
