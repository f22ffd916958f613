//! The accesses of sessions, in order, into tables.

use std::path::Path;

use anyhow::Result;
use rustc_hash::FxHashMap;

use super::super::{
    counting::{After, Counting},
    reading::Reading,
    session_code::SessionCode,
};
use crate::{
    access::{Access, Basis, LineSize, SpaceId},
    analysis::{Instruction, LoadTable, Trapped, WindowAccesses},
    event::{Batch, Tally},
    session::SessionReader,
    space::AddressSpaces,
};

/// Which accesses of which sessions are looked at.
pub(super) struct Stretch<'a, P> {
    pub(super) paths: &'a [P],
    pub(super) line_size: LineSize,
    /// From where on they count.
    pub(super) after: Option<&'a After>,
    /// No progress.
    pub(super) quiet: bool,
}

impl<P> Clone for Stretch<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Stretch<'_, P> {}

/// What a session has to decide from.
pub(super) struct Seen {
    /// Accesses of an emulator.
    pub(super) emulated: u64,
    /// Watch windows.
    pub(super) windows: u64,
    /// Of those, with hits missing from their order.
    incomplete: u64,
    /// Records that were lost on the way.
    pub(super) lost: u64,
    /// Memory, as it was at the end. Spaces of all sessions are numbered one after the other.
    pub(super) spaces: AddressSpaces,
    /// Its files.
    pub(super) code: SessionCode,
    /// Names of its sources.
    pub(super) sources: Vec<String>,
    /// What a reader of the session must know.
    pub(super) caveats: Vec<String>,
}

impl Seen {
    /// Whether every access of the program is there.
    pub(super) fn is_complete(&self) -> bool {
        self.emulated > 0 && self.windows == 0 && self.lost == 0
    }
}

/// Feeds all sessions to each table, as an order each, and tells what each of them has.
pub(super) fn feed<P: AsRef<Path>>(
    stretch: Stretch<P>,
    tables: &mut [LoadTable],
) -> Result<Vec<Seen>> {
    let mut same = SameCode::new(stretch.paths.len() > 1);
    let mut all: Vec<Seen> = Vec::new();
    for path in stretch.paths {
        let spaces = all.last().map_or_else(AddressSpaces::default, |before| {
            AddressSpaces::after(&before.spaces)
        });
        all.push(walk(path.as_ref(), stretch, spaces, &mut same, tables)?);
        for table in &mut *tables {
            table.end_order();
        }
    }
    Ok(all)
}

/// What must be known of a session.
fn caveats(reader: &SessionReader, seen: &Seen) -> Vec<String> {
    let mut caveats: Vec<String> = reader.caveats().iter().map(ToString::to_string).collect();
    if seen.emulated > 0 && seen.lost > 0 {
        caveats.push(format!(
            "{} records of the emulator were lost: the order has holes, and its counts are not exact",
            seen.lost
        ));
    }
    if seen.windows > 0 {
        caveats.push(format!(
            "Decided from {} watch windows, {} of them with hits missing: only the watched words of their lines are known, \
             and traps change who comes next. Check hints by running with them.",
            seen.windows, seen.incomplete
        ));
    }
    caveats
}

