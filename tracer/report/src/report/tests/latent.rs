//! What is told of sharing that is not there yet.

use expect_test::expect;

use crate::{
    access::{Access, Op, Place, SpaceId},
    analysis::{
        ByThread, Elsewhere, NeighbourBounds, Neighbours, OneMoreThread, OneMoves, SampledUses,
        emulated_fixture::emulated,
    },
    event::Tally,
    names::{ObjectKind, ObjectLayout, ObjectName},
    report::{
        fixture::{FakeNames, facts, object, report},
        latent::{LatentSharing, MovingBlock, Replayed, latent, sampled_latent},
        text::{self, TextOptions},
    },
};

/// The start of a line of 128 bytes.
const BASE: u64 = 0x40_4000;

fn place(access: &Access) -> Place {
    Place::Private {
        space: SpaceId(0),
        addr: access.addr,
    }
}

/// Three threads by turns, each adding to words of its own 64 bytes.
fn parts() -> Vec<Access> {
    let mut order = Vec::new();
    for _ in 0..100 {
        for thread in 0..3 {
            let at = |field: u64| BASE + u64::from(thread) * 64 + 24 + field * 8;
            let add = |field: u64| emulated(thread + 1, 0x40_1000 + field, Op::Rmw, at(field));
            order.extend((0..5).map(add));
        }
    }
    order
}

fn named(order: &[Access], names: &FakeNames) -> Vec<LatentSharing> {
    let mut neighbours = Neighbours::new(NeighbourBounds::default());
    let mut by_thread = ByThread::default();
    for access in order {
        neighbours.observe(access, place(access));
        by_thread.observe(access, place(access), SpaceId(0));
    }
    let found = neighbours.runs(8);
    let mut elsewhere = Elsewhere::new(found.runs);
    let mut one_moves = OneMoves::new(found.pairs);
    let mut one_more = OneMoreThread::new(&by_thread.arrays(8));
    for access in order {
        elsewhere.observe(access, place(access), SpaceId(0));
        one_more.observe(access, place(access), SpaceId(0));
        one_moves.observe(access, place(access), SpaceId(0));
    }
    let replayed = Replayed {
        runs: elsewhere.finish(8),
        one_more: one_more.finish(),
        one_moves: one_moves.finish(),
    };
    latent(&replayed, names, &Tally::default(), &facts())
}

/// As much, of lines that are all of one thing.
fn predicted(order: &[Access], objects: Vec<ObjectName>) -> Vec<LatentSharing> {
    let names = FakeNames {
        owner: Some("parts[]".to_owned()),
        objects,
        ..FakeNames::default()
    };
    named(order, &names.field(0, 64, 0, ".sum"))
}

fn aligned(alignment: Option<u64>) -> ObjectName {
    ObjectName {
        alignment,
        ..object("parts", ObjectKind::Global, BASE, 192)
    }
}

/// By bytes moved and size of lines.
fn fighting(found: &[LatentSharing]) -> Vec<(u8, u8)> {
    let ways = found.iter().flat_map(|sharing| &sharing.ways);
    let fighting = ways.filter(|way| way.fights);
    fighting
        .map(|way| (way.moved_bytes, way.line_bytes))
        .collect()
}

