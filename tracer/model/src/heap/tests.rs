//! Laws of the index, against a model that remembers every byte.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proptest::prelude::*;

use super::*;
use crate::{
    access::{Pid, Tid},
    event::HeapPart,
};

const SPACE: SpaceId = SpaceId(3);

fn event(time_ns: u64, kind: AllocationKind) -> Allocation {
    Allocation {
        time_ns,
        pid: Pid(1),
        tid: Tid(2),
        kind,
    }
}

fn allocated(addr: u64, size: u64, site: u64) -> AllocationKind {
    AllocationKind::Allocated {
        addr,
        size,
        stack: Arc::from([1, site]),
    }
}

fn freed(addr: u64) -> AllocationKind {
    AllocationKind::Freed { addr }
}

fn mapped(addr: u64, size: u64, site: u64) -> AllocationKind {
    AllocationKind::Mapped {
        addr,
        size,
        stack: Arc::from([1, site]),
    }
}

fn unmapped(addr: u64, size: u64) -> AllocationKind {
    AllocationKind::Unmapped { addr, size }
}

/// What happens, one step a nanosecond.
#[derive(Clone, Debug)]
enum Step {
    Heap(AllocationKind),
    Access(u64),
}

fn run(steps: impl IntoIterator<Item = Step>) -> HeapIndex {
    let mut index = HeapIndex::default();
    for (step, time_ns) in steps.into_iter().zip(1..) {
        match step {
            Step::Heap(kind) => index.apply(Some(SPACE), &event(time_ns, kind)),
            Step::Access(addr) => index.touch(SPACE, addr),
        }
    }
    index
}

fn named(index: &HeapIndex) -> Vec<(u64, u64, u64, bool)> {
    let objects = index.objects(SPACE, 0x1000, 64);
    let words = objects
        .iter()
        .map(|o| (o.addr, o.size, o.stack[1], o.is_certain()));
    words.collect()
}

use Step::{Access, Heap};

#[test]
fn two_small_objects_of_one_line_are_both_named() {
    let index = run([
        Heap(allocated(0x1010, 24, 7)),
        Heap(allocated(0x1030, 24, 8)),
        Access(0x1010),
        Access(0x1030),
    ]);
    assert_eq!(
        named(&index),
        [(0x1010, 24, 7, true), (0x1030, 24, 8, true)]
    );
}

#[test]
fn an_object_that_nobody_touched_does_not_answer_for_the_line() {
    let index = run([
        Heap(allocated(0x1010, 24, 7)),
        Heap(allocated(0x1030, 24, 8)),
        Access(0x1030),
    ]);
    assert_eq!(named(&index), [(0x1030, 24, 8, true)]);
}

#[test]
fn reused_memory_is_named_by_whose_accesses_they_were() {
    let early = [Access(0x1010), Access(0x1018), Access(0x1010)];
    let late = [Access(0x1010)];
    for (first, second, named_site) in [(&early[..], &late[..], 7), (&late[..], &early[..], 8)] {
        let mut steps = vec![Heap(allocated(0x1010, 24, 7))];
        steps.extend_from_slice(first);
        steps.extend([Heap(freed(0x1010)), Heap(allocated(0x1010, 48, 8))]);
        steps.extend_from_slice(second);
        let found = named(&run(steps));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].2, named_site);
    }
}

#[test]
fn memory_of_many_users_in_turn_is_nobodys() {
    let mut steps = Vec::new();
    for site in 0..10 {
        steps.extend([
            Heap(allocated(0x1010, 24, site)),
            Access(0x1010),
            Heap(freed(0x1010)),
        ]);
    }
    assert_eq!(named(&run(steps.clone())), []);
    // But what one place of the code allocates again and again is one thing.
    for step in &mut steps {
        if let Heap(AllocationKind::Allocated { stack, .. }) = step {
            *stack = Arc::from([1, 5]);
        }
    }
    assert_eq!(named(&run(steps)), [(0x1010, 24, 5, true)]);
}

#[test]
fn what_was_used_before_it_was_known_is_not_named_by_what_came_after() {
    let mut steps = vec![Heap(allocated(0x9000, 8, 1))];
    steps.extend([Access(0x1010), Access(0x1018), Access(0x1010)]);
    steps.extend([Heap(allocated(0x1010, 24, 7)), Access(0x1010)]);
    assert_eq!(named(&run(steps.clone())), []);
    steps.extend([Access(0x1010), Access(0x1010), Access(0x1010)]);
    assert_eq!(named(&run(steps)), [(0x1010, 24, 7, true)]);
}

