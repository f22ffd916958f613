//! Advice for findings of many lines, of each of which little was seen.

use super::super::{
    fixture::{FakeNames, LINE, judgement, object, report, site},
    model::Advice,
};
use crate::{
    access::{Cost, LineKey, Op},
    analysis::SiteCounts,
    finding::{Judgement, Verdict},
    hint::{AdviceKind, role::Role},
    names::{
        Author, ElementLayout, Language, MemberLayout, ObjectKind, ObjectLayout, ObjectName,
        Outcome, WordUse, Written,
    },
};

const TAKE: u64 = 0x40_1300;
const GIVE: u64 = 0x40_1310;
const LOOK: u64 = 0x40_1320;

/// A finding of the lines from [`LINE`] on, each with these sites.
fn advice(verdict: Verdict, lines: Vec<Vec<SiteCounts>>, object: ObjectName) -> Advice {
    let truly = if verdict == Verdict::TrueSharing {
        1.0
    } else {
        0.0
    };
    let judgements = (0..).zip(lines).map(|(n, sites)| {
        let mut line = judgement(verdict, truly, sites);
        line.key = LineKey(line.key.0.at(LINE + n * 64));
        line
    });
    let judgements: Vec<Judgement> = judgements.collect();
    let names = FakeNames {
        owner: Some("slots[]".to_owned()),
        objects: vec![object],
        ..FakeNames::default()
    };
    let taken = WordUse::Exchange {
        new: Written::Constant(1),
        outcome: Outcome::Tested,
    };
    let names = names
        .field(0, 8, 0, "[7].lock")
        .field(8, 16, 0, "[7].next")
        .does(TAKE, taken)
        .does(GIVE, WordUse::Write(Written::Constant(0)))
        .does(LOOK, WordUse::Read(Outcome::Used));
    let found = report(&judgements, &names);
    assert_eq!(found.findings.len(), 1);
    assert!(found.findings[0].lines.is_some());
    found.findings[0].advice.clone()
}

fn array(stride: u64) -> ObjectName {
    let mut slots = object("slots", ObjectKind::Global, LINE, 64 * 1024);
    slots.language = Some(Language::C);
    slots.layout = Some(ObjectLayout {
        author: Author::Program,
        size: slots.size.unwrap_or_default(),
        element: Some(ElementLayout {
            type_name: Some("struct slot".to_owned()),
            stride,
            count: 64 * 1024 / stride,
        }),
        members: vec![MemberLayout {
            name: "lock".to_owned(),
            offset: 0,
            size: 8,
            type_name: Some("long".to_owned()),
            ..MemberLayout::default()
        }],
    });
    slots
}

fn node() -> ObjectName {
    let mut node = array(16);
    node.kind = ObjectKind::Heap;
    (node.name, node.start, node.size) = (None, Some(LINE), Some(24));
    node.type_name = Some("struct node".to_owned());
    let layout = node.layout.as_mut().unwrap();
    (layout.element, layout.size) = (None, 24);
    node
}

fn words(advice: &Advice) -> Vec<(&str, Role)> {
    let words = advice.words.iter();
    words.map(|word| (word.field.as_str(), word.role)).collect()
}

/// On each line one thread takes the lock, and the next one gives it back.
fn locks() -> Vec<Vec<SiteCounts>> {
    let line = |n: u32| {
        vec![
            site(0, 8, Op::Rmw, 4001 + n % 2, TAKE, 900, 2),
            site(0, 8, Op::Store, 4001 + (n + 1) % 2, GIVE, 10, 2),
        ]
    };
    // Each line has a small part of all that is seen.
    (0..300).map(line).collect()
}

#[test]
fn a_lock_of_many_is_known_by_what_threads_do_on_all_lines_together() {
    let advice = advice(Verdict::TrueSharing, locks(), array(64));
    assert_eq!(words(&advice), [("[].lock", Role::Lock)]);
    let text = advice.text.unwrap();
    assert!(
        text.starts_with("2 threads take `slots[].lock` by turns"),
        "{text}"
    );
    assert!(
        !text.contains("own line") && !text.contains("_Alignas"),
        "{text}"
    );
}

#[test]
fn what_was_set_when_all_began_is_no_shared_word() {
    let mut lines = locks();
    for line in &mut lines {
        line[0].decoded = 100_000;
        line[0].cost = Cost(100_000);
        line.push(site(8, 8, Op::Store, 4003, GIVE, 0, 1));
        line.push(site(8, 8, Op::Load, 4001, LOOK, 0, 100));
    }
    let seldom = advice(Verdict::TrueSharing, lines.clone(), array(64));
    assert_eq!(words(&seldom), [("[].lock", Role::Lock)]);
    for line in &mut lines {
        line[2].decoded = 1_000;
    }
    let often = advice(Verdict::TrueSharing, lines, array(64));
    assert_eq!(often.words.len(), 2);
}

#[test]
fn a_flag_of_many_that_one_thread_sets_each_and_another_clears_is_no_lock() {
    let line = |n: u32| {
        vec![
            site(0, 8, Op::Store, 4001 + n % 2, GIVE, 900, 20),
            site(0, 8, Op::Load, 4001 + (n + 1) % 2, LOOK, 10, 2),
        ]
    };
    let advice = advice(Verdict::TrueSharing, (0..12).map(line).collect(), array(64));
    assert_eq!(words(&advice), [("[].lock", Role::Flag)]);
}

