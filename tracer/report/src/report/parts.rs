//! The bytes of a line cut into parts that may stay together, with who uses them and what they are.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{AccessRow, ByteRange, Group},
    printable::printable,
    rows,
    subject::OnLine,
};
use crate::{
    access::{ByteSet, LineSize, Tid},
    analysis::{SiteCounts, Uses, groups},
    hint::{Field, Sharing, Unit},
};

/// Places in the code named per part.
const CODE_PLACES: usize = 3;

/// Bytes that may stay together.
pub(super) struct Part {
    bytes: ByteSet,
    /// Of those, bytes that the writers store to.
    stored: ByteSet,
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
    (sites, uses): (&[SiteCounts], &Uses),
    rows: &[AccessRow],
    subject: &OnLine,
    sharing: Sharing,
    line_size: LineSize,
) -> Vec<Part> {
    let mut sets: Vec<(ByteSet, Vec<Tid>, Vec<Tid>)> = groups(sites, uses, line_size)
        .into_iter()
        .map(|group| (group.bytes, group.writers, group.readers))
        .collect();
    if sharing != Sharing::True {
        if sets.len() < 2 {
            sets = by_footprint(sites, line_size);
        }
        sets = without_readers(sets, sites, line_size);
    }
    sets.into_iter()
        .map(|(bytes, writers, readers)| Part {
            fields: fields(bytes, sites, subject, line_size),
            code: code(bytes, rows, line_size),
            stored: stored(bytes, &writers, sites, line_size),
            bytes,
            writers,
            readers,
        })
        .collect()
}

/// Of the bytes, those that these threads store to.
fn stored(bytes: ByteSet, by: &[Tid], sites: &[SiteCounts], line_size: LineSize) -> ByteSet {
    let stores = (sites.iter()).filter(|s| s.site.op.stores() && by.contains(&s.site.tid));
    let all = stores.fold(0, |all, site| all | site.site.bytes(line_size).0);
    ByteSet(all & bytes.0)
}

/// Takes what is never stored out of the parts that threads truly share: it would be better off without them, whoever reads
/// it, and goes to what is only read.
fn without_readers(
    sets: Vec<(ByteSet, Vec<Tid>, Vec<Tid>)>,
    sites: &[SiteCounts],
    line_size: LineSize,
) -> Vec<(ByteSet, Vec<Tid>, Vec<Tid>)> {
    let touching = || sites.iter().filter(|site| site.site.op.touches());
    let stores = touching().filter(|site| site.site.op.stores());
    let stored = stores.fold(0, |all, site| all | site.site.bytes(line_size).0);
    let is_read_only = |(_, writers, _): &&(ByteSet, Vec<Tid>, Vec<Tid>)| writers.is_empty();
    let mut read = sets
        .iter()
        .filter(is_read_only)
        .fold(0, |all, set| all | set.0.0);
    let mut out = Vec::new();
    for (bytes, writers, readers) in sets {
        if writers.is_empty() {
            continue;
        }
        let apart = if writers.len() + readers.len() > 1 {
            bytes.0 & !stored
        } else {
            0
        };
        read |= apart;
        out.push((ByteSet(bytes.0 & !apart), writers, readers));
    }
    if read != 0 {
        let here = touching().filter(|site| site.site.bytes(line_size).0 & read != 0);
        let readers: BTreeSet<Tid> = here.map(|site| site.site.tid).collect();
        out.push((ByteSet(read), Vec::new(), readers.into_iter().collect()));
    }
    out.sort_by_key(|(bytes, ..)| bytes.0.trailing_zeros());
    out
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
    subject: &OnLine,
    line_size: LineSize,
) -> Vec<Field> {
    let mut inside: BTreeMap<(u8, u8), (Option<usize>, Option<String>)> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.site.op.touches()) {
        let own = site.site.bytes(line_size);
        if !own.is_empty() && own.0 & !bytes.0 == 0 {
            inside
                .entry((site.site.offset, site.site.size))
                .or_insert_with(|| subject.label(&site.site));
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
    let here = |row: &&AccessRow| rows::known_bytes(row, line_size).overlaps(bytes);
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
                None => code.ip.to_string(),
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
            bytes: ranges(part.bytes),
            stored: ranges(part.stored),
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

fn ranges(bytes: ByteSet) -> Vec<ByteRange> {
    let range = |(offset, size)| ByteRange { offset, size };
    pieces(bytes).into_iter().map(range).collect()
}

/// The bytes of the parts that threads truly share; of all parts where none is.
pub(super) fn shared_bytes(parts: &[Part]) -> ByteSet {
    let all =
        |parts: &mut dyn Iterator<Item = &Part>| parts.fold(0, |all, part| all | part.bytes.0);
    match all(&mut parts.iter().filter(|part| part.truly_shared())) {
        0 => ByteSet(all(&mut parts.iter())),
        bytes => ByteSet(bytes),
    }
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
