//! Known layouts, and the invariant for any.

use proptest::prelude::*;

use super::{Group::*, *};

const LINES: Means = Means::Alignment(64);

fn members(list: &[(&str, u64, u64)]) -> Vec<MemberLayout> {
    let member = |&(name, offset, size): &(&str, u64, u64)| MemberLayout {
        name: name.to_owned(),
        offset,
        size,
        ..MemberLayout::default()
    };
    list.iter().map(member).collect()
}

#[test]
fn the_second_unit_starts_a_line_and_what_follows_moves_along() {
    // hits 0..8 | misses 64..72, total 72..80 -> 128.
    let stats = members(&[("hits", 0, 8), ("misses", 8, 8), ("total", 16, 8)]);
    let plan = separate(&stats, &[Stored(0), Stored(1), Idle], LINES).unwrap();
    assert_eq!((plan.starts, plan.order, plan.size), (vec![1], vec![], 128));
    assert_eq!((plan.places, plan.gaps), (vec![0, 64, 72], vec![56]));
}

#[test]
fn a_member_behind_a_moved_one_keeps_its_alignment() {
    // flag 0..4 | mode 64..68, padding, limit 72..80 -> 128; with 128-byte lines 128..144 -> 256.
    let list = members(&[("flag", 0, 4), ("mode", 4, 4), ("limit", 8, 8)]);
    let groups = [Stored(0), Stored(1), Stored(1)];
    assert_eq!(separate(&list, &groups, LINES).unwrap().size, 128);
    let pairs = Means::Alignment(128);
    assert_eq!(separate(&list, &groups, pairs).unwrap().size, 256);
    // A vector wants more than eight.
    let mut list = members(&[("flag", 0, 4), ("mode", 4, 4), ("sum", 16, 16)]);
    list[2].alignment = Some(16);
    let plan = separate(&list, &groups, LINES).unwrap();
    assert_eq!(plan.places, [0, 64, 80]);
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
    let groups = [Stored(0), Stored(1), Stored(0), Stored(1), Idle];
    let plan = separate(&list, &groups, LINES).unwrap();
    assert_eq!(
        (plan.order, plan.starts, plan.size),
        (vec![0, 2, 1, 3, 4], vec![1], 128)
    );
    assert_eq!(plan.places, [0, 64, 8, 72, 80]);
}

#[test]
fn what_is_stored_leaves_what_is_only_read_together() {
    // In the middle it would cut the read ones in two: it goes behind them.
    let list = members(&[("limit", 0, 8), ("hits", 8, 8), ("mask", 16, 8)]);
    let plan = separate(&list, &[Read, Stored(0), Read], LINES).unwrap();
    assert_eq!(
        (plan.order, plan.starts, plan.size),
        (vec![0, 2, 1], vec![1], 128)
    );
    // At either end the order stays.
    let plan = separate(&list, &[Stored(0), Read, Read], LINES).unwrap();
    assert_eq!((plan.order, plan.starts, plan.size), (vec![], vec![1], 128));
    let plan = separate(&list, &[Read, Read, Stored(0)], LINES).unwrap();
    assert_eq!((plan.order, plan.starts, plan.size), (vec![], vec![2], 128));
}

#[test]
fn members_of_other_lines_do_not_come_to_a_stored_one() {
    // Beside b is what was on the line behind, which somebody else may use.
    let list = members(&[("a", 0, 8), ("b", 8, 8), ("c", 64, 8)]);
    let plan = separate(&list, &[Stored(0), Stored(1), Elsewhere], LINES).unwrap();
    assert_eq!((plan.starts, plan.places), (vec![1, 2], vec![0, 64, 128]));
    let plan = separate(&list, &[Stored(0), Stored(1), Idle], LINES).unwrap();
    assert_eq!((plan.starts, plan.places), (vec![1], vec![0, 64, 120]));
}

#[test]
fn members_that_lie_apart_already_only_need_the_struct_aligned() {
    let list = members(&[("a", 0, 64), ("b", 64, 64)]);
    let plan = separate(&list, &[Stored(0), Stored(1)], LINES).unwrap();
    assert_eq!((plan.starts, plan.size), (vec![], 128));
    // Padding cannot align it.
    let plan = separate(&list, &[Stored(0), Stored(1)], Means::Padding(64)).unwrap();
    assert_eq!(
        (plan.starts, plan.gaps, plan.size),
        (vec![1], vec![56], 184)
    );
}

