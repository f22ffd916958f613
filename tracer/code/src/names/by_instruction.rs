//! Objects without a name (heap, other threads' stacks), as the instructions that access them tell their type.
//!
//! Each instruction knows the type its pointer points to and how far into it it reaches, hence where the object starts:
//!
//! ```text
//!   mine->done++   struct jobs + 0   accesses 0x40   =>  a struct jobs at 0x40
//!   queue->tail    struct queue + 8  accesses 0x88   =>  a struct queue at 0x80
//!   *p             unsigned long     accesses 0x88   =>  inside of that struct queue, which says more
//! ```
//!
//! Instructions that disagree are weighed: memory is used again under another type, cleared and copied in bulk, and a cast
//! may hide what it is. What is told a few times does not take the type away from what is told all the time; where
//! neither is rare, both are left out.
//!
//! Invariant: objects of the answer do not overlap. What contradicts itself is left out, never chosen by guess.

/// Times as often that one of two contradicting types is told to be believed.
const CLEARLY_MORE: u64 = 8;

/// How much one execution of an instruction says of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Several members at once, as objects are cleared and copied whatever they are.
    Several,
    /// One member, of an object that only a constant index leads to ([`symbolizer::Accessed::concluded`]).
    Concluded,
    /// One member.
    Member,
}

impl Strength {
    fn weight(self) -> u64 {
        match self {
            Strength::Several => 1,
            Strength::Concluded => 2,
            Strength::Member => 4,
        }
    }
}

/// What one instruction tells of the bytes it accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Name of the type of the whole object.
    pub(super) type_name: String,
    /// Bytes of it.
    pub(super) type_size: u64,
    /// Position of the object's first byte; `None` where an index hides it.
    pub(super) start: Option<u64>,
    /// First accessed byte.
    pub(super) position: u64,
    /// Bytes accessed.
    pub(super) size: u64,
    /// The accessed part as the source has it: `.done`, `*borrowed`.
    pub(super) path: String,
    /// The whole object, where the instruction's own function declares it.
    pub(super) variable: Option<String>,
    /// The whole object as the source comes to it from a variable that all functions know.
    pub(super) called: Option<String>,
    /// What one execution says.
    pub(super) strength: Strength,
    /// Times that it was seen.
    pub(super) count: u64,
}

impl Told {
    fn weight(&self) -> u64 {
        self.count.saturating_mul(self.strength.weight())
    }
}

/// An object made from what was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inferred {
    /// The first of [`Told`] that tells of it.
    pub(super) told: usize,
    /// Position of its first byte, where known.
    pub(super) start: Option<u64>,
    /// Bytes, where its start is known.
    pub(super) size: u64,
    /// Nothing stronger tells of it.
    pub(super) strength: Strength,
    weight: u64,
}

impl Inferred {
    fn end(&self) -> Option<u64> {
        self.start?.checked_add(self.size)
    }

    fn overlaps(&self, other: &Inferred) -> bool {
        let ends = self.end().zip(other.end());
        ends.is_some_and(|(end, other_end)| self.start < Some(other_end) && other.start < Some(end))
    }

    /// Whether the other lies within this larger one.
    fn holds(&self, inner: &Inferred) -> bool {
        let ends = self.end().zip(inner.end());
        self.size > inner.size
            && self.start <= inner.start
            && ends.is_some_and(|(end, inner_end)| inner_end <= end)
    }
}

