//! The bytes of a line cut into parts that may stay together, with who uses them and what they are.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{AccessRow, ByteRange, Group},
    printable::printable,
    subject::Subject,
};
use crate::{
    access::{ByteSet, LineSize, Op, Tid},
    analysis::{SiteCounts, groups},
    hint::{Field, Sharing, Traffic, Unit, names_a_lock},
};

/// Places in the code named per part.
const CODE_PLACES: usize = 3;

/// Bytes that may stay together.
pub(super) struct Part {
    bytes: ByteSet,
    writers: Vec<Tid>,
    readers: Vec<Tid>,
    fields: Vec<Field>,
    code: Vec<String>,
}

impl Part {
    fn truly_shared(&self) -> bool {
        !self.writers.is_empty() && self.writers.len() + self.readers.len() > 1
    }
}

/// The parts of a line by first byte. Where several fields are used by the same threads but the verdict
/// says that they are in each other's way (two locks on one line), each field is a part.
pub(super) fn parts(
    sites: &[SiteCounts],
    rows: &[AccessRow],
    subject: &Subject,
    sharing: Sharing,
    line_size: LineSize,
) -> Vec<Part> {
    let mut sets: Vec<(ByteSet, Vec<Tid>, Vec<Tid>)> = groups(sites, line_size)
        .into_iter()
        .map(|group| (group.bytes, group.writers, group.readers))
        .collect();
    if sharing != Sharing::True && sets.len() < 2 {
        sets = by_footprint(sites, line_size);
    }
    sets.into_iter()
        .map(|(bytes, writers, readers)| Part {
            fields: fields(bytes, sites, subject, line_size),
            code: code(bytes, rows, line_size),
            bytes,
            writers,
            readers,
        })
        .collect()
}

/// One part for each range that some store writes at once, and one for what is only read.
fn by_footprint(sites: &[SiteCounts], line_size: LineSize) -> Vec<(ByteSet, Vec<Tid>, Vec<Tid>)> {
    let touching = || sites.iter().filter(|site| site.site.op.touches());
    let mut sets: Vec<ByteSet> = Vec::new();
    for site in touching().filter(|site| site.site.op.stores()) {
        let mut set = site.site.bytes(line_size);
        sets.retain(|other| {
            let overlaps = other.overlaps(set);
            if overlaps {
                set.0 |= other.0;
            }
            !overlaps
        });
        sets.push(set);
    }
    let stored = sets.iter().fold(0, |all, set| all | set.0);
    let read = touching().fold(0, |all, site| all | site.site.bytes(line_size).0) & !stored;
    sets.extend((read != 0).then_some(ByteSet(read)));
    sets.retain(|set| !set.is_empty());
    sets.sort_by_key(|set| set.0.trailing_zeros());
    sets.into_iter()
        .map(|set| {
            let here = || touching().filter(|site| site.site.bytes(line_size).overlaps(set));
            let writers: BTreeSet<Tid> = here()
                .filter(|s| s.site.op.stores())
                .map(|s| s.site.tid)
                .collect();
            let readers: BTreeSet<Tid> = here()
                .map(|s| s.site.tid)
                .filter(|tid| !writers.contains(tid))
                .collect();
            (
                set,
                writers.into_iter().collect(),
                readers.into_iter().collect(),
            )
        })
        .collect()
}

/// What the bytes are, by the sites that lie inside of them, by first byte.
fn fields(
    bytes: ByteSet,
    sites: &[SiteCounts],
    subject: &Subject,
    line_size: LineSize,
) -> Vec<Field> {
    let mut inside: BTreeMap<(u8, u8), (Option<usize>, Option<String>)> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.site.op.touches()) {
        if site.site.bytes(line_size).0 & !bytes.0 == 0 {
            let (offset, size) = (site.site.offset, site.site.size);
            inside
                .entry((offset, size))
                .or_insert_with(|| subject.label(offset, u16::from(size)));
        }
    }
    let mut out: Vec<Field> = Vec::new();
    for (object, label) in inside.into_values() {
        let label = label.map(|label| printable(&label, false).into_owned());
        let field = Field { object, label };
        if !out.contains(&field) {
            out.push(field);
        }
    }
    out
}

