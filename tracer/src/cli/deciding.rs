//! Which loads of a session should fetch their line for ownership, as the file that compilers and people read.
//!
//! Reads the session several times: once to see what each load did, and once for each set of hints that is tried, so that
//! what the file promises was counted with all of its hints together. Two processes that run one file run one load.

mod code;
mod pass;
mod words;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use anyhow::{Result, bail};

use self::{code::CodeReader, pass::Stretch};
use super::{counting::After, session_code::SessionCode};
use crate::{
    access::LineSize,
    analysis::{Load, LoadBounds, LoadOptions, LoadTable},
    coherence::Protocol,
    finding::{Chosen, Filter, HintedLoad, LeftAlone, LeftBecause, LoadThresholds, choose},
    hint::{
        file::{Evidence, Expected, FollowingStore, HintFile, LeftLoad, LoadHint},
        load,
        your_code::{OneOffLoads, YourCode, YourHints},
    },
    names::{Names as _, Resolver},
    session::SessionReader,
    space::AddressSpaces,
};

/// Loads without a hint that a file lists.
const MOST_LEFT: usize = 200;

/// How to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct DecideOptions {
    /// Which loads get a hint.
    pub filter: Filter,
    /// Coherence granule.
    pub line_size: LineSize,
    /// Variant of the protocol.
    pub protocol: Protocol,
    /// Limits; `None` for those that fit what the session can prove.
    pub thresholds: Option<LoadThresholds>,
    /// Least requests of a load that is no one-off, whatever it saves; `None` for the limits as they are.
    pub least_requests: Option<u64>,
    /// From where on accesses count.
    pub after: Option<After>,
    /// Whose code a rebuild reaches, whose hints are then counted apart, mostly by one more pass.
    pub your_code: Option<YourCode>,
    /// No progress on the terminal.
    pub quiet: bool,
}

impl Default for DecideOptions {
    /// Our filter, 64-byte lines, the paper's protocol.
    fn default() -> DecideOptions {
        DecideOptions {
            filter: Filter::Ours,
            line_size: LineSize::B64,
            protocol: Protocol::default(),
            thresholds: None,
            least_requests: None,
            after: None,
            your_code: None,
            quiet: false,
        }
    }
}

/// The hints of a session. An error where it cannot be read, or has no order of accesses to decide from.
pub fn of_session(path: &Path, options: &DecideOptions) -> Result<HintFile> {
    let loads = LoadOptions {
        line_size: options.line_size,
        protocol: options.protocol,
        ..LoadOptions::default()
    };
    let stretch = Stretch {
        path,
        line_size: options.line_size,
        after: options.after.as_ref(),
        quiet: options.quiet,
    };
    let mut seen = pass::look(stretch)?;
    if seen.emulated == 0 && seen.windows == 0 {
        bail!(
            "{}: its accesses are samples, of which nobody knows what came between: record with \
             `cohtrace record --source emulate -o X.coh -- PROGRAM`, or with watch windows, for an order to decide from",
            path.display()
        );
    }
    let complete = seen.is_complete();
    if let Some(after) = &options.after
        && seen.windows > 0
    {
        bail!(
            "{}: --after {} is for an order of all accesses, and its watch windows saw only some of them",
            path.display(),
            after.name()
        );
    }
    let mut limits = options.thresholds.unwrap_or_else(|| {
        if complete {
            LoadThresholds::complete()
        } else {
            LoadThresholds::windows()
        }
    });
    if let Some(least) = options.least_requests {
        (limits.one_off_requests, limits.one_off_share) = (least, 1.0);
    }
    let chosen = choose(loads, &limits, options.filter, |tables| {
        pass::feed(stretch, tables)
    })?;
    let reader = SessionReader::open(path)?;
    let code = SessionCode::of(reader.meta());
    let spaces = std::mem::take(&mut seen.spaces);
    let mut file = write(&chosen, &spaces, &code, options);
    if let Some(your_code) = &options.your_code {
        let yours = your_hints(&chosen, &file, your_code, loads, stretch)?;
        file.evidence.your_code = Some(yours);
    }
    file.session = Some(path.display().to_string());
    let sources = reader.meta().sources.iter();
    file.evidence.sources = sources.map(|source| source.name.clone()).collect();
    file.evidence.complete_order = complete;
    let mut caveats: Vec<String> = seen.caveats;
    caveats.extend(words::caveats(&chosen, &limits, options.filter));
    caveats.append(&mut file.caveats);
    file.caveats = caveats;
    Ok(file)
}