#[test]
fn bit_fields_and_unions_cannot_be_moved_apart() {
    let list = members(&[("a", 0, 4), ("b", 0, 4)]);
    assert_eq!(separate(&list, &[Stored(0), Stored(1)], LINES), None);
    let mut apart = members(&[("a", 0, 1), ("b", 1, 1)]);
    assert!(separate(&apart, &[Stored(0), Stored(1)], LINES).is_some());
    for member in &mut apart {
        member.is_bit_field = true;
    }
    assert_eq!(separate(&apart, &[Stored(0), Stored(1)], LINES), None);
    // No bit-field can be aligned, but what follows it can.
    let mut list = members(&[("a", 0, 8), ("b", 8, 1)]);
    list[1].is_bit_field = true;
    assert_eq!(separate(&list, &[Stored(0), Read], LINES), None);
    let mut list = members(&[("a", 0, 1), ("b", 8, 8)]);
    list[0].is_bit_field = true;
    assert_eq!(
        separate(&list, &[Stored(0), Read], LINES).unwrap().starts,
        [1]
    );
    // Members of a base class are declared there.
    let mut list = members(&[("base_a", 0, 8), ("base_b", 8, 8), ("own", 16, 8)]);
    list[0].is_inner = true;
    list[1].is_inner = true;
    assert_eq!(separate(&list, &[Stored(0), Stored(1), Idle], LINES), None);
    // On other lines before, they are left where they are.
    let groups = [Stored(0), Stored(0), Elsewhere];
    assert_eq!(separate(&list, &groups, LINES), None);
    let mut behind = members(&[("a", 0, 8), ("b", 8, 8), ("c", 16, 1), ("d", 24, 8)]);
    behind[2].is_bit_field = true;
    let groups = [Stored(0), Stored(1), Elsewhere, Elsewhere];
    assert_eq!(separate(&behind, &groups, LINES).unwrap().starts, [1, 3]);
    assert_eq!(
        separate(&list, &[Stored(0), Idle, Stored(1)], LINES)
            .unwrap()
            .starts,
        [2]
    );
}

#[test]
fn where_nothing_is_stored_beside_others_nothing_moves() {
    let list = members(&[("a", 0, 8), ("b", 8, 8)]);
    assert_eq!(separate(&list, &[Read, Read], LINES), None);
    assert_eq!(separate(&list, &[Stored(3), Stored(3)], LINES), None);
    assert_eq!(separate(&list, &[Stored(3), Elsewhere], LINES), None);
    assert_eq!(separate(&[], &[], LINES), None);
}

#[test]
fn padding_is_as_long_as_the_start_of_the_struct_can_vary() {
    let list = members(&[("hits", 0, 8), ("misses", 8, 8)]);
    let plan = separate(&list, &[Stored(0), Stored(1)], Means::Padding(64)).unwrap();
    assert_eq!(
        (plan.gaps, plan.places, plan.size),
        (vec![56], vec![0, 64], 72)
    );
    let list = members(&[("hits", 0, 4), ("misses", 4, 4)]);
    let plan = separate(&list, &[Stored(0), Stored(1)], Means::Padding(64)).unwrap();
    assert_eq!(
        (plan.gaps, plan.places, plan.size),
        (vec![60], vec![0, 64], 68)
    );
}

#[test]
fn wrapped_rust_fields_take_whole_lines_and_so_does_the_rest() {
    let list = members(&[("head", 0, 8), ("tail", 8, 8), ("name", 16, 24)]);
    assert_eq!(wrapped(&list, &[Stored(0), Stored(1), Idle], 64), 192);
    assert_eq!(wrapped(&list[..2], &[Stored(0), Stored(1)], 128), 256);
    assert_eq!(wrapped(&list, &[Stored(0), Read, Idle], 64), 128);
}

#[test]
fn absurd_sizes_saturate() {
    let list = members(&[("a", 0, u64::MAX), ("b", u64::MAX, u64::MAX)]);
    let groups = [Stored(0), Stored(1)];
    assert!(separate(&list, &groups, LINES).unwrap().size >= u64::MAX - 63);
    assert!(wrapped(&list, &groups, 64) >= u64::MAX - 63);
    assert_eq!(padding_behind(u64::MAX, 8, 64), 0);
}

#[test]
fn elements_are_padded_to_lines_or_beyond() {
    assert_eq!(padding_behind(8, 8, 64), 56);
    assert_eq!(padding_behind(4, 4, 128), 124);
    // Sixteen bytes that start at any multiple of eight may lie on two lines.
    assert_eq!(padding_behind(16, 8, 64), 56);
    assert_eq!(padding_behind(64, 8, 64), 56);
}