/// Goes through a session once.
fn walk<P>(
    path: &Path,
    stretch: Stretch<P>,
    spaces: AddressSpaces,
    same: &mut SameCode,
    tables: &mut [LoadTable],
) -> Result<Seen> {
    let mut reading = Reading::open(path, stretch.line_size, "deciding by", stretch.quiet)?;
    let meta = reading.session().meta();
    let mut counting = Counting::new(stretch.after);
    for table in &mut *tables {
        table.set_counting(counting.has_begun());
    }
    let mut seen = Seen {
        emulated: 0,
        windows: 0,
        incomplete: 0,
        lost: 0,
        spaces,
        code: SessionCode::of(meta),
        sources: meta
            .sources
            .iter()
            .map(|source| source.name.clone())
            .collect(),
        caveats: Vec::new(),
    };
    let mut waiting = WindowAccesses::new(stretch.line_size, usize::MAX);
    let mut batch = Batch::default();
    let mut tally = Tally::default();
    while reading.next_batch(&mut batch)? {
        for due in batch.in_order() {
            // Every access: the spaces are numbered by them too.
            let Some((access, space, place)) = seen.spaces.follow(due) else {
                continue;
            };
            if !matches!(access.basis, Basis::Emulated | Basis::Trapped) {
                continue;
            }
            if counting.begins(access, space, &seen.spaces, &seen.code) {
                for table in &mut *tables {
                    table.set_counting(true);
                }
            }
            let at = same.instruction(access, space, &seen.spaces);
            let access = Access {
                ip: at.ip,
                ..*access
            };
            if access.basis == Basis::Emulated {
                seen.emulated += 1;
                for table in &mut *tables {
                    table.observe(&access, place, at.space);
                }
            } else {
                waiting.push(Trapped {
                    access,
                    place,
                    space: at.space,
                });
            }
        }
        for window in &batch.windows {
            let order = waiting.close(window, |word| seen.spaces.place(word.pid, word.addr).1);
            seen.windows += 1;
            seen.incomplete += u64::from(!window.is_complete());
            if let Some(line) = order.line {
                for table in &mut *tables {
                    table.observe_window(line, &order.inside);
                }
            }
        }
        tally.add(&batch.tally);
        batch.clear();
    }
    counting.check(&seen.spaces, &seen.code)?;
    seen.lost = tally.lost_total();
    seen.caveats = caveats(reading.session(), &seen);
    Ok(seen)
}

/// Instructions looked at before the hash is.
const RECENT: usize = 4096;

/// Instructions of a file are one in all processes that map it, and in all sessions: the first that was seen stands for
/// them.
struct SameCode {
    known: FxHashMap<Instruction, Instruction>,
    recent: Vec<Option<(Instruction, Instruction)>>,
    /// By file and offset.
    in_file: FxHashMap<(File, u64), Instruction>,
    kernel: FxHashMap<u64, Instruction>,
    several: bool,
}

/// A file with code. Device and inode are known to be the same only within a session.
#[derive(PartialEq, Eq, Hash)]
enum File {
    Inode(u64, u64),
    Build(String),
    Path(String),
}

impl SameCode {
    /// For one session or several.
    fn new(several: bool) -> SameCode {
        SameCode {
            known: FxHashMap::default(),
            recent: vec![None; RECENT],
            in_file: FxHashMap::default(),
            kernel: FxHashMap::default(),
            several,
        }
    }

    fn instruction(
        &mut self,
        access: &Access,
        space: SpaceId,
        spaces: &AddressSpaces,
    ) -> Instruction {
        let here = Instruction {
            space,
            ip: access.ip,
            kernel: access.kernel,
        };
        let at = here.ip as usize % RECENT;
        if let Some((known, first)) = self.recent[at]
            && known == here
        {
            return first;
        }
        let first = match self.known.get(&here) {
            Some(first) => *first,
            None => self.first(here, spaces),
        };
        self.recent[at] = Some((here, first));
        first
    }

    fn first(&mut self, here: Instruction, spaces: &AddressSpaces) -> Instruction {
        let mapping = spaces.mapping(here.space, here.ip).filter(|m| m.is_file());
        let first = match mapping {
            _ if here.kernel => *self.kernel.entry(here.ip).or_insert(here),
            Some(mapping) => {
                let offset = (here.ip - mapping.start).wrapping_add(mapping.file_offset);
                let file = match &mapping.build_id {
                    _ if !self.several => File::Inode(mapping.dev, mapping.inode),
                    Some(build) => File::Build(build.clone()),
                    None => File::Path(mapping.name.clone()),
                };
                *self.in_file.entry((file, offset)).or_insert(here)
            }
            None => here,
        };
        self.known.insert(here, first);
        first
    }
}