#[test]
fn words_of_one_writer_each_are_not_taken_for_words_of_many_writers() {
    let line = |shift: u32| {
        move |n: u32| {
            vec![
                site(8, 8, Op::Store, 4001 + n * shift % 2, 0x40_1400, 900, 20),
                site(8, 8, Op::Load, 4001 + (n * shift + 1) % 2, LOOK, 10, 2),
            ]
        }
    };
    let each = advice(
        Verdict::TrueSharing,
        (0..12).map(line(1)).collect(),
        array(64),
    );
    assert_eq!(words(&each), [("[].next", Role::Published)]);
    let text = each.text.unwrap();
    assert!(
        text.starts_with("One thread writes each `slots[].next` and 1 thread reads it"),
        "{text}"
    );
    // Both threads write the same ones.
    let both = |_: u32| {
        vec![
            site(8, 8, Op::Store, 4001, 0x40_1400, 900, 20),
            site(8, 8, Op::Store, 4002, 0x40_1400, 900, 20),
        ]
    };
    let both = advice(Verdict::TrueSharing, (0..12).map(both).collect(), array(64));
    assert_eq!(words(&both), [("[].next", Role::Overwritten)]);
}

/// One thread stores, and another passed by: nothing tells what is whose.
fn line_of_one(n: u32) -> Vec<SiteCounts> {
    let at = (n % 2 * 8) as u8;
    vec![
        site(at, 8, Op::Store, 4001 + n % 2, GIVE, 900, 2),
        site(at, 8, Op::Load, 4001 + (n + 1) % 2, LOOK, 10, 1),
    ]
}

#[test]
fn elements_get_lines_of_their_own_even_where_no_line_shows_two_threads() {
    let lines: Vec<Vec<SiteCounts>> = (0..12).map(line_of_one).collect();
    let small = advice(Verdict::FalseSharing, lines.clone(), array(8));
    assert_eq!(small.kind, AdviceKind::PadElements);
    // 8,192 elements of 8 bytes.
    assert_eq!(small.bytes, Some(8192 * 56));
    assert!(small.text.unwrap().contains("_Alignas(64) long lock;"));
    // Whole lines that begin at one: there is nothing to grow.
    let whole = advice(Verdict::FalseSharing, lines, array(64));
    assert_eq!(whole.kind, AdviceKind::SeparateBytes);
    assert!(
        whole
            .text
            .unwrap()
            .starts_with("On one of its lines, different threads use byte")
    );
}

#[test]
fn objects_of_a_type_get_it_aligned_and_cost_what_nobody_can_count() {
    let advice = advice(
        Verdict::FalseSharing,
        (0..12).map(line_of_one).collect(),
        node(),
    );
    assert_eq!((advice.kind, advice.bytes), (AdviceKind::AlignObject, None));
    let text = advice.text.unwrap();
    assert!(
        text.starts_with("Objects of type `struct node`, which different threads use, share lines"),
        "{text}"
    );
    assert!(text.contains("Each grows from 24 to 64 bytes."), "{text}");
}

#[test]
fn lines_of_which_nothing_is_known_get_words() {
    let mut nothing = object("slots", ObjectKind::Unknown, LINE, 4096);
    nothing.name = None;
    let advice = advice(
        Verdict::FalseSharing,
        (0..12).map(line_of_one).collect(),
        nothing,
    );
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::SeparateBytes, None)
    );
    let text = advice.text.unwrap();
    assert!(
        text.contains("What this memory is could not be told."),
        "{text}"
    );
}

#[test]
fn fields_at_the_same_place_of_two_lines_of_a_struct_keep_their_names() {
    let row = |ip| {
        vec![
            site(32, 8, Op::Store, 4001, ip, 900, 2),
            site(32, 8, Op::Load, 4002, ip + 4, 900, 2),
        ]
    };
    let judgements = (0..).zip([row(TAKE), row(GIVE)]).map(|(n, sites)| {
        let mut line = judgement(Verdict::TrueSharing, 1.0, sites);
        line.key = LineKey(line.key.0.at(LINE + n * 64));
        line
    });
    let mut names = FakeNames {
        owner: Some("queue".to_owned()),
        objects: vec![object("queue", ObjectKind::Global, LINE, 128)],
        ..FakeNames::default()
    };
    for (n, field) in (0..).zip(["head", "tail"]) {
        let here = vec![(32, 40, 0, Some(format!(".{field}")))];
        names.fields_at.insert(LINE + n * 64, here);
    }
    let judgements: Vec<Judgement> = judgements.collect();
    let found = report(&judgements, &names);
    let mut fields: Vec<(Option<&str>, u64)> = (found.findings[0].accesses.iter())
        .map(|row| (row.field.as_deref(), row.count))
        .collect();
    fields.sort_unstable();
    let both = [".head", ".head", ".tail", ".tail"].map(|name| (Some(name), 902));
    assert_eq!(fields, both);
}
