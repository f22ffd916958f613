//! The arithmetic of moving fields apart: where members land, and how large things become.
//!
//! What is stored gets lines of its own; what is only read stays together. Invariant, tested for any members: in the new
//! layout no line has bytes of a stored unit beside those of another unit, nor, where they can be moved at all, beside members
//! that were on other lines before.

use std::ops::Range;

use crate::names::MemberLayout;

/// `n` rounded up to a multiple of `step`; saturates.
pub(super) fn round_up(n: u64, step: u64) -> u64 {
    n.div_ceil(step.max(1)).saturating_mul(step.max(1))
}

/// Who uses a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The unit of this number, some thread of which stores.
    Stored(usize),
    /// Threads that only read.
    Read,
    /// Nobody was seen to; it is on the line.
    Idle,
    /// Who knows: it is on other lines.
    Elsewhere,
}

impl Group {
    /// Whether members of both may be on one line.
    fn goes_with(self, other: Group) -> bool {
        use Group::{Elsewhere, Idle, Read, Stored};
        match (self, other) {
            (Stored(a), Stored(b)) => a == b,
            (Idle, _) | (_, Idle) | (Read | Elsewhere, Read | Elsewhere) => true,
            (Stored(_), _) | (_, Stored(_)) => false,
        }
    }

    /// Of members that cannot be told apart; `None` where they would have to be.
    fn join(self, other: Group) -> Option<Group> {
        use Group::{Elsewhere, Idle, Read, Stored};
        Some(match (self, other) {
            (Stored(a), Stored(b)) if a != b => return None,
            (Stored(_), Read) | (Read, Stored(_)) => return None,
            (Stored(unit), _) | (_, Stored(unit)) => Stored(unit),
            (Read, _) | (_, Read) => Read,
            (Idle, _) | (_, Idle) => Idle,
            (Elsewhere, Elsewhere) => Elsewhere,
        })
    }
}

/// How a language keeps members apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// Members, and with them the struct, can be aligned to a line of this many bytes.
    Alignment(u64),
    /// Only padding: the struct may start anywhere that its own alignment allows, and lines have this many bytes.
    Padding(u64),
}

impl Means {
    fn line(self) -> u64 {
        let (Means::Alignment(line) | Means::Padding(line)) = self;
        line.max(1)
    }
}

/// A struct after some members were moved to lines of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relayout {
    /// Members that have to start a line, in their new order (indices of the old one); in Rust, that are wrapped.
    pub starts: Vec<usize>,
    /// Bytes of padding before each of `starts`; what alignment makes, or what has to be declared.
    pub gaps: Vec<u64>,
    /// The members' new order, where it must change; empty where it stays.
    pub order: Vec<usize>,
    /// New first byte of each member, by its old index; empty in Rust, where the compiler places them.
    pub places: Vec<u64>,
    /// Bytes of the struct.
    pub size: u64,
}

/// Members that keep their distances: they share storage, or are declared elsewhere.
#[derive(Debug, Clone)]
struct Block {
    members: Range<usize>,
    offset: u64,
    end: u64,
    /// Its place changes by multiples of this, so that all of its members keep their alignment.
    alignment: u64,
    group: Group,
    /// Its first member has a declaration here, which can be aligned or padded.
    may_start: bool,
}

/// Moves members of different groups to different lines. `groups` has one entry for each member; members are in the order of
/// their offsets. `None` where nothing stored is beside others, or where it cannot be moved apart by the struct's own
/// declaration. No member starts a line where they lie apart already as soon as the struct starts at a line.
pub(super) fn separate(
    members: &[MemberLayout],
    groups: &[Group],
    means: Means,
) -> Option<Relayout> {
    let blocks = blocks(members, groups)?;
    let conflict = |a: &Block| {
        blocks
            .iter()
            .any(|b| is_used(b) && !a.group.goes_with(b.group))
    };
    if !blocks.iter().any(|block| is_used(block) && conflict(block)) {
        return None;
    }
    let kept: Vec<usize> = (0..blocks.len()).collect();
    let in_place = place(members, &blocks, &kept, means);
    let moved = reordered(&blocks).and_then(|order| place(members, &blocks, &order, means));
    match (in_place, moved) {
        (Some(kept), Some(moved)) if moved.size < kept.size => Some(moved),
        (Some(kept), _) => Some(kept),
        (None, moved) => moved,
    }
}

fn is_used(block: &Block) -> bool {
    matches!(block.group, Group::Stored(_) | Group::Read)
}

