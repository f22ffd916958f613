//! The words of a line that threads truly share, and what their instructions say that they are for.

use std::collections::BTreeMap;

use super::{
    access_text::full_name,
    model::AccessRow,
    printable::printable,
    rows, shorten,
    subject::{NAME_COLUMNS, OnLine},
};
use crate::{
    access::{ByteSet, LineSize, Op},
    analysis::{Site, SiteCounts},
    hint::{
        Word,
        role::{Named, Role, Touch, Touched, roles},
    },
    names::{Names, ObjectName, WordUse},
};

/// Stores rarer than one in this many of those to a word do not join it to others: an initial `memset` writes the whole line.
const JOINING: u64 = 100;

/// A word with fewer stores than one in this many of those to another does not move the line: it was set when all began.
const SELDOM: u64 = 1_000;

/// Whether so many stores are few beside the most that a word has.
pub(super) fn is_seldom(stores: u64, most: u64) -> bool {
    stores.saturating_mul(SELDOM) < most
}

/// Bytes that are stored together, and who touches them.
pub(super) struct Seen {
    bytes: ByteSet,
    /// `None` where they have no name.
    pub(super) name: Option<String>,
    /// Of the object that the name is a part of.
    object: Option<String>,
    pub(super) touched: Touched,
}

impl Seen {
    /// The same, for what is told of it.
    pub(super) fn word(&self, role: Role) -> Word {
        let stores = |touch: &Touch| touch.stores && touch.locked;
        Word {
            is_nameless: self.name.is_none(),
            full_name: full_name(self.object.as_deref(), self.name.as_deref()),
            name: self.name.clone().unwrap_or_else(|| range(self.bytes)),
            writers: self.touched.writers().len(),
            readers: self.touched.readers().len(),
            is_atomic: self.touched.touches.iter().any(stores),
            role,
            is_each: false,
        }
    }
}

/// The truly shared words among `shared` bytes, by first byte.
pub(super) fn words(
    sites: &[SiteCounts],
    rows: &[AccessRow],
    shared: ByteSet,
    subject: &OnLine,
    names: &dyn Names,
    line_size: LineSize,
) -> Vec<Word> {
    let mut seen = seen(sites, rows, shared, subject, names, line_size);
    seen.retain(|word| word.touched.is_shared());
    let most = seen.iter().map(|word| word.touched.stored_times()).max();
    seen.retain(|word| !is_seldom(word.touched.stored_times(), most.unwrap_or(0)));
    let touched: Vec<Touched> = seen.iter().map(|word| word.touched.clone()).collect();
    let roles = roles(&touched);
    let names: Vec<Option<String>> = seen.iter().map(|word| word.name.clone()).collect();
    let is_twice = |name: &Option<String>| names.iter().filter(|other| *other == name).count() > 1;
    for word in &mut seen {
        // Words of a union, or of an object that only has a name, are told apart by their bytes.
        if is_twice(&word.name) {
            word.name = word
                .name
                .take()
                .map(|name| format!("{name}, {}", range(word.bytes)));
        }
    }
    let words = seen.iter().zip(roles);
    words.map(|(word, role)| word.word(role)).collect()
}

/// The words among `shared` bytes, by first byte, whether several threads were seen on them or not.
pub(super) fn seen(
    sites: &[SiteCounts],
    rows: &[AccessRow],
    shared: ByteSet,
    subject: &OnLine,
    names: &dyn Names,
    line_size: LineSize,
) -> Vec<Seen> {
    let mut words = Vec::new();
    for set in stored(sites, shared, line_size) {
        let here = sites.iter().filter(|site| site.site.op.touches());
        let here: Vec<&SiteCounts> = here
            .filter(|site| site.site.bytes(line_size).overlaps(set))
            .collect();
        let touches = here.iter().map(|counts| {
            let at = &counts.site;
            touch(counts, names.word_use(at.space, at.ip, at.kernel))
        });
        let touches = touches.collect();
        let named = named(&here, rows, set, subject, line_size);
        let (object, name) = name(&here, set, subject, line_size).unzip();
        words.push(Seen {
            bytes: set,
            name,
            object: object.flatten(),
            touched: Touched { touches, named },
        });
    }
    words
}