/// Where the code is that touches the bytes, costliest first: `worker.c:31`, or a function.
fn code(bytes: ByteSet, rows: &[AccessRow], line_size: LineSize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let here = |row: &&AccessRow| ByteSet::range(row.offset, row.size, line_size).overlaps(bytes);
    for row in rows.iter().filter(here) {
        let code = &row.code;
        let place = match (&code.file, code.line, &code.symbol) {
            (Some(file), Some(line), _) => {
                format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
            }
            (_, _, Some(symbol)) => symbol.clone(),
            _ => match &code.module {
                Some(module) => format!(
                    "{}+{}",
                    module.rsplit('/').next().unwrap_or(module),
                    code.ip
                ),
                None => code.ip.clone(),
            },
        };
        let place = printable(&place, false).into_owned();
        if !out.contains(&place) {
            out.push(place);
        }
        if out.len() == CODE_PLACES {
            break;
        }
    }
    out
}

/// The parts as the report shows them.
pub(super) fn groups_of(parts: &[Part]) -> Vec<Group> {
    parts
        .iter()
        .map(|part| Group {
            bytes: pieces(part.bytes)
                .into_iter()
                .map(|(offset, size)| ByteRange { offset, size })
                .collect(),
            fields: part
                .fields
                .iter()
                .filter_map(|field| field.label.clone())
                .collect(),
            writers: part.writers.iter().map(|tid| tid.0).collect(),
            readers: part.readers.iter().map(|tid| tid.0).collect(),
        })
        .collect()
}

/// The parts as advice is made from.
pub(super) fn units_of(parts: &[Part]) -> Vec<Unit> {
    parts
        .iter()
        .map(|part| Unit {
            pieces: pieces(part.bytes),
            fields: part.fields.clone(),
            writers: part.writers.len(),
            readers: part.readers.len(),
            code: part.code.clone(),
        })
        .collect()
}

/// What happens to the truly shared parts; to all parts where none is.
pub(super) fn traffic(
    parts: &[Part],
    sites: &[SiteCounts],
    rows: &[AccessRow],
    names: &[Option<String>],
    line_size: LineSize,
) -> Traffic {
    let shared = parts.iter().filter(|part| part.truly_shared());
    let mut bytes = shared.fold(0, |all, part| all | part.bytes.0);
    if bytes == 0 {
        bytes = parts.iter().fold(0, |all, part| all | part.bytes.0);
    }
    let bytes = ByteSet(bytes);
    let mut traffic = Traffic::default();
    let mut writers: BTreeSet<Tid> = BTreeSet::new();
    let mut touchers: BTreeSet<Tid> = BTreeSet::new();
    for site in sites.iter().filter(|site| site.site.op.touches()) {
        let at = &site.site;
        if !at.bytes(line_size).overlaps(bytes) {
            continue;
        }
        touchers.insert(at.tid);
        let count = match (at.op.stores(), at.op == Op::Rmw, at.locked) {
            (false, ..) => &mut traffic.loads,
            (true, true, true) => &mut traffic.locked,
            (true, true, false) => &mut traffic.unlocked_rmw,
            (true, false, _) => &mut traffic.stores,
        };
        *count += site.accesses();
        if at.op.stores() {
            writers.insert(at.tid);
        }
    }
    traffic.writers = writers.len();
    traffic.readers = touchers.len() - writers.len();
    let here = |row: &&AccessRow| ByteSet::range(row.offset, row.size, line_size).overlaps(bytes);
    let by_row = rows.iter().filter(here).any(|row| {
        let mut code = row.code.symbol.iter().chain(&row.code.inlined);
        // A function's name tells of the lock only where it is the one that takes it.
        let takes = row.op.as_deref() == Some("rmw") && code.any(|name| names_a_lock(name));
        takes || row.field.as_deref().is_some_and(names_a_lock)
    });
    let by_object = traffic.locked > 0 && names.iter().flatten().any(|name| names_a_lock(name));
    traffic.named_lock = by_row || by_object;
    traffic
}

/// The maximal runs of bytes in a set, ascending.
fn pieces(bytes: ByteSet) -> Vec<(u8, u16)> {
    let mut out: Vec<(u8, u16)> = Vec::new();
    for n in 0..128u8 {
        if bytes.0 >> n & 1 == 0 {
            continue;
        }
        match out.last_mut() {
            Some((offset, size)) if u16::from(*offset) + *size == u16::from(n) => *size += 1,
            _ => out.push((n, 1)),
        }
    }
    out
}
