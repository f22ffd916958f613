//! The arithmetic of moving fields apart: where members land, and how large things become.

use crate::names::MemberLayout;

/// `n` rounded up to a multiple of `step`; saturates.
pub fn round_up(n: u64, step: u64) -> u64 {
    n.div_ceil(step.max(1)).saturating_mul(step.max(1))
}

/// A struct after some members were moved to lines of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relayout {
    /// Members that have to be aligned to a line, in their new order (indices of the old one).
    pub aligned: Vec<usize>,
    /// The members' new order, where it must change; empty where alignment alone does it.
    pub order: Vec<usize>,
    /// New first byte of each member, by its old index.
    pub places: Vec<u64>,
    /// Bytes of the struct, a multiple of the line.
    pub size: u64,
    /// Some members share storage (bit-fields, unions) and cannot be moved apart by alignment.
    pub inseparable: bool,
}

/// Moves members of different units to different lines, as a C or C++ compiler lays out what
/// `alignas(line)` before the first member of each unit gives. `unit_of` has one entry per member;
/// members without a unit stay where they are. Members are in offset order.
///
/// The declared alignment of a member is not known here; it is taken from its offset and size, at
/// most 8, which is what the x86-64 and AArch64 psABIs give to every scalar but `long double` and vectors.
pub fn separate(members: &[MemberLayout], unit_of: &[Option<usize>], line: u64) -> Relayout {
    let touched: Vec<usize> = unit_of.iter().flatten().copied().collect();
    let changes = touched.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let mut units = touched.clone();
    units.sort_unstable();
    units.dedup();
    if changes < units.len() {
        in_place(members, unit_of, line)
    } else {
        reordered(members, unit_of, line)
    }
}

fn natural_alignment(member: &MemberLayout) -> u64 {
    1 << member
        .size
        .trailing_zeros()
        .min(member.offset.trailing_zeros())
        .min(3)
}

/// The order stays; every member that begins another unit is aligned.
fn in_place(members: &[MemberLayout], unit_of: &[Option<usize>], line: u64) -> Relayout {
    let mut out = Relayout {
        aligned: Vec::new(),
        order: Vec::new(),
        places: Vec::with_capacity(members.len()),
        size: 0,
        inseparable: false,
    };
    let mut shift = 0u64;
    let mut old_end = 0u64;
    let mut current = None;
    for (n, member) in members.iter().enumerate() {
        let overlaps = member.offset < old_end;
        let unit = unit_of.get(n).copied().flatten();
        let begins = unit.is_some() && current.is_some() && unit != current;
        if begins && overlaps {
            out.inseparable = true;
        }
        let moved = member.offset.saturating_add(shift);
        let placed = if begins && !overlaps {
            out.aligned.push(n);
            round_up(moved, line)
        } else if overlaps {
            moved
        } else {
            round_up(moved, natural_alignment(member))
        };
        out.places.push(placed);
        shift = placed.saturating_sub(member.offset);
        old_end = old_end.max(member.offset.saturating_add(member.size));
        out.size = out.size.max(placed.saturating_add(member.size));
        current = unit.or(current);
    }
    out.size = round_up(out.size, line);
    out
}

/// Units alternate in the struct: each one's members are put together, untouched ones behind them.
fn reordered(members: &[MemberLayout], unit_of: &[Option<usize>], line: u64) -> Relayout {
    let mut seen: Vec<usize> = Vec::new();
    for unit in unit_of.iter().flatten() {
        if !seen.contains(unit) {
            seen.push(*unit);
        }
    }
    let mut out = Relayout {
        aligned: Vec::new(),
        order: Vec::new(),
        places: vec![0; members.len()],
        size: 0,
        inseparable: false,
    };
    let groups = seen.iter().map(|&unit| Some(unit)).chain([None]);
    for (rank, group) in groups.enumerate() {
        let mut first = true;
        for (n, member) in members.iter().enumerate() {
            if unit_of.get(n).copied().flatten() != group {
                continue;
            }
            let starts_line = first && rank > 0 && group.is_some();
            let start = if starts_line {
                out.aligned.push(n);
                round_up(out.size, line)
            } else {
                round_up(out.size, natural_alignment(member))
            };
            out.places[n] = start;
            out.size = start.saturating_add(member.size);
            out.order.push(n);
            first = false;
        }
    }
    out.size = round_up(out.size, line);
    out
}

