//! What the memory is that threads would fight for: runs of lines, by the objects on them.

use std::collections::BTreeMap;

use super::LINE;
use crate::{
    access::LineSize,
    analysis::{RunElsewhere, SiteCounts, There, UsedLine, Way},
    names::{AccessedBy, Names, ObjectKind, ObjectName, Owner},
    report::subject::{OnLine, accessed_by},
};

/// Lines of a run whose names are asked for.
const LOOKED_AT: usize = 256;

/// What is executed less often than this part of the busiest instruction on the line tells no name and is not told: who sets
/// memory up, and allocators, do not fight for it.
const RARE: f64 = 0.02;

/// Runs that are one thing.
pub(super) struct Thing<'a> {
    pub(super) runs: Vec<&'a RunElsewhere>,
    pub(super) ways: Vec<(Way, There)>,
    /// What the lines are that threads would fight for.
    pub(super) fighting: Vec<Used<'a>>,
    pub(super) names: Vec<String>,
    pub(super) kind: ObjectKind,
    /// Where it begins, bytes from the start of 128.
    pub(super) start: Option<u8>,
    /// Bytes that one of the objects is asked to start at a multiple of, and does; the most.
    pub(super) alignment: Option<u64>,
}

/// A line with what is done there often.
pub(super) struct Used<'a> {
    pub(super) line: &'a UsedLine,
    pub(super) sites: Vec<SiteCounts>,
}

impl<'a> Used<'a> {
    pub(super) fn new(line: &'a UsedLine) -> Used<'a> {
        let seen = |counts: &SiteCounts| counts.accesses().saturating_add(counts.trapped);
        let executions = line.sites.iter().map(seen);
        let least = executions.max().unwrap_or(0) as f64 * RARE;
        let often = line
            .sites
            .iter()
            .filter(|counts| seen(counts) as f64 >= least);
        Used {
            line,
            sites: often.cloned().collect(),
        }
    }

    fn owner(&self, names: &dyn Names) -> Option<Owner> {
        let by: Vec<AccessedBy> = self.sites.iter().filter_map(accessed_by).collect();
        let owned = names.owner(self.line.key, LINE, &by)?;
        // Which of an object's lines it is, is no matter here.
        Some(Owner {
            part: 0,
            ..owned.owner
        })
    }

    pub(super) fn objects(&self, names: &dyn Names) -> OnLine {
        OnLine::new(names, self.line.key, LINE, &self.sites)
    }
}

/// Puts runs together that are of the same owners. Those without a line that threads would fight for are nothing.
pub(super) fn things<'a>(runs: &'a [RunElsewhere], names: &dyn Names) -> Vec<Thing<'a>> {
    let mut things: Vec<Thing<'a>> = Vec::new();
    let mut named: BTreeMap<(Vec<Owner>, Option<u64>), usize> = BTreeMap::new();
    for run in runs {
        let fighting = run.lines.iter().filter(|line| line.fights);
        let fighting: Vec<Used<'a>> = fighting.map(Used::new).collect();
        let looked_at = &fighting[..fighting.len().min(LOOKED_AT)];
        let owners: Vec<Option<Owner>> = looked_at.iter().map(|used| used.owner(names)).collect();
        let is_whole = owners.iter().all(Option::is_some) && looked_at.len() == fighting.len();
        let mut each: Vec<Owner> = Vec::new();
        for owner in owners.into_iter().flatten() {
            if !each.contains(&owner) {
                each.push(owner);
            }
        }
        if fighting.is_empty() {
            continue;
        }
        let Objects {
            kind,
            start,
            alignment,
        } = objects(looked_at, names);
        let mut labels: Vec<String> = each.iter().map(|owner| owner.label.clone()).collect();
        labels.dedup();
        let thing = Thing {
            runs: vec![run],
            ways: run.ways.clone(),
            fighting,
            names: labels,
            kind,
            start,
            alignment,
        };
        let key = (each, alignment);
        if let Some(known) = named.get(&key).filter(|_| is_whole) {
            things[*known].add(thing);
        } else {
            if is_whole {
                named.insert(key, things.len());
            }
            things.push(thing);
        }
    }
    things
}

/// What is known of the objects of lines.
struct Objects {
    kind: ObjectKind,
    /// Where they begin, bytes from the start of 128, if it is the same for all of the lines.
    start: Option<u8>,
    /// As in [`Thing`].
    alignment: Option<u64>,
}

fn objects(lines: &[Used<'_>], names: &dyn Names) -> Objects {
    let mut kind = None;
    let mut starts: Vec<Option<u64>> = Vec::new();
    let mut alignment = None;
    for used in lines {
        let on_line = used.objects(names);
        let object = on_line.main().and_then(|main| on_line.objects.get(main));
        kind = kind.or_else(|| object.map(|object| object.kind));
        starts.push(object.and_then(|object| object.start));
        for counts in &used.sites {
            let (object, _) = on_line.label(&counts.site);
            let object = object.and_then(|object| on_line.objects.get(object));
            alignment = alignment.max(object.and_then(ObjectName::kept_alignment));
        }
    }
    // Elements of a line each begin alike on lines of 64 bytes.
    let alike = |start: &Option<u64>| start.map(|start| start % LINE.bytes());
    let first = starts.first().copied().flatten();
    let same = starts.iter().all(|start| alike(start) == alike(&first));
    let start = first.filter(|_| same);
    Objects {
        kind: kind.unwrap_or_default(),
        start: start.map(|start| (start % LineSize::B128.bytes()) as u8),
        alignment,
    }
}

impl<'a> Thing<'a> {
    pub(super) fn add(&mut self, other: Thing<'a>) {
        self.runs.extend(other.runs);
        self.fighting.extend(other.fighting);
        for ((_, all), (_, there)) in self.ways.iter_mut().zip(&other.ways) {
            *all = all.plus(there);
        }
        self.start = self.start.filter(|start| other.start == Some(*start));
    }
}