/// Bytes that are stored together, of those that are shared.
fn stored(sites: &[SiteCounts], shared: ByteSet, line_size: LineSize) -> Vec<ByteSet> {
    let mut by_footprint: BTreeMap<(u8, u8), u64> = BTreeMap::new();
    for site in sites.iter().filter(|site| site.site.op.stores()) {
        let seen = by_footprint
            .entry((site.site.offset, site.site.size))
            .or_default();
        *seen = seen.saturating_add(seen_times(site));
    }
    // The common ones first, so that what is rare joins none of them.
    let mut by_count: Vec<(u64, ByteSet)> = by_footprint
        .into_iter()
        .map(|((offset, size), n)| (n, ByteSet::range(offset, u16::from(size), line_size)))
        .filter(|(_, set)| set.overlaps(shared))
        .collect();
    by_count.sort_by_key(|(n, set)| (std::cmp::Reverse(*n), set.0));
    let mut sets: Vec<(u64, ByteSet)> = Vec::new();
    for (n, mut set) in by_count {
        let rare = |(seen, other): &(u64, ByteSet)| {
            other.overlaps(set) && n.saturating_mul(JOINING) < *seen
        };
        if sets.iter().any(rare) {
            continue;
        }
        let mut all = n;
        sets.retain(|(seen, other)| {
            let overlaps = other.overlaps(set);
            if overlaps {
                set.0 |= other.0;
                all = all.saturating_add(*seen);
            }
            !overlaps
        });
        sets.push((all, set));
    }
    let mut sets: Vec<ByteSet> = sets.into_iter().map(|(_, set)| set).collect();
    sets.sort_by_key(|set| set.0.trailing_zeros());
    sets
}

fn seen_times(site: &SiteCounts) -> u64 {
    site.accesses().saturating_add(site.trapped)
}

fn touch(counts: &SiteCounts, does: Option<WordUse>) -> Touch {
    let Site {
        tid, op, locked, ..
    } = counts.site;
    // A source that knows better than the code whether it stores: one of several operands, another build.
    let fits = |does: &WordUse| matches!(does, WordUse::Read(_)) != op.stores();
    Touch {
        tid,
        stores: op.stores(),
        reads_and_writes: op == Op::Rmw,
        locked: locked || matches!(does, Some(WordUse::Exchange { .. })),
        count: seen_times(counts),
        does: does.filter(fits),
    }
}

/// What a name on the bytes, or of a function that changes them at once, says that they are.
fn named(
    here: &[&SiteCounts],
    rows: &[AccessRow],
    set: ByteSet,
    subject: &OnLine,
    line_size: LineSize,
) -> Option<Named> {
    let here_rows = || {
        rows.iter().filter(|row| {
            let bytes = rows::known_bytes(row, line_size);
            bytes.overlaps(set)
        })
    };
    let fields = here_rows().filter_map(|row| row.field.as_deref());
    // A function's name tells of the word only where it is the one that takes or counts it.
    let changing = here_rows().filter(|row| row.op == Op::Rmw);
    let functions = changing.flat_map(|row| row.code.symbol.iter().chain(&row.code.inlined));
    // A lock's own type or variable has nothing but the lock.
    let small = |object: &&ObjectName| object.size.is_some_and(|size| size <= 64);
    let objects = here.iter().filter_map(|site| {
        let (object, _) = subject.label(&site.site);
        subject.objects.get(object?)
    });
    let objects: Vec<&ObjectName> = objects.filter(small).collect();
    let objects = objects
        .iter()
        .flat_map(|object| object.name.iter().chain(&object.type_name));
    let mut names = fields
        .chain(functions.map(String::as_str))
        .chain(objects.map(String::as_str));
    names.find_map(Named::of)
}

/// The object, and what the report calls the word: by the access that covers most of it.
fn name(
    here: &[&SiteCounts],
    set: ByteSet,
    subject: &OnLine,
    line_size: LineSize,
) -> Option<(Option<String>, String)> {
    let inside = here
        .iter()
        .filter(|site| site.site.bytes(line_size).0 & !set.0 == 0);
    let widest = inside.max_by_key(|site| (site.site.size, seen_times(site)))?;
    let (object, label) = subject.label(&widest.site);
    let object = object.and_then(|n| subject.objects.get(n));
    let clean = |name: &String| printable(name, false).into_owned();
    let owner = object.and_then(|object| {
        let (name, type_name) = (object.name.as_ref(), object.type_name.as_ref());
        // That of an allocation tells only where it is from.
        if object.allocation.is_some() {
            type_name
        } else {
            name.or(type_name)
        }
    });
    let owner = owner.map(|name| shorten::symbol(&clean(name), NAME_COLUMNS));
    let name = label.or_else(|| object?.name.clone())?;
    Some((owner, clean(&name)))
}

/// `bytes 8-15`, for what has no name.
fn range(set: ByteSet) -> String {
    let first = set.0.trailing_zeros();
    let last = set.0.checked_ilog2().unwrap_or(first);
    if first == last {
        format!("byte {first} of the line")
    } else {
        format!("bytes {first}-{last} of the line")
    }
}
