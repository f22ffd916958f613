//! What a file was when it was mapped, read while that is known: by the time that names are asked for, there may be another
//! of its name, and even of its inode number.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use rustc_hash::FxHashMap;

use super::{build_id, find};
use crate::{
    access::Pid,
    event::{ContextKind, FileStamp, Mapping},
    sys::clock,
};

/// Files kept; more begin anew.
const MOST_KNOWN: usize = 4096;

/// How long a file is believed to be as it was, nanoseconds: a program that starts maps each of its files in several pieces. A
/// file that changed meanwhile is not taken for the mapped one later.
const STILL_NS: u64 = 50_000_000;

/// What a file was when it was looked at.
struct Known {
    stamp: FileStamp,
    build_id: Option<String>,
    name: String,
    /// CLOCK_MONOTONIC, nanoseconds.
    looked_ns: u64,
}

/// Reads build-ids of mapped files, of each file once for as long as it stays as it is.
pub struct Stamps {
    root: PathBuf,
    /// By device and inode.
    known: FxHashMap<(u64, u64), Known>,
    /// Nanoseconds since 1970-01-01 UTC at 0 of CLOCK_MONOTONIC.
    clock_started_ns: u64,
}

impl Stamps {
    /// Looks below `root`: `/`.
    pub fn new(root: PathBuf) -> Stamps {
        Stamps {
            root,
            known: FxHashMap::default(),
            clock_started_ns: unix_ns(SystemTime::now()).saturating_sub(clock::monotonic_ns()),
        }
    }

    /// Completes what is told of a mapping, if that is what is told.
    pub fn complete_told(&mut self, time_ns: u64, told: &mut ContextKind) {
        if let ContextKind::Mapping { pid, mapping } = told {
            self.complete(*pid, time_ns, Arc::make_mut(mapping));
        }
    }

    /// Completes a mapping of a running process, or of one that ended just now, that was made at a time
    /// (CLOCK_MONOTONIC, nanoseconds). Of a file that is gone already it stays incomplete.
    pub fn complete(&mut self, pid: Pid, time_ns: u64, mapping: &mut Mapping) {
        if !mapping.is_file() || mapping.build_id.is_some() {
            return;
        }
        let key = (mapping.dev, mapping.inode);
        let now_ns = clock::monotonic_ns();
        if let Some(known) = self.known.get(&key)
            && known.name == mapping.name
            && now_ns.saturating_sub(known.looked_ns) < STILL_NS
        {
            mapping.build_id.clone_from(&known.build_id);
            mapping.stamp = Some(known.stamp);
            return;
        }
        let mapped_ns = self.clock_started_ns.saturating_add(time_ns);
        let mut candidates = find::candidates(&self.root, pid, mapping);
        // Of what is found by its name alone, the number may be that of a later file.
        let found = candidates
            .find(|candidate| candidate.is_held || candidate.file.stamp().changed_ns <= mapped_ns);
        let Some(found) = found else {
            return;
        };
        let stamp = found.file.stamp();
        let known = self.known.get(&key).filter(|known| known.stamp == stamp);
        let build_id = if let Some(known) = known {
            known.build_id.clone()
        } else {
            let file = found.file.open();
            file.ok().and_then(|file| build_id::of_file(&file))
        };
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let known = Known {
            stamp,
            build_id: build_id.clone(),
            name: mapping.name.clone(),
            looked_ns: now_ns,
        };
        self.known.insert(key, known);
        mapping.build_id = build_id;
        mapping.stamp = Some(stamp);
    }
}

/// Nanoseconds since 1970-01-01 UTC; 0 before.
pub(super) fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
