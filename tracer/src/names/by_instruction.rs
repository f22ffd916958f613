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
//! Invariant: objects of the answer do not overlap. What contradicts itself is left out, never chosen by guess.

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
    /// Times seen.
    pub(super) count: u64,
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
    count: u64,
}

impl Inferred {
    fn end(&self) -> Option<u64> {
        self.start?.checked_add(self.size)
    }
}

/// The objects, by their start; those with an unknown start come last. And how many instructions were left out because
/// others contradict them.
pub(super) fn objects(told: &[Told]) -> (Vec<Inferred>, u64) {
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
            Some(group) => group.count += one.count,
            None => groups.push(Inferred {
                told: index,
                start: one.start,
                size: one.type_size,
                count: one.count,
            }),
        }
    }
    // A larger object says more than a part of it that some pointer points to.
    let inside = |inner: &Inferred, outer: &Inferred| {
        outer.size > inner.size
            && outer.start <= inner.start
            && outer.end().zip(inner.end()).is_some_and(|(o, i)| i <= o)
            && outer.start.is_some()
    };
    let mut kept: Vec<Inferred> = Vec::new();
    for group in &groups {
        if !groups.iter().any(|outer| inside(group, outer)) {
            kept.push(group.clone());
        }
    }
    kept.sort_by_key(|group| {
        (
            group.start.is_none(),
            group.start,
            std::cmp::Reverse(group.count),
        )
    });
    let mut contradicted = 0;
    let mut out: Vec<Inferred> = Vec::new();
    let mut overlapped = vec![false; kept.len()];
    for a in 0..kept.len() {
        for b in a + 1..kept.len() {
            let (Some(end), Some(next)) = (kept[a].end(), kept[b].start) else {
                continue;
            };
            if next >= end {
                continue;
            }
            let alike = kept[a].start == kept[b].start && kept[a].size == kept[b].size;
            // Two names of one shape (a typedef, a wrapper of one member): the one seen more often serves.
            overlapped[b] = true;
            overlapped[a] |= !alike;
        }
    }
    for (group, overlapped) in kept.into_iter().zip(overlapped) {
        if overlapped {
            contradicted += 1;
        } else {
            out.push(group);
        }
    }
    (out, contradicted)
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
            count,
        }
    }

    fn starts(told: &[Told]) -> Vec<(String, Option<u64>)> {
        let (objects, _) = objects(told);
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
            told("right", 32, Some(0x90), 0x98, 1),
            told("far", 8, Some(0x100), 0x100, 1),
        ];
        let (found, contradicted) = objects(&all);
        assert_eq!(found.len(), 1);
        assert_eq!(all[found[0].told].type_name, "far");
        assert_eq!(contradicted, 2);
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