impl Block {
    /// The first place behind `end` that keeps its members' alignment.
    fn fit(&self, end: u64) -> u64 {
        let into = self.offset % self.alignment.max(1);
        round_up(end.saturating_sub(into), self.alignment).saturating_add(into)
    }
}

/// What a struct of these members starts at a multiple of; nothing without members.
pub(super) fn struct_alignment(members: &[MemberLayout]) -> Option<u64> {
    members.iter().map(alignment).max()
}

/// The declared alignment, else what the x86-64 and AArch64 psABIs give to scalars of this size and place.
pub(super) fn alignment(member: &MemberLayout) -> u64 {
    let natural = 1
        << member
            .size
            .trailing_zeros()
            .min(member.offset.trailing_zeros())
            .min(3);
    // A packed member is where its type's alignment would not put it.
    let declared = member
        .alignment
        .filter(|&declared| declared.is_power_of_two() && member.offset.is_multiple_of(declared));
    declared.unwrap_or(natural)
}

/// `None` where members that cannot be told apart are of different groups.
fn blocks(members: &[MemberLayout], groups: &[Group]) -> Option<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::new();
    for (n, member) in members.iter().enumerate() {
        let end = member.offset.saturating_add(member.size);
        let group = groups.get(n).copied().unwrap_or(Group::Idle);
        let before = n.checked_sub(1).and_then(|before| members.get(before));
        // A bit-field is placed by the storage of its type, wherever in it that leaves it.
        let aligned = if member.is_bit_field {
            member.alignment.unwrap_or(8)
        } else {
            alignment(member)
        };
        let alike = before.is_some_and(|before| {
            (before.is_bit_field && member.is_bit_field) || (before.is_inner && member.is_inner)
        });
        match blocks.last_mut() {
            Some(last) if alike || member.offset < last.end => {
                last.group = last.group.join(group)?;
                last.members.end = n + 1;
                last.end = last.end.max(end);
                last.alignment = last.alignment.max(aligned);
            }
            _ => blocks.push(Block {
                members: n..n + 1,
                offset: member.offset,
                end,
                alignment: aligned,
                group,
                may_start: !member.is_bit_field && !member.is_inner,
            }),
        }
    }
    // A hole that no alignment makes has members that are not listed: they go with what is before them.
    for n in 1..blocks.len() {
        let (before, next) = (&blocks[n - 1], &blocks[n]);
        // What is around inner members is whole multiples of their alignment, where the next does not use its padding.
        if members
            .get(before.members.start)
            .is_some_and(|member| member.is_inner)
        {
            blocks[n - 1].end = round_up(before.end, before.alignment).min(next.offset);
        }
        let (before, next) = (&blocks[n - 1], &blocks[n]);
        if next.fit(before.end) < next.offset {
            blocks[n - 1].end = next.offset;
        }
    }
    Some(blocks)
}

/// What is only read together, and then each stored unit; what is on other lines stays before and behind. `None` where
/// members are declared elsewhere, so that their order is not this struct's.
fn reordered(blocks: &[Block]) -> Option<Vec<usize>> {
    let on_line = |block: &Block| block.group != Group::Elsewhere;
    let first = blocks.iter().position(on_line)?;
    let end = blocks.iter().rposition(on_line)? + 1;
    let here = first..end;
    if !blocks[here.clone()].iter().all(|block| block.may_start) {
        return None;
    }
    let stored = |n: usize| match blocks[n].group {
        Group::Stored(unit) => Some(unit),
        _ => None,
    };
    let mut units: Vec<usize> = Vec::new();
    for unit in here.clone().filter_map(stored) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let rest = || here.clone().filter(|&n| stored(n).is_none());
    let is_read = rest().any(|n| blocks[n].group != Group::Idle);
    let mut order: Vec<usize> = (0..first).collect();
    if is_read {
        order.extend(rest());
    }
    for unit in units {
        order.extend(here.clone().filter(|&n| stored(n) == Some(unit)));
    }
    if !is_read {
        order.extend(rest());
    }
    order.extend(end..blocks.len());
    Some(order)
}