#[test]
fn after_a_gap_an_object_is_in_doubt_and_one_that_was_overlapped_has_nothing_of_it() {
    let gap = [
        Heap(AllocationKind::Unseen(HeapPart::All)),
        Heap(AllocationKind::Seen(HeapPart::All)),
    ];
    let mut steps = vec![Heap(allocated(0x1010, 24, 7)), Access(0x1010)];
    steps.extend(gap.clone());
    steps.extend([Access(0x1010), Access(0x1010)]);
    assert_eq!(named(&run(steps.clone())), [(0x1010, 24, 7, false)]);
    // The next owner shows that it was freed, nobody knows when.
    steps.extend([
        Heap(allocated(0x1000, 64, 8)),
        Access(0x1010),
        Access(0x1010),
    ]);
    assert_eq!(named(&run(steps)), [(0x1000, 64, 8, true)]);
    // What begins in a gap may end in it.
    let steps = [
        gap[0].clone(),
        Heap(allocated(0x1010, 24, 7)),
        gap[1].clone(),
        Access(0x1010),
    ];
    assert_eq!(named(&run(steps)), [(0x1010, 24, 7, false)]);
}

#[test]
fn a_child_inherits_what_is_alive_and_counts_for_itself() {
    let mut index = run([
        Heap(allocated(0x1010, 24, 7)),
        Heap(allocated(0x1030, 8, 8)),
        Heap(freed(0x1030)),
        Access(0x1010),
    ]);
    let child = SpaceId(4);
    index.fork(SPACE, child);
    assert_eq!(index.objects(child, 0x1000, 64), []);
    index.touch(child, 0x1010);
    index.touch(child, 0x1030);
    let found = index.objects(child, 0x1000, 64);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].addr, found[0].accesses), (0x1010, 1));
}

/// Names of the line at `addr`, as [`named`] has them.
fn named_at(index: &HeapIndex, addr: u64) -> Vec<(u64, u64, u64, bool)> {
    let objects = index.objects(SPACE, addr, 64);
    let words = objects
        .iter()
        .map(|o| (o.addr, o.size, o.stack[1], o.is_certain()));
    words.collect()
}

/// Three pages from 0x1000 on, each accessed more often than the one before.
fn three_pages() -> Vec<Step> {
    let mut steps = vec![Heap(mapped(0x1000, 0x2800, 7))];
    for (page, times) in [(0x1000, 1), (0x2000, 2), (0x3000, 3)] {
        steps.extend(std::iter::repeat_n(Access(page + 8), times));
    }
    steps
}

#[test]
fn unmapping_the_middle_of_a_mapping_leaves_its_ends_and_ends_the_middle() {
    let mut steps = three_pages();
    steps.extend([Heap(unmapped(0x2000, 0x1000)), Heap(mapped(0x2000, 64, 8))]);
    steps.extend([0x1008, 0x2008, 0x2008, 0x2008, 0x3008].map(Access));
    let index = run(steps);
    let counts = |addr| {
        let objects = index.objects(SPACE, addr, 64);
        objects.iter().map(|o| o.accesses).collect::<Vec<_>>()
    };
    // The ends are still parts of what was asked for at 0x1000.
    assert_eq!(named_at(&index, 0x1000), [(0x1000, 0x2800, 7, true)]);
    assert_eq!(named_at(&index, 0x3000), [(0x1000, 0x2800, 7, true)]);
    assert_eq!((counts(0x1000), counts(0x3000)), (vec![2], vec![4]));
    // Three accesses of the new one, two of the old one, whose other pages do not count.
    assert_eq!(named_at(&index, 0x2000), [(0x2000, 64, 8, true)]);
}