/// The hints in code that you build. They are counted by a pass where they are some of all, and not all.
fn your_hints(
    chosen: &Chosen,
    file: &HintFile,
    your_code: &YourCode,
    loads: LoadOptions,
    stretch: Stretch,
) -> Result<YourHints> {
    // The file has the hints in the order of the choice.
    let hinted = chosen.hinted.iter().zip(&file.hints);
    let yours = hinted.filter(|(_, hint)| your_code.has(&hint.load));
    let yours: BTreeSet<_> = yours.map(|(hinted, _)| hinted.load.instruction).collect();
    let hints = yours.len();
    let (transactions, load_transactions) = match hints {
        0 => (
            chosen.without.transactions,
            chosen.without.load_transactions,
        ),
        all if all == chosen.hinted.len() => {
            (chosen.with.transactions, chosen.with.load_transactions)
        }
        _ => {
            let bounds = LoadBounds {
                shadows_per_line: 0,
                ..loads.bounds
            };
            let mut tables = [LoadTable::hinting(LoadOptions { bounds, ..loads }, yours)];
            pass::feed(stretch, &mut tables)?;
            let totals = tables[0].totals();
            (totals.transactions, totals.load_transactions)
        }
    };
    Ok(YourHints {
        hints: hints as u64,
        transactions,
        load_transactions,
    })
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

/// The file, but for what only the session's description knows.
fn write(
    chosen: &Chosen,
    spaces: &AddressSpaces,
    code: &SessionCode,
    options: &DecideOptions,
) -> HintFile {
    let names = Resolver::new(spaces, &code.modules);
    let code = CodeReader::new(spaces, code, &names, options.line_size);
    let hints: Vec<LoadHint> = (chosen.hinted.iter())
        .zip(1..)
        .map(|(hinted, number)| hint(format!("H{number}"), hinted, &code))
        .collect();
    let left = chosen.left.iter().take(MOST_LEFT);
    let left: Vec<LeftLoad> = left.map(|left| left_alone(left, &code)).collect();
    HintFile {
        evidence: Evidence {
            line_bytes: options.line_size.bytes(),
            exclusive_on_first_read: options.protocol.exclusive_on_first_read,
            migratory: options.protocol.migratory,
            transactions: chosen.without.transactions,
            load_transactions: chosen.without.load_transactions,
            hinted_transactions: Some(chosen.with.transactions),
            hinted_load_transactions: Some(chosen.with.load_transactions),
            after: options.after.as_ref().map(|after| after.name().to_owned()),
            one_off: (options.filter == Filter::Ours).then(|| one_off(chosen)),
            ..Evidence::default()
        },
        hints,
        left,
        caveats: names.caveats(),
        ..HintFile::default()
    }
}

fn hint(id: String, hinted: &HintedLoad, code: &CodeReader<'_>) -> LoadHint {
    let load = &hinted.load;
    let stores: Vec<FollowingStore> = (load.stores.iter())
        .map(|store| FollowingStore {
            code: code.named(store.instruction),
            count: store.count,
            kind: code.store_kind(store),
        })
        .collect();
    let named = code.named(load.instruction);
    let expected = expected(load);
    let text = load::advice(&named, stores.first(), &expected);
    let (object, field) = code.object(load);
    LoadHint {
        class: code.class(load.instruction),
        stores,
        object,
        field,
        expected,
        text,
        ..LoadHint::new(id, named)
    }
}

fn left_alone(left: &LeftAlone, code: &CodeReader<'_>) -> LeftLoad {
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
