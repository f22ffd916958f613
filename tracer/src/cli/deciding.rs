//! Which loads of a session should fetch their line for ownership, as the file that compilers and people read.
//!
//! Reads the session several times: once to see what each load did, and once for each set of hints that is tried, so that
//! what the file promises was counted with all of its hints together. Two processes that run one file run one load.

mod code;
mod pass;
mod words;

#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Result, bail};

use self::code::CodeReader;
use super::session_code::SessionCode;
use crate::{
    access::LineSize,
    analysis::{Load, LoadOptions},
    coherence::Protocol,
    finding::{Chosen, Filter, HintedLoad, LeftAlone, LoadThresholds, choose},
    hint::{
        file::{Evidence, Expected, FollowingStore, HintFile, LeftLoad, LoadHint},
        load,
    },
    names::{Names as _, Resolver},
    session::SessionReader,
    space::AddressSpaces,
};

/// Loads without a hint that a file lists.
const MOST_LEFT: usize = 200;

/// How to decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecideOptions {
    /// Which loads get a hint.
    pub filter: Filter,
    /// Coherence granule.
    pub line_size: LineSize,
    /// Variant of the protocol.
    pub protocol: Protocol,
    /// Limits; `None` for those that fit what the session can prove.
    pub thresholds: Option<LoadThresholds>,
}

impl Default for DecideOptions {
    /// Our filter, 64-byte lines, the paper's protocol.
    fn default() -> DecideOptions {
        DecideOptions {
            filter: Filter::Ours,
            line_size: LineSize::B64,
            protocol: Protocol::default(),
            thresholds: None,
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
    let mut seen = pass::look(path, options.line_size)?;
    if seen.emulated == 0 && seen.windows == 0 {
        bail!(
            "{}: its accesses are samples, of which nobody knows what came between: record with \
             `cohtrace record --source emulate -o X.coh -- PROGRAM`, or with watch windows, for an order to decide from",
            path.display()
        );
    }
    let complete = seen.is_complete();
    let limits = options.thresholds.unwrap_or_else(|| {
        if complete {
            LoadThresholds::complete()
        } else {
            LoadThresholds::windows()
        }
    });
    let chosen = choose(loads, &limits, options.filter, |tables| {
        pass::feed(path, options.line_size, tables)
    })?;
    let reader = SessionReader::open(path)?;
    let code = SessionCode::of(reader.meta());
    let spaces = std::mem::take(&mut seen.spaces);
    let mut file = write(&chosen, &spaces, &code, options);
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
            relinquish: Some(options.protocol.relinquish),
            transactions: chosen.without.transactions,
            load_transactions: chosen.without.load_transactions,
            hinted_transactions: Some(chosen.with.transactions),
            hinted_load_transactions: Some(chosen.with.load_transactions),
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