#[test]
fn after_its_page_is_unmapped_nothing_counts_for_a_mapping_but_for_its_other_pages() {
    for (from, size, gone, left) in [
        (0x1000, 0x1000, 0x1000, 0x3000),
        (0x3000, 0x1000, 0x3000, 0x1000),
        // The last page is a half in what was asked for.
        (0x2000, 0x2000, 0x3000, 0x1000),
        // A part of what is unmapped is of nobody.
        (0x0, 0x2000, 0x1000, 0x3000),
    ] {
        let mut steps = vec![Heap(mapped(0x1000, 0x2800, 7)), Heap(unmapped(from, size))];
        steps.extend([gone + 8, left + 8].map(Access));
        let index = run(steps);
        assert_eq!(named_at(&index, gone), [], "{from:x} {size:x}");
        assert_eq!(
            named_at(&index, left),
            [(0x1000, 0x2800, 7, true)],
            "{from:x} {size:x}"
        );
    }
}

#[test]
fn one_unmapping_ends_several_mappings_and_what_was_allocated_in_them() {
    let index = run([
        Heap(mapped(0x1000, 0x1000, 7)),
        Heap(mapped(0x2000, 0x1000, 8)),
        Heap(mapped(0x3000, 0x1000, 9)),
        Heap(allocated(0x2010, 24, 10)),
        Heap(unmapped(0x1000, 0x2000)),
        Access(0x1010),
        Access(0x2010),
        Access(0x3010),
    ]);
    assert_eq!(named_at(&index, 0x1000), []);
    assert_eq!(named_at(&index, 0x2000), []);
    assert_eq!(named_at(&index, 0x3000), [(0x3000, 0x1000, 9, true)]);
}

#[test]
fn what_is_allocated_in_mapped_pages_is_named_and_the_rest_of_them_is_the_mapping() {
    let mut steps = vec![
        Heap(mapped(0x1000, 0x1000, 7)),
        Heap(allocated(0x1010, 24, 8)),
    ];
    steps.extend([0x1010, 0x1080].map(Access));
    let index = run(steps.clone());
    assert_eq!(named(&index), [(0x1010, 24, 8, true)]);
    assert_eq!(named_at(&index, 0x1080), [(0x1000, 0x1000, 7, true)]);
    // Freed, its bytes are the mapping's.
    steps.extend([Heap(freed(0x1010)), Access(0x1018), Access(0x1018)]);
    assert_eq!(named(&run(steps)), [(0x1000, 0x1000, 7, true)]);
}

#[test]
fn a_free_is_of_no_mapping_and_pages_mapped_over_others_take_their_place() {
    let index = run([
        Heap(mapped(0x1000, 0x3000, 7)),
        Heap(freed(0x1000)),
        Heap(mapped(0x2000, 0x1000, 8)),
        Access(0x1008),
        Access(0x2008),
        Access(0x3008),
    ]);
    for (addr, named) in [
        (0x1000, (0x1000, 0x3000, 7, true)),
        (0x2000, (0x2000, 0x1000, 8, true)),
        (0x3000, (0x1000, 0x3000, 7, true)),
    ] {
        assert_eq!(named_at(&index, addr), [named]);
    }
}

#[test]
fn while_allocations_are_unseen_mappings_are_certain_and_the_other_way_round() {
    for (part, certain) in [
        (HeapPart::Allocations, [false, true]),
        (HeapPart::Mappings, [true, false]),
        (HeapPart::All, [false, false]),
    ] {
        let index = run([
            Heap(allocated(0x1010, 24, 7)),
            Heap(mapped(0x2000, 0x1000, 8)),
            Heap(AllocationKind::Unseen(part)),
            Access(0x1010),
            Heap(AllocationKind::Seen(part)),
            Access(0x2010),
        ]);
        assert_eq!(named(&index), [(0x1010, 24, 7, certain[0])]);
        assert_eq!(named_at(&index, 0x2000), [(0x2000, 0x1000, 8, certain[1])]);
    }
}

#[test]
fn a_child_inherits_mappings_with_what_was_unmapped_of_them() {
    let mut index = run([
        Heap(mapped(0x1000, 0x2000, 7)),
        Heap(unmapped(0x1000, 0x1000)),
    ]);
    let child = SpaceId(4);
    index.fork(SPACE, child);
    index.touch(child, 0x1008);
    index.touch(child, 0x2008);
    assert_eq!(index.objects(child, 0x1000, 64), []);
    assert_eq!(index.objects(child, 0x2000, 64).len(), 1);
}

/// A byte map of what is alive, and a list of all that ever was.
#[derive(Default)]
struct Model {
    owner: HashMap<u64, usize>,
    /// By page.
    mapping: HashMap<u64, usize>,
    objects: Vec<(u64, u64, u64)>,
}