/// Members one behind the other, as a compiler would lay them out.
fn laid_out() -> impl Strategy<Value = (Vec<MemberLayout>, Vec<Group>)> {
    let group = prop_oneof![
        (0usize..3).prop_map(Stored),
        Just(Read),
        Just(Idle),
        Just(Elsewhere)
    ];
    let size = prop_oneof![Just(1u64), Just(2), Just(4), Just(8), Just(16), 1u64..200];
    let member = (size, 0u32..6, proptest::bool::weighted(0.1), group);
    proptest::collection::vec(member, 1..14).prop_map(|list| {
        let mut end = 0;
        let mut out = Vec::new();
        let mut groups = Vec::new();
        for (n, (size, alignment, is_bit_field, group)) in list.into_iter().enumerate() {
            let alignment = 1u64 << alignment.min(size.trailing_zeros().max(3)).min(4);
            let offset = round_up(end, alignment);
            end = offset + size;
            out.push(MemberLayout {
                name: format!("m{n}"),
                offset,
                size,
                alignment: Some(alignment),
                is_bit_field,
                ..MemberLayout::default()
            });
            // A bit-field stays beside the one before it, whoever uses that.
            let is_elsewhere = is_bit_field && group == Elsewhere;
            groups.push(if is_elsewhere { Idle } else { group });
        }
        (out, groups)
    })
}

fn check(members: &[MemberLayout], groups: &[Group], means: Means) -> Result<(), TestCaseError> {
    let Some(plan) = separate(members, groups, means) else {
        return Ok(());
    };
    let line = means.line();
    let of_struct = members.iter().map(alignment).max().unwrap();
    let starts: Vec<u64> = match means {
        Means::Alignment(_) => vec![0],
        Means::Padding(_) => (0..line).step_by(of_struct as usize).collect(),
    };
    let lines = |m: usize, start: u64| {
        let first = start + plan.places[m];
        first / line..=(first + members[m].size - 1) / line
    };
    for a in 0..members.len() {
        let moved = plan.places[a].abs_diff(members[a].offset);
        let aligned = members[a].alignment.unwrap();
        prop_assert!(
            moved.is_multiple_of(aligned),
            "{a} is misaligned in {plan:?}"
        );
        prop_assert!(plan.places[a] + members[a].size <= plan.size);
        for b in 0..members.len() {
            let (ends, begins) = (plan.places[a] + members[a].size, plan.places[b]);
            let overlaps = a != b && plan.places[a] < begins + members[b].size && begins < ends;
            prop_assert!(!overlaps, "{a} and {b} overlap in {plan:?}");
            let is_fixed = members.iter().any(|member| member.is_bit_field);
            let is_elsewhere = groups[a] == Elsewhere || groups[b] == Elsewhere;
            if groups[a].goes_with(groups[b]) || (is_fixed && is_elsewhere) {
                continue;
            }
            for &start in &starts {
                let (la, lb) = (lines(a, start), lines(b, start));
                let apart = la.end() < lb.start() || lb.end() < la.start();
                prop_assert!(apart, "{a} and {b} share a line at {start} in {plan:?}");
            }
        }
    }
    if plan.order.is_empty() {
        prop_assert!(plan.places.is_sorted());
    } else {
        let mut all = plan.order.clone();
        all.sort_unstable();
        prop_assert_eq!(all, (0..members.len()).collect::<Vec<_>>());
    }
    prop_assert_eq!(plan.starts.len(), plan.gaps.len());
    Ok(())
}

proptest! {
    #[test]
    fn no_line_has_a_stored_unit_beside_others((members, groups) in laid_out()) {
        check(&members, &groups, Means::Alignment(64))?;
        check(&members, &groups, Means::Alignment(128))?;
    }

    #[test]
    fn padding_keeps_them_apart_wherever_the_struct_starts((members, groups) in laid_out()) {
        check(&members, &groups, Means::Padding(64))?;
    }

    #[test]
    fn padded_elements_share_no_line(size in 1u64..300, alignment in 0u32..4, start in 0u64..64) {
        let alignment = 1u64 << alignment;
        let size = round_up(size, alignment);
        let stride = size + padding_behind(size, alignment, 64);
        let start = round_up(start, alignment);
        prop_assert!(stride.is_multiple_of(alignment));
        for n in 0..100u64 {
            let last = start + n * stride + size - 1;
            prop_assert!(last / 64 < (start + (n + 1) * stride) / 64);
        }
    }
}