/// The objects, by their start; those with an unknown start come last. And how many instructions were left out because
/// others contradict them. `fits` says whether the bytes that the second of [`Told`] accesses are a part of the type that
/// the first tells.
pub(super) fn objects(told: &[Told], fits: impl Fn(usize, usize) -> bool) -> (Vec<Inferred>, u64) {
    let groups = groups(told);
    // A larger object says more than a part of it that some pointer points to.
    let is_part = |inner: &Inferred| {
        let outer = |outer: &Inferred| outer.holds(inner) && fits(outer.told, inner.told);
        groups.iter().any(outer)
    };
    let mut rest: Vec<Inferred> = groups.iter().filter(|g| !is_part(g)).cloned().collect();
    // What is told most often first; of equal ones, the first told.
    rest.sort_by_key(|group| (std::cmp::Reverse(group.weight), group.told));
    let mut contradicted = 0;
    // What is kept, and whether something contradicts it that is not rare.
    let mut kept: Vec<(Inferred, bool)> = Vec::new();
    for group in rest {
        let mut is_kept = true;
        for (known, doubtful) in &mut kept {
            if !known.overlaps(&group) {
                continue;
            }
            is_kept = false;
            // Two names of one shape (a typedef, a wrapper of one member): the one seen more often serves.
            let alike = (known.start, known.size) == (group.start, group.size);
            let is_rare = group.weight.saturating_mul(CLEARLY_MORE) <= known.weight;
            *doubtful |= !alike && !is_rare;
        }
        if is_kept {
            kept.push((group, false));
        } else {
            contradicted += 1;
        }
    }
    let mut out: Vec<Inferred> = Vec::new();
    for (group, doubtful) in kept {
        if doubtful {
            contradicted += 1;
        } else {
            out.push(group);
        }
    }
    out.sort_by_key(|group| (group.start.is_none(), group.start));
    (out, contradicted)
}

/// Instructions that tell of one object are one group.
fn groups(told: &[Told]) -> Vec<Inferred> {
    let mut groups: Vec<Inferred> = Vec::new();
    for (index, one) in told.iter().enumerate() {
        let same = |group: &&mut Inferred| {
            let first = &told[group.told];
            (group.start, &first.type_name, group.size)
                == (one.start, &one.type_name, one.type_size)
                && (one.start.is_some()
                    || (first.position, &first.path) == (one.position, &one.path))
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.weight = group.weight.saturating_add(one.weight());
                group.strength = group.strength.max(one.strength);
            }
            None => groups.push(Inferred {
                told: index,
                start: one.start,
                size: one.type_size,
                strength: one.strength,
                weight: one.weight(),
            }),
        }
    }
    groups
}

