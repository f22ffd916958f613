//! The bits of a structure that none of its parts has.

use super::tree::{Hole, Part, Role};

/// Finds holes.
pub(super) struct Holes;

impl Holes {
    /// What is left of `size` bytes by the parts and by `taken` (bits: first, and one past the last), which belongs
    /// to what is around the structure. Nothing where the size is not known.
    pub(super) fn of(size: Option<u64>, parts: &[Part], taken: &[(u64, u64)]) -> Vec<Hole> {
        let Some(end) = size.and_then(|size| size.checked_mul(8)) else {
            return Vec::new();
        };
        let mut used: Vec<(u64, u64)> = parts.iter().filter_map(bits).collect();
        used.extend_from_slice(taken);
        used.sort_unstable();
        let mut holes = Vec::new();
        let mut at = 0;
        for (start, stop) in used.into_iter().chain([(end, end)]) {
            let start = start.min(end);
            if start > at {
                holes.push(Hole {
                    first_bit: at,
                    bits: start - at,
                });
            }
            at = at.max(stop);
        }
        holes
    }
}

/// First bit of a part and one past its last. A base class without members has a size of one byte, but none of its own.
fn bits(part: &Part) -> Option<(u64, u64)> {
    if part.role == Role::Base && part.tree.parts.is_empty() {
        return None;
    }
    let (first, count) = match part.bits {
        Some(bits) => bits,
        // An array without a bound takes what is left.
        None => (
            part.offset.checked_mul(8)?,
            part.tree
                .size
                .map_or(u64::MAX, |size| size.saturating_mul(8)),
        ),
    };
    Some((first, first.saturating_add(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TypeKind, TypeTree};

    fn part(role: Role, offset: u64, size: u64, bits: Option<(u64, u64)>) -> Part {
        Part {
            role,
            name: "m".into(),
            offset,
            bits,
            alignment: None,
            tree: TypeTree {
                type_name: "t".into(),
                kind: TypeKind::Scalar,
                size: Some(size),
                alignment: None,
                language: None,
                file: None,
                line: None,
                parts: Vec::new(),
                holes: Vec::new(),
                has_virtual_base: false,
                is_cut: false,
            },
        }
    }

    /// Bit by bit, as one would on paper.
    fn naive(size: u64, parts: &[Part], taken: &[(u64, u64)]) -> Vec<u64> {
        let free = |bit: &u64| {
            let own = |part: &Part| {
                let (first, count) = part
                    .bits
                    .unwrap_or((part.offset * 8, part.tree.size.unwrap() * 8));
                part.role != Role::Base && (first..first + count).contains(bit)
            };
            !parts.iter().any(own) && !taken.iter().any(|(a, b)| (*a..*b).contains(bit))
        };
        (0..size * 8).filter(free).collect()
    }

    #[test]
    fn holes_are_the_bits_that_nothing_has() {
        let cases = [
            vec![],
            vec![
                part(Role::Member, 0, 4, None),
                part(Role::Member, 8, 8, None),
            ],
            vec![
                part(Role::Member, 0, 4, Some((0, 3))),
                part(Role::Member, 0, 4, Some((5, 12))),
            ],
            vec![part(Role::Base, 0, 1, None), part(Role::Member, 4, 4, None)],
            vec![
                part(Role::Member, 0, 8, None),
                part(Role::Member, 2, 2, None),
            ],
            vec![part(Role::Member, 12, 100, None)],
        ];
        for parts in &cases {
            for taken in [&[][..], &[(8, 16)], &[(100, 128), (120, 400)]] {
                let holes = Holes::of(Some(16), parts, taken);
                let bits: Vec<u64> = holes
                    .iter()
                    .flat_map(|hole| hole.first_bit..hole.first_bit + hole.bits)
                    .collect();
                assert_eq!(bits, naive(16, parts, taken), "{parts:?} {taken:?}");
                assert!(
                    holes
                        .windows(2)
                        .all(|two| two[0].first_bit + two[0].bits < two[1].first_bit)
                );
            }
        }
    }

    #[test]
    fn a_size_that_is_unknown_or_absurd_has_no_holes() {
        assert!(Holes::of(None, &[], &[]).is_empty());
        assert!(Holes::of(Some(u64::MAX), &[], &[]).is_empty());
    }
}
