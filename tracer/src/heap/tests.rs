//! Laws of the index, against a model that remembers every byte.

use std::{collections::HashMap, sync::Arc};

use proptest::prelude::*;

use super::*;
use crate::access::Pid;

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
    let gap = [Heap(AllocationKind::Unseen), Heap(AllocationKind::Seen)];
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

/// A byte map of what is alive, and a list of all that ever was.
#[derive(Default)]
struct Model {
    owner: HashMap<u64, usize>,
    objects: Vec<(u64, u64, u64)>,
}

impl Model {
    fn end(&mut self, object: usize) {
        self.owner.retain(|_, owner| *owner != object);
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
            Heap(_) => {}
            Access(addr) => {
                if let Some(owner) = self.owner.get(addr) {
                    self.objects[*owner].2 += 1;
                }
            }
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let addr = || 0x1000u64..0x1080;
    prop_oneof![
        3 => (addr(), 1u64..40).prop_map(|(addr, size)| Heap(allocated(addr & !7, size, addr))),
        2 => addr().prop_map(|addr| Heap(freed(addr & !7))),
        5 => addr().prop_map(Access),
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
        let mut expected: Vec<_> = model.objects.iter().copied().filter(|o| o.2 > 0).collect();
        let heap = index.spaces.get(&SPACE);
        let all = heap.iter().flat_map(|heap| heap.past.iter().chain(heap.live.values()));
        let mut counted: Vec<_> =
            all.map(|o| (o.addr, o.size, o.accesses)).filter(|o| o.2 > 0).collect();
        expected.sort_unstable();
        counted.sort_unstable();
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
            prop_assert!(pair[0].end() <= pair[1].addr);
        }
    }
}
