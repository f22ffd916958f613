//! A session's accesses, in order, into tables.

use std::path::Path;

use anyhow::Result;
use rustc_hash::FxHashMap;

use crate::{
    access::{Access, Basis, LineKey, LineSize, Place, SpaceId},
    analysis::{Instruction, LoadTable, Trapped, WindowAccesses},
    event::{Batch, Tally, Window},
    session::SessionReader,
    space::AddressSpaces,
};

/// What a session has to decide from.
pub(super) struct Seen {
    /// Accesses of an emulator.
    pub(super) emulated: u64,
    /// Watch windows.
    pub(super) windows: u64,
    /// Of those, with hits missing from their order.
    pub(super) incomplete: u64,
    /// Records that were lost on the way.
    pub(super) lost: u64,
    /// Memory and code, as they were at the end.
    pub(super) spaces: AddressSpaces,
    /// What a reader of the session must know.
    pub(super) caveats: Vec<String>,
}

impl Seen {
    /// Whether every access of the program is there.
    pub(super) fn is_complete(&self) -> bool {
        self.emulated > 0 && self.windows == 0 && self.lost == 0
    }
}

/// Where accesses in an order go.
trait Take {
    fn access(&mut self, access: &Access, place: Place, space: SpaceId);
    fn window(&mut self, window: &Window, line: Option<LineKey>, accesses: &[Trapped]);
}

impl Take for &mut [LoadTable] {
    fn access(&mut self, access: &Access, place: Place, space: SpaceId) {
        for table in &mut **self {
            table.observe(access, place, space);
        }
    }

    fn window(&mut self, _: &Window, line: Option<LineKey>, accesses: &[Trapped]) {
        let Some(line) = line else { return };
        for table in &mut **self {
            table.observe_window(line, accesses);
        }
    }
}

impl Take for Seen {
    fn access(&mut self, _: &Access, _: Place, _: SpaceId) {
        self.emulated += 1;
    }

    fn window(&mut self, window: &Window, _: Option<LineKey>, _: &[Trapped]) {
        self.windows += 1;
        self.incomplete += u64::from(!window.is_complete());
    }
}

/// Feeds the whole session to each table.
pub(super) fn feed(path: &Path, line_size: LineSize, mut tables: &mut [LoadTable]) -> Result<()> {
    walk(path, line_size, &mut tables).map(|_| ())
}

/// What the session has.
pub(super) fn look(path: &Path, line_size: LineSize) -> Result<Seen> {
    let mut seen = Seen {
        emulated: 0,
        windows: 0,
        incomplete: 0,
        lost: 0,
        spaces: AddressSpaces::default(),
        caveats: Vec::new(),
    };
    let (spaces, tally, reader) = walk(path, line_size, &mut seen)?;
    seen.spaces = spaces;
    seen.lost = tally.lost_total();
    let caveats = reader.caveats();
    seen.caveats = caveats.iter().map(ToString::to_string).collect();
    if seen.emulated > 0 && seen.lost > 0 {
        seen.caveats.push(format!(
            "{} records of the emulator were lost: the order has holes, and its counts are not exact",
            seen.lost
        ));
    }
    if seen.windows > 0 {
        seen.caveats.push(format!(
            "Decided from {} watch windows, {} of them with hits missing: only the watched words of their lines are known, \
             and traps change who comes next. Check hints by running with them.",
            seen.windows, seen.incomplete
        ));
    }
    Ok(seen)
}

/// Goes through the session once.
fn walk(
    path: &Path,
    line_size: LineSize,
    take: &mut impl Take,
) -> Result<(AddressSpaces, Tally, SessionReader)> {
    let mut reader = SessionReader::open_for(path, line_size)?;
    let mut spaces = AddressSpaces::default();
    let mut same = SameCode::default();
    let mut waiting = WindowAccesses::new(line_size, usize::MAX);
    let mut batch = Batch::default();
    let mut tally = Tally::default();
    while reader.next_batch(&mut batch)? {
        for due in batch.in_order() {
            // Every access: the spaces are numbered by them too.
            let Some((access, space, place)) = spaces.follow(due) else {
                continue;
            };
            if !matches!(access.basis, Basis::Emulated | Basis::Trapped) {
                continue;
            }
            let at = same.instruction(access, space, &spaces);
            let access = Access {
                ip: at.ip,
                ..*access
            };
            if access.basis == Basis::Emulated {
                take.access(&access, place, at.space);
            } else {
                waiting.push(Trapped {
                    access,
                    place,
                    space: at.space,
                });
            }
        }
        for window in &batch.windows {
            let order = waiting.close(window, |word| spaces.place(word.pid, word.addr).1);
            take.window(window, order.line, &order.inside);
        }
        tally.add(&batch.tally);
        batch.clear();
    }
    Ok((spaces, tally, reader))
}

/// Instructions of a file are one in all processes that map it: the first that was seen stands for them.
#[derive(Default)]
struct SameCode {
    known: FxHashMap<Instruction, Instruction>,
    /// By device, inode and offset.
    in_file: FxHashMap<(u64, u64, u64), Instruction>,
    kernel: FxHashMap<u64, Instruction>,
}

impl SameCode {
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
        if let Some(known) = self.known.get(&here) {
            return *known;
        }
        let mapping = spaces.mapping(space, here.ip).filter(|m| m.is_file());
        let first = match mapping {
            _ if here.kernel => *self.kernel.entry(here.ip).or_insert(here),
            Some(mapping) => {
                let offset = (here.ip - mapping.start).wrapping_add(mapping.file_offset);
                let key = (mapping.dev, mapping.inode, offset);
                *self.in_file.entry(key).or_insert(here)
            }
            None => here,
        };
        self.known.insert(here, first);
        first
    }
}
