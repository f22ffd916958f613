//! What is told of sharing that is not there yet.

use crate::{
    access::{Access, Op, Place, SpaceId},
    analysis::{Elsewhere, NeighbourBounds, Neighbours, emulated_fixture::emulated},
    event::Tally,
    names::{ObjectKind, ObjectName},
    report::{
        fixture::{FakeNames, facts, object, report},
        latent::{LatentSharing, latent},
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

fn predicted(order: &[Access], object: ObjectName) -> Vec<LatentSharing> {
    let mut neighbours = Neighbours::new(NeighbourBounds::default());
    for access in order {
        neighbours.observe(access, place(access));
    }
    let mut elsewhere = Elsewhere::new(neighbours.runs(8).runs);
    for access in order {
        elsewhere.observe(access, place(access), SpaceId(0));
    }
    let names = FakeNames {
        owner: Some("parts[]".to_owned()),
        objects: vec![object],
        ..FakeNames::default()
    };
    let names = names.field(0, 64, 0, ".sum");
    latent(&elsewhere.finish(8), &names, &Tally::default(), &facts())
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
    let anywhere = predicted(&parts(), aligned(None));
    let starts = [(8, 64), (16, 64), (24, 64), (32, 64), (0, 128), (64, 128)];
    assert_eq!(fighting(&anywhere), starts);
    assert!(
        anywhere[0]
            .ways
            .iter()
            .all(|way| way.keeps_alignment.is_none())
    );
    let with_line = predicted(&parts(), aligned(Some(64)));
    assert_eq!(fighting(&with_line), [(0, 128), (64, 128)]);
    assert_eq!(with_line[0].alignment, Some(64));
    // A multiple of 16 leaves some of them.
    let some = predicted(&parts(), aligned(Some(16)));
    assert_eq!(fighting(&some), [(16, 64), (32, 64), (0, 128), (64, 128)]);
    // One that does not start so, whatever was asked for, is where chance has put it.
    let unheard = ObjectName {
        start: Some(BASE + 8),
        ..aligned(Some(64))
    };
    assert_eq!(fighting(&predicted(&parts(), unheard)), starts);
    let bound = "The program asks for a start at a multiple of 64 bytes: no other is told.";
    assert!(printed(with_line).contains(bound));
    assert!(!printed(anywhere).contains("asks for a start"));
}