/// The section of the text.
fn printed(found: Vec<LatentSharing>) -> String {
    let names = FakeNames::default();
    let mut report = report(&[], &names);
    report.latent = Some(found);
    let text = text::render(&report, TextOptions::default());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_array_that_is_asked_to_begin_with_a_line_has_no_other_start_and_longer_lines_hold() {
    let anywhere = predicted(&parts(), vec![aligned(None)]);
    let starts = [(8, 64), (16, 64), (24, 64), (32, 64), (0, 128), (64, 128)];
    assert_eq!(fighting(&anywhere), starts);
    assert!(
        anywhere[0]
            .ways
            .iter()
            .all(|way| way.keeps_alignment.is_none())
    );
    let with_line = predicted(&parts(), vec![aligned(Some(64))]);
    assert_eq!(fighting(&with_line), [(0, 128), (64, 128)]);
    assert_eq!(with_line[0].alignment, Some(64));
    // A multiple of 16 leaves some of them.
    let some = predicted(&parts(), vec![aligned(Some(16))]);
    assert_eq!(fighting(&some), [(16, 64), (32, 64), (0, 128), (64, 128)]);
    // One that does not start so, whatever was asked for, is where chance has put it.
    let unheard = ObjectName {
        start: Some(BASE + 8),
        ..aligned(Some(64))
    };
    assert_eq!(fighting(&predicted(&parts(), vec![unheard])), starts);
    let bound = "The program asks for a start at a multiple of 64 bytes: no other is told.";
    assert!(printed(with_line).contains(bound));
    assert!(!printed(anywhere).contains("asks for a start"));
}

/// By turns, each thread adds to the first word of its element of so many bytes; then the last one's follower to `behind`.
fn elements(threads: u32, stride: u64, behind: Option<u64>) -> Vec<Access> {
    let mut order = Vec::new();
    for _ in 0..100 {
        for thread in 0..threads {
            let at = BASE + u64::from(thread) * stride;
            order.push(emulated(thread + 1, 0x40_1000, Op::Rmw, at));
        }
        let other = |at| emulated(9, 0x40_2000, Op::Rmw, BASE + at);
        order.extend(behind.map(other));
    }
    order
}

fn array(bytes: u64) -> ObjectName {
    object("parts", ObjectKind::Global, BASE, bytes)
}

#[test]
fn an_odd_number_of_half_lines_is_told_what_one_more_thread_brings_and_an_even_one_is_not() {
    let odd = predicted(&elements(3, 32, None), vec![array(96)]);
    let [only] = &odd[..] else {
        panic!("one: {odd:#?}");
    };
    let one_more = only.one_more_thread.expect("told");
    assert_eq!((one_more.element_bytes, one_more.elements), (32, 3));
    assert_eq!(one_more.behind_moved_bytes, 0);
    assert!((196..=200).contains(&one_more.hand_offs), "{one_more:?}");
    let words = "One more thread, with an element of 32 bytes behind the last of 3, would add 198 hand-offs";
    assert!(printed(odd).contains(words));
    let even = predicted(&elements(4, 32, None), vec![array(128)]);
    assert!(even.iter().all(|sharing| sharing.one_more_thread.is_none()));
}

#[test]
fn what_lies_behind_an_array_moves_only_where_the_array_has_no_room() {
    let order = elements(4, 48, Some(192));
    let told = |objects: Vec<ObjectName>| {
        let found = predicted(&order, objects);
        let moved = |sharing: &LatentSharing| Some(sharing.one_more_thread?.behind_moved_bytes);
        found.iter().find_map(moved)
    };
    let behind = |alignment| ObjectName {
        alignment,
        ..object("total", ObjectKind::Global, BASE + 192, 8)
    };
    assert_eq!(told(vec![array(192), behind(Some(8))]), Some(48));
    // It asks to begin with a line, and so is a line farther, and alone.
    assert_eq!(told(vec![array(192), behind(Some(64))]), None);
    // There is room for eight, and somebody uses the fifth as the next thread would: no neighbours.
    assert_eq!(told(vec![array(384)]), None);
}

#[test]
fn the_json_form_of_what_is_not_there_yet_has_every_key() {
    let mut found = predicted(&elements(3, 32, None), vec![array(96)]);
    let only = &mut found[0];
    // One of each is as the others.
    only.ways.truncate(1);
    only.neighbours.truncate(1);
    only.neighbours[0].accesses.truncate(1);
    let json = serde_json::to_string_pretty(only).expect("numbers and words");
    expect![[r#"
        {
          "id": "L1",
          "kind": "latent-sharing",
          "basis": "order",
          "names": [
            "parts[]"
          ],
          "object": {
            "kind": "global",
            "name": "parts",
            "called": null,
            "thread": null,
            "type": null,
            "file": null,
            "line": null,
            "offset_in_object": 0,
            "size": 96,
            "allocation": null
          },
          "lines": 2,
          "alignment": null,
          "threads": 3,
          "today": {
            "moved_bytes": 0,
            "line_bytes": 64,
            "start_offset": 0,
            "malloc_may": null,
            "keeps_alignment": null,
            "fights": false,
            "hand_offs": 198,
            "falsely": 197,
            "dragged": 0,
            "messages": 796
          },
          "ways": [
            {
              "moved_bytes": 8,
              "line_bytes": 64,
              "start_offset": 8,
              "malloc_may": null,
              "keeps_alignment": null,
              "fights": false,
              "hand_offs": 198,
              "falsely": 197,
              "dragged": 0,
              "messages": 796
            }
          ],
          "one_more_thread": {
            "element_bytes": 32,
            "elements": 3,
            "behind_moved_bytes": 0,
            "hand_offs": 198,
            "falsely": 197,
            "dragged": 0,
            "messages": 796
          },
          "one_moves": [],
          "neighbours": [
            {
              "line": {
                "key": "private:0:0x404000",
                "address": "0x404000",
                "bytes": 64
              },
              "accesses": [
                {
                  "offset": 0,
                  "size": 8,
                  "size_known": true,
                  "within": null,
                  "field": ".sum",
                  "op": "rmw",
                  "count": 100,
                  "trapped": 0,
                  "cost_share": 0.0,
                  "at_barrier_share": 0.0,
                  "spinning_share": 0.0,
                  "basis": "emulated",
                  "coherence": null,
                  "latency_cycles": null,
                  "threads": [
                    {
                      "pid": 1,
                      "tid": 1,
                      "comm": null,
                      "cpus": []
                    }
                  ],
                  "code": {
                    "module": "/opt/stripped/server",
                    "build_id": null,
                    "ip": "0x1000",
                    "symbol": null,
                    "symbol_offset": null,
                    "inlined": [],
                    "inline_chain": [],
                    "file": null,
                    "line": null,
                    "column": null
                  }
                }
              ]
            }
          ],
          "advice": "Give what each thread uses lines of its own wherever the memory begins: start it at a multiple of 128 bytes (alignas(128), aligned_alloc) and make its size a multiple of 128; multiples of 64 do where lines are of 64 bytes."
        }"#]].assert_eq(&json);
}

/// Two structs of so many bytes on the heap, on two lines, with a word of each used by a thread of its own, by turns.
fn blocks(bytes: u64, types: [&str; 2]) -> Vec<LatentSharing> {
    let starts = [BASE + 16, BASE + 96];
    let mut order = Vec::new();
    for _ in 0..100 {
        for (start, thread) in starts.into_iter().zip(1..) {
            order.push(emulated(thread, 0x40_1000, Op::Rmw, start));
        }
    }
    let block = |n: usize| ObjectName {
        kind: ObjectKind::Heap,
        name: None,
        type_name: Some(types[n].to_owned()),
        layout: Some(ObjectLayout::row(None, 8, bytes / 8, None)),
        ..object("", ObjectKind::Heap, starts[n], bytes)
    };
    let of = |object: usize| vec![(0, 64, object, Some(".sum".to_owned()))];
    let names = FakeNames {
        objects: vec![block(0), block(1)],
        fields_at: [(BASE, of(0)), (BASE + 64, of(1))].into(),
        ..FakeNames::default()
    };
    named(&order, &names)
}

#[test]
fn of_two_blocks_one_comes_closer_where_there_is_room_and_elements_do_not() {
    let moves = |found: &[LatentSharing]| -> Vec<(MovingBlock, i8)> {
        let moves = found.iter().flat_map(|sharing| &sharing.one_moves);
        moves.map(|one| (one.moves, one.moved_bytes)).collect()
    };
    let (first, second) = (MovingBlock::First, MovingBlock::Second);
    // The words are at 16 and 96: 48 bytes later and 48 bytes earlier they are on one line.
    let found = blocks(24, ["struct head", "struct tail"]);
    assert_eq!(moves(&found), [(first, 48), (second, -48)]);
    let words = "the second 48 bytes earlier, 198 hand-offs and 796 messages";
    assert!(printed(found).contains(words));
    // The chunk of the first, of 64 bytes, leaves 16; elements of one block do not move at all.
    assert_eq!(moves(&blocks(56, ["struct head", "struct tail"])), []);
    assert_eq!(moves(&blocks(40, ["struct node", "struct node"])), []);
    assert_eq!(moves(&blocks(24, ["struct node", "struct node"])).len(), 2);
}

#[test]
fn what_samples_show_is_told_without_a_cost_and_with_why() {
    let mut uses = SampledUses::default();
    for time_ns in 0..100 {
        for (thread, at) in [(1, 56), (2, 64)] {
            let sampled = Access {
                time_ns,
                basis: crate::access::Basis::Decoded,
                ..emulated(thread, 0x40_1000, Op::Store, BASE + at)
            };
            uses.observe(&sampled, place(&sampled), SpaceId(0));
        }
    }
    let told = |alignment| {
        let names = FakeNames {
            owner: Some("parts[]".to_owned()),
            objects: vec![aligned(alignment)],
            ..FakeNames::default()
        };
        let names = names.field(0, 64, 0, ".sum");
        sampled_latent(&uses.runs(), &names, &facts())
    };
    let found = told(None);
    let starts = [8, 16, 24, 32, 40, 48, 56].map(|moved| (moved, 64));
    assert_eq!(fighting(&found), [&starts[..], &[(0, 128)]].concat());
    assert_eq!(fighting(&told(Some(64))), [(0, 128)]);
    let json = serde_json::to_value(&found[0]).expect("numbers and words");
    assert_eq!(json["basis"], "samples");
    let ways = json["ways"].as_array().expect("a list").iter();
    let all = ways.chain([&json["today"]]);
    for cost in all.flat_map(|way| ["hand_offs", "falsely", "messages"].map(|name| &way[name])) {
        assert!(cost.is_null());
    }
    let text = printed(found);
    assert!(
        text.contains("Not replayed: the order is not known."),
        "{text}"
    );
    assert!(!text.contains("hand-offs"), "{text}");
}