/// Bytes of a Rust struct whose units each sit in a wrapper aligned to `line`; the compiler orders
/// fields as it likes, so the rest takes whole lines of its own.
pub fn wrapped(members: &[MemberLayout], unit_of: &[Option<usize>], line: u64) -> u64 {
    let mut units: Vec<usize> = unit_of.iter().flatten().copied().collect();
    units.sort_unstable();
    units.dedup();
    let bytes_of = |unit: Option<usize>| {
        let of_unit = members.iter().zip(unit_of).filter(|(_, u)| **u == unit);
        round_up(
            of_unit.fold(0u64, |sum, (m, _)| sum.saturating_add(m.size)),
            line,
        )
    };
    let all = units.iter().map(|&unit| Some(unit)).chain([None]);
    all.fold(0u64, |sum, unit| sum.saturating_add(bytes_of(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &[(&str, u64, u64)]) -> Vec<MemberLayout> {
        let member = |&(name, offset, size): &(&str, u64, u64)| MemberLayout {
            name: name.to_owned(),
            offset,
            size,
            type_name: None,
        };
        list.iter().map(member).collect()
    }

    #[test]
    fn the_second_unit_starts_a_line_and_what_follows_moves_along() {
        // hits 0..8 | misses 64..72, total 72..80 -> 128.
        let stats = members(&[("hits", 0, 8), ("misses", 8, 8), ("total", 16, 8)]);
        let plan = separate(&stats, &[Some(0), Some(1), None], 64);
        assert_eq!(
            (plan.aligned, plan.order, plan.size),
            (vec![1], vec![], 128)
        );
        assert_eq!(plan.places, [0, 64, 72]);
    }

    #[test]
    fn a_member_behind_a_moved_one_keeps_its_alignment() {
        // flag 0..4 | mode 64..68, padding, limit 72..80 -> 128; with 128-byte lines 128..144 -> 256.
        let list = members(&[("flag", 0, 4), ("mode", 4, 4), ("limit", 8, 8)]);
        assert_eq!(separate(&list, &[Some(0), Some(1), Some(1)], 64).size, 128);
        assert_eq!(separate(&list, &[Some(0), Some(1), Some(1)], 128).size, 256);
    }

    #[test]
    fn members_of_alternating_units_are_put_together() {
        // a0 0, b0 8, a1 16, b1 24 -> a0 a1 | b0 b1 | tail behind b: 0..16, 64..80, 80..81 -> 128.
        let list = members(&[
            ("a0", 0, 8),
            ("b0", 8, 8),
            ("a1", 16, 8),
            ("b1", 24, 8),
            ("tail", 32, 1),
        ]);
        let plan = separate(&list, &[Some(0), Some(1), Some(0), Some(1), None], 64);
        assert_eq!(
            (plan.order, plan.aligned, plan.size),
            (vec![0, 2, 1, 3, 4], vec![1], 128)
        );
        assert_eq!(plan.places, [0, 64, 8, 72, 80]);
    }

    #[test]
    fn bit_fields_of_one_word_cannot_be_moved_apart() {
        let list = members(&[("a", 0, 4), ("b", 0, 4)]);
        let plan = separate(&list, &[Some(0), Some(1)], 64);
        assert!(plan.inseparable && plan.aligned.is_empty());
        let apart = members(&[("a", 0, 4), ("b", 4, 4)]);
        assert!(!separate(&apart, &[Some(0), Some(1)], 64).inseparable);
    }

    #[test]
    fn wrapped_rust_fields_take_whole_lines_and_so_does_the_rest() {
        let list = members(&[("head", 0, 8), ("tail", 8, 8), ("name", 16, 24)]);
        assert_eq!(wrapped(&list, &[Some(0), Some(1), None], 64), 192);
        assert_eq!(wrapped(&list[..2], &[Some(0), Some(1)], 128), 256);
    }

    #[test]
    fn absurd_sizes_saturate() {
        let list = members(&[("a", 0, u64::MAX), ("b", u64::MAX, u64::MAX)]);
        assert!(separate(&list, &[Some(0), Some(1)], 64).size >= u64::MAX - 63);
        assert!(wrapped(&list, &[Some(0), Some(1)], 64) >= u64::MAX - 63);
    }
}