/// Lays the blocks out in this order; `None` where one would have to start a line and cannot.
fn place(
    members: &[MemberLayout],
    blocks: &[Block],
    order: &[usize],
    means: Means,
) -> Option<Relayout> {
    let line = means.line();
    let of_struct = blocks
        .iter()
        .map(|block| block.alignment)
        .max()
        .unwrap_or(1);
    let mut out = Relayout {
        starts: Vec::new(),
        gaps: Vec::new(),
        order: Vec::new(),
        places: vec![0; members.len()],
        size: 0,
    };
    // The group of the members placed last, and where its last one ends.
    let mut current: Option<(Group, u64)> = None;
    for &n in order {
        let block = &blocks[n];
        let mut at = block.fit(out.size);
        let beside = current
            .filter(|(group, end)| {
                !group.goes_with(block.group) && !is_apart(*end, at, means, of_struct)
            })
            .map(|(group, _)| group);
        let is_optional = [beside, Some(block.group)].contains(&Some(Group::Elsewhere));
        // What nobody was seen to use stays where it cannot be moved from.
        let stays = beside.is_some() && !block.may_start && is_optional;
        if beside.is_some() && !stays {
            if !block.may_start {
                return None;
            }
            at = match means {
                Means::Alignment(_) => round_up(out.size, line.max(block.alignment)),
                Means::Padding(_) => round_up(
                    out.size.saturating_add(line.saturating_sub(of_struct)),
                    of_struct,
                ),
            };
            out.starts.push(block.members.start);
            out.gaps.push(at.saturating_sub(out.size));
        }
        for m in block.members.clone() {
            out.places[m] = at.saturating_add(members[m].offset.saturating_sub(block.offset));
        }
        let end = at.saturating_add(block.end.saturating_sub(block.offset));
        out.size = out.size.max(end);
        current = match (current, block.group) {
            (current, Group::Idle) => current,
            // The next that can goes to a line of its own.
            (Some((group, _)), Group::Elsewhere) if stays || group == Group::Read => {
                Some((group, end))
            }
            (_, group) => Some((group, end)),
        };
    }
    let is_moved = order.windows(2).any(|pair| pair[0] > pair[1]);
    if is_moved {
        out.order = order
            .iter()
            .flat_map(|&n| blocks[n].members.clone())
            .collect();
    }
    let whole = match means {
        Means::Alignment(_) if !out.starts.is_empty() => of_struct.max(line),
        _ => of_struct,
    };
    out.size = round_up(out.size, whole);
    Some(out)
}

/// Whether bytes up to `end` and those from `at` on are on different lines, wherever the struct may start.
fn is_apart(end: u64, at: u64, means: Means, of_struct: u64) -> bool {
    match means {
        Means::Alignment(line) => end.saturating_sub(1) / line.max(1) != at / line.max(1),
        Means::Padding(line) => {
            // The struct starts at a multiple of its alignment, so that the first byte behind may be this far from the
            // start of a line, and the last byte before this near.
            let step = (1 << at.trailing_zeros().min(63)).min(of_struct);
            at >= end.saturating_add(line.saturating_sub(step))
        }
    }
}

/// Bytes of a Rust struct whose stored units each sit in a wrapper aligned to `line`; the compiler orders
/// fields as it likes, so the rest takes whole lines of its own.
pub(super) fn wrapped(members: &[MemberLayout], groups: &[Group], line: u64) -> u64 {
    let mut units: Vec<Option<usize>> = vec![None];
    for group in groups {
        if let Group::Stored(unit) = *group
            && !units.contains(&Some(unit))
        {
            units.push(Some(unit));
        }
    }
    let unit_of = |group: Group| match group {
        Group::Stored(unit) => Some(unit),
        _ => None,
    };
    let bytes_of = |unit: Option<usize>| {
        let of_unit = members
            .iter()
            .zip(groups)
            .filter(|(_, group)| unit_of(**group) == unit);
        round_up(
            of_unit.fold(0u64, |sum, (m, _)| sum.saturating_add(m.size)),
            line,
        )
    };
    units
        .iter()
        .fold(0u64, |sum, &unit| sum.saturating_add(bytes_of(unit)))
}

/// Bytes of padding behind an element of an array, so that no two elements share a line wherever the array starts.
pub(super) fn padding_behind(size: u64, alignment: u64, line: u64) -> u64 {
    let alignment = alignment.max(1);
    // Elements of less than a line that never cross one need no more than to fill it.
    let fills = size <= alignment && line.is_multiple_of(alignment);
    let stride = if fills {
        line
    } else {
        round_up(
            size.saturating_add(line.saturating_sub(alignment)),
            alignment,
        )
    };
    stride.saturating_sub(size)
}

#[cfg(test)]
mod tests;