/// How most of the instructions call an object, one element of an array rather than any of it.
pub(super) fn called<'t>(told: impl Iterator<Item = &'t Told>) -> Option<String> {
    let mut names: Vec<(&str, u64)> = Vec::new();
    for one in told {
        let Some(name) = one.called.as_deref() else {
            continue;
        };
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count = count.saturating_add(one.count),
            None => names.push((name, one.count)),
        }
    }
    let best = names
        .into_iter()
        .max_by_key(|(name, count)| (!name.contains("[]"), *count, std::cmp::Reverse(*name)));
    best.map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(
        type_name: &str,
        type_size: u64,
        start: Option<u64>,
        position: u64,
        count: u64,
    ) -> Told {
        Told {
            type_name: type_name.to_owned(),
            type_size,
            start,
            position,
            size: 8,
            path: String::new(),
            variable: None,
            called: None,
            strength: Strength::Member,
            count,
        }
    }

    fn starts(told: &[Told]) -> Vec<(String, Option<u64>)> {
        let (objects, _) = objects(told, |_, _| true);
        let name = |object: &Inferred| (told[object.told].type_name.clone(), object.start);
        objects.iter().map(name).collect()
    }

    #[test]
    fn instructions_on_one_object_make_one_object() {
        let all = [
            told("queue", 32, Some(0x80), 0x88, 3),
            told("queue", 32, Some(0x80), 0x90, 1),
            told("queue", 32, Some(0xa0), 0xa0, 1),
        ];
        assert_eq!(
            starts(&all),
            [
                ("queue".to_owned(), Some(0x80)),
                ("queue".to_owned(), Some(0xa0))
            ]
        );
    }

    #[test]
    fn a_pointer_to_a_part_says_less_than_one_to_the_whole() {
        let all = [
            told("unsigned long", 8, Some(0x88), 0x88, 900),
            told("queue", 32, Some(0x80), 0x90, 1),
        ];
        assert_eq!(starts(&all), [("queue".to_owned(), Some(0x80))]);
        // Outside of the object it stands for itself.
        let apart = [
            told("unsigned long", 8, Some(0xa0), 0xa0, 1),
            told("queue", 32, Some(0x80), 0x90, 1),
        ];
        assert_eq!(starts(&apart).len(), 2);
    }

    #[test]
    fn what_contradicts_itself_is_left_out() {
        let all = [
            told("left", 32, Some(0x80), 0x90, 9),
            told("right", 32, Some(0x90), 0x98, 2),
            told("far", 8, Some(0x100), 0x100, 1),
        ];
        let (found, contradicted) = objects(&all, |_, _| true);
        assert_eq!(found.len(), 1);
        assert_eq!(all[found[0].told].type_name, "far");
        assert_eq!(contradicted, 2);
    }

    #[test]
    fn an_instruction_that_is_seldom_seen_does_not_take_the_type_away() {
        let all = [
            told("right", 32, Some(0x90), 0x98, 2),
            told("left", 32, Some(0x80), 0x90, 16),
        ];
        let (found, contradicted) = objects(&all, |_, _| true);
        assert_eq!(starts(&all), [("left".to_owned(), Some(0x80))]);
        assert_eq!((found.len(), contradicted), (1, 1));
    }

    #[test]
    fn an_access_of_several_members_says_less_than_one_of_a_member() {
        let cleared = |count| Told {
            size: 16,
            strength: Strength::Several,
            ..told("pair", 16, Some(0x88), 0x88, count)
        };
        let member = told("rec", 16, Some(0x80), 0x80, 4);
        // Twice as often, and still less than an eighth of what the members say.
        let starts_of = |cleared| starts(&[cleared, member.clone()]);
        assert_eq!(starts_of(cleared(2)), [("rec".to_owned(), Some(0x80))]);
        assert_eq!(starts_of(cleared(3)), []);
        let often = starts_of(cleared(128));
        assert_eq!(often, [("pair".to_owned(), Some(0x88))]);
    }

    #[test]
    fn a_larger_object_that_the_small_ones_do_not_fit_into_is_weighed_against_them() {
        let all = [
            told("page", 64, Some(0x80), 0x80, 1),
            told("node", 32, Some(0x80), 0x88, 9),
            told("node", 32, Some(0xa0), 0xa8, 9),
        ];
        let node = |start| ("node".to_owned(), Some(start));
        let found = |fits: bool| {
            let (objects, _) = objects(&all, |_, _| fits);
            let name = |object: &Inferred| (all[object.told].type_name.clone(), object.start);
            objects.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(found(false), [node(0x80), node(0xa0)]);
        assert_eq!(found(true), [("page".to_owned(), Some(0x80))]);
    }

    #[test]
    fn an_object_is_called_as_most_call_it_and_by_its_number_if_any_knows_it() {
        let name = |called: &str, count| Told {
            called: Some(called.to_owned()),
            ..told("rec", 16, Some(0x80), 0x80, count)
        };
        let all = [name("recs[]", 90), name("*last", 4), name("recs[3]", 5)];
        assert_eq!(called(all.iter()).as_deref(), Some("recs[3]"));
        assert_eq!(called(all[..1].iter()).as_deref(), Some("recs[]"));
        assert_eq!(called([told("rec", 16, None, 0, 1)].iter()), None);
    }

    #[test]
    fn of_two_names_of_one_shape_the_one_seen_more_often_serves() {
        let all = [
            told("raw", 16, Some(0x80), 0x80, 2),
            told("wrapper", 16, Some(0x80), 0x88, 5),
        ];
        assert_eq!(starts(&all), [("wrapper".to_owned(), Some(0x80))]);
    }

    #[test]
    fn an_object_whose_start_an_index_hides_is_still_one() {
        let all = [
            told("table", 1024, None, 0x88, 2),
            told("queue", 32, Some(0x80), 0x90, 1),
        ];
        let found = starts(&all);
        assert_eq!(
            found,
            [("queue".to_owned(), Some(0x80)), ("table".to_owned(), None)]
        );
    }
}