impl Model {
    fn end(&mut self, object: usize) {
        self.owner.retain(|_, owner| *owner != object);
    }

    fn end_pages(&mut self, pages: std::ops::Range<u64>) {
        let ended = (self.owner.iter()).filter(|(byte, _)| pages.contains(&(*byte / 4096)));
        let ended: Vec<usize> = ended.map(|(_, owner)| *owner).collect();
        for owner in ended {
            self.end(owner);
        }
        self.mapping.retain(|page, _| !pages.contains(page));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Heap(AllocationKind::Allocated { addr, size, .. }) => {
                for byte in *addr..addr + size {
                    if let Some(owner) = self.owner.get(&byte).copied() {
                        self.end(owner);
                    }
                }
                self.objects.push((*addr, *size, 0));
                for byte in *addr..addr + size {
                    self.owner.insert(byte, self.objects.len() - 1);
                }
            }
            Heap(AllocationKind::Freed { addr }) => {
                if let Some(owner) = self.owner.get(addr).copied()
                    && self.objects[owner].0 == *addr
                {
                    self.end(owner);
                }
            }
            Heap(AllocationKind::Mapped { addr, size, .. }) => {
                let pages = addr / 4096..(addr + size).div_ceil(4096);
                self.end_pages(pages.clone());
                self.objects.push((*addr, *size, 0));
                for page in pages {
                    self.mapping.insert(page, self.objects.len() - 1);
                }
            }
            Heap(AllocationKind::Unmapped { addr, size }) => {
                self.end_pages(addr / 4096..(addr + size).div_ceil(4096));
            }
            Heap(_) => {}
            Access(addr) => {
                let mapping = self.mapping.get(&(addr / 4096));
                let mapping = mapping.filter(|at| {
                    let (start, size, _) = self.objects[**at];
                    *addr < start + size
                });
                let owner = self.owner.get(addr).or(mapping);
                if let Some(owner) = owner {
                    self.objects[*owner].2 += 1;
                }
            }
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let addr = || 0x1000u64..0x1080;
    let page = || (0u64..4).prop_map(|page| page * 4096);
    let pages = || (1u64..4).prop_map(|pages| pages * 4096);
    prop_oneof![
        1 => (page(), 1u64..0x3000).prop_map(|(addr, size)| Heap(mapped(addr, size, addr))),
        1 => (page(), pages()).prop_map(|(addr, size)| Heap(unmapped(addr, size))),
        3 => (addr(), 1u64..40).prop_map(|(addr, size)| Heap(allocated(addr & !7, size, addr))),
        2 => addr().prop_map(|addr| Heap(freed(addr & !7))),
        5 => addr().prop_map(Access),
        2 => (0u64..0x4000).prop_map(Access),
    ]
}

proptest! {
    #[test]
    fn each_access_counts_for_the_object_that_was_alive(
        steps in proptest::collection::vec(any_step(), 0..80),
    ) {
        let index = run(steps.clone());
        let mut model = Model::default();
        for step in &steps {
            model.step(step);
        }
        // What was unmapped in parts is a part each.
        let sums = |objects: &mut dyn Iterator<Item = (u64, u64, u64)>| {
            let mut sums = BTreeMap::new();
            for (addr, size, accesses) in objects {
                *sums.entry((addr, size)).or_insert(0) += accesses;
            }
            sums.retain(|_, accesses| *accesses > 0);
            sums
        };
        let expected = sums(&mut model.objects.iter().copied());
        let heap = index.spaces.get(&SPACE);
        let all = heap.iter().flat_map(|heap| {
            heap.past.iter().chain(heap.live.values()).chain(heap.mapped.values())
        });
        let counted = sums(&mut all.map(|o| (o.addr, o.size, o.accesses)));
        // Accesses before the first event of a heap are of a space that is not followed.
        prop_assert_eq!(counted, expected);
    }

    #[test]
    fn what_is_named_of_a_line_is_on_it_and_apart_and_was_accessed(
        steps in proptest::collection::vec(any_step(), 0..80),
    ) {
        let objects = run(steps).objects(SPACE, 0x1000, 64);
        for object in &objects {
            prop_assert!(object.addr < 0x1040 && object.end() > 0x1000);
            prop_assert!(object.accesses > 0);
        }
        for pair in objects.windows(2) {
            prop_assert!(pair[0].to <= pair[1].from);
        }
    }
}
